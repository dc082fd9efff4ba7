//! The events of the log: one variant for each, with its level and its fields.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::report::log::line::{Due, LONGEST_FIELD};
use crate::text::cut;
use neli_proto::time::millis;

/// The source of the exit status.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub enum From {
    /// The job.
    #[serde(rename = "job")]
    Job,
    /// `neli-run` itself.
    #[serde(rename = "neli-run")]
    NeliRun,
}

/// An event of the log. A term is the offset of the claim that won it. `why` is one of the protocol's reasons if there is one, otherwise
/// free text.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Event {
    /// The group assigns the partition, and with it precedence, to this candidate.
    Assigned {
        /// The partition.
        partition: i32,
        /// It leads already, so that nothing changes.
        #[serde(skip)]
        leads: bool,
    },
    /// Kafka does not answer. Logged at once, then every 30 s.
    BrokerDown {
        /// The client's message.
        #[serde(serialize_with = "shortened")]
        error: String,
        /// Time for which it has not answered.
        #[serde(rename = "down_ms", serialize_with = "milliseconds")]
        down: Duration,
    },
    /// Kafka answers again.
    BrokerUp {
        /// Time for which it did not answer.
        #[serde(rename = "down_ms", serialize_with = "milliseconds")]
        down: Duration,
    },
    /// A claim was sent.
    Claiming {
        /// The offset up to which all records were judged.
        after: i64,
    },
    /// A detail that helps to find the cause of a problem.
    Debug {
        /// The message.
        #[serde(serialize_with = "shortened")]
        message: String,
    },
    /// An operator ended the election.
    Ended {
        /// The operator's name.
        by: String,
        /// The reason that the operator gave.
        #[serde(serialize_with = "shortened")]
        reason: String,
    },
    /// A problem that keeps this candidate from its work.
    Error {
        /// The message.
        #[serde(serialize_with = "shortened")]
        message: String,
    },
    /// The last line.
    Exiting {
        /// The exit status.
        status: u8,
        /// `job` if it is the job's status, otherwise `neli-run`.
        from: From,
        /// The reason, if it is not the job's.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// Heartbeats are not read back, or do not extend the lease: the job was asked to stop.
    FenceWarning {
        /// The term.
        term: i64,
        /// Time that is left of the lease.
        #[serde(rename = "left_ms", serialize_with = "milliseconds")]
        left: Duration,
        /// No heartbeat that was sent in this time has extended the lease.
        #[serde(rename = "silent_ms", serialize_with = "milliseconds")]
        silent: Duration,
        /// For how long no broker has confirmed the topic's id, if heartbeats came back and did not extend the lease for that reason.
        #[serde(
            rename = "unconfirmed_ms",
            skip_serializing_if = "Option::is_none",
            serialize_with = "milliseconds_if_any"
        )]
        unconfirmed: Option<Duration>,
    },
    /// The lease is over or the lead is lost, and the job's tree was killed for it.
    Fenced {
        /// The term.
        term: i64,
        /// The reason.
        why: String,
        /// Time that was left of the lease.
        #[serde(rename = "left_ms", serialize_with = "milliseconds")]
        left: Duration,
        /// How long after the lease's end a process of the job was alive.
        #[serde(rename = "late_ms", skip_serializing_if = "Option::is_none", serialize_with = "milliseconds_if_any")]
        late: Option<Duration>,
    },
    /// The guard is gone; another is started.
    GuardLost {
        /// The guard's process id.
        pid: i32,
    },
    /// A hook failed, or took too long.
    HookFailed {
        /// `lead`, `standby` or `fence`.
        hook: String,
        /// How it ended.
        #[serde(serialize_with = "shortened")]
        reason: String,
    },
    /// The job's main process ended.
    JobExited {
        /// The term.
        term: i64,
        /// Its status; 128 + n when signal n killed it.
        status: u8,
        /// The signal that killed it.
        signal: Option<i32>,
        /// Time for which it ran.
        #[serde(rename = "ran_ms", serialize_with = "milliseconds")]
        ran: Duration,
        /// Whether it ended without a stop signal.
        #[serde(skip)]
        by_itself: bool,
    },
    /// All processes that were left of the job's tree got SIGKILL.
    JobKilled {
        /// The term.
        term: i64,
        /// The reason.
        why: String,
    },
    /// The job runs.
    JobStarted {
        /// The term.
        term: i64,
        /// Its process id.
        pid: u32,
        /// 1, and 1 more for each failed run before it: of its key or window, else since the last success in this term.
        attempt: u32,
        /// The start of its window, if it has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        window: Option<String>,
    },
    /// This candidate leads.
    Leading {
        /// The term: the fencing token.
        term: i64,
    },
    /// The server of `--listen` is ready.
    Listening {
        /// Its address, with the port.
        address: String,
    },
    /// A message of librdkafka.
    Librdkafka {
        /// The facility that it names.
        facility: String,
        /// The message.
        #[serde(serialize_with = "shortened")]
        message: String,
    },
    /// A leader of lower priority was asked to stand down: `--preempt`.
    Preempting {
        /// Its term.
        term: i64,
        /// Its priority.
        priority: u16,
        /// This candidate's priority.
        own: u16,
    },
    /// `--once` or `--window`: the key needs no run.
    OnceSkipped {
        /// The key.
        key: String,
        /// The key of the newer window that was run, if it is not this one.
        #[serde(skip_serializing_if = "Option::is_none")]
        newer: Option<String>,
        /// The candidate that has run it.
        by: String,
        /// Its term.
        term: i64,
        /// When the run ended, by that candidate's wall clock, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<String>,
        /// The run's exit status.
        exit: u8,
        /// Time for which it ran, if known.
        #[serde(rename = "ran_ms", skip_serializing_if = "Option::is_none", serialize_with = "milliseconds_if_any")]
        ran: Option<Duration>,
        /// Whether it has succeeded; otherwise it has failed, and no retry is left.
        done: bool,
        /// Whether it is a window, and not a key of `--once`.
        #[serde(skip)]
        is_window: bool,
    },
    /// `--overlap`: another candidate's claim took effect, and both jobs run for a while.
    Overlapped {
        /// This candidate's term.
        term: i64,
        /// The other candidate's term.
        by_term: i64,
        /// The other candidate's name.
        leader: String,
        /// The longest time from now to SIGKILL.
        #[serde(rename = "within_ms", serialize_with = "milliseconds")]
        within: Duration,
    },
    /// The term was released, because no process of the job is left.
    Released {
        /// The term.
        term: i64,
        /// The reason.
        why: String,
        /// Whether Kafka has acknowledged it.
        delivered: bool,
    },
    /// An operator asked this leader to stand down.
    Resigned {
        /// The term.
        term: i64,
        /// The operator's name.
        by: String,
        /// The reason that the operator gave.
        #[serde(serialize_with = "shortened")]
        reason: String,
    },
    /// The job has ended, and will run again under the same term.
    Restarting {
        /// The term.
        term: i64,
        /// The next run's: 1, and 1 more for each failed run before it.
        attempt: u32,
        /// From now to its start.
        #[serde(rename = "delay_ms", serialize_with = "milliseconds")]
        delay: Duration,
    },
    /// The group took the partition away.
    Revoked {
        /// Whether the session expired or the coordinator can't be reached; otherwise the group assigned it to another member.
        lost: bool,
    },
    /// The lead was won, and its job waits: `--settle`.
    Settling {
        /// The term.
        term: i64,
        /// From now to the job's start.
        #[serde(rename = "delay_ms", serialize_with = "milliseconds")]
        delay: Duration,
    },
    /// This candidate stands by, or another one leads.
    Standby {
        /// The leader, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        leader: Option<String>,
        /// The leader's term.
        #[serde(skip_serializing_if = "Option::is_none")]
        term: Option<i64>,
        /// Why this candidate may not claim yet.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// When it claims, unless a record of another candidate is read before.
        #[serde(rename = "claim_at", skip_serializing_if = "Option::is_none")]
        claim: Option<Due>,
    },
    /// The first line.
    Started {
        /// This program's version.
        version: String,
        /// `--name`, which is in every line.
        #[serde(skip)]
        name: String,
        /// The random id of this candidate.
        member: String,
        /// The journal's topic.
        topic: String,
        /// `group` or `log`.
        elect: String,
        /// The lease.
        #[serde(rename = "lease_ms", serialize_with = "milliseconds")]
        lease: Duration,
    },
    /// The job is asked to stop.
    Stopping {
        /// The term.
        term: i64,
        /// The reason.
        why: String,
        /// The stop signal; `None` if its run may finish (`--stop-signal none`).
        signal: Option<i32>,
        /// From now to SIGKILL.
        #[serde(rename = "timeout_ms", serialize_with = "milliseconds")]
        timeout: Duration,
        /// Whether SIGKILL comes at that time because the lease ends, and not because `--stop-timeout` is over.
        #[serde(skip)]
        at_lease_end: bool,
    },
    /// Another candidate's claim took effect while this one held a term.
    Superseded {
        /// This candidate's term.
        term: i64,
        /// The other candidate's term, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        by_term: Option<i64>,
        /// The other candidate's name.
        leader: String,
    },
    /// The topic was missing, and this candidate created it. Brokers that are added later do not change its number of replicas.
    TopicCreated {
        /// The journal's topic.
        topic: String,
        /// Number of replicas of each of its partitions.
        replicas: usize,
        /// Number of brokers of the cluster that were up.
        brokers: usize,
    },
    /// The health command has failed `--health-failures` times in a row, so another machine must try.
    Unhealthy {
        /// The term.
        term: i64,
        /// Number of failures in a row.
        failures: u32,
        /// How the last health command ended.
        #[serde(serialize_with = "shortened")]
        reason: String,
        /// The last line of its output.
        #[serde(serialize_with = "shortened")]
        line: String,
    },
    /// A warning.
    Warning {
        /// The message.
        #[serde(serialize_with = "shortened")]
        message: String,
        /// Number of log lines that were lost here.
        #[serde(skip_serializing_if = "Option::is_none")]
        dropped: Option<u64>,
    },
    /// `--schedule`: the leader waits for the next window.
    WindowAwaited {
        /// The start of that window.
        next: String,
    },
    /// `--schedule`: the job is not run for the windows between these times.
    WindowSkipped {
        /// The start of the first window.
        from: String,
        /// The end of the last window.
        until: String,
        /// `clock-set`, `nobody-led`, `overrun` or `unfinished`.
        why: String,
        /// The candidate whose run was not finished.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// `--overlap`: the leader must stop, and its job continues until another candidate has claimed.
    Yielding {
        /// The term.
        term: i64,
        /// The reason.
        why: String,
        /// The longest time for which the job continues.
        #[serde(rename = "patience_ms", serialize_with = "milliseconds")]
        patience: Duration,
    },
}

fn milliseconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(millis(*duration))
}

/// Serializes a duration in milliseconds, rounded up, so that a lateness is never shown as 0.
#[expect(clippy::ref_option, reason = "serde hands a field over by reference")]
fn milliseconds_if_any<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|duration| duration.as_nanos().div_ceil(1_000_000)).serialize(serializer)
}

fn shortened<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(cut(text, LONGEST_FIELD))
}
