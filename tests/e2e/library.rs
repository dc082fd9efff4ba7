//! The library on a real Kafka: elections in this process, in others, and together with `neli-run`.
//!
//! A leader writes lines in a witness's format while its lease is valid, so the checks are those of `neli-run`'s tests: no two leaders
//! ever acted at the same time.

mod chaos;
mod exits;
mod follower;
mod handover;
mod loss;
mod roles;
mod worker;

use std::future::Future;
use std::time::Duration;

use harness::candidate::Elector;
use harness::election::TestElection;
use harness::kafka::Kafka;
use harness::wait::PATIENCE;
use neli_election::{Builder, Election};

use crate::PROGRAM;

fn test_election(elector: Elector) -> TestElection {
    TestElection::new(PROGRAM, Kafka::shared(), elector)
}

/// A candidate of this process for the test's election.
fn candidate(test_election: &TestElection) -> Builder {
    candidate_at(test_election, Kafka::shared().address())
}

/// The same with another address of Kafka.
fn candidate_at(test_election: &TestElection, brokers: &str) -> Builder {
    Election::builder(&test_election.group).brokers(brokers).elector(elector(test_election.elector()))
}

const fn elector(elector: Elector) -> neli_election::Elector {
    match elector {
        Elector::Group => neli_election::Elector::Group,
        Elector::Log => neli_election::Elector::Log,
    }
}

/// Runs a test's future; every wait in it is bounded.
fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(soon("the end of the test", 3 * PATIENCE, test))
}

/// Awaits a future with a bound.
async fn soon<T>(what: &str, bound: Duration, awaited: impl Future<Output = T>) -> T {
    tokio::time::timeout(bound, awaited).await.unwrap_or_else(|_| panic!("not within {bound:?}: {what}"))
}
