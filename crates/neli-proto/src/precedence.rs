//! Precedence: the delay before a candidate claims a vacancy. It decides which candidate claims *first*, never which one leads.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use core::time::Duration;

use crate::hello::Hello;
use crate::listener::Predecessor;
use crate::record::MemberId;
use crate::status::OtherCandidate;
use crate::time::Time;
use crate::timings::{Elector, PATIENCE};

/// The width of the random claim delay if it is only known that other candidates stand by.
pub const RANDOM_DELAY: Duration = Duration::from_millis(50);

/// The interval of a candidate's hellos.
pub const HELLO_INTERVAL: Duration = Duration::from_secs(30);

/// A candidate that releases a term and stays sends a hello again after this time. The other candidates take it for gone after a release,
/// and must not learn otherwise before the vacancy is claimed: they would wait for it if it has a higher priority.
pub const HELLO_AFTER_LEAD: Duration = Duration::from_secs(2);

/// A member of the group delays its first hello by up to this time, so that the hello can contain the id from the group.
pub(crate) const HELLO_AWAITS_NAME: Duration = Duration::from_millis(500);

/// A process that disagrees with a first hello about the roles answers it at once. For this long after its first hello was read back, a process
/// claims nothing.
pub(crate) const ANSWERS: Duration = Duration::from_millis(500);

/// A candidate whose last hello is older than this counts as gone: it has missed two.
pub const HELLO_HOLDS: Duration = Duration::from_secs(75);

/// The jitter for each known standby. The other candidates read a claim within a millisecond or two. So about fifteen candidates claim a
/// vacancy, with any number of standbys, and the first of them within about this time.
const JITTER_PER_STANDBY: Duration = Duration::from_micros(100);

/// With this number of standbys the jitter has its maximum of 100 ms, so no more are kept.
const STANDBYS_COUNTED: usize = 1_000;

/// A candidate that knows another one with a higher priority waits this much longer, and with `--elect group` the patience as well.
const PRIORITY_STEP: Duration = Duration::from_millis(500);

/// At most this many higher priorities count.
const MOST_PRIORITY_STEPS: u32 = 10;

/// The consumer group's assignment, as this member knows it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Assignment {
    /// The role's partition is assigned to it.
    Own,
    /// The role's partition is assigned to another member.
    Elsewhere,
    /// No assignment is known: the member is joining, it was lost, or the coordinator can't be reached.
    #[default]
    Unknown,
}

/// Decides which candidate claims a vacancy first, as far as this member knows the others.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Precedence {
    /// This candidate.
    pub(crate) member: MemberId,
    elector: Elector,
    /// What a candidate whose last runs failed adds to every claim delay.
    pub(crate) back_off: Duration,
    /// The part that the spread of many roles adds from now on; `None` if this candidate must not claim.
    spread_delay: Option<Duration>,
    /// Whether the spread has let it claim before.
    has_spread: bool,
    /// The successor that the last leader named, by its release or an operator by a request, until a candidate has claimed.
    pub(crate) successor: Option<MemberId>,
    /// `--priority`.
    pub(crate) priority: u16,
    /// The last one; [`set_assignment`](Precedence::set_assignment) changes it.
    pub(crate) assignment: Assignment,
    /// Whether its process stands in other elections too, with one member of the group, and sends one hello for all. Then the group assigns the
    /// partition to a member that may hold its share of the roles already, so another candidate claims after a while even with
    /// `--patience never`.
    pub(crate) is_one_of_many: bool,
    /// The id of this member for the group's coordinator, if it is a member.
    pub(crate) group_member: Option<Box<str>>,
    /// Whether the partition is free, and the group will assign it to this member. No longer if there is a leader again, or the vacancy has
    /// another cause.
    pub(crate) foreseen: bool,
    /// The leader, or the last leader if it stopped writing: it does not stand by.
    leader: Option<MemberId>,
    /// The other candidates, by their last hello.
    received: BTreeMap<MemberId, ReceivedHello>,
}

/// The content of another candidate's last hello.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct ReceivedHello {
    at: Time,
    group_member: Option<Box<str>>,
    name: Option<Box<str>>,
    priority: u16,
}

impl ReceivedHello {
    fn holds(&self, now: Time) -> bool {
        now.since(self.at) < HELLO_HOLDS
    }
}

impl Precedence {
    /// The precedence of a candidate that has read nothing yet.
    pub fn new(elector: Elector) -> Self {
        Self { elector, spread_delay: Some(Duration::ZERO), ..Self::default() }
    }

