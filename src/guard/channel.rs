//! One end of the socket between supervisor and guard. It carries packets, some with a descriptor, and never blocks.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc;
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
pub(super) const SEND_AGAIN: Duration = Duration::from_millis(20);

/// Why packets are still queued.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Waiting {
    /// The socket is full: it becomes writable later.
    Full,
    /// The kernel lacks memory, or this user has too many descriptors in flight. The kernel does not report when that is over.
    OutOfResources,
}

impl Waiting {
    /// Why a packet that was not sent for this reason should be sent again; `None` if the other side is gone.
    pub(super) fn of(error: &io::Error) -> Option<Self> {
        match error.raw_os_error()? {
            libc::EAGAIN => Some(Self::Full),
            libc::ENOBUFS | libc::ENOMEM | libc::ETOOMANYREFS => Some(Self::OutOfResources),
            _ => None,
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use super::*;

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
        assert!(other.receive().unwrap().is_none());
    }

    #[test]
    fn a_full_socket_is_no_reason_to_wait() {
        let (one, _other) = Channel::pair().unwrap();
        let refused = (0..100_000).find_map(|_| one.send(&[b'x'; 1000], None).err());
        assert_eq!(refused.unwrap().kind(), io::ErrorKind::WouldBlock);
    }
}
