//! Precedence: the delay before a candidate claims a vacancy. It decides who leads *first*, never who leads.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use core::time::Duration;

use crate::record::{Hello, MemberId};
use crate::time::Time;
use crate::timings::{Elector, Patience};

/// Where nothing better is known, claims are spread over this span.
pub const SPREAD: Duration = Duration::from_millis(50);

/// Each candidate says hello this often.
pub const HELLO_INTERVAL: Duration = Duration::from_secs(30);

/// A member of the group waits this long for the id by which the group knows it, so that its first hello can say it.
pub const HELLO_AWAITS_NAME: Duration = Duration::from_millis(500);

/// A candidate that has not been heard for this long has gone: two hellos missed.
pub(crate) const HELLO_HOLDS: Duration = Duration::from_secs(75);

/// The jitter for each standby known. A claim takes a millisecond or two until the others have read it, so some fifteen claim a
/// vacancy, however many stand by; the first of them does so within about this long, however wide the span.
const JITTER_PER_STANDBY: Duration = Duration::from_micros(100);

/// With this many standbys the jitter is at its most, 100 ms; more need not be remembered.
const STANDBYS_COUNTED: usize = 1_000;

/// Whoever knows of a candidate of a higher priority waits so much longer; with the group's election the patience besides.
const PRIORITY_STEP: Duration = Duration::from_millis(500);

/// More priorities above its own add nothing.
const MOST_PRIORITY_STEPS: u32 = 10;

/// What the group says of this member.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Standing {
    /// The role's partition is assigned to it.
    Assigned,
    /// The partition is another's.
    Elsewhere,
    /// No assignment is known: joining, lost, or the coordinator is out of reach.
    Unknown,
}

/// Who claims a vacancy first, as far as this member knows.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Precedence {
    elector: Elector,
    /// Added to every claim delay: what was set, and the back-off of a candidate whose last runs failed.
    claim_delay: Duration,
    back_off: Duration,
    /// Added as well, where roles are spread over processes; none when this one is not to claim.
    spread_delay: Option<Duration>,
    /// `--priority`.
    priority: u16,
    standing: Standing,
    /// By which id the group's coordinator knows this member, if it does.
    group_member: Option<Box<str>>,
    /// The partition is free, and the group will give it to this member.
    foreseen: bool,
    /// Who leads, or led until it fell silent: it does not stand by.
    leader: Option<MemberId>,
    /// The others, by their last hello.
    heard: BTreeMap<MemberId, Heard>,
}

/// What the last hello of another candidate told.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Heard {
    at: Time,
    group_member: Option<Box<str>>,
    name: Option<Box<str>>,
    priority: u16,
}

impl Heard {
    fn holds(&self, now: Time) -> bool {
        now.since(self.at) < HELLO_HOLDS
    }
}

impl Precedence {
    /// That of a member of which nothing is known yet.
    #[must_use]
    pub const fn new(elector: Elector, claim_delay: Duration) -> Self {
        Self {
            elector,
            claim_delay,
            back_off: Duration::ZERO,
            spread_delay: Some(Duration::ZERO),
            priority: 0,
            standing: Standing::Unknown,
            group_member: None,
            foreseen: false,
            leader: None,
            heard: BTreeMap::new(),
        }
    }

    /// The same with this `--priority`.
    #[must_use]
    pub fn of_priority(self, priority: u16) -> Self {
        Self { priority, ..self }
    }

    /// What the spread of the roles adds to the claim delay from now on; none when nothing is to be claimed.
    pub const fn spread_by(&mut self, delay: Option<Duration>) {
        self.spread_delay = delay;
    }

    /// The group has spoken: nothing needs to be foreseen any more.
    pub fn stand(&mut self, standing: Standing) {
        self.standing = standing;
        self.foreseen = false;
    }

    /// From now on `delay` is added to every claim delay.
    pub fn back_off(&mut self, delay: Duration) {
        self.back_off = delay;
    }

    /// Whether anything is added to the claim delay since the last runs failed.
    #[must_use]
    pub const fn is_backing_off(&self) -> bool {
        !self.back_off.is_zero()
    }

    /// The group's coordinator knows this member by this id; or no longer.
    pub fn name(&mut self, group_member: Option<Box<str>>) {
        self.group_member = group_member;
    }

