//! The actions of a candidate.

use alloc::boxed::Box;

use crate::kafka::Request;
use crate::note::Note;
use crate::supervisor::Departure;

/// An action that the candidate's owner must perform. What it wants of the job is no action but a state: [`Candidate::wants`](super::Candidate::wants).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// Exit: no term is held, and no claim is in flight.
    Depart(Departure),
    /// Do this in Kafka.
    Kafka(Request),
    /// Terms start from 0 again: the guard must forget the terms that it held (R5).
    ForgetTerms,
    /// Tell users; of some notes also the guard and the hooks.
    Note(Note),
    /// Exit for good: another candidate of this election uses `--overlap` and this one does not, or the other way round.
    Refuse {
        /// The reason, in one line.
        why: Box<str>,
    },
    /// Stop the process once it has left the group: no term is held, no claim is in flight, and none will be before the process continues.
    Suspend,
}
