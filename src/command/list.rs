//! `list`: the elections that are found in a topic, or in all topics whose names end in `.neli`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Write};
use std::mem;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use neli_kafka::{Access, Elections, Examination, Layer, ReadRecord, Unreachable, clock, names, topics};
use neli_proto::journal::Journal;
use neli_proto::leadership::ReadAt;
use neli_proto::mapping::Mapping;
use neli_proto::observer::{GroupHellos, LastHello, Observer};
use neli_proto::process_hello::ProcessHello;
use neli_proto::record::{Offset, Record};
use neli_proto::time::millis;
use serde::Serialize;

use crate::command::page::{Style, columns};
use crate::command::reading::{
    self, Begin, ElectionKey, Reading, key_of_election, no_answer, read_at, read_last, warn_of_clock,
};
use crate::command::stdout;
use crate::command::wording::{self, leadership_in_table};
use crate::config::List;
use crate::exit::{ExitStatus, with_status};
use crate::report::election::{sentence, state};
use crate::report::log::timestamp;
use crate::text::{json, one_line};

/// Kafka does not answer in time.
const UNKNOWN: ExitStatus = ExitStatus::Answer(4);

/// No election has the group that was asked for.
const VACANT: ExitStatus = ExitStatus::Answer(3);

/// The suffix of a journal topic's name.
const SUFFIX: &str = ".neli";

/// This many partitions are connected before the first of them is read.
const AHEAD: usize = 8;

/// How far before a partition's end the reading begins: an election without a record since then is not found.
const SPAN: Offset = 100_000;

/// A partition and its elections.
struct Found {
    topic: String,
    partition: i32,
    elections: Observers,
    /// The last hellos of each group's candidates.
    hellos: Hellos,
    /// The latest timestamp by a broker's clock.
    latest_ms: Option<u64>,
    /// Where the reading began.
    begin: Begin,
}

/// The elections of a partition.
type Observers = BTreeMap<Name, Row>;

/// What was read under an election's keys.
struct Row {
    observer: Observer,
    /// Whether a record of the election was read, or the role is one of the group's.
    is_election: bool,
}

/// The hellos of each group.
type Hellos = BTreeMap<String, GroupHellos>;

/// What identifies an election in a partition.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
struct Name {
    group: String,
    role: String,
}

/// An election as JSON; docs/json.md describes it.
#[derive(Serialize)]
struct Line<'a> {
    ts: String,
    group: &'a str,
    role: &'a str,
    topic: &'a str,
    partition: i32,
    state: &'static str,
    why: Option<String>,
    leader: Option<String>,
    term: Option<Offset>,
    heartbeat_age_ms: Option<u64>,
    standbys: usize,
    #[serde(skip)]
    shown: String,
}

/// Shows the elections.
///
/// # Errors
///
/// Kafka refuses permanently or does not answer, a log can't be read, or stdout can't be written.
pub fn main(list: &List) -> Result<ExitStatus> {
    let (found, unread) = reading::run(find(list))?;
    let at = read_at();
    let rows = found.iter().flat_map(|found| found.elections.values());
    warn_of_clock(rows.filter_map(|row| row.observer.is_ahead_by(at)).max());
    let elections = found.iter().flat_map(|found| found.elections.iter().map(move |(name, row)| (found, name, row)));
    let lines = elections.map(|(found, name, row)| line(found, name, &row.observer, at));
    let lines: Vec<Line<'_>> =
        lines.filter(|line| list.group.as_deref().is_none_or(|group| group == line.group)).collect();
    if let (Some(group), true) = (list.group.as_ref().filter(|_| lines.is_empty()), unread.is_empty()) {
        let groups = found.iter().flat_map(|found| found.elections.keys()).map(|name| name.group.clone()).collect();
        return Err(with_status(VACANT, no_election(group, list.topic.as_deref(), &groups)));
    }
    let text = if list.json { lines.iter().map(|line| json(line) + "\n").collect() } else { table(&lines) };
    stdout::written(io::stdout().write_all(text.as_bytes()))?;
    if unread.is_empty() {
        return Ok(ExitStatus::Success);
    }
    Err(with_status(UNKNOWN, format!("not all could be read: {}", unread.join("; "))))
}

