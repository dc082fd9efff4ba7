//! A guard that has not been started yet, and the orders for it.

use super::message::{Answer, Grant, Order};
use super::orders::Orders;
use crate::time::Time;

/// The orders for a guard that has not been started yet, in the order in which they were given.
///
/// It answers in the guard's place while there is no job to guard, so that the guard does not count as hanging. If a grant is extended
/// meanwhile, the guard gets the last one. If the term ends before the guard is started, none is started, since no process of that term is
/// alive.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct AwaitedGuard {
    orders: Orders<()>,
    /// The last grant.
    grant: Option<Grant>,
    is_job_ordered: bool,
}

/// The consequence for the wait, and the answer to the order, if any.
#[derive(Clone, Debug, Eq, PartialEq)]
#[must_use]
pub enum Wait {
    /// The wait continues.
    GoesOn(Option<Answer>),
    /// No guard needs to be started.
    IsOver(Option<Answer>),
}

impl AwaitedGuard {
    /// Keeps an order.
    pub fn put(&mut self, order: &Order) -> Wait {
        match order {
            Order::Lease(grant) => {
                if self.grant.replace(*grant).is_none() {
                    self.orders.put(order, None);
                }
                return Wait::GoesOn(Some(Answer::Extended { until: grant.until }));
            }
            Order::Spawn { grant, .. } => {
                (self.grant, self.is_job_ordered) = (Some(*grant), true);
                self.orders.put(order, None);
                return Wait::GoesOn(Some(Answer::Accepted { until: grant.until }));
            }
            Order::Kill | Order::Stop { .. } if self.is_job_ordered => return Wait::IsOver(Some(Answer::Gone)),
            Order::Over { .. } => return Wait::IsOver(None),
            Order::Command { .. }
            | Order::HandOn
            | Order::Kill
            | Order::Released { .. }
            | Order::Signal { .. }
            | Order::Stop { .. }
            | Order::TakeBack => {}
        }
        self.orders.put(order, None);
        Wait::GoesOn(None)
    }

    /// Whether no term is held.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.grant.is_none()
    }

    /// The consequence when the guard may start: nothing is started after the guard's deadline.
    pub fn turn(&self, now: Time) -> Wait {
        match self.grant {
            Some(Grant { term, until, .. }) if now >= until => Wait::IsOver(Some(Answer::Fenced { term, end: None })),
            Some(_) | None => Wait::GoesOn(None),
        }
    }

    /// The first orders for the started guard, with the present deadline and not that of the original order.
    pub fn into_orders(self) -> impl Iterator<Item = Order> {
        let Self { mut orders, grant, .. } = self;
        core::iter::from_fn(move || {
            let (order, _) = orders.first()?;
            orders.drop_first();
            Some(match (order, grant) {
                (Order::Lease(_), Some(grant)) => Order::Lease(grant),
                (Order::Spawn { run, attempt, window, .. }, Some(grant)) => {
                    Order::Spawn { grant, run, attempt, window }
                }
                (order, _) => order,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::guard::message::{CommandKind, Target};

    const SIGNAL: Order = Order::Signal { signal: 10, to: Target::Main };
    const STOP: Order = Order::Stop { signal: Some(15), kill_at: Time::from_nanos(9) };

    fn grant(until: u64) -> Grant {
        Grant { term: 7, seen: 8, next_seq: 3, until: Time::from_nanos(until) }
    }

    fn spawn(until: u64) -> Order {
        Order::Spawn { grant: grant(until), run: 1, attempt: 1, window: None }
    }

    fn awaited(orders: &[Order]) -> AwaitedGuard {
        let mut guard = AwaitedGuard::default();
        for order in orders {
            assert!(matches!(guard.put(order), Wait::GoesOn(_)), "{order:?}");
        }
        guard
    }

    #[test]
    fn orders_are_kept_in_order_and_the_job_starts_with_the_deadline_of_now() {
        let command = Order::Command { kind: CommandKind::Lead, id: 1, kill_at: Time::from_nanos(5) };
        let released = Order::Released { term: 5 };
        let guard = awaited(&[released, spawn(10), command, Order::Lease(grant(20)), SIGNAL]);
        assert_eq!(guard.into_orders().collect::<Vec<_>>(), [released, spawn(20), command, SIGNAL]);
    }

    /// The supervisor takes a guard that does not answer for one that hangs.
    #[test]
    fn each_grant_is_answered_and_the_guard_gets_the_last_one() {
        let (lease, until) = (|until| Order::Lease(grant(until)), Time::from_nanos);
        let mut guard = AwaitedGuard::default();
        // With `--settle` the first order is a lease.
        assert_eq!(guard.put(&lease(10)), Wait::GoesOn(Some(Answer::Extended { until: until(10) })));
        assert_eq!(guard.put(&lease(20)), Wait::GoesOn(Some(Answer::Extended { until: until(20) })));
        assert_eq!(guard.put(&spawn(20)), Wait::GoesOn(Some(Answer::Accepted { until: until(20) })));
        assert_eq!(guard.put(&lease(30)), Wait::GoesOn(Some(Answer::Extended { until: until(30) })));
        assert_eq!(guard.into_orders().collect::<Vec<_>>(), [lease(30), spawn(30)]);
    }

    #[test]
    fn a_term_that_ends_before_its_guard_is_started_leaves_nothing() {
        for end in [Order::Kill, STOP] {
            assert_eq!(awaited(&[spawn(10)]).put(&end), Wait::IsOver(Some(Answer::Gone)));
        }
        assert_eq!(awaited(&[Order::Lease(grant(10))]).put(&Order::Over { term: 7 }), Wait::IsOver(None));
    }

    /// There is no end to wait for if no job was ordered.
    #[test]
    fn a_stop_ends_the_wait_only_if_a_job_was_ordered() {
        let guard = awaited(&[Order::Lease(grant(10)), STOP, Order::Kill]);
        assert_eq!(guard.into_orders().collect::<Vec<_>>(), [Order::Lease(grant(10)), STOP, Order::Kill]);
    }

    #[test]
    fn nothing_is_started_at_its_deadline() {
        let guard = awaited(&[spawn(10), Order::Lease(grant(20))]);
        assert_eq!(guard.turn(Time::from_nanos(19)), Wait::GoesOn(None));
        let fenced = Answer::Fenced { term: 7, end: None };
        assert_eq!(guard.turn(Time::from_nanos(20)), Wait::IsOver(Some(fenced)));
    }

    #[test]
    fn one_for_which_no_term_is_held_is_idle() {
        assert!(AwaitedGuard::default().is_idle() && awaited(&[Order::Released { term: 5 }]).is_idle());
        assert!(!awaited(&[spawn(10)]).is_idle());
        assert_eq!(AwaitedGuard::default().turn(Time::from_nanos(u64::MAX)), Wait::GoesOn(None));
    }
}
