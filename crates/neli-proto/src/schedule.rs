//! `--schedule`: which window's run a leader begins, and when: by the window that its wall clock shows, which may be set at any time.
//!
//! No window is run twice under one lead, whatever the clock does; and what is not run is told.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::window::{Span, Window};

/// So many spans are remembered; each but the first begins with a clock that was set forward.
const MOST_SPANS: usize = 64;

/// `--catch-up`: what a new leader does about windows in which nobody led.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum CatchUp {
    /// It runs the last one.
    Last,
    /// It runs none.
    None,
}

/// What is wanted.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// Say so.
    Note(Note),
    /// Record that this window is over without a run, and those before it.
    RecordSkip(Window),
    /// The job is to run for this window.
    Run(Window),
    /// Nothing runs before the wall clock shows another window.
    Wait {
        /// When it does, in milliseconds since 1970, unless it is set.
        until_ms: u64,
    },
}

/// What a person is told.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Note {
    /// The wall clock was set back into windows that are over.
    SetBack {
        /// Until it shows this time again nothing is run.
        until_ms: u64,
    },
    /// Windows are not run.
    Skipped {
        /// From the first one's beginning to the last one's end.
        span: Span,
        /// Why.
        why: SkipReason,
    },
}

/// Why windows are not run.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum SkipReason {
    /// The wall clock was set forward over them.
    ClockSet,
    /// Nobody led then.
    NobodyLed,
    /// The run before them went on until then.
    Overrun,
}

/// The windows of one candidate's leads.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Schedule {
    catch_up: CatchUp,
    /// The window that the wall clock shows.
    shown: Option<Window>,
    /// The last window that was run, or is over without a run: by what is recorded, or under this lead.
    newest: Option<Span>,
    /// What is over: no window that begins in one of these is run. Neighbours are one.
    over: Vec<Span>,
    /// The window that an operator has asked for, which is run whatever `--catch-up` says.
    asked_for: Option<Span>,
    /// Until when it has said that it waits.
    waits_until: Option<u64>,
    actions: VecDeque<Action>,
}

impl Schedule {
    /// That of a candidate that has not led.
    #[must_use]
    pub const fn new(catch_up: CatchUp) -> Self {
        Self {
            catch_up,
            shown: None,
            newest: None,
            over: Vec::new(),
            asked_for: None,
            waits_until: None,
            actions: VecDeque::new(),
        }
    }

    /// What is wanted next.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The wall clock shows this window. Whether nothing runs, so that its run may begin.
    pub fn shows(&mut self, window: &Window, is_idle: bool) {
        let before = self.shown.replace(window.clone());
        if !is_idle || before.as_ref() == Some(window) {
            return;
        }
        if let Some(over) = self.over_with(window.span).copied() {
            if before.is_some_and(|before| window.span.from_ms < before.span.from_ms) {
                self.note(Note::SetBack { until_ms: over.until_ms });
            }
            return self.wait(over.until_ms);
        }
        self.note_gap(window.span, SkipReason::ClockSet);
        self.run(window.clone());
    }

    /// Before a lead: which window an operator has asked for last.
    pub const fn is_asked_for(&mut self, window: Option<Span>) {
        self.asked_for = window;
    }

    /// The lead was won. `recorded`: the newest window with an outcome, or the first outcome of all is still to come.
    pub fn led(&mut self, recorded: Recorded) {
        let Some(shown) = self.shown.clone() else { return };
        self.over.clear();
        (self.newest, self.waits_until) = (None, None);
        match recorded {
            Recorded::Nothing => {
                self.be_over(shown.span);
                return self.skip(shown);
            }
            Recorded::NoOutcome => {}
            Recorded::Newest(newest) if shown.span.believes(newest) => {
                self.newest = Some(newest);
                self.be_over(Span { from_ms: 0, ..newest });
            }
            Recorded::Newest(newest) => {
                self.be_over(Span { from_ms: 0, until_ms: shown.span.from_ms });
                self.be_over(newest);
            }
        }
        if self.over_with(shown.span).is_some() {
            return self.wait(self.next_edge(shown.span));
        }
        let catch_up = if self.asked_for == Some(shown.span) { CatchUp::Last } else { self.catch_up };
        match catch_up {
            CatchUp::Last => {
                self.note_gap(shown.span, SkipReason::NobodyLed);
                self.run(shown);
            }
            CatchUp::None => {
                let from_ms = self.newest.map_or(shown.span.from_ms, |newest| newest.until_ms);
                let span = Span { from_ms, ..shown.span };
                self.note(Note::Skipped { span, why: SkipReason::NobodyLed });
                self.be_over(span);
                self.skip(shown);
            }
        }
    }

    /// The run has its outcome. Windows that have begun meanwhile are not run.
    pub fn ended(&mut self) {
        let Some((shown, run)) = self.shown.clone().zip(self.newest) else { return };
        if shown.span.from_ms <= run.from_ms || self.over_with(shown.span).is_some() {
            return self.wait(self.next_edge(shown.span));
        }
        let span = Span { from_ms: run.until_ms, ..shown.span };
        self.note(Note::Skipped { span, why: SkipReason::Overrun });
        self.be_over(span);
        self.skip(shown);
    }

    /// When the first window begins after this one that may be run.
    fn next_edge(&self, span: Span) -> u64 {
        self.over_with(span).map_or(span.until_ms, |over| over.until_ms.max(span.until_ms))
    }

    fn run(&mut self, window: Window) {
        (self.newest, self.waits_until) = (Some(window.span), None);
        self.be_over(window.span);
        self.actions.push_back(Action::Run(window));
    }

    fn skip(&mut self, window: Window) {
        let until_ms = window.span.until_ms;
        self.newest = Some(window.span);
        self.actions.push_back(Action::RecordSkip(window));
        self.wait(until_ms);
    }

    fn wait(&mut self, until_ms: u64) {
        if self.waits_until.replace(until_ms) != Some(until_ms) {
            self.actions.push_back(Action::Wait { until_ms });
        }
    }

    fn note(&mut self, note: Note) {
        self.actions.push_back(Action::Note(note));
    }

    /// Tells of the windows between the newest that is over and this one.
    fn note_gap(&mut self, to: Span, why: SkipReason) {
        let Some(newest) = self.newest else { return };
        // Where the clock was set back before, the last of them may be over.
        let over = self.over.iter().find(|over| over.until_ms == to.from_ms);
        let span = Span { from_ms: newest.until_ms, until_ms: over.map_or(to.from_ms, |over| over.from_ms) };
        if span.from_ms < span.until_ms {
            self.note(Note::Skipped { span, why });
        }
    }

    fn over_with(&self, span: Span) -> Option<&Span> {
        self.over.iter().find(|over| over.from_ms <= span.from_ms && span.from_ms < over.until_ms)
    }

    fn be_over(&mut self, span: Span) {
        let touches = |over: &&mut Span| over.from_ms <= span.from_ms && span.from_ms <= over.until_ms;
        if let Some(over) = self.over.iter_mut().find(touches) {
            over.until_ms = over.until_ms.max(span.until_ms);
            return;
        }
        if self.over.len() == MOST_SPANS {
            self.over.remove(0);
        }
        self.over.push(span);
    }
}

/// What is recorded of an election's windows when a lead begins.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Recorded {
    /// Nothing: nobody has led before.
    Nothing,
    /// A run that was begun, and the outcome of none.
    NoOutcome,
    /// The newest window that was run, or is over without a run.
    Newest(Span),
}