    /// By which id the group's coordinator knows this member.
    #[must_use]
    pub fn group_member(&self) -> Option<&str> {
        self.group_member.as_deref()
    }

    /// The member that held the partition has left the group, or is dead, and the lead is vacant. The group gives the partition to the
    /// member that has the fewest, which all have that have none, and among them to the one with the least id
    /// (`maybeAssignPartition` in librdkafka's sticky assignor). Whoever has not said its id is not foreseen by anybody.
    pub fn foresee(&mut self, now: Time, left: &str) {
        let Some(own) = &self.group_member else { return };
        let mut others =
            self.heard.values().filter(|heard| heard.holds(now)).filter_map(|heard| heard.group_member.as_ref());
        self.foreseen = others.all(|other| own < other || **other == *left);
    }

    /// The lead is no longer vacant, or so in another way.
    pub fn forget_foresight(&mut self) {
        self.foreseen = false;
    }

    /// What the group said last.
    #[must_use]
    pub const fn standing(&self) -> Standing {
        self.standing
    }

    /// Another candidate said hello.
    pub fn heard(&mut self, now: Time, hello: Hello) {
        let Hello { member, group_member, name, priority } = hello;
        self.heard.retain(|_, heard| heard.holds(now));
        if self.heard.len() < STANDBYS_COUNTED || self.heard.contains_key(&member) {
            self.heard.insert(member, Heard { at: now, group_member, name, priority });
        }
    }

    /// Another candidate released a term: most do so because they go, and whoever stays says hello again. Gives the id by which its
    /// last hello said that the group knows it.
    pub fn released(&mut self, member: &MemberId) -> Option<Box<str>> {
        self.heard.remove(member)?.group_member
    }

    /// How many others are known by their hellos, up to a thousand.
    #[must_use]
    pub fn standbys(&self, now: Time) -> u32 {
        let standbys = self.heard.values().filter(|heard| heard.holds(now)).count();
        u32::try_from(standbys).unwrap_or(u32::MAX)
    }

    /// The others that are known by their hellos: who, how each is called, and when its last one was read.
    pub(crate) fn others(&self, now: Time) -> impl Iterator<Item = (&MemberId, Option<&str>, Time)> {
        let held = self.heard.iter().filter(move |(_, heard)| heard.holds(now));
        held.map(|(member, heard)| (member, heard.name.as_deref(), heard.at))
    }

    /// This member's `--priority`.
    pub(crate) const fn priority(&self) -> u16 {
        self.priority
    }

    /// The `--priority` of another, as its last hello told; none where none was read for long.
    pub(crate) fn priority_of(&self, now: Time, member: &MemberId) -> Option<u16> {
        self.heard.get(member).filter(|heard| heard.holds(now)).map(|heard| heard.priority)
    }

    /// Who leads, as the journal tells.
    pub(crate) fn led_by(&mut self, leader: Option<&MemberId>) {
        if self.leader.as_ref() != leader {
            self.leader = leader.cloned();
        }
    }

    /// Whether somebody of a higher priority stands by.
    pub(crate) fn is_outranked(&self, now: Time) -> bool {
        self.higher_priorities(now).next().is_some()
    }

    /// The priorities above its own of those that stand by.
    fn higher_priorities(&self, now: Time) -> impl Iterator<Item = u16> {
        let others = self.heard.iter().filter(|(member, _)| Some(*member) != self.leader.as_ref());
        let higher = others.filter(move |(_, heard)| heard.priority > self.priority && heard.holds(now));
        higher.map(|(_, heard)| heard.priority)
    }

    /// What is added to the claim delay for those of a higher priority: a step for each of their priorities, in which the highest can
    /// claim whatever else it waits for.
    fn wait_for_higher(&self, now: Time) -> Duration {
        let priorities: BTreeSet<u16> = self.higher_priorities(now).collect();
        let patience = match self.elector {
            Elector::Group(Patience::For(patience)) => patience,
            Elector::Group(Patience::Never) | Elector::Log => Duration::ZERO,
        };
        (PRIORITY_STEP + patience) * u32::try_from(priorities.len()).unwrap_or(u32::MAX).min(MOST_PRIORITY_STEPS)
    }

