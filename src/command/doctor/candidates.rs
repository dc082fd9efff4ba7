//! The group's other candidates according to the journal: those whose settings differ from this one's, and those on another topic. Also
//! compares the broker's clock with this one's, as far as timestamps show it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Result;
use neli_kafka::{Access, Elections, clock, topics};
use neli_proto::hello::Hello;
use neli_proto::journal::Journal;
use neli_proto::leadership::{Leader, ReadAt};
use neli_proto::listener::{FIRST_SPAN, LogBounds};
use neli_proto::mapping::Mapping;
use neli_proto::observer::{KnownCandidate, Observer};
use neli_proto::precedence::{HELLO_HOLDS, HELLO_INTERVAL};
use neli_proto::record::{ElectionKey, LogRecord, MemberId, Record};

use super::findings::Findings;
use crate::command::reading::{self, Input, Limit, Partitions, Reading, SUFFIX, read_at};
use crate::command::wording::counted;
use crate::config::{Config, Doctor};
use crate::text::{roles_differ, span, spoken};

/// At most this many partitions of other topics are read.
const OTHER_PARTITIONS: usize = 64;
/// A live leader sends two heartbeats within this time.
const TWO_BEATS: Duration = Duration::from_millis(2_200);
/// A live candidate's hello is read at most this much later than it was due.
const HELLO_TAKES: Duration = Duration::from_secs(5);
/// A larger difference of the clocks, in milliseconds, is reported.
const CLOCKS_DIFFER: u64 = 1_000;

/// The records of one group in one partition.
#[derive(Default)]
struct Group {
    /// The election of each role.
    elections: BTreeMap<String, Observer>,
    /// The parts of hellos that concern the whole process.
    hellos: BTreeMap<MemberId, Hello>,
}

/// Checks the candidates, and waits for a heartbeat if there is a leader.
pub(super) fn examine(doctor: &Doctor, access: &Access, findings: &mut Findings) {
    let config = &doctor.candidate;
    let (name, topic) = (&config.election.group, &config.election.topic);
    let read = reading::run(async {
        let mut reading = Reading::of_partition(access, topic, Elections::PARTITION_OF_HELLOS, true)?;
        let group = Group::read(name, &mut reading, doctor.timeout).await?;
        let ahead_ms = if group.is_led() { broker_clock(&mut reading, doctor.timeout).await? } else { None };
        Ok((group, ahead_ms, reading.partitions()))
    });
    match read {
        Ok((group, ahead_ms, partitions)) => {
            group.tell(config, partitions, findings);
            tell_clock(ahead_ms, findings);
        }
        // A missing topic or right was reported before.
        Err(why) => findings.skipped("candidates", format!("unknown: {why}")),
    }
    elsewhere(doctor, access, findings);
}

impl Group {
    /// Reads the last records of a partition. Each of Kafka's answers has the time limit.
    async fn read(name: &str, reading: &mut Reading, timeout: Duration) -> Result<Self> {
        let (mut read, from) = (Self::default(), |bounds: &LogBounds| bounds.last(FIRST_SPAN));
        let handle_record = |at: ReadAt, bounds: &LogBounds, record: LogRecord| {
            read.handle_record(name, at, record, || bounds.journal_from(at.now, from(bounds)));
        };
        reading.read_to_end(Limit::of_each_answer(timeout), from, handle_record).await?;
        Ok(read)
    }

    fn handle_record(&mut self, name: &str, at: ReadAt, record: LogRecord, journal: impl FnOnce() -> Journal) {
        let LogRecord { offset, key, value, written_ms, .. } = record;
        let Some(ElectionKey { group, role, is_hello }) = key.as_deref().and_then(ElectionKey::parse) else { return };
        if group != name {
            return;
        }
        let observer = self.elections.entry(role.to_owned()).or_insert_with(|| Observer::new(journal()));
        // The records in between belong to other elections.
        observer.read_others_up_to(at.now, offset);
        if is_hello {
            let hello = value.as_deref().and_then(Hello::parse);
            observer.read_hello(at, offset, hello.clone(), written_ms);
            self.hellos.extend(hello.map(|hello| (hello.member.clone(), hello)));
        } else {
            observer.read(at, offset, value.as_deref().and_then(Record::parse).as_ref(), written_ms);
        }
    }

    fn leaders(&self) -> impl Iterator<Item = &Leader> {
        let at = read_at();
        self.elections.values().filter_map(move |observer| observer.leadership(at).may_lead())
    }

    fn is_led(&self) -> bool {
        self.leaders().next().is_some()
    }

