//! Precedence: the delay before a candidate claims a vacancy. It decides who leads *first*, never who leads.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use core::time::Duration;

use crate::listener::Predecessor;
use crate::record::{Hello, MemberId};
use crate::time::Time;
use crate::timings::{Elector, PATIENCE, Patience};

/// Where nothing better is known than that others stand by as well, claims are spread over this span.
pub const SPREAD: Duration = Duration::from_millis(50);

/// Each candidate says hello this often.
pub const HELLO_INTERVAL: Duration = Duration::from_secs(30);

/// Whoever releases a term and stays says hello so much later: the others take it for gone, and not before the vacancy is claimed are they to know
/// better, since that would have them wait for one of a higher priority.
pub const HELLO_AFTER_RELEASE: Duration = Duration::from_secs(2);

/// A member of the group waits this long for the id by which the group knows it, so that its first hello can say it.
pub(crate) const HELLO_AWAITS_NAME: Duration = Duration::from_millis(500);

/// A candidate that has not been heard for this long has gone: two hellos missed.
pub const HELLO_HOLDS: Duration = Duration::from_secs(75);

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

/// Whom a leader that handed over its role has named.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum NamedSuccessor {
    /// Somebody else.
    Other,
    /// This candidate.
    Own,
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
    /// Whom the last leader named as its successor, if it named anybody.
    successor: Option<NamedSuccessor>,
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
    heard: BTreeMap<MemberId, HeardHello>,
    /// Its own first hello was read: whoever is heard for the first time from now on came later.
    is_introduced: bool,
}

/// What the last hello of another candidate told.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct HeardHello {
    at: Time,
    group_member: Option<Box<str>>,
    name: Option<Box<str>>,
    priority: u16,
    /// Its first hello stands before this candidate's own.
    came_before: bool,
}

