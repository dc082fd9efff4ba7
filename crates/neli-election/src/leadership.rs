//! What is known about the leader.

use std::time::{Duration, Instant};

use neli_kafka::clock;
use neli_proto::leadership;
use neli_proto::time::Time;

use crate::event::Leader;

/// What a [`Follower`](crate::Follower) knows about the leader.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli_election::EmbeddedBroker::start()?;
/// # let mut follower = neli_election::Election::builder("billing").embedded(&broker).follow()?;
/// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
/// # let lead = election.lead().await?;
/// # while follower.leader().is_none() { follower.changed().await? }
/// use neli_election::Leadership;
///
/// match follower.leadership() {
///     Leadership::Led(leader) => println!("requests go to {:?}", leader.name),
///     Leadership::Silent { leader, .. } => println!("{:?} may be dead", leader.name),
///     Leadership::Vacant => println!("nobody leads: requests are refused, or wait"),
///     Leadership::Unknown { trouble: Some(trouble) } => println!("not known who leads: {trouble}"),
///     Leadership::Unknown { trouble: None } => println!("not known who leads, yet"),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Leadership {
    /// This candidate leads, by a record that was read within its lease. It may have lost the lead a moment ago, so the leader itself must
    /// check its lease. What was in the journal when the reading began counts as read then: a leader that had died before is shown for three
    /// heartbeats, and then as [`Silent`](Self::Silent).
    Led(Leader),
    /// The leader has missed three heartbeats, though Kafka answers: it may be dead or cut off. Its lease may still run.
    Silent {
        /// The leader.
        leader: Leader,
        /// Since when nothing was heard of it.
        since: Instant,
        /// From when on another candidate may claim, unless a heartbeat comes.
        claimable: Instant,
    },
    /// Nobody leads: the journal has been read, and its last term was released, or there was none.
    Vacant,
    /// It is not known whether anybody leads.
    Unknown {
        /// Why it can't be known, in one line: no broker answers, the topic does not exist yet, a batch can't be decoded, or (of a candidate)
        /// the topic was made anew or its records were cut. It is tried again. `None` if the journal does not show it:
        /// it is still being read, records of it are missing, the release of this candidate is not read back yet, or the leader has been
        /// silent for its whole lease and no other candidate has claimed.
        trouble: Option<String>,
    },
}

impl Leadership {
    /// What the records show `now`. `known`: the leader that was shown before. `trouble`: why nothing can be read, if so.
    pub(crate) fn of(
        current: leadership::Leadership<'_>,
        now: Time,
        known: Option<&Leader>,
        trouble: Option<String>,
    ) -> Self {
        use leadership::Leadership as Current;
        match current {
            Current::Led { leader, left, .. } if !left.is_zero() => Self::Led(Leader::of(leader, known)),
            Current::Overdue { leader, age, left, claimable_in } if !left.is_zero() => {
                let since = clock::instant_of(now - age);
                Self::Silent { leader: Leader::of(leader, known), since, claimable: since + age + claimable_in }
            }
            Current::Forgotten | Current::NeverLed | Current::Released { .. } => Self::Vacant,
            Current::Led { .. } | Current::Overdue { .. } | Current::Silent { .. } | Current::Unknown(_) => {
                Self::Unknown { trouble }
            }
        }
    }

    /// The leader, also if it is silent within its lease.
    pub(crate) const fn leader(&self) -> Option<&Leader> {
        let (Self::Led(leader) | Self::Silent { leader, .. }) = self else { return None };
        Some(leader)
    }
}

/// For how long the library shows the same, if no record comes: a leader is shown within its lease.
pub(crate) fn lasts_for(current: leadership::Leadership<'_>) -> Option<Duration> {
    use leadership::Leadership as Current;
    let (Current::Led { left, .. } | Current::Overdue { left, .. }) = current else { return None };
    current.changes_in().filter(|_| !left.is_zero()).map(|changes_in| changes_in.min(left))
}
