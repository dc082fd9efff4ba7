//! The meaning of the facts of a key, or of an election's windows, for the wanted run.

use alloc::boxed::Box;

use super::{Action, Once, Phase};
use crate::fact::{Fact, Facts, Outcome, Place};
use crate::note::Note;
use crate::record::Offset;
use crate::reminder::INTERVAL;
use crate::time::Time;

impl Once {
    /// The fact because of which the job must not be run, and the exit status for that.
    pub(super) fn skip(&self) -> Option<(&Fact, u8)> {
        let runs = || self.known.runs().filter(|fact| self.covers(fact));
        if let Some(fact) = runs().find(|fact| fact.place() == Place::Done) {
            // A candidate that ran the job exits with the job's status.
            let is_own = fact.member.as_ref() == Some(&self.member);
            return Some((fact, if is_own { 0 } else { self.policy.done_status }));
        }
        let failed = runs().find(|fact| fact.outcome == Outcome::Failed && fact.attempt > self.policy.retries)?;
        Some((failed, failed.exit.unwrap_or(1)))
    }

    /// The exit status of a candidate that exits because the job must not be run.
    pub(crate) fn skipped(&self) -> Option<u8> {
        if self.phase == Phase::Leaving { self.skip().map(|(_, status)| status) } else { None }
    }

    /// Whether nothing may be claimed before the facts were read (K1).
    pub(crate) const fn holds_claims(&self) -> bool {
        matches!(self.phase, Phase::Asking { .. } | Phase::Leaving | Phase::RecordingLate { .. })
    }

    /// Whether its key, or its window, still needs a run, as far as others know. With a schedule there is always another window.
    pub(crate) fn lacks_run(&self) -> bool {
        self.scheduled.is_none() && (self.lacks_record() || self.skip().is_none())
    }

    /// Whether the outcome of its last run is not known to be recorded.
    pub(crate) const fn lacks_record(&self) -> bool {
        matches!(
            self.phase,
            Phase::Asking { unrecorded: Some(_), .. }
                | Phase::Recorded { is_acknowledged: false, .. }
                | Phase::Recording { .. }
                | Phase::RecordingLate { .. }
        )
    }

    /// Whether its key, or its window, needs no run any more. Then each of its candidates exits.
    pub(crate) fn is_settled(&self) -> bool {
        self.scheduled.is_none() && self.skip().is_some()
    }

    /// Whether the fact is about the wanted run: about its key, or about its window or a newer one. A window is over when a newer one has
    /// an outcome. If a window was forgotten, or a schedule has left it out, the windows before it stay over.
    fn covers(&self, fact: &Fact) -> bool {
        match (self.policy.window, fact.window) {
            (None, _) => !self.known.has_forgotten(fact),
            (Some(_), None) => false,
            (Some(own), Some(other)) => {
                let left_out = fact.outcome == Outcome::Skipped && self.scheduled.is_none();
                let is_own_over = own.from_ms == other.from_ms && !left_out && !self.known.has_forgotten(fact);
                (own.from_ms < other.from_ms || is_own_over) && self.believes(fact)
            }
        }
    }

    /// How often an operator asked to forget the key.
    pub(super) fn forgets(&self) -> u32 {
        self.known.forgotten.as_ref().map_or(0, |forgotten| forgotten.forgets)
    }

    /// How many times the journal was created again, as far as the facts show it: in one journal no run is of a later term than that of the
    /// present leader.
    pub(super) fn remakes(&self, term: Offset) -> u32 {
        let counted = self.known.runs().map(|fact| fact.remakes.saturating_add((fact.term > term).into()));
        counted.max().unwrap_or_default()
    }

    /// Whether the wall clock does not contradict the fact (S2).
    pub(super) fn believes(&self, fact: &Fact) -> bool {
        self.shown.zip(fact.window).is_none_or(|(shown, window)| shown.believes(window))
    }

    /// Whether one of the key's places contains a record that this version can't read.
    pub(super) fn is_unreadable(&self, facts: &Facts) -> bool {
        let is_other = |fact: &Option<Fact>| fact.as_ref().is_some_and(|fact| fact.window.is_none());
        let is_of_windows = self.policy.window.is_some() || self.scheduled.is_some();
        !facts.unreadable.is_empty()
            || (is_of_windows && [&facts.done, &facts.attempt, &facts.forgotten].into_iter().any(is_other))
    }

    pub(super) fn note_disbelieved_facts(&mut self) {
        let known = [&self.known.done, &self.known.attempt].into_iter().flatten();
        if let Some(fact) = known.filter(|fact| !self.believes(fact)).max_by_key(|fact| fact.term) {
            self.actions.push_back(Action::Note(Note::NotBelieved(fact.clone().into())));
        }
    }

    /// Notes the progress of the reading, for the message if it is given up.
    pub(crate) fn reading_progressed(&mut self, progress: Box<str>) {
        self.trouble = Some(progress);
    }

    /// Reports a fact that is not recorded at once, then every 30 s until it is recorded.
    pub(super) fn note_if_not_recorded(&mut self, now: Time, outcome: Outcome, error: Box<str>) {
        if self.reported_at.is_none_or(|at| now >= at + INTERVAL) {
            self.reported_at = Some(now);
            let leads = !matches!(self.phase, Phase::RecordingLate { .. });
            self.actions.push_back(Action::Note(Note::NotRecorded { outcome, leads, error }));
        }
    }

    /// The number of the wanted run. A run whose candidate died or was stopped does not count as failed.
    pub(super) fn next_attempt(&self) -> u32 {
        let is_same = |fact: &&Fact| {
            fact.place() == Place::Attempt && fact.window == self.policy.window && !self.known.has_forgotten(fact)
        };
        match self.known.runs().find(is_same) {
            Some(Fact { outcome: Outcome::Failed, attempt, .. }) => attempt.saturating_add(1),
            Some(Fact { attempt, .. }) => *attempt,
            None => 1,
        }
    }

    /// Adds facts. Of two facts in one place, the one of the later run counts; of two facts of one run, the outcome; and of two outcomes,
    /// the more complete one. A fact of another window that is hidden by it is kept as well.
    pub(super) fn learn(&mut self, facts: Facts) {
        let replaced = [&self.known.done, &self.known.attempt].map(Clone::clone).into_iter().flatten();
        let hidden = facts.hidden.into_iter().chain(replaced);
        let tells = |fact: &Fact| (fact.outcome != Outcome::Running, fact.at_ms.is_some());
        let newest = |known: Option<Fact>, new: Option<Fact>| match (known, new) {
            (Some(known), Some(new)) => {
                let is_same = new.term == known.term && new.window == known.window;
                let is_known_better = new.is_older_than(&known) || (is_same && tells(&new) < tells(&known));
                Some(if is_known_better { known } else { new })
            }
            (known, new) => new.or(known),
        };
        self.known.done = newest(self.known.done.take(), facts.done);
        self.known.attempt = newest(self.known.attempt.take(), facts.attempt);
        self.known.forgotten = newest(self.known.forgotten.take(), facts.forgotten);
        self.known.keep_hidden(hidden);
    }
}
