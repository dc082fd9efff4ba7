//! SIGKILL to a tree, repeated until no process is left: when, and by which methods in which order. The guard uses it, and so does a
//! supervisor that has inherited a dead guard's tree.

use alloc::collections::BTreeSet;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// The first and the longest pause from one SIGKILL to the next while a process is left.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LAST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause once the processes that are left were reported as stuck and the supervisor is gone: nothing more depends on them.
const LAST_PAUSE_ALONE: Duration = Duration::from_secs(10);

/// The time from the guard's first SIGKILL, which goes to known processes, to the next one by all methods. The other methods may block: the
/// control group while another process creates or removes one; a check, which opens files, while the job is at its memory limit. In this
/// time the known processes die, release their memory, and leave their children to the guard, which then knows those too.
const OTHER_METHODS_AFTER: Duration = Duration::from_millis(2);

/// How much of the time between two calls counts for the patience. The caller may be late because it was stopped, got no processor, or took
/// long for a check. The processes that it has killed may be dead by then, but it has not checked them since.
const LONGEST_COUNTED: Duration = Duration::from_millis(200);

/// A method of sending SIGKILL, or what comes before it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum KillMethod {
    /// No SIGKILL yet: see whether a known process is alive, since it may be gone when the search begins.
    Look,
    /// To known processes: those that were learnt while there was time, and the guard's own children. This opens no file, allocates no
    /// memory and never blocks.
    Known,
    /// To the control group. The kernel blocks while another process creates or removes a group (up to 29 ms measured).
    Cgroup,
    /// To each process that a check finds. This opens files.
    Found,
}

/// What a round of SIGKILL has seen of the tree.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct KillRound {
    /// Whether every read of the search succeeded and the time was sufficient, if there was a search.
    pub has_seen_all: bool,
    /// When the look or the search began, if it found a living process.
    pub lived_at: Option<Time>,
    /// When the search began, if it saw everything and found no living process. This is no proof that none is left.
    pub none_lived_at: Option<Time>,
}

/// The end of a tree, as far as it was seen.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct SeenEnd {
    /// By when no process lived any more.
    pub gone_at: Time,
    /// When a process was last seen alive, if one was seen since the kill began.
    pub lived_at: Option<Time>,
}

impl SeenEnd {
    /// How long after the lease's end a process may have been alive, if one was seen alive then. It may take long to wait for processes that
    /// have ended in time, so the time at which none was left shows nothing.
    pub fn overrun(&self, lease_end: Time) -> Option<Duration> {
        self.lived_at.filter(|lived_at| *lived_at >= lease_end)?;
        Some(self.gone_at.since(lease_end)).filter(|late| !late.is_zero())
    }
}

/// A tree that was sent SIGKILL.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Killing {
    /// When the remaining processes count as stuck, unless that was reported.
    stuck_at: Option<Time>,
    /// The time of the last call.
    called_at: Time,
    again_at: Time,
    /// The pause from this SIGKILL to the next; `None` before the first one.
    pause: Option<Duration>,
    /// When the present round began.
    round_began: Option<Time>,
    /// Whether processes that are not known must be killed at once too.
    uses_every_method_at_once: bool,
    /// The lease's end, at which a search shows whether a process has outlived it.
    lease_end: Option<Time>,
    /// When a process was last seen alive.
    lived_at: Option<Time>,
    /// When the first search began since which none has found a living process.
    none_lived_at: Option<Time>,
}

impl Killing {
    /// For a guard, which inherits the children of dying processes and has learnt of others before. It begins at `now`. Processes that
    /// remain after `patience` are stuck; it counts the time in which this process kills.
    pub fn new(now: Time, patience: Duration) -> Self {
        Self { stuck_at: Some(now + patience), called_at: now, again_at: now, ..Self::default() }
    }

    /// The same, with a search at the lease's end, unless no process is left by then.
    pub(super) fn looking_at(self, lease_end: Option<Time>) -> Self {
        Self { lease_end, ..self }
    }

