//! The roles of a group, by the hellos of its candidates. Every command that shows or asks a group's roles uses this, so that all of them name
//! the same roles.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{Election, Place, Standby};
use crate::hello::Hello;
use crate::leadership::ReadAt;
use crate::mapping::Mapping;
use crate::precedence::HELLO_HOLDS;
use crate::record::{MemberId, Offset};
use crate::time::millis;

/// Of more candidates than this, those that have left are forgotten where a topic is read on: each start of a process has a new member id.
const MOST_READ_ON: usize = 16;

/// The last hello of each candidate of a group, as far as partition 0 was read.
#[derive(Clone, Debug, Default)]
pub struct GroupHellos {
    /// Boxed, since a map keeps room for eleven values, and most groups have three candidates.
    last: BTreeMap<MemberId, Box<LastHello>>,
    /// The [`mappings`](Self::mappings), as far as they were noted; empty if the candidates have one role, which they call as they like.
    pub(super) noted: Vec<Mapping>,
}

/// A candidate's last hello.
#[derive(Clone, Debug)]
pub struct LastHello {
    /// The hello.
    pub hello: Arc<Hello>,
    /// When it was read.
    pub at: ReadAt,
    /// When it was appended, in milliseconds since 1970, if that is known.
    pub written_ms: Option<u64>,
    offset: Offset,
}

impl GroupHellos {
    /// Handles the hello of a candidate of the group, in the order of the log.
    pub fn read(&mut self, at: ReadAt, offset: Offset, hello: impl Into<Arc<Hello>>, written_ms: Option<u64>) {
        let hello = hello.into();
        self.last.insert(hello.member.clone(), Box::new(LastHello { hello, at, written_ms, offset }));
    }

    /// Forgets candidates that were not heard within 75 s before the last one of all, but for the one whose mapping is the group's if nobody stands.
    pub(super) fn forget_old(&mut self) {
        if self.last.len() <= MOST_READ_ON {
            return;
        }
        let kept = self.last.values().max_by_key(|last| last.rank()).map(|last| last.offset);
        let is_old = self.is_old();
        self.last.retain(|_, last| Some(last.offset) == kept || !is_old(last));
    }

    /// Whether a hello was written 75 s or more before the last one of all.
    fn is_old(&self) -> impl Fn(&LastHello) -> bool + use<> {
        let newest_ms = self.last.values().filter_map(|last| last.written_ms).max();
        move |last| last.written_ms.zip(newest_ms).is_some_and(|(ms, newest_ms)| newest_ms - ms >= millis(HELLO_HOLDS))
    }

    /// The last hello of each candidate, also of those that have left.
    pub(crate) fn all(&self) -> impl Iterator<Item = &LastHello> {
        self.last.values().map(|last| &**last)
    }

    /// The last hellos of the candidates that stand: each has not said that it leaves, was heard within 75 s before the last one of all, and
    /// agrees with the last one on the partition of each role. A candidate that is refused does not stand: it says no hello after its first
    /// one but that it leaves.
    fn standing(&self) -> Vec<&LastHello> {
        let is_old = self.is_old();
        let stands = |last: &&LastHello| last.hello.takes_roles() && !last.hello.stands_for_no_role() && !is_old(last);
        let mut standing: Vec<&LastHello> = self.all().filter(stands).collect();
        // A candidate without `--roles` does not stand beside those that have roles. The release of its last term, which says that it goes, is
        // no hello.
        if standing.iter().any(|last| last.hello.roles.is_some()) {
            standing.retain(|last| last.hello.roles.is_some());
        }
        if let Some(mapping) = standing.iter().max_by_key(|last| last.offset).map(|last| last.hello.mapping()) {
            standing.retain(|last| mapping.refusal(&last.hello.mapping(), "").is_none());
        }
        standing
    }

    /// The mappings by which candidates stand, that with the most roles first: they agree where they have roles in common. If no candidate stands,
    /// that of the last one that stood; none if no hello was read.
    pub fn mappings(&self) -> Vec<Mapping> {
        let mut standing = self.standing();
        standing.sort_by_key(|last| Reverse((last.hello.mapping().count(), last.offset)));
        if standing.is_empty() {
            standing.extend(self.all().max_by_key(|last| last.rank()));
        }
        let mut mappings: Vec<Mapping> = standing.into_iter().map(|last| last.hello.mapping()).collect();
        mappings.dedup();
        mappings
    }

    /// Notes the [`mappings`](Self::mappings).
    pub(super) fn note_mappings(&mut self) {
        let mappings = self.mappings();
        self.noted = if mappings.contains(&Mapping::of_one_role()) { Vec::new() } else { mappings };
    }

