//! The guard's view of its supervisor: the known state of that process, and the consequences of its death.

use super::Guard;
use super::action::Action;
use crate::time::Time;

/// The known state of the supervisor's process.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum SupervisorLife {
    /// Its end of the socket is open, and it is not known to be dead.
    Open,
    /// Its end of the socket is closed, and it is not known to be dead.
    Closed,
    /// It is dead, and some of its orders may be unread.
    DeadUnread,
    /// It is dead, and all its orders were read.
    Dead,
}

impl SupervisorLife {
    /// Whether it can't give orders any more, or will soon be unable to.
    pub(super) fn has_gone(self) -> bool {
        self != Self::Open
    }

    pub(super) const fn is_known_dead(self) -> bool {
        matches!(self, Self::DeadUnread | Self::Dead)
    }

    /// Notes that everything it has sent was read. If the supervisor was dead before, no more orders follow.
    pub(super) fn all_was_read(&mut self) {
        if *self == Self::DeadUnread {
            *self = Self::Dead;
        }
    }
}

impl Guard {
    pub(super) fn socket_closed(&mut self, now: Time) {
        self.supervisor.all_was_read();
        if self.supervisor == SupervisorLife::Open {
            self.supervisor = SupervisorLife::Closed;
            self.lose_supervisor(now);
        }
    }

    pub(super) fn supervisor_died(&mut self, now: Time) {
        let before = self.supervisor;
        self.supervisor = match before {
            SupervisorLife::Open => SupervisorLife::DeadUnread,
            SupervisorLife::Closed => SupervisorLife::Dead,
            SupervisorLife::DeadUnread | SupervisorLife::Dead => return,
        };
        if before == SupervisorLife::Open {
            self.lose_supervisor(now);
        }
    }

    /// Ends the term and kills the job, because no job may run without a supervisor.
    fn lose_supervisor(&mut self, now: Time) {
        // The terminal comes first, because the calling shell continues at once and may read from it.
        self.actions.push_back(Action::TakeBack);
        self.end_term(now);
    }

    /// Ends the guard when the supervisor is gone and no process of the job is left. If the supervisor is known to be dead and could not
    /// release the term, the guard releases it. Unread orders may contain a term, or the report that it was released.
    pub(super) fn end_if_done(&mut self) {
        let can_order_more = matches!(self.supervisor, SupervisorLife::Open | SupervisorLife::DeadUnread);
        if self.is_over || can_order_more || self.run.is_some() {
            return;
        }
        let last = match self.tenure.and_then(|tenure| tenure.unreleased()) {
            None => Action::End,
            Some(grant) if self.supervisor == SupervisorLife::Dead => {
                let late = self.tenure.and_then(|tenure| tenure.overrun(self.kill_margin));
                Action::Release { grant, late }
            }
            // A closed socket is a reason to kill, not to release (R6).
            Some(_) => return,
        };
        self.is_over = true;
        if self.supervisor.is_known_dead() {
            self.actions.push_back(Action::RemoveCgroup);
        }
        self.actions.push_back(last);
    }
}
