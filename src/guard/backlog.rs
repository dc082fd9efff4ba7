//! Sends the orders that wait, as far as the socket has room for them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use neli_proto::guard::Orders;

use crate::guard::channel::{Channel, may_be_sent_later};

/// Sends what can be sent. A message for which the kernel has no room or no memory waits; an error means that the
/// socket is lost.
pub(super) fn flush(orders: &mut Orders<OwnedFd>, channel: &Channel) -> io::Result<()> {
    while let Some((order, descriptor)) = orders.first() {
        let sent = channel.send_json(&order, descriptor.map(AsFd::as_fd));
        if sent.as_ref().is_err_and(may_be_sent_later) {
            return Ok(());
        }
        orders.drop_first();
        sent?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use neli_proto::guard::{Order, Target};
    use neli_proto::time::Time;
    use nix::libc::{SIGTERM, SIGUSR1};

    use super::*;

    fn stop() -> Order {
        Order::Stop { signal: Some(SIGTERM), kill_at: Time::from_nanos(1) }
    }

    /// In which order they wait is shown where that is decided, in `neli_proto::guard::Orders`.
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
    fn a_guard_that_is_gone_takes_nothing_and_says_so() {
        let (ours, peer) = Channel::pair().unwrap();
        drop(peer);
        let mut backlog = Orders::default();
        backlog.put(&stop(), None);
        assert_eq!(flush(&mut backlog, &ours).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(backlog.is_empty());
    }
}
