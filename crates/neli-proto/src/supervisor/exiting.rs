//! The exit status: of several causes, the first one that applies (docs/options.md, Exit statuses).

use super::signals::SIGKILL;
use super::{Killed, Stop, Supervisor};
use crate::record::Why;
use crate::supervisor::{Action, Departure, Ending, JobStatus, Lost, OnLoss};

impl Supervisor {
    /// Handles that the candidate exits.
    pub fn exit(&mut self, departure: Departure) {
        let ending = match (departure, self.stop) {
            (Departure::Ended, _) => Ending::Ended,
            (Departure::Left | Departure::WaitedEnough, Some(stop)) => self.stopped(stop),
            (Departure::WaitedEnough, None) => Ending::WaitedEnough,
            (Departure::Left, None) => self.left(),
        };
        let ending = self.die_of_the_terminals_signal(ending);
        self.actions.push_back(Action::Exit(ending));
    }

    /// The status of the run that was alive when the signal came, or of the last one if it came between two.
    fn stopped(&self, stop: Stop) -> Ending {
        // The main process's own end takes precedence, since perhaps only processes that it had left were killed. A dead guard reports no
        // status.
        let was_killed = self.run.started && self.run.killed != Killed::No;
        let status = self.run.status.or(was_killed.then_some(JobStatus::Signaled(SIGKILL)));
        status.filter(|_| stop.amid_runs).map_or(Ending::StoppedBy(stop.signal), Ending::Job)
    }

    /// The signal that has stopped this process.
    pub(crate) fn signal_of_stop(&self) -> Option<i32> {
        self.stop.map(|stop| stop.signal)
    }

    fn left(&self) -> Ending {
        match self.over.map(|over| over.why) {
            Some(why) if is_loss(why) => Ending::Lost(match self.run.killed {
                Killed::ForLoss if self.run.started => Lost::Fenced,
                Killed::InBarrier if self.run.started => Lost::Killed,
                Killed::ForLoss | Killed::InBarrier | Killed::No => Lost::Stopped,
            }),
            Some(Why::RestartLimit) => Ending::RestartLimit,
            Some(_) | None => self.run.status.map_or(Ending::Ended, Ending::Job),
        }
    }

    /// Whether this candidate exits when a term ends for this reason.
    pub(super) fn leaves_after(&self, why: Why) -> bool {
        let by_itself = matches!(why, Why::Exited | Why::RestartLimit);
        self.stop.is_some() || by_itself || (is_loss(why) && self.policy.on_loss == OnLoss::Exit)
    }
}

/// Whether the lead was lost: another candidate took it over, it was given up for another candidate, or the lease ran out.
const fn is_loss(why: Why) -> bool {
    match why {
        Why::FactsUnavailable | Why::Fenced | Why::GuardDied | Why::Resigned | Why::Revoked | Why::Unhealthy => true,
        Why::Departed
        | Why::Ended
        | Why::Exited
        | Why::Failed
        | Why::Left
        | Why::Refused
        | Why::RestartLimit
        | Why::ClaimExpired
        | Why::Skipped
        | Why::Stopped
        | Why::SupervisorDied
        | Why::Spread
        | Why::Suspended => false,
    }
}
