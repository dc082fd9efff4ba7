//! The log's events as sentences: what happened comes first, then why, then the numbers.

use std::time::Duration;

use neli_proto::record::Why;

use super::event::{Event, From};
use super::line::Due;
use super::line::time_of_day;
use crate::text::signal_name;

impl Event {
    /// The event as a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Assigned { partition, .. } => format!("preferred successor (partition {partition} assigned)"),
            Self::BrokerDown { error, down } => broker_down(error, *down),
            Self::BrokerUp { down } => format!("Kafka answers again, after {}", spoken(*down)),
            Self::Claiming { after: ..0 } => "claiming the lead (journal empty)".to_owned(),
            Self::Claiming { after } => format!("claiming the lead (journal read up to offset {after})"),
            Self::Ended { by, reason } => format!("the election was ended by {by}{}", with_reason(reason)),
            Self::Debug { message } | Self::Error { message } | Self::Warning { message, .. } => message.clone(),
            Self::Exiting { status, from, why } => exiting(*status, *from, why.as_deref()),
            Self::FenceWarning { term, left, unconfirmed: Some(time), .. } => format!(
                "heartbeats come back from Kafka, but no broker has confirmed for {} that the topic is still the same: the lease ends in {} \
                 unless one does (term {term})",
                spoken(*time),
                spoken(*left)
            ),
            Self::FenceWarning { term, left, silent, unconfirmed: None } => format!(
                "no heartbeat has come back from Kafka for {}: the lease ends in {} unless one does (term {term})",
                spoken(*silent),
                spoken(*left)
            ),
            Self::Fenced { term, why, left, late } => fenced(*term, why, *left, *late),
            Self::GuardLost { pid } => {
                format!("the guard (pid {pid}) died: no job runs without one, and another is started")
            }
            Self::HookFailed { hook, reason } => format!("the hook --on-{hook} {reason}"),
            Self::JobExited { status, signal, ran, .. } => job_exited(*status, *signal, *ran),
            Self::JobKilled { term, why } => {
                format!("killed all that was left of the job: {} (term {term})", because(why))
            }
            Self::JobStarted { term, pid, attempt, window } => job_started(*term, *pid, *attempt, window.as_deref()),
            Self::Leading { term } => format!("leading, term {term}"),
            Self::Listening { address } => format!("serving HTTP at http://{address}/"),
            Self::Librdkafka { facility, message } => format!("librdkafka: {facility}: {message}"),
            Self::Preempting { term, priority, own } => {
                format!(
                    "asking the leader to stand down: its priority is {priority}, and this candidate's is {own} (term {term})"
                )
            }
            Self::OnceSkipped { .. } => once_skipped(self),
            Self::Overlapped { term, by_term, leader, within } => overlapped(*term, *by_term, leader, *within),
            Self::Yielding { term, why, patience } => yielding(*term, why, *patience),
            Self::Released { term, why, delivered } => released(*term, why, *delivered),
            Self::Resigned { term, by, reason } => {
                format!("asked to stand down by {by}{} (term {term})", with_reason(reason))
            }
            Self::Restarting { term, attempt: 1, delay } => {
                format!("the job's next run begins in {} (term {term})", spoken(*delay))
            }
            Self::Restarting { term, attempt, delay } => {
                format!("running the job again in {} (term {term}, attempt {attempt})", spoken(*delay))
            }
            Self::Revoked { lost } => revoked(*lost).to_owned(),
            Self::Settling { term, delay } => {
                format!("the job starts in {} (--settle), and the lead is kept meanwhile (term {term})", spoken(*delay))
            }
            Self::Standby { leader, term, why, claim } => standby(leader.as_deref(), *term, why.as_deref(), *claim),
            Self::Started { version, name, topic, elect, lease, .. } => format!(
                "standing for election as {name} (version {version}, topic {topic}, --elect {elect}, lease {})",
                spoken(*lease)
            ),
            Self::Stopping { why, signal, timeout, at_lease_end, .. } => {
                stopping(why, *signal, *timeout, *at_lease_end)
            }
            Self::Superseded { term, by_term, leader } => superseded(*term, *by_term, leader),
            Self::TopicCreated { topic, replicas, brokers } => topic_created(topic, *replicas, *brokers),
            Self::Unhealthy { term, failures, reason, line } => {
                let checks = if *failures == 1 { "1 check".to_owned() } else { format!("{failures} checks in a row") };
                format!(
                    "job unhealthy: {checks} failed (last: the health command {reason}{}; term {term})",
                    with_reason(line)
                )
            }
            Self::WindowAwaited { next } => format!("the next window begins at {next}"),
            Self::WindowSkipped { from, until, by: Some(by), .. } => {
                format!(
                    "the run of {by} for the time from {from} to {until} was not finished, and is not begun again: that time is over"
                )
            }
            Self::WindowSkipped { from, until, why, by: None } => {
                format!("nothing is run for the time from {from} to {until}: {}", because(why))
            }
        }
    }
}