    /// The candidates whose hellos are recent, with the age of the last one.
    fn candidates(&self) -> BTreeMap<&MemberId, (&KnownCandidate, Duration)> {
        let at = read_at();
        let mut candidates = BTreeMap::new();
        for observer in self.elections.values() {
            let led = observer.leadership(at).may_lead().is_some();
            let leader = observer.leaders_hello().filter(|_| led);
            let standbys = observer.standbys(at).into_iter().map(|standby| standby.candidate);
            let age = |candidate: &KnownCandidate| observer.age(candidate.received, at);
            candidates.extend(standbys.chain(leader).map(|candidate| (&candidate.member, (candidate, age(candidate)))));
        }
        candidates
    }

    /// The topic has this number of partitions; candidates that run may have counted fewer.
    fn tell(&self, config: &Config, partitions: u32, findings: &mut Findings) {
        let candidates = self.candidates();
        let own =
            config.roles.as_ref().map_or_else(Mapping::of_one_role, |roles| Mapping::new(&roles.text, partitions));
        let mut differ = 0;
        for (member, (candidate, hello_age)) in &candidates {
            let mapping = self.hellos.get(member).filter(|hello| !hello.leaves).map(Hello::mapping);
            let shares_no_role = mapping
                .as_ref()
                .and_then(|other| own.warning_if_no_role_is_shared(other, candidate.shown()))
                .map(|differs| roles_differ(&differs));
            let refusals = [
                overlap(config, candidate),
                mapping.and_then(|other| own.refusal(&other, candidate.shown())).map(|differs| roles_differ(&differs)),
            ];
            for refusal in refusals.into_iter().flatten() {
                findings.fail("candidates", refusal + &silence(*hello_age), None);
                differ += 1;
            }
            for difference in shares_no_role.into_iter().chain(differences(config, candidate)) {
                findings.warn("candidates", difference, None);
                differ += 1;
            }
        }
        let lease = config.timings.lease();
        let others: BTreeSet<(&str, Duration)> =
            self.leaders().map(|leader| (leader.shown(), leader.lease)).filter(|(_, other)| *other != lease).collect();
        for (leader, other) in others {
            let text = format!("{leader} leads with --lease {}, and here it is {}", spoken(other), spoken(lease));
            findings.warn("candidates", text, None);
            differ += 1;
        }
        if differ == 0 {
            let text = match candidates.len() {
                0 => "none was found".to_owned(),
                count => format!("{count} found, none of which differs"),
            };
            findings.ok("candidates", text);
        }
    }
}

/// What an old hello says about its writer: a candidate that was killed says none when it goes.
fn silence(hello_age: Duration) -> String {
    if hello_age < HELLO_INTERVAL + HELLO_TAKES {
        return String::new();
    }
    let (ago, every, left) = (span(hello_age), spoken(HELLO_INTERVAL), span(HELLO_HOLDS.saturating_sub(hello_age)));
    format!("; its last hello was {ago} ago, though it says one every {every}: if it has died, ask again in {left}")
}

fn overlap(config: &Config, candidate: &KnownCandidate) -> Option<String> {
    let name = candidate.shown();
    match (config.timings.overlap().is_some(), candidate.overlaps) {
        (true, false) => {
            Some(format!("{name} stands without --overlap; all candidates of an election need it, or none"))
        }
        (false, true) => Some(format!("{name} stands with --overlap; all candidates of an election need it, or none")),
        (false, false) | (true, true) => None,
    }
}

/// Differences that are allowed, but are reported.
fn differences(config: &Config, candidate: &KnownCandidate) -> Vec<String> {
    let name = candidate.shown();
    let elector = config.timings.elector().name();
    let version = env!("CARGO_PKG_VERSION");
    let other = candidate.elector.as_deref().filter(|other| *other != elector);
    let elector = other.map(|other| format!("{name} stands with --elect {other}, and here it is {elector}"));
    let other = candidate.version.as_deref().filter(|other| *other != version && *other != format!("neli {version}"));
    let version = other.map(|other| format!("{name} has version {other}, and here it is {version}"));
    let refused = candidate.group_refuses.as_deref();
    let refused = refused.map(|words| format!("{name} has no precedence: the group refuses it ({words})"));
    [elector, version, refused].into_iter().flatten().collect()
}

/// By how many milliseconds this machine's clock is ahead of the broker's; `None` if no record is read as soon as it is written.
async fn broker_clock(reading: &mut Reading, timeout: Duration) -> Result<Option<i64>> {
    let until = clock::now() + timeout.min(TWO_BEATS);
    // Every candidate of an embedded broker is on its machine.
    let is_one_machine = reading.is_embedded();
    loop {
        let input = reading.next(Some(until)).await?;
        if let Input::Record { record: LogRecord { written_ms: Some(written_ms), is_brokers_time, .. }, .. } = input
            && (is_brokers_time || is_one_machine)
        {
            return Ok(Some(clock::wall_ms().cast_signed().saturating_sub(written_ms.cast_signed())));
        } else if let Input::Timeout = input {
            return Ok(None);
        }
    }
}

