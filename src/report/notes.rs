//! The log events for a node's notes.

use std::io;
use std::time::Duration;

use neli_proto::candidate::{self, Elector, Loss, Milestone, Patience, StandbyReason, Timings, Waiting};
use neli_proto::command::CommandEnd;
use neli_proto::health::Failure;
use neli_proto::node::{Awaited, Awaits, Note, Refusal};
use neli_proto::record::{Offset, Why};
use neli_proto::supervisor::{self, JobStatus};
use neli_proto::time::{Time, millis};

use crate::config::{Config, Occasion};
use crate::exit::ExitStatus;
use crate::report::log::{Due, Event, spoken, to_the_second};
use crate::text::{reason, signal_name};

pub(crate) use once::of_next_window;
pub(crate) use processes::of_left_behind;
pub(crate) use service_status::{Trouble, of_roles, of_status, of_trouble};

mod once;
mod processes;
mod service_status;

/// The topic has more partitions than the group uses.
pub(crate) const UNUSED_PARTITIONS: &str = "the topic has more partitions than this group uses, and Kafka moves them between members when one joins: the \
     candidate that the group chooses claims first when nobody leads, and a leader that loses the partition keeps the \
     lead; to let the group end a lead, use a --topic with one partition";

/// The time of a note, and what the node waited for then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Now.
    pub(crate) now: Time,
    /// The same time by the wall clock, in milliseconds since 1970.
    pub(crate) wall_ms: u64,
    /// When the node's own lease ends if nothing extends it.
    pub(crate) lease_end: Option<Time>,
    /// What the node waits for, if it waits.
    pub(crate) awaits: Option<Awaits>,
}

impl Moment {
    /// When the node claims, unless a record of another candidate comes before.
    fn claim(&self) -> Option<Due> {
        let Awaits { what, until } = self.awaits?;
        let left = until?.since(self.now);
        let wall_ms = self.wall_ms.saturating_add(millis(left));
        matches!(what, Awaited::ClaimDelay | Awaited::CoolOff | Awaited::Silence).then_some(Due { wall_ms, left })
    }
}

/// The log event for a note of a node whose guard has this pid.
pub(crate) fn of_node(note: Note, moment: Moment, config: &Config, guard: i32) -> Event {
    match note {
        Note::Election(note) => of_candidate(note),
        Note::HookFailed { hook, end } => Event::HookFailed { hook: hook.event().to_owned(), reason: how(&end) },
        Note::Job { term, note } => of_supervisor(note, term, moment, config, guard),
        Note::Milestone(milestone) => of_milestone(milestone, moment.claim()),
        Note::Once(note) => once::of_once(note),
        Note::Refused(Refusal::Said(error)) => Event::Error { message: error.into() },
        Note::Refused(Refusal::TopicRemade) => {
            let name = &config.election.topic;
            Event::Error {
                message: format!(
                    "topic {name:?}: it was deleted and made again, and --no-create-topic does not accept the new \
                     one: check that it is the right one, and start neli-run again"
                ),
            }
        }
    }
}

fn of_candidate(note: candidate::Note) -> Event {
    use candidate::Note;
    match note {
        Note::Claiming { after } => Event::Claiming { after },
        Note::Ended { by, reason } => Event::Ended { by: somebody(by), reason: text(reason) },
        Note::FenceWarning { term, left, silent, unconfirmed } => {
            Event::FenceWarning { term, left, silent, unconfirmed }
        }
        Note::LeaseUnconfirmed { term, unconfirmed } => Event::Warning {
            message: format!(
                "heartbeats come back from Kafka, but no broker has confirmed for {} that the topic is still the same: the lease is over \
                 (term {term})",
                spoken(unconfirmed)
            ),
            dropped: None,
        },
        Note::Preempting { term, priority, own } => Event::Preempting { term, priority, own },
        Note::ReaderStuck { end, silent } => Event::Warning {
            message: format!(
                "the journal's reader has delivered no record for {}, although the log has records up to offset \
                 {end}: a new reader replaces it",
                spoken(silent)
            ),
            dropped: None,
        },
        Note::Resigned { term, by, reason } => Event::Resigned { term, by: somebody(by), reason: text(reason) },
        Note::Yielding { term, why, patience } => Event::Yielding { term, why: why.to_string(), patience },
        Note::TopicUnnamed => Event::Debug {
            message:
                "this broker has no ids for topics (Kafka before 2.8): a topic that is deleted and made again under a \
                      leader may go unnoticed"
                    .to_owned(),
        },
        Note::UnusedPartitions => warning(UNUSED_PARTITIONS),
    }
}