    /// The most that a random draw may add, and the delay below it; none when this member never claims.
    ///
    /// `after_death`: the last release was written for a dead supervisor, so whoever has the partition is likely dead.
    #[must_use]
    pub fn delay(&self, now: Time, after_death: bool) -> Option<Delay> {
        let added = self.claim_delay + self.back_off + self.wait_for_higher(now) + self.spread_delay?;
        if self.foreseen && self.elector != Elector::Group(Patience::Never) {
            // It is alone in this: there is nobody to keep out of the way of.
            return Some(Delay { fixed: added, random: Duration::ZERO });
        }
        let (fixed, spread) = match (self.elector, self.standing) {
            (Elector::Log, _) | (Elector::Group(_), Standing::Assigned) => (Duration::ZERO, Duration::ZERO),
            (Elector::Group(Patience::Never), Standing::Elsewhere | Standing::Unknown) => return None,
            (Elector::Group(Patience::For(_)), Standing::Unknown) => (Duration::ZERO, SPREAD),
            (Elector::Group(Patience::For(_)), Standing::Elsewhere) if after_death => (Duration::ZERO, SPREAD),
            (Elector::Group(Patience::For(patience)), Standing::Elsewhere) => (patience, Duration::ZERO),
        };
        let jitter = JITTER_PER_STANDBY * self.standbys(now);
        Some(Delay { fixed: fixed + added, random: spread + jitter })
    }
}

