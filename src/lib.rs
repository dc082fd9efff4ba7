//! Runs a command on at most one machine at a time, with nothing but Kafka.
//!
//! The crate `neli-proto` decides and has no effects. `supervise` is the loop that connects it with the system; `guard` is the process that
//! enforces the deadline; `process` and `report` perform actions, and decide nothing.
//!
//! docs/guarantees.md describes the guarantees and their assumptions. Rules are cited by their numbers in docs/protocol.md: the law is L1 to L4,
//! the rules of a candidate are R0 to R8.

#![allow(
    clippy::must_use_candidate,
    reason = "a getter whose value is dropped does nothing; what must be used says so"
)]

pub mod calendar;
pub mod cli;
pub mod config;
pub mod exit;
pub mod features;
pub mod guard;
mod http;
pub mod process;
pub mod release;
pub mod supervise;
pub mod text;

/// Reports to users and to the service manager: the log, systemd's status, and the texts for a node's notes.
pub mod report {
    pub(crate) mod election;
    pub(crate) mod events;
    pub(crate) mod json;
    pub mod log;
    pub(crate) mod notes;
    pub(crate) mod notify;
}

/// The subcommands, one file each.
pub mod command {
    pub mod assert;
    pub mod broker;
    pub mod completions;
    pub mod doctor;
    pub mod end;
    mod facts;
    pub mod forget;
    pub mod history;
    pub mod list;
    mod look;
    pub mod man;
    pub mod observe;
    pub mod output;
    mod reading;
    mod request;
    pub mod resign;
    pub mod status;
    pub mod watch;
    mod wording;
}