/// The elections that were found, and the partitions that could not be read.
async fn find(list: &List) -> Result<(Vec<Found>, Vec<String>)> {
    let access = reading::access(&list.client)?;
    let all = all_topics(&access, list.timeout)?;
    let is_meant = |name: &str| list.topic.as_deref().map_or(name.ends_with(SUFFIX), |topic| topic == name);
    let mut partitions = all
        .iter()
        .filter(|(name, _)| is_meant(name))
        .flat_map(|(name, count)| (0..*count).map(move |partition| (name.clone(), partition)));
    if let Some(topic) = list.topic.as_ref().filter(|topic| !all.iter().any(|(name, _)| name == *topic)) {
        bail!("topic \"{topic}\" does not exist");
    }
    let (mut ahead, mut found, mut unread) = (VecDeque::new(), Vec::new(), Vec::new());
    loop {
        while ahead.len() < AHEAD
            && let Some((topic, partition)) = partitions.next()
        {
            let reading = Reading::of_all(&access, &topic, partition)?;
            ahead.push_back((topic, partition, reading));
        }
        let Some((topic, partition, reading)) = ahead.pop_front() else {
            count_hellos(&mut found);
            stamp(&mut found);
            return Ok((found, unread));
        };
        match read(reading, list, &topic, partition).await {
            Ok(elections) => found.push(elections),
            // A topic that is being deleted or may not be read does not hide the others.
            Err(why) if list.topic.is_none() => unread.push(format!("{topic} [{partition}]: {why}")),
            Err(why) => return Err(why),
        }
    }
}

/// The topics with their numbers of partitions. A login or a certificate that is refused is known long before the time limit.
fn all_topics(access: &Access, timeout: Duration) -> Result<Vec<(String, i32)>> {
    let no_answer = |why| with_status(UNKNOWN, no_answer(timeout, Some(why)));
    let until = clock::now() + timeout;
    let is_reached = Examination::start(access, None, timeout).map(drop);
    match (is_reached, until.since(clock::now())) {
        (Err(Unreachable { layer: Layer::Login | Layer::Tls | Layer::Cluster, why }), _) => Err(anyhow!(why)),
        (Err(Unreachable { why, .. }), Duration::ZERO) => Err(no_answer(why)),
        (Ok(()) | Err(_), left) => topics(access, left).map_err(|why| no_answer(why.to_string())),
    }
}

async fn read(mut reading: Reading, list: &List, topic: &str, partition: i32) -> Result<Found> {
    let (mut elections, mut hellos, mut latest_ms) = (Observers::new(), Hellos::new(), None);
    let begin = read_last(&mut reading, SPAN, list.timeout, |at, record, begin| {
        latest_ms = latest_ms.max(record.written_ms.filter(|_| record.is_brokers_time));
        take_in(&mut elections, &mut hellos, at, record, begin);
    });
    let begin = begin.await?;
    Ok(Found { topic: topic.to_owned(), partition, elections, hellos, latest_ms, begin })
}

fn take_in(elections: &mut Observers, hellos: &mut Hellos, at: ReadAt, record: ReadRecord, begin: Begin) {
    let ReadRecord { offset, value, other_key, written_ms, .. } = record;
    let Some(ElectionKey { group, role, is_hello }) = other_key.as_deref().and_then(key_of_election) else { return };
    if is_hello && let Some(hello) = value.as_deref().and_then(ProcessHello::parse) {
        let is_of_many = hello.roles.is_some();
        hellos.entry(group.to_owned()).or_default().read(at, offset, hello, written_ms);
        if is_of_many {
            return;
        }
    }
    let row = row(elections, group, role, begin);
    // The records in between belong to other elections.
    row.observer.read_others_up_to(at.now, offset);
    let parsed = value.as_deref().and_then(Record::parse);
    if is_hello {
        row.observer.read_hello(at, offset, parsed, written_ms);
    } else {
        row.is_election = true;
        row.observer.read(at, offset, parsed.as_ref(), written_ms);
    }
}

fn row<'a>(elections: &'a mut Observers, group: &str, role: &str, begin: Begin) -> &'a mut Row {
    let name = Name { group: group.to_owned(), role: role.to_owned() };
    let observer = || Observer::new(Journal::read_from(begin.from, begin.origin));
    elections.entry(name).or_insert_with(|| Row { observer: observer(), is_election: false })
}

