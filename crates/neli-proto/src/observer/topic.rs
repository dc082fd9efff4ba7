//! All elections of a topic, found by the keys of its records.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::{fmt, mem};

use super::{Change, Election, GroupHellos, LastHello, NoRoom, Progress, Standby};
use crate::hello::Hello;
use crate::journal::{Journal, Verdict};
use crate::leadership::ReadAt;
use crate::listener::{HistoryCut, LogBounds};
use crate::record::{LogRecord, Offset, election_of};
use crate::time::Time;

/// So many of the last terms of each election are kept.
const MOST_TERMS: usize = 200;

/// The elections of a topic, as far as its partitions were read.
#[derive(Clone, Debug, Default)]
pub struct Topic {
    pub(super) partitions: BTreeMap<i32, Partition>,
    /// Boxed, since a map that is filled in order keeps room for twice as many.
    elections: BTreeMap<Place, Box<Election>>,
    /// The hellos of each group.
    hellos: BTreeMap<Box<str>, GroupHellos>,
    latest_ms: Option<u64>,
    /// Of a list of roles at most so many are looked at.
    most_roles: u32,
    /// The only group that is read, if one is: its elections are [expected](Self::expect), and none is looked for.
    group: Option<Box<str>>,
    /// The others whose records were read then: for a message about a mistyped group.
    other_groups: BTreeSet<String>,
    /// Whether the reading has reached the ends of the logs, and goes on.
    pub(super) is_live: bool,
}

/// A partition that is read.
#[derive(Clone, Debug)]
pub(super) struct Partition {
    /// Its log when the reading began.
    pub(super) bounds: LogBounds,
    /// Where the reading began.
    pub(super) from: Offset,
    /// What an election without records knows of the law: where records are missing.
    journal: Journal,
    progress: Progress,
}

/// What identifies an election in a topic.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// Its partition.
    pub partition: i32,
    /// Its group.
    pub group: Box<str>,
    /// The role's name or number.
    pub role: Box<str>,
}

/// Elections are shown in this order: by group, and in a group by the roles' numbers, then by their names.
impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        let number = |place: &Self| place.role.parse().unwrap_or(u32::MAX);
        let groups = self.group.cmp(&other.group).then_with(|| number(self).cmp(&number(other)));
        groups.then_with(|| (&self.role, self.partition).cmp(&(&other.role, other.partition)))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The election's name for people: its group, and its role if there are several.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, role, .. } = self;
        if **role == *"0" { f.write_str(group) } else { write!(f, "{group}/{role}") }
    }
}

impl Topic {
    /// All elections are looked for; of a list of roles at most so many.
    pub fn new(most_roles: u32) -> Self {
        Self { most_roles, ..Self::default() }
    }

    /// Only elections of this group are read that are [expected](Self::expect), with all their terms.
    pub fn of_group(group: &str) -> Self {
        Self { group: Some(group.into()), ..Self::default() }
    }

    /// Begins to read a partition with such a log from an offset on.
    pub fn begin(&mut self, at: ReadAt, partition: i32, bounds: LogBounds, from: Offset) {
        let (journal, progress) = (bounds.journal_from(at.now, from), Progress::new(bounds, from));
        self.partitions.insert(partition, Partition { bounds, from, journal, progress });
    }

    /// Reads an election, whether there is a record of it or not. Returns whether its partition is read.
    pub fn expect(&mut self, place: &Place) -> bool {
        let Some(mut election) = self.begun(place) else { return false };
        election.is_found = true;
        self.elections.insert(place.clone(), Box::new(election));
        true
    }

    /// An election of which nothing was read.
    fn begun(&self, place: &Place) -> Option<Election> {
        let Partition { bounds, from, journal, .. } = self.partitions.get(&place.partition)?;
        Some(Election::new(place, journal.clone(), bounds.start, *from))
    }

