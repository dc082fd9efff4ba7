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
