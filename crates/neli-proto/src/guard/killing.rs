//! SIGKILL to a tree, again and again until nothing is left of it: the guard's work, and that of a supervisor which has
//! inherited a dead guard's tree. When to kill, and by which means in which order.

use core::time::Duration;

use crate::time::Time;

/// From one SIGKILL to the next, while something is still there: at first, and at last.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LAST_PAUSE: Duration = Duration::from_millis(100);

/// From the guard's first SIGKILL, to what is known, to the next by all means. Both others may keep the guard waiting: the control
/// group for somebody who makes or removes another, a look, which opens files, for as long as the job is at its memory limit. So those
/// that are known get the time to die, to give their memory back, and to leave their children to the guard: each is known then.
const OTHER_MEANS_AFTER: Duration = Duration::from_millis(2);

/// A way to send SIGKILL.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Means {
    /// To what is known: what was learnt of the tree while there was time, and the guard's own children. It opens no file,
    /// allocates nothing and never waits.
    Known,
    /// To the control group. The kernel waits while somebody makes or removes another one (up to 29 ms were measured).
    Cgroup,
    /// To each process that a look finds. It opens files.
    Found,
}

/// A tree that was sent SIGKILL.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Killing {
    /// When what is still there is said to be stuck, unless it was.
    stuck_at: Option<Time>,
    again_at: Time,
    /// `None` before the first SIGKILL; then from this one to the next.
    pause: Option<Duration>,
    /// When the round began that is not over.
    round: Option<Time>,
    /// What is not known can't wait.
    is_by_all_means_at_once: bool,
}

impl Killing {
    /// By whoever inherits the children of those that die, and learnt of others before: begins at `now`; what is still there after
    /// `patience` is stuck.
    #[must_use]
    pub fn new(now: Time, patience: Duration) -> Self {
        Self { stuck_at: Some(now + patience), again_at: now, pause: None, round: None, is_by_all_means_at_once: false }
    }

    /// The same by somebody who knows nothing of the tree.
    #[must_use]
    pub fn by_all_means(now: Time, patience: Duration) -> Self {
        Self { is_by_all_means_at_once: true, ..Self::new(now, patience) }
    }

    /// How to kill all that is left, in this order. What is known comes first, since that never waits; in the guard's first round it
    /// is all, and 2 ms later the control group follows, and a look.
    ///
    /// To be asked again at [`again_at`](Self::again_at) at the latest, and whenever a child has ended: who has died may have
    /// left children. [`performed`](Self::performed) is to follow.
    pub fn round(&mut self, now: Time) -> &'static [Means] {
        if self.pause.is_some() && now < self.again_at {
            return &[Means::Known];
        }
        self.round = Some(now);
        if self.is_by_what_is_known() { &[Means::Known] } else { &[Means::Known, Means::Cgroup, Means::Found] }
    }

    /// Whether the round that begins, or is under way, is by what is known alone.
    const fn is_by_what_is_known(&self) -> bool {
        self.pause.is_none() && !self.is_by_all_means_at_once
    }

    /// The round is over at `now`. `has_seen_all`: no read has failed while it looked.
    pub fn performed(&mut self, now: Time, has_seen_all: bool) {
        let Some(begun) = self.round.take() else { return };
        if self.is_by_what_is_known() {
            (self.again_at, self.pause) = (now + OTHER_MEANS_AFTER, Some(FIRST_PAUSE));
            return;
        }
        let pause = self.pause.unwrap_or(FIRST_PAUSE);
        // In a large tree a look takes longer than the pause, and the processors are needed for dying: at most every other
        // moment is spent looking.
        self.again_at = now + pause.max(now.since(begun));
        self.pause = Some(if has_seen_all { LAST_PAUSE.min(pause * 2) } else { pause });
    }

    /// When to kill again.
    #[must_use]
    pub const fn again_at(&self) -> Time {
        self.again_at
    }

    /// The same, unless a round is under way.
    #[must_use]
    pub(crate) fn due(&self) -> Option<Time> {
        self.round.is_none().then_some(self.again_at)
    }

    /// Whether it is time to say that what is left can't be killed; true once.
    pub fn is_stuck(&mut self, now: Time) -> bool {
        self.stuck_at.take_if(|at| now >= *at).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn who_knows_nothing_of_the_tree_kills_by_all_means_at_once() {
        let mut killing = Killing::by_all_means(at(0), PATIENCE);
        assert_eq!(killing.round(at(0)), [Means::Known, Means::Cgroup, Means::Found]);
        killing.performed(at(0), true);
        assert_eq!(killing.again_at(), at(1));
    }

    #[test]
    fn what_may_keep_the_guard_waiting_comes_2_ms_after_what_is_known() {
        let mut killing = Killing::new(at(0), PATIENCE);
        assert_eq!(killing.round(at(0)), [Means::Known]);
        assert_eq!(killing.due(), None, "it is under way");
        killing.performed(at(0), true);
        assert_eq!(killing.again_at(), at(2));
        assert_eq!(killing.round(at(1)), [Means::Known], "a child has ended");
        killing.performed(at(1), true);
        assert_eq!(killing.again_at(), at(2));
        assert_eq!(killing.round(at(2)), [Means::Known, Means::Cgroup, Means::Found]);
    }

    #[test]
    fn the_pause_doubles_up_to_100_ms_and_is_as_long_as_a_look_takes() {
        let mut killing = Killing::by_all_means(at(0), PATIENCE);
        let mut now = at(0);
        for pause in [1, 2, 4, 8, 16, 32, 64, 100, 100] {
            assert!(killing.round(now).contains(&Means::Found));
            killing.performed(now, true);
            assert_eq!(killing.again_at().since(now), Duration::from_millis(pause));
            now = killing.again_at();
        }
        killing.round(now);
        let end = now + Duration::from_millis(300);
        killing.performed(end, true);
        assert_eq!(killing.again_at().since(end), Duration::from_millis(300));
    }

    #[test]
    fn a_look_that_has_not_seen_all_does_not_lengthen_the_pause() {
        let mut killing = Killing::by_all_means(at(0), PATIENCE);
        for millis in [0, 1, 2] {
            killing.round(at(millis));
            killing.performed(at(millis), false);
            assert_eq!(killing.again_at(), at(millis + 1));
        }
    }

    #[test]
    fn what_is_there_a_lease_after_the_first_round_is_stuck_and_that_is_said_once() {
        let mut killing = Killing::new(at(0), PATIENCE);
        assert!(!killing.is_stuck(at(4_999)));
        assert!(killing.is_stuck(at(5_000)));
        assert!(!killing.is_stuck(at(5_001)));
    }
}
