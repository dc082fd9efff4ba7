//! What the node ends with, as an exit status; and what the guard answers, as an event of the supervisor.

use std::io;

use neli_proto::guard::{self, Answer, Step};
use neli_proto::supervisor::{self, Ending, Lost};
use nix::unistd::Pid;

use crate::config::Config;
use crate::exit::ExitStatus;
use crate::text::reason;

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
        Ending::StoppedBy(signal) => ExitStatus::Stopped(u8::try_from(signal).unwrap_or(u8::MAX)),
        Ending::Stuck => ExitStatus::Unkillable,
        Ending::WaitedEnough => ExitStatus::NotElected,
    }
}

/// The guard's word to the supervisor, about the job of `term`.
pub(super) fn answer(answer: Answer, term: i64, config: &Config) -> Option<supervisor::Event> {
    let Answer::NotStarted { errno, at: at @ (Step::Exec | Step::Fork | Step::Lease) } = answer else {
        return guard::heard(answer, term);
    };
    let error = io::Error::from_raw_os_error(errno);
    let command = config.command.first().map(|command| command.to_string_lossy()).unwrap_or_default();
    let code = if at == Step::Exec && error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    let error = format!("{command}: can't be started: {}", reason(&error));
    Some(supervisor::Event::NotStarted { code, error })
}
