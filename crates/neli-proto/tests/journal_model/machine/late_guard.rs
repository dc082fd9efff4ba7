//! A guard that is started late. Until then the program's own code stores its orders and answers them.

use std::mem;

use neli_proto::guard::{Answer, AwaitedGuard, Grant, Order};
use neli_proto::time::Time;

use super::{Actions, Machine};
use crate::guard::Life;
use crate::setup::Setup;
use crate::world::Breach;

/// Whether a machine's guard has been started.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) enum GuardStart {
    /// No guard is needed.
    #[default]
    Unneeded,
    /// It waits to be started.
    Waits(LateGuard),
    /// It was started, and may have ended since.
    Begun,
}

/// A guard that waits to be started.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct LateGuard {
    awaited: AwaitedGuard,
    /// The deadline in the last answer to the supervisor.
    promised: Option<Time>,
}

impl GuardStart {
    /// The state of a machine that begins.
    pub(super) const fn of(setup: &Setup) -> Self {
        if setup.guards_start_late { Self::Unneeded } else { Self::Begun }
    }

    /// The deadline of the job whose guard waits.
    pub(crate) fn deadline(&self) -> Option<Time> {
        match self {
            Self::Waits(guard) => guard.promised,
            Self::Begun | Self::Unneeded => None,
        }
    }

    pub(crate) const fn waits(&self) -> bool {
        matches!(self, Self::Waits(_))
    }
}

impl Machine {
    /// Notes that a guard must be started at some time.
    pub(super) fn need_guard(&mut self) {
        if matches!(self.guard_start, GuardStart::Unneeded) {
            self.guard_start = GuardStart::Waits(LateGuard::default());
        }
    }

    /// Stores an order for a guard that waits; returns whether a guard waits.
    pub(super) fn put_off(&mut self, now: Time, order: &Order, actions: &mut Actions) -> bool {
        if let Order::Spawn { .. } = order {
            self.need_guard();
        }
        let GuardStart::Waits(guard) = &mut self.guard_start else { return false };
        let answer = guard.awaited.put(order);
        self.follow_wait(now, answer, actions);
        true
    }

    /// Starts the guard, unless it is too late.
    pub(crate) fn start_guard(&mut self, now: Time, setup: &Setup, actions: &mut Actions) {
        if let GuardStart::Waits(guard) = &mut self.guard_start {
            let answer = guard.awaited.turn(now);
            self.follow_wait(now, answer, actions);
        }
        if let GuardStart::Waits(LateGuard { awaited, promised }) = mem::take(&mut self.guard_start) {
            (self.guard_start, self.guard) = (GuardStart::Begun, self.guard.anew());
            let orders: Vec<Order> = awaited.into_orders().collect();
            let granted = orders.iter().filter_map(grant_of).next_back().map(|grant| grant.until);
            if granted.is_some_and(|until| now >= until) {
                actions.breach = Some(Breach::StartedLate);
            } else if granted < promised {
                actions.breach = Some(Breach::DeadlineMovedBack);
            }
            for order in orders {
                self.order(now, order, setup, actions);
            }
        }
        self.perform(now, setup, actions);
    }

    /// Drops this state, which is in the memory of a dead supervisor.
    pub(super) fn forget_late_guard(&mut self) {
        if self.guard_start.waits() {
            self.guard_start = GuardStart::Unneeded;
            self.guard.life = Life::Dead;
        }
    }

    fn follow_wait(&mut self, now: Time, answer: Option<Answer>, actions: &mut Actions) {
        if matches!(&self.guard_start, GuardStart::Waits(guard) if guard.awaited.is_over()) {
            self.guard_start = GuardStart::Unneeded;
        }
        let Some(answer) = answer else { return };
        if let GuardStart::Waits(guard) = &mut self.guard_start
            && let Answer::Accepted { until } | Answer::Extended { until } = answer
        {
            guard.promised = Some(until);
        }
        actions.logged.push(format!("the program answers in place of its guard: {answer:?}"));
        self.answered(now, answer);
    }
}

const fn grant_of(order: &Order) -> Option<Grant> {
    match order {
        Order::Lease(grant) | Order::Spawn { grant, .. } => Some(*grant),
        Order::Command { .. }
        | Order::HandOn
        | Order::Kill
        | Order::Over { .. }
        | Order::Released { .. }
        | Order::Signal { .. }
        | Order::Stop { .. }
        | Order::TakeBack => None,
    }
}
