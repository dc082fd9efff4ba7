//! A candidate's actions in the words of the scenarios.

use neli_proto::candidate::Action;
use neli_proto::guard::Grant;
use neli_proto::hello::Hello;
use neli_proto::kafka::Request;
use neli_proto::note::{Note, Refusal, StandbyReason};
use neli_proto::record::{Body, Overlap};
use neli_proto::supervisor::{Wanted, WantedState};
use neli_proto::time::Time;

use crate::words::{shown, shown_time, span};

/// The note about a broker without topic ids.
pub(super) const NO_IDS: &str = "says: the broker has no ids for topics";

fn shown_overlap(overlap: Option<Overlap>) -> String {
    let Some(Overlap { within_ms, over, yields }) = overlap else { return String::new() };
    let over = over.map(|over| format!(" over={over}")).unwrap_or_default();
    let yields = if yields { " yields" } else { "" };
    format!(" overlap={within_ms}ms{over}{yields}")
}

/// An action in the words of the scenarios.
#[expect(clippy::wildcard_enum_match_arm, reason = "the others are actions of other objects")]
pub(super) fn shown_action(action: Action) -> String {
    match action {
        Action::RenewGuard => "has the guard forget its terms".to_owned(),
        Action::Kafka(Request::Identify) => "asks which topic this is".to_owned(),
        Action::Kafka(Request::JoinGroup) => "joins the group".to_owned(),
        Action::Kafka(Request::LeaveGroup) => "leaves the group".to_owned(),
        Action::Kafka(Request::LookForEnd) => "asks soon where the log ends".to_owned(),
        Action::Kafka(Request::ReadAnew) => "asks where the log ends".to_owned(),
        Action::Kafka(Request::ReadFrom(offset)) => format!("reads from {offset}"),
        Action::Note(Note::Refused(Refusal::Overlap { name, is_theirs })) => {
            format!("refuses: {name} stands {} an overlap", if is_theirs { "with" } else { "without" })
        }
        Action::Note(Note::Refused(Refusal::Roles(differs))) => {
            format!("refuses: {}", differs.line("--roles", "--group"))
        }
        Action::Note(Note::Refused(why)) => format!("refuses: {why:?}"),
        Action::Note(note) => shown_note(note),
        Action::Kafka(Request::RenewProducer) => "makes a new producer".to_owned(),
        Action::Kafka(Request::SayHello(hello)) => {
            format!("sends {}: {}", hello.seq.unwrap_or_default(), shown_hello(&hello))
        }
        Action::Kafka(Request::Send { record }) => {
            format!("sends {}: {}", record.seq.unwrap_or_default(), shown_body(&record.body))
        }
        action => panic!("not a candidate's: {action:?}"),
    }
}

/// The change of what the candidate wants of its job. That it wants nothing any more follows from the job's end.
pub(super) fn shown_change(now: Time, before: Option<Wanted>, wanted: Option<Wanted>) -> Vec<String> {
    let Some(Wanted { grant, again, state }) = wanted else { return Vec::new() };
    let before = before.filter(|before| before.grant.term == grant.term);
    let given = match before {
        None => Some(format!("leads: {}", shown_grant(grant))),
        Some(before) if (before.grant, before.again) != (grant, again) => {
            Some(format!("tells the guard: {}", shown_grant(grant)))
        }
        Some(_) => None,
    };
    let state = match (before.map(|before| before.state), state) {
        (Some(before), state) if before == state => None,
        (_, WantedState::Run) => None,
        (_, WantedState::Stop { why, by: None }) => Some(format!("has the job stopped: {why}")),
        (_, WantedState::Stop { why, by: Some(by) }) => {
            Some(format!("has the job stopped within {}: {why}", shown(by.since(now))))
        }
        (_, WantedState::Kill) => Some("has the job killed".to_owned()),
        (_, WantedState::Hold { .. } | WantedState::RunOnce { .. }) => panic!("the node's: {state:?}"),
    };
    given.into_iter().chain(state).collect()
}

fn shown_grant(grant: Grant) -> String {
    let Grant { term, seen, next_seq, until } = grant;
    format!("term {term} until {}, seen {seen}, next seq {next_seq}", shown_time(until))
}

fn shown_hello(hello: &Hello) -> String {
    let Hello { group_member, group_refuses, priority, overlap_ms, waits_ms, leaves, .. } = hello;
    let group_member = group_member.as_ref().map(|id| format!(" as {id}")).unwrap_or_default();
    let refused = group_refuses.as_ref().map(|words| format!(" refused: {words}")).unwrap_or_default();
    let priority = if *priority == 0 { String::new() } else { format!(" priority={priority}") };
    let overlap = overlap_ms.map(|within| format!(" overlap={within}ms")).unwrap_or_default();
    let waits = waits_ms.map(|waits| format!(" waits={waits}ms")).unwrap_or_default();
    let leaves = if *leaves { " leaves" } else { "" };
    format!("hello{group_member}{refused}{priority}{overlap}{waits}{leaves}")
}

