//! The actions of a candidate.

use alloc::boxed::Box;
use core::time::Duration;

use crate::guard::Grant;
use crate::kafka::Request;
use crate::note::{Loss, Note};
use crate::record::Why;
use crate::supervisor::Departure;

/// An action that the candidate's owner must perform.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// Exit: no term is held, and no claim is in flight.
    Depart(Departure),
    /// Tell the guard the new end of the lease.
    Extend(Grant),
    /// Do this in Kafka.
    Kafka(Request),
    /// Kill the job at once, also before the lease's end.
    Kill(Loss),
    /// The job may run until the end of this grant.
    Lead(Grant),
    /// Terms start from 0 again: the guard must forget the terms that it held (R5).
    ForgetTerms,
    /// Tell users; of some notes also the guard and the hooks.
    Note(Note),
    /// Exit for good: another candidate of this election uses `--overlap` and this one does not, or the other way round.
    Refuse {
        /// The reason, in one line.
        why: Box<str>,
    },
    /// Begin the barrier: stop the job, and report when no process of it is left. Beats continue.
    StopJob(Why),
    /// Begin the barrier with a time limit. No more beats are sent.
    StopJobWithin {
        /// The reason.
        why: Why,
        /// SIGKILL follows after this time, or after the stop timeout if that is shorter.
        within: Duration,
    },
    /// Stop the process once it has left the group: no term is held, no claim is in flight, and none will be until
    /// [`LocalEvent::Continued`](super::LocalEvent::Continued).
    Suspend,
}
