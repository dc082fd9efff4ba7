//! End to end: real processes, a real Kafka, and witnesses that say when they ran.

mod harness_itself;