    /// Whether this election belongs to earlier mappings alone, nobody led it at the last hello, and nobody has to: its role has got another
    /// partition, or a number where roles have names, was never claimed, or is done. Any other role that no list has any more is one that nobody runs.
    pub(super) fn leaves_out(&self, election: &Election) -> bool {
        let Place { partition, role, .. } = election.place();
        let noted = || self.noted.iter();
        let is_noted = noted().any(|mapping| mapping.number_in(*partition, role).is_some());
        if is_noted || !election.is_found {
            return !is_noted;
        }
        let is_elsewhere = self.find(role).is_some_and(|(mapping, _)| mapping.number_in(*partition, role).is_none());
        let has_no_name = noted().any(|mapping| !mapping.names().is_empty()) && role.parse::<u32>().is_ok();
        let is_past = |at| is_elsewhere || has_no_name || election.observer().is_done(at);
        let last = self.all().max_by_key(|last| last.offset);
        last.is_none_or(|last| election.observer().leadership(last.at).may_lead().is_none() && is_past(last.at))
    }

    /// All roles for which candidates stand, by the [`mappings`](Self::mappings): as names, unless the first has them all. It does not say in which
    /// partitions they are. Of each list at most the first `most` are looked at.
    pub fn all_roles(&self, most: u32) -> Option<Mapping> {
        let mappings = self.mappings();
        let (first, others) = mappings.split_first()?;
        let labels = |mapping: &Mapping| mapping.places(most).into_iter().map(|(label, _)| label);
        if others.iter().flat_map(labels).all(|label| first.number(&label).is_some()) {
            return Some(first.clone());
        }
        let mut known = BTreeSet::new();
        let all = mappings.iter().flat_map(labels).filter(|label| known.insert(label.clone()));
        Some(Mapping::new(&all.collect::<Vec<_>>().join(","), first.partitions()))
    }

    /// The mapping and the number of the role with this name or number: by the [`mappings`](Self::mappings), or else by the last hello whose mapping
    /// contains it. Where roles have names no role is called by its number, which would be another role in another list.
    pub fn find(&self, role: &str) -> Option<(Mapping, u32)> {
        let of = |mapping: Mapping| mapping.number(role).map(|number| (mapping, number));
        let current = self.mappings();
        let have_names = current.iter().any(|mapping| !mapping.names().is_empty());
        let found = current.into_iter().find_map(of);
        if found.is_some() || have_names && role.parse::<u32>().is_ok() {
            return found;
        }
        let mut others: Vec<&LastHello> = self.all().collect();
        others.sort_by_key(|last| last.rank());
        others.iter().rev().find_map(|last| of(last.hello.mapping()))
    }
}

impl LastHello {
    /// The order of hellos by what they say of the roles: that of a candidate that leaves, which may have been refused, comes first.
    fn rank(&self) -> (bool, Offset) {
        (!self.hello.leaves, self.offset)
    }
}

// ---- whether the standbys may lead another role, by the `--max-roles` of each --------------------------------------

/// The limits of candidates that together may lead fewer roles than there are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NoRoom {
    /// The number of candidates.
    pub candidates: usize,
    /// The number of roles that they may lead together.
    pub most: u32,
    /// The number of roles that there are.
    pub roles: u32,
    /// The values of `--max-roles`, without repetition.
    pub max_roles: BTreeSet<u32>,
}

