//! Runs a command on exactly one machine of many, with nothing but Kafka.
//!
//! `logic/` decides and never looks; `driver/` looks and does and never decides; `run.rs` is the only file that
//! knows both. Every file of `logic/` has its hands in a twin of `driver/`.
//!
//! What is promised, and under which assumptions, is said in the README; the rules are cited as they are numbered in
//! docs/protocol.md: the law is L1 to L4, the rules of a candidate are R0 to R8.

pub mod cli;
pub mod config;
pub mod exit;
pub mod features;
pub mod run;
pub mod text;

/// Decides and never looks: no clock, no I/O, no thread.
pub mod logic {
    pub mod broker_death;
    pub mod candidacy;
    pub mod candidate;
    pub mod command;
    pub mod flaw;
    pub mod health;
    pub mod hooks;
    pub mod journal;
    pub mod listener;
    pub mod precedence;
    pub mod random;
    pub mod record;
    pub mod reminder;
    pub mod restart;
    pub mod supervision;
    pub mod supervisor;
    pub mod time;
    pub mod topic;
}

/// Looks and does, and never decides.
pub mod driver {
    pub mod broker;
    pub mod cgroup;
    pub mod clock;
    pub mod descriptors;
    pub mod embedded;
    pub mod group;
    pub mod guard;
    mod identity;
    pub mod image;
    pub mod journal;
    mod killing;
    mod known;
    pub mod lease;
    pub mod librdkafka;
    pub mod limits;
    mod listener;
    pub mod log;
    pub mod meaning;
    pub mod notify;
    pub mod orphans;
    pub mod paper;
    mod patience;
    pub mod priority;
    pub mod process;
    pub mod quota;
    pub mod random;
    pub mod reader;
    pub mod ready;
    pub mod shell;
    pub mod signals;
    pub mod tail;
    pub mod terminal;
    pub mod timer;
    pub mod topic;
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
