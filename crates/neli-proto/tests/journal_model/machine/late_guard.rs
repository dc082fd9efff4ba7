//! A guard that is started late: after the claim, or in the middle of the term.

use neli_proto::supervisor::Event;
use neli_proto::time::Time;

use super::{Actions, Machine};
use crate::setup::Setup;

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

    /// Starts the guard.
    pub(crate) fn start_guard(&mut self, now: Time, setup: &Setup, actions: &mut Actions) {
        (self.guard_start, self.guard) = (GuardStart::Begun, self.guard.anew());
        self.hear_of_job(now, Event::HasGuard(true));
        self.perform(now, setup, actions);
    }
}
