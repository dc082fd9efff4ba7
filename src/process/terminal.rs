//! The terminal on which `neli-run` was started: its foreground group, its modes, and whether it still exists.
//!
//! It is opened for each look and not kept open, which would keep the terminal from being closed. The calling process
//! must block or ignore SIGTTOU. The reasons for giving and taking the foreground are decided elsewhere.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use neli_proto::terminal::Foreground;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::resource::{self, Resource};
use nix::sys::signal::{self, SigSet, Signal};
use nix::sys::stat::{self, SFlag};
use nix::sys::termios::{self, SetArg, Termios};
use nix::unistd::{self, Pid};

use crate::process::procfs::{Process, Procfs};
use crate::process::system::{self, Disposition};

/// The controlling terminal of this session, as one of its processes sees it.
#[derive(Debug)]
pub struct Terminal {
    /// The process group of `neli-run`.
    own: Pid,
    /// The job's, while there is one.
    job: Option<Pid>,
    /// The modes from before the foreground was handed on; `None` when it never was.
    modes: Option<Termios>,
}

impl Terminal {
    /// As seen by the process group `own`, whether there is a terminal or not.
    #[must_use]
    pub const fn of(own: Pid) -> Self {
        Self { own, job: None, modes: None }
    }

    /// From now on this is the job's group.
    pub fn belongs_to_job(&mut self, job: Pid) {
        self.job = Some(job);
    }

    /// There is no job any more, and its number may be another group's.
    pub fn forget_job(&mut self) {
        *self = Self::of(self.own);
    }

    /// Whether the job was given the foreground.
    #[must_use]
    pub fn was_handed_on(&self) -> bool {
        self.modes.is_some()
    }

    /// The group that has the foreground.
    #[must_use]
    pub fn foreground(&self) -> Foreground {
        match open().and_then(|terminal| self.owner(terminal.as_fd())) {
            Ok(owner) => owner,
            Err(_) => Foreground::Elsewhere,
        }
    }

    /// Notes the modes that are to be given back, if `neli-run` has the foreground and may hand it on: the terminal.
    pub fn about_to_hand_on(&mut self) -> Option<File> {
        let terminal = open().ok()?;
        if self.owner(terminal.as_fd()).ok()? != Foreground::NeliRun {
            return None;
        }
        self.modes = Some(termios::tcgetattr(&terminal).ok()?);
        Some(terminal)
    }

    /// Gives the job's group the foreground, if `neli-run` has it.
    pub fn hand_on(&mut self) {
        if let (Some(job), Some(terminal)) = (self.job, self.about_to_hand_on()) {
            // The terminal may be closed at any time.
            let _ = unistd::tcsetpgrp(terminal, job);
        }
    }

    /// Gives the foreground and the modes back, if they are the job's; whether they were.
    pub fn take_back(&self) -> bool {
        let Ok(terminal) = open() else { return false };
        if self.owner(terminal.as_fd()) != Ok(Foreground::Job) {
            return false;
        }
        if let Some(modes) = &self.modes {
            // Without waiting for the output to be written: where Ctrl-S has stopped it that lasts for ever.
            let _ = termios::tcsetattr(&terminal, SetArg::TCSANOW, modes);
        }
        // The group may be gone.
        let _ = unistd::tcsetpgrp(terminal, self.own);
        true
    }

    fn owner(&self, terminal: BorrowedFd<'_>) -> nix::Result<Foreground> {
        let owner = unistd::tcgetpgrp(terminal)?;
        // 0 is a group of another PID namespace, to which nothing could be given back.
        Ok(if owner.as_raw() == 0 {
            Foreground::Elsewhere
        } else if owner == self.own {
            Foreground::NeliRun
        } else if Some(owner) == self.job || (self.modes.is_some() && is_empty(owner)) {
            // Within the job there may be shells with jobs of their own.
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

fn open() -> nix::Result<File> {
    let flags = OFlag::O_NOCTTY | OFlag::O_NONBLOCK;
    let opened = File::options().read(true).write(true).custom_flags(flags.bits()).open("/dev/tty");
    opened.map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))
}

/// Whether this process has a terminal that can be opened.
#[must_use]
pub fn is_there() -> bool {
    open().is_ok()
}

/// Whether what is run here may be given the foreground: stdin is the terminal, and stdout no pipe, behind which another
/// process may need it.
#[must_use]
pub fn may_be_handed_on() -> bool {
    let is_pipe = |mode| matches!(SFlag::from_bits_truncate(mode) & SFlag::S_IFMT, SFlag::S_IFIFO | SFlag::S_IFSOCK);
    unistd::tcgetpgrp(io::stdin()).is_ok() && !stat::fstat(io::stdout()).is_ok_and(|stdout| is_pipe(stdout.st_mode))
}

/// Whether there is a process that can continue this one when it is stopped: the kernel's rule for its process group, of
/// which one member's parent must be in another group of the same session.
#[must_use]
pub fn is_continuable() -> bool {
    let (own, session) = (unistd::getpgrp(), unistd::getsid(None));
    if unistd::getpid().as_raw() == 1 {
        return false;
    }
    let procfs = Procfs::mounted(Pid::this());
    let mut members = procfs.processes().filter(|process| process.lives && process.group == Some(own));
    members.any(|Process { parent, .. }| {
        unistd::getsid(Some(parent)) == session && unistd::getpgid(Some(parent)).is_ok_and(|group| group != own)
    })
}

/// Stops all of this process group.
///
/// # Errors
///
/// None that a process gets for itself.
pub fn stop_group() -> io::Result<()> {
    Ok(signal::kill(Pid::from_raw(0), Signal::SIGSTOP)?)
}

/// Sends this process, and all of its group if `to_group`, a signal with its default disposition. It comes back to
/// process 1. (signal-hook's `emulate_default_handler` signals the calling thread alone, leaves a core file, and aborts where
/// the signal does not end the process.)
///
/// # Errors
///
/// When it can't be sent.
pub fn die_of(signal: i32, to_group: bool) -> io::Result<()> {
    let signal = Signal::try_from(signal)?;
    // No core file of neli-run's where a person typed Ctrl-\.
    let _ = resource::setrlimit(Resource::RLIMIT_CORE, 0, 0);
    system::set_disposition(signal as i32, Disposition::Default)?;
    signal::kill(if to_group { Pid::from_raw(0) } else { unistd::getpid() }, signal)?;
    SigSet::from(signal).thread_unblock()?;
    Ok(())
}

/// The foreground that a child takes before it executes, if `from` has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForegroundHandover<'a> {
    /// The terminal.
    pub(crate) terminal: BorrowedFd<'a>,
    /// Whose foreground it must be.
    pub(crate) from: Pid,
}

impl<'a> ForegroundHandover<'a> {
    /// The group that has it now.
    pub(crate) fn of(terminal: &'a File, from: &Terminal) -> Self {
        Self { terminal: terminal.as_fd(), from: from.own }
    }
}
