//! The messages to users about all roles of a process.

use neli_proto::time::Time;
use neli_proto::topic::Risk;

use crate::text::ClientError;

/// A message for users about all roles.
#[derive(Debug)]
pub enum Report {
    /// A hello could not be handed over: the queue is full, or the hello too large.
    HelloNotSent {
        /// One line.
        error: ClientError,
    },
    /// The topic may carry a role's election, with these risks.
    Risks {
        /// The role's index in the list.
        at: usize,
        /// The risks, at least one.
        risks: Vec<Risk>,
    },
    /// Another candidate of this group stands for other roles.
    SharesNoRole {
        /// The other candidate and its roles, in one line.
        warning: Box<str>,
    },
    /// Nothing is claimed before `until`, unless the other candidate is known to have gone by then.
    Wait {
        /// One line about the other candidate, which maps a role to another partition and may have gone.
        why: Box<str>,
        /// The time.
        until: Time,
    },
}
