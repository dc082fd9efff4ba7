//! What is known of who leads.

use crate::event::Leader;

/// What a [`Follower`](crate::Follower) knows of who leads.
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
///     Leadership::Vacant => println!("nobody leads: requests are refused, or wait"),
///     Leadership::Unknown { trouble: Some(trouble) } => println!("not known who leads: {trouble}"),
///     Leadership::Unknown { trouble: None } => println!("not known who leads, yet"),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Leadership {
    /// This one leads, by a record that is younger than its lease. What was the leader a moment ago may not be now: the leader itself checks
    /// its lease.
    Led(Leader),
    /// Nobody leads: the journal has been read, and its last term was released, or there was none.
    Vacant,
    /// It is not known whether anybody leads.
    Unknown {
        /// What keeps the follower from knowing, in one line: no broker answers, the topic does not exist yet, a batch can't be
        /// decoded. It goes on trying. `None` where nothing does: the journal is still being read, or the leader has been silent for its
        /// whole lease and no other has claimed.
        trouble: Option<String>,
    },
}
