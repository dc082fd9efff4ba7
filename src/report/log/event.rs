//! What is logged: one variant an event, with its level and its fields.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::report::log::line::{Due, LONGEST_FIELD};
use crate::text::cut;

/// Whose status `neli-run` exits with.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub enum From {
    /// The job's.
    #[serde(rename = "job")]
    Job,
    /// Its own.
    #[serde(rename = "neli-run")]
    NeliRun,
}

/// Something that happened. A term is the offset of the claim that won it; `why` is one of the protocol's reasons where it
/// has one, else free text.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Event {
    /// The group gives the partition, and with it precedence, to this candidate.
    Assigned {
        /// The partition.
        partition: i32,
        /// It leads already: that changes nothing.
        #[serde(skip)]
        leads: bool,
    },
    /// Kafka does not answer; at once, then every 30 s.
    BrokerDown {
        /// The client's message.
        #[serde(serialize_with = "shortened")]
        error: String,
        /// For how long, by now.
        #[serde(rename = "down_ms", serialize_with = "milliseconds")]
        down: Duration,
    },
    /// Kafka answers again.
    BrokerUp {
        /// How long it did not.
        #[serde(rename = "down_ms", serialize_with = "milliseconds")]
        down: Duration,
    },
    /// A claim was sent.
    Claiming {
        /// The offset up to which everything was judged.
        after: i64,
    },
    /// A detail for finding the cause of something else.
    Debug {
        /// The message.
        #[serde(serialize_with = "shortened")]
        message: String,
    },
    /// An operator ended the election.
    Ended {
        /// The operator's name.
        by: String,
        /// Why, as the operator wrote it.
        #[serde(serialize_with = "shortened")]
        reason: String,
    },
    /// Something that keeps this candidate from its work.
    Error {
        /// The message.
        #[serde(serialize_with = "shortened")]
        message: String,
    },
    /// The last line.
    Exiting {
        /// The exit status.
        status: u8,
        /// Whether it is the job's or that of `neli-run`.
        from: From,
        /// The reason, if it is not the job's.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// Heartbeats are not read back, or do not extend the lease: the job was asked to stop.
    FenceWarning {
        /// The term.
        term: i64,
        /// How much of the lease is left.
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
    /// The right to run is over, and the job's tree has been killed for it.
    Fenced {
        /// The term.
        term: i64,
        /// What ended it.
        why: String,
        /// How much of the lease was left.
        #[serde(rename = "left_ms", serialize_with = "milliseconds")]
        left: Duration,
        /// How long after the lease's end something of the job was still alive, if anything was.
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
        /// How long it ran.
        #[serde(rename = "ran_ms", serialize_with = "milliseconds")]
        ran: Duration,
        /// It was not asked to end.
        #[serde(skip)]
        by_itself: bool,
    },
    /// SIGKILL to whatever was left of the job's tree.
    JobKilled {
        /// The term.
        term: i64,
        /// What for.
        why: String,
    },
    /// The job runs.
    JobStarted {
        /// The term.
        term: i64,
        /// Its process id.
        pid: u32,
        /// 1 for the first run in this term.
        attempt: u32,
        /// The start of the window that it is for, where it is for one.
        #[serde(skip_serializing_if = "Option::is_none")]
        window: Option<String>,
    },
    /// This candidate leads.
    Leading {
        /// The term: the fencing token.
        term: i64,
    },
    /// HTTP is served: `--listen`.
    Listening {
        /// Its address, with the port.
        address: String,
    },
    /// A message of librdkafka's.
    Librdkafka {
        /// What it calls the matter.
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
        /// This candidate's.
        own: u16,
    },
    /// `--once` or `--window`: the key needs no run.
    OnceSkipped {
        /// The key.
        key: String,
        /// The key of the newer window that was run, where it is not this one.
        #[serde(skip_serializing_if = "Option::is_none")]
        newer: Option<String>,
        /// The candidate that has run it.
        by: String,
        /// Under which term.
        term: i64,
        /// When it ended, by the runner's wall clock, when known.
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<String>,
        /// The run's exit status.
        exit: u8,
        /// How long it ran, when known.
        #[serde(rename = "ran_ms", skip_serializing_if = "Option::is_none", serialize_with = "milliseconds_if_any")]
        ran: Option<Duration>,
        /// It has succeeded; else it has failed, and no retries are left.
        done: bool,
    },
    /// `--overlap`: another's claim took effect, and both jobs run for a while.
    Overlapped {
        /// Our term.
        term: i64,
        /// The other's term.
        by_term: i64,
        /// The other's name.
        leader: String,
        /// From now to SIGKILL, at most.
        #[serde(rename = "within_ms", serialize_with = "milliseconds")]
        within: Duration,
    },
    /// The term was given back: nothing of the job is left.
    Released {
        /// The term.
        term: i64,
        /// Why it ended.
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
        /// Why, as the operator wrote it.
        #[serde(serialize_with = "shortened")]
        reason: String,
    },
    /// The job has ended, and is run again under the same term.
    Restarting {
        /// The term.
        term: i64,
        /// The number of the next run in this term.
        attempt: u32,
        /// From now to its start.
        #[serde(rename = "delay_ms", serialize_with = "milliseconds")]
        delay: Duration,
    },
    /// The group took the partition away.
    Revoked {
        /// The session expired or the coordinator is out of reach; else the group gave it to another.
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
    /// Standing by begins, or another leads.
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
        /// When it claims, unless another candidate claims or is received before.
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
        /// The random id of this run.
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
        /// What for.
        why: String,
        /// The stop signal.
        signal: i32,
        /// From now to SIGKILL.
        #[serde(rename = "timeout_ms", serialize_with = "milliseconds")]
        timeout: Duration,
        /// It comes then because the lease ends, and not because `--stop-timeout` is over.
        #[serde(skip)]
        at_lease_end: bool,
    },
    /// Another's claim took effect while we held a term.
    Superseded {
        /// Our term.
        term: i64,
        /// The other's term, when known.
        #[serde(skip_serializing_if = "Option::is_none")]
        by_term: Option<i64>,
        /// The other's name.
        leader: String,
    },
    /// The topic was missing, and was created from here. How many replicas it has stays so, however many brokers come later.
    TopicCreated {
        /// The journal's topic.
        topic: String,
        /// How many replicas each of its partitions has.
        replicas: usize,
        /// How many brokers of the cluster were up.
        brokers: usize,
    },
    /// The health command has failed so often in a row that another machine is to try.
    Unhealthy {
        /// The term.
        term: i64,
        /// How often.
        failures: u32,
        /// How it ended at last.
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
        /// How many log lines were lost here.
        #[serde(skip_serializing_if = "Option::is_none")]
        dropped: Option<u64>,
    },
    /// `--schedule`: nothing is left to be run before the next window.
    WindowAwaited {
        /// When that begins.
        next: String,
    },
    /// `--schedule`: the job is not run for the windows between these times.
    WindowSkipped {
        /// When the first begins.
        from: String,
        /// When the last ends.
        until: String,
        /// `clock-set`, `nobody-led`, `overrun` or `unfinished`.
        why: String,
        /// Whose run was not finished.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// `--overlap`: the leader is to stop, and its job runs on until another has claimed.
    Yielding {
        /// The term.
        term: i64,
        /// What for.
        why: String,
        /// For how long at most.
        #[serde(rename = "patience_ms", serialize_with = "milliseconds")]
        patience: Duration,
    },
}

fn milliseconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Rounded up, so that a lateness is never shown as 0.
#[expect(clippy::ref_option, reason = "serde hands a field over by reference")]
fn milliseconds_if_any<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|duration| duration.as_nanos().div_ceil(1_000_000)).serialize(serializer)
}

fn shortened<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(cut(text, LONGEST_FIELD))
}