fn of_milestone(milestone: Milestone, claim: Option<Due>) -> Event {
    match milestone {
        Milestone::Fenced { term, why, loss, left, late } => {
            let why = match loss {
                Loss::HistoryCut => "history-cut".to_owned(),
                Loss::LeaseOver | Loss::Superseded => why.to_string(),
            };
            Event::Fenced { term, why, left, late }
        }
        Milestone::Leading { term, .. } => Event::Leading { term },
        Milestone::Overlapped { term, by_term, by, within } => {
            Event::Overlapped { term, by_term, leader: somebody(by), within }
        }
        Milestone::Released { term, why, delivered } => Event::Released { term, why: why.to_string(), delivered },
        Milestone::Standby(standby) => of_standby(Some(standby), claim),
        Milestone::Superseded { term, by_term, by } => Event::Superseded { term, by_term, leader: somebody(by) },
        Milestone::TopicRemade => warning(
            "the topic was deleted and made again: records of the old topic no longer count, its leader is fenced, \
             and fencing tokens may start from 0 again",
        ),
    }
}

/// The event for a supervisor's note about the job of `term`.
fn of_supervisor(note: supervisor::Note, term: Offset, moment: Moment, config: &Config, guard: i32) -> Event {
    use supervisor::Note;
    match note {
        Note::GuardHangs => Event::Error {
            message: format!(
                "the guard (pid {guard}) does not answer: it is killed, and the job with it; the term is released when the guard \
                 has ended; see what holds it (/proc/{guard}/stack, TracerPid in /proc/{guard}/status, a frozen control group)"
            ),
        },
        Note::GuardLost => Event::GuardLost { pid: guard },
        Note::HealthFailed(failure, most) => {
            let Failure { count, end, last_line } = failure;
            let line = if last_line.is_empty() { String::new() } else { format!(": {last_line}") };
            let message = format!("the health command {} ({count} of {most} in a row){line}", how(&end));
            Event::Warning { message, dropped: None }
        }
        Note::JobContinued => {
            warning("the job stopped itself (SIGTSTP), and no shell can continue it: neli-run continued it at once")
        }
        Note::JobInBackground => warning(
            "the job is stopped, because it used the terminal in the background; this candidate keeps the lead, and \
             the job continues when neli-run is brought to the foreground (fg)",
        ),
        Note::JobExited { status, ran, by_itself } => {
            let signal = match status {
                JobStatus::Exited(_) => None,
                JobStatus::Signaled(signal) => Some(signal),
            };
            Event::JobExited { term, status: status.code(), signal, ran, by_itself }
        }
        Note::JobKilled { why } => Event::JobKilled { term, why: why.to_string() },
        Note::JobStarted { pid, attempt, window } => {
            let window = window.map(|window| to_the_second(window.from_ms));
            Event::JobStarted { term, pid, attempt, window }
        }
        Note::NotStarted { errno } => {
            let command = config.command.first().map(|command| command.to_string_lossy()).unwrap_or_default();
            let error = io::Error::from_raw_os_error(errno);
            Event::Error { message: format!("{command}: can't be started: {}", reason(&error)) }
        }
        Note::Restarting { attempt, delay } => Event::Restarting { term, attempt, delay },
        Note::Settling { delay } => Event::Settling { term, delay },
        Note::StartedUnseen => Event::Error {
            message: "the job was started and then killed, because no descriptor was left to watch it (ulimit -n); \
                this counts as a failed run"
                .to_owned(),
        },
        Note::Stopping { why, timeout } => stopping(term, why, timeout, moment, config),
        Note::GuardStuck { pids, are_all } => {
            Event::Error { message: processes::of_stuck_guard(guard, &pids, are_all) }
        }
        Note::Stuck { pids } => Event::Error { message: processes::of_stuck(&pids) },
        Note::Unhealthy(Failure { count, end, last_line }) => {
            Event::Unhealthy { term, failures: count, reason: how(&end), line: last_line.into() }
        }
    }
}

/// The event for a stop of the job.
fn stopping(term: Offset, why: Why, timeout: Duration, moment: Moment, config: &Config) -> Event {
    let lease_left = moment.lease_end.map(|end| end.since(moment.now));
    let (timeout, at_lease_end) = sigkill_in(why, timeout, lease_left, &config.timings);
    Event::Stopping { term, why: why.to_string(), signal: config.stop_signal, timeout, at_lease_end }
}

