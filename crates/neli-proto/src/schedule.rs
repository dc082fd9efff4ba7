//! `--schedule`: decides for which window a leader begins a run, and when (S2 to S4), by the window of its wall clock, which may be set at
//! any time. No window runs twice under one lead with any change of the clock, and each window that is not run is reported.

use alloc::vec::Vec;
use core::mem;

use crate::note::Note;
use crate::time::{Span, Window};

/// The most spans that are kept. Each except the first begins where the clock was set forward.
const MOST_SPANS: usize = 64;

/// `--catch-up`: the treatment of windows without a leader by a new leader.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum CatchUp {
    /// It runs the last one (S2).
    #[default]
    Last,
    /// It runs none.
    None,
}

/// The windows of a candidate while it leads.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Schedule {
    catch_up: CatchUp,
    /// The window according to the wall clock.
    shown: Option<Window>,
    /// The last window that ran or is over without a run, according to the facts or under this lead.
    newest: Option<Span>,
    /// The spans that are over, by their beginnings: no window that starts in one of them runs. Adjacent spans are joined.
    over: Vec<Span>,
    /// The window that an operator asked for: it runs with each value of `--catch-up`.
    asked_for: Option<Span>,
    /// If no window from before the lead is caught up: the start of the window that the clock showed when the lead began.
    catches_up_from: Option<u64>,
    /// The start of the window before which no job runs, unless the clock is set.
    waits_until: Option<u64>,
    /// The window for which the job is to run.
    run: Option<Window>,
    /// The window of which is to be recorded that it and those before it are over without a run.
    skipped: Option<Window>,
    notes: Vec<Note>,
}

impl Schedule {
    /// The state of a candidate that has not led.
    pub fn new(catch_up: CatchUp) -> Self {
        Self { catch_up, ..Self::default() }
    }

    /// What follows, each returned once: what users are to be told; the window for which the job is to run; and the window of which is to be recorded
    /// that it and those before it are over without a run.
    #[must_use]
    pub fn take_decisions(&mut self) -> (Vec<Note>, Option<Window>, Option<Window>) {
        (mem::take(&mut self.notes), self.run.take(), self.skipped.take())
    }

    /// When the next window that may run begins, in milliseconds since 1970, while it waits.
    pub const fn waits_until_ms(&self) -> Option<u64> {
        self.waits_until
    }

    /// Handles the wall clock's present window. If no run is in progress (`is_idle`), the window's run may begin.
    pub fn window_shown(&mut self, window: &Window, is_idle: bool) {
        let before = self.shown.replace(window.clone());
        if !is_idle || before.as_ref() == Some(window) {
            return;
        }
        let is_over = self.over_at(window.span.from_ms).is_some();
        let is_set_back = before.is_some_and(|before| window.span.from_ms < before.span.from_ms);
        let is_from_before = is_set_back && self.catches_up_from.is_some_and(|lead| window.span.from_ms < lead);
        if is_set_back && (is_over || is_from_before) {
            self.notes.push(Note::SetBack { until_ms: self.next_edge(window.span) });
        }
        if is_over {
            self.waits_until = Some(self.next_edge(window.span));
            return;
        }
        if is_from_before {
            // As at the start of the lead. The windows after it begin while there is a leader.
            return self.skip(window.clone());
        }
        self.note_gap(window.span, "clock-set");
        self.run(window.clone());
    }

    /// Sets, before a lead, the window that an operator asked for last.
    pub(crate) const fn ask_for(&mut self, window: Option<Span>) {
        self.asked_for = window;
    }

