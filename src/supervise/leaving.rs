//! The end of a candidate: which events it waits for, and how long.

use std::time::Duration;

use neli_kafka::{EVENTS_TOGETHER, Host, SessionEvent, clock};
use nix::sys::signalfd::SignalFd;

use crate::process::ready::{Ready, Timer};
use crate::supervise::MainLoop;
use crate::supervise::facts::KeyFacts;

/// How long the exit waits for the member to leave the group. Leaving may take half of this; a library that hangs delays the exit no
/// longer.
const LEAVING_TAKES: Duration = Duration::from_secs(1);

/// How long the exit waits for the guard's exit, so that the process that adopts our children does not have to wait for the guard.
const GUARD_TAKES: Duration = Duration::from_millis(200);

impl MainLoop {
    /// Leaves the group in order, because the group would wait for a whole session for a member that only ends. Also waits for hooks.
    pub(super) async fn leave(&mut self, signals: &SignalFd, signals_ready: &Ready, timer: &mut Timer) {
        self.nodes.session.stop_reading();
        self.nodes.roles.iter_mut().filter_map(|role| role.facts.as_mut()).for_each(KeyFacts::stop_reading);
        // Processes that could not be killed may still have the terminal.
        self.shell.terminal.take_back();
        let now = clock::now();
        self.nodes.leave_group_for_good(now);
        for role in 0..self.nodes.roles.len() {
            self.exit_role(role);
        }
        self.nodes.say_last_hello();
        let left_by = clock::now() + LEAVING_TAKES;
        let guards_end_by = clock::now() + GUARD_TAKES;
        loop {
            let guards_end_by = (self.has_closed_guards() && clock::now() < guards_end_by).then_some(guards_end_by);
            if clock::now() >= left_by {
                self.nodes.session.stop_waiting_for_group();
            }
            self.perform();
            let is_leaving = self.nodes.session.is_leaving_group();
            let last_hello_by = self.nodes.session.awaits_last_hello_until();
            let has_hooks = self.nodes.roles.iter().any(|role| role.node.has_running_hooks());
            if !is_leaving && !has_hooks && guards_end_by.is_none() && last_hello_by.is_none() {
                return;
            }
            self.report();
            self.publish();
            let left_by = is_leaving.then_some(left_by);
            let of_nodes = self.nodes.roles.iter().filter_map(|role| role.node.poll_timeout()).min();
            let timeouts =
                [left_by, guards_end_by, last_hello_by, of_nodes, self.service_status.notifier.poll_timeout()];
            timer.set(timeouts.into_iter().flatten().min());
            tokio::select! {
                () = self.nodes.session.wait(), if is_leaving || last_hello_by.is_some() => self.handle_last_session_events(),
                () = signals_ready.wait() => self.handle_last_signals(signals),
                () = timer.due() => self.handle_last_timeouts(),
            }
        }
    }

    /// Whether a guard that was told to exit has not ended yet.
    fn has_closed_guards(&self) -> bool {
        let mut jobs = self.nodes.roles.iter().filter_map(|role| role.job.as_ref());
        jobs.any(|job| !job.guard.owes_release() && !job.guard.is_dead())
    }

    fn handle_last_timeouts(&mut self) {
        let now = clock::now();
        for role in 0..self.nodes.roles.len() {
            self.nodes.roles[role].node.handle_timeout(now);
            self.nodes.touch(role);
        }
    }

    /// Handles the last events of the session, because a process that exits runs the loop no more. Records may come without end, but the exit
    /// waits for a limited time.
    fn handle_last_session_events(&mut self) {
        for _ in 0..EVENTS_TOGETHER {
            let Some(event) = self.nodes.session.poll() else { return };
            if let SessionEvent::Warning(message) = event {
                self.logger.warn(message);
            }
        }
    }
}