impl NoRoom {
    /// For a role without a leader: the limits of its standbys, if all of them together may lead fewer roles than there are; `None` if they
    /// may lead enough or one of them has no limit. A candidate that leads another role is a standby of this one.
    pub fn of(standbys: &[Standby<'_>], roles: impl FnOnce() -> u32) -> Option<Self> {
        let limits: Option<Vec<u32>> = standbys.iter().map(|standby| standby.candidate.max_roles()).collect();
        let limits = limits.filter(|limits| !limits.is_empty())?;
        let most = limits.iter().fold(0, |most: u32, limit| most.saturating_add(*limit));
        let roles = roles();
        let is_full = most < roles;
        is_full.then(|| Self { candidates: limits.len(), most, roles, max_roles: limits.into_iter().collect() })
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use super::*;
    use crate::time::Time;

    /// A hello of this many seconds after the first.
    fn read(hellos: &mut GroupHellos, seconds: u64, member: &str, fields: &str) {
        let line = format!(r#"{{"v":1,"kind":"hello","member":"{member}"{fields}}}"#);
        let hello = Hello::parse(line.as_bytes()).expect("a hello");
        let at = ReadAt { now: Time::from_nanos(1), wall_ms: 0 };
        hellos.read(at, Offset::try_from(seconds).expect("small"), hello, Some(seconds * 1_000));
    }

    const NAMED: &str = r#","roles":"ingest,bill","partitions":2,"joined":1"#;

    fn roles(hellos: &GroupHellos) -> Option<String> {
        hellos.mappings().first().map(Mapping::roles)
    }

    #[test]
    fn a_refused_candidate_does_not_say_what_the_roles_are() {
        let mut hellos = GroupHellos::default();
        assert_eq!(roles(&hellos), None);
        read(&mut hellos, 1, "a", NAMED);
        read(&mut hellos, 20, "b", r#","roles":"bill,ingest","partitions":2"#);
        assert_eq!(roles(&hellos).as_deref(), Some("ingest, bill"), "it has not stood yet");
        read(&mut hellos, 21, "b", r#","roles":"bill,ingest","partitions":2,"joined":20,"leaves":true"#);
        read(&mut hellos, 22, "c", "");
        assert_eq!(roles(&hellos).as_deref(), Some("ingest, bill"), "a candidate without --roles is refused beside it");
        assert_eq!(hellos.standing().len(), 1);
        assert_eq!(hellos.find("0").map(|(_, number)| number), None, "no role is called by its number");
        assert_eq!(hellos.find("bill").map(|(_, number)| number), Some(1));
        read(&mut hellos, 77, "c", "");
        assert_eq!(roles(&hellos).as_deref(), Some("0 alone"), "the others have not been heard for 75 s");
        assert_eq!(hellos.find("0").map(|(_, number)| number), Some(0));
        assert_eq!(hellos.find("bill").map(|(_, number)| number), Some(1), "its records may still be looked at");
    }

    #[test]
    fn candidates_that_have_left_are_forgotten_where_a_topic_is_read_on() {
        let mut hellos = GroupHellos::default();
        let mut most = 0;
        for start in 0..1_000 {
            read(&mut hellos, 10 * start, &format!("m{start}"), NAMED);
            hellos.forget_old();
            most = most.max(hellos.all().count());
        }
        assert_eq!((most, hellos.standing().len()), (MOST_READ_ON, 8));
        read(&mut hellos, 20_000, "last", r#","roles":"ingest,bill","partitions":2,"joined":1,"leaves":true"#);
        for start in 0..1_000 {
            read(&mut hellos, 20_001 + start, &format!("x{start}"), r#","leaves":true"#);
            hellos.forget_old();
        }
        assert_eq!(roles(&hellos).as_deref(), Some("ingest, bill"), "the last one that stood says it");
    }

    #[test]
    fn the_longest_list_counts_while_roles_are_added() {
        let mut hellos = GroupHellos::default();
        read(&mut hellos, 1, "new", r#","roles":"5","partitions":3,"joined":1"#);
        read(&mut hellos, 2, "old", r#","roles":"3","partitions":3,"joined":0"#);
        assert_eq!(roles(&hellos).as_deref(), Some("0 to 4"));
        assert_eq!(hellos.standing().len(), 2);
        read(&mut hellos, 3, "new", r#","roles":"5","partitions":3,"joined":1,"leaves":true"#);
        assert_eq!(roles(&hellos).as_deref(), Some("0 to 2"));
        read(&mut hellos, 4, "old", r#","roles":"3","partitions":3,"joined":0,"left":"0-2""#);
        assert_eq!((roles(&hellos).as_deref(), hellos.standing().len()), (Some("0 to 2"), 0), "it has died");
    }
}

#[cfg(test)]
mod tests_of_room {
    use core::time::Duration;

    use super::*;
    use crate::leadership::Receipt;
    use crate::observer::KnownCandidate;
    use crate::time::Time;

    fn candidate(max_roles: Option<u32>) -> KnownCandidate {
        let hello =
            Hello { roles: Some("4294967295".into()), partitions: Some(1), max_roles, ..Hello::new("ab".into(), None) };
        let received = Receipt { read: Time::from_nanos(1), written_ms: None, is_brokers_time: true, is_live: true };
        KnownCandidate { hello: Arc::new(hello), received, first: None }
    }

    fn room(limits: &[Option<u32>], roles: u32) -> Option<(usize, u32, Vec<u32>)> {
        let candidates: Vec<KnownCandidate> = limits.iter().copied().map(candidate).collect();
        let standby = |candidate| Standby { candidate, age: Duration::ZERO, listens: None, failed_runs: 0 };
        let standbys: Vec<Standby<'_>> = candidates.iter().map(standby).collect();
        let full = NoRoom::of(&standbys, || roles)?;
        Some((full.candidates, full.most, full.max_roles.into_iter().collect()))
    }

    #[test]
    fn there_is_room_unless_all_limits_together_are_too_low() {
        assert_eq!(room(&[Some(2), Some(2)], 5), Some((2, 4, [2].into())));
        assert_eq!(room(&[Some(2), Some(1), Some(2)], 6), Some((3, 5, [1, 2].into())));
        assert_eq!(room(&[Some(2), Some(2)], 4), None);
        assert_eq!(room(&[Some(2), None], 9), None, "one without a limit");
        assert_eq!(room(&[], 9), None, "nobody is there");
        assert_eq!(room(&[Some(u32::MAX - 1), Some(2)], u32::MAX), None);
    }
}
