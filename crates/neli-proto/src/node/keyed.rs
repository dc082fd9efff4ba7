//! A node whose job succeeds once for a key: connects the key's facts, the candidate and the supervisor.

use super::{Action, Awaited, Awaits, FactsEvent, Node};
use crate::candidate::{self, LocalEvent};
use crate::kafka::Request;
use crate::once::{self, Once};
use crate::record::{KeyedRun, Why};
use crate::supervisor::{Ending, JobStatus, LeadEvent};
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
        let Some((fact, once)) = fact_released.zip(self.once.as_mut()) else { return };
        if self.candidate.released_term() == Some(fact.term) {
            once.run_released(fact);
        }
        if !once.holds_claims() {
            self.candidate.hold_claims(now, false);
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
                self.candidate.handle_local(now, LocalEvent::StandDown { why, leaving: !again });
                // It is the stop that was delayed, or this one.
                self.supervisor.handle_lead(now, LeadEvent::StoppedFor(why));
            }
            From::HoldClaims(are_held) => self.candidate.hold_claims(now, are_held),
            From::Note(note) => self.actions.push_back(Action::Note(note)),
            From::Read { id } => self.actions.push_back(Action::ReadFacts { id }),
            From::RenewProducer => self.actions.push_back(Action::Kafka(Request::RenewProducer)),
            From::Run { window, attempt } => self.supervisor.handle_lead(now, LeadEvent::MayRun { window, attempt }),
            From::Skip => {
                self.candidate.handle_local(now, LocalEvent::StandDown { why: Why::Skipped, leaving: true });
            }
            From::StandDown => {
                self.candidate.handle_local(now, LocalEvent::StandDown { why: Why::FactsUnavailable, leaving: false });
            }
            From::Stop(why) => self.supervisor.handle_lead(now, LeadEvent::StoppedFor(why)),
            From::Wait => self.supervisor.handle_lead(now, LeadEvent::Waits),
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
