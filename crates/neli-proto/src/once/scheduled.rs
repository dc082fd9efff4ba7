//! `--schedule`: a leader that runs the job in each window, and keeps the lead between the runs.

use alloc::boxed::Box;
use core::mem;

use super::{Action, Once, Phase};
use crate::fact::{Fact, Outcome, Place};
use crate::note::Note;
use crate::record::Offset;
use crate::schedule::{CatchUp, Recorded, Schedule};
use crate::time::{Span, Time, Window};

impl Once {
    /// Whether it leads and waits for the next window.
    pub(crate) const fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Waiting { .. })
    }

    /// When the next window that may run begins, in milliseconds since 1970.
    pub(crate) fn next_window_ms(&self) -> Option<u64> {
        self.scheduled.as_ref().and_then(Schedule::waits_until_ms)
    }

    /// Handles that the claim took effect, and the facts were read (S1).
    pub(super) fn begin_schedule(&mut self, now: Time) {
        let (left, recorded) = (self.left_unfinished().cloned(), self.recorded());
        let is_begun = left.is_some();
        let unfinished = left.or_else(|| self.unfinished().cloned());
        self.actions.extend(unfinished.map(|fact| Action::Note(Note::Unfinished(fact.into()))));
        let forgotten = self.known.forgotten.as_ref().and_then(|forgotten| forgotten.window);
        let Some(schedule) = &mut self.scheduled else { return };
        self.told = None;
        schedule.ask_for(forgotten);
        schedule.led(recorded, is_begun);
        self.follow_schedule(now);
    }

    pub(super) fn follow_schedule(&mut self, now: Time) {
        let Some(schedule) = &mut self.scheduled else { return };
        let (notes, run, skipped) = schedule.take_decisions();
        let Phase::Waiting { term, .. } = self.phase else { return };
        self.actions.extend(notes.into_iter().map(Action::Note));
        if let Some(window) = run {
            // The fact of the new run replaces the fact of skipped windows (S3).
            self.told = None;
            (self.policy.key, self.policy.window) = (window.key, Some(window.span));
            self.announce(now, term, self.end_of_wait(now));
        } else if let Some(window) = skipped {
            self.record_skip(term, window);
        }
        self.note_waiting();
    }

    fn record_skip(&mut self, term: Offset, window: Window) {
        let (seq, id) = (self.next_id(), self.next_id());
        let fact = self.own_fact(seq, window.key, Outcome::Skipped, term);
        let fact = Fact { window: Some(window.span), ..fact };
        self.enter(Phase::Waiting { term, skip: Some(fact.clone()) });
        self.append(id, fact);
    }

    pub(super) fn note_waiting(&mut self) {
        let next = self.next_window_ms();
        if self.sent().is_none() && mem::replace(&mut self.told, next) != next {
            self.actions.extend(next.map(|next_ms| Action::Note(Note::WindowAwaited { next_ms })));
        }
    }

    /// Whether the last release that names a run names this one. After its window was forgotten it may have run again, in another term.
    fn is_released(&self, run: &Fact) -> bool {
        let is_named = |(key, term): &(Box<str>, Offset)| *key == run.key && (run.forgets == 0 || *term == run.term);
        self.released.as_ref().is_some_and(is_named)
    }

    /// The newest run, if it began and did not finish, and its window is the present one, which is not caught up.
    fn left_unfinished(&self) -> Option<&Fact> {
        let left = self.unfinished_in(|window, shown| window == shown)?;
        let is_caught_up = self.policy.schedule != Some(CatchUp::None) || self.known.has_forgotten(left);
        (!is_caught_up).then_some(left)
    }

    /// The newest run, if it began and did not finish, and its window is over, so that it can't run any more.
    fn unfinished(&self) -> Option<&Fact> {
        self.unfinished_in(|window, shown| window.until_ms <= shown.from_ms)
    }

    /// The newest run, if it began and did not finish, and its window is the wanted one beside that of the wall clock.
    fn unfinished_in(&self, is_wanted: impl Fn(Span, Span) -> bool) -> Option<&Fact> {
        let (run, shown) = (self.known.attempt.as_ref()?, self.shown?);
        let window = run.window.filter(|window| is_wanted(*window, shown))?;
        let mut done = self.known.runs().filter(|fact| fact.place() == Place::Done && self.believes(fact));
        // A success that was forgotten before the run is none of it.
        let is_before =
            |done: &Fact| done.forgets < run.forgets || done.window.is_none_or(|done| done.from_ms < window.from_ms);
        let is_newest = done.all(is_before);
        (run.outcome == Outcome::Running && !self.is_released(run) && is_newest).then_some(run)
    }

    /// The newest window that has its outcome, or can have none any more, if the wall clock does not contradict it.
    fn recorded(&self) -> Recorded {
        let unfinished = self.unfinished();
        let has_outcome =
            |fact: &&Fact| fact.outcome != Outcome::Running || self.is_released(fact) || Some(*fact) == unfinished;
        // If a window was forgotten, the windows before it are over.
        let span_of = |fact: &Fact| {
            let is_forgotten = self.known.has_forgotten(fact);
            fact.window.map(|span| {
                if is_forgotten {
                    Span { from_ms: span.from_ms.saturating_sub(1), until_ms: span.from_ms }
                } else {
                    span
                }
            })
        };
        let spans = || self.known.runs().filter(has_outcome).filter_map(span_of);
        let newest = |is_wanted: &dyn Fn(&Span) -> bool| spans().filter(is_wanted).max_by_key(|span| span.from_ms);
        let believed = newest(&|span| self.shown.is_none_or(|shown| shown.believes(*span)));
        match believed.or_else(|| newest(&|_| true)) {
            Some(span) => Recorded::Newest(span),
            None if self.known.attempt.is_some() => Recorded::NoOutcome,
            None => Recorded::Nothing,
        }
    }
}
