//! The terminal on which `neli-run` was started: its foreground group, its modes, and whether it still exists.
//!
//! It is opened for each use, because an open descriptor would keep the terminal from being closed. The calling process must block or
//! ignore SIGTTOU. Other modules decide when the foreground is handed over and taken back.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use neli_proto::job::Foreground;
use nix::errno::Errno;
use nix::fcntl::{self, OFlag};
use nix::sys::resource::{self, Resource};
use nix::sys::signal::{self, SigSet, Signal};
use nix::sys::stat::{self, Mode, SFlag};
use nix::sys::termios::{self, SetArg, Termios};
use nix::unistd::{self, Pid};

use crate::process::procfs::{Process, Procfs};
use crate::process::system;

/// The controlling terminal of this session, seen from one of its processes.
#[derive(Debug)]
pub struct Terminal {
    /// The process group of `neli-run`.
    pub(crate) own: Pid,
    /// The job's process group, if there is a job.
    job: Option<Pid>,
    /// The modes before the foreground was handed over; `None` if it never was.
    modes: Option<Termios>,
}

impl Terminal {
    /// The terminal for the process group `own`, whether a terminal exists or not.
    pub(crate) const fn of(own: Pid) -> Self {
        Self { own, job: None, modes: None }
    }

    /// Sets the job's group.
    pub(crate) fn belongs_to_job(&mut self, job: Pid) {
        self.job = Some(job);
    }

    /// Notes that there is no job any more: its pid may be reused for another group.
    pub(crate) fn forget_job(&mut self) {
        *self = Self::of(self.own);
    }

    /// Whether the foreground was handed over to the job.
    pub(crate) fn was_handed_on(&self) -> bool {
        self.modes.is_some()
    }

    /// The group that has the foreground.
    pub(crate) fn foreground(&self) -> Foreground {
        open().and_then(|terminal| self.owner(terminal.as_fd())).unwrap_or(Foreground::Elsewhere)
    }

    /// If `neli-run` has the foreground and may hand it over: saves the modes, and returns the terminal.
    pub(crate) fn about_to_hand_on(&mut self) -> Option<OwnedFd> {
        let terminal = open().ok()?;
        if self.owner(terminal.as_fd()).ok()? != Foreground::NeliRun {
            return None;
        }
        self.modes = Some(termios::tcgetattr(&terminal).ok()?);
        Some(terminal)
    }

    /// Gives the job's group the foreground, if `neli-run` has it.
    pub(crate) fn hand_on(&mut self) {
        if let (Some(job), Some(terminal)) = (self.job, self.about_to_hand_on()) {
            // The terminal may be closed at any time.
            let _ = unistd::tcsetpgrp(terminal, job);
        }
    }

    /// Takes the foreground back and restores the modes, if the job has the foreground; returns whether it had.
    pub(crate) fn take_back(&self) -> bool {
        let Ok(terminal) = open() else { return false };
        if self.owner(terminal.as_fd()) != Ok(Foreground::Job) {
            return false;
        }
        if let Some(modes) = &self.modes {
            // It does not wait until the output is written, because after Ctrl-S that would take for ever.
            let _ = termios::tcsetattr(&terminal, SetArg::TCSANOW, modes);
        }
        // It fails if the group is gone.
        let _ = unistd::tcsetpgrp(terminal, self.own);
        true
    }

    fn owner(&self, terminal: BorrowedFd<'_>) -> nix::Result<Foreground> {
        let owner = unistd::tcgetpgrp(terminal)?;
        // 0 is a group of another PID namespace; the foreground could not be given back to it.
        Ok(if owner.as_raw() == 0 {
            Foreground::Elsewhere
        } else if owner == self.own {
            Foreground::NeliRun
        } else if Some(owner) == self.job || (self.modes.is_some() && is_empty(owner)) {
            // The job may contain shells with jobs of their own.
            Foreground::Job
        } else {
            Foreground::Elsewhere
        })
    }
}

/// Whether a process group is empty.
fn is_empty(group: Pid) -> bool {
    signal::killpg(group, None) == Err(Errno::ESRCH)
}

fn open() -> nix::Result<OwnedFd> {
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    fcntl::open("/dev/tty", flags, Mode::empty())
}

/// Whether this process has a terminal that it can open.
pub(crate) fn is_there() -> bool {
    open().is_ok()
}

/// Whether the foreground may be handed over to the job: stdin is the terminal, and stdout is not a pipe, whose reader may need the
/// terminal.
pub(crate) fn may_be_handed_on() -> bool {
    let is_pipe = |mode| matches!(SFlag::from_bits_truncate(mode) & SFlag::S_IFMT, SFlag::S_IFIFO | SFlag::S_IFSOCK);
    unistd::tcgetpgrp(io::stdin()).is_ok() && !stat::fstat(io::stdout()).is_ok_and(|stdout| is_pipe(stdout.st_mode))
}

/// Whether some process can continue this one when it is stopped: by the kernel's rule, a member of its process group must have a parent
/// in another group of the same session.
pub(crate) fn is_continuable() -> bool {
    let (own, session) = (unistd::getpgrp(), unistd::getsid(None));
    if unistd::getpid().as_raw() == 1 {
        return false;
    }
    let procfs = Procfs::mounted();
    let mut members = procfs.processes().filter(|process| process.lives && process.group == Some(own));
    members.any(|Process { parent, .. }| {
        unistd::getsid(Some(parent)) == session && unistd::getpgid(Some(parent)).is_ok_and(|group| group != own)
    })
}

/// Stops this process group.
///
/// # Errors
///
/// No error is known for the process's own group.
pub(crate) fn stop_group() -> io::Result<()> {
    Ok(signal::kill(Pid::from_raw(0), Signal::SIGSTOP)?)
}

/// Sends a signal with its default action to this process, or to its whole group if `to_group`. Process 1 survives it. (signal-hook's
/// `emulate_default_handler` signals only the calling thread, leaves a core file, and aborts if the signal does not end the process.)
///
/// # Errors
///
/// The signal can't be sent.
pub(crate) fn die_of(signal: i32, to_group: bool) -> io::Result<()> {
    let signal = Signal::try_from(signal)?;
    // After Ctrl-\ neli-run must leave no core file.
    let _ = resource::setrlimit(Resource::RLIMIT_CORE, 0, 0);
    system::set_ignored(signal as i32, false)?;
    signal::kill(if to_group { Pid::from_raw(0) } else { unistd::getpid() }, signal)?;
    SigSet::from(signal).thread_unblock()?;
    Ok(())
}
