//! The orders that the guard has not received yet. None may be lost when the socket is full: if a stop were dropped, its job would
//! continue.

use alloc::collections::VecDeque;

use super::forwarded::Forwarded;
use super::message::Order;

/// Orders in the order in which they were given, each with an optional descriptor (`D`). After them come the signals to pass on, so that
/// Stop and Kill never wait for signals. The list stays short: a guard that does not answer is killed within a lease, and of repeated
/// orders for a command only the last one is kept.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Orders<D> {
    waiting: VecDeque<(Order, Option<D>)>,
    signals: Forwarded,
    owes_release: bool,
}

impl<D> Orders<D> {
    /// Adds an order at the end.
    pub fn put(&mut self, order: &Order, along: Option<D>) {
        match order {
            Order::Signal { signal, to } => return self.signals.put(*signal, *to),
            // The waiting signals were meant for the previous run.
            Order::Spawn { .. } => {
                self.signals.clear();
                self.owes_release = true;
            }
            Order::Released { .. } => self.owes_release = false,
            Order::Command { kind, .. } => {
                // If a command is ordered again, the earlier order was given up.
                let is_same =
                    |waiting: &Order| matches!(waiting, Order::Command { kind: waiting, .. } if waiting == kind);
                self.waiting.retain(|(waiting, _)| !is_same(waiting));
            }
            Order::HandOn
            | Order::Kill
            | Order::Lease(_)
            | Order::Over { .. }
            | Order::Stop { .. }
            | Order::TakeBack => {}
        }
        self.waiting.push_back((*order, along));
    }

    /// The order that is sent next.
    #[must_use]
    pub fn first(&self) -> Option<(Order, Option<&D>)> {
        match self.waiting.front() {
            Some((order, along)) => Some((*order, along.as_ref())),
            None => self.signals.first().map(|(signal, to)| (Order::Signal { signal, to }, None)),
        }
    }

    /// Drops the descriptor of the next order, because it can't be sent and the later orders must not wait for it. Returns whether there
    /// was one.
    pub fn give_up_descriptor(&mut self) -> bool {
        self.waiting.front_mut().is_some_and(|(_, along)| along.take().is_some())
    }

    /// Removes the order that is sent next.
    pub fn drop_first(&mut self) {
        if self.waiting.pop_front().is_none() {
            self.signals.take_first();
        }
    }

    /// Whether a job was ordered whose term the guard must release if the supervisor dies. This is so until an order reports that the term
    /// was released.
    #[must_use]
    pub const fn owes_release(&self) -> bool {
        self.owes_release
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.signals.is_empty()
    }
}

impl<D> Default for Orders<D> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), signals: Forwarded::default(), owes_release: false }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::guard::message::{CommandKind, Grant, Target};
    use crate::time::Time;

    const SIGNAL: Order = Order::Signal { signal: 10, to: Target::Main };

    /// The orders that a guard without earlier orders receives.
    fn taken_after(given: &[Order]) -> Vec<Order> {
        let mut orders = Orders::<()>::default();
        for order in given {
            orders.put(order, None);
        }
        let taken = core::iter::from_fn(|| {
            let (first, _) = orders.first()?;
            assert!(!orders.is_empty());
            orders.drop_first();
            Some(first)
        });
        let taken = taken.collect();
        assert!(orders.is_empty());
        taken
    }

    #[test]
    fn a_signal_for_an_earlier_run_is_not_sent_to_the_next() {
        let grant = Grant { term: 1, seen: 1, next_seq: 1, until: Time::from_nanos(1) };
        let spawn = Order::Spawn { grant, run: 2, attempt: 2, window: None };
        assert_eq!(taken_after(&[SIGNAL, spawn]), core::slice::from_ref(&spawn));
        assert_eq!(taken_after(&[spawn, SIGNAL]), [spawn, SIGNAL]);
    }

    #[test]
    fn a_release_is_owed_from_the_spawn_order_until_an_order_settles_it() {
        let grant = Grant { term: 1, seen: 1, next_seq: 1, until: Time::from_nanos(1) };
        let mut orders = Orders::<()>::default();
        orders.put(&Order::Lease(grant), None);
        assert!(!orders.owes_release());
        orders.put(&Order::Spawn { grant, run: 1, attempt: 1, window: None }, None);
        assert!(orders.owes_release());
        while orders.first().is_some() {
            orders.drop_first();
        }
        orders.put(&Order::Over { term: 1 }, None);
        assert!(orders.owes_release());
        orders.put(&Order::Released { term: 1 }, None);
        assert!(!orders.owes_release());
    }

    #[test]
    fn an_order_that_gives_up_its_descriptor_stays_first() {
        let mut orders = Orders::default();
        assert!(!orders.give_up_descriptor(), "no order waits");
        orders.put(&Order::Released { term: 1 }, Some("terminal"));
        assert!(orders.give_up_descriptor());
        assert_eq!(orders.first(), Some((Order::Released { term: 1 }, None)));
        assert!(!orders.give_up_descriptor(), "it has given it up already");
    }

    #[test]
    fn of_a_command_the_last_order_counts() {
        let command = |kind, id| Order::Command { kind, id, kill_at: Time::from_nanos(1) };
        let (lead, health) = (command(CommandKind::Lead, 1), |id| command(CommandKind::Health, id));
        assert_eq!(taken_after(&[health(1), lead, health(2)]), [lead, health(2)]);
    }
}
