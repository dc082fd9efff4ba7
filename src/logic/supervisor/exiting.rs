//! With which status to end: several causes, the first that applies (interface.md, Exit status).

use super::super::candidacy::Departure;
use super::super::supervision::{Action, Ending, JobStatus};
use super::{Stop, Supervisor};

impl Supervisor {
    pub(super) fn exit(&mut self, departure: Departure) {
        const KILLED: JobStatus = JobStatus::Signaled(9);
        // What the main process itself ended with comes first: only what it left may have been killed. A guard that
        // died tells no status.
        let own = self.last_status.or(self.killed.then_some(KILLED));
        let ending = match (departure, self.stop) {
            (Departure::Ended, _) => Ending::Ended,
            (_, Some(Stop { run_alive: true, signal, .. })) => own.map_or(Ending::StoppedBy(signal), Ending::Job),
            (_, Some(Stop { signal, .. })) => Ending::StoppedBy(signal),
            (Departure::WaitedEnough, None) => Ending::WaitedEnough,
            (Departure::Left, None) => self.last_status.map_or(Ending::Ended, Ending::Job),
        };
        self.die_of_the_terminals_signal(ending);
        self.actions.push_back(Action::Exit(ending));
    }
}
