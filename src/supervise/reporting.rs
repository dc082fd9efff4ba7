//! The main loop's reports to the service manager: the candidate's state, and whether Kafka answers.

use std::time::Duration;

use neli_kafka::clock;
use neli_proto::hooks;
use neli_proto::leadership::ReadAt;
use neli_proto::time::Time;

use crate::config::Config;
use crate::report::election::{Trouble, of_next_window, of_roles, of_status, of_trouble};
use crate::report::notify::Notifier;
use crate::supervise::MainLoop;

impl MainLoop {
    /// Reports changes, and sends the messages that are due. It is called once a turn, so that a loop that hangs sends no watchdog message.
    pub(super) fn report(&mut self) {
        if !self.service_status.notifier.has_receiver() {
            return;
        }
        let now = clock::now();
        let trouble = self.kafka.trouble();
        self.service_status.silent_at = None;
        let (doing, is_leaving) = match self.nodes.roles.as_slice() {
            [role] => {
                let status = role.node.status(now);
                let next = of_next_window(role.node.next_window_ms());
                let at = ReadAt { now, wall_ms: clock::wall_ms() };
                let current = status.leadership(at, self.kafka.outage.trouble().is_none());
                self.service_status.silent_at = current.changes_in().map(|left| now + left);
                (format!("{}{next}", of_status(&status, current, at.wall_ms)), status.is_leaving)
            }
            roles => {
                let led = roles.iter().filter(|role| role.node.leads().is_some()).map(|role| role.election.label());
                (of_roles(&led.collect::<Vec<_>>(), roles.len()), roles.iter().all(|role| role.node.is_leaving()))
            }
        };
        let current = Some((doing, trouble));
        if self.service_status.reported != current
            && let Some((doing, trouble)) = &current
        {
            let trouble = trouble.as_ref();
            let trouble = trouble.map(|(since, trouble)| of_trouble(now.since(*since), trouble, clock::wall_ms()));
            self.service_status.notifier.status(&format!("{doing}{}", trouble.unwrap_or_default()));
            self.service_status.reported = current;
        }
        self.service_status.notifier.ready(now);
        if self.ending.is_some() || is_leaving {
            self.service_status.notifier.stopping(now, now + longest_stop(&self.config));
        }
        self.service_status.notifier.tell(now);
    }
}

/// The longest time of a stop. It includes: with `--overlap`, a lease in which another candidate may claim; the barrier, or the wait for a
/// claim in flight; a lease for processes that SIGKILL does not end at once; a lease for the release's delivery; the time limit of the hook
/// at exit; and the time for leaving the group and writing the last line of the log.
fn longest_stop(config: &Config) -> Duration {
    let has_hook = config.commands.on_exit.is_some() || config.commands.on_standby.is_some();
    let hook = if has_hook { hooks::LIMIT } else { Duration::ZERO };
    let lease = config.timings.lease();
    let yields = config.timings.overlap().map_or(Duration::ZERO, |_| lease);
    yields + config.stop_timeout.max(lease) + 2 * lease + hook + Duration::from_secs(1)
}

/// The connection to the service manager, and the last report.
pub(super) struct ServiceStatus {
    pub(super) notifier: Notifier,
    pub(super) reported: Option<(String, Option<(Time, Trouble)>)>,
    /// When the leader will have missed three heartbeats, or its lease will be over, which the report must say.
    pub(super) silent_at: Option<Time>,
}

impl ServiceStatus {
    /// A connection over which nothing was reported yet.
    pub(super) const fn to(notifier: Notifier) -> Self {
        Self { notifier, reported: None, silent_at: None }
    }

    /// When the next report is due, unless something changes before.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        [self.notifier.poll_timeout(), self.silent_at].into_iter().flatten().min()
    }
}
