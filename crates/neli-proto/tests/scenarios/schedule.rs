//! Scenarios of a schedule. Its windows are numbered, and each lasts a second.

use neli_proto::note::{Note, SkipReason};
use neli_proto::schedule::{Action, CatchUp, Recorded, Schedule};
use neli_proto::time::{Span, Time, Window};

use crate::Subject;
use crate::words::{Words, begin};

/// A schedule, and the scenario's time, which the schedule does not use.
pub(crate) struct Scenario {
    schedule: Schedule,
    /// Whether it leads and no job runs.
    is_idle: bool,
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
        Self { schedule: Schedule::new(catch_up), is_idle: false, now: begin() }
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
                self.is_idle = true;
                self.schedule.led(match words.value("recorded") {
                    None => Recorded::Nothing,
                    Some("begun") => Recorded::NoOutcome,
                    Some(_) => Recorded::Newest(span(words.number_of("recorded").unwrap_or_default())),
                });
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
        let actions: Vec<Action> = std::iter::from_fn(|| self.schedule.poll_action()).collect();
        self.is_idle &= !actions.iter().any(|action| matches!(action, Action::Run(_)));
        actions.into_iter().map(shown_action).collect()
    }
}

fn span(number: u64) -> Span {
    Span { from_ms: number * 1_000, until_ms: (number + 1) * 1_000 }
}

fn shown_action(action: Action) -> String {
    match action {
        Action::Note(Note::SetBack { until_ms }) => format!("says: set back, until {}", until_ms / 1_000),
        Action::Note(Note::WindowsSkipped { span, why }) => {
            let why = match why {
                SkipReason::ClockSet => "the clock was set",
                SkipReason::NobodyLed => "nobody led",
                SkipReason::Overrun => "the run went on",
            };
            format!("says: {} to {} skipped, {why}", span.from_ms / 1_000, span.until_ms / 1_000 - 1)
        }
        Action::Note(note) => panic!("{note:?} is no note of a schedule"),
        Action::RecordSkip(window) => format!("records that {} is over", window.key),
        Action::Run(window) => format!("runs {}", window.key),
        Action::Wait { until_ms } => format!("waits for {}", until_ms / 1_000),
    }
}
