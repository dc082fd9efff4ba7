//! The consequences of each reason for standing down (R7).

use crate::record::Why;

/// The rank of a reason. Of two reasons, the one of the higher rank counts.
pub(super) const fn rank(why: Why) -> u8 {
    match why {
        Why::Ended => 3,
        Why::Departed | Why::Exited | Why::Left | Why::Refused | Why::Skipped | Why::Stopped => 2,
        Why::FactsUnavailable
        | Why::Failed
        | Why::Resigned
        | Why::RestartLimit
        | Why::Spread
        | Why::Suspended
        | Why::Unhealthy => 1,
        Why::Fenced | Why::GuardDied | Why::Revoked | Why::ClaimExpired | Why::SupervisorDied => 0,
    }
}

/// `--overlap`: whether the job is healthy and wanted, so that it may continue until another candidate has claimed.
pub(super) const fn lets_job_run_on(why: Why) -> bool {
    match why {
        Why::Departed | Why::Left | Why::Resigned | Why::Revoked | Why::Spread | Why::Stopped => true,
        Why::ClaimExpired
        | Why::Ended
        | Why::Exited
        | Why::FactsUnavailable
        | Why::Failed
        | Why::Fenced
        | Why::GuardDied
        | Why::Refused
        | Why::RestartLimit
        | Why::Skipped
        | Why::SupervisorDied
        | Why::Suspended
        | Why::Unhealthy => false,
    }
}

/// Whether the lead was lost because of this machine or its job.
pub(super) const fn is_lost(why: Why) -> bool {
    match why {
        Why::FactsUnavailable | Why::Fenced | Why::GuardDied | Why::Unhealthy => true,
        Why::Departed
        | Why::Ended
        | Why::Exited
        | Why::Failed
        | Why::Left
        | Why::Refused
        | Why::Resigned
        | Why::RestartLimit
        | Why::Revoked
        | Why::ClaimExpired
        | Why::Skipped
        | Why::Spread
        | Why::Stopped
        | Why::SupervisorDied
        | Why::Suspended => false,
    }
}
