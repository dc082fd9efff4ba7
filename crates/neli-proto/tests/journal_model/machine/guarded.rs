//! A machine and its guard: orders, answers, and deaths.

use std::time::Duration;

use neli_proto::guard::{CommandKind, Order};
use neli_proto::supervisor::Event;
use neli_proto::time::Time;

use super::{Actions, GuardStart, Machine};
use crate::flaws::{WorldFlaw, is_flawed};
use crate::guard::{GuardOutput, Life};
use crate::setup::Setup;
use crate::world::Breach;

impl Machine {
    /// Handles that the guard has died and was waited for. Its answers are read first.
    pub(crate) fn guard_died(&mut self, now: Time, setup: &Setup, actions: &mut Actions) {
        while let Some(answer) = self.answers.take_first() {
            self.answered(now, answer);
        }
        self.guard.life = Life::Dead;
        if is_flawed(WorldFlaw::ReleaseAtGuardsEnd) {
            self.guard.job = None;
        }
        self.hear_of_job(now, Event::GuardDied);
        self.perform(now, setup, actions);
    }

    pub(super) fn order(&mut self, now: Time, order: Order, setup: &Setup, actions: &mut Actions) {
        // In this model a command is not part of the job's tree, and ends at a step of the model.
        if let Order::Command { kind, id, .. } = order {
            return match kind {
                CommandKind::Health => self.check = Some(id),
                CommandKind::Lead => self.hooks.push(id),
            };
        }
        if self.guard_start != GuardStart::Begun {
            if let Order::Over { .. } = order {
                self.guard_start = GuardStart::Unneeded;
            }
            return;
        }
        let by_hand = is_flawed(WorldFlaw::SupervisorSpawns) && matches!(order, Order::Spawn { .. });
        if self.guard.life == Life::Awake && self.guard.orders.is_empty() && !setup.slow_pipe && !by_hand {
            let output = self.guard.obey(now, order);
            self.take_output(output, actions);
        } else if matches!(self.guard.life, Life::Awake | Life::Asleep) {
            self.guard.orders.push_back(order);
        }
    }

    /// Lets the guard read an order.
    pub(crate) fn guard_reads(&mut self, now: Time, setup: &Setup, actions: &mut Actions) {
        let Some(order) = self.guard.orders.pop_front() else { return };
        actions.logged.push(format!("its guard reads {order:?}"));
        let output = self.guard.obey(now, order);
        self.take_output(output, actions);
        self.perform_if_awake(now, setup, actions);
    }

    /// Lets the guard handle what is due, or notice that its supervisor or a child has ended.
    pub(crate) fn guard_acts(&mut self, now: Time, setup: &Setup, actions: &mut Actions) {
        let output = if self.life == Life::Dead { self.guard.outlive_supervisor(now) } else { self.guard.act(now) };
        if self.life != Life::Dead && self.guard.due(Duration::ZERO).is_some_and(|due| due <= now) {
            actions.breach = Some(Breach::BusyLoop);
        }
        self.take_output(output, actions);
        self.perform_if_awake(now, setup, actions);
    }

    /// Handles that a process of the job has ended.
    pub(crate) fn job_changed(&mut self, now: Time, setup: &Setup, actions: &mut Actions) {
        if self.guard.life == Life::Awake {
            let output = self.guard.notice(now);
            self.take_output(output, actions);
        }
        self.perform_if_awake(now, setup, actions);
    }

    fn take_output(&mut self, output: GuardOutput, actions: &mut Actions) {
        for answer in output.answers {
            self.answers.put(answer, None);
        }
        if output.release.is_some() {
            actions.released = output.release;
            if !self.guard.orders.is_empty() {
                actions.breach = Some(Breach::ReleasedUnread);
            }
        }
    }

    /// Stops the supervisor. Then only the lease ends a job that runs at the same time as its successor's.
    pub(crate) fn pause(&mut self) {
        (self.life, self.overlapped_until) = (Life::Asleep, None);
    }

    /// Stops the guard, with the same effect.
    pub(crate) fn pause_guard(&mut self) {
        (self.guard.life, self.overlapped_until) = (Life::Asleep, None);
    }

    /// Sends SIGKILL to the guard.
    pub(crate) fn kill_guard(&mut self, now: Time) {
        self.guard.be_killed();
        if is_flawed(WorldFlaw::ReleaseAtGuardsEnd) {
            self.hear_of_job(now, Event::GuardDied);
        }
    }
}