fn broker_down(error: &str, down: Duration) -> String {
    if down < Duration::from_secs(1) {
        return format!("Kafka does not answer: {error}; waiting");
    }
    format!("Kafka has not answered for {}: {error}; waiting", spoken(down))
}

fn exiting(status: u8, from: From, why: Option<&str>) -> String {
    match from {
        From::Job => format!("exiting {status}: the job's status"),
        From::NeliRun => format!("exiting {status}{}", why.map_or_else(String::new, |why| format!(": {why}"))),
    }
}

fn job_exited(status: u8, signal: Option<i32>, ran: Duration) -> String {
    let ran = spoken(ran);
    match signal {
        None => format!("the job exited with status {status} after {ran}"),
        Some(signal) => format!("the job was ended by {} after {ran} (status {status})", signal_name(signal)),
    }
}

fn released(term: i64, why: &str, delivered: bool) -> String {
    let why = because(why);
    if delivered {
        return format!("released term {term}: {why}");
    }
    format!("released term {term}: {why}; Kafka has not confirmed it, so the others may have to wait out the lease")
}

const fn revoked(lost: bool) -> &'static str {
    if lost {
        "no longer in the consumer group (session expired, or its coordinator is out of reach); a leader keeps the \
         lead, because the journal decides"
    } else {
        "the consumer group has chosen another candidate"
    }
}

fn superseded(term: i64, by_term: Option<i64>, leader: &str) -> String {
    let by_term = by_term.map_or_else(String::new, |term| format!(" with term {term}"));
    format!(
        "superseded: {leader} leads{by_term}, though term {term} was not over here: killing the job; check whether \
         a machine's clock ran at a wrong rate, or a machine was paused"
    )
}

/// The sentence about a key that needs no run.
fn once_skipped(event: &Event) -> String {
    let Event::OnceSkipped { key, newer, by, term, at, exit, ran, done, is_window } = event else {
        return String::new();
    };
    let at = at.as_ref().map_or_else(String::new, |at| format!(" at {at}"));
    let ran = ran.map_or_else(String::new, |ran| format!(" after {}", spoken(ran)));
    let (how, end) = match (done, is_window) {
        (true, _) => ("was done by", ""),
        (false, true) => {
            ("failed, run by", "; no retries are left; neli-run forget --newest-window makes it run again")
        }
        (false, false) => ("failed, run by", "; no retries are left; neli-run forget --once makes it run again"),
    };
    let key = newer.as_ref().map_or_else(|| key.clone(), |newer| format!("{key} is over: {newer}"));
    format!("{key} {how} {by}{at} (term {term}, exit {exit}{ran}){end}")
}

fn stopping(why: &str, signal: Option<i32>, timeout: Duration, at_lease_end: bool) -> String {
    if timeout.is_zero() {
        return format!("killing the job: {}", because(why));
    }
    let is_fence = why == Why::Fenced.as_str();
    let end = match (at_lease_end, is_fence) {
        (true, true) => ", at the lease's end",
        (true, false) => ", at the lease's end, unless a heartbeat comes back from Kafka",
        (false, _) => "",
    };
    let why = if at_lease_end && is_fence { "no heartbeat extends the lease" } else { because(why) };
    let timeout = spoken(timeout);
    match signal {
        Some(signal) => format!("stopping the job: {why}; {} now, SIGKILL in {timeout}{end}", signal_name(signal)),
        None => format!("letting the job's run finish (--stop-signal none): {why}; SIGKILL in {timeout}{end}"),
    }
}

fn overlapped(term: i64, by_term: i64, leader: &str, within: Duration) -> String {
    let within = spoken(within);
    format!(
        "{leader} leads with term {by_term}: the job of term {term} runs on beside its job for {within} at most (--overlap)"
    )
}

