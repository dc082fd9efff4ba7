//! The logic's words for the driver, and the driver's for the logic.

use std::io;

use neli_proto::candidate::Right;
use neli_proto::supervisor::{self, Ending, JobStatus, Lost, Order};
use nix::unistd::Pid;

use crate::config::Config;
use crate::driver::guard::{self, Answer, Grant, Step, Target};
use crate::exit::ExitStatus;
use crate::text::reason;

pub(super) fn number_of(pid: Pid) -> Option<u32> {
    u32::try_from(pid.as_raw()).ok()
}

pub(super) fn status(ending: Ending) -> ExitStatus {
    match ending {
        Ending::Ended => ExitStatus::Ended,
        Ending::Job(status) => ExitStatus::Job(status.code()),
        Ending::Lost(Lost::Fenced) => ExitStatus::Fenced,
        Ending::Lost(Lost::Killed) => ExitStatus::LostKilled,
        Ending::Lost(Lost::Stopped) => ExitStatus::LostStopped,
        Ending::Refused => ExitStatus::Refused,
        Ending::RestartLimit => ExitStatus::RestartLimit,
        Ending::StoppedBy(signal) => ExitStatus::Stopped(u8::try_from(signal).unwrap_or(u8::MAX)),
        Ending::Stuck => ExitStatus::Unkillable,
        Ending::WaitedEnough => ExitStatus::NotElected,
    }
}

pub(super) fn order(order: Order) -> guard::Order {
    let grant =
        |right: Right| Grant { term: right.term, seen: right.seen, next_seq: right.next_seq, until: right.until };
    match order {
        Order::Extend(right) => guard::Order::Lease(grant(right)),
        Order::HandOn => guard::Order::HandOn,
        Order::Kill => guard::Order::Kill,
        Order::Over { term } => guard::Order::Over { term },
        Order::Signal { signal, to_group } => {
            guard::Order::Signal { signal, to: if to_group { Target::Group } else { Target::Main } }
        }
        Order::Spawn { right, attempt } => guard::Order::Spawn { grant: grant(right), attempt: attempt.into() },
        Order::Stop { signal, kill_at } => guard::Order::Stop { signal, kill_at },
        Order::TakeBack => guard::Order::TakeBack,
    }
}

/// The guard's word to the supervisor, about the job of `term`.
pub(super) fn answer(answer: Answer, term: i64, config: &Config) -> Option<supervisor::Event> {
    use supervisor::Event;
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
        Answer::NotStarted { at: Step::InTime, .. } => Event::Fenced { term, gone_at: None },
        Answer::Gone => Event::Gone,
        Answer::Killed => Event::KilledAtTimeout,
        Answer::NotStarted { errno, at } => {
            let error = io::Error::from_raw_os_error(errno);
            let command = config.command.first().map(|command| command.to_string_lossy()).unwrap_or_default();
            let code = if at == Step::Exec && error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
            Event::NotStarted { code, error: format!("{command}: can't be started: {}", reason(&error)) }
        }
        Answer::Started { pid } => Event::Started { pid: u32::try_from(pid).unwrap_or_default() },
        // A command's end is heard where its output is, and a stop is the terminal's business.
        Answer::CommandEnded { .. } | Answer::LeftBehind { .. } | Answer::Stopped { .. } => return None,
        Answer::Stuck { pids } => {
            Event::Stuck { pids: pids.into_iter().filter_map(|pid| u32::try_from(pid).ok()).collect() }
        }
    })
}
