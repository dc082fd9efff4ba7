//! The end of a candidate: what is still waited for, and for how long.

use std::time::Duration;

use neli::program::clock;
use neli_proto::node::Event;

use super::MainLoop;
use crate::process::ready::Ready;
use crate::process::signals::Signals;
use crate::process::timer::Timer;

/// How long the end waits for a member that leaves. Half of it is what that may take; a hung library holds up nobody.
const LEAVING_TAKES: Duration = Duration::from_secs(1);

/// The same for the guard's end, so that whoever adopts our children has nobody to wait for.
const GUARD_TAKES: Duration = Duration::from_millis(200);

impl MainLoop {
    /// Leaves the group for real: a member that just goes would hold up the others for a session. And waits for hooks.
    pub(super) async fn leave(&mut self, signals: &Signals, signals_ready: &Ready, timer: &mut Timer) {
        self.kafka.session.stop_reading();
        // Of what could not be killed.
        self.session.terminal.take_back();
        self.kafka.session.leave_group_for_good(self.role.node.is_alone(clock::now()));
        self.role.node.handle(clock::now(), Event::Exiting);
        let left_by = clock::now() + LEAVING_TAKES;
        // One that owes a release waits for our death.
        let guard_ends_by = (!self.role.job.guard.owes_release()).then(|| clock::now() + GUARD_TAKES);
        if guard_ends_by.is_some() {
            self.role.job.guard.close();
        }
        loop {
            let guard_ends_by = guard_ends_by.filter(|by| !self.role.job.guard.was_waited_for() && clock::now() < *by);
            if clock::now() >= left_by {
                self.kafka.session.stop_waiting_for_group();
            }
            self.perform();
            if !self.kafka.session.is_leaving_group() && !self.role.node.has_running_hooks() && guard_ends_by.is_none()
            {
                return;
            }
            self.report();
            let is_leaving = self.kafka.session.is_leaving_group();
            let left_by = is_leaving.then_some(left_by);
            let timeouts =
                [left_by, guard_ends_by, self.role.node.poll_timeout(), self.service_status.notifier.poll_timeout()];
            timer.set(timeouts.into_iter().flatten().min());
            tokio::select! {
                () = self.kafka.session.wait(), if is_leaving => self.handle_session_events(),
                () = signals_ready.wait() => self.handle_last_signals(signals),
                () = timer.due() => self.role.node.handle_timeout(clock::now()),
            }
        }
    }
}
