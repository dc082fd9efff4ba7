//! What the logic notes, as the log says it.

use std::time::Duration;

use crate::driver::log::Event;
use crate::logic::candidate::{self, Loss, Waiting};
use crate::logic::record::Offset;
use crate::logic::supervisor::{self, JobStatus, StopPolicy};

/// The log's event for what the candidate notes.
pub(super) fn of_candidate(note: candidate::Note) -> Event {
    use candidate::Note;
    match note {
        Note::Claiming { after } => Event::Claiming { after },
        Note::Ended { by, reason } => Event::Ended { by: somebody(by), reason: text(reason) },
        Note::FenceWarning { term, left, silent } => Event::FenceWarning { term, left, silent },
        Note::Fenced { term, why, loss, left } => {
            let why = match loss {
                Loss::HistoryCut => "history-cut".to_owned(),
                Loss::LeaseOver | Loss::Superseded => why.to_string(),
            };
            Event::Fenced { term, why, left }
        }
        Note::Leading { term, .. } => Event::Leading { term },
        Note::Released { term, why, delivered } => Event::Released { term, why: why.to_string(), delivered },
        Note::Resigned { term, by, reason } => Event::Resigned { term, by: somebody(by), reason: text(reason) },
        Note::Standby { leader, term, why } => {
            let why = why.and_then(|why| match why {
                Waiting::CoolingOff => Some("it has stood down, and lets another lead first"),
                Waiting::Led => None,
                Waiting::Precedence => Some("nobody leads, and others may claim first"),
                Waiting::Undecided => Some("the records do not tell who leads, so that only their silence can"),
            });
            Event::Standby { leader: leader.map(Into::into), term, why: why.map(str::to_owned) }
        }
        Note::Superseded { term, by_term, by } => Event::Superseded { term, by_term, leader: somebody(by) },
    }
}

/// The log's event for what the supervisor notes of the job of `term`.
pub(super) fn of_supervisor(note: supervisor::Note, term: Offset, policy: &StopPolicy, guard: i32) -> Event {
    use supervisor::Note;
    match note {
        Note::GuardLost => Event::GuardLost { pid: guard },
        Note::JobExited { status, ran } => {
            let signal = match status {
                JobStatus::Exited(_) => None,
                JobStatus::Signaled(signal) => Some(signal),
            };
            Event::JobExited { term, status: status.code(), signal, ran }
        }
        Note::JobKilled { why } => Event::JobKilled { term, why: why.to_string() },
        Note::JobStarted { pid, attempt } => Event::JobStarted { term, pid, attempt },
        Note::NotStarted { error } => Event::Error { message: error },
        Note::Restarting { attempt, delay } => Event::Restarting { term, attempt, delay },
        Note::Stopping { why } => {
            Event::Stopping { term, why: why.to_string(), signal: policy.signal, timeout: policy.timeout }
        }
        Note::Stuck { pids } => {
            let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
            let message = format!(
                "{} of the job can't be killed (pid {}): the term is not released, and ends with its lease; see what holds \
                 them (/proc/PID/stack), or restart the machine",
                if pids.len() == 1 { "a process" } else { "processes" },
                pids.join(", ")
            );
            Event::Error { message }
        }
    }
}

/// The log's event for a broker that does not answer.
pub(super) fn of_outage((error, down): (String, Duration)) -> Event {
    Event::BrokerDown { error, down }
}

fn somebody(name: Option<Box<str>>) -> String {
    name.map_or_else(|| "somebody".to_owned(), Into::into)
}

fn text(words: Option<Box<str>>) -> String {
    words.map_or_else(String::new, Into::into)
}
