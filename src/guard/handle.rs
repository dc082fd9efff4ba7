//! The supervisor's end of a guard.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitStatus;

use neli_kafka::clock;
use neli_proto::guard::{Answer, Order};
use neli_proto::time::Time;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{self, Pid};

use crate::config::VARIABLE_PREFIX;
use crate::guard::channel::Channel;
use crate::guard::message::GuardConfig;
use crate::process::attributes::EarlierAttributes;
use crate::process::held::HeldProcess;
use crate::process::signals::SignalSet;
use crate::process::spawn::{ChildKind, Image, PendingChild, SpawnSpec, spawn};
use crate::process::{memory_files, procfs, system};
use crate::report::notify;

/// The first argument of a guard's process; the second is the number of the file with its configuration.
const GUARD: &str = "guard";

/// The supervisor's end of a guard: its process and its socket.
///
/// The descriptor is readable when an answer has come. Dropping this value closes the socket, and the guard then kills the tree.
#[derive(Debug)]
pub struct GuardHandle {
    process: HeldProcess,
    /// Whether it is [known](Self::note_death) to have ended.
    pub(crate) is_dead: bool,
    /// How it has ended, if it was waited for.
    pub(crate) end: Option<ExitStatus>,
    channel: Channel<Order>,
    /// The term that it must release if this process dies.
    owed: Cell<Option<i64>>,
}

impl GuardHandle {
    /// Starts a guard, and waits until it has executed. `program` is this program, `/proc/self/exe`.
    ///
    /// The caller should be a subreaper ([`nix::sys::prctl::set_child_subreaper`]): when the guard dies, the processes of its job become
    /// the caller's children. This is safe with threads.
    ///
    /// # Errors
    ///
    /// There is no free descriptor, memory or process, or `program` can't be executed.
    pub fn start(program: &Path, guard_config: &GuardConfig) -> io::Result<Self> {
        let (guard, pending) = Self::fork(program, guard_config)?;
        loop {
            if let Some(executed) = pending.executed() {
                return Ok(executed.map(|()| guard)?);
            }
            poll(&mut [PollFd::new(pending.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE)?;
        }
    }

    /// Starts a guard without waiting for its exec, which takes long on a busy machine. A guard that can't execute dies soon.
    ///
    /// # Errors
    ///
    /// There is no free descriptor, memory or process.
    pub(crate) fn begin(program: &Path, guard_config: &GuardConfig) -> io::Result<Self> {
        Self::fork(program, guard_config).map(|(guard, _)| guard)
    }

    fn fork(program: &Path, guard_config: &GuardConfig) -> io::Result<(Self, PendingChild)> {
        let (channel, peer) = Channel::pair()?;
        let supervisor_pidfd = system::open_pidfd(unistd::getpid()).ok();
        let guard_config = GuardConfig {
            socket: peer.as_raw_fd(),
            supervisor: unistd::getpid().as_raw(),
            supervisor_pidfd: supervisor_pidfd.as_ref().map(AsRawFd::as_raw_fd),
            ..guard_config.clone()
        };
        let file = memory_files::write_sealed(&guard_config)?;
        let GuardConfig { socket, cgroup, release_queue, .. } = guard_config;
        let optional = [guard_config.supervisor_pidfd, cgroup].into_iter().flatten();
        let descriptors: Vec<RawFd> = [socket, file.as_raw_fd(), release_queue].into_iter().chain(optional).collect();
        let arguments: [OsString; 3] = ["neli-run".into(), GUARD.into(), file.as_raw_fd().to_string().into()];
        let pending = spawn(&SpawnSpec {
            image: &Image::at([program.to_owned()], arguments, own_environment())?,
            environment: &[],
            descriptors: &descriptors,
            ignored: SignalSet::EMPTY,
            attributes: EarlierAttributes::default(),
            cgroup: None,
            deadline: None,
            kind: ChildKind::Guard,
        })?;
        let process = HeldProcess::open(pending.pid);
        let guard = Self { process, is_dead: false, end: None, channel, owed: Cell::new(None) };
        Ok((guard, pending))
    }

    /// The guard's pid; it leads a process group with the same number.
    pub fn pid(&self) -> Pid {
        self.process.pid
    }

    /// Sends an order. If the guard's socket is full, or the kernel lacks memory, orders are queued. Signals that are passed on come last in
    /// the queue, and equal ones are merged, as the kernel merges pending signals.
    ///
    /// # Errors
    ///
    /// `BrokenPipe` if the guard is gone.
    pub fn send(&self, order: &Order) -> io::Result<()> {
        self.send_with(order, None)
    }

    /// Sends an order with a descriptor: that of a command's output.
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send).
    pub fn send_with(&self, order: &Order, descriptor: Option<OwnedFd>) -> io::Result<()> {
        self.owed.set(order.owed_after(self.owed.get()));
        self.channel.queue.borrow_mut().put(order, descriptor);
        self.flush()
    }

    /// Sends queued orders as far as there is room. Call it when the socket is writable, if the guard awaits room (`awaits_room`), and
    /// at the time of `poll_timeout`.
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send).
    pub fn flush(&self) -> io::Result<()> {
        self.channel.flush(clock::now())
    }

