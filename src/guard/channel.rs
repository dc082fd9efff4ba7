//! The socket between supervisor and guard, which never blocks. It carries packets, some with a descriptor. What it has no room for waits in queues:
//! the supervisor's orders, and the guard's answers.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use neli_proto::guard::Waiting;
use neli_proto::time::Time;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc::{self, ETOOMANYREFS};
use nix::sys::socket::{
    self, AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, Shutdown, SockFlag, SockType, UnixAddr,
};
use serde::Serialize;

use crate::guard::message::LONGEST;
use crate::process::system;

/// One end of the socket.
#[derive(Debug)]
pub(super) struct Channel(OwnedFd);

/// A received packet.
#[derive(Debug)]
pub(super) struct Packet {
    /// The message.
    pub(super) bytes: Vec<u8>,
    /// The descriptor that came with it.
    pub(super) descriptor: Option<OwnedFd>,
    /// Whether a descriptor came with it and was lost, because this process was at its limit of open files.
    pub(super) is_descriptor_lost: bool,
}

impl Channel {
    /// Both ends of a new socket. A packet arrives as a whole or not at all, and each end notices that the other one was closed.
    pub(super) fn pair() -> io::Result<(Self, Self)> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let (one, other) = socket::socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
        Ok((Self(one), Self(other)))
    }

    /// The end that this descriptor refers to.
    pub(super) fn over(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Sends a packet. The error is `WouldBlock` if the socket is full because the other side has not read for long.
    pub(super) fn send(&self, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let numbers: Vec<RawFd> = descriptor.iter().map(AsRawFd::as_raw_fd).collect();
        let control = [ControlMessage::ScmRights(&numbers)];
        let control = if numbers.is_empty() { &[] } else { control.as_slice() };
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        socket::sendmsg::<UnixAddr>(self.0.as_raw_fd(), &[IoSlice::new(bytes)], control, flags, None)?;
        Ok(())
    }

    /// Sends a message as a packet of JSON.
    pub(super) fn send_json(&self, message: &impl Serialize, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        self.send(&serde_json::to_vec(message)?, descriptor)
    }

    /// Shuts the socket down for both sides; the descriptor stays open.
    pub(super) fn close(&self) {
        // It fails if the other side has closed the socket.
        let _ = socket::shutdown(self.0.as_raw_fd(), Shutdown::Both);
    }

    /// The next packet; `None` if the other side has closed and everything was read. `WouldBlock` if no packet has come.
    pub(super) fn receive(&self) -> io::Result<Option<Packet>> {
        loop {
            match self.receive_once() {
                // The other side closed the socket before it had read all of our packets. The kernel reports that first, and once; packets
                // that the other side sent before can still be read.
                Err(Errno::ECONNRESET | Errno::EINTR) => {}
                other => return Ok(other?),
            }
        }
    }

    fn receive_once(&self) -> nix::Result<Option<Packet>> {
        let mut bytes = vec![0; LONGEST];
        let mut control = cmsg_space!(RawFd);
        let (length, descriptor, is_descriptor_lost) = {
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
            let message = socket::recvmsg::<UnixAddr>(self.0.as_raw_fd(), &mut parts, Some(&mut control), flags)?;
            // The buffer is larger than any message, so only a descriptor can have been cut off, at the limit of open files.
            let is_cut = message.flags.contains(MsgFlags::MSG_CTRUNC);
            let mut numbers = Vec::new();
            for control in message.cmsgs().into_iter().flatten() {
                if let ControlMessageOwned::ScmRights(some) = control {
                    numbers.extend(some);
                }
            }
            // The process takes over all descriptors, so that none stays open by mistake, and uses the first one.
            let descriptors: Vec<OwnedFd> =
                numbers.into_iter().filter_map(|number| system::adopt(number).ok()).collect();
            (message.bytes, descriptors.into_iter().next(), is_cut)
        };
        bytes.truncate(length);
        Ok((length > 0).then_some(Packet { bytes, descriptor, is_descriptor_lost }))
    }
}

/// The delay before packets are sent again for which the kernel lacked a resource.
const SEND_AGAIN: Duration = Duration::from_millis(20);

/// Whether a packet that was not sent for this reason should be sent again; otherwise the other side is gone.
fn is_temporary(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | ETOOMANYREFS))
}

