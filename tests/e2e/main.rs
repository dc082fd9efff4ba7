//! End to end: real processes, a real Kafka, and witnesses that say when they ran.
//!
//! A test waits for what must come and never for a time; where something must *not* come, it waits for what would come
//! after it. Every story ends with the same proof: no two jobs ever ran at one time, and nothing of them is left.

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
mod handover;
mod harness_itself;
mod health;
mod history;
mod hooks;
mod job;
mod list;
mod listen;
mod log;
mod loss;
mod many_groups;
mod netns_links;
mod never_pause;
#[cfg(feature = "oidc")]
mod oidc;
mod once;
mod overlap;
mod page;
mod priority;
mod process_one;
mod readers;
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
mod topics_by_hand;
mod tree;
mod watch;
mod window;

use std::path::Path;

use harness::candidate::{Candidate, Elector, Running};
use harness::election::TestElection;
use harness::kafka::Kafka;
use harness::{wait, with_both_electors};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_neli-run");

/// What `unshare` needs besides, for whoever is not root: a user namespace, in which the user is who he is.
const AS_USER: [&str; 2] = ["--user", "--map-current-user"];

/// An election of its own on the Kafka that all tests share.
fn election(elector: Elector) -> TestElection {
    TestElection::new(PROGRAM, Kafka::shared(), elector)
}

/// A candidate with no option said at all but its log's format.
fn bare() -> Candidate {
    Candidate::new(Path::new(PROGRAM))
}

/// Waits until one of them leads; which, and its term.
fn await_leader(candidates: &mut [Running]) -> (usize, u64) {
    let led = |candidate: &Running| !candidate.events("leading").is_empty();
    let leader = wait::until("a leader", || candidates.iter().position(led));
    (leader, candidates[leader].await_lead())
}
