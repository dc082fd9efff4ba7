//! One look at a node: what logs, a service manager and a status page show of it.

use alloc::vec::Vec;

use crate::candidate::Position;
use crate::status::{Awaits, Counts, Leader, OtherCandidate, Vacancy};
use crate::time::Time;

/// What a node is and knows at one moment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Status {
    /// Who leads, as far as the records that were read tell. Somebody who has gone silent leads until another does.
    pub leader: Option<Leader>,
    /// Why nobody leads, as far as they tell; none where somebody does.
    pub vacancy: Option<Vacancy>,
    /// What the node is in the election; where it leads, the state of its job.
    pub position: Position,
    /// When the node's own lease ends if nothing extends it; none while it holds none.
    pub lease_end: Option<Time>,
    /// What the node waits for, if it waits for anything.
    pub awaits: Option<Awaits>,
    /// When it departs because of `--wait`, unless it has led before.
    pub departs_at: Option<Time>,
    /// The other candidates, by their hellos of the last 75 s; at most 1,000. The leader is not among them.
    pub standbys: Vec<OtherCandidate>,
    /// What was read since the node began to listen.
    pub counts: Counts,
    /// The node goes for good, once nothing is held.
    pub is_leaving: bool,
}
