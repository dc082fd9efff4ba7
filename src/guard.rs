//! The guard: a process between the supervisor and the job that holds the deadline (R4).
//!
//! A fence that dies or stops with its supervisor is no fence: a thread does not run in a process that is stopped, swapped
//! out or dead. So the job is the guard's child, not the supervisor's. The guard is this program, executed anew before
//! there is any thread, so that it is small and becoming leader costs one fork.
//!
//! - At the deadline it kills the whole tree of the job, whatever the supervisor does.
//! - When the supervisor's end of the socket closes, or the supervisor dies, it kills the tree at once.
//! - When the supervisor is dead, the tree gone and the term not released, it releases for the dead (R6).
//! - It hears its socket alone, and writes to its socket and the lease descriptor alone.
//!
//! When to start, extend and stop is the supervisor's to decide; what the guard decides is [`neli_proto::guard::Guard`]. What
//! changed its uid or gid may be out of its reach; that is said ([`Answer::Stuck`]), never taken for gone.
//!
//! This file is the supervisor's end. The process is `guard_loop`, which performs what the guard decides.

mod alarm;
mod backlog;
mod channel;
mod commands;
mod guard_loop;
mod job;
pub mod lease;
mod message;
mod outbox;
mod perform;
mod release;
mod setup;

use std::cell::{Cell, RefCell};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::panic;
use std::path::Path;
use std::process::ExitCode;

use neli::sealed_memfd;
use neli_proto::guard::Orders;
use nix::errno::Errno;
use nix::libc::{SIGCONT, SIGKILL};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{self, Pid};

use crate::config::VARIABLE_PREFIX;
use crate::guard::channel::Channel;
use crate::guard::guard_loop::GuardLoop;
use crate::process::handed_file;
use crate::process::image::Image;
use crate::process::signals::Set;
use crate::process::spawn::{Kind, Progress, SpawnSpec, spawn};
use crate::process::system;
use crate::report::notify;

pub use crate::guard::message::{GuardConfig, ReleaseRequest};
pub use neli_proto::guard::{Answer, CommandKind, Grant, Order, Step, Target};

/// The first argument of a process that is to be the guard.
const GUARD: &str = "guard";

/// Stands where the kernel has no pidfd.
const NO_PIDFD: &str = "-";

/// What a guard has said.
#[derive(Debug)]
pub struct Heard {
    /// The answer.
    pub answer: Answer,
    /// The pidfd that comes with [`Answer::Started`], where the kernel has them.
    pub descriptor: Option<OwnedFd>,
    /// It came, and this process was at its limit of open files.
    pub is_descriptor_lost: bool,
}

/// A guard, as its supervisor sees it.
///
/// Its descriptor is readable when an answer has come. Dropping it closes the socket: the guard then kills the tree.
#[derive(Debug)]
pub struct Guard {
    pid: Pid,
    process: Option<OwnedFd>,
    was_waited_for: bool,
    owes_release: Cell<bool>,
    channel: Channel,
    backlog: RefCell<Orders<OwnedFd>>,
}

impl Guard {
    /// Starts a guard: `program` is this program, `/proc/self/exe`.
    ///
    /// The caller should be a subreaper ([`nix::sys::prctl::set_child_subreaper`]): when the guard dies, what it guarded
    /// becomes the caller's. It is safe with threads, though the first guard is best started before there are any.
    ///
    /// # Errors
    ///
    /// When there are no descriptors, no memory or no process to spare, or `program` can't be executed.
    pub fn start(program: &Path, guard_config: &GuardConfig) -> io::Result<Self> {
        let (channel, theirs) = Channel::pair()?;
        let paper = sealed_memfd::write(guard_config)?;
        let supervisor = system::open_pidfd(unistd::getpid()).ok();
        let descriptors: Vec<RawFd> = [Some(theirs.as_fd()), Some(paper.as_fd()), supervisor.as_ref().map(AsFd::as_fd)]
            .into_iter()
            .flatten()
            .map(|descriptor| descriptor.as_raw_fd())
            .collect();
        let mut arguments: Vec<String> = vec!["neli-run".into(), GUARD.into(), unistd::getpid().to_string()];
        arguments.extend(descriptors.iter().map(RawFd::to_string));
        if supervisor.is_none() {
            arguments.push(NO_PIDFD.into());
        }
        let descriptors: Vec<RawFd> = descriptors.into_iter().chain(guard_config.cgroup).collect();
        let pending = spawn(&SpawnSpec {
            image: &Image::at(program, arguments.into_iter().map(OsString::from).collect(), own_environment())?,
            environment: &[],
            descriptors: &descriptors,
            ignored: Set::EMPTY,
            kind: Kind::Guard,
        })?;
        let process = system::open_pidfd(pending.pid).ok();
        let guard = Self {
            pid: pending.pid,
            process,
            was_waited_for: false,
            owes_release: Cell::new(false),
            channel,
            backlog: RefCell::default(),
        };
        loop {
            match pending.progress() {
                Progress::Pending => {
                    poll(&mut [PollFd::new(pending.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE)?;
                }
                Progress::Executed | Progress::Late => return Ok(guard),
                Progress::Failed(errno) => return Err(errno.into()),
            }
        }
    }

    /// Its pid; the guard leads a process group of the same number.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends an order. What the guard has no room for waits in order, but for signals to be passed on: those come last, and
    /// are merged as the kernel merges what waits for a process.
    ///
    /// # Errors
    ///
    /// `BrokenPipe` when the guard is gone.
    pub fn send(&self, order: &Order) -> io::Result<()> {
        self.send_with(order, None)
    }

    /// Sends an order with a descriptor: that of a command's output.
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send).
    pub fn send_with(&self, order: &Order, descriptor: Option<OwnedFd>) -> io::Result<()> {
        match order {
            Order::Spawn { .. } => self.owes_release.set(true),
            Order::Released { .. } => self.owes_release.set(false),
            Order::Command { .. }
            | Order::HandOn
            | Order::Kill
            | Order::Lease(_)
            | Order::Over { .. }
            | Order::Signal { .. }
            | Order::Stop { .. }
            | Order::TakeBack => {}
        }
        self.backlog.borrow_mut().put(order, descriptor);
        self.flush()
    }

    /// Sends what waits, as far as there is room: to be called when the socket can be written to.
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send).
    pub fn flush(&self) -> io::Result<()> {
        backlog::flush(&mut self.backlog.borrow_mut(), &self.channel)
    }

