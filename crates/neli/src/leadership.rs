//! What is known about the leader.

use std::time::Instant;

use neli_proto::time::Time;

use crate::clock;
use crate::event::Leader;

/// What a [`Follower`](crate::Follower) knows about the leader.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli::EmbeddedBroker::start()?;
/// # let mut follower = neli::Follower::builder("billing").embedded(&broker).start()?;
/// # let election = neli::Election::builder("billing").embedded(&broker).join().await?;
/// # let lead = election.lead().await?;
/// # while follower.leader().is_none() { follower.changed().await? }
/// use neli::Leadership;
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
    /// This candidate leads, by a record that is younger than its lease. It may have lost the lead a moment ago, so the leader itself must
    /// check its lease.
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
        /// Why the follower can't know it, in one line: no broker answers, the topic does not exist yet, or a batch can't be decoded. The
        /// follower tries again. `None` if the journal is still being read, or if the leader has been silent for its whole lease and no
        /// other candidate has claimed.
        trouble: Option<String>,
    },
}

/// When another leader was heard last, and what follows from that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    pub(crate) at: Time,
    /// When it will have missed three heartbeats.
    pub(crate) overdue: Time,
    /// From when on another candidate may claim.
    pub(crate) claimable: Time,
}

impl Heard {
    /// That a leader which was heard then has missed three heartbeats.
    pub(crate) fn silent(&self, leader: Leader) -> Leadership {
        let since = clock::instant_of(self.at);
        Leadership::Silent { leader, since, claimable: since + self.claimable.since(self.at) }
    }
}