/// The time until SIGKILL for a job that is asked to stop, and whether the reason is the end of the lease. While heartbeats are read
/// back, the lease continues until the stop timeout; if one is overdue, its end may come before.
fn sigkill_in(why: Why, timeout: Duration, lease_left: Option<Duration>, timings: &Timings) -> (Duration, bool) {
    // Two intervals after the last heartbeat that was read back was sent, the next one has been in flight for one interval.
    let of_overdue = timings.lease().saturating_sub(timings.heartbeat_interval() * 2);
    let at_lease_end = lease_left
        .filter(|left| why == Why::Fenced || *left < of_overdue)
        .map(|left| left.saturating_sub(timings.kill_margin()))
        .filter(|left| *left < timeout);
    at_lease_end.map_or((timeout, false), |left| (left, true))
}

/// How a command ended, as the continuation of a sentence.
fn how(end: &CommandEnd) -> String {
    match end {
        CommandEnd::Abandoned => "was ended with the job".to_owned(),
        CommandEnd::Exited(status) => format!("exited with status {status}"),
        CommandEnd::NoTime => "was not started, because the lease was about to end".to_owned(),
        CommandEnd::NotStarted(error) => format!("could not be started: {error}"),
        CommandEnd::Signaled(signal) => format!("was ended by {}", signal_name(*signal)),
        CommandEnd::TimedOut => "took too long and was killed".to_owned(),
        CommandEnd::Unanswered => "took too long, and the guard did not report its end".to_owned(),
    }
}

/// The event for brokers that do not answer.
pub(crate) fn of_outage(error: String, down: Duration) -> Event {
    Event::BrokerDown { error, down }
}

/// The leader, as far as it is known.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum KnownLeader {
    Named(Box<str>),
    /// It has missed three heartbeats.
    Silent(Box<str>),
    /// Kafka does not answer.
    NoAnswer,
    /// The journal was not read to its end.
    Unread,
    None,
}

/// Why the process exits with this status; `None` if it is the job's.
pub(crate) fn of_exit(status: ExitStatus, config: &Config, leader: &KnownLeader) -> Option<String> {
    let why = match status {
        ExitStatus::Answer(_) | ExitStatus::Job(_) | ExitStatus::Success => return None,
        ExitStatus::CannotRun | ExitStatus::NotFound => "the job can't be started".to_owned(),
        ExitStatus::Ended => "the election was ended".to_owned(),
        ExitStatus::Fenced => "fenced: the job was killed, since its right to run was over (--on-loss exit)".to_owned(),
        ExitStatus::LostKilled => {
            "the lead was lost, and the job killed at the stop timeout (--on-loss exit)".to_owned()
        }
        ExitStatus::LostStopped => "the lead was lost, and the job has stopped (--on-loss exit)".to_owned(),
        ExitStatus::NotElected => {
            let wait = spoken(config.wait.unwrap_or_default());
            let known = match leader {
                KnownLeader::Named(name) => format!("leader is {name}"),
                KnownLeader::Silent(name) => format!("{name} led, and is silent"),
                KnownLeader::NoAnswer => "Kafka does not answer".to_owned(),
                KnownLeader::Unread => "Kafka has not given the journal up to its end in that time".to_owned(),
                KnownLeader::None => "no leader is known".to_owned(),
            };
            format!("not elected within --wait {wait}; {known}")
        }
        ExitStatus::NotLeader => "not the leader".to_owned(),
        ExitStatus::Refused => "neli-run can't stand for election; the line above says why".to_owned(),
        ExitStatus::RestartLimit => "the job failed more often than --restart-limit allows".to_owned(),
        // A key that has failed keeps the status of its last run, which is not 0.
        ExitStatus::Skipped(status) => {
            let is_done = status == 0 || config.once.as_ref().is_some_and(|once| once.done_status == status);
            let key = if is_done { "the key is done" } else { "the key has failed, and no retries are left" };
            format!("{key} (--once, --window)")
        }
        ExitStatus::Stopped(signal) => {
            let signal = signal_name(signal.into());
            // With several roles the highest status counts: a job of another role may have run.
            if config.roles.is_some() {
                format!("stopped by {signal} while at least one role had no job here")
            } else if config.once.as_ref().is_some_and(|once| !matches!(once.occasion, Occasion::Schedule(..))) {
                // A job that was asked to stop may have ended with 0, and that status would mean that the key is done.
                format!("stopped by {signal} before the key was known to be done (--once, --window)")
            } else {
                format!("stopped by {signal} while no job ran")
            }
        }
        ExitStatus::Unkillable => {
            "a process of the job, or its guard, can't be killed; the term was not released".to_owned()
        }
    };
    Some(why)
}

