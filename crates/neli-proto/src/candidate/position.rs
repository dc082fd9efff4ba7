//! What a candidate is, for whoever looks at it from outside.

use super::super::candidacy::Position;
use super::super::journal::View;
use super::super::time::Time;
use super::{Candidate, Role};

impl Candidate {
    /// What it is in the election, now. Of standing by it says what was said last, so that nobody is told two things.
    #[must_use]
    pub fn position(&self) -> Position {
        match &self.role {
            Role::AwaitingJudgement { .. } | Role::Claiming { .. } => Position::Claiming,
            Role::Departed => Position::Departed,
            Role::Suspended => Position::Suspended,
            Role::Fenced { term, .. } => Position::Fenced { term: *term },
            Role::Leading(lead) => Position::Leading { term: lead.term, job: lead.job, stopping: lead.stopping },
            Role::Releasing(releasing) => Position::Releasing { term: releasing.term },
            Role::Standby { .. } if !self.listener.is_caught_up() => Position::Listening,
            Role::Standby { .. } => Position::Standby(self.standing_by.clone()),
        }
    }

    /// Whether everything was read, and no other candidate is known: by its hello, or as the leader.
    #[must_use]
    pub fn is_alone(&self, now: Time) -> bool {
        let another_leads = match self.listener.journal().view() {
            View::Led(term) => term.member.as_ref() != Some(&self.identity.member),
            View::NeverLed | View::Released { .. } => false,
            View::Undecided(_) => true,
        };
        self.listener.is_caught_up() && !another_leads && self.precedence.standbys(now) == 0
    }

    /// Whether it holds a term in a topic that is not judged yet: nothing runs, and whoever goes owes the release.
    #[must_use]
    pub const fn holds_unjudged(&self) -> bool {
        matches!(self.role, Role::AwaitingJudgement { .. })
    }

    /// Whether a claim or a release is on its way, or a term is held in a topic that is not judged yet.
    #[must_use]
    pub const fn has_claimed(&self) -> bool {
        matches!(self.role, Role::AwaitingJudgement { .. } | Role::Claiming { .. } | Role::Releasing(_))
    }

    /// Whether it goes for good, once nothing is held.
    #[must_use]
    pub const fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }
}
