//! A node whose job succeeds once for a key: connects the key's facts, the candidate and the supervisor.

use super::{Action, Awaited, Awaits, FactsEvent, Node};
use crate::candidate;
use crate::kafka::Request;
use crate::once::{self, Once};
use crate::record::{KeyedRun, Why};
use crate::supervisor::{Ending, JobStatus};
use crate::time::Time;

impl Node {
    /// Handles an event in the election. After a release that reports the key's run, no claim is made until the report was handled.
    pub(super) fn election(&mut self, now: Time, event: candidate::Event) {
        self.once.iter_mut().for_each(|once| once.observe(&event));
        let fact_released = self.once.as_ref().and_then(|once| once.fact_released_by(&event));
        if fact_released.is_some() {
            self.candidate.hold_claims(now, true);
        }
        self.candidate.handle(now, event);
        if let Some((fact, once)) = fact_released.zip(self.once.as_mut())
            && self.candidate.released_term() == Some(fact.term)
        {
            once.run_released(fact);
        }
    }

    /// Tells the key of the run that has ended, and the candidate whether it may claim.
    pub(super) fn tell_of_key(&mut self, now: Time) {
        if let Some(once) = &mut self.once {
            if let Some(end) = self.supervisor.run_end() {
                once.run_ended(end);
            }
            self.candidate.hold_claims(now, once.holds_claims());
        }
    }

    /// Handles the result of a question about the facts, or of writing one.
    pub(super) fn facts(&mut self, now: Time, event: FactsEvent) {
        let Some(once) = &mut self.once else { return };
        match event {
            FactsEvent::Appended { id } => once.fact_appended(now, id),
            FactsEvent::Created => once.facts_were_created(),
            FactsEvent::NotAppended { id, error } => once.fact_not_appended(now, id, error),
            FactsEvent::Read { id, facts } => once.facts_read(now, id, *facts),
            FactsEvent::Reading { progress } => once.reading_progressed(progress),
            FactsEvent::Unread { error } => once.was_not_read(error),
        }
    }

    pub(super) fn take_from_once(&mut self, now: Time, action: once::Action) {
        use once::Action as From;
        match action {
            From::Append { id, fact } => self.actions.push_back(Action::AppendFact { id, fact }),
            // A node that is exiting ignores all other events.
            _ if self.is_exiting => {}
            From::Finish { again } => {
                let why = if again { Why::Failed } else { Why::Exited };
                self.candidate.stand_down(now, why, !again);
            }
            From::Note(note) => self.actions.push_back(Action::Note(note)),
            From::Read { id } => self.actions.push_back(Action::ReadFacts { id }),
            From::RenewProducer => self.actions.push_back(Action::Kafka(Request::RenewProducer)),
            From::Skip => self.candidate.stand_down(now, Why::Skipped, true),
            From::StandDown => self.candidate.stand_down(now, Why::FactsUnavailable, false),
        }
    }

    /// With a schedule: when the next window that may run begins, in milliseconds since 1970, while it waits for one.
    #[must_use]
    pub fn next_window_ms(&self) -> Option<u64> {
        self.once.as_ref().filter(|once| once.is_waiting()).and_then(Once::next_window_ms)
    }

    /// With a schedule: the wait between two runs.
    pub(super) fn awaits_window(&self) -> Option<Awaits> {
        let is_waiting = self.once.as_ref().is_some_and(Once::is_waiting);
        is_waiting.then_some(Awaits { what: Awaited::Window, until: None })
    }

    /// The status with which the node ends. A candidate that leaves because the key needs no run has a special status. A run that was
    /// stopped has not succeeded, so the status is not 0.
    pub(super) fn ending(&self, ending: Ending) -> Ending {
        let Some(once) = &self.once else { return ending };
        match (ending, once.skipped(), self.supervisor.signal_of_stop()) {
            (Ending::Ended | Ending::Job(_) | Ending::Lost(_), Some(status), _) => Ending::Skipped(status),
            (Ending::Job(JobStatus::Exited(0)), None, Some(signal)) if once.lacks_run() => Ending::StoppedBy(signal),
            _ => ending,
        }
    }

    /// Handles that no process of a term's job is left. Returns the run, if the release must report it.
    pub(super) fn term_is_over(&mut self, is_leaving: bool) -> Option<KeyedRun> {
        let is_leaving = is_leaving || self.candidate.is_leaving();
        self.once.as_mut()?.term_is_over(is_leaving)
    }
}