/// The warning about a job that is run again although its end may have been the container's stop.
pub(crate) fn of_container_signal(signal: i32) -> String {
    let (name, option) = (signal_name(signal), signal_name(signal).replacen("SIG", "", 1));
    format!(
        "the job has ended after {name}, which process 1 of this container got and passed on, and it is run again; if the container was to \
         stop (STOPSIGNAL {name} of its image), neli-run is killed with the job soon: set --stop-signal {option}"
    )
}

/// The warning about an append that Kafka refuses.
pub(crate) fn of_group_refusal(elector: Elector, error: &str) -> String {
    let meanwhile = match elector {
        Elector::Group(Patience::Never) => "this candidate claims nothing (--patience never); if it leads, it leads on",
        Elector::Group(Patience::For(_)) | Elector::Log => {
            "this candidate goes on without precedence: it claims and leads as with --elect log"
        }
    };
    format!("{error}; until the group takes it, {meanwhile}")
}

/// The warning about records that Kafka does not append.
pub(crate) fn of_refused_append(topic: &str, error: &str) -> String {
    format!(
        "topic {topic:?}: Kafka does not append this candidate's records, so it can't lead; it tries again until \
         Kafka does: {error}"
    )
}

fn warning(message: &str) -> Event {
    Event::Warning { message: message.to_owned(), dropped: None }
}

/// The event for a standby. `claim` is when the candidate claims, if that is known and worth reporting.
fn of_standby(standby: Option<StandbyReason>, claim: Option<Due>) -> Event {
    let Some(StandbyReason { leader, term, why }) = standby else {
        return Event::Standby { leader: None, term: None, why: None, claim: None };
    };
    let shown = why.and_then(|why| match why {
        Waiting::Answer => Some("nobody leads; a candidate of this group has --roles, and may refuse this one"),
        Waiting::BackingOff => Some("nobody leads; its last runs failed, so others may claim first"),
        Waiting::CoolingOff => Some("it has stood down, and lets another lead first"),
        Waiting::Led => None,
        Waiting::NoGuard => Some("nobody leads; no guard lives here, so this candidate claims nothing until one does"),
        Waiting::Precedence => Some("nobody leads; others may claim first"),
        Waiting::Cut => Some("leader unknown, because the topic's records were cut, or it was made anew"),
        Waiting::Undecided => Some("leader unknown"),
    });
    let claim = claim.filter(|_| shown.is_some());
    Event::Standby { leader: leader.map(Into::into), term, why: shown.map(str::to_owned), claim }
}

fn somebody(name: Option<Box<str>>) -> String {
    name.map_or_else(|| "somebody".to_owned(), Into::into)
}

fn text(text: Option<Box<str>>) -> String {
    text.map_or_else(String::new, Into::into)
}

#[cfg(test)]
mod tests {
    use neli_proto::candidate::{Durations, Elector};

    use super::*;

    #[test]
    fn the_lease_s_end_is_the_reason_for_sigkill_only_if_a_heartbeat_is_overdue() {
        let ms = Duration::from_millis;
        let durations = Durations {
            lease: ms(5_000),
            heartbeat_interval: ms(1_000),
            kill_margin: ms(100),
            fence_warning: ms(1_500),
            claim_delay: Duration::ZERO,
            preempt_after: None,
            overlap: None,
        };
        let timings = Timings::new(durations, Elector::Log).unwrap();
        let shown = |why, timeout, left| sigkill_in(why, ms(timeout), Some(ms(left)), &timings);
        for why in [Why::Stopped, Why::Resigned, Why::Unhealthy] {
            assert_eq!(shown(why, 8_000, 1_450), (ms(1_350), true), "{why}");
            assert_eq!(shown(why, 8_000, 2_999), (ms(2_899), true), "{why}");
            assert_eq!(shown(why, 8_000, 3_000), (ms(8_000), false), "{why}: heartbeats come back");
            assert_eq!(shown(why, 1_350, 1_450), (ms(1_350), false), "{why}: the stop timeout is over first");
            assert_eq!(shown(why, 8_000, 50), (ms(0), true), "{why}");
        }
        assert_eq!(shown(Why::Fenced, 8_000, 4_000), (ms(3_900), true));
        assert_eq!(sigkill_in(Why::Fenced, ms(8_000), None, &timings), (ms(8_000), false));
    }
}
