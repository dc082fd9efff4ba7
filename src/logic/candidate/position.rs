//! What a candidate is, for whoever looks at it from outside.

use super::super::candidacy::{Note, Position};
use super::{Candidate, Role};

impl Candidate {
    /// What it is in the election, now. Of standing by it says what was noted last, so that nobody is told two things.
    #[must_use]
    pub fn position(&self) -> Position {
        match &self.role {
            Role::Claiming { .. } => Position::Claiming,
            Role::Departed => Position::Departed,
            Role::Suspended => Position::Suspended,
            Role::Fenced { term, .. } => Position::Fenced { term: *term },
            Role::Leading(lead) => Position::Leading { term: lead.term, job: lead.job, stopping: lead.stopping },
            Role::Releasing(releasing) => Position::Releasing { term: releasing.term },
            Role::Standby { .. } if !self.listener.is_caught_up() => Position::Listening,
            Role::Standby { .. } => {
                let (leader, term, why) = if let Some(Note::Standby { leader, term, why }) = &self.noted {
                    (leader.clone(), *term, *why)
                } else {
                    (None, None, None)
                };
                Position::Standby { leader, term, why }
            }
        }
    }

    /// Whether it goes for good, once nothing is held.
    #[must_use]
    pub const fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }
}