    /// Begins the lead. `recorded`: the newest window with an outcome, or that no outcome was ever recorded. `is_begun`: a run of the present
    /// window was begun, and did not finish.
    pub fn led(&mut self, recorded: Recorded, is_begun: bool) {
        let Some(shown) = self.shown.clone() else { return };
        self.over.clear();
        // What is before the first time of a calendar begins in 1970, and is no window to run.
        self.mark_over(Span { from_ms: 0, until_ms: 1 });
        (self.newest, self.waits_until) = (None, None);
        let catches_up = recorded != Recorded::Nothing && self.catch_up == CatchUp::Last;
        self.catches_up_from = (!catches_up).then_some(shown.span.from_ms);
        match recorded {
            Recorded::Nothing => return self.skip(shown),
            Recorded::NoOutcome => {}
            Recorded::Newest(newest) if shown.span.believes(newest) => {
                self.newest = Some(newest);
                self.mark_over(Span { from_ms: 0, until_ms: end_of(newest, shown.span) });
            }
            Recorded::Newest(newest) => {
                self.mark_over(Span { from_ms: 0, until_ms: shown.span.from_ms });
                self.mark_over(newest);
            }
        }
        if self.over_at(shown.span.from_ms).is_some() {
            self.waits_until = Some(self.next_edge(shown.span));
            return;
        }
        let catch_up = if self.asked_for == Some(shown.span) { CatchUp::Last } else { self.catch_up };
        match catch_up {
            CatchUp::Last => {
                self.note_gap(shown.span, "no-run");
                self.run(shown);
            }
            CatchUp::None => {
                let from_ms = self.newest.map_or(shown.span.from_ms, |newest| newest.until_ms);
                let until_ms = if is_begun { shown.span.from_ms } else { shown.span.until_ms };
                if from_ms < until_ms {
                    let span = Span { from_ms, until_ms };
                    self.notes.push(Note::WindowsSkipped { span, why: "no-run" });
                }
                self.skip(shown);
            }
        }
    }

    /// Handles that the run has an outcome. Windows that began during the run are not run (S3).
    pub fn ended(&mut self) {
        let Some((shown, run)) = self.shown.clone().zip(self.newest) else { return };
        if shown.span.from_ms <= run.from_ms || self.over_at(shown.span.from_ms).is_some() {
            self.waits_until = Some(self.next_edge(shown.span));
            return;
        }
        let span = Span { from_ms: run.until_ms, ..shown.span };
        self.notes.push(Note::WindowsSkipped { span, why: "overrun" });
        self.mark_over(span);
        self.skip(shown);
    }

    /// The start of the first window after this one that may run.
    fn next_edge(&self, span: Span) -> u64 {
        core::iter::successors(Some(span.until_ms), |edge| Some(self.over_at(*edge)?.until_ms))
            .last()
            .unwrap_or_default()
    }

    fn run(&mut self, window: Window) {
        (self.newest, self.waits_until) = (Some(window.span), None);
        self.mark_over(window.span);
        self.run = Some(window);
    }

    fn skip(&mut self, window: Window) {
        let span = window.span;
        self.newest = Some(span);
        self.mark_over(span);
        self.skipped = Some(window);
        self.waits_until = Some(self.next_edge(span));
    }

    /// Reports the windows between the newest one that is over and this one.
    fn note_gap(&mut self, to: Span, why: &'static str) {
        let Some(newest) = self.newest else { return };
        // If the clock was set back before, the last of them may be over.
        let over = self.over.iter().find(|over| over.until_ms == to.from_ms);
        let span = Span { from_ms: newest.until_ms, until_ms: over.map_or(to.from_ms, |over| over.from_ms) };
        if span.from_ms < span.until_ms {
            self.notes.push(Note::WindowsSkipped { span, why });
        }
    }

    /// The span that is over and contains this time.
    fn over_at(&self, ms: u64) -> Option<&Span> {
        self.over.iter().find(|over| over.from_ms <= ms && ms < over.until_ms)
    }

