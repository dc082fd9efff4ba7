//! All elections of a topic, found by the keys of its records.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::{fmt, mem};

use super::{Election, GroupHellos, Judged, LastHello, Observer};
use crate::hello::Hello;
use crate::leadership::ReadAt;
use crate::listener::LogBounds;
use crate::mapping::Mapping;
use crate::record::{ElectionKey, LogRecord, Offset};
use crate::time::Time;

/// So many of the last terms of each election are kept.
const MOST_TERMS: usize = 200;

/// The elections of a topic, as far as its partitions were read.
#[derive(Clone, Debug, Default)]
pub struct Topic {
    /// Where the reading of each partition began.
    partitions: BTreeMap<i32, Begin>,
    /// Boxed, since a map that is filled in order keeps room for twice as many.
    elections: BTreeMap<Place, Box<Found>>,
    /// The hellos of each group.
    hellos: BTreeMap<Box<str>, GroupHellos>,
    latest_ms: Option<u64>,
    /// Of a topic that is read on: of a list of roles at most so many are looked at. `None` until the reading has reached the ends of the logs.
    live: Option<u32>,
}

/// The start of a partition's reading.
#[derive(Clone, Copy, Debug)]
struct Begin {
    at: ReadAt,
    bounds: LogBounds,
    from: Offset,
    /// When the log last had the end that it was read up to.
    read_to_end: Time,
}

/// What identifies an election in a topic. Elections are shown in this order.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Place {
    /// Its partition.
    pub partition: i32,
    /// Its group.
    pub group: Box<str>,
    /// The role's name or number.
    pub role: Box<str>,
}

/// The election's name for people: its group, and its role if there are several.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, role, .. } = self;
        if **role == *"0" { f.write_str(group) } else { write!(f, "{group}/{role}") }
    }
}

/// What was read under an election's keys.
#[derive(Clone, Debug)]
struct Found {
    election: Election,
    /// Whether a record of the election was read, or the role is one of the group's.
    is_election: bool,
}

/// An election that was found.
#[derive(Clone, Copy, Debug)]
pub struct FoundElection<'a> {
    /// Where it is.
    pub place: &'a Place,
    /// What was read of it.
    pub election: &'a Election,
}

impl<'a> FoundElection<'a> {
    /// Its leader and its candidates.
    #[must_use]
    pub const fn observer(&self) -> &'a Observer {
        self.election.observer()
    }
}

impl Topic {
    /// Begins to read a partition with such a log from an offset on.
    pub fn begin(&mut self, at: ReadAt, partition: i32, bounds: LogBounds, from: Offset) {
        self.partitions.insert(partition, Begin { at, bounds, from, read_to_end: bounds.asked });
    }

    /// The partitions, each with its log when the reading began, and where it began.
    pub(super) fn begins(&self) -> impl Iterator<Item = (i32, LogBounds, Offset)> {
        self.partitions.iter().map(|(partition, begin)| (*partition, begin.bounds, begin.from))
    }

    /// Where the reading of a partition began.
    pub(super) fn begin_of(&self, partition: i32) -> Option<Offset> {
        self.partitions.get(&partition).map(|begin| begin.from)
    }

    /// Notes that a partition was read up to the end that its log had at this time.
    pub(super) fn was_read_to_end(&mut self, partition: i32, asked: Time) {
        if let Some(begin) = self.partitions.get_mut(&partition) {
            begin.read_to_end = asked;
        }
        let first = Place { partition, group: Box::default(), role: Box::default() };
        let here = self.elections.range_mut(first..).take_while(|(place, _)| place.partition == partition);
        here.for_each(|(_, found)| found.election.was_read_to_end(asked));
    }

    /// Takes over what another reading has found in a partition. It has read the partition up to the same offset, and began further back.
    pub(super) fn take_past(&mut self, partition: i32, past: &mut Self) {
        let (of_partition, rest) =
            mem::take(&mut past.elections).into_iter().partition(|(place, _)| place.partition == partition);
        past.elections = rest;
        let of_partition: BTreeMap<Place, Box<Found>> = of_partition;
        for (place, found) in of_partition.into_iter().filter(|(_, found)| found.is_election) {
            let mut election = found.election;
            if let Some(known) = self.elections.get_mut(&place).filter(|known| known.election.is_decided()) {
                known.election.learn_past(election);
                continue;
            }
            self.hear_all(&place.group, &mut election);
            self.elections.insert(place, Box::new(Found { election, is_election: true }));
        }
    }

