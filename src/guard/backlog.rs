//! The queued orders. They are sent as far as the socket has room for them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use neli_proto::guard::{Order, Orders};
use neli_proto::time::Time;
use nix::libc::ETOOMANYREFS;

use crate::guard::channel::{Channel, SEND_AGAIN, Waiting};

/// The queued orders.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    pub(super) orders: Orders<OwnedFd>,
    /// When to send orders again for which the kernel lacked a resource. They are not sent when the socket has room, because that does not
    /// mean that the kernel has the missing resource.
    send_again_at: Option<Time>,
}

impl Backlog {
    /// Sends as many orders as possible. An order stays in the queue if the kernel has no room or no memory for it. An error means that the
    /// socket is lost.
    pub(super) fn flush(&mut self, now: Time, channel: &Channel) -> io::Result<()> {
        self.flush_by(now, |order, descriptor| channel.send_json(order, descriptor))
    }

    /// When to call [`flush`](Self::flush) again, whether the socket has room or not.
    pub(super) const fn poll_timeout(&self) -> Option<Time> {
        self.send_again_at
    }

    /// Whether orders are sent when the socket has room.
    pub(super) fn awaits_room(&self) -> bool {
        !self.orders.is_empty() && self.send_again_at.is_none()
    }

    fn flush_by(
        &mut self,
        now: Time,
        mut send: impl FnMut(&Order, Option<BorrowedFd<'_>>) -> io::Result<()>,
    ) -> io::Result<()> {
        let Self { orders, send_again_at } = self;
        *send_again_at = None;
        while let Some((order, descriptor)) = orders.first() {
            let outcome = send(&order, descriptor.map(AsFd::as_fd));
            if let Some(waiting) = outcome.as_ref().err().and_then(Waiting::of) {
                // Other processes of this user may have many descriptors in flight for a long time. So the descriptor for a command's
                // output is dropped, because the lease and the stop that are queued after it are more important.
                if outcome.is_err_and(|error| error.raw_os_error() == Some(ETOOMANYREFS)) && orders.give_up_descriptor()
                {
                    continue;
                }
                *send_again_at = (waiting == Waiting::OutOfResources).then(|| now + SEND_AGAIN);
                return Ok(());
            }
            orders.drop_first();
            outcome?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use neli_proto::guard::{CommandKind, Target};
    use nix::libc::{ENOBUFS, ENOMEM, SIGTERM, SIGUSR1};

    use super::*;

    const NOW: Time = Time::from_nanos(1_000);

    fn stop() -> Order {
        Order::Stop { signal: Some(SIGTERM), kill_at: Time::from_nanos(1) }
    }

    /// `neli_proto::guard::Orders` decides the order of the queue, and has the tests for it.
    #[test]
    fn messages_for_a_full_socket_are_sent_in_order_once_there_is_room() {
        const SIGNAL: Order = Order::Signal { signal: SIGUSR1, to: Target::Main };
        let (ours, peer) = Channel::pair().unwrap();
        while ours.send(b"filler", None).is_ok() {}
        let mut backlog = Backlog::default();
        for order in [SIGNAL, stop(), Order::Kill] {
            backlog.orders.put(&order, None);
            backlog.flush(NOW, &ours).unwrap();
        }
        assert!(backlog.awaits_room() && backlog.poll_timeout().is_none());
        while peer.receive().is_ok() {}
        backlog.flush(NOW, &ours).unwrap();
        assert!(backlog.orders.is_empty());
        let next = || peer.receive().ok()?.map(|packet| serde_json::from_slice(&packet.bytes).unwrap());
        assert_eq!(std::iter::from_fn(next).collect::<Vec<Order>>(), [stop(), Order::Kill, SIGNAL]);
    }

    #[test]
    fn a_stop_does_not_wait_for_a_descriptor_that_can_not_be_sent() {
        let command = Order::Command { kind: CommandKind::Health, id: 1, kill_at: Time::from_nanos(1) };
        let mut backlog = Backlog::default();
        backlog.orders.put(&command, Some(File::open("/dev/null").unwrap().into()));
        backlog.orders.put(&stop(), None);
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
        drop(peer);
        let mut backlog = Backlog::default();
        backlog.orders.put(&stop(), None);
        assert_eq!(backlog.flush(NOW, &ours).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(backlog.orders.is_empty());
    }

    /// A socket that has room does not become writable again, so nothing else would send them.
    #[test]
    fn an_order_without_kernel_memory_is_sent_again_soon() {
        for errno in [ENOBUFS, ENOMEM, ETOOMANYREFS] {
            let mut backlog = Backlog::default();
            backlog.orders.put(&stop(), None);
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
}
