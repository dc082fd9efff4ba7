//! The group's other candidates according to the journal: those whose settings differ from this one's, and those on another topic. Also
//! compares the broker's clock with this one's, as far as timestamps show it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, bail};
use neli_kafka::names::MOST_ROLES;
use neli_kafka::{Access, TopicsEvent, clock};
use neli_proto::leadership::Leader;
use neli_proto::listener::FIRST_SPAN;
use neli_proto::mapping::Mapping;
use neli_proto::observer::{Election, KnownCandidate, Observer, ReadTopic, Topics};
use neli_proto::precedence::{HELLO_HOLDS, HELLO_INTERVAL};
use neli_proto::record::{LogRecord, MemberId, Offset};

use super::findings::Findings;
use crate::command::reading::{self, Following, Limit, SUFFIX, read_at};
use crate::config::Config;
use crate::text::{counted, list, roles_differ, span, spoken, with_options_of_once};

/// So many of the last records of other topics are read, and all of the last minutes.
const SPAN_ELSEWHERE: Offset = 1_000;
/// A live candidate's hello is read at most this much later than it was due.
const HELLO_TAKES: Duration = Duration::from_secs(5);
/// A larger difference of the clocks, in milliseconds, is reported.
const CLOCKS_DIFFER: u64 = 1_000;

/// The fix of a difference that is allowed: it may be there because one machine after the other is changed.
const SAME: &str = "the same on every machine, unless they are being changed one by one";

/// Checks the candidates, and waits for a heartbeat if there is a leader.
pub(super) fn examine(config: &Config, access: &Access, timeout: Duration, findings: &mut Findings) {
    let (name, topic) = (&config.elections.group, &config.elections.topic);
    let read = reading::run(async {
        let mut following = Following::start(access, [topic.as_str()], |_| false)?;
        let limit = Limit::of_each_answer(timeout);
        let mut topics = Topics::new(FIRST_SPAN, MOST_ROLES);
        if let Some(why) = following.read_to_ends(&mut topics, Some(name), limit).await?.into_iter().next() {
            bail!(why);
        }
        // By a clock that is ahead a leader seems silent.
        let elections = topics.topic(topic).map(|read| of_group(name, read)).unwrap_or_default();
        let within = elections.iter().filter_map(|observer| observer.leader()).map(Leader::two_beats).min();
        let ahead_ms = match within {
            Some(within) => broker_clock(&mut following, &mut topics, access, timeout.min(within)).await?,
            None => None,
        };
        Ok((topics, ahead_ms))
    });
    match read.map(|(topics, ahead_ms)| (topics.topic(topic).cloned(), ahead_ms)) {
        Ok((Some(read), ahead_ms)) => {
            tell(&of_group(name, &read), config, read.partitions(), findings);
            tell_clock(ahead_ms, findings);
        }
        // A missing topic or right was reported before.
        Ok((None, _)) => findings.skipped("candidates", "unknown: the topic does not exist"),
        Err(why) => findings.skipped("candidates", format!("unknown: {why}")),
    }
    elsewhere(config, access, timeout, findings);
}

/// The elections of a group in a topic.
fn of_group<'a>(name: &str, read: &'a ReadTopic) -> Vec<&'a Observer> {
    let elections = read.topic().elections().filter(|found| *found.place().group == *name);
    elections.map(Election::observer).collect()
}

fn leaders<'a>(elections: &[&'a Observer]) -> impl Iterator<Item = &'a Leader> {
    let at = read_at();
    elections.iter().filter_map(move |observer| observer.leadership(at).may_lead())
}

