//! The job's main process: its start, and the signals that are sent to it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitStatus;

use neli_proto::guard::{Event, Step, Target};
use nix::errno::Errno;
use nix::unistd::{self, Pid};

use crate::process::spawn::{PendingChild, Progress};
use crate::process::{procfs, system};

/// A job that was forked, until all its processes are gone.
#[derive(Debug)]
pub(super) struct Job {
    /// The pid of the main process and of its group: no other process gets it while the group has members.
    pub(super) pid: Pid,
    /// Whether the main process was not waited for yet.
    pub(super) has_main: bool,
    /// The start of the program, until it has succeeded or failed.
    pending: Option<PendingChild>,
    /// A pidfd of the main process, until it is readable: then the process has ended, even if its tracer keeps the guard from waiting for it.
    process: Option<OwnedFd>,
}

impl Job {
    /// The job that was just forked.
    pub(super) fn new(pending: PendingChild) -> Self {
        let process = system::open_pidfd(pending.pid).ok();
        Self { pid: pending.pid, has_main: true, pending: Some(pending), process }
    }

    /// Becomes readable when the main process has ended; `None` if that was noticed, or if there is no pidfd.
    pub(super) fn end_fd(&self) -> Option<BorrowedFd<'_>> {
        self.process.as_ref().map(AsFd::as_fd)
    }

    /// Whether the main process has ended, and that was not noticed.
    pub(super) fn has_ended(&self) -> bool {
        self.end_fd().is_some_and(system::tells_end)
    }

    /// How the main process, which has ended, did so, if it can't be waited for; returned once.
    pub(super) fn unwaited_end(&mut self) -> Option<ExitStatus> {
        self.process.take().filter(|_| self.has_main).and_then(|_| procfs::status_of_ended(self.pid))
    }

    /// Becomes readable when the job has executed its program or failed to; `None` after that.
    pub(super) fn progress_fd(&self) -> Option<BorrowedFd<'_>> {
        self.pending.as_ref().map(AsFd::as_fd)
    }

    /// Whether the job has executed, or failed to; returned once.
    pub(super) fn observe_start(&mut self) -> Option<Event> {
        let event = match self.pending.as_ref()?.progress() {
            Progress::Pending => return None,
            Progress::Executed => Event::Executed,
            Progress::Failed(errno) => Event::NotStarted { errno: errno as i32, at: Step::Exec },
            Progress::Late => Event::NotStarted { errno: Errno::ETIME as i32, at: Step::InTime },
        };
        self.pending = None;
        Some(event)
    }

    fn signal_main(&self, signal: i32) -> io::Result<()> {
        match &self.process {
            Some(process) => system::signal_pidfd(process.as_fd(), signal),
            None => system::signal(self.pid, signal),
        }
    }

    /// Sends a signal to the main process or its group. The process may have ended, or belong to another user by now, so errors are
    /// ignored: only its end shows the effect.
    pub(super) fn signal(&self, signal: i32, to: Target) {
        if !self.has_main {
            return;
        }
        let _ = match to {
            Target::Main => self.signal_main(signal),
            Target::Group => {
                let sent = system::signal_group(self.pid, signal);
                // The process may have left its own group, in which it may have left others.
                let has_left = unistd::getpgid(Some(self.pid)).is_ok_and(|group| group != self.pid);
                if has_left { self.signal_main(signal) } else { sent.or_else(|_| self.signal_main(signal)) }
            }
        };
    }
}