    /// How far a partition was read.
    pub(super) fn progress(&self, partition: i32) -> Option<&Progress> {
        self.partitions.get(&partition).map(|partition| &partition.progress)
    }

    /// The same, to note what an answer tells.
    pub(super) fn progress_mut(&mut self, partition: i32) -> Option<&mut Progress> {
        self.partitions.get_mut(&partition).map(|partition| &mut partition.progress)
    }

    /// Handles an answer about a partition's log: what is missing behind its end is no record.
    ///
    /// # Errors
    ///
    /// The history was cut.
    pub fn answered(&mut self, now: Time, partition: i32, bounds: LogBounds) -> Result<(), HistoryCut> {
        let Some(Partition { journal, progress, .. }) = self.partitions.get_mut(&partition) else { return Ok(()) };
        journal.answered(now, bounds.asked, bounds.end);
        let answered = progress.answered(bounds);
        self.note_progress(partition);
        answered
    }

    /// Handles the answer to a question of `asked` that there is no such topic.
    ///
    /// # Errors
    ///
    /// The topic is gone.
    pub fn missing(&mut self, partition: i32, asked: Time) -> Result<(), HistoryCut> {
        self.progress_mut(partition).map_or(Ok(()), |progress| progress.signs.missing(asked))
    }

    /// Whether all partitions were read up to the ends that they had when the reading began.
    pub fn is_read(&self) -> bool {
        self.partitions.values().all(|partition| partition.progress.is_complete())
    }

    /// All records of a partition below `next` were read.
    pub fn read_up_to(&mut self, partition: i32, next: Offset) {
        if self.progress_mut(partition).is_some_and(|progress| progress.read_up_to(next)) {
            self.note_progress(partition);
        }
    }

    /// Tells a partition's elections up to when they were read.
    pub(super) fn note_progress(&mut self, partition: i32) {
        if let Some(asked) = self.progress(partition).map(|progress| progress.as_of) {
            self.in_partition(partition).for_each(|election| election.was_read_to_end(asked));
        }
    }

    fn in_partition(&mut self, partition: i32) -> impl Iterator<Item = &mut Election> {
        self.elections
            .values_mut()
            .map(|election| &mut **election)
            .filter(move |found| found.place().partition == partition)
    }

    /// Takes over what another reading has found in a partition. It has read the partition up to the same offset, and began further back.
    pub(super) fn take_past(&mut self, partition: i32, past: &mut Self) {
        let (of_partition, rest) =
            mem::take(&mut past.elections).into_iter().partition(|(place, _)| place.partition == partition);
        past.elections = rest;
        let of_partition: BTreeMap<Place, Box<Election>> = of_partition;
        for (place, mut election) in of_partition.into_iter().filter(|(_, election)| election.is_found) {
            if let Some(known) = self.elections.get_mut(&place).filter(|known| known.is_decided()) {
                known.learn_past(*election);
                continue;
            }
            hear_all(self.hellos(&place.group), &mut election);
            self.elections.insert(place, election);
        }
    }

    /// Handles a record of a partition whose reading has begun. Returns what the law says of it, if it is an election's.
    pub fn read(&mut self, at: ReadAt, partition: i32, record: &LogRecord) -> Option<(Place, (Verdict, Vec<Change>))> {
        let LogRecord { offset, key, written_ms, is_brokers_time, .. } = record;
        self.latest_ms = self.latest_ms.max(written_ms.filter(|_| *is_brokers_time));
        let journal = &mut self.partitions.get_mut(&partition)?.journal;
        let next = journal.next();
        if *offset < next {
            return None;
        }
        let is_behind_missing = journal.come_to(at.now, *offset);
        let key = key.as_deref().and_then(election_of);
        // The offsets in between were other elections' records, or no records, if none are missing.
        let read_up_to = if is_behind_missing { next } else { *offset };
        let judged = key.and_then(|key| self.read_keyed(at, (partition, read_up_to), key, record));
        if is_behind_missing {
            // The next record of another election may come behind many others.
            for election in self.in_partition(partition) {
                let observer = &mut election.observer;
                observer.read_others_up_to(at.now, next);
                observer.read_other(at.now, *offset);
            }
        }
        if let Some(read) = self.partitions.get_mut(&partition) {
            read.journal.read_other(at.now, *offset);
        }
        self.read_up_to(partition, offset + 1);
        judged
    }