    /// The end of the tree, of which nothing is left at `now`. A search may have shown that before: it takes longer to wait for thousands of
    /// processes that have ended, and for the last of a chain.
    pub fn end(&self, now: Time) -> SeenEnd {
        SeenEnd { gone_at: self.none_lived_at.map_or(now, |at| at.min(now)), lived_at: self.lived_at }
    }

    /// Notes when a process was seen alive, if one was.
    pub fn seen_alive(&mut self, at: Option<Time>) {
        self.lived_at = self.lived_at.max(at);
    }

    /// For a process that knows nothing about the tree.
    pub fn with_every_method(now: Time, patience: Duration) -> Self {
        Self { uses_every_method_at_once: true, ..Self::new(now, patience) }
    }

    /// The methods to kill all remaining processes, in this order. Known processes come first, since that never blocks. In the guard's
    /// first round there are no other methods; 2 ms later the control group and a check follow.
    ///
    /// Must be called again at [`again_at`](Self::again_at) at the latest, and whenever a child has ended, since it may have left children.
    /// [`performed`](Self::performed) must follow.
    pub fn round(&mut self, now: Time) -> &'static [KillMethod] {
        self.count_until(now);
        if self.pause.is_some() && now < self.again_at {
            return &[KillMethod::Known];
        }
        self.round_began = Some(now);
        match (self.uses_known_processes_only(), self.pause.is_none()) {
            (true, _) if self.lease_end.is_some_and(|end| now >= end) => &[KillMethod::Look, KillMethod::Known],
            (true, _) => &[KillMethod::Known],
            (false, true) => &[KillMethod::Look, KillMethod::Known, KillMethod::Cgroup, KillMethod::Found],
            (false, false) => &[KillMethod::Known, KillMethod::Cgroup, KillMethod::Found],
        }
    }

    /// Whether the present or next round uses known processes only.
    const fn uses_known_processes_only(&self) -> bool {
        self.pause.is_none() && !self.uses_every_method_at_once
    }

    /// Ends the round at `now`. `is_alone`: no supervisor waits for the end any more.
    pub fn performed(&mut self, now: Time, seen: KillRound, is_alone: bool) {
        let KillRound { has_seen_all, lived_at, none_lived_at } = seen;
        self.count_until(now);
        self.seen_alive(lived_at);
        let Some(begun) = self.round_began.take() else { return };
        if self.uses_known_processes_only() {
            (self.again_at, self.pause) = (now + OTHER_METHODS_AFTER, Some(FIRST_PAUSE));
            return;
        }
        self.none_lived_at = none_lived_at.map(|at| self.none_lived_at.unwrap_or(at));
        let pause = self.pause.unwrap_or(FIRST_PAUSE);
        // In a large tree a check takes longer than the pause, and the dying processes need the processors. So at most half of the time is
        // spent on checks.
        let again_at = now + pause.max(now.since(begun));
        let lease_end = self.lease_end.filter(|end| *end > now && self.none_lived_at.is_none());
        self.again_at = lease_end.map_or(again_at, |end| again_at.min(end));
        let is_in_vain = is_alone && self.stuck_at.is_none();
        let longest = if is_in_vain { LAST_PAUSE_ALONE } else { LAST_PAUSE };
        self.pause = Some(if has_seen_all || is_in_vain { longest.min(pause * 2) } else { pause });
    }

    /// When to kill again.
    pub const fn again_at(&self) -> Time {
        self.again_at
    }

    /// When to kill again, unless a round is in progress.
    pub(crate) fn due(&self) -> Option<Time> {
        self.round_began.is_none().then_some(self.again_at)
    }

    /// Extends the patience by the part of the time since the last call that is longer than a killer's own pauses.
    fn count_until(&mut self, now: Time) {
        let uncounted = now.since(self.called_at).saturating_sub(LONGEST_COUNTED);
        self.stuck_at.iter_mut().for_each(|at| *at = *at + uncounted);
        self.called_at = now;
    }

    /// Whether to report now that the remaining processes can't be killed; returns true once.
    pub fn is_stuck(&mut self, now: Time) -> bool {
        self.stuck_at.take_if(|at| now >= *at).is_some()
    }
}

