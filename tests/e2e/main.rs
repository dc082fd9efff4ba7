//! End-to-end tests: real processes, a real Kafka, and witnesses that record when they ran.
//!
//! A test waits for events, never for a time. To show that something does *not* happen, it waits for an event that would come after it.
//! Every test ends with the same check: no two jobs ever ran at the same time, and no process of them is left.

#![expect(clippy::expect_used, reason = "a test fails by a panic")]

mod assert;
mod back_off;
mod bad_input;
mod broker;
mod broker_deaths;
mod clocks;
mod completions;
mod death;
mod doctor;
mod embedded;
mod forget;
mod group;
mod guarded;
mod handover;
mod harness_itself;
mod health;
mod history;
mod hooks;
mod job;
mod late_kill;
mod library;
mod list;
mod listen;
mod log;
mod loss;
mod many_groups;
mod netns_links;
mod never_pause;
mod noted_runs;
mod observe;
mod once;
mod overlap;
mod page;
mod priority;
mod process_one;
mod readers;
mod real_time;
mod recipes;
mod remade;
mod resign;
mod restart;
mod rights;
mod role;
mod roles;
mod roles_spread;
mod schedule;
mod secrets;
mod settle;
mod shortage;
mod signals;
mod slow_links;
mod status;
mod strangers;
mod systemd;
mod terminal;
#[cfg(feature = "ssl")]
mod tls;
mod topic_policy;
mod topics_by_hand;
mod tree;
mod tutorial;
mod two_clusters;
mod watch;
mod window;

use std::path::Path;

use harness::candidate::{Candidate, Elector, Running};
use harness::election::TestElection;
use harness::kafka::Kafka;
use harness::{wait, with_both_electors};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_neli-run");

/// The options of `unshare` without root: a user namespace in which the user keeps the same name.
const AS_USER: [&str; 2] = ["--user", "--map-current-user"];

/// An election with a new name on the Kafka that all tests share.
fn election(elector: Elector) -> TestElection {
    TestElection::new(PROGRAM, Kafka::shared(), elector)
}

/// A candidate with no option except the log's format.
fn bare() -> Candidate {
    Candidate::new(Path::new(PROGRAM))
}

/// Waits until one of them leads; returns its index and term.
fn await_leader(candidates: &mut [Running]) -> (usize, u64) {
    let led = |candidate: &Running| !candidate.events("leading").is_empty();
    let leader = wait::until("a leader", || candidates.iter().position(led));
    (leader, candidates[leader].await_lead())
}
