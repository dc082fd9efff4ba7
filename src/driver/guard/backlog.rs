//! The orders that the guard has not taken yet. A socket that is full must lose none of them: the job of a stop that was
//! dropped runs on.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::libc::{EAGAIN, ENOBUFS, ENOMEM};

use crate::driver::guard::channel::Channel;
use crate::driver::guard::forwarded::Forwarded;
use crate::driver::guard::message::Order;

/// Orders in order, and after them the signals to be passed on: so Stop and Kill never wait behind those. It stays short: a
/// guard that does not answer is killed within a lease, and of what may come more often than that the last is kept.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    orders: VecDeque<(Order, Option<OwnedFd>)>,
    signals: Forwarded,
}

impl Backlog {
    /// Puts an order at the end.
    pub(super) fn put(&mut self, order: &Order, descriptor: Option<OwnedFd>) {
        match order {
            Order::Signal { signal, to } => return self.signals.put(*signal, *to),
            // Whatever waits was for the run before.
            Order::Spawn { .. } => self.signals.clear(),
            Order::Command { kind, .. } => {
                // One that is ordered again was given up.
                let is_same =
                    |waiting: &Order| matches!(waiting, Order::Command { kind: waiting, .. } if waiting == kind);
                self.orders.retain(|(waiting, _)| !is_same(waiting));
            }
            Order::HandOn
            | Order::Kill
            // Each one is answered, and its answers are counted.
            | Order::Lease(_)
            | Order::Over { .. }
            | Order::Released { .. }
            | Order::Stop { .. }
            | Order::TakeBack => {}
        }
        self.orders.push_back((order.clone(), descriptor));
    }

    /// Sends what can be sent. What the kernel has no room or no memory for waits; an error says that it is lost.
    pub(super) fn flush(&mut self, channel: &Channel) -> io::Result<()> {
        while let Some((order, descriptor)) = self.orders.front() {
            let sent = serde_json::to_vec(order)
                .map_err(io::Error::from)
                .and_then(|bytes| channel.send(&bytes, descriptor.as_ref().map(AsFd::as_fd)));
            if sent.as_ref().is_err_and(may_be_sent_later) {
                return Ok(());
            }
            self.orders.pop_front();
            sent?;
        }
        while let Some((signal, to)) = self.signals.first() {
            let sent = serde_json::to_vec(&Order::Signal { signal, to })
                .map_err(io::Error::from)
                .and_then(|bytes| channel.send(&bytes, None));
            if sent.as_ref().is_err_and(may_be_sent_later) {
                return Ok(());
            }
            self.signals.take_first();
            sent?;
        }
        Ok(())
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.orders.is_empty() && self.signals.is_empty()
    }
}

fn may_be_sent_later(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|error| [EAGAIN, ENOBUFS, ENOMEM].contains(&error))
}

#[cfg(test)]
mod tests {
    use neli_proto::time::Time;
    use nix::libc::{SIGTERM, SIGUSR1};

    use super::*;
    use crate::driver::guard::message::{CommandKind, Grant, Target};

    const SIGNAL: Order = Order::Signal { signal: SIGUSR1, to: Target::Main };

    fn stop() -> Order {
        Order::Stop { signal: Some(SIGTERM), kill_at: Time::from_nanos(1) }
    }

    /// A backlog whose guard has taken none of these orders, and what it takes then.
    fn taken_after(orders: &[Order]) -> Vec<Order> {
        let (ours, theirs) = Channel::pair().unwrap();
        while ours.send(b"filler", None).is_ok() {}
        let mut backlog = Backlog::default();
        for order in orders {
            backlog.put(order, None);
            backlog.flush(&ours).unwrap();
        }
        while theirs.receive().is_ok() {}
        backlog.flush(&ours).unwrap();
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
        let mut backlog = Backlog::default();
        backlog.put(&stop(), None);
        assert_eq!(backlog.flush(&ours).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(backlog.is_empty());
    }
}