/// A candidate with many roles stands by for each of them. Of a role without records a group has an election if the role is one of its candidates'
/// roles; what was read only from a candidate that was refused, or has left, is none.
fn count_hellos(found: &mut [Found]) {
    let of_topic = |found: &mut Found| {
        let topic = found.topic.clone();
        mem::take(&mut found.hellos).into_iter().map(move |(group, hellos)| (topic.clone(), group, hellos))
    };
    let groups: Vec<(String, String, GroupHellos)> = found.iter_mut().flat_map(of_topic).collect();
    for (topic, group, hellos) in groups {
        let mapping = hellos.mapping();
        if mapping == Some(Mapping::of_one_role()) {
            // The keys of its candidates' hellos name the role.
            let rows = found.iter_mut().filter(|found| found.topic == topic).flat_map(|found| &mut found.elections);
            rows.filter(|(name, _)| name.group == group).for_each(|(_, row)| row.is_election = true);
            continue;
        }
        for (_, role, partition) in mapping.iter().flat_map(places) {
            if let Some(found) = partition_of(found, &topic, partition) {
                row(&mut found.elections, &group, &role, found.begin).is_election = true;
            }
        }
        for LastHello { hello, at: read_at, written_ms, .. } in hellos.all().filter(|last| last.hello.roles.is_some()) {
            for (number, role, partition) in places(&hello.mapping()) {
                let found = partition_of(found, &topic, partition);
                let row = found.and_then(|found| found.elections.get_mut(&Name { group: group.clone(), role }));
                if let Some(row) = row {
                    row.observer.process_hello_received(*read_at, hello.clone().about(number), *written_ms);
                }
            }
        }
    }
    for found in found {
        found.elections.retain(|_, row| row.is_election);
    }
}

fn partition_of<'a>(found: &'a mut [Found], topic: &str, partition: i32) -> Option<&'a mut Found> {
    found.iter_mut().find(|found| found.topic == topic && found.partition == partition)
}

/// The number, the label and the partition of each role.
fn places(mapping: &Mapping) -> Vec<(u32, String, i32)> {
    let partitions = i32::try_from(mapping.partitions()).unwrap_or(1);
    let label = |number: u32| match mapping.names().get(number as usize) {
        Some(name) => name.to_string(),
        None => number.to_string(),
    };
    let roles = 0..mapping.count().min(names::MOST_ROLES);
    roles.map(|number| (number, label(number), Elections::partition_of(number, partitions))).collect()
}

/// Tells each election the latest time that a broker's clock is known to have shown.
fn stamp(found: &mut [Found]) {
    let Some(latest_ms) = found.iter().filter_map(|found| found.latest_ms).max() else { return };
    let elections = found.iter_mut().flat_map(|found| found.elections.values_mut());
    elections.for_each(|row| row.observer.stamped(latest_ms));
}

fn line<'a>(found: &'a Found, name: &'a Name, observer: &'a Observer, at: ReadAt) -> Line<'a> {
    let current = observer.leadership(at);
    let leader = current.leader();
    Line {
        ts: timestamp(at.wall_ms),
        group: &name.group,
        role: &name.role,
        topic: &found.topic,
        partition: found.partition,
        state: state(current),
        why: (!current.is_led()).then(|| sentence(current).to_string()),
        leader: leader.map(|leader| leader.shown().to_owned()),
        term: leader.map(|leader| leader.term),
        heartbeat_age_ms: leader.map(|leader| millis(observer.age(leader.last_record, at))),
        standbys: observer.standbys(at).len(),
        shown: leadership_in_table(current),
    }
}

/// An error: there is no such group; these groups exist.
fn no_election(group: &str, topic: Option<&str>, groups: &BTreeSet<String>) -> String {
    let place =
        topic.map_or_else(|| format!("any topic *{SUFFIX} that this user may see"), |topic| format!("topic {topic}"));
    let has = if groups.is_empty() {
        "nor of another".to_owned()
    } else {
        format!("groups found: {}", wording::groups(groups))
    };
    format!("no election of group \"{group}\" in {place}; {has}")
}

fn table(lines: &[Line<'_>]) -> String {
    if lines.is_empty() {
        return "no elections\n".to_owned();
    }
    let cells: Vec<[String; 6]> = lines
        .iter()
        .map(|line| {
            [
                one_line(line.group),
                one_line(line.role),
                line.topic.to_owned(),
                line.term.map_or_else(|| "-".to_owned(), |term| term.to_string()),
                line.standbys.to_string(),
                one_line(&line.shown),
            ]
        })
        .collect();
    columns(["GROUP", "ROLE", "TOPIC", "TERM", "STANDBYS", "LEADER"], &cells, Style::of_stdout())
}
