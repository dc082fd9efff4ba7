//! The reasons for the end of a term, and their names in releases and in the log.

use core::fmt;

use serde::Deserialize;
use serde::de::value::{self, StrDeserializer};

/// Why a term ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The claim was read back only after its lease had ended.
    ClaimExpired,
    /// The process has left all its elections, as its program wanted.
    Departed,
    /// The election was ended.
    Ended,
    /// The job ended by itself.
    Exited,
    /// `--once`: the key's facts can't be read or written.
    FactsUnavailable,
    /// `--once`: the job has failed and must be tried again.
    Failed,
    /// The lease ran out.
    Fenced,
    /// The guard died.
    GuardDied,
    /// The process has left this role's election, and stands for others.
    Left,
    /// Kafka refuses this candidate for good, or no guard can be started on its machine.
    Refused,
    /// An operator asked the leader to resign.
    Resigned,
    /// The job failed too often.
    RestartLimit,
    /// The group took the partition away.
    Revoked,
    /// `--once`: the key needs no run.
    Skipped,
    /// The candidate led more roles than its share, and hands this one over.
    Spread,
    /// `neli-run` received a signal to stop.
    Stopped,
    /// The supervisor died, and its guard wrote the release.
    SupervisorDied,
    /// The process was suspended (SIGTSTP).
    Suspended,
    /// The health command failed too often.
    Unhealthy,
}

impl Why {
    /// The reason with this name; `None` if this version does not know it.
    pub fn parse(word: &str) -> Option<Self> {
        Self::deserialize(StrDeserializer::<value::Error>::new(word)).ok()
    }

    /// The name in records and in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClaimExpired => "claim-expired",
            Self::Departed => "departed",
            Self::Ended => "ended",
            Self::Exited => "exited",
            Self::FactsUnavailable => "facts-unavailable",
            Self::Failed => "failed",
            Self::Fenced => "fenced",
            Self::GuardDied => "guard-died",
            Self::Left => "left",
            Self::Refused => "refused",
            Self::Resigned => "resigned",
            Self::RestartLimit => "restart-limit",
            Self::Revoked => "revoked",
            Self::Skipped => "skipped",
            Self::Spread => "spread",
            Self::Stopped => "stopped",
            Self::SupervisorDied => "supervisor-died",
            Self::Suspended => "suspended",
            Self::Unhealthy => "unhealthy",
        }
    }

    /// Whether the writer of the release has left or will leave, with all roles of its process.
    pub(crate) const fn goes_for_good(self) -> bool {
        matches!(self, Self::Departed | Self::Refused | Self::Stopped | Self::SupervisorDied)
    }

    /// Whether the writer of the release does not stand for that role any more, but may for others.
    pub(crate) const fn leaves_role(self) -> bool {
        matches!(self, Self::Ended | Self::Exited | Self::Left | Self::RestartLimit | Self::Skipped)
    }

    /// Whether another candidate must lead first after a leader stood down for this reason.
    pub(crate) const fn lets_another_lead(self) -> bool {
        matches!(self, Self::FactsUnavailable | Self::Resigned | Self::RestartLimit | Self::Spread | Self::Unhealthy)
    }

    /// Of two reasons for standing down, the one of the higher rank counts (R7).
    pub(crate) const fn rank(self) -> u8 {
        match self {
            Self::Ended => 3,
            Self::Departed | Self::Exited | Self::Left | Self::Refused | Self::Skipped | Self::Stopped => 2,
            Self::FactsUnavailable
            | Self::Failed
            | Self::Resigned
            | Self::RestartLimit
            | Self::Spread
            | Self::Suspended
            | Self::Unhealthy => 1,
            Self::Fenced | Self::GuardDied | Self::Revoked | Self::ClaimExpired | Self::SupervisorDied => 0,
        }
    }

    /// `--overlap`: whether the job is healthy and wanted, so that it may continue until another candidate has claimed.
    pub(crate) const fn lets_job_run_on(self) -> bool {
        matches!(self, Self::Departed | Self::Left | Self::Resigned | Self::Revoked | Self::Spread | Self::Stopped)
    }

    /// Whether the lead was lost because of this machine or its job.
    pub(crate) const fn is_of_this_machine(self) -> bool {
        matches!(self, Self::FactsUnavailable | Self::Fenced | Self::GuardDied | Self::Unhealthy)
    }

    /// Whether the lead was lost: another candidate took it over, it was given up for another candidate, or the lease ran out.
    pub(crate) const fn is_loss(self) -> bool {
        self.is_of_this_machine() || matches!(self, Self::Resigned | Self::Revoked)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