    /// Has an election hear the hellos that were read of processes with many roles, some of them before its first record.
    fn hear_all(&self, group: &str, election: &mut Election) {
        for LastHello { hello, at, written_ms, .. } in self.hellos(group) {
            if hello.roles.is_some() {
                election.hello_received(*at, hello, *written_ms);
            }
        }
        election.caught_up();
    }

    /// Forgets the elections of a partition, which could not be read to its end.
    pub fn forget(&mut self, partition: i32) {
        self.partitions.remove(&partition);
        self.elections.retain(|place, _| place.partition != partition);
    }

    /// Handles a record of a partition whose reading has begun. Returns what the law says of it, if it is an election's.
    pub fn read(&mut self, at: ReadAt, partition: i32, record: &LogRecord) -> Option<(Place, Judged)> {
        let LogRecord { offset, key, value, written_ms, is_brokers_time } = record;
        self.latest_ms = self.latest_ms.max(written_ms.filter(|_| *is_brokers_time));
        let ElectionKey { group, role, is_hello } = key.as_deref().and_then(ElectionKey::parse)?;
        if is_hello && let Some(hello) = value.as_deref().and_then(Hello::parse).map(Arc::new) {
            let is_of_many = hello.roles.is_some();
            if is_of_many && let Some(most) = self.live {
                self.hear(group, &hello, most, |election| election.hello_received(at, &hello, *written_ms));
            }
            let hellos = self.hellos.entry(group.into()).or_default();
            hellos.read(at, *offset, hello, *written_ms);
            if self.live.is_some() {
                hellos.forget_old();
            }
            if is_of_many {
                return None;
            }
        }
        let is_live = self.live.is_some();
        let Found { election, is_election } = self.found(partition, group, role)?;
        // The records in between belong to other elections.
        election.history.observer_mut().read_others_up_to(at.now, *offset);
        let judged = election.read(at, partition, record);
        // What is read on would grow.
        election.history.keep_terms(MOST_TERMS);
        *is_election |= judged.is_some() || (is_live && election.is_known());
        judged.map(|judged| (Place { partition, group: group.into(), role: role.into() }, judged))
    }

    /// What is known of an election; `None` if its partition is not read.
    fn found(&mut self, partition: i32, group: &str, role: &str) -> Option<&mut Found> {
        let Begin { at, bounds, from, read_to_end } = self.partitions.get(&partition)?;
        let place = Place { partition, group: group.into(), role: role.into() };
        if !self.elections.contains_key(&place) {
            let mut election = Election::new((group, role), partition, *at, bounds, *from);
            if self.live.is_some() {
                election.was_read_to_end(*read_to_end);
                self.hear_all(group, &mut election);
            }
            self.elections.insert(place.clone(), Box::new(Found { election, is_election: false }));
        }
        self.elections.get_mut(&place).map(|found| &mut **found)
    }

    /// Has each election hear the hello of a process with many roles of its group; those of the process's own roles are elections.
    fn hear(&mut self, group: &str, hello: &Hello, most: u32, hears: impl Fn(&mut Election)) {
        for (_, role, partition) in places(&hello.mapping(), most) {
            let takes_roles = hello.takes_roles();
            if let Some(found) = self.found(partition, group, &role) {
                found.is_election |= takes_roles;
                hears(&mut found.election);
            }
        }
    }

