//! The order and the times of guards' starts, if several are wanted.
//!
//! A process that wins many roles at once would fork all of their guards at once, and heartbeats, deadlines and releases would wait for the
//! forks. So only as many guards start at the same time as there are processors. The others wait in order, but for a limited time.

use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;

use crate::time::Time;

/// The guards that are starting and those that wait, by the numbers of their roles.
#[derive(Debug)]
pub struct GuardStarts {
    at_once: usize,
    patience: Duration,
    /// Waiting roles in order, each with the time at which its guard was wanted.
    waiting: VecDeque<(usize, Time)>,
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
        if !self.waits(role) {
            self.waiting.push_back((role, now));
        }
    }

    /// Whether the role's guard waits.
    pub fn waits(&self, role: usize) -> bool {
        self.waiting.iter().any(|(waiting, _)| *waiting == role)
    }

    /// The role whose guard must start now, if any. From then on it counts as starting.
    pub fn next(&mut self, now: Time) -> Option<usize> {
        let (_, wanted) = *self.waiting.front()?;
        // A guard whose job is not ordered, for example because Kafka does not answer its claim, blocks the others
        // only briefly.
        self.starting.retain(|_, since| now < *since + self.patience);
        if self.starting.len() >= self.at_once && now < wanted + self.patience {
            return None;
        }
        let (role, _) = self.waiting.pop_front()?;
        self.starting.insert(role, now);
        Some(role)
    }

    /// Removes the role: its guard has started its job, or will not start it.
    pub fn remove(&mut self, role: usize) {
        if self.starting.remove(&role).is_none() {
            self.waiting.retain(|(waiting, _)| *waiting != role);
        }
    }

    /// When to call [`next`](Self::next) again, unless a start ends before.
    pub fn poll_timeout(&self) -> Option<Time> {
        let (_, wanted) = self.waiting.front()?;
        if self.starting.len() < self.at_once {
            return Some(*wanted);
        }
        self.starting.values().chain([wanted]).min().map(|since| *since + self.patience)
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
        core::iter::from_fn(|| starts.next(now)).collect()
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
