//! Why a lead ends.

use std::fmt;

use neli_proto::record::Why;

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
    /// The lease ran out because Kafka did not acknowledge this candidate's heartbeats, or another candidate leads already.
    Expired,
    /// This candidate has left the election.
    Left,
    /// Kafka refuses this candidate for good; [`Error::Refused`](crate::Error::Refused) says why.
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
            Self::Expired => "the lease has run out, or another leads already",
            Self::Left => "this candidate has left the election",
            Self::Refused => "Kafka refuses this candidate",
            Self::Resigned => "the lead was given up",
            Self::Revoked => "the consumer group has chosen another candidate",
            Self::Spread => "another process leads fewer roles",
        })
    }
}
