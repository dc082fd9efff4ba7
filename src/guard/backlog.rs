//! Sends the queued orders, as far as the socket has room for them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use neli_proto::guard::{Order, Orders};
use nix::libc::ETOOMANYREFS;

use crate::guard::channel::{Channel, may_be_sent_later};

/// Sends as many orders as possible. An order stays in the queue if the kernel has no room or no memory for it. An error means that the
/// socket is lost.
pub(super) fn flush(orders: &mut Orders<OwnedFd>, channel: &Channel) -> io::Result<()> {
    flush_by(orders, |order, descriptor| channel.send_json(order, descriptor))
}

fn flush_by(
    orders: &mut Orders<OwnedFd>,
    mut send: impl FnMut(&Order, Option<BorrowedFd<'_>>) -> io::Result<()>,
) -> io::Result<()> {
    while let Some((order, descriptor)) = orders.first() {
        let outcome = send(&order, descriptor.map(AsFd::as_fd));
        if outcome.as_ref().is_err_and(may_be_sent_later) {
            // Other processes of this user may have many descriptors in flight for a long time. So the descriptor for a command's output is
            // dropped, because the lease and the stop that are queued after it are more important.
            if outcome.is_err_and(|error| error.raw_os_error() == Some(ETOOMANYREFS)) && orders.give_up_descriptor() {
                continue;
            }
            return Ok(());
        }
        orders.drop_first();
        outcome?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use neli_proto::guard::{CommandKind, Target};
    use neli_proto::time::Time;
    use nix::libc::{SIGTERM, SIGUSR1};

    use super::*;

    fn stop() -> Order {
        Order::Stop { signal: Some(SIGTERM), kill_at: Time::from_nanos(1) }
    }

    /// `neli_proto::guard::Orders` decides the order of the queue, and has the tests for it.
    #[test]
    fn messages_for_a_full_socket_are_sent_in_order_once_there_is_room() {
        const SIGNAL: Order = Order::Signal { signal: SIGUSR1, to: Target::Main };
        let (ours, peer) = Channel::pair().unwrap();
        while ours.send(b"filler", None).is_ok() {}
        let mut backlog = Orders::default();
        for order in [SIGNAL, stop(), Order::Kill] {
            backlog.put(&order, None);
            flush(&mut backlog, &ours).unwrap();
        }
        assert!(!backlog.is_empty());
        while peer.receive().is_ok() {}
        flush(&mut backlog, &ours).unwrap();
        assert!(backlog.is_empty());
        let next = || peer.receive().ok()?.map(|packet| serde_json::from_slice(&packet.bytes).unwrap());
        assert_eq!(std::iter::from_fn(next).collect::<Vec<Order>>(), [stop(), Order::Kill, SIGNAL]);
    }

    #[test]
    fn a_stop_does_not_wait_for_a_descriptor_that_can_not_be_sent() {
        let command = Order::Command { kind: CommandKind::Health, id: 1, kill_at: Time::from_nanos(1) };
        let mut backlog = Orders::default();
        backlog.put(&command, Some(File::open("/dev/null").unwrap().into()));
        backlog.put(&stop(), None);
        let mut taken = Vec::new();
        let send = |order: &Order, descriptor: Option<BorrowedFd<'_>>| {
            if descriptor.is_some() {
                return Err(io::Error::from_raw_os_error(ETOOMANYREFS));
            }
            taken.push(*order);
            Ok(())
        };
        flush_by(&mut backlog, send).unwrap();
        assert_eq!(taken, [command, stop()]);
    }

    #[test]
    fn sending_to_a_guard_that_is_gone_is_an_error() {
        let (ours, peer) = Channel::pair().unwrap();
        drop(peer);
        let mut backlog = Orders::default();
        backlog.put(&stop(), None);
        assert_eq!(flush(&mut backlog, &ours).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(backlog.is_empty());
    }
}