    /// Whether orders wait for the guard to read.
    #[must_use]
    pub fn has_backlog(&self) -> bool {
        !self.backlog.borrow().is_empty()
    }

    /// The next answer; `None` at the end: the guard is dead, or about to be, and nothing that it has said is left to be read.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when no answer has come; `InvalidData` when it makes no sense.
    pub fn receive(&self) -> io::Result<Option<Heard>> {
        let Some(packet) = self.channel.receive()? else { return Ok(None) };
        let answer = serde_json::from_slice(&packet.bytes)?;
        Ok(Some(Heard { answer, descriptor: packet.descriptor, is_descriptor_lost: packet.is_descriptor_lost }))
    }

    /// SIGKILL to the guard, and to nothing else.
    ///
    /// # Errors
    ///
    /// `ESRCH` when it is gone.
    pub fn kill(&self) -> io::Result<()> {
        self.signal(SIGKILL)
    }

    /// SIGCONT to a guard that somebody has stopped.
    ///
    /// # Errors
    ///
    /// `ESRCH` when it is gone.
    pub fn cont(&self) -> io::Result<()> {
        self.signal(SIGCONT)
    }

    /// Whether it knows of a term that it is to release when this process is dead.
    #[must_use]
    pub fn owes_release(&self) -> bool {
        self.owes_release.get()
    }

    /// Closes the socket: the guard kills what there is, and ends if nothing is to be released.
    pub fn hang_up(&self) {
        self.channel.close();
    }

    /// It has ended, and was waited for: its number may be another's from now on.
    pub fn note_waited_for(&mut self) {
        self.was_waited_for = true;
    }

    /// Whether it was waited for.
    #[must_use]
    pub fn was_waited_for(&self) -> bool {
        self.was_waited_for
    }

    fn signal(&self, signal: i32) -> io::Result<()> {
        if self.was_waited_for {
            return Err(Errno::ESRCH.into());
        }
        match &self.process {
            Some(process) => system::signal_pidfd(process.as_fd(), signal),
            None => system::signal(self.pid, signal),
        }
    }
}

impl AsFd for Guard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

impl AsRawFd for Guard {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

/// The environment of this process, less what the service manager put there for this one, and less the options: a password may be
/// among them.
fn own_environment() -> impl Iterator<Item = (OsString, OsString)> {
    let is_an_option = |name: &OsStr| name.as_bytes().starts_with(VARIABLE_PREFIX.as_bytes());
    std::env::vars_os().filter(move |(name, _)| !notify::is_own(name) && !is_an_option(name))
}

/// What the arguments of a guard say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Call {
    supervisor: i32,
    socket: RawFd,
    guard_config: RawFd,
    supervisor_pidfd: Option<RawFd>,
}

/// Whether these arguments of `main`, the zeroth included, make the process a guard: the file with its configuration must be there, which nobody
/// can type. To be asked before anything else.
#[must_use]
pub fn called(arguments: impl IntoIterator<Item = OsString>) -> Option<Call> {
    let arguments: Vec<OsString> = arguments.into_iter().take(7).collect();
    let words: Option<Vec<&str>> = arguments.iter().map(|argument| argument.to_str()).collect();
    let [_, GUARD, supervisor, socket, guard_config, pidfd] = *words? else { return None };
    if !handed_file::is_in(OsStr::new(guard_config)) {
        return None;
    }
    Some(Call {
        supervisor: supervisor.parse().ok()?,
        socket: socket.parse().ok()?,
        guard_config: guard_config.parse().ok()?,
        supervisor_pidfd: if pidfd == NO_PIDFD { None } else { Some(pidfd.parse().ok()?) },
    })
}

/// Is the guard, to its end.
#[must_use]
pub fn main(call: Call) -> ExitCode {
    // A stderr that takes nothing would hold up the fence.
    panic::set_hook(Box::new(|_| {}));
    match GuardLoop::new(&call).and_then(GuardLoop::keep) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// What the guard has left for the program that it has become: `neli-run release <number>`.
///
/// # Errors
///
/// When there is no such descriptor, or it is not the guard's.
pub fn release_request(number: RawFd) -> io::Result<ReleaseRequest> {
    handed_file::read(number)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Without pidfds its number is all that is known of it, and may be a stranger's as soon as it was waited for.
    #[test]
    fn the_number_of_a_guard_that_was_waited_for_is_not_killed() {
        let mut stranger = Command::new("sleep").arg("600").spawn().unwrap();
        let (channel, _theirs) = Channel::pair().unwrap();
        let mut guard = Guard {
            pid: Pid::from_raw(stranger.id().cast_signed()),
            process: None,
            was_waited_for: false,
            owes_release: Cell::new(false),
            channel,
            backlog: RefCell::default(),
        };
        guard.note_waited_for();
        assert_eq!(guard.kill().unwrap_err().raw_os_error(), Some(Errno::ESRCH as i32));
        assert_eq!(stranger.try_wait().unwrap(), None);
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}
