//! Scenarios of a schedule. Its windows are numbered, and each lasts a second.

use std::mem;

use neli_proto::note::Note;
use neli_proto::schedule::{CatchUp, Recorded, Schedule};
use neli_proto::time::{Span, Time, Window};

use crate::Subject;
use crate::words::{Words, begin};

/// A schedule, and the scenario's time, which the schedule does not use.
pub(crate) struct Scenario {
    schedule: Schedule,
    /// Whether it leads and no job runs.
    is_idle: bool,
    /// The time until which it waited last.
    waits_until: Option<u64>,
    now: Time,
}

impl Scenario {
    /// `schedule catch-up=last|none`.
    pub(crate) fn begin(words: &Words<'_>) -> Self {
        let catch_up = match words.value("catch-up") {
            None | Some("last") => CatchUp::Last,
            Some("none") => CatchUp::None,
            Some(other) => panic!("{other} is neither last nor none"),
        };
        Self { schedule: Schedule::new(catch_up), is_idle: false, waits_until: None, now: begin() }
    }
}

impl Subject for Scenario {
    fn now(&mut self) -> &mut Time {
        &mut self.now
    }

    fn meet(&mut self, words: &Words<'_>) {
        match words.verb() {
            "ended" => {
                self.is_idle = true;
                self.schedule.ended();
            }
            "led" => {
                (self.is_idle, self.waits_until) = (true, None);
                let recorded = match words.value("recorded") {
                    None => Recorded::Nothing,
                    Some("begun") => Recorded::NoOutcome,
                    Some(_) => Recorded::Newest(span(words.number_of("recorded").unwrap_or_default())),
                };
                self.schedule.led(recorded, false);
            }
            "shows" => {
                let number: u64 = words.number(1);
                let window = Window { key: number.to_string().into(), span: span(number) };
                self.schedule.window_shown(&window, self.is_idle);
            }
            verb => panic!("{verb} is no event of a schedule"),
        }
    }

    fn handle_timeout(&mut self, _: Time) {}

    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    fn actions(&mut self) -> Vec<String> {
        let (notes, run, skipped) = self.schedule.take_decisions();
        let mut shown: Vec<String> = notes.iter().map(shown_note).collect();
        shown.extend(skipped.map(|window| format!("records that {} is over", window.key)));
        self.is_idle &= run.is_none();
        shown.extend(run.map(|window| format!("runs {}", window.key)));
        let waits_until = self.schedule.waits_until_ms();
        if mem::replace(&mut self.waits_until, waits_until) != waits_until {
            shown.extend(waits_until.map(|until_ms| format!("waits for {}", until_ms / 1_000)));
        }
        shown
    }
}

fn span(number: u64) -> Span {
    Span { from_ms: number * 1_000, until_ms: (number + 1) * 1_000 }
}

fn shown_note(note: &Note) -> String {
    if let Note::SetBack { until_ms } = note {
        return format!("says: set back, until {}", until_ms / 1_000);
    }
    let Note::WindowsSkipped { span, why } = note else { panic!("{note:?} is no note of a schedule") };
    let why = match *why {
        "clock-set" => "the clock was set",
        "no-run" => "no run",
        _ => "the run went on",
    };
    format!("says: {} to {} skipped, {why}", span.from_ms / 1_000, span.until_ms / 1_000 - 1)
}
