//! Sends the orders that wait, as far as the socket has room for them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use neli_proto::guard::Orders;
use nix::libc::{EAGAIN, ENOBUFS, ENOMEM};

use crate::guard::channel::Channel;

/// Sends what can be sent. What the kernel has no room or no memory for waits; an error says that it is lost.
pub(super) fn flush(orders: &mut Orders<OwnedFd>, channel: &Channel) -> io::Result<()> {
    while let Some((order, descriptor)) = orders.first() {
        let sent = serde_json::to_vec(&order)
            .map_err(io::Error::from)
            .and_then(|bytes| channel.send(&bytes, descriptor.map(AsFd::as_fd)));
        if sent.as_ref().is_err_and(may_be_sent_later) {
            return Ok(());
        }
        orders.drop_first();
        sent?;
    }
    Ok(())
}

fn may_be_sent_later(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|error| [EAGAIN, ENOBUFS, ENOMEM].contains(&error))
}

#[cfg(test)]
mod tests {
    use neli_proto::guard::{CommandKind, Grant, Order, Target};
    use neli_proto::time::Time;
    use nix::libc::{SIGTERM, SIGUSR1};

    use super::*;

    const SIGNAL: Order = Order::Signal { signal: SIGUSR1, to: Target::Main };

    fn stop() -> Order {
        Order::Stop { signal: Some(SIGTERM), kill_at: Time::from_nanos(1) }
    }

    /// A backlog whose guard has taken none of these orders, and what it takes then.
    fn taken_after(orders: &[Order]) -> Vec<Order> {
        let (ours, theirs) = Channel::pair().unwrap();
        while ours.send(b"filler", None).is_ok() {}
        let mut backlog = Orders::default();
        for order in orders {
            backlog.put(order, None);
            flush(&mut backlog, &ours).unwrap();
        }
        while theirs.receive().is_ok() {}
        flush(&mut backlog, &ours).unwrap();
        assert!(backlog.is_empty());
        let next = || theirs.receive().ok()?.map(|packet| serde_json::from_slice(&packet.bytes).unwrap());
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn stop_and_kill_never_wait_behind_signals() {
        let orders = [vec![SIGNAL; 1_000], vec![stop(), SIGNAL, Order::Kill]].concat();
        assert_eq!(taken_after(&orders), [stop(), Order::Kill, SIGNAL]);
    }

    #[test]
    fn a_signal_to_a_run_that_is_over_does_not_come_to_the_next() {
        let grant = Grant { term: 1, seen: 1, next_seq: 1, until: Time::from_nanos(1) };
        let spawn = Order::Spawn { grant, attempt: 2 };
        assert_eq!(taken_after(&[SIGNAL, spawn.clone()]), std::slice::from_ref(&spawn));
        assert_eq!(taken_after(&[spawn.clone(), SIGNAL]), [spawn, SIGNAL]);
    }

    #[test]
    fn of_a_command_the_last_order_counts() {
        let command = |kind, id| Order::Command { kind, id, kill_at: Time::from_nanos(1) };
        let (lead, health) = (command(CommandKind::Lead, 1), |id| command(CommandKind::Health, id));
        assert_eq!(taken_after(&[health(1), lead.clone(), health(2)]), [lead, health(2)]);
    }

    #[test]
    fn a_guard_that_is_gone_takes_nothing_and_says_so() {
        let (ours, theirs) = Channel::pair().unwrap();
        drop(theirs);
        let mut backlog = Orders::default();
        backlog.put(&stop(), None);
        assert_eq!(flush(&mut backlog, &ours).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(backlog.is_empty());
    }
}
