//! Runs a command on exactly one machine of many, with nothing but Kafka.
//!
//! The crate `neli-proto` decides and has no effects; `driver/` has the effects and does not decide; `run.rs` and the
//! subcommands know both.
//!
//! What is promised, and under which assumptions, is said in the README; the rules are cited as they are numbered in
//! docs/protocol.md: the law is L1 to L4, the rules of a candidate are R0 to R8.

pub mod cli;
pub mod config;
pub mod exit;
pub mod features;
pub mod run;
pub mod text;

/// Looks and does, and never decides.
pub mod driver {
    pub mod cgroup;
    pub mod descriptors;
    pub mod embedded_host;
    pub mod guard;
    pub mod image;
    mod killing;
    mod known;
    pub mod lease;
    pub mod limits;
    pub mod log;
    pub mod notify;
    pub mod orphans;
    pub mod paper;
    pub mod priority;
    pub mod process;
    pub mod quota;
    pub mod random;
    pub mod ready;
    pub mod shell;
    pub mod signals;
    pub mod tail;
    pub mod terminal;
    pub mod timer;
    pub mod tree;
}

/// One file a subcommand.
pub mod command {
    pub mod broker;
    pub mod completions;
    pub mod man;
    pub mod release;
    pub mod stdout;
    pub mod watch;
}
