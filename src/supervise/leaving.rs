//! The end of a candidate: what is still waited for, and for how long.

use std::time::Duration;

use neli::clock;
use neli_proto::node::Event;

use super::Run;
use crate::process::ready::Ready;
use crate::process::signals::Signals;
use crate::process::timer::Timer;

/// How long the end waits for a member that leaves. Half of it is what that may take; a hung library holds up nobody.
const LEAVING_TAKES: Duration = Duration::from_secs(1);

/// The same for the guard's end, so that whoever adopts our children has nobody to wait for.
const GUARD_TAKES: Duration = Duration::from_millis(200);

impl Run {
    /// Leaves the group for real: a member that just goes would hold up the others for a session. And waits for hooks.
    pub(super) async fn leave(&mut self, signals: &Signals, signals_ready: &Ready, timer: &mut Timer) {
        self.reader = None;
        // Of what could not be killed.
        self.session.terminal.take_back();
        self.leave_group(self.node.is_alone(clock::now()));
        self.node.handle(clock::now(), Event::Exiting);
        let left_by = clock::now() + LEAVING_TAKES;
        // One that owes a release waits for our death.
        let guard_ends_by = (!self.guard.owes_release()).then(|| clock::now() + GUARD_TAKES);
        if guard_ends_by.is_some() {
            self.guard.close();
        }
        loop {
            let guard_ends_by = guard_ends_by.filter(|by| !self.guard.was_waited_for() && clock::now() < *by);
            if clock::now() >= left_by {
                self.members.stop_waiting();
            }
            self.perform();
            if !self.members.are_leaving() && !self.node.has_running_hooks() && guard_ends_by.is_none() {
                return;
            }
            self.report();
            let left_by = self.members.are_leaving().then_some(left_by);
            let timeouts = [left_by, guard_ends_by, self.node.poll_timeout(), self.report.notifier.poll_timeout()];
            timer.set(timeouts.into_iter().flatten().min());
            tokio::select! {
                Some(said) = self.said.recv(), if self.members.are_leaving() => self.hear_group(said),
                () = signals_ready.wait() => self.take_last_signals(signals),
                () = timer.due() => self.node.handle_timeout(clock::now()),
            }
        }
    }
}