// Whether a tree of processes has ended, according to looks at the children of its root, which inherits the children of each process that
// ends.
//
// Waiting for children also shows that. But a process that another one traces has ended long before its parent can wait for it, and some
// sandboxes forbid waiting.

/// Whether no process of the tree lives, according to two complete looks at the root's children, the second of which begins after the end of
/// the first. Each child comes with whether it had not ended when it was looked at. The root waits for none of them meanwhile, so no pid is reused.
///
/// One look is no proof: a process may end after the children were listed, and its own children are then the root's and were seen below
/// neither. But a process that has ended has no children and starts none. So if each child in the second look had ended in the first one,
/// there was none that could leave another one to the root since.
pub fn has_tree_ended<P: Copy + Ord>(first: &[(P, bool)], second: &[(P, bool)]) -> bool {
    let ended: BTreeSet<P> = first.iter().filter(|(_, lives)| !lives).map(|(child, _)| *child).collect();
    first.iter().all(|(_, lives)| !lives) && second.iter().all(|(child, _)| ended.contains(child))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);
    const ALL: KillRound = KillRound { has_seen_all: true, lived_at: None, none_lived_at: None };

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn without_a_known_tree_every_method_is_used_at_once() {
        let mut killing = Killing::with_every_method(at(0), PATIENCE);
        assert_eq!(killing.round(at(0)), [KillMethod::Look, KillMethod::Known, KillMethod::Cgroup, KillMethod::Found]);
        killing.performed(at(0), ALL, false);
        assert_eq!(killing.again_at(), at(1));
        assert_eq!(killing.round(at(1)), [KillMethod::Known, KillMethod::Cgroup, KillMethod::Found]);
    }

    #[test]
    fn a_kill_that_begins_after_the_lease_s_end_looks_first_whether_a_process_is_alive() {
        let mut killing = Killing::new(at(20), PATIENCE).looking_at(Some(at(20)));
        assert_eq!(killing.round(at(20)), [KillMethod::Look, KillMethod::Known]);
        killing.performed(at(20), KillRound { lived_at: Some(at(20)), ..ALL }, false);
        assert_eq!(killing.end(at(21)), SeenEnd { gone_at: at(21), lived_at: Some(at(20)) });
        assert_eq!(Killing::new(at(19), PATIENCE).looking_at(Some(at(20))).round(at(19)), [KillMethod::Known]);
    }

    #[test]
    fn methods_that_may_block_come_2_ms_after_the_known_processes() {
        let mut killing = Killing::new(at(0), PATIENCE);
        assert_eq!(killing.round(at(0)), [KillMethod::Known]);
        assert_eq!(killing.due(), None, "it is under way");
        killing.performed(at(0), ALL, false);
        assert_eq!(killing.again_at(), at(2));
        assert_eq!(killing.round(at(1)), [KillMethod::Known], "a child has ended");
        killing.performed(at(1), ALL, false);
        assert_eq!(killing.again_at(), at(2));
        assert_eq!(killing.round(at(2)), [KillMethod::Known, KillMethod::Cgroup, KillMethod::Found]);
    }

    #[test]
    fn the_pause_doubles_up_to_100_ms_and_is_as_long_as_a_look_takes() {
        let mut killing = Killing::with_every_method(at(0), PATIENCE);
        let mut now = at(0);
        for pause in [1, 2, 4, 8, 16, 32, 64, 100, 100] {
            assert!(killing.round(now).contains(&KillMethod::Found));
            killing.performed(now, ALL, false);
            assert_eq!(killing.again_at().since(now), Duration::from_millis(pause));
            now = killing.again_at();
        }
        killing.round(now);
        let end = now + Duration::from_millis(300);
        killing.performed(end, ALL, false);
        assert_eq!(killing.again_at().since(end), Duration::from_millis(300));
    }

    #[test]
    fn a_look_that_has_not_seen_all_does_not_lengthen_the_pause() {
        let mut killing = Killing::with_every_method(at(0), PATIENCE);
        for millis in [0, 1, 2] {
            killing.round(at(millis));
            killing.performed(at(millis), KillRound { has_seen_all: false, ..ALL }, false);
            assert_eq!(killing.again_at(), at(millis + 1));
        }
    }

    /// Kills whenever it is due, until `end`. Returns whether it has reported the remaining processes as stuck.
    fn kill_until(killing: &mut Killing, end: Time) -> bool {
        let mut is_stuck = false;
        while killing.again_at() < end {
            let now = killing.again_at();
            killing.round(now);
            killing.performed(now, ALL, false);
            is_stuck |= killing.is_stuck(now);
        }
        is_stuck
    }

    #[test]
    fn a_process_left_a_lease_after_the_first_round_is_stuck_and_is_reported_once() {
        let mut killing = Killing::new(at(0), PATIENCE);
        assert!(!kill_until(&mut killing, at(4_999)));
        assert!(kill_until(&mut killing, at(5_200)));
        assert!(!kill_until(&mut killing, at(20_000)));
    }

    #[test]
    fn a_search_at_the_lease_s_end_shows_whether_a_process_outlived_it() {
        let mut killing = Killing::new(at(0), PATIENCE).looking_at(Some(at(20)));
        let mut began = Vec::new();
        while killing.none_lived_at.is_none() {
            let now = killing.again_at();
            began.push(now);
            killing.round(now);
            // The last process ends 19 ms after the first SIGKILL. It takes 300 ms to wait for all.
            let (living, none) = if now >= at(19) { (None, Some(now)) } else { (Some(now), None) };
            killing.performed(now, KillRound { lived_at: living, none_lived_at: none, ..ALL }, false);
        }
        assert_eq!(began, [0, 2, 3, 5, 9, 17, 20].map(at));
        let end = SeenEnd { gone_at: at(20), lived_at: Some(at(17)) };
        assert_eq!((killing.end(at(300)), end.overrun(at(20))), (end, None));
        killing.round(at(300));
        killing.performed(at(300), KillRound { none_lived_at: Some(at(300)), ..ALL }, false);
        assert_eq!(killing.end(at(301)), end);
        killing.round(at(600));
        killing.performed(at(600), KillRound { lived_at: Some(at(600)), ..ALL }, false);
        let overlooked = SeenEnd { gone_at: at(700), lived_at: Some(at(600)) };
        assert_eq!(killing.end(at(700)), overlooked);
        assert_eq!(overlooked.overrun(at(20)), Some(Duration::from_millis(680)));
    }

    #[test]
    fn kills_in_vain_become_rare_once_nobody_waits_for_them() {
        for has_seen_all in [true, false] {
            let mut killing = Killing::with_every_method(at(0), PATIENCE);
            assert!(kill_until(&mut killing, at(5_200)));
            let pauses = [200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000].map(Duration::from_millis);
            // The pause before the first of these was 100 ms.
            for pause in [Duration::from_millis(100)].into_iter().chain(pauses) {
                let now = killing.again_at();
                killing.round(now);
                killing.performed(now, KillRound { has_seen_all, ..ALL }, true);
                assert_eq!(killing.again_at().since(now), pause);
            }
        }
    }

    #[test]
    fn a_process_that_kills_after_a_stall_of_its_own_calls_nothing_stuck() {
        // The processes that it had killed before may have died, and it has not checked them yet.
        let mut killing = Killing::new(at(0), PATIENCE);
        kill_until(&mut killing, at(100));
        killing.round(at(60_000));
        killing.performed(at(60_000), ALL, false);
        assert!(!killing.is_stuck(at(60_000)));
        assert!(!kill_until(&mut killing, at(64_600)));
        assert!(kill_until(&mut killing, at(65_000)));
    }

    #[test]
    fn a_round_that_takes_longer_than_the_lease_is_no_proof_that_anything_is_stuck() {
        let mut killing = Killing::with_every_method(at(0), PATIENCE);
        killing.round(at(0));
        killing.performed(at(60_000), ALL, false);
        assert!(!killing.is_stuck(at(60_000)));
        assert!(!kill_until(&mut killing, at(120_000)));
        assert!(kill_until(&mut killing, at(126_000)));
    }
}