impl HeardHello {
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
            successor: None,
            priority: 0,
            standing: Standing::Unknown,
            group_member: None,
            foreseen: false,
            leader: None,
            heard: BTreeMap::new(),
            is_introduced: false,
        }
    }

    /// The same with this `--priority`.
    #[must_use]
    pub(crate) fn of_priority(self, priority: u16) -> Self {
        Self { priority, ..self }
    }

    /// What the spread of the roles adds to the claim delay from now on; none when nothing is to be claimed.
    pub(crate) const fn spread_by(&mut self, delay: Option<Duration>) {
        self.spread_delay = delay;
    }

    /// The last leader has named its successor; or nobody.
    pub(crate) const fn succeeded_by(&mut self, successor: Option<NamedSuccessor>) {
        self.successor = successor;
    }

    /// What the spread of the roles adds to the claim delay: nothing for the one that the last leader named, and whoever reads that it
    /// named another waits for that one, even before the spread has said so.
    fn spread_delay(&self) -> Option<Duration> {
        let delay = self.spread_delay?;
        Some(match self.successor {
            None => delay,
            Some(NamedSuccessor::Other) => delay.max(PATIENCE),
            Some(NamedSuccessor::Own) => Duration::ZERO,
        })
    }

    /// The group has spoken: nothing needs to be foreseen any more.
    pub(crate) fn stand(&mut self, standing: Standing) {
        self.standing = standing;
        self.foreseen = false;
    }

    /// From now on `delay` is added to every claim delay.
    pub(crate) fn back_off(&mut self, delay: Duration) {
        self.back_off = delay;
    }

    /// Whether anything is added to the claim delay since the last runs failed.
    #[must_use]
    pub(crate) const fn is_backing_off(&self) -> bool {
        !self.back_off.is_zero()
    }

    /// The group's coordinator knows this member by this id; or no longer.
    pub(crate) fn name(&mut self, group_member: Option<Box<str>>) {
        self.group_member = group_member;
    }

    /// By which id the group's coordinator knows this member.
    #[must_use]
    pub(crate) fn group_member(&self) -> Option<&str> {
        self.group_member.as_deref()
    }

    /// The member that held the partition has left the group, or is dead, and the lead is vacant.
    pub(crate) fn foresee(&mut self, now: Time, left: &str) {
        if self.group_member.is_some() {
            self.foreseen = self.is_next(now, left);
        }
    }

    /// Whether the group will give the partition to this member once `left` is none any more. The group gives it to the
    /// member that has the fewest, which all have that have none, and among them to the one with the least id
    /// (`maybeAssignPartition` in librdkafka's sticky assignor). Whoever has not said its id is not foreseen by anybody.
    fn is_next(&self, now: Time, left: &str) -> bool {
        let others = self.heard.values().filter(|heard| heard.holds(now));
        let mut others = others.filter_map(|heard| heard.group_member.as_ref());
        self.group_member.as_ref().is_some_and(|own| others.all(|other| own < other || **other == *left))
    }

    /// The leader fell silent and held the partition, as far as known: whether the group has given it to this member, or will, once
    /// the leader's session is over.
    fn is_next_to_leader(&self, now: Time) -> bool {
        let leader = self.leader.as_ref().and_then(|leader| self.heard.get(leader));
        let left = leader.and_then(|heard| heard.group_member.as_ref());
        self.standing == Standing::Elsewhere && left.is_some_and(|left| self.is_next(now, left))
    }

    /// The lead is no longer vacant, or so in another way.
    pub(crate) fn forget_foresight(&mut self) {
        self.foreseen = false;
    }

    /// What the group said last.
    #[must_use]
    pub(crate) const fn standing(&self) -> Standing {
        self.standing
    }

    /// Another candidate said hello.
    pub fn heard(&mut self, now: Time, hello: Hello) {
        let Hello { member, group_member, name, priority, overlaps: _, leaves } = hello;
        if leaves {
            self.heard.remove(&member);
            return;
        }
        self.heard.retain(|_, heard| heard.holds(now));
        if self.heard.len() < STANDBYS_COUNTED || self.heard.contains_key(&member) {
            let came_before = self.heard.get(&member).map_or(!self.is_introduced, |heard| heard.came_before);
            self.heard.insert(member, HeardHello { at: now, group_member, name, priority, came_before });
        }
    }

    /// This candidate's own hello was read.
    pub(crate) const fn introduced(&mut self) {
        self.is_introduced = true;
    }

    /// Whether another that says hello was heard before this candidate's own hello was: it came first, and is alive.
    pub(crate) fn came_before(&self, member: &MemberId) -> bool {
        self.is_introduced && self.heard.get(member).is_some_and(|heard| heard.came_before)
    }

    /// Another candidate released a term: most do so because they go, and whoever stays says hello again. Gives the id by which its
    /// last hello said that the group knows it.
    pub(crate) fn released(&mut self, member: &MemberId) -> Option<Box<str>> {
        self.heard.remove(member)?.group_member
    }

    /// How many others are known by their hellos, up to a thousand.
    #[must_use]
    pub(crate) fn standbys(&self, now: Time) -> u32 {
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

    /// Another leads, and the leader before has released nothing: that one is taken for gone until it says hello again.
    pub(crate) fn lost_to(&mut self, successor: Option<&MemberId>) {
        if let Some(lost) = self.leader.as_ref().filter(|leader| Some(*leader) != successor) {
            self.heard.remove(lost);
        }
    }

    /// Whether no other candidate is known to stand by, so that there is nobody to keep out of the way of.
    fn is_alone(&self, now: Time) -> bool {
        self.heard.iter().all(|(member, heard)| Some(member) == self.leader.as_ref() || !heard.holds(now))
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
    /// When the last release was written for a dead supervisor, whoever has the partition is likely dead.
    #[must_use]
    pub fn delay(&self, now: Time, predecessor: Predecessor) -> Option<Delay> {
        let added = self.claim_delay + self.back_off + self.wait_for_higher(now) + self.spread_delay()?;
        let foreseen = self.foreseen || (predecessor == Predecessor::Silent && self.is_next_to_leader(now));
        if foreseen && self.elector != Elector::Group(Patience::Never) {
            // It is alone in this: there is nobody to keep out of the way of.
            return Some(Delay { fixed: added, random: Duration::ZERO });
        }
        let among_others = if self.is_alone(now) { Duration::ZERO } else { SPREAD };
        let (fixed, spread) = match (self.elector, self.standing) {
            (Elector::Log, _) | (Elector::Group(_), Standing::Assigned) => (Duration::ZERO, Duration::ZERO),
            (Elector::Group(Patience::Never), Standing::Elsewhere | Standing::Unknown) => return None,
            (Elector::Group(Patience::For(_)), Standing::Unknown) => (Duration::ZERO, among_others),
            (Elector::Group(Patience::For(_)), Standing::Elsewhere) if predecessor == Predecessor::Died => {
                (Duration::ZERO, among_others)
            }
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
mod tests;