    /// Counts the candidates by their hellos, once all partitions were read. A candidate with many roles stands by for each of them. Of a role
    /// without records a group has an election if the role is one of its candidates' roles; what was read only from a candidate that was
    /// refused, or has left, is none. Of a list of roles at most the first `most` are looked at.
    pub fn count_candidates(&mut self, most: u32) {
        for (group, hellos) in self.hellos.clone() {
            let mapping = hellos.mapping();
            if mapping == Some(Mapping::of_one_role()) {
                // The keys of its candidates' hellos name the role.
                let of_group = self.elections.iter_mut().filter(|(place, _)| place.group == group);
                of_group.for_each(|(_, found)| found.is_election = true);
                continue;
            }
            for (_, role, partition) in mapping.iter().flat_map(|mapping| places(mapping, most)) {
                if let Some(found) = self.found(partition, &group, &role) {
                    found.is_election = true;
                }
            }
            for LastHello { hello, at, written_ms, .. } in hellos.all().filter(|last| last.hello.roles.is_some()) {
                for (_, role, partition) in places(&hello.mapping(), most) {
                    let place = Place { partition, group: group.clone(), role: role.into() };
                    if let Some(found) = self.elections.get_mut(&place) {
                        found.election.hello_received(*at, hello, *written_ms);
                    }
                }
            }
        }
    }

    /// The logs were read up to the ends that they had when the reading began, and are read on: counts the candidates, and a record that comes
    /// now is as old as its reading.
    pub fn caught_up(&mut self, most: u32) {
        self.count_candidates(most);
        self.live = Some(most);
        for (place, found) in &mut self.elections {
            found.election.caught_up();
            if let Some(begin) = self.partitions.get(&place.partition) {
                found.election.was_read_to_end(begin.read_to_end);
            }
        }
    }

    /// The latest timestamp in the topic that came from a broker, in milliseconds since 1970.
    #[must_use]
    pub const fn latest_ms(&self) -> Option<u64> {
        self.latest_ms
    }

    /// Tells each election the latest time that a broker's clock is known to have shown.
    pub fn stamped(&mut self, latest_ms: u64) {
        self.elections.values_mut().for_each(|found| found.election.history.observer_mut().stamped(latest_ms));
    }

    /// The elections.
    pub fn elections(&self) -> impl Iterator<Item = FoundElection<'_>> {
        let elections = self.elections.iter().filter(|(_, found)| found.is_election);
        elections.map(|(place, found)| FoundElection { place, election: &found.election })
    }

    /// The last hello of each candidate of a group.
    pub fn hellos(&self, group: &str) -> impl Iterator<Item = &LastHello> {
        self.hellos.get(group).into_iter().flat_map(GroupHellos::all)
    }

    /// An election.
    #[must_use]
    pub fn election(&self, place: &Place) -> Option<&Election> {
        self.elections.get(place).map(|found| &found.election)
    }

    /// The elections, to note what no record says of them.
    pub fn elections_mut(&mut self) -> impl Iterator<Item = (&Place, &mut Election)> {
        self.elections
            .iter_mut()
            .filter(|(_, found)| found.is_election)
            .map(|(place, found)| (place, &mut found.election))
    }
}

/// The number, the label and the partition of each role, of at most so many.
fn places(mapping: &Mapping, most: u32) -> Vec<(u32, String, i32)> {
    let label = |number: u32| match mapping.names().get(number as usize) {
        Some(name) => name.to_string(),
        None => number.to_string(),
    };
    let partition = |number: u32| i32::try_from(number % mapping.partitions()).unwrap_or_default();
    (0..mapping.count().min(most)).map(|number| (number, label(number), partition(number))).collect()
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    const AT: ReadAt = ReadAt { now: Time::from_nanos(1_000_000_000_000), wall_ms: 1_769_860_800_000 };
    const CLAIM: &str = r#"{"v":1,"kind":"claim","member":"m","name":"m","seq":1,"after":-1,"lease_ms":5000}"#;

    fn topic() -> Topic {
        let mut topic = Topic::default();
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
        topic.count_candidates(1_000);
        let shown = |found: FoundElection<'_>| {
            let Place { partition, group, role } = found.place;
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
        assert_eq!(elections(topic), ["0 many/a: 1", "0 many/c: 0", "0 one/0: 1", "1 many/b: 1"]);
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

    #[test]
    fn a_role_in_a_partition_that_is_not_read_is_not_found() {
        let mut topic = Topic::default();
        topic.begin(AT, 0, LogBounds { asked: AT.now, start: 0, end: 0 }, 0);
        let many = r#"{"v":1,"kind":"hello","member":"p","roles":"2","partitions":2,"joined":0}"#;
        read(&mut topic, 0, 0, "g/0/hello", many);
        assert_eq!(elections(topic), ["0 g/0: 1"]);
    }
}
