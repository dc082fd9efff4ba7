//! The supervisor's words for the guard, and the guard's for the supervisor.

use super::message::{Answer, Grant, Order, Step, Target};
use crate::candidate::Right;
use crate::record::Offset;
use crate::supervisor::{self, Event, JobStatus};

impl From<Right> for Grant {
    fn from(right: Right) -> Self {
        Self { term: right.term, seen: right.seen, next_seq: right.next_seq, until: right.until }
    }
}

impl From<supervisor::Order> for Order {
    fn from(order: supervisor::Order) -> Self {
        use supervisor::Order as Given;
        match order {
            Given::Extend(right) => Self::Lease(right.into()),
            Given::HandOn => Self::HandOn,
            Given::Kill => Self::Kill,
            Given::Over { term } => Self::Over { term },
            Given::Signal { signal, to_group } => {
                Self::Signal { signal, to: if to_group { Target::Group } else { Target::Main } }
            }
            Given::Spawn { right, attempt } => Self::Spawn { grant: right.into(), attempt: attempt.into() },
            Given::Stop { signal, kill_at } => Self::Stop { signal, kill_at },
            Given::TakeBack => Self::TakeBack,
        }
    }
}

/// What an answer about the job of `term` says to the supervisor. `None` for what the driver looks after: a start that failed, which
/// it describes by the error's number; a command's end, which is heard where its output is; a stop, which is the terminal's
/// business; and what is only told to a person.
#[must_use]
pub fn heard(answer: Answer, term: Offset) -> Option<Event> {
    Some(match answer {
        Answer::Accepted { until } | Answer::Extended { until } => Event::Answered { until },
        Answer::Exited { code, signal, left, foreground } => {
            let status = match (code, signal) {
                (_, Some(signal)) => JobStatus::Signaled(signal),
                (code, None) => JobStatus::Exited(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)),
            };
            Event::MainExited { status, left, foreground }
        }
        Answer::Fenced { term, gone_at } => Event::Fenced { term, gone_at },
        Answer::Gone => Event::Gone,
        Answer::Killed => Event::KilledAtTimeout,
        Answer::NotStarted { at: Step::InTime, .. } => Event::Fenced { term, gone_at: None },
        Answer::Started { pid } => Event::Started { pid: u32::try_from(pid).unwrap_or_default() },
        Answer::Stuck { pids } => {
            Event::Stuck { pids: pids.into_iter().filter_map(|pid| u32::try_from(pid).ok()).collect() }
        }
        Answer::CommandEnded { .. }
        | Answer::LeftBehind { .. }
        | Answer::NotStarted { .. }
        | Answer::Stopped { .. } => return None,
    })
}
