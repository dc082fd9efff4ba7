//! The sentences about an election, the same in every command.

use std::collections::BTreeSet;

use neli_kafka::ElectionId;
use neli_proto::hello::Hello;
use neli_proto::leadership::{Leader, Leadership};
use neli_proto::observer::{Change, NoRoom, Observer, Silence};
use neli_proto::record::{Job, JobState, What};

use crate::command::output::Tone;
use crate::report::election::{how_released, lived_on, sentence};
use crate::text::{counted, list, span, spoken};

/// What a command that goes on says when no broker answers, for this reason.
pub(super) fn kafka_is_away(why: &str) -> String {
    format!("warning: Kafka does not answer, so it is unknown who leads: {why}; waiting")
}

/// What a command that waits for an election of this group says, if there is none yet.
pub(super) fn awaits_group(group: &str, place: &str) -> String {
    format!("no election of group \"{group}\" in {place}; waiting for one")
}

/// The election's name: its group, and its role if there are several.
pub(super) fn named(election: &ElectionId) -> String {
    let ElectionId { group, role, role_name, .. } = election;
    if *role == 0 && role_name.is_none() { group.clone() } else { format!("{group}/{}", election.label()) }
}

/// Other elections' groups, for a user that has mistyped one.
pub(super) fn groups(others: &BTreeSet<String>) -> String {
    first_ten(others.iter(), ", ")
}

/// The first ten of them, and how many more there are.
pub(super) fn first_ten<'a>(all: impl ExactSizeIterator<Item = &'a String>, separator: &str) -> String {
    let more = all.len().saturating_sub(10);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", all.take(10).map(String::as_str).collect::<Vec<_>>().join(separator))
}

/// The sentence that the topic contains no record of an election, but records of other groups.
pub(super) fn no_record(election: &ElectionId, others: &BTreeSet<String>) -> String {
    let has = if others.is_empty() { String::new() } else { format!("; this topic has {}", groups(others)) };
    format!("topic {} keeps no record of {}{has}", election.topic, named(election))
}

/// The leader with the age of its last heartbeat, or why there is none: what a table of elections says of each.
pub(super) fn leadership_in_table(current: Leadership<'_>) -> String {
    let sentence = sentence(current);
    if let Leadership::Led { age, .. } = current {
        format!("{sentence}, heartbeat {} ago", span(age))
    } else {
        sentence
    }
}

/// How many of these elections or roles are led; of the others so many are `done`, with nobody who has to lead, and so many `vacant`.
pub(super) fn led_of(what: &str, count: usize, led: usize, done: usize, vacant: usize) -> (String, Tone) {
    let all = counted(count as u64, what);
    match count {
        1 if led == 1 => (format!("the {what} is led"), Tone::Good),
        _ if led == count => (format!("all {all} are led"), Tone::Good),
        _ if led + done == count => (format!("{led} of {all} are led, {done} done"), Tone::Good),
        _ => (format!("{led} of {all} are led"), if vacant > 0 { Tone::Bad } else { Tone::Unknown }),
    }
}

/// A leader's silence, as a sentence.
pub(super) fn silent(silence: &Silence) -> String {
    let Silence { name, lease, silent, .. } = silence;
    format!("no leader: {name} was silent for {} (lease {})", span(*silent), spoken(*lease))
}

/// A change, as a sentence.
pub(super) fn change(observer: &Observer, change: &Change) -> String {
    let leader = observer.leader();
    let term = leader.map(|leader| leader.term).unwrap_or_default();
    let leader = leader.map_or("somebody", Leader::shown);
    match change {
        Change::EarlierJobGone { term } => format!("nothing is left of the job of term {term}"),
        Change::FellSilent(silence) => silent(silence),
        Change::SilenceEnded { silent } => format!("{leader} leads on, after {} of silence", span(*silent)),
        Change::LateBeat { gap } => format!(
            "{leader} was heard after {} of silence: its lease{} was over by then; it will release its term, or another will claim",
            span(*gap),
            observer.leader().map_or_else(String::new, |leader| format!(" ({})", spoken(leader.lease)))
        ),
        Change::Job(of_leader) => format!("{leader}: {}", job(*of_leader)),
        Change::LateFence { term, late } => {
            format!("the job of term {term} {}, and another led by then", lived_on(*late))
        }
        Change::Led => format!("{leader} leads, term {term}"),
        Change::Missing => "records are missing: the leader is unknown until its next record".to_owned(),
        Change::Overlapped { term, name, lease } => {
            let name = name.as_ref().map_or_else(String::new, |name| format!(" of {name}"));
            format!(
                "the job{name} (term {term}) may run beside the job of {leader} until it is released, for {} at most",
                span(*lease)
            )
        }
        Change::Released(release) => format!("term {} was released: {}", release.term, how_released(&release.how)),
        Change::Requested { what, by, reason, successor } => {
            let by = by.as_deref().unwrap_or("somebody");
            let reason = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
            let whom = successor.as_ref().map_or_else(String::new, |successor| format!(" for {successor}"));
            match what {
                What::End => format!("{by} has ended the election{reason}"),
                What::Resign => format!("{by} has asked {leader} to stand down{whom}{reason}"),
            }
        }
        Change::Yields => format!("{leader} is to stop: its job runs on until another has claimed"),
    }
}

/// A hello, as a sentence.
pub(super) fn hello(hello: &Hello) -> String {
    let Hello { member, name, host, version, elector, roles, leaves, .. } = hello;
    let shown = [("on ", host), ("version ", version), ("--elect ", elector), ("--roles ", roles)];
    let shown = shown.into_iter().filter_map(|(word, value)| Some(format!("{word}{}", value.as_ref()?)));
    let says = if *leaves { "says that it leaves" } else { "says hello" };
    format!("{} {says}: {}", name.as_deref().unwrap_or(member.as_str()), list(shown))
}

/// The state of a job, as a sentence.
pub(super) fn job(job: Job) -> String {
    let again = job.attempt.filter(|attempt| *attempt > 1).map_or("", |_| " again");
    let pid = job.pid.map_or_else(String::new, |pid| format!(", pid {pid}"));
    match job.state {
        JobState::Restarting => "the job waits for its next run".to_owned(),
        JobState::Running => format!("the job runs{again}{pid}"),
        JobState::Starting => format!("the job is being started{again}"),
        JobState::Stopping if job.pid.is_none() => {
            "the job has ended: what it left is stopped, and its outcome recorded".to_owned()
        }
        JobState::Stopping => format!("the job has been asked to stop{pid}"),
    }
}

/// The sentence, and why no standby may lead this role too, if so.
pub(super) fn with_room(sentence: String, no_room: Option<&NoRoom>) -> String {
    let Some(NoRoom { candidates, most, roles, max_roles }) = no_room else { return sentence };
    let candidates = if *candidates == 1 { "one candidate".to_owned() } else { format!("{candidates} candidates") };
    let limits = list(max_roles);
    let why = format!("nobody has room for it: {candidates} may lead {most} of {roles} roles (--max-roles {limits})");
    format!("{sentence}; {why}")
}
