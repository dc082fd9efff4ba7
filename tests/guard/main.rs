//! The guard with real processes, and no Kafka: what it starts, what it ends, and what it leaves.
//!
//! Each test waits for a word or an end, never for a time; the bounds are there to fail.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test says what failed by panicking, its helpers too")]

mod backlog;
mod commands;
mod ends;
mod groups;
mod lateness;
mod nature;
mod own_signals;
mod papers;
mod post;
mod pressure;
mod reaping;
mod starts;
mod supervisor;
mod trees;
