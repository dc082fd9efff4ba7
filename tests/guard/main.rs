//! Tests of the guard with real processes and without Kafka: which processes it starts, kills and leaves.
//!
//! Each test waits for a line, an answer or an end, and never for a time. Time limits only make a test fail.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test says what failed by panicking, its helpers too")]

mod backlog;
mod commands;
mod ends;
mod fixture;
mod groups;
mod memory;
mod memory_pressure;
mod namespaces;
mod own_signals;
mod process_attributes;
mod real_time;
mod reaping;
mod sealed_files;
mod starts;
mod supervisor;
mod trees;