    /// Handles a record of a partition that was read up to the offset `next`.
    fn read_keyed(
        &mut self,
        at: ReadAt,
        (partition, next): (i32, Offset),
        (group, role, is_hello): (&str, &str, bool),
        record: &LogRecord,
    ) -> Option<(Place, (Verdict, Vec<Change>))> {
        if self.group.as_deref().is_some_and(|only| only != group) {
            self.other_groups.insert(group.to_string());
            return None;
        }
        let LogRecord { offset, value, written_ms, .. } = record;
        let hello = value.as_deref().filter(|_| is_hello).and_then(Hello::parse).map(Arc::new);
        if let Some(hello) = &hello {
            let is_of_many = hello.roles.is_some();
            if is_of_many {
                self.hear(at, group, hello, *written_ms);
            }
            let hellos = self.hellos.entry(group.into()).or_default();
            hellos.read(at, *offset, Arc::clone(hello), *written_ms);
            if self.is_live {
                hellos.forget_old();
                if self.group.is_none() {
                    hellos.note_mappings();
                }
            }
            if is_of_many {
                return None;
            }
        }
        let (is_live, keeps_all) = (self.is_live, self.group.is_some());
        let election = self.found(partition, group, role)?;
        election.observer.read_others_up_to(at.now, next);
        if is_hello {
            if let Some(hello) = &hello {
                election.candidate_said(at, hello, *written_ms);
                election.is_found |= is_live && hello.takes_roles();
            }
            return None;
        }
        let judged = election.read(at, record)?;
        if !keeps_all {
            // What is read on would grow.
            election.keep_terms(MOST_TERMS);
        }
        election.is_found = true;
        Some((election.place().clone(), judged))
    }

    /// What is known of an election; `None` if it is not read.
    fn found(&mut self, partition: i32, group: &str, role: &str) -> Option<&mut Election> {
        let place = Place { partition, group: group.into(), role: role.into() };
        if !self.elections.contains_key(&place) {
            if self.group.is_some() {
                return None;
            }
            let mut election = self.begun(&place)?;
            if self.is_live {
                self.progress(partition).into_iter().for_each(|progress| election.was_read_to_end(progress.as_of));
                hear_all(self.hellos(group), &mut election);
            }
            self.elections.insert(place.clone(), Box::new(election));
        }
        self.elections.get_mut(&place).map(|found| &mut **found)
    }

    /// Has each election hear the hello of a process with many roles of its group. Where all elections are looked for, those of the process's own
    /// roles are some, once everything was read.
    fn hear(&mut self, at: ReadAt, group: &str, hello: &Arc<Hello>, written_ms: Option<u64>) {
        if self.group.is_some() {
            self.elections.values_mut().for_each(|found| found.hello_received(at, hello, written_ms));
        } else if self.is_live {
            for (role, partition) in hello.mapping().places(self.most_roles) {
                if let Some(found) = self.found(partition, group, &role) {
                    found.hello_received(at, hello, written_ms);
                }
            }
        }
    }

    /// Finds the elections of the candidates' roles by the hellos of processes with many roles, once all partitions were read. Of a role without
    /// records a group has an election if the role is one of its candidates' roles; what was read only from a candidate that was refused, or has
    /// left, is none. Of a list of roles at most the first are looked at.
    fn find_roles(&mut self) {
        let most = self.most_roles;
        self.hellos.values_mut().for_each(GroupHellos::note_mappings);
        for (group, hellos) in self.hellos.clone() {
            for (role, partition) in hellos.noted.iter().flat_map(|mapping| mapping.places(most)) {
                self.found(partition, &group, &role);
            }
        }
    }