/// A claim delay before the dice are thrown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Delay {
    /// This much in any case.
    pub fixed: Duration,
    /// Up to this much more.
    pub random: Duration,
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const NOW: Time = Time::from_nanos(0);

    fn delay(elector: Elector, standing: Standing, after_death: bool) -> Option<(u64, u64)> {
        let mut precedence = Precedence::new(elector, Duration::from_millis(7));
        precedence.stand(standing);
        let delay = precedence.delay(NOW, after_death)?;
        Some((delay.fixed.as_millis().try_into().unwrap(), delay.random.as_millis().try_into().unwrap()))
    }

    fn hello(index: u128) -> Hello {
        Hello { member: MemberId::from_random(index), group_member: None, name: None, priority: 0 }
    }

    #[test]
    fn the_groups_choice_claims_first() {
        let group = Elector::Group(Patience::For(Duration::from_millis(500)));
        assert_eq!(delay(group, Standing::Assigned, false), Some((7, 0)));
        assert_eq!(delay(group, Standing::Unknown, false), Some((7, 50)));
        assert_eq!(delay(group, Standing::Elsewhere, false), Some((507, 0)));
        assert_eq!(delay(group, Standing::Elsewhere, true), Some((7, 50)));
    }

    #[test]
    fn the_spread_adds_to_every_delay_or_forbids_the_claim() {
        let mut precedence = Precedence::new(Elector::Log, Duration::from_millis(7));
        precedence.spread_by(Some(Duration::from_millis(500)));
        assert_eq!(precedence.delay(NOW, false).unwrap().fixed, Duration::from_millis(507));
        precedence.spread_by(None);
        assert_eq!(precedence.delay(NOW, true), None);
    }

    #[test]
    fn without_patience_only_the_groups_choice_claims() {
        let never = Elector::Group(Patience::Never);
        assert_eq!(delay(never, Standing::Assigned, false), Some((7, 0)));
        assert_eq!(delay(never, Standing::Unknown, true), None);
        assert_eq!(delay(never, Standing::Elsewhere, true), None);
    }

    #[test]
    fn in_the_log_nobody_has_precedence() {
        for standing in [Standing::Assigned, Standing::Elsewhere, Standing::Unknown] {
            assert_eq!(delay(Elector::Log, standing, false), Some((7, 0)));
        }
    }

    #[test]
    fn a_back_off_is_added_in_every_standing() {
        for elector in [Elector::Log, Elector::Group(Patience::For(Duration::from_millis(500)))] {
            for standing in [Standing::Assigned, Standing::Elsewhere, Standing::Unknown] {
                let mut precedence = Precedence::new(elector, Duration::ZERO);
                precedence.stand(standing);
                let before = precedence.delay(NOW, false).unwrap();
                precedence.back_off(Duration::from_secs(4));
                let after = precedence.delay(NOW, false).unwrap();
                assert_eq!(after, Delay { fixed: before.fixed + Duration::from_secs(4), ..before });
            }
        }
    }

    #[test]
    fn each_higher_priority_that_is_heard_adds_a_step() {
        let waits = |elector, others: &[u16]| {
            let mut precedence = Precedence::new(elector, Duration::ZERO).of_priority(5);
            for (index, priority) in (0..).zip(others) {
                precedence.heard(NOW, Hello { priority: *priority, ..hello(index) });
            }
            assert_eq!(precedence.is_outranked(NOW), others.iter().any(|other| *other > 5));
            assert!(!precedence.is_outranked(NOW + HELLO_HOLDS), "it has gone");
            precedence.delay(NOW, false).unwrap().fixed.as_millis()
        };
        let group = Elector::Group(Patience::For(Duration::from_secs(2)));
        assert_eq!([waits(Elector::Log, &[0, 5, 5]), waits(group, &[0, 5, 5])], [0, 0]);
        assert_eq!([waits(Elector::Log, &[6, 6, 1]), waits(group, &[6, 6, 1])], [500, 2_500]);
        assert_eq!([waits(Elector::Log, &[6, 7, 8]), waits(group, &[6, 7, 8])], [1_500, 7_500]);
        let many: Vec<u16> = (6..100).collect();
        assert_eq!(waits(Elector::Log, &many), 5_000);
        // A leader that fell silent does not stand by.
        let mut precedence = Precedence::new(Elector::Log, Duration::ZERO);
        precedence.heard(NOW, Hello { priority: 10, ..hello(1) });
        precedence.led_by(Some(&MemberId::from_random(1)));
        assert_eq!(precedence.delay(NOW, false).unwrap().fixed, Duration::ZERO);
    }

    #[test]
    fn the_jitter_grows_with_the_standbys_and_is_bounded() {
        let mut precedence = Precedence::new(Elector::Log, Duration::ZERO);
        for index in 0..1_200_u128 {
            precedence.heard(NOW, hello(index));
            precedence.heard(NOW, hello(0));
            let random = precedence.delay(NOW, false).unwrap().random;
            assert_eq!(random, Duration::from_micros(100 * u64::try_from(index + 1).unwrap().min(1_000)));
        }
        precedence.released(&MemberId::from_random(0));
        assert_eq!(precedence.delay(NOW, false).unwrap().random, Duration::from_micros(100 * 999));
        let later = NOW + HELLO_HOLDS;
        assert_eq!(precedence.delay(later, false).unwrap().random, Duration::ZERO);
    }

    #[test]
    fn the_member_with_the_least_id_is_foreseen() {
        let claims_at_once = |own: Option<&str>, others: &[&str], patience| {
            let mut precedence = Precedence::new(Elector::Group(patience), Duration::ZERO);
            precedence.stand(Standing::Elsewhere);
            precedence.name(own.map(Into::into));
            precedence.heard(NOW, hello(100));
            for (index, other) in (0..).zip(others) {
                precedence.heard(NOW, Hello { group_member: Some((*other).into()), ..hello(index) });
            }
            precedence.foresee(NOW, "left");
            precedence.delay(NOW, false) == Some(Delay { fixed: Duration::ZERO, random: Duration::ZERO })
        };
        let patience = Patience::For(Duration::from_millis(500));
        assert!(claims_at_once(Some("b"), &[], patience));
        assert!(claims_at_once(Some("b"), &["c", "left", "z"], patience));
        assert!(claims_at_once(Some("m"), &["left", "z"], patience), "who has left is no member");
        assert!(!claims_at_once(Some("b"), &["c", "a"], patience));
        assert!(!claims_at_once(None, &["c"], patience), "no member");
        assert!(!claims_at_once(Some("b"), &["c"], Patience::Never), "the group's word is waited for");
    }

    #[test]
    fn what_was_foreseen_ends_with_the_groups_word() {
        let mut precedence = Precedence::new(Elector::Group(Patience::For(Duration::from_millis(500))), Duration::ZERO);
        precedence.name(Some("b".into()));
        precedence.foresee(NOW, "left");
        assert_eq!(precedence.delay(NOW, false).unwrap().random, Duration::ZERO);
        precedence.stand(Standing::Elsewhere);
        assert_eq!(precedence.delay(NOW, false).unwrap().fixed, Duration::from_millis(500));
    }
}
