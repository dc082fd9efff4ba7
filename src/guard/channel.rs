//! The socket between supervisor and guard, which never blocks. It carries packets, some with a descriptor. What it has no room for waits in a queue:
//! the supervisor's orders, and the guard's answers.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use neli_proto::guard::Queue;
use neli_proto::time::Time;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc::{self, ETOOMANYREFS};
use nix::sys::socket::{
    self, AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, Shutdown, SockFlag, SockType, UnixAddr,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::guard::message::LONGEST;
use crate::process::system;

/// The delay before packets are sent again for which the kernel lacked a resource.
const SEND_AGAIN: Duration = Duration::from_millis(20);

/// One end of the socket, and the messages that wait to be sent from it.
#[derive(Debug)]
pub(super) struct Channel<M> {
    socket: OwnedFd,
    pub(super) queue: RefCell<Queue<M, OwnedFd>>,
    /// When to send messages again for which the kernel lacked a resource. They are not sent when the socket has room, because that does not
    /// mean that the kernel has the missing resource.
    send_again_at: Cell<Option<Time>>,
}

impl<M: Clone + Serialize> Channel<M> {
    /// One end of a new socket, and the other end. A packet arrives as a whole or not at all, and each end notices that the other one was closed.
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let (one, other) = socket::socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
        Ok((Self::over(one), other))
    }

    /// The end that this descriptor refers to.
    pub(super) fn over(socket: OwnedFd) -> Self {
        Self { socket, queue: RefCell::default(), send_again_at: Cell::new(None) }
    }

    /// Shuts the socket down for both sides; the descriptor stays open.
    pub(super) fn close(&self) {
        // It fails if the other side has closed the socket.
        let _ = socket::shutdown(self.socket.as_raw_fd(), Shutdown::Both);
    }

    /// The next message, and the descriptor that came with it, unless this process was at its limit of open files; `None` if the other side has
    /// closed and everything was read. `WouldBlock` if no packet has come; `InvalidData` if it can't be decoded.
    pub(super) fn receive<R: DeserializeOwned>(&self) -> io::Result<Option<(R, Option<OwnedFd>)>> {
        loop {
            match receive_once(&self.socket) {
                // The other side closed the socket before it had read all of our packets. The kernel reports that first, and once; packets
                // that the other side sent before can still be read.
                Err(Errno::ECONNRESET | Errno::EINTR) => {}
                Ok((bytes, _)) if bytes.is_empty() => return Ok(None),
                Ok((bytes, descriptor)) => {
                    let message = serde_json::from_slice(&bytes)
                        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                    return Ok(Some((message, descriptor)));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends as many messages as possible. A message stays in the queue if the kernel has no room or no memory for it. An error means that the
    /// socket is lost.
    pub(super) fn flush(&self, now: Time) -> io::Result<()> {
        self.flush_by(now, |message, descriptor| send(&self.socket, &serde_json::to_vec(message)?, descriptor))
    }

    /// When to call [`flush`](Self::flush) again, whether the socket has room or not.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.send_again_at.get()
    }

    /// Whether messages are sent when the socket has room.
    pub(super) fn awaits_room(&self) -> bool {
        !self.queue.borrow().is_empty() && self.send_again_at.get().is_none()
    }

    fn flush_by(
        &self,
        now: Time,
        mut send: impl FnMut(&M, Option<BorrowedFd<'_>>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut queue = self.queue.borrow_mut();
        self.send_again_at.set(None);
        while let Some((message, descriptor)) = queue.first() {
            let outcome = send(message, descriptor.map(AsFd::as_fd));
            if let Err(error) = &outcome
                && is_temporary(error)
            {
                // Other processes of this user may have many descriptors in flight for a long time. So the descriptor is dropped: after one for a
                // command's output the lease and the stop wait, and a guard that sends no answers is killed with its job.
                if error.raw_os_error() == Some(ETOOMANYREFS) && queue.give_up_descriptor() {
                    continue;
                }
                // A full socket becomes writable later. If the kernel lacks memory, or this user has too many descriptors in flight, it does not
                // report when that is over.
                self.send_again_at.set((error.kind() != io::ErrorKind::WouldBlock).then(|| now + SEND_AGAIN));
                return Ok(());
            }
            queue.take_first();
            outcome?;
        }
        Ok(())
    }
}

impl<M> AsFd for Channel<M> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sends a packet. The error is `WouldBlock` if the socket is full because the other side has not read for long.
fn send(socket: &OwnedFd, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let numbers: Vec<RawFd> = descriptor.iter().map(AsRawFd::as_raw_fd).collect();
    let control = [ControlMessage::ScmRights(&numbers)];
    let control = if numbers.is_empty() { &[] } else { control.as_slice() };
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    socket::sendmsg::<UnixAddr>(socket.as_raw_fd(), &[IoSlice::new(bytes)], control, flags, None)?;
    Ok(())
}

/// Receives a packet, which is empty if the other side has closed, and the descriptor that came with it.
fn receive_once(socket: &OwnedFd) -> nix::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut bytes = vec![0; LONGEST];
    let mut control = cmsg_space!(RawFd);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let message = socket::recvmsg::<UnixAddr>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags)?;
    let mut numbers = Vec::new();
    for control in message.cmsgs().into_iter().flatten() {
        if let ControlMessageOwned::ScmRights(some) = control {
            numbers.extend(some);
        }
    }
    let length = message.bytes;
    bytes.truncate(length);
    // The process takes over all descriptors, so that none stays open by mistake, and uses the first one.
    let descriptors: Vec<OwnedFd> = numbers.into_iter().filter_map(|number| system::adopt(number).ok()).collect();
    Ok((bytes, descriptors.into_iter().next()))
}

/// Whether a packet that was not sent for this reason should be sent again; otherwise the other side is gone.
fn is_temporary(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | ETOOMANYREFS))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use neli_proto::guard::{Answer, CommandKind, Order, Target};
    use nix::libc::{ENOBUFS, ENOMEM, SIGTERM, SIGUSR1};

    use super::*;

    const NOW: Time = Time::from_nanos(1_000);

    fn stop() -> Order {
        Order::Stop { signal: Some(SIGTERM), kill_at: Time::from_nanos(1) }
    }

    /// A channel from which nothing was sent, and the other end.
    fn pair<M: Clone + Serialize>() -> (Channel<M>, OwnedFd) {
        Channel::pair().unwrap()
    }

    #[test]
    fn a_packet_comes_whole_with_its_descriptor() {
        let (one, other) = pair::<Order>();
        let file = File::open("/proc/self/comm").unwrap();
        send(&one.socket, b"with", Some(file.as_fd())).unwrap();
        send(&one.socket, b"without", None).unwrap();
        let (bytes, descriptor) = receive_once(&other).unwrap();
        assert_eq!(bytes, b"with");
        let mut text = String::new();
        File::from(descriptor.unwrap()).read_to_string(&mut text).unwrap();
        assert!(!text.is_empty());
        let (bytes, descriptor) = receive_once(&other).unwrap();
        assert_eq!((bytes.as_slice(), descriptor.is_none()), (b"without".as_slice(), true));
        assert_eq!(receive_once(&other).unwrap_err(), Errno::EWOULDBLOCK);
    }

    #[test]
    fn packets_sent_before_the_end_are_read_before_it() {
        let (one, other) = pair::<Order>();
        let other = Channel::<Answer>::over(other);
        send(&other.socket, b"never read", None).unwrap();
        one.queue.borrow_mut().put(&stop(), None);
        one.flush(NOW).unwrap();
        drop(one);
        let receive = || other.receive::<Order>().map(|received| received.map(|(order, _)| order));
        assert_eq!(receive().unwrap(), Some(stop()));
        // A process that another test starts has a copy of the descriptor until it executes its program.
        let is_awaited = |end: &io::Result<_>| matches!(end, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        let end = std::iter::repeat_with(receive).find(|end| !is_awaited(end));
        assert!(end.unwrap().unwrap().is_none());
    }

    #[test]
    fn a_full_socket_is_no_reason_to_wait() {
        let (one, _other) = pair::<Order>();
        let refused = (0..100_000).find_map(|_| send(&one.socket, &[b'x'; 1000], None).err());
        assert_eq!(refused.unwrap().kind(), io::ErrorKind::WouldBlock);
    }

    /// `neli_proto::guard::Queue` decides the order of the queue, and has the tests for it.
    #[test]
    fn messages_for_a_full_socket_are_sent_in_order_once_there_is_room() {
        const SIGNAL: Order = Order::Signal { signal: SIGUSR1, to: Target::Main };
        let (ours, peer) = pair::<Order>();
        while send(&ours.socket, b"filler", None).is_ok() {}
        for order in [SIGNAL, stop(), Order::Kill] {
            ours.queue.borrow_mut().put(&order, None);
            ours.flush(NOW).unwrap();
        }
        assert!(ours.awaits_room() && ours.poll_timeout().is_none());
        while receive_once(&peer).is_ok() {}
        ours.flush(NOW).unwrap();
        assert!(ours.queue.borrow().is_empty());
        let next = || receive_once(&peer).ok().map(|(bytes, _)| serde_json::from_slice(&bytes).unwrap());
        assert_eq!(std::iter::from_fn(next).collect::<Vec<Order>>(), [stop(), Order::Kill, SIGNAL]);
    }

    #[test]
    fn a_stop_does_not_wait_for_a_descriptor_that_can_not_be_sent() {
        let command = Order::Command { kind: CommandKind::Health, id: 1, kill_at: Time::from_nanos(1) };
        let (ours, _peer) = pair::<Order>();
        ours.queue.borrow_mut().put(&command, Some(File::open("/dev/null").unwrap().into()));
        ours.queue.borrow_mut().put(&stop(), None);
        let mut taken = Vec::new();
        let send = |order: &Order, descriptor: Option<BorrowedFd<'_>>| {
            if descriptor.is_some() {
                return Err(io::Error::from_raw_os_error(ETOOMANYREFS));
            }
            taken.push(*order);
            Ok(())
        };
        ours.flush_by(NOW, send).unwrap();
        assert_eq!(taken, [command, stop()]);
    }

    #[test]
    fn sending_to_a_guard_that_is_gone_is_an_error() {
        let (ours, peer) = pair::<Order>();
        // That it is dropped might not be enough: a process that another test starts has a copy of it until it executes its program.
        Channel::<Answer>::over(peer).close();
        ours.queue.borrow_mut().put(&stop(), None);
        assert_eq!(ours.flush(NOW).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(ours.queue.borrow().is_empty());
    }

    /// A socket that has room does not become writable again, so nothing else would send them.
    #[test]
    fn an_order_without_kernel_memory_is_sent_again_soon() {
        for errno in [ENOBUFS, ENOMEM, ETOOMANYREFS] {
            let (ours, _peer) = pair::<Order>();
            ours.queue.borrow_mut().put(&stop(), None);
            ours.flush_by(NOW, |_, _| Err(io::Error::from_raw_os_error(errno))).unwrap();
            assert_eq!((ours.poll_timeout(), ours.awaits_room()), (Some(NOW + SEND_AGAIN), false));
            let mut taken = Vec::new();
            let send = |order: &Order, _: Option<BorrowedFd<'_>>| {
                taken.push(*order);
                Ok(())
            };
            ours.flush_by(NOW + SEND_AGAIN, send).unwrap();
            assert_eq!((ours.poll_timeout(), taken), (None, vec![stop()]));
        }
    }

    #[test]
    fn a_supervisor_that_reads_late_misses_no_end() {
        let (ours, peer) = pair::<Answer>();
        while send(&ours.socket, b"filler", None).is_ok() {}
        for nanos in 0..1_000 {
            ours.queue.borrow_mut().put(Answer::Extended { until: Time::from_nanos(nanos) }, None);
        }
        ours.queue.borrow_mut().put(Answer::Gone, None);
        ours.flush(NOW).unwrap();
        assert!(ours.awaits_room());

        while receive_once(&peer).is_ok() {}
        ours.flush(NOW).unwrap();
        assert!(ours.queue.borrow().is_empty());
        let next = || receive_once(&peer).ok().map(|(bytes, _)| serde_json::from_slice(&bytes).unwrap());
        let extended = Answer::Extended { until: Time::from_nanos(999) };
        assert_eq!(std::iter::from_fn(next).collect::<Vec<Answer>>(), [extended, Answer::Gone]);
    }

    #[test]
    fn a_start_is_reported_although_no_descriptor_can_be_sent() {
        let (ours, _peer) = pair::<Answer>();
        ours.queue.borrow_mut().put(Answer::StartedUnseen { pid: 7 }, Some(File::open("/dev/null").unwrap().into()));
        ours.queue.borrow_mut().put(Answer::Gone, None);
        let mut taken = Vec::new();
        let send = |answer: &Answer, descriptor: Option<BorrowedFd<'_>>| {
            if descriptor.is_some() {
                return Err(io::Error::from_raw_os_error(ETOOMANYREFS));
            }
            taken.push(answer.clone());
            Ok(())
        };
        ours.flush_by(NOW, send).unwrap();
        assert_eq!((ours.poll_timeout(), taken), (None, vec![Answer::StartedUnseen { pid: 7 }, Answer::Gone]));
    }
}