    /// The logs were read up to the ends that they had when the reading began, and are read on: finds the candidates' roles, and a record that
    /// comes now is as old as its reading.
    pub fn caught_up(&mut self) {
        if self.group.is_none() {
            self.find_roles();
        }
        self.is_live = true;
        for (place, election) in &mut self.elections {
            let hellos = self.hellos.get(&place.group).filter(|_| self.group.is_none());
            // Where no process has many roles, the keys of the hellos name the role.
            election.is_found |= hellos.is_some_and(|hellos| hellos.noted.is_empty());
            hear_all(hellos, election);
            if let Some(partition) = self.partitions.get(&place.partition) {
                election.was_read_to_end(partition.progress.as_of);
            }
        }
        if let Some(latest_ms) = self.latest_ms {
            self.stamped(latest_ms);
        }
    }

    /// The latest timestamp in the topic that came from a broker, in milliseconds since 1970.
    pub const fn latest_ms(&self) -> Option<u64> {
        self.latest_ms
    }

    /// Tells each election the latest time that a broker's clock is known to have shown.
    pub fn stamped(&mut self, latest_ms: u64) {
        self.elections.values_mut().for_each(|found| found.observer.stamped(latest_ms));
    }

    /// The elections, but for those that are left from earlier roles or partitions.
    pub fn elections(&self) -> impl Iterator<Item = &Election> {
        self.elections.values().map(|election| &**election).filter(|election| is_shown(&self.hellos, election))
    }

