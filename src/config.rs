//! What a run is told, proven: arguments become a [`Config`] here, and every relation between options is proven here.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::logic::candidate::Timings;

/// Everything a candidate is told at its start.
#[derive(Clone, Debug)]
pub struct Config {
    /// The election.
    pub election: Election,
    /// How Kafka is reached.
    pub client: Client,
    /// Whether a missing topic is made.
    pub create_topic: bool,
    /// How this candidate is called.
    pub name: String,
    /// Who claims a vacancy first, and every duration of the protocol.
    pub timings: Timings,
    /// `--wait`: how long after the process's start it may take to lead for the first time.
    pub wait: Option<Duration>,
    /// The number of the signal that asks the job to stop.
    pub stop_signal: i32,
    /// From the stop signal to SIGKILL; zero is SIGKILL with no stop signal before it.
    pub stop_timeout: Duration,
    /// Where and how we log.
    pub log: Log,
    /// COMMAND and its arguments; never empty.
    pub command: Vec<OsString>,
}

/// One election: (topic, partition, key).
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Election {
    /// `--group`.
    pub group: String,
    /// `--topic`, or `<group>.neli`.
    pub topic: String,
    /// The partition; that of the role.
    pub partition: i32,
    /// The role; 0 until `--roles` comes.
    pub role: u32,
}

impl Election {
    /// The key of the election's records: `<group>/<role>`.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}/{}", self.group, self.role)
    }
}

/// How Kafka is reached.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Client {
    /// Where Kafka is.
    pub brokers: Brokers,
    /// librdkafka properties of the user's, in the order given (a later one wins); proven to be none that the protocol rests on.
    pub properties: Properties,
}

/// Where Kafka is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum Brokers {
    /// `--brokers`: bootstrap servers, as librdkafka takes them.
    At(String),
    /// `--embedded`: the small broker on this machine's loopback, found or started.
    Embedded,
}

/// librdkafka properties; some are secrets, so that none is ever shown.
#[derive(Clone, Default, Deserialize, Serialize)]
pub struct Properties(pub Vec<(String, String)>);

impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(key, _)| key)).finish()
    }
}

/// Where and how we log.
#[derive(Clone, Debug)]
pub struct Log {
    /// `--log-format`.
    pub format: LogFormat,
    /// `-q` is -1 (warnings and errors alone), `-v` is 1 (what librdkafka says, too), neither is 0.
    pub verbosity: i8,
    /// `--log-file`; stderr without it.
    pub file: Option<PathBuf>,
}

/// `--log-format`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// One sentence a line.
    Text,
}