    /// When to call [`flush`](Self::flush), because the kernel lacked memory for a queued order.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.channel.poll_timeout()
    }

    /// Whether orders are queued because the socket is full.
    pub(crate) fn awaits_room(&self) -> bool {
        self.channel.awaits_room()
    }

    /// Whether orders are queued.
    pub fn has_backlog(&self) -> bool {
        !self.channel.queue.borrow().is_empty()
    }

    /// The next answer, and with [`Answer::Started`] the job's pidfd, if the kernel has pidfds; `None` at the end of the stream: the guard is dead
    /// or about to die, and all its answers were read.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if no answer has come; `InvalidData` if it can't be decoded.
    pub fn receive(&self) -> io::Result<Option<(Answer, Option<OwnedFd>)>> {
        let Some((answer, descriptor)) = self.channel.receive()? else { return Ok(None) };
        let answer = if let Answer::StartedUnseen { pid } = answer
            && descriptor.is_some()
        {
            Answer::Started { pid }
        } else {
            answer
        };
        Ok(Some((answer, descriptor)))
    }

    /// Whether the guard has a term that it must release if this process dies.
    pub(crate) fn owes_release(&self) -> bool {
        self.owed.get().is_some()
    }

    /// Closes the socket. The guard then kills the job if there is one, and ends unless it has a term to release.
    pub(crate) fn close(&self) {
        self.channel.close();
    }

    /// Notes that the guard has ended, and how, if that is known: from now on, or as soon as it is waited for, its pid may belong to another
    /// process.
    pub(crate) fn note_death(&mut self, end: Option<ExitStatus>) {
        (self.is_dead, self.end) = (true, end);
    }

    /// Whether it has ended, according to the kernel. If another process traces it, this process can't wait for it until that one has.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_dead || self.process.tells_end() || procfs::has_ended(self.process.pid)
    }

    /// Sends a signal to the guard alone.
    ///
    /// # Errors
    ///
    /// `ESRCH` if it is gone.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        if self.is_dead { Err(Errno::ESRCH.into()) } else { self.process.signal(signal) }
    }
}

impl AsFd for GuardHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

/// The environment of this process, without the variables of the service manager, and without our options, which may contain a password.
fn own_environment() -> impl Iterator<Item = (OsString, OsString)> {
    let is_an_option = |name: &OsStr| name.as_bytes().starts_with(VARIABLE_PREFIX.as_bytes());
    std::env::vars_os().filter(move |(name, _)| !notify::is_own(name) && !is_an_option(name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use nix::libc::SIGKILL;

    use super::*;

    fn handle(pid: Pid, channel: Channel<Order>) -> GuardHandle {
        let process = HeldProcess { pid, pidfd: None };
        GuardHandle { process, is_dead: false, end: None, channel, owed: Cell::default() }
    }

    #[test]
    fn an_answer_that_is_cut_off_is_invalid_and_the_next_one_is_read() {
        let (channel, peer) = Channel::pair().unwrap();
        let guard = handle(Pid::this(), channel);
        let answer = serde_json::to_vec(&Answer::Stuck { pids: vec![1, 2] }).unwrap();
        for packet in [&answer[..answer.len() - 3], br#"{"answer":"gone"}"#] {
            unistd::write(&peer, packet).unwrap();
        }
        assert_eq!(guard.receive().unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(guard.receive().unwrap().unwrap().0, Answer::Gone);
    }

    #[test]
    fn a_start_whose_descriptor_is_lost_is_unseen() {
        let (channel, peer) = Channel::pair().unwrap();
        let (guard, peer) = (handle(Pid::this(), channel), Channel::<Answer>::over(peer));
        for descriptor in [Some(unistd::dup(io::stdin()).unwrap()), None] {
            peer.queue.borrow_mut().put(Answer::StartedUnseen { pid: 7 }, descriptor);
        }
        peer.queue.borrow_mut().put(Answer::Started { pid: 7 }, None);
        peer.flush(clock::now()).unwrap();
        let received: [_; 3] = std::array::from_fn(|_| guard.receive().unwrap().unwrap().0);
        assert_eq!(
            received,
            [Answer::Started { pid: 7 }, Answer::StartedUnseen { pid: 7 }, Answer::Started { pid: 7 }]
        );
    }

    /// Its status is then all that tells why.
    #[test]
    fn a_guard_that_can_not_execute_ends_with_the_errno() {
        for (program, errno) in [("/no/program", Errno::ENOENT), ("/", Errno::EACCES)] {
            let guard = GuardHandle::begin(Path::new(program), &GuardConfig::default()).unwrap();
            let status = system::wait_for(guard.pid(), 0).unwrap().map(ExitStatus::from_raw);
            assert_eq!(status.unwrap().code(), Some(errno as i32), "{program}");
        }
    }

    /// Without pidfds only the guard's pid is known, and after waiting for the guard it may belong to another process.
    #[test]
    fn the_number_of_a_guard_that_was_waited_for_is_not_killed() {
        let mut other = Command::new("sleep").arg("600").spawn().unwrap();
        let (channel, _peer) = Channel::pair().unwrap();
        let mut guard = handle(Pid::from_raw(other.id().cast_signed()), channel);
        guard.note_death(None);
        assert_eq!(guard.signal(SIGKILL).unwrap_err().raw_os_error(), Some(Errno::ESRCH as i32));
        assert_eq!(other.try_wait().unwrap(), None);
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
