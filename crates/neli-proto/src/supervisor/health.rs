//! The health checks of the job, which run only while its main process runs and is not being stopped.

use super::{Job, Supervisor};
use crate::command::CommandEnd;
use crate::guard::{CommandKind, Order};
use crate::health::{Action as HealthAction, Event};
use crate::note::Note;
use crate::time::Time;
use alloc::boxed::Box;

impl Supervisor {
    pub(super) fn health_due(&self) -> Option<Time> {
        self.health.as_ref()?.poll_timeout()
    }

    pub(super) fn health_ended(&mut self, now: Time, id: u32, end: CommandEnd, last_line: Box<str>) {
        if let Some(health) = &mut self.health {
            health.handle(now, Event::Ended { id, end, last_line });
        }
    }

    /// Begins or ends the checks. Must be called after every event that may have changed the job's state.
    pub(super) fn look_after_health(&mut self, now: Time) {
        let Some(mut health) = self.health.take() else { return };
        let runs = match self.job {
            Job::Running { .. } => true,
            Job::Held { .. }
            | Job::None
            | Job::Ordered
            | Job::Orphaned
            | Job::Restarting { .. }
            | Job::Stopping { .. } => false,
        };
        match (runs, health.has_run()) {
            (true, false) => health.handle(now, Event::RunBegan),
            (false, true) => health.handle(now, Event::RunOver),
            (true, true) | (false, false) => {}
        }
        health.handle_timeout(now);
        while let Some(action) = health.poll_action() {
            match action {
                HealthAction::NoteFailure(failure) => {
                    self.note(Note::HealthFailed { failure, most: health.most_failures() });
                }
                HealthAction::Run { id, kill_at } => {
                    self.order(Order::Command { kind: CommandKind::Health, id, kill_at });
                }
                HealthAction::StandDown(failure) => self.note(Note::Unhealthy { term: self.noted_term(), failure }),
            }
        }
        self.health = Some(health);
    }
}
