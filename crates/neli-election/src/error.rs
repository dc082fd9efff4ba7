//! The library's errors. Each says what to do about it.

use std::fmt;

use neli_kafka::{ClientError, one_line};
use neli_proto::record::Why;
use thiserror::Error;

/// Why a candidate or a follower can't start or has ended, or why a lead has ended.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let refused = neli_election::Election::builder("billing").brokers("kafka").join().await;
/// assert_eq!(refused.unwrap_err().to_string(), "brokers kafka: must be HOST:PORT,.. and 'kafka' has no port");
/// # }
/// ```
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A task, or the callback of `before_release`, did not reach an await for a whole lease after it should have been dropped. It may
    /// still run, so nothing is released, and this candidate no longer stands for election. Other candidates lead when the lease has run out.
    /// [`Builder::join`](crate::Builder::join) makes another candidate; but while the task may still act, only the
    /// [token](crate::Lease::token) and [`Lease::is_valid`](crate::Lease::is_valid) protect the next leader's work from it. Most programs
    /// should exit here, and be started again.
    #[error(
        "a task, or the callback of before_release, has not come to an await for a lease after its lead was over, and may still run: \
         let it check Lease::is_valid, and move what blocks to other threads"
    )]
    Blocked,
    /// An operator has ended the election.
    #[error("an operator has ended the election")]
    Ended,
    /// This candidate has left the election.
    #[error("this candidate has left the election")]
    Left,
    /// A lead is over; the candidate still stands for election.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// An option is missing, out of its bounds, or does not go with another.
    #[error("{option}{}: {expected}", shown(value))]
    Option {
        /// The builder's method.
        option: &'static str,
        /// The value that it was given; empty if that may be a secret, or if it was given none.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// Kafka, or librdkafka, refuses for good: a right that is missing, a topic that may not carry an election, a login. One line.
    #[error("{0}")]
    Refused(String),
    /// The machine lacks something: threads, descriptors, randomness.
    #[error("{0}")]
    System(String),
}

impl Error {
    pub(crate) fn option(option: &'static str, value: impl Into<String>, expected: impl Into<String>) -> Self {
        // It may contain a part of the value.
        Self::Option { option, value: value.into(), expected: one_line(&expected.into()) }
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(line) => Self::Refused(line),
            ClientError::Shortage(line) => Self::System(line),
        }
    }
}

fn shown(value: &str) -> String {
    match value {
        "" => String::new(),
        _ => format!(" {}", one_line(value)),
    }
}

/// A task did not begin, or was dropped before its end, because its lead is over.
///
/// To be the leader again, wait for the next [`Election::lead`](crate::Election::lead). `?` makes an [`enum@Error`] of it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli_election::EmbeddedBroker::start()?;
/// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
/// let mut lead = election.lead().await?;
/// election.leave().await;
/// let lost = lead.run(async |_| println!("never begun")).await.unwrap_err();
/// assert_eq!(lost.reason, neli_election::Reason::Left);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the lead of term {term} is over: {reason}")]
#[non_exhaustive]
pub struct Lost {
    /// The term: the fencing token of its lease.
    pub term: i64,
    /// Why it is over.
    pub reason: Reason,
}

// ---- why a lead ends -----------------------------------------------------------------------------------------------

/// Why a lead ends, or has ended.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli_election::EmbeddedBroker::start()?;
/// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
/// let mut lead = election.lead().await?;
/// let work = lead.run(|lease| async move {
///     match lease.ending().await {
///         neli_election::Reason::Left => println!("this process ends"),
///         reason => println!("another leads next: {reason}"),
///     }
/// });
/// # let (work, ()) = tokio::join!(work, election.leave());
/// # let work = async { work };
/// work.await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// An operator has ended the election: nobody leads it any more.
    Ended,
    /// No heartbeat extends the lease, because Kafka has not acknowledged this candidate's in time: it runs out soon
    /// ([`Builder::fence_warning`](crate::Builder::fence_warning)), or has run out. Or another candidate leads already.
    Expired,
    /// This candidate has left the election.
    Left,
    /// Kafka refuses this candidate for good; [`Error::Refused`] says why.
    Refused,
    /// The lead was given up: by [`Lead::resign`](crate::Lead::resign), by dropping the [`Lead`](crate::Lead), because no caller took it,
    /// or because an operator asked for that.
    Resigned,
    /// Kafka's consumer group has given the partition to another candidate.
    Revoked,
    /// The role was handed over to another process, because this one leads more [roles](crate::Builder::roles) than its share.
    Spread,
}

impl Reason {
    pub(crate) const fn of(why: Why) -> Self {
        match why {
            Why::ClaimExpired | Why::Fenced | Why::GuardDied | Why::SupervisorDied => Self::Expired,
            Why::Ended => Self::Ended,
            Why::Exited
            | Why::FactsUnavailable
            | Why::Failed
            | Why::Resigned
            | Why::RestartLimit
            | Why::Skipped
            | Why::Suspended
            | Why::Unhealthy => Self::Resigned,
            Why::Refused => Self::Refused,
            Why::Revoked => Self::Revoked,
            Why::Spread => Self::Spread,
            Why::Departed | Why::Left | Why::Stopped => Self::Left,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => "an operator has ended the election",
            Self::Expired => "no heartbeat extends the lease, or another leads already",
            Self::Left => "this candidate has left the election",
            Self::Refused => "Kafka refuses this candidate",
            Self::Resigned => "the lead was given up",
            Self::Revoked => "the consumer group has chosen another candidate",
            Self::Spread => "another process leads fewer roles",
        })
    }
}
