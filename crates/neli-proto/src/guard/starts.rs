//! The order and the times of guards' starts, if several are wanted.
//!
//! A process that wins many roles at once would fork all of their guards at once, and heartbeats, deadlines and releases would wait for the
//! forks. So only as many guards start at the same time as there are processors. The others wait in order, but for a limited time.

use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;

use super::message::{Answer, Grant, Order};
use super::queue::Queue;
use crate::time::Time;

/// The guards that are starting and those that wait, by the numbers of their roles.
#[derive(Debug)]
pub struct GuardStarts {
    at_once: usize,
    patience: Duration,
    /// Waiting roles in order, each with the time at which its guard was wanted, and the orders for it.
    waiting: VecDeque<(usize, Time, AwaitedGuard)>,
    /// The roles whose guard was forked but has not started the job yet, and since when.
    starting: BTreeMap<usize, Time>,
}

impl GuardStarts {
    /// The starts on a machine with this many processors, for roles with this lease.
    pub fn new(processors: usize, lease: Duration) -> Self {
        // While this process forks one guard, another can execute.
        let at_once = processors.max(2);
        Self { at_once, patience: lease / 4, waiting: VecDeque::new(), starting: BTreeMap::new() }
    }

    /// Notes that a role wants a guard from now on, unless it waits already.
    pub fn want(&mut self, role: usize, now: Time) {
        if self.awaited(role).is_none() {
            self.waiting.push_back((role, now, AwaitedGuard::default()));
        }
    }

    /// The role's guard, if it waits.
    pub fn awaited(&mut self, role: usize) -> Option<&mut AwaitedGuard> {
        self.waiting.iter_mut().find(|(waiting, ..)| *waiting == role).map(|(.., awaited)| awaited)
    }

    /// The role whose guard must start now, if any. From then on it counts as starting.
    pub fn next(&mut self, now: Time) -> Option<(usize, AwaitedGuard)> {
        let (_, wanted, _) = *self.waiting.front()?;
        // A guard whose job is not ordered, for example because Kafka does not answer its claim, blocks the others
        // only briefly.
        self.starting.retain(|_, since| now < *since + self.patience);
        if self.starting.len() >= self.at_once && now < wanted + self.patience {
            return None;
        }
        let (role, _, awaited) = self.waiting.pop_front()?;
        self.starting.insert(role, now);
        Some((role, awaited))
    }

    /// Removes the role: its guard has started its job, or will not start it.
    pub fn remove(&mut self, role: usize) {
        if self.starting.remove(&role).is_none() {
            self.waiting.retain(|(waiting, ..)| *waiting != role);
        }
    }

    /// When to call [`next`](Self::next) again, unless a start ends before.
    pub fn poll_timeout(&self) -> Option<Time> {
        let (_, wanted, _) = self.waiting.front()?;
        if self.starting.len() < self.at_once {
            return Some(*wanted);
        }
        self.starting.values().chain([wanted]).min().map(|since| *since + self.patience)
    }
}

// ---- a guard that has not been started yet, and the orders for it --------------------------------------------------

/// The orders for a guard that has not been started yet, in the order in which they were given.
///
/// It answers in the guard's place while there is no job to guard, so that the guard does not count as hanging. If a grant is extended
/// meanwhile, the guard gets the last one. If the term ends before the guard is started, none is started, since no process of that term is
/// alive.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct AwaitedGuard {
    orders: Queue<Order, ()>,
    /// The last grant.
    grant: Option<Grant>,
    is_job_ordered: bool,
    is_over: bool,
}

impl AwaitedGuard {
    /// Keeps an order. Returns the answer to it, if there is one.
    #[must_use]
    pub fn put(&mut self, order: &Order) -> Option<Answer> {
        if let Order::Lease(grant) | Order::Spawn { grant, .. } = order {
            let (is_first, is_job) = (self.grant.replace(*grant).is_none(), matches!(order, Order::Spawn { .. }));
            self.is_job_ordered |= is_job;
            if is_first || is_job {
                self.orders.put(order, None);
            }
            // That a job is accepted only the guard can say.
            return Some(Answer::Extended { until: grant.until });
        }
        if self.is_job_ordered && matches!(order, Order::Kill | Order::Stop { .. }) {
            self.is_over = true;
            return Some(Answer::Gone);
        }
        self.is_over |= matches!(order, Order::Over { .. });
        self.orders.put(order, None);
        None
    }

    /// Whether the guard need not be started any more.
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether no term is held.
    pub const fn is_idle(&self) -> bool {
        self.grant.is_none()
    }

    /// Called when the guard may start: nothing is started after the guard's deadline, which is answered.
    #[must_use]
    pub fn turn(&mut self, now: Time) -> Option<Answer> {
        let Grant { term, until, .. } = self.grant?;
        self.is_over = now >= until;
        self.is_over.then_some(Answer::Fenced { term, end: None })
    }

