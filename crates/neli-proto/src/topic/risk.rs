//! The risks of a topic that is not refused.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;

/// A property of a topic that may lose records.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Risk {
    /// `min.compaction.lag.ms` of a topic of facts about windows.
    CompactionLagOfFacts {
        /// Its value, in milliseconds.
        actual: i64,
        /// The least right value, in milliseconds.
        wanted: i64,
    },
    /// The broker does not show these settings.
    Hidden(Vec<&'static str>),
    /// `min.insync.replicas`.
    MinInsyncReplicas(u32),
    /// The partition has one replica.
    OneReplica {
        /// The number of replicas that the partition could have.
        brokers: usize,
        /// The commands that give the partition more replicas, for a shell with Kafka's own tools.
        command: String,
    },
    /// `retention.bytes`.
    RetentionBytes(i64),
    /// `retention.ms` of a topic of facts.
    RetentionOfFacts {
        /// Its value, in milliseconds.
        actual: i64,
        /// The least right value, in milliseconds.
        wanted: i64,
    },
    /// `message.timestamp.type`.
    TimestampType(String),
    /// `unclean.leader.election.enable` of a journal.
    UncleanLeaderElection,
    /// `unclean.leader.election.enable` of a topic of facts.
    UncleanLeaderElectionOfFacts,
    /// None of its settings could be read.
    Unread(String),
}

impl Risk {
    /// The setting to alter, under Kafka's name for it.
    #[must_use]
    pub const fn setting(&self) -> Option<&'static str> {
        match self {
            Self::Hidden(_) | Self::OneReplica { .. } | Self::Unread(_) => None,
            Self::CompactionLagOfFacts { .. } => Some("min.compaction.lag.ms"),
            Self::MinInsyncReplicas(_) => Some("min.insync.replicas"),
            Self::RetentionBytes(_) => Some("retention.bytes"),
            Self::RetentionOfFacts { .. } => Some("retention.ms"),
            Self::TimestampType(_) => Some("message.timestamp.type"),
            Self::UncleanLeaderElection | Self::UncleanLeaderElectionOfFacts => Some("unclean.leader.election.enable"),
        }
    }
}

/// Shows the value, what may be lost, and the right value; without the command of [`Risk::OneReplica`].
impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CompactionLagOfFacts { actual, wanted } => write!(
                f,
                "min.compaction.lag.ms={actual}: a late record of an earlier window's run may hide that the present window is done, and it \
                 runs again; a window's length ({wanted}) or more is right"
            ),
            Self::Hidden(names) => write!(
                f,
                "the broker does not show {}: whether it keeps its records is judged by the other settings alone",
                names.join(", ")
            ),
            Self::MinInsyncReplicas(least) => {
                write!(f, "min.insync.replicas={least}: records that were read may be lost with one broker; 2 is right")
            }
            Self::OneReplica { brokers, .. } => write!(
                f,
                "it has one replica, though there are {brokers} brokers (it was created while one was up, or by \
                 hand): without that broker nobody can lead"
            ),
            Self::RetentionBytes(bytes) => {
                write!(f, "retention.bytes={bytes}: a living leader's records may be cut; -1 is right")
            }
            Self::RetentionOfFacts { actual, wanted } => write!(
                f,
                "retention.ms={actual}: a key is forgotten, and runs again, earlier than --once-retention says ({wanted})"
            ),
            Self::TimestampType(clock) => write!(
                f,
                "message.timestamp.type={clock}: retention goes by the candidates' clocks, and a clock an hour ahead is \
                 refused; LogAppendTime is right"
            ),
            Self::UncleanLeaderElection => f.write_str(
                "unclean.leader.election.enable=true: records that were read may be lost, and two jobs may run; \
                 false is right",
            ),
            Self::UncleanLeaderElectionOfFacts => f.write_str(
                "unclean.leader.election.enable=true: a fact may be lost, and its key may run again; false is right",
            ),
            Self::Unread(reason) => write!(
                f,
                "its configuration can't be read ({reason}): whether it keeps its records is unknown; allow \
                 DESCRIBE_CONFIGS on it"
            ),
        }
    }
}

/// One warning about all risks, with the commands.
#[must_use]
pub fn warning(risks: &[Risk]) -> String {
    let text = |risk: &Risk| {
        if let Risk::OneReplica { command, .. } = risk {
            format!("{risk}; to fix it: {command}")
        } else {
            risk.to_string()
        }
    };
    risks.iter().map(text).collect::<Vec<_>>().join("; ")
}
