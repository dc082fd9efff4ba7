//! The job's main process: its start, and the signals that are sent to it; and the commands that run beside it.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitStatus;

use neli_proto::guard::{CommandKind, Event, Step, Target};
use neli_proto::job::CommandEnd;
use nix::errno::Errno;
use nix::libc::SIGKILL;
use nix::unistd::Pid;

use crate::guard::message::GuardConfig;
use crate::process::reap::Change;
use crate::process::shell::{self, ShellCommand};
use crate::process::spawn::{Image, PendingChild, Progress};
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

    /// How the main process has ended, if it has and was not waited for; returned once.
    pub(super) fn unwaited_end(&mut self) -> Option<ExitStatus> {
        let process = self.process.take_if(|process| system::tells_end(process.as_fd()));
        process.filter(|_| self.has_main).and_then(|_| procfs::status_of_ended(self.pid))
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

    /// Sends a signal to the main process or its group. The process may have ended, or belong to another user by now, so errors are
    /// ignored: only its end shows the effect.
    pub(super) fn signal(&self, signal: i32, to: Target) {
        if !self.has_main {
            return;
        }
        let _ = match to {
            Target::Main => system::signal(self.pid, signal),
            // The process may have left its own group.
            Target::Group => system::signal_group(self.pid, signal).or_else(|_| system::signal(self.pid, signal)),
        };
    }

    /// Sends SIGKILL to the main process's group.
    pub(super) fn kill_group(&self) {
        if self.has_main {
            let _ = system::signal_group(self.pid, SIGKILL);
        }
    }
}

/// The commands that run beside the job, the health command and the hook that runs when the lead is won; and those that were started and not waited
/// for yet.
#[derive(Debug)]
pub(super) struct Commands {
    health: Option<Image>,
    on_lead: Option<Image>,
    running: Vec<(CommandKind, ShellCommand)>,
}

impl Commands {
    /// The commands of a configuration, with this environment.
    pub(super) fn new(guard_config: &GuardConfig, environment: &[(OsString, OsString)]) -> io::Result<Self> {
        let image = |line: &Option<OsString>| line.as_ref().map(|line| Image::of_shell(line, environment)).transpose();
        Ok(Self { health: image(&guard_config.health)?, on_lead: image(&guard_config.on_lead)?, running: Vec::new() })
    }

    /// The shell that runs a command, if it has a line.
    pub(super) const fn image(&self, kind: CommandKind) -> Option<&Image> {
        match kind {
            CommandKind::Health => self.health.as_ref(),
            CommandKind::Lead => self.on_lead.as_ref(),
        }
    }

    /// Notes a command that was started; the error is its end, if it could not be.
    pub(super) fn started(&mut self, kind: CommandKind, command: io::Result<ShellCommand>) -> Result<(), CommandEnd> {
        self.running.push((kind, command.map_err(shell::not_started)?));
        Ok(())
    }

    /// Sends SIGKILL to a command's process group.
    pub(super) fn kill(&self, kind: CommandKind) {
        self.running.iter().filter(|(running, _)| *running == kind).for_each(|(_, command)| command.kill());
    }

    /// Kills the processes that a command has left in its group. Called when a child has ended and was not waited for: until then the
    /// group's id belongs to it for certain.
    pub(super) fn end_group_of(&self, pid: Pid) {
        if let Some((_, command)) = self.running.iter().find(|(_, command)| command.pid() == pid) {
            command.kill();
        }
    }

    /// The kind and the end of a command, if this child was one and has ended.
    pub(super) fn observe_child(&mut self, change: Change) -> Option<(CommandKind, CommandEnd)> {
        let at = self.running.iter().position(|(_, command)| command.pid() == change.pid)?;
        let end = self.running[at].1.end(change.status)?;
        Some((self.running.swap_remove(at).0, end))
    }

    /// The pids of those that were started and not waited for yet.
    pub(super) fn pids(&self) -> Vec<Pid> {
        self.running.iter().map(|(_, command)| command.pid()).collect()
    }
}