    /// Sets the part of the claim delay that the spread adds; with `None` nothing is claimed: before the first one because the spread does not
    /// know the others yet.
    pub(crate) fn spread_by(&mut self, delay: Option<Duration>) {
        // The first call comes before the spread knows the others, and each later one from its plan.
        self.has_spread |= delay.is_some() || self.spread_delay.is_none();
        self.spread_delay = delay;
    }

    /// Whether the spread lets it claim no more: the process leads as many roles as it may.
    pub(crate) const fn is_full(&self) -> bool {
        self.has_spread && self.spread_delay.is_none()
    }

    /// Whether the last leader named this candidate, and no other has led since.
    pub(crate) fn is_named_successor(&self) -> bool {
        self.successor.as_ref() == Some(&self.member)
    }

    /// The part that the spread adds to the claim delay: at least the patience if the last leader named another candidate, even before the spread
    /// has reported it, and also without roles.
    fn spread_delay(&self) -> Option<Duration> {
        let is_anothers = self.successor.is_some() && !self.is_named_successor();
        self.spread_delay.map(|delay| if is_anothers { delay.max(PATIENCE) } else { delay })
    }

    /// Handles a change of the group's assignment. It replaces the prediction.
    pub(crate) fn set_assignment(&mut self, assignment: Assignment) {
        self.assignment = assignment;
        self.foreseen = false;
    }

    /// Whether a back-off is added to the claim delay because the last runs failed.
    pub(crate) const fn is_backing_off(&self) -> bool {
        !self.back_off.is_zero()
    }

    /// Handles that the member that held the partition has left the group or is dead, and there is no leader.
    pub(crate) fn foresee(&mut self, now: Time, left: &str) {
        if self.group_member.is_some() {
            self.foreseen = self.is_next(now, left);
        }
    }

    /// Whether the group will assign the partition to this member once `left` is gone. The group chooses the member with the fewest
    /// partitions (here all members without any), and among those the one with the least id (`maybeAssignPartition` in librdkafka's sticky
    /// assignor). A member whose hello contains no id is left out.
    fn is_next(&self, now: Time, left: &str) -> bool {
        let others = self.received.values().filter(|received| received.holds(now));
        let mut others = others.filter_map(|received| received.group_member.as_ref());
        self.group_member.as_ref().is_some_and(|own| others.all(|other| own < other || **other == *left))
    }

    /// For a leader that is silent and held the partition, as far as it is known: whether the group has assigned the partition to this
    /// member, or will when the leader's session is over.
    fn is_next_to_leader(&self, now: Time) -> bool {
        let leader = self.leader.as_ref().and_then(|leader| self.received.get(leader));
        let left = leader.and_then(|received| received.group_member.as_ref());
        self.assignment == Assignment::Elsewhere && left.is_some_and(|left| self.is_next(now, left))
    }

    /// Handles another candidate's hello.
    pub fn received(&mut self, now: Time, hello: Hello) {
        let Hello { member, group_member, name, priority, leaves, .. } = hello;
        if leaves {
            self.received.remove(&member);
            return;
        }
        self.received.retain(|_, received| received.holds(now));
        if self.received.len() < STANDBYS_COUNTED || self.received.contains_key(&member) {
            self.received.insert(member, ReceivedHello { at: now, group_member, name, priority });
        }
    }

    /// Handles that another candidate released a term. Most candidates do so because they leave, and one that stays sends a hello again.
    /// Returns the group member id in its last hello.
    pub(crate) fn released(&mut self, member: &MemberId) -> Option<Box<str>> {
        self.received.remove(member)?.group_member
    }

    /// The number of other candidates that are known by their hellos, up to a thousand.
    pub(crate) fn standbys(&self, now: Time) -> u32 {
        let standbys = self.received.values().filter(|received| received.holds(now)).count();
        u32::try_from(standbys).unwrap_or(u32::MAX)
    }

    /// The other candidates that are known by their hellos.
    pub(crate) fn others(&self, now: Time) -> impl Iterator<Item = OtherCandidate> {
        let held = self.received.iter().filter(move |(_, received)| received.holds(now));
        let other = move |(member, received): (&MemberId, &ReceivedHello)| {
            let (member, name) = (member.clone(), received.name.clone());
            OtherCandidate { member, name, age: now.since(received.at) }
        };
        held.map(other)
    }

    /// The name of another candidate in its last hello, or its id.
    pub(crate) fn shown<'a>(&'a self, member: &'a MemberId) -> &'a str {
        self.received.get(member).and_then(|received| received.name.as_deref()).unwrap_or(member.as_str())
    }

    /// The `--priority` of another candidate in its last hello; `None` if that is too old.
    pub(crate) fn priority_of(&self, now: Time, member: &MemberId) -> Option<u16> {
        self.received.get(member).filter(|received| received.holds(now)).map(|received| received.priority)
    }

