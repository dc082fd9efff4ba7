//! The time at which each of many roles is to be called again. Finding the earliest takes no search.

use std::collections::{BTreeMap, BTreeSet};

use neli_proto::time::Time;

/// The timeouts, by role.
#[derive(Debug, Default)]
pub struct Timeouts {
    by_time: BTreeSet<(Time, usize)>,
    by_role: BTreeMap<usize, Time>,
}

impl Timeouts {
    /// Sets a role's timeout; `None` means never.
    pub fn set(&mut self, role: usize, at: Option<Time>) {
        if let Some(before) = self.by_role.remove(&role) {
            self.by_time.remove(&(before, role));
        }
        if let Some(at) = at {
            self.by_role.insert(role, at);
            self.by_time.insert((at, role));
        }
    }

    /// The earliest timeout.
    #[must_use]
    pub fn first(&self) -> Option<Time> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// The roles that are to be called by now, the longest due first.
    #[must_use]
    pub fn due(&self, now: Time) -> Vec<usize> {
        self.by_time.iter().take_while(|(at, _)| *at <= now).map(|(_, role)| *role).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_first_and_each_role_has_one() {
        let mut timeouts = Timeouts::default();
        assert_eq!(timeouts.first(), None);
        let at = Time::from_nanos;
        timeouts.set(1, Some(at(30)));
        timeouts.set(2, Some(at(20)));
        timeouts.set(1, Some(at(10)));
        assert_eq!(timeouts.first(), Some(at(10)));
        assert_eq!(timeouts.due(at(9)), [0; 0]);
        assert_eq!(timeouts.due(at(20)), [1, 2]);
        timeouts.set(1, None);
        assert_eq!((timeouts.first(), timeouts.due(at(20))), (Some(at(20)), vec![2]));
    }
}
