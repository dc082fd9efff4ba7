//! The log events for notes about keys, windows and schedules.

use std::time::Duration;

use neli_proto::fact::{Fact, Outcome};
use neli_proto::{once, schedule};

use super::{somebody, warning};
use crate::report::log::{Event, timestamp, to_the_second};

pub(super) fn of_once(note: once::Note) -> Event {
    use once::Note;
    match note {
        Note::FactsLost(key) => warning(&format!(
            "the topic of facts was missing and is created again, although the journal names a run of {key}: its \
             facts are lost, and a key or window that was done may run again"
        )),
        Note::NotBelieved(fact) => Event::Warning {
            message: format!(
                "the newest window that is recorded, {}, by {}, lies more than a window ahead of this machine's \
                 clock, and is ignored: check which machine's clock is wrong",
                fact.key,
                somebody(fact.name)
            ),
            dropped: None,
        },
        Note::NotRecorded(error) => Event::Warning {
            message: format!(
                "the run's outcome is not recorded yet ({error}): this candidate keeps the lead until it is, and \
                 writes the outcome into its release as well"
            ),
            dropped: None,
        },
        Note::Schedule(note) => of_schedule(note),
        Note::SkipNotRecorded(error) => warning(&format!(
            "the skip of this window is not recorded yet ({error}): it is tried again each second, and until then \
             another leader would run the window"
        )),
        Note::Unfinished(fact) => {
            let (from_ms, until_ms) = fact.window.map_or((0, 0), |window| (window.from_ms, window.until_ms));
            Event::WindowSkipped {
                from: to_the_second(from_ms),
                until: to_the_second(until_ms),
                why: "unfinished".to_owned(),
                by: Some(somebody(fact.name)),
            }
        }
        Note::Skipped(skip) => {
            let Fact { key, outcome, term, name, exit, ran_ms, at_ms, window, .. } = skip.fact;
            Event::OnceSkipped {
                newer: (key != skip.key).then(|| key.into()),
                key: skip.key.into(),
                by: somebody(name),
                term,
                at: at_ms.map(timestamp),
                exit: exit.unwrap_or_default(),
                ran: ran_ms.map(Duration::from_millis),
                done: outcome != Outcome::Failed,
                is_window: window.is_some(),
            }
        }
        Note::Unavailable(error) => Event::Warning {
            message: format!("the facts of the key can't be read or written, so the job is not run here: {error}"),
            dropped: None,
        },
        Note::Waiting { until_ms } => Event::WindowAwaited { next: to_the_second(until_ms) },
    }
}

fn of_schedule(note: schedule::Note) -> Event {
    use schedule::{Note, SkipReason};
    match note {
        Note::SetBack { until_ms } => warning(&format!(
            "this machine's clock was set back to a time whose windows are over: nothing is run until it shows {}",
            to_the_second(until_ms)
        )),
        Note::Skipped { span, why } => Event::WindowSkipped {
            from: to_the_second(span.from_ms),
            until: to_the_second(span.until_ms),
            why: match why {
                SkipReason::ClockSet => "clock-set",
                SkipReason::NobodyLed => "nobody-led",
                SkipReason::Overrun => "overrun",
            }
            .to_owned(),
            by: None,
        },
    }
}

/// With a schedule: when the next window begins, if the leader waits for it. Appended to the node's state.
pub(crate) fn of_next_window(next_ms: Option<u64>) -> String {
    next_ms.map_or_else(String::new, |next_ms| format!("; next window at {}", to_the_second(next_ms)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_window_is_shown_while_it_is_awaited() {
        assert_eq!(of_next_window(Some(1_769_825_400_000)), "; next window at 2026-01-31T02:10:00Z");
        assert_eq!(of_next_window(None), "");
    }
}