    /// Sets the leader according to the journal.
    pub(crate) fn set_leader(&mut self, leader: Option<&MemberId>) {
        if self.leader.as_ref() != leader {
            self.leader = leader.cloned();
        }
    }

    /// Handles that this candidate leads. If the previous leader is another one, and has released nothing, it counts as gone until it sends a hello
    /// again. Returns whether that is this process's candidate.
    pub(crate) fn lost_to(&mut self, successor: &MemberId) -> bool {
        let Some(lost) = self.leader.as_ref().filter(|leader| *leader != successor) else { return false };
        self.received.remove(lost);
        *lost == self.member
    }

    /// The last hellos of the other candidates that stand by, as far as they hold.
    fn other_standbys(&self, now: Time) -> impl Iterator<Item = &ReceivedHello> {
        let others = self.received.iter().filter(|(member, _)| Some(*member) != self.leader.as_ref());
        others.map(|(_, received)| received).filter(move |received| received.holds(now))
    }

    /// Whether a candidate of a higher priority stands by.
    pub(crate) fn is_outranked(&self, now: Time) -> bool {
        self.higher_priorities(now).next().is_some()
    }

    /// The priorities of standbys that are higher than this candidate's.
    fn higher_priorities(&self, now: Time) -> impl Iterator<Item = u16> {
        self.other_standbys(now).map(|received| received.priority).filter(|priority| *priority > self.priority)
    }

    /// The part of the claim delay for standbys of a higher priority: one step for each such priority, long enough for its candidates to
    /// claim first.
    fn wait_for_higher(&self, now: Time) -> Duration {
        let priorities: BTreeSet<u16> = self.higher_priorities(now).collect();
        let steps = u32::try_from(priorities.len()).unwrap_or(u32::MAX).min(MOST_PRIORITY_STEPS);
        let patience = if let Elector::Group(Some(patience)) = self.elector { patience } else { Duration::ZERO };
        (PRIORITY_STEP + patience) * steps
    }

    /// Whether this candidate claims only once the group has chosen it.
    pub(crate) fn awaits_assignment(&self) -> bool {
        self.elector == Elector::Group(None) && !self.is_one_of_many && self.assignment != Assignment::Own
    }

    /// The fixed delay before a claim and the range of the random part; `None` if this member never claims.
    ///
    /// If the last release was written for a dead supervisor, the member that holds the partition is probably dead.
    pub fn delay(&self, now: Time, predecessor: Predecessor) -> Option<Delay> {
        let spread = self.spread_delay()?;
        if self.is_named_successor() {
            // The last leader chose it, so it waits for nobody. If its own job fails it is late all the same.
            return Some(Delay { fixed: self.back_off, random: Duration::ZERO });
        }
        let added = self.back_off + self.wait_for_higher(now) + spread;
        let foreseen = self.foreseen || (predecessor == Predecessor::Silent && self.is_next_to_leader(now));
        if foreseen && self.elector != Elector::Group(None) {
            // Only one candidate predicts this, so it needs no random delay.
            return Some(Delay { fixed: added, random: Duration::ZERO });
        }
        let among_others = self.other_standbys(now).next().map_or(Duration::ZERO, |_| RANDOM_DELAY);
        // The process that is to have the role waits for the patience. This one, which is not to have it, comes after that.
        let is_after_another = self.assignment == Assignment::Own && !spread.is_zero();
        let assignment = if is_after_another { Assignment::Elsewhere } else { self.assignment };
        let (fixed, random) = match (self.elector, assignment) {
            (Elector::Log, _) | (Elector::Group(_), Assignment::Own) => (Duration::ZERO, Duration::ZERO),
            (Elector::Group(None), Assignment::Elsewhere) if self.is_one_of_many => (PATIENCE, Duration::ZERO),
            (Elector::Group(None), Assignment::Elsewhere | Assignment::Unknown) => return None,
            (Elector::Group(Some(patience)), Assignment::Elsewhere) if predecessor != Predecessor::Died => {
                (patience, Duration::ZERO)
            }
            (Elector::Group(Some(_)), Assignment::Elsewhere | Assignment::Unknown) => (Duration::ZERO, among_others),
        };
        let jitter = JITTER_PER_STANDBY * self.standbys(now);
        Some(Delay { fixed: fixed + added, random: random + jitter })
    }
}

/// A claim delay, before the random part is drawn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Delay {
    /// The fixed part.
    pub fixed: Duration,
    /// The maximum of the random part.
    pub random: Duration,
}

#[cfg(test)]
mod tests;