fn tell_clock(ahead_ms: Option<i64>, findings: &mut Findings) {
    let Some(ahead_ms) = ahead_ms else {
        let text = "the broker's clock shows only in a leader's heartbeats, on a topic with \
            message.timestamp.type=LogAppendTime, and none was read";
        return findings.skipped("clock", text);
    };
    let differ = span(Duration::from_millis(ahead_ms.unsigned_abs()));
    let side = if ahead_ms > 0 { "ahead of" } else { "behind" };
    let text = format!("this machine's clock is {differ} {side} the broker's");
    if ahead_ms.unsigned_abs() <= CLOCKS_DIFFER {
        return findings.ok("clock", text);
    }
    let text = format!("{text}: ages and the times of --window and --schedule depend on it; who leads does not");
    findings.warn("clock", text, Some("timedatectl set-ntp true".to_owned()));
}

/// Candidates of the same group on other topics. Each topic has its own election, so two jobs run.
fn elsewhere(doctor: &Doctor, access: &Access, findings: &mut Findings) {
    let check = "other-topics";
    let (name, own) = (&doctor.candidate.election.group, &doctor.candidate.election.topic);
    let mut all = match topics(access, doctor.timeout) {
        Ok(all) => all,
        Err(why) => return findings.skipped(check, format!("unknown: {why}")),
    };
    all.retain(|(topic, _)| topic != own && topic.ends_with(SUFFIX));
    // Topics named after the group come first.
    all.sort_by_key(|(topic, _)| !topic.starts_with(name.as_str()));
    let partitions: Vec<(String, i32)> = all
        .into_iter()
        .flat_map(|(topic, count)| (0..count).map(move |partition| (topic.clone(), partition)))
        .collect();
    let left = partitions.len().saturating_sub(OTHER_PARTITIONS);
    let looked_at = partitions.len() - left;
    let found = reading::run(find(doctor, access, partitions.into_iter().take(OTHER_PARTITIONS)));
    let (found, unread) = match found {
        Ok(found) => found,
        Err(why) => return findings.skipped(check, format!("unknown: {why}")),
    };
    for (topic, candidates) in &found {
        let text = format!(
            "{candidates} of group \"{name}\" on topic \"{topic}\": another election, so that two jobs run at once"
        );
        findings.fail(check, text, Some(format!("--topic {topic} on all machines, or {own} on all")));
    }
    if found.is_empty() {
        let others =
            [(unread, "could not be read"), (left, "not looked at")].into_iter().filter(|(count, _)| *count > 0);
        let others = others.map(|(count, what)| format!("; {count} {what}")).collect::<Vec<_>>().concat();
        let read = counted((looked_at - unread) as u64, "partition");
        let text = format!("no candidate of this group was found on another topic ({read} of *{SUFFIX}{others})");
        findings.ok(check, text);
    }
}

/// The topics with recent candidates of the group, and these candidates; and how many partitions could not be read.
async fn find(
    doctor: &Doctor,
    access: &Access,
    partitions: impl Iterator<Item = (String, i32)>,
) -> Result<(BTreeMap<String, String>, usize)> {
    let name = &doctor.candidate.election.group;
    let (mut partitions, mut found, mut unread) = (Partitions::new(partitions), BTreeMap::new(), 0);
    let until = clock::now() + doctor.timeout;
    while let Some((topic, _, mut reading)) = partitions.next(access)? {
        // A topic that may not be read or is being deleted does not hide the others.
        let Ok(group) = Group::read(name, &mut reading, until.since(clock::now())).await else {
            unread += 1;
            continue;
        };
        let mut names: BTreeSet<&str> = group.candidates().values().map(|(candidate, _)| candidate.shown()).collect();
        names.extend(group.leaders().map(Leader::shown));
        if !names.is_empty() {
            found.insert(topic, names.into_iter().collect::<Vec<_>>().join(", "));
        }
    }
    Ok((found, unread))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::output::Style;

    #[test]
    fn a_clock_that_differs_by_more_than_a_second_is_a_warning() {
        let clock_report = |ahead_ms: Option<i64>| {
            let mut findings = Findings::default();
            tell_clock(ahead_ms, &mut findings);
            findings.text(Style { is_coloured: false, columns: None })
        };
        assert_eq!(clock_report(Some(400)), "ok    clock  this machine's clock is 400ms ahead of the broker's\n");
        let text = clock_report(Some(-60_000));
        assert!(text.starts_with("WARN  clock  this machine's clock is 60s behind the broker's: ages and "), "{text}");
        assert!(text.contains("timedatectl set-ntp true"), "{text}");
        assert!(clock_report(None).contains("none was read"), "{}", clock_report(None));
    }
}
