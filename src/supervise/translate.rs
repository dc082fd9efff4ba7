//! The exit status for a node's ending.

use neli_proto::supervisor::{Ending, Lost};
use nix::unistd::Pid;

use crate::exit::ExitStatus;

pub(super) fn number_of(pid: Pid) -> Option<u32> {
    u32::try_from(pid.as_raw()).ok()
}

pub(super) fn status(ending: Ending) -> ExitStatus {
    match ending {
        Ending::Ended => ExitStatus::Ended,
        Ending::Job(status) => ExitStatus::Job(status.code()),
        Ending::Lost(Lost::Fenced) => ExitStatus::Fenced,
        Ending::Lost(Lost::Killed) => ExitStatus::LostKilled,
        Ending::Lost(Lost::Stopped) => ExitStatus::LostStopped,
        Ending::Refused => ExitStatus::Refused,
        Ending::RestartLimit => ExitStatus::RestartLimit,
        Ending::Skipped(status) => ExitStatus::Skipped(status),
        Ending::StoppedBy(signal) => ExitStatus::Stopped(u8::try_from(signal).unwrap_or(u8::MAX)),
        Ending::Stuck => ExitStatus::Unkillable,
        Ending::WaitedEnough => ExitStatus::NotElected,
    }
}

/// The exit status of a process with several roles: that a job could not be killed, or the highest status.
pub(super) fn status_of_all(of_roles: impl IntoIterator<Item = ExitStatus>) -> Option<ExitStatus> {
    of_roles.into_iter().max_by_key(|status| (*status == ExitStatus::Unkillable, status.code()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_could_not_be_killed_decides_the_status_of_all_roles() {
        let killed_by_term = ExitStatus::Job(143);
        assert_eq!(status_of_all([ExitStatus::Job(0), killed_by_term, ExitStatus::Job(3)]), Some(killed_by_term));
        assert_eq!(status_of_all([ExitStatus::Unkillable, killed_by_term]), Some(ExitStatus::Unkillable));
        assert_eq!(status_of_all([]), None);
    }
}
