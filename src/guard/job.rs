//! The job's main process: its start, and the signals that are sent to it.

use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitStatus;

use neli_proto::guard::{Event, Step, Target};
use nix::unistd::{self, Pid};

use crate::process::held::HeldProcess;
use crate::process::spawn::{LATE, PendingChild};
use crate::process::{procfs, system};

/// A job that was forked, until all its processes are gone.
#[derive(Debug)]
pub(super) struct Job {
    /// The main process. No other process gets its pid, which is that of its group, while the group has members. The pidfd is there until it is readable:
    /// then the process has ended, even if its tracer keeps the guard from waiting for it.
    main: HeldProcess,
    /// Whether the main process was not waited for yet.
    pub(super) has_main: bool,
    /// The start of the program, until it has succeeded or failed.
    pending: Option<PendingChild>,
}

impl Job {
    /// The job that was just forked.
    pub(super) fn new(pending: PendingChild) -> Self {
        Self { main: HeldProcess::open(pending.pid), has_main: true, pending: Some(pending) }
    }

    /// The pid of the main process and of its group.
    pub(super) fn pid(&self) -> Pid {
        self.main.pid
    }

    /// Becomes readable when the main process has ended; `None` if that was noticed, or if there is no pidfd.
    pub(super) fn end_fd(&self) -> Option<BorrowedFd<'_>> {
        self.main.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Whether the main process has ended, and that was not noticed.
    pub(super) fn has_ended(&self) -> bool {
        self.main.tells_end()
    }

    /// How the main process, which has ended, did so, if it can't be waited for; returned once.
    pub(super) fn unwaited_end(&mut self) -> Option<ExitStatus> {
        self.main.pidfd.take().filter(|_| self.has_main).and_then(|_| procfs::status_of_ended(self.main.pid))
    }

    /// Becomes readable when the job has executed its program or failed to; `None` after that.
    pub(super) fn progress_fd(&self) -> Option<BorrowedFd<'_>> {
        self.pending.as_ref().map(AsFd::as_fd)
    }

    /// Whether the job has executed, or failed to; returned once.
    pub(super) fn observe_start(&mut self) -> Option<Event> {
        let executed = self.pending.as_ref()?.executed()?;
        self.pending = None;
        Some(match executed {
            Ok(()) => Event::Executed,
            Err(errno) => {
                let at = if errno == LATE { Step::InTime } else { Step::Exec };
                Event::NotStarted { errno: errno as i32, at }
            }
        })
    }

    /// Sends a signal to the main process or its group. The process may have ended, or belong to another user by now, so errors are
    /// ignored: only its end shows the effect.
    pub(super) fn signal(&self, signal: i32, to: Target) {
        if !self.has_main {
            return;
        }
        let pid = self.main.pid;
        let _ = match to {
            Target::Main => self.main.signal(signal),
            Target::Group => {
                let sent = system::signal_group(pid, signal);
                // The process may have left its own group, in which it may have left others.
                let has_left = unistd::getpgid(Some(pid)).is_ok_and(|group| group != pid);
                if has_left { self.main.signal(signal) } else { sent.or_else(|_| self.main.signal(signal)) }
            }
        };
    }
}