    /// The first orders for the started guard, with the present deadline and not that of the original order.
    pub fn into_orders(self) -> impl Iterator<Item = Order> {
        let Self { mut orders, grant, .. } = self;
        core::iter::from_fn(move || {
            Some(match (orders.take_first()?, grant) {
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

    const LEASE: Duration = Duration::from_secs(20);
    const PATIENCE: Duration = Duration::from_secs(5);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// The starts on two processors, with this many guards that were wanted one millisecond after another.
    fn wanted(count: usize) -> GuardStarts {
        let mut starts = GuardStarts::new(2, LEASE);
        for role in 0..count {
            starts.want(role, at(role as u64));
        }
        starts
    }

    fn all_next(starts: &mut GuardStarts, now: Time) -> Vec<usize> {
        core::iter::from_fn(|| starts.next(now)).map(|(role, _)| role).collect()
    }

    #[test]
    fn as_many_are_started_at_once_as_there_are_processors_and_the_others_in_order() {
        let mut starts = wanted(5);
        assert_eq!(all_next(&mut starts, at(10)), [0, 1]);
        starts.remove(1);
        assert_eq!(all_next(&mut starts, at(11)), [2]);
        starts.remove(0);
        starts.remove(2);
        assert_eq!(starts.poll_timeout(), Some(at(3)), "its turn has come");
        assert_eq!(all_next(&mut starts, at(12)), [3, 4]);
        assert_eq!(starts.poll_timeout(), None, "nobody waits");
    }

    #[test]
    fn on_one_processor_two_are_started_at_once() {
        let mut starts = GuardStarts::new(1, LEASE);
        (0..3).for_each(|role| starts.want(role, at(0)));
        assert_eq!(all_next(&mut starts, at(0)), [0, 1]);
    }

    #[test]
    fn a_withdrawn_request_frees_its_place() {
        let mut starts = wanted(4);
        starts.remove(1);
        starts.remove(9);
        assert_eq!(all_next(&mut starts, at(10)), [0, 2]);
        starts.remove(3);
        starts.remove(0);
        assert!(all_next(&mut starts, at(11)).is_empty());
        starts.want(1, at(12));
        assert_eq!(all_next(&mut starts, at(12)), [1], "wanted again");
    }

    #[test]
    fn no_role_waits_longer_than_its_limit() {
        let mut starts = wanted(4);
        assert_eq!(all_next(&mut starts, at(4_000)), [0, 1]);
        let due = starts.poll_timeout().unwrap();
        assert_eq!(due, at(2) + PATIENCE);
        assert_eq!(all_next(&mut starts, due), [2]);
        assert_eq!(all_next(&mut starts, due + Duration::from_millis(1)), [3]);
    }

    #[test]
    fn a_guard_without_a_job_delays_the_others_only_up_to_the_limit() {
        let mut starts = wanted(2);
        assert_eq!(all_next(&mut starts, at(10)), [0, 1]);
        starts.want(2, at(4_000));
        let due = starts.poll_timeout().unwrap();
        assert_eq!(due, at(10) + PATIENCE);
        assert_eq!(all_next(&mut starts, due), [2]);
    }
}

#[cfg(test)]
mod tests_of_awaited {
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
            let _ = guard.put(order);
            assert!(!guard.is_over(), "{order:?}");
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
        assert_eq!(guard.put(&lease(10)), Some(Answer::Extended { until: until(10) }));
        assert_eq!(guard.put(&lease(20)), Some(Answer::Extended { until: until(20) }));
        assert_eq!(guard.put(&spawn(20)), Some(Answer::Extended { until: until(20) }));
        assert_eq!(guard.put(&lease(30)), Some(Answer::Extended { until: until(30) }));
        assert_eq!(guard.into_orders().collect::<Vec<_>>(), [lease(30), spawn(30)]);
    }

    #[test]
    fn a_term_that_ends_before_its_guard_is_started_leaves_nothing() {
        for end in [Order::Kill, STOP] {
            let mut guard = awaited(&[spawn(10)]);
            assert_eq!((guard.put(&end), guard.is_over()), (Some(Answer::Gone), true));
        }
        let mut guard = awaited(&[Order::Lease(grant(10))]);
        assert_eq!((guard.put(&Order::Over { term: 7 }), guard.is_over()), (None, true));
    }

    /// There is no end to wait for if no job was ordered.
    #[test]
    fn a_stop_ends_the_wait_only_if_a_job_was_ordered() {
        let guard = awaited(&[Order::Lease(grant(10)), STOP, Order::Kill]);
        assert_eq!(guard.into_orders().collect::<Vec<_>>(), [Order::Lease(grant(10)), STOP, Order::Kill]);
    }

    #[test]
    fn nothing_is_started_at_its_deadline() {
        let mut guard = awaited(&[spawn(10), Order::Lease(grant(20))]);
        assert_eq!((guard.turn(Time::from_nanos(19)), guard.is_over()), (None, false));
        let fenced = Answer::Fenced { term: 7, end: None };
        assert_eq!((guard.turn(Time::from_nanos(20)), guard.is_over()), (Some(fenced), true));
    }

    #[test]
    fn one_for_which_no_term_is_held_is_idle() {
        assert!(AwaitedGuard::default().is_idle() && awaited(&[Order::Released { term: 5 }]).is_idle());
        assert!(!awaited(&[spawn(10)]).is_idle());
        assert_eq!(AwaitedGuard::default().turn(Time::from_nanos(u64::MAX)), None);
    }
}
