//! The protocol of `neli-run` as plain objects: leader election over the records of one Kafka partition.
//!
//! No code here reads a clock, does I/O or starts a thread. Each object gets events with their times, and returns the actions to perform
//! and the time of the next call. The crate is `no_std`, so the compiler enforces this. Rules are cited by their numbers in
//! docs/protocol.md: L1 to L4 are the law, which decides which records count; R0 to R8 are the rules of a candidate.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![allow(
    clippy::must_use_candidate,
    reason = "a getter whose value is dropped does nothing; what must be used says so"
)]

extern crate alloc;

mod action;
pub mod assumptions;
pub mod candidate;
pub mod fact;
pub mod followed_mapping;
pub mod guard;
pub mod health;
pub mod hello;
pub mod hooks;
mod introduction;
pub mod job;
pub mod journal;
pub mod kafka;
pub mod late_beat;
pub mod leadership;
pub mod listener;
pub mod many_roles;
pub mod mapping;
pub mod node;
pub mod note;
pub mod observer;
pub mod once;
pub mod precedence;

pub mod random;
pub mod record;
pub mod reminder;
pub mod restart;
pub mod role_set;
pub mod schedule;
pub mod spread;
mod status;
pub mod supervisor;
pub mod time;
pub mod timings;
pub mod topic;