fn yielding(term: i64, why: &str, patience: Duration) -> String {
    let (why, patience) = (because(why), spoken(patience));
    format!("{why}: the job runs on until another has claimed, for {patience} at most (--overlap, term {term})")
}

/// The protocol's reason in the words of a sentence; any other text is unchanged.
#[must_use]
pub fn because(why: &str) -> &str {
    match why {
        "departed" => "its program has left the election",
        "ended" => "the election was ended",
        "exited" => "the job has ended",
        "facts-unavailable" => "the facts of the key can't be read or written",
        "failed" => "the job has failed, and is to be tried again",
        "fenced" => "the lease ran out",
        "guard-died" => "the guard died",
        "history-cut" => "the topic's records were cut, or it was made anew",
        "nobody-led" => "nobody led then",
        "overrun" => "the previous run was still going on at its start",
        "refused" => "this candidate can't stand for election any more",
        "resigned" => "it was asked to stand down",
        "restart-limit" => "the job failed too often",
        "revoked" => "the consumer group has chosen another candidate",
        "clock-set" => "this machine's clock was set forward over it, or neli-run was stopped then",
        "claim-expired" => "the claim took effect too late to be used",
        "skipped" => "the key needs no run",
        "stopped" => "a signal to neli-run",
        "superseded" => "another candidate's claim took effect",
        "left" => "the process has left this role",
        "spread" => "moved for a fair share",
        "supervisor-died" => "neli-run died",
        "suspended" => "Ctrl-Z",
        "unhealthy" => "the health command failed",
        other => other,
    }
}

fn standby(leader: Option<&str>, term: Option<i64>, why: Option<&str>, claim: Option<Due>) -> String {
    let leader = leader.map_or_else(String::new, |leader| format!(": {leader} leads"));
    let term = term.map_or_else(String::new, |term| format!(" (term {term})"));
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    let claim = claim.map_or_else(String::new, |claim| {
        let left = Duration::from_secs(claim.left.as_secs() + u64::from(claim.left.subsec_nanos() > 0));
        format!(
            "; claiming at {} (in {}) unless another leader's record comes before",
            time_of_day(claim.wall_ms),
            spoken(left)
        )
    });
    format!("standing by{leader}{term}{why}{claim}")
}

fn topic_created(topic: &str, replicas: usize, brokers: usize) -> String {
    let few = if replicas < 3 {
        "; brokers that are added later get no replica, and a warning at the next start then says how to add one"
    } else {
        ""
    };
    format!(
        "created the topic {topic:?} with {} ({} up){few}",
        counted(replicas, "replica", "replicas"),
        counted(brokers, "broker", "brokers")
    )
}

/// A number with its noun.
fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

fn job_started(term: i64, pid: u32, attempt: u32, window: Option<&str>) -> String {
    let window = window.map_or_else(String::new, |window| format!(", window {window}"));
    if attempt == 1 {
        format!("the job runs, pid {pid} (term {term}{window})")
    } else {
        format!("the job runs again, pid {pid} (term {term}, attempt {attempt}{window})")
    }
}

fn fenced(term: i64, why: &str, left: Duration, late: Option<Duration>) -> String {
    let why = because(why);
    match late {
        // When the last process ended is not known, because this process or its guard came late.
        None if left.is_zero() => format!("fenced, {why}: nothing of the job is left (term {term})"),
        None => {
            format!("fenced, {why}: nothing of the job is left, {} before the lease's end (term {term})", spoken(left))
        }
        Some(late) => format!(
            "fenced too late, {why}: a process of the job may have been alive until {} after the lease's end, and \
             another candidate's job may have run beside it (term {term}); check what they wrote, and find out why \
             this machine killed too late",
            spoken(late.max(Duration::from_millis(1)))
        ),
    }
}

fn with_reason(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

/// A duration for users: `40ms`, `1.25s`, `2m 5s`.
#[must_use]
pub fn spoken(duration: Duration) -> String {
    match duration.as_millis() {
        ms @ 0..1_000 => format!("{ms}ms"),
        ms @ 1_000..60_000 => {
            let digits = format!("{}.{:03}", ms / 1_000, ms % 1_000);
            format!("{}s", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => humantime::format_duration(Duration::from_secs(duration.as_secs())).to_string(),
    }
}

#[cfg(test)]
mod tests;