    fn mark_over(&mut self, span: Span) {
        let touches = |over: &&mut Span| over.from_ms <= span.from_ms && span.from_ms <= over.until_ms;
        if let Some(over) = self.over.iter_mut().find(touches) {
            over.until_ms = over.until_ms.max(span.until_ms);
            return;
        }
        let at = self.over.partition_point(|over| over.from_ms < span.from_ms);
        self.over.insert(at, span);
        if self.over.len() > MOST_SPANS {
            // The windows of the shortest gap, of the past if there is one, count as over. That they never run in this lead is better than that
            // others run twice.
            let gap = |next: &usize| self.over[*next].from_ms.saturating_sub(self.over[*next - 1].until_ms);
            if let Some(next) = (1..self.over.len()).min_by_key(|next| (*next > at, gap(next))) {
                let joined = self.over.remove(next);
                self.over[next - 1].until_ms = self.over[next - 1].until_ms.max(joined.until_ms);
            }
        }
    }
}

/// Until when windows are over because of the `newest` recorded one, if the wall clock shows this window. Where it ends later than that, the
/// schedule has been changed, and no window that begins from now on is meant by it.
fn end_of(newest: Span, shown: Span) -> u64 {
    if newest.from_ms < shown.until_ms { newest.until_ms.min(shown.until_ms) } else { newest.until_ms }
}

/// The recorded facts of an election's windows at the beginning of a lead.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Recorded {
    /// None: there has never been a leader.
    Nothing,
    /// A run that began, but no outcome.
    NoOutcome,
    /// The newest window that ran or is over without a run.
    Newest(Span),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_follow_each_other_are_remembered_as_one_span() {
        let mut schedule = Schedule::new(CatchUp::Last);
        for (from_ms, until_ms) in [(0, 5), (5, 10), (20, 25), (10, 15)] {
            schedule.mark_over(Span { from_ms, until_ms });
        }
        assert_eq!(schedule.over, [Span { from_ms: 0, until_ms: 15 }, Span { from_ms: 20, until_ms: 25 }]);
        assert_eq!(schedule.over_at(15), None);
    }

    #[test]
    fn after_any_number_of_jumps_no_window_runs_twice_and_none_to_come_is_over() {
        let mut schedule = Schedule::new(CatchUp::Last);
        schedule.mark_over(Span { from_ms: 0, until_ms: 500 });
        // The clock was far ahead for a moment.
        schedule.mark_over(Span { from_ms: 9_000, until_ms: 9_010 });
        let spans = (0..200).map(|number| Span { from_ms: 1_000 + 20 * number, until_ms: 1_010 + 20 * number });
        spans.clone().for_each(|span| schedule.mark_over(span));
        let is_over = |ms| schedule.over_at(ms).is_some();
        assert!(is_over(0) && is_over(9_000) && spans.clone().all(|span| is_over(span.from_ms)), "{:?}", schedule.over);
        assert!(!is_over(600) && !is_over(4_975) && !is_over(4_995), "{:?}", schedule.over);
        assert!(schedule.over.len() <= MOST_SPANS);
        let mut backwards = Schedule::new(CatchUp::Last);
        spans.clone().rev().for_each(|span| backwards.mark_over(span));
        assert!(spans.clone().all(|span| backwards.over_at(span.from_ms).is_some()), "{:?}", backwards.over);
        assert!(backwards.over.len() <= MOST_SPANS);
    }

    /// A leader at 30, whose schedule was changed, finds a window of the earlier one that was done.
    #[test]
    fn after_a_change_of_the_schedule_the_next_window_runs() {
        let window = |from_ms, until_ms| Window { key: "".into(), span: Span { from_ms, until_ms } };
        for (shown, done, runs_at) in [
            (window(28, 32), window(0, 100), 32),
            (window(20, 45), window(25, 125), 45),
            (window(28, 128), window(0, 100), 128),
            (window(28, 128), window(25, 125), 128),
            (window(0, 100), window(0, 100), 100),
            (window(0, 100), window(100, 200), 200),
        ] {
            let mut schedule = Schedule::new(CatchUp::Last);
            schedule.window_shown(&shown, false);
            schedule.led(Recorded::Newest(done.span), false);
            let (_, run, _) = schedule.take_decisions();
            assert_eq!((run, schedule.waits_until_ms()), (None, Some(runs_at)), "{shown:?} {done:?}");
        }
    }
}
