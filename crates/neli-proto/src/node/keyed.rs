//! A node whose job runs once for a key: what the key's facts, the candidate and the supervisor tell each other.

use alloc::boxed::Box;

use super::{Action, Awaited, Awaits, FactsEvent, Node, Note};
use crate::candidate::{self, LocalEvent};
use crate::once::{self, Once};
use crate::record::Why;
use crate::supervisor::{Ending, LeadEvent};
use crate::time::Time;

impl Node {
    /// Something has happened in the election. A release that tells of the key's run is no vacancy before that was looked at.
    pub(super) fn election(&mut self, now: Time, event: candidate::Event) {
        self.once.iter_mut().for_each(|once| once.observe(&event));
        let fact_released = self.once.as_ref().and_then(|once| once.fact_released_by(&event));
        if fact_released.is_some() {
            self.candidate.hold_claims(now, true);
        }
        self.candidate.handle(now, event);
        let Some((fact, once)) = fact_released.zip(self.once.as_mut()) else { return };
        if self.candidate.released_term() == Some(fact.term) {
            once.was_released(fact);
        }
        if !once.holds_claims() {
            self.candidate.hold_claims(now, false);
        }
    }

    /// What came of a question about the facts, or of one that was to be recorded.
    pub(super) fn facts(&mut self, now: Time, event: FactsEvent) {
        let Some(once) = &mut self.once else { return };
        match event {
            FactsEvent::Appended { id } => once.was_appended(now, id),
            FactsEvent::Created => once.facts_are_new(),
            FactsEvent::NotAppended { id, error } => once.was_not_appended(now, id, error),
            FactsEvent::Read { id, facts } => once.was_read(now, id, *facts),
            FactsEvent::Reading { progress } => once.is_being_read(progress),
            FactsEvent::Unread { error } => once.can_not_read(error),
        }
    }

    pub(super) fn take_from_once(&mut self, now: Time, action: once::Action) {
        use once::Action as From;
        match action {
            From::Append { id, fact } => self.actions.push_back(Action::AppendFact { id, fact }),
            // Whoever goes does nothing else any more.
            _ if self.is_exiting => {}
            From::Finish { again } => {
                let why = if again { Why::Failed } else { Why::Exited };
                self.candidate.handle_local(now, LocalEvent::StandDown { why, leaving: !again });
                // A stop that was held back, or this one.
                self.supervisor.handle_lead(now, LeadEvent::StoppedFor(why));
            }
            From::HoldClaims(are_held) => self.candidate.hold_claims(now, are_held),
            From::Note(note) => self.actions.push_back(Action::Note(Note::Once(note))),
            From::Read { id } => self.actions.push_back(Action::ReadFacts { id }),
            From::Run(window) => self.supervisor.handle_lead(now, LeadEvent::MayRun(window)),
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

    /// With a schedule: between two runs.
    pub(super) fn awaits_window(&self) -> Option<Awaits> {
        let is_waiting = self.once.as_ref().is_some_and(Once::is_waiting);
        is_waiting.then_some(Awaits { what: Awaited::Window, until: None })
    }

    /// With what it ends: who goes since the key needs no run has a status for that.
    pub(super) fn ending(&self, ending: Ending) -> Ending {
        let skipped = self.once.as_ref().and_then(Once::skipped);
        match (ending, skipped) {
            (Ending::Ended | Ending::Job(_) | Ending::Lost(_), Some(status)) => Ending::Skipped(status),
            _ => ending,
        }
    }

    /// Nothing is left of a term's job. Gives the key, if the release is to tell of its run.
    pub(super) fn term_is_over(&mut self, is_leaving: bool) -> Option<Box<str>> {
        let is_leaving = is_leaving || self.candidate.is_leaving();
        self.once.as_mut()?.term_is_over(is_leaving)
    }
}
