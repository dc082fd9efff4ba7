//! A guard that is started late: after the claim, or in the middle of the term.

use neli_proto::guard::Order;
use neli_proto::supervisor::{Action, Event};
use neli_proto::time::Time;

use super::{Actions, Machine};
use crate::setup::Setup;
use crate::world::Breach;

/// Whether a machine's guard has been started.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) enum GuardStart {
    /// No guard is needed.
    #[default]
    Unneeded,
    /// It waits to be started.
    Waits,
    /// It was started, and may have ended since.
    Begun,
}

impl GuardStart {
    /// The state of a machine that begins.
    pub(super) const fn of(setup: &Setup) -> Self {
        if setup.guards_start_late { Self::Unneeded } else { Self::Begun }
    }
}

impl Machine {
    /// Notes that a guard must be started at some time.
    pub(super) fn need_guard(&mut self) {
        if self.guard_start == GuardStart::Unneeded {
            self.guard_start = GuardStart::Waits;
        }
    }

    /// Starts the guard, and checks the deadline that it is given.
    pub(crate) fn start_guard(&mut self, now: Time, setup: &Setup, actions: &mut Actions) {
        (self.guard_start, self.guard) = (GuardStart::Begun, self.guard.anew());
        let deadline = self.node.status(now).lease_end.map(|end| end - self.guard.kill_margin());
        self.hear_of_job(now, Event::HasGuard(true));
        while let Some(action) = self.node.poll_action() {
            if let Action::Order(Order::Lease(grant) | Order::Spawn { grant, .. }) = &action {
                if now >= grant.until {
                    actions.breach = Some(Breach::StartedLate);
                } else if deadline.is_none_or(|deadline| grant.until < deadline) {
                    actions.breach = Some(Breach::DeadlineMovedBack);
                }
            }
            self.perform_one(now, action, setup, actions);
        }
        self.perform(now, setup, actions);
    }
}