fn shown_body(body: &Body) -> String {
    let lease = |millis: &u64| shown(span(&format!("{millis}ms")));
    match body {
        Body::Beat { term, seen, lease_ms, job, overlap } => {
            let state = job.map(|job| format!(" {:?}", job.state).to_lowercase()).unwrap_or_default();
            let pid = job.and_then(|job| job.pid).map(|pid| format!(" pid={pid}")).unwrap_or_default();
            format!("beat term={term} seen={seen} lease={}{state}{pid}{}", lease(lease_ms), shown_overlap(*overlap))
        }
        Body::Claim { after, lease_ms, overlap } => {
            format!("claim after={after} lease={}{}", lease(lease_ms), shown_overlap(*overlap))
        }
        Body::Release { term, seen, why, exit, late_ms, group_member, once, successor } => {
            let exit = exit.map(|exit| format!(" exit={exit}")).unwrap_or_default();
            let late = late_ms.map(|late| format!(" late={late}ms")).unwrap_or_default();
            let left = group_member.as_ref().map(|id| format!(", has left the group as {id}")).unwrap_or_default();
            let once = once.as_ref().map(|run| format!(" once={}", run.key)).unwrap_or_default();
            let successor = successor.as_ref().map(|successor| format!(", for {successor}")).unwrap_or_default();
            format!(
                "release term={term} seen={seen} why={}{exit}{once}{late}{left}{successor}",
                why.as_deref().unwrap_or("?")
            )
        }
        Body::Request { what, term, .. } => {
            format!("request {what:?}{}", term.map(|term| format!(" term={term}")).unwrap_or_default())
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the others are notes of other objects")]
fn shown_note(note: Note) -> String {
    match note {
        Note::Claiming { after } => format!("says: claiming, after {after}"),
        Note::Ended { by, .. } => format!("says: ended by {}", named(by)),
        Note::FenceWarning { term, left, silent, unconfirmed } => {
            let unconfirmed = unconfirmed.map(|time| format!(", topic unconfirmed for {}", shown(time)));
            let unconfirmed = unconfirmed.unwrap_or_default();
            format!("says: fence warning, term {term}, {} left, silent for {}{unconfirmed}", shown(left), shown(silent))
        }
        Note::LeaseUnconfirmed { term, unconfirmed } => {
            format!("says: the lease of term {term} is over, topic unconfirmed for {}", shown(unconfirmed))
        }
        Note::Preempting { term, priority, own } => {
            format!("says: asks term {term} of priority {priority} to resign, its own is {own}")
        }
        Note::ReaderStuck { end, silent } => {
            format!("says: nothing was read for {}, although the log goes on to {end}", shown(silent))
        }
        Note::Resigned { term, by, successor, .. } => {
            let successor = successor.map(|successor| format!(", for {successor}")).unwrap_or_default();
            format!("says: term {term} is asked to resign by {}{successor}", named(by))
        }
        Note::TopicUnnamed => NO_IDS.to_owned(),
        Note::UnusedPartitions => "says: the topic has more partitions than roles".to_owned(),
        Note::Yielding { term, why, patience } => {
            format!("says: term {term} yields for {} at most, {why}", shown(patience))
        }
        Note::Fenced { term, why, loss, left, late } => {
            let late = late.map(|late| format!(", {} late", shown(late))).unwrap_or_default();
            format!("says: fenced, term {term}, {why}, {loss:?}, {} left{late}", shown(left))
        }
        Note::Leading { term, until } => format!("says: leading, term {term}, until {}", shown_time(until)),
        Note::Overlapped { term, by_term, by, within } => {
            format!("says: term {term} is overlapped by {}, term {by_term}, for {}", named(by), shown(within))
        }
        Note::Released { term, why, delivered } => {
            format!("says: released, term {term}, {why}, delivered: {delivered}")
        }
        Note::Standby(StandbyReason { leader, term, why }) => {
            let leader = leader.map(|leader| format!(", {leader} leads")).unwrap_or_default();
            let term = term.map(|term| format!(", term {term}")).unwrap_or_default();
            let why = why.map(|why| format!(", {why:?}").to_lowercase()).unwrap_or_default();
            format!("says: standby{leader}{term}{why}")
        }
        Note::Superseded { term, by, .. } => format!("says: term {term} is superseded by {}", named(by)),
        Note::TopicRemade => "says: the topic was deleted and made again".to_owned(),
        Note::OnceDiffers { name, theirs, ours } => {
            format!("says: {} was started {theirs}, this one {ours}", named(name))
        }
        note => panic!("{note:?} is no note of a candidate"),
    }
}

fn named(who: Option<Box<str>>) -> Box<str> {
    who.unwrap_or("somebody".into())
}