/// The candidates whose hellos are recent, with the age of the last one.
fn candidates<'a>(elections: &[&'a Observer]) -> BTreeMap<&'a MemberId, (&'a KnownCandidate, Duration)> {
    let at = read_at();
    let mut candidates = BTreeMap::new();
    for observer in elections {
        let led = observer.leadership(at).may_lead().is_some();
        let leader = observer.leaders_hello().filter(|_| led);
        let standbys = observer.standbys(at).into_iter().map(|standby| standby.candidate);
        let age = |candidate: &KnownCandidate| observer.age(candidate.received, at);
        candidates
            .extend(standbys.chain(leader).map(|candidate| (&candidate.hello.member, (candidate, age(candidate)))));
    }
    candidates
}

/// Tells how the candidates differ. The topic has this number of partitions; candidates that run may have counted fewer.
fn tell(elections: &[&Observer], config: &Config, partitions: usize, findings: &mut Findings) {
    let (candidates, partitions) = (candidates(elections), u32::try_from(partitions).unwrap_or(u32::MAX));
    let own = config.roles.map_or_else(Mapping::of_one_role, |_| Mapping::new(&config.elections.typed(), partitions));
    let mut differ = 0;
    for (candidate, hello_age) in candidates.values() {
        for refusal in refusals(config, &own, candidate) {
            findings.fail("candidates", refusal + &silence(*hello_age), None);
            differ += 1;
        }
        for (difference, fix) in differences(config, &own, candidate) {
            findings.warn("candidates", difference, fix.map(str::to_owned));
            differ += 1;
        }
    }
    let lease = config.timings.lease;
    let leases = leaders(elections).map(|leader| (leader.shown(), leader.lease)).filter(|(_, other)| *other != lease);
    for (leader, other) in leases.collect::<BTreeSet<_>>() {
        let text = format!("{leader} leads with --lease {}, and here it is {}", spoken(other), spoken(lease));
        findings.warn("candidates", text, Some(SAME.to_owned()));
        differ += 1;
    }
    match (differ, candidates.len()) {
        (0, 0) => findings.ok("candidates", "none was found"),
        (0, count) => findings.ok("candidates", format!("{count} found, none of which differs")),
        _ => {}
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

/// Why candidates with this configuration and these roles don't start beside this one.
fn refusals(config: &Config, own: &Mapping, candidate: &KnownCandidate) -> impl Iterator<Item = String> {
    let (name, overlaps) = (candidate.shown(), candidate.hello.overlap_ms.is_some());
    let overlap = (overlaps != config.timings.overlap.is_some()).then(|| {
        let with = if overlaps { "with" } else { "without" };
        format!("{name} stands {with} --overlap; all candidates of an election need it, or none")
    });
    overlap.into_iter().chain(own.refusal(&candidate.hello.mapping(), name).map(|differs| roles_differ(&differs)))
}

/// Differences that are allowed, but are reported, each with its fix.
fn differences(config: &Config, own: &Mapping, candidate: &KnownCandidate) -> Vec<(String, Option<&'static str>)> {
    let (name, hello) = (candidate.shown(), &candidate.hello);
    let differ = |how: &str, theirs: &str, here: &str| format!("{name} {how} {theirs}, and here it is {here}");
    let other = &hello.mapping();
    // Only one of the two stands for some.
    let roles = (own.refusal(other, name).is_none() && !own.has_roles_of(other)).then(|| {
        let [theirs, here] = [other, own].map(|mapping| format!("for {}", mapping.roles()));
        differ("stands with --roles", &theirs, &here) + ": give every candidate the same roles"
    });
    let elector = config.timings.elector().name();
    let other = hello.elector.as_deref().filter(|other| *other != elector);
    let elector = other.map(|other| differ("stands with --elect", other, elector));
    let overlaps = hello.overlap_ms.map(Duration::from_millis).zip(config.timings.overlap);
    let overlaps = overlaps.filter(|(other, own)| other != own);
    let overlap = overlaps.map(|(other, own)| differ("stands with --overlap", &spoken(other), &spoken(own)));
    let version = env!("CARGO_PKG_VERSION");
    // The library's name stands before its version.
    let other = hello.version.as_deref().filter(|other| other.split(' ').next_back() != Some(version));
    let version = other.map(|other| differ("has version", other, version));
    let own = config.once.as_ref().map_or("", |once| &*once.options);
    let theirs = hello.once.as_deref().unwrap_or_default();
    // An earlier version does not say it.
    let once = (theirs != own && version.is_none()).then(|| {
        let [theirs, own] = [theirs, own].map(with_options_of_once);
        differ("stands", &theirs, &own) + ": the job may run more than once"
    });
    let refused = hello.group_refuses.as_deref();
    let refused = refused.map(|words| format!("{name} has no precedence: the group refuses it ({words})"));
    let refused = refused.map(|text| (text, Some("neli-run doctor before its line, on its machine")));
    let same = [elector, overlap, version, once].into_iter().flatten().map(|text| (text, Some(SAME)));
    roles.map(|text| (text, None)).into_iter().chain(same).chain(refused).collect()
}

/// By how many milliseconds this machine's clock is ahead of the broker's; `None` if no record is read `within` this time as soon as it is written.
async fn broker_clock(
    following: &mut Following,
    topics: &mut Topics,
    access: &Access,
    within: Duration,
) -> Result<Option<i64>> {
    let until = clock::now() + within;
    // Every candidate of an embedded broker is on its machine.
    let is_one_machine = access.embedded.is_some();
    loop {
        let events = following.next_until(until).await?;
        let ahead_ms = events.iter().find_map(|event| {
            let TopicsEvent::Read { record: LogRecord { written_ms, is_brokers_time, .. }, .. } = event else {
                return None;
            };
            let written_ms = written_ms.filter(|_| *is_brokers_time || is_one_machine)?;
            Some(clock::wall_ms().cast_signed().saturating_sub(written_ms.cast_signed()))
        });
        let is_over = ahead_ms.is_some() || events.is_empty();
        // Without these heartbeats a leader would seem silent.
        following.handle_all(topics, events)?;
        if is_over {
            return Ok(ahead_ms);
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
fn elsewhere(config: &Config, access: &Access, timeout: Duration, findings: &mut Findings) {
    let check = "other-topics";
    let (name, own) = (&config.elections.group, &config.elections.topic);
    let read = reading::run(async {
        let own = own.clone();
        let mut following = Following::start(access, [], move |topic| topic != own && topic.ends_with(SUFFIX))?;
        let mut topics = Topics::new(SPAN_ELSEWHERE, MOST_ROLES);
        let unread = following.read_to_ends(&mut topics, Some(name), Limit::of_all(timeout)).await?;
        Ok((topics, unread))
    });
    let (topics, unread) = match read {
        Ok(read) => read,
        Err(why) => return findings.skipped(check, format!("unknown: {why}")),
    };
    let mut is_found = false;
    for (topic, read) in topics.topics() {
        let elections = of_group(name, read);
        let candidates = candidates(&elections);
        let mut names: BTreeSet<&str> = candidates.values().map(|(candidate, _)| candidate.shown()).collect();
        names.extend(leaders(&elections).map(Leader::shown));
        if names.is_empty() {
            continue;
        }
        is_found = true;
        let candidates = list(names);
        let text = format!(
            "{candidates} of group \"{name}\" on topic \"{topic}\": another election, so that two jobs run at once"
        );
        findings.fail(check, text, Some(format!("--topic {topic} on all machines, or {own} on all")));
    }
    if !is_found {
        let is_read = |read: &ReadTopic| read.is_live() && read.troubles().next().is_none();
        let read = counted(topics.topics().filter(|(_, read)| is_read(read)).count() as u64, "other topic");
        let others = if unread.is_empty() { String::new() } else { format!(" ({} could not be read)", unread.len()) };
        let text = format!(
            "no candidate of this group was found on {read} *{SUFFIX}{others}; topics with other names were not looked at"
        );
        findings.ok(check, text);
    }
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
