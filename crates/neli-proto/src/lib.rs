//! The protocol of `neli-run` as plain objects: leader election over the records of one Kafka partition.
//!
//! Nothing here reads a clock, does I/O or starts a thread: each object is told what happened and at what time, and says what
//! to do and when to wake it. `no_std` holds it to that. The rules are cited as they are numbered in docs/protocol.md: the law
//! is L1 to L4, the rules of a candidate are R0 to R8.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod broker_death;
pub mod candidate;
pub mod clock_rate;
pub mod command;
pub mod fact;
mod failed_runs;
pub mod guard;
pub mod health;
pub mod hooks;
mod introduction;
mod job;
pub mod journal;
pub mod last_hello;
pub mod listener;
pub mod many_roles;
pub mod mapping;
pub mod node;
pub mod observer;
pub mod once;
pub mod precedence;
pub mod process_hello;
pub mod random;
pub mod record;
pub mod reminder;
pub mod restart;
pub mod schedule;
pub mod spread;
mod status;
pub mod supervisor;
pub mod terminal;
pub mod time;
pub mod timings;
pub mod topic;
pub mod window;
