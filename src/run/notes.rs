//! What the logic notes, as the log says it.

use std::time::Duration;

use crate::config::signal_name;
use crate::driver::log::Event;
use crate::logic::candidate::{self, Waiting};
use crate::logic::command::CommandEnd;
use crate::logic::health::Failure;
use crate::logic::hooks::Hook;
use crate::logic::record::Offset;
use crate::logic::supervisor::{self, JobStatus, StopPolicy};

/// The log's event for what the candidate notes.
pub(super) fn of_candidate(note: candidate::Note) -> Event {
    use candidate::Note;
    match note {
        Note::Claiming { after } => Event::Claiming { after },
        Note::Ended { by, reason } => Event::Ended { by: somebody(by), reason: text(reason) },
        Note::FenceWarning { term, left } => Event::FenceWarning { term, left },
        Note::Fenced { term, why } => Event::Fenced { term, why: why.to_string() },
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
        Note::HealthFailed(failure, most) => {
            let Failure { count, end, last_line } = failure;
            let line = if last_line.is_empty() { String::new() } else { format!(": {last_line}") };
            let message = format!("the health command {} ({count} of {most} in a row){line}", how(&end));
            Event::Warning { message, dropped: None }
        }
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
        Note::Unhealthy(Failure { count, end, last_line }) => {
            Event::Unhealthy { term, failures: count, reason: how(&end), line: last_line.into() }
        }
    }
}

/// The log's event for a hook that failed.
pub(super) fn of_hook(hook: Hook, end: &CommandEnd) -> Event {
    Event::HookFailed { hook: hook.event().to_owned(), reason: how(end) }
}

/// How a command ended, as what follows its name in a sentence.
fn how(end: &CommandEnd) -> String {
    match end {
        CommandEnd::Abandoned => "was ended with the job".to_owned(),
        CommandEnd::Exited(status) => format!("exited with status {status}"),
        CommandEnd::NotStarted(error) => format!("could not be started: {error}"),
        CommandEnd::Signaled(signal) => format!("was ended by {}", signal_name(*signal)),
        CommandEnd::TimedOut => "took too long and was killed".to_owned(),
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
