//! The actions of a candidate.

use alloc::boxed::Box;

use crate::note::Note;
use crate::record::{Offset, Record};
use crate::supervisor::Departure;

/// An action that the candidate's owner must perform. What it wants of the job is no action but a state: [`Candidate::wants`](super::Candidate::wants).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// Exit: no term is held, and no claim is in flight.
    Depart(Departure),
    /// Ask for the topic's id until there is an answer ([`Event::TopicIdentified`](super::Event::TopicIdentified)).
    Identify,
    /// Join the group, if the elector is `group`.
    JoinGroup,
    /// Leave the group.
    LeaveGroup,
    /// Ask soon for the log's end ([`Event::Answered`](super::Event::Answered)).
    LookForEnd,
    /// Terms start from 0 again: the guard must forget the terms that it held (R5).
    ForgetTerms,
    /// Tell users; of some notes also the guard and the hooks.
    Note(Note),
    /// R1: start a new reader, ask it for the end offset, and drop the previous reader.
    ReadAnew,
    /// Read from this offset, which is in the log.
    ReadFrom(Offset),
    /// Exit for good: another candidate of this election uses `--overlap` and this one does not, or the other way round.
    Refuse {
        /// The reason, in one line.
        why: Box<str>,
    },
    /// Create a new producer, and drop the previous one.
    RenewProducer,
    /// Hand this record to the producer. Its send time is the time of the input that caused it (R3).
    Send {
        /// The record. Its key is the election's, or for a hello the hello's key.
        record: Record,
    },
    /// Stop the process once it has left the group: no term is held, no claim is in flight, and none will be before the process continues.
    Suspend,
}