/// When to send such a packet again; `None` if the socket is full, which becomes writable later. If the kernel lacks memory, or this user has
/// too many descriptors in flight, the kernel does not report when that is over.
fn again_at(now: Time, error: &io::Error) -> Option<Time> {
    (error.kind() != io::ErrorKind::WouldBlock).then(|| now + SEND_AGAIN)
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The queued messages.
#[derive(Debug, Default)]
pub(super) struct Backlog<Q> {
    pub(super) queue: Q,
    /// When to send messages again for which the kernel lacked a resource. They are not sent when the socket has room, because that does not
    /// mean that the kernel has the missing resource.
    send_again_at: Option<Time>,
}

impl<Q: Waiting<OwnedFd, Message: Serialize>> Backlog<Q> {
    /// Sends as many messages as possible. A message stays in the queue if the kernel has no room or no memory for it. An error means that the
    /// socket is lost.
    pub(super) fn flush(&mut self, now: Time, channel: &Channel) -> io::Result<()> {
        self.flush_by(now, |message, descriptor| channel.send_json(message, descriptor))
    }

    /// When to call [`flush`](Self::flush) again, whether the socket has room or not.
    pub(super) const fn poll_timeout(&self) -> Option<Time> {
        self.send_again_at
    }

    /// Whether messages are sent when the socket has room.
    pub(super) fn awaits_room(&self) -> bool {
        !self.queue.is_empty() && self.send_again_at.is_none()
    }

    fn flush_by(
        &mut self,
        now: Time,
        mut send: impl FnMut(&Q::Message, Option<BorrowedFd<'_>>) -> io::Result<()>,
    ) -> io::Result<()> {
        let Self { queue, send_again_at } = self;
        *send_again_at = None;
        while let Some((message, descriptor)) = queue.first() {
            let outcome = send(&message, descriptor.map(AsFd::as_fd));
            if let Err(error) = &outcome
                && is_temporary(error)
            {
                // Other processes of this user may have many descriptors in flight for a long time. So the descriptor is dropped: after one for a
                // command's output the lease and the stop wait, and a guard that sends no answers is killed with its job.
                if error.raw_os_error() == Some(ETOOMANYREFS) && queue.give_up_descriptor() {
                    continue;
                }
                *send_again_at = again_at(now, error);
                return Ok(());
            }
            queue.drop_first();
            outcome?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use neli_proto::guard::{Answer, Answers, CommandKind, Order, Orders, Target};
    use nix::libc::{ENOBUFS, ENOMEM, SIGTERM, SIGUSR1};

    use super::*;

    const NOW: Time = Time::from_nanos(1_000);

    fn stop() -> Order {
        Order::Stop { signal: Some(SIGTERM), kill_at: Time::from_nanos(1) }
    }

    #[test]
    fn a_packet_comes_whole_with_its_descriptor() {
        let (one, other) = Channel::pair().unwrap();
        let file = File::open("/proc/self/comm").unwrap();
        one.send(b"with", Some(file.as_fd())).unwrap();
        one.send(b"without", None).unwrap();
        let packet = other.receive().unwrap().unwrap();
        assert_eq!(packet.bytes, b"with");
        let mut text = String::new();
        File::from(packet.descriptor.unwrap()).read_to_string(&mut text).unwrap();
        assert!(!text.is_empty());
        let packet = other.receive().unwrap().unwrap();
        assert_eq!((packet.bytes.as_slice(), packet.descriptor.is_none()), (b"without".as_slice(), true));
        assert_eq!(other.receive().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn packets_sent_before_the_end_are_read_before_it() {
        let (one, other) = Channel::pair().unwrap();
        other.send(b"never read", None).unwrap();
        one.send(b"last word", None).unwrap();
        drop(one);
        assert_eq!(other.receive().unwrap().unwrap().bytes, b"last word");
        // A process that another test starts has a copy of the descriptor until it executes its program.
        let is_awaited = |end: &io::Result<_>| matches!(end, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        let end = std::iter::repeat_with(|| other.receive()).find(|end| !is_awaited(end));
        assert!(end.unwrap().unwrap().is_none());
    }

    #[test]
    fn a_full_socket_is_no_reason_to_wait() {
        let (one, _other) = Channel::pair().unwrap();
        let refused = (0..100_000).find_map(|_| one.send(&[b'x'; 1000], None).err());
        assert_eq!(refused.unwrap().kind(), io::ErrorKind::WouldBlock);
    }

    /// `neli_proto::guard::Orders` decides the order of the queue, and has the tests for it.
    #[test]
    fn messages_for_a_full_socket_are_sent_in_order_once_there_is_room() {
        const SIGNAL: Order = Order::Signal { signal: SIGUSR1, to: Target::Main };
        let (ours, peer) = Channel::pair().unwrap();
        while ours.send(b"filler", None).is_ok() {}
        let mut backlog = Backlog::<Orders<_>>::default();
        for order in [SIGNAL, stop(), Order::Kill] {
            backlog.queue.put(&order, None);
            backlog.flush(NOW, &ours).unwrap();
        }
        assert!(backlog.awaits_room() && backlog.poll_timeout().is_none());
        while peer.receive().is_ok() {}
        backlog.flush(NOW, &ours).unwrap();
        assert!(backlog.queue.is_empty());
        let next = || peer.receive().ok()?.map(|packet| serde_json::from_slice(&packet.bytes).unwrap());
        assert_eq!(std::iter::from_fn(next).collect::<Vec<Order>>(), [stop(), Order::Kill, SIGNAL]);
    }

    #[test]
    fn a_stop_does_not_wait_for_a_descriptor_that_can_not_be_sent() {
        let command = Order::Command { kind: CommandKind::Health, id: 1, kill_at: Time::from_nanos(1) };
        let mut backlog = Backlog::<Orders<_>>::default();
        backlog.queue.put(&command, Some(File::open("/dev/null").unwrap().into()));
        backlog.queue.put(&stop(), None);
        let mut taken = Vec::new();
        let send = |order: &Order, descriptor: Option<BorrowedFd<'_>>| {
            if descriptor.is_some() {
                return Err(io::Error::from_raw_os_error(ETOOMANYREFS));
            }
            taken.push(*order);
            Ok(())
        };
        backlog.flush_by(NOW, send).unwrap();
        assert_eq!(taken, [command, stop()]);
    }

    #[test]
    fn sending_to_a_guard_that_is_gone_is_an_error() {
        let (ours, peer) = Channel::pair().unwrap();
        // That it is dropped might not be enough: a process that another test starts has a copy of it until it executes its program.
        peer.close();
        let mut backlog = Backlog::<Orders<_>>::default();
        backlog.queue.put(&stop(), None);
        assert_eq!(backlog.flush(NOW, &ours).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(backlog.queue.is_empty());
    }

    /// A socket that has room does not become writable again, so nothing else would send them.
    #[test]
    fn an_order_without_kernel_memory_is_sent_again_soon() {
        for errno in [ENOBUFS, ENOMEM, ETOOMANYREFS] {
            let mut backlog = Backlog::<Orders<_>>::default();
            backlog.queue.put(&stop(), None);
            backlog.flush_by(NOW, |_, _| Err(io::Error::from_raw_os_error(errno))).unwrap();
            assert_eq!((backlog.poll_timeout(), backlog.awaits_room()), (Some(NOW + SEND_AGAIN), false));
            let mut taken = Vec::new();
            let send = |order: &Order, _: Option<BorrowedFd<'_>>| {
                taken.push(*order);
                Ok(())
            };
            backlog.flush_by(NOW + SEND_AGAIN, send).unwrap();
            assert_eq!((backlog.poll_timeout(), taken), (None, vec![stop()]));
        }
    }

    #[test]
    fn a_supervisor_that_reads_late_misses_no_end() {
        let (ours, peer) = Channel::pair().unwrap();
        while ours.send(b"filler", None).is_ok() {}
        let mut backlog = Backlog::<Answers<_>>::default();
        for nanos in 0..1_000 {
            backlog.queue.put(Answer::Extended { until: Time::from_nanos(nanos) }, None);
        }
        backlog.queue.put(Answer::Gone, None);
        backlog.flush(NOW, &ours).unwrap();
        assert!(backlog.awaits_room());

        while peer.receive().is_ok() {}
        backlog.flush(NOW, &ours).unwrap();
        assert!(backlog.queue.is_empty());
        let taken: Vec<Answer> =
            (0..2).map(|_| serde_json::from_slice(&peer.receive().unwrap().unwrap().bytes).unwrap()).collect();
        assert_eq!(taken, [Answer::Extended { until: Time::from_nanos(999) }, Answer::Gone]);
        assert!(peer.receive().is_err());
    }

    #[test]
    fn a_start_is_reported_although_no_descriptor_can_be_sent() {
        let mut backlog = Backlog::<Answers<_>>::default();
        backlog.queue.put(Answer::Started { pid: 7 }, Some(File::open("/dev/null").unwrap().into()));
        backlog.queue.put(Answer::Gone, None);
        let mut taken = Vec::new();
        let send = |answer: &Answer, descriptor: Option<BorrowedFd<'_>>| {
            if descriptor.is_some() {
                return Err(io::Error::from_raw_os_error(ETOOMANYREFS));
            }
            taken.push(answer.clone());
            Ok(())
        };
        backlog.flush_by(NOW, send).unwrap();
        assert_eq!((backlog.poll_timeout(), taken), (None, vec![Answer::StartedUnseen { pid: 7 }, Answer::Gone]));
    }
}