    /// Why none of these standbys of an election of the group may lead it, if nobody does (`--max-roles`).
    pub fn no_room(&self, group: &str, standbys: &[Standby<'_>]) -> Option<NoRoom> {
        let all = || self.hellos.get(group)?.all_roles(self.most_roles);
        NoRoom::of(standbys, || all().map_or(1, |all| all.count()))
    }

    /// The other groups whose records were read, if only one is.
    pub const fn other_groups(&self) -> &BTreeSet<String> {
        &self.other_groups
    }

    /// The last hello of each candidate of a group, if any was read.
    pub fn hellos(&self, group: &str) -> Option<&GroupHellos> {
        self.hellos.get(group)
    }

    /// An election.
    pub fn election(&self, place: &Place) -> Option<&Election> {
        self.elections.get(place).map(|election| &**election)
    }

    /// The same, to note what no record says of it.
    pub fn election_mut(&mut self, place: &Place) -> Option<&mut Election> {
        self.elections.get_mut(place).map(|election| &mut **election)
    }

    /// The elections, to note what no record says of them.
    pub fn elections_mut(&mut self) -> impl Iterator<Item = &mut Election> {
        let Self { elections, hellos, .. } = self;
        elections.values_mut().map(|election| &mut **election).filter(|election| is_shown(hellos, election))
    }
}

/// Has an election hear the hellos that were read of processes with many roles, some of them before its first record.
fn hear_all(hellos: Option<&GroupHellos>, election: &mut Election) {
    for LastHello { hello, at, written_ms, .. } in hellos.into_iter().flat_map(GroupHellos::all) {
        if hello.roles.is_some() {
            election.hello_received(*at, hello, *written_ms);
        }
    }
    election.caught_up();
}

/// Whether there is such an election: where candidates have many roles, their hellos say it.
fn is_shown(hellos: &BTreeMap<Box<str>, GroupHellos>, election: &Election) -> bool {
    let of_many = hellos.get(&election.place().group).filter(|hellos| !hellos.noted.is_empty());
    of_many.map_or_else(|| election.is_found, |hellos| !hellos.leaves_out(election))
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use core::time::Duration;

    use super::*;
    use crate::leadership::Leadership;

    const AT: ReadAt = ReadAt { now: Time::from_nanos(1_000_000_000_000), wall_ms: 1_769_860_800_000 };
    const CLAIM: &str = r#"{"v":1,"kind":"claim","member":"m","name":"m","seq":1,"after":-1,"lease_ms":5000}"#;

    fn topic() -> Topic {
        let mut topic = Topic::new(1_000);
        for partition in [0, 1] {
            topic.begin(AT, partition, LogBounds { asked: AT.now, start: 0, end: 0 }, 0);
        }
        topic
    }

    fn read(topic: &mut Topic, partition: i32, offset: Offset, key: &str, value: &str) {
        let (key, value) = (Some(Box::from(key.as_bytes())), Some(Box::from(value.as_bytes())));
        let record = LogRecord { offset, key, value, written_ms: Some(AT.wall_ms), is_brokers_time: true };
        topic.read(AT, partition, &record);
    }

    /// Each election as `partition group/role: standbys`.
    fn elections(mut topic: Topic) -> Vec<String> {
        topic.caught_up();
        let shown = |found: &Election| {
            let Place { partition, group, role } = found.place();
            format!("{partition} {group}/{role}: {}", found.observer().standbys(AT).len())
        };
        topic.elections().map(shown).collect()
    }

    #[test]
    fn elections_are_found_by_their_records_and_by_the_roles_of_candidates() {
        let mut topic = topic();
        read(&mut topic, 0, 0, "one/0", CLAIM);
        read(&mut topic, 0, 1, "one/0/hello", r#"{"v":1,"kind":"hello","member":"n","seq":1}"#);
        let many = r#"{"v":1,"kind":"hello","member":"p","roles":"a,b,c","partitions":2,"joined":0,"left":"2"}"#;
        read(&mut topic, 0, 2, "many/a/hello", many);
        read(&mut topic, 1, 0, "other", "nonsense");
        assert_eq!(elections(topic), ["0 many/a: 1", "1 many/b: 1", "0 many/c: 0", "0 one/0: 1"]);
    }

    #[test]
    fn a_candidate_that_was_refused_makes_no_election() {
        let mut topic = topic();
        let refused = r#"{"v":1,"kind":"hello","member":"q","roles":"9","partitions":2,"leaves":true}"#;
        let stands = r#"{"v":1,"kind":"hello","member":"p","roles":"1","partitions":2,"joined":0}"#;
        read(&mut topic, 0, 0, "g/0/hello", stands);
        read(&mut topic, 0, 1, "g/0/hello", refused);
        assert_eq!(elections(topic), ["0 g/0: 1"]);
    }

    /// Their places are not in the order of the partitions.
    #[test]
    fn each_election_of_a_partition_is_told_that_it_was_read_to_its_end() {
        let mut topic = topic();
        topic.caught_up();
        for (partition, offset, group) in [(1, 0, "a"), (0, 0, "b"), (1, 1, "c")] {
            read(&mut topic, partition, offset, &format!("{group}/0"), CLAIM);
        }
        let silent_at = ReadAt { now: AT.now + Duration::from_secs(8), wall_ms: AT.wall_ms + 8_000 };
        for (partition, end) in [(0, 1), (1, 2)] {
            let answered = LogBounds { asked: silent_at.now, start: 0, end };
            topic.answered(silent_at.now, partition, answered).expect("it is not cut");
        }
        let silent = |found: &Election| matches!(found.leadership(silent_at), Leadership::Silent { .. });
        assert_eq!(topic.elections().map(silent).collect::<Vec<_>>(), [true; 3]);
    }

    /// Otherwise it would count as an election that nobody leads, for as long as the topic is read.
    #[test]
    fn a_candidate_that_is_refused_or_leaves_while_the_topic_is_read_leaves_no_election() {
        let mut topic = topic();
        read(
            &mut topic,
            0,
            0,
            "g/a/hello",
            r#"{"v":1,"kind":"hello","member":"p","roles":"a","partitions":1,"joined":0}"#,
        );
        topic.caught_up();
        let roles = |topic: &Topic| topic.elections().map(|found| found.place().role.to_string()).collect::<Vec<_>>();
        for (offset, key, roles_of_hello, first) in [
            // It does not stand beside one with roles.
            (1, "g/0/hello", "", &["a"][..]),
            (3, "g/b/hello", r#","roles":"b","partitions":1,"joined":3"#, &["a", "b"]),
        ] {
            let hello = |more: &str| format!(r#"{{"v":1,"kind":"hello","member":"q{offset}"{roles_of_hello}{more}}}"#);
            read(&mut topic, 0, offset, key, &hello(""));
            assert_eq!(roles(&topic), *first);
            read(&mut topic, 0, offset + 1, key, &hello(r#","leaves":true"#));
            assert_eq!(roles(&topic), ["a"]);
        }
    }

    /// A reading that begins then does not show it either.
    #[test]
    fn a_role_whose_candidates_have_died_is_no_election_once_one_without_roles_stands() {
        let mut topic = topic();
        topic.caught_up();
        let many = r#"{"v":1,"kind":"hello","member":"p","roles":"a","partitions":1,"joined":0}"#;
        read(&mut topic, 0, 0, "g/a/hello", many);
        let roles = |topic: &Topic| topic.elections().map(|found| found.place().role.to_string()).collect::<Vec<_>>();
        assert_eq!(roles(&topic), ["a"]);
        let one = br#"{"v":1,"kind":"hello","member":"q"}"#;
        let (key, value) = (Some(Box::from(&b"g/0/hello"[..])), Some(Box::from(&one[..])));
        let later = ReadAt { now: AT.now + Duration::from_secs(75), wall_ms: AT.wall_ms + 75_000 };
        let written_ms = Some(later.wall_ms);
        topic.read(later, 0, &LogRecord { offset: 1, key, value, written_ms, is_brokers_time: true });
        assert_eq!(roles(&topic), ["0"]);
    }

    /// Otherwise they would count as elections that nobody leads, and one role would be shown twice.
    #[test]
    fn what_is_left_from_earlier_roles_and_partitions_is_no_election_once_nobody_leads_it() {
        let hello = |member: &str, more: &str| format!(r#"{{"v":1,"kind":"hello","member":"{member}",{more}}}"#);
        let (old, new) = (r#""roles":"x,y,z","partitions":1,"joined":0"#, r#""roles":"z,y","partitions":2,"joined":5"#);
        let places = |topic: &Topic| -> Vec<String> {
            topic.elections().map(|found| format!("{} {}", found.place().partition, found.place().role)).collect()
        };
        for is_read_on in [false, true] {
            let mut topic = topic();
            read(&mut topic, 0, 0, "g/x/hello", &hello("p", old));
            read(&mut topic, 0, 1, "g/y", &CLAIM.replace("-1", "0"));
            if is_read_on {
                topic.caught_up();
                assert_eq!(places(&topic), ["0 x", "0 y", "0 z"]);
            }
            read(&mut topic, 0, 2, "g/x/hello", &hello("p", &format!(r#"{old},"leaves":true"#)));
            read(&mut topic, 0, 3, "g/z/hello", &hello("q", new));
            if !is_read_on {
                topic.caught_up();
            }
            assert_eq!(places(&topic), ["0 y", "1 y", "0 z"], "a candidate leads y where it was");
            let (key, value) = (Some(Box::from(&b"g/z/hello"[..])), Some(Box::from(hello("q", new).as_bytes())));
            let later = ReadAt { now: AT.now + Duration::from_secs(9), wall_ms: AT.wall_ms + 9_000 };
            let written_ms = Some(later.wall_ms);
            topic.read(later, 0, &LogRecord { offset: 4, key, value, written_ms, is_brokers_time: true });
            assert_eq!(places(&topic), ["1 y", "0 z"]);
            assert_eq!(topic.elections_mut().count(), 2);
        }
    }

    /// Otherwise nobody would see that no candidate runs it.
    #[test]
    fn a_role_that_candidates_have_no_more_is_an_election_without_a_leader_until_it_is_ended() {
        let release = r#"{"v":1,"kind":"release","member":"m","name":"m","seq":2,"term":1,"seen":1,"why":"signal"}"#;
        let ends = r#"{"v":1,"kind":"request","name":"ann","what":"end","term":null,"by":"ann"}"#;
        for (old, role, new, is_left) in
            [("x,y,z", "z", "x,y", true), ("4", "2", "2", true), ("x,y,z", "z", "2", true), ("4", "2", "x,y", false)]
        {
            let hello = |roles: &str| {
                format!(
                    r#"{{"v":1,"kind":"hello","member":"{roles}","roles":"{roles}","partitions":2,"joined":0,"leaves":{}}}"#,
                    roles == old
                )
            };
            let mut topic = topic();
            read(&mut topic, 0, 0, "g/0/hello", &hello(old));
            read(&mut topic, 0, 1, &format!("g/{role}"), &CLAIM.replace("-1", "0"));
            read(&mut topic, 0, 2, &format!("g/{role}"), release);
            read(&mut topic, 0, 3, "g/0/hello", &hello(new));
            topic.caught_up();
            let is_shown = |topic: &Topic| topic.elections().any(|found| *found.place().role == *role);
            assert_eq!(is_shown(&topic), is_left, "{role} of {old}, then {new}");
            read(&mut topic, 0, 4, &format!("g/{role}"), ends);
            assert!(!is_shown(&topic), "{role} of {old}, then {new}");
        }
    }

    /// It can be ended in one place alone.
    #[test]
    fn a_role_that_had_two_partitions_before_nobody_had_it_is_shown_in_the_last_one() {
        let hello = |roles: &str, leaves| {
            format!(
                r#"{{"v":1,"kind":"hello","member":"{roles}","roles":"{roles}","partitions":2,"joined":0,"leaves":{leaves}}}"#
            )
        };
        let mut topic = topic();
        let mut next = [0, 0];
        let mut read_next = |topic: &mut Topic, partition: usize, key: &str, text: &str| {
            read(topic, i32::try_from(partition).unwrap(), next[partition], key, text);
            next[partition] += 1;
        };
        for (roles, partition, term) in [("x,y,z", 0, 1), ("x,z", 1, 0)] {
            read_next(&mut topic, 0, "g/0/hello", &hello(roles, true));
            read_next(&mut topic, partition, "g/z", &CLAIM.replace("-1", &(term - 1).to_string()));
            let release = format!(
                r#"{{"v":1,"kind":"release","member":"m","name":"m","seq":2,"term":{term},"seen":{term},"why":"signal"}}"#
            );
            read_next(&mut topic, partition, "g/z", &release);
        }
        read_next(&mut topic, 0, "g/0/hello", &hello("x", false));
        topic.caught_up();
        let of_z = topic.elections().filter(|found| *found.place().role == *"z");
        let shown: Vec<i32> = of_z.map(|found| found.place().partition).collect();
        assert_eq!(shown, [1]);
    }

    #[test]
    fn a_role_in_a_partition_that_is_not_read_is_not_found() {
        let mut topic = Topic::new(1_000);
        topic.begin(AT, 0, LogBounds { asked: AT.now, start: 0, end: 0 }, 0);
        let many = r#"{"v":1,"kind":"hello","member":"p","roles":"2","partitions":2,"joined":0}"#;
        read(&mut topic, 0, 0, "g/0/hello", many);
        assert_eq!(elections(topic), ["0 g/0: 1"]);
    }

    /// A leader with a lease of 5 s whose last heartbeat is two days old, and after it another election's record that is one minute old.
    #[test]
    fn a_record_behind_it_that_a_broker_stamped_proves_that_a_leader_is_silent() {
        for is_brokers_time in [true, false] {
            let mut topic = topic();
            for (offset, key, value, ago_ms) in [(0, "g/0", CLAIM, 2 * 86_400_000), (1, "other/0", "", 60_000)] {
                let (key, value) = (Some(Box::from(key.as_bytes())), Some(Box::from(value.as_bytes())));
                let written_ms = Some(AT.wall_ms - ago_ms);
                topic.read(AT, 0, &LogRecord { offset, key, value, written_ms, is_brokers_time });
            }
            topic.caught_up();
            let election = topic.election(&place(0, "g", "0")).expect("it was read");
            assert!(matches!(election.observer().leadership(AT), Leadership::Silent { .. }));
            assert_eq!(election.observer().doubts_timestamps(AT).is_none(), is_brokers_time);
            assert_eq!(election.observer().is_brokers_time(), is_brokers_time);
        }
    }

    fn place(partition: i32, group: &str, role: &str) -> Place {
        Place { partition, group: group.into(), role: role.into() }
    }

    #[test]
    fn of_one_group_only_the_expected_elections_are_read() {
        let mut topic = Topic::of_group("g");
        for partition in [0, 1] {
            topic.begin(AT, partition, LogBounds { asked: AT.now, start: 0, end: 0 }, 0);
        }
        let expected = [place(0, "g", "0"), place(1, "g", "1")];
        assert!(expected.iter().all(|place| topic.expect(place)));
        assert!(!topic.expect(&place(2, "g", "2")), "that partition is not read");
        for (partition, key) in [(0, "g/0"), (0, "g/1"), (1, "g/0"), (0, "a/g/0"), (0, "other/0/hello")] {
            let offset = topic.partitions.get(&partition).map(|read| read.journal.next()).unwrap_or_default();
            read(&mut topic, partition, offset, key, CLAIM);
        }
        let known: Vec<bool> = topic.elections().map(Election::is_known).collect();
        assert_eq!(known, [true, false]);
        assert_eq!(topic.other_groups().iter().collect::<Vec<_>>(), ["a/g", "other"]);
        let many = r#"{"v":1,"kind":"hello","member":"p","roles":"2","partitions":2,"joined":0}"#;
        read(&mut topic, 0, 4, "g/0/hello", many);
        assert_eq!(topic.elections().map(|found| found.observer().standbys(AT).len()).collect::<Vec<_>>(), [1, 1]);
    }

    /// Each reader must judge by the same law: what is missing before another election's record is missing for all of the partition.
    #[test]
    fn missing_records_are_missing_for_each_election_of_the_partition() {
        let leads =
            |topic: &Topic| topic.election(&place(0, "g", "0")).map(|election| election.observer().journal().term());
        for (is_answered, term) in [(false, None), (true, Some(0))] {
            let mut topic = topic();
            topic.begin(AT, 0, LogBounds { asked: AT.now, start: 0, end: 9 }, 0);
            read(&mut topic, 0, 0, "g/0", CLAIM);
            if is_answered {
                topic.answered(AT.now, 0, LogBounds { asked: AT.now, start: 0, end: 1 }).expect("it is not cut");
            }
            read(&mut topic, 0, 1, "other", "");
            assert_eq!(leads(&topic), Some(Some(0)));
            read(&mut topic, 0, 5, "other", "");
            assert_eq!(leads(&topic), Some(term), "a gap of markers: {is_answered}");
            read(&mut topic, 0, 6, "h/0", &CLAIM.replace("-1", "0"));
            let other = topic.election(&place(0, "h", "0")).map(|election| election.observer().journal().term());
            assert_eq!(other, Some(is_answered.then_some(6)), "found later: {is_answered}");
            read(&mut topic, 0, 8, "g/0", "");
            assert_eq!(leads(&topic), Some(term), "a gap before its own record: {is_answered}");
        }
    }
}
