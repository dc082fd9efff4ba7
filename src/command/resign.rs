//! `resign`: asks the leader to stand down.

use std::slice;
use std::time::Duration;

use anyhow::Result;
use neli_kafka::{ElectionId, clock};
use neli_proto::journal::View;
use neli_proto::leadership::{Leader, Leadership, ReadAt, Receipt, Unknown};
use neli_proto::observer::Standby;
use neli_proto::precedence::HELLO_HOLDS;
use neli_proto::record::{Body, MemberId, What};
use neli_proto::time::{Time, millis};
use serde_json::{Value, json};

use crate::cli::parsed_args::ParsedArgs;
use crate::cli::validate::candidate_name;
use crate::command::look::{LONG_TIMEOUT, Look};
use crate::command::reading::{self, FoundElections, Observation, Seen, read_at};
use crate::command::request::{
    Answer, Appended, Ask, HEARD_WITHIN, Outcome, add, answered, ask_candidates, operator, request, see,
};
use crate::command::wording::{counted, named};
use crate::exit::{ExitStatus, NoAnswer};
use crate::report::election::{asked_by, sentence};
use crate::text::{span, spoken};

/// Another candidate leads, or with `--to` the named one.
const RESIGNED: Outcome = Outcome { word: "resigned", status: 0 };
/// The candidate of `--to` leads without this.
const LEADS_ALREADY: Outcome = Outcome { word: "leads-already", status: 0 };
/// Another candidate leads than the one of `--to`.
const ANOTHER_LEADS: Outcome = Outcome { word: "another-leads", status: 1 };
/// No other candidate leads in time, or Kafka accepted no request.
const TIMED_OUT: Outcome = Outcome { word: "timed-out", status: 1 };
/// There is no standby, so nobody would lead.
const NOBODY_STANDS_BY: Outcome = Outcome { word: "nobody-stands-by", status: 2 };
/// The candidate of `--to` can't lead.
const CAN_NOT_LEAD: Outcome = Outcome { word: "can-not-lead", status: 2 };
/// There is no leader.
const VACANT: Outcome = Outcome { word: "vacant", status: 3 };
/// The leader is unknown.
const UNKNOWN: Outcome = Outcome { word: "unknown", status: 4 };

/// Asks the leader to stand down, and waits until another candidate leads.
///
/// # Errors
///
/// Kafka refuses permanently, the log can't be read, or stdout can't be written; and every unsuccessful result, with its own status.
pub fn main(args: &ParsedArgs) -> Result<ExitStatus> {
    let to = args.value("to");
    if let (Some(to), Some(_)) = (&to, args.flag("all-roles")?) {
        return Err(to.refuse("can't be combined with --all-roles: it names who is to lead one role, so give --role"));
    }
    let to = to.map(|to| candidate_name(&to)).transpose()?;
    let resign = &Ask::of(args, LONG_TIMEOUT)?;
    let mut handovers = reading::run(hand_over(resign, to.as_deref()))?;
    if handovers.len() > 1 {
        for one in &mut handovers {
            one.sentence = format!("{}: {}", named(&one.election), one.sentence);
        }
    }
    answered(&handovers, resign.look.json)
}

/// Who led before and after, as JSON.
fn handover(from: Option<&Leader>, to: Option<&Leader>, gap: Option<Duration>) -> Value {
    let party = |leader: &Leader| json!({ "name": leader.shown(), "term": leader.term });
    json!({ "from": from.map(party), "to": to.map(party), "gap_ms": gap.map(millis) })
}

/// The answer that nobody else leads.
fn not_resigned(election: &ElectionId, outcome: Outcome, from: Option<&Leader>, sentence: String) -> Answer {
    Answer { handover: handover(from, None, None), ..Answer::new(election, outcome, Some(sentence.clone()), sentence) }
}

fn unknown(election: &ElectionId, why: &str) -> Answer {
    not_resigned(election, UNKNOWN, None, format!("can't tell who leads: {why}"))
}

/// Hands over the role, or with `--all-roles` one role after the other.
async fn hand_over(resign: &Ask, to: Option<&str>) -> Result<Vec<Answer>> {
    let Ask { look, all_roles, .. } = resign;
    let found = match FoundElections::find(look, |_| {}).await {
        Ok(found) => found,
        Err(error) => return Ok(vec![unknown(&look.election, &error.downcast::<NoAnswer>()?.0)]),
    };
    if !all_roles {
        found.one(
            "--role says whose leader is to stand down, and --all-roles asks the leaders of all, one after the other",
        )?;
    }
    let mut handovers = Vec::new();
    for one in found.each() {
        let election = one.elections.first().cloned();
        let handover = hand_over_one(resign, to, one).await;
        let election = election.as_ref().unwrap_or(&look.election);
        if !add(&mut handovers, handover, |refusal| unknown(election, refusal))? {
            break;
        }
    }
    Ok(handovers)
}

async fn hand_over_one(resign: &Ask, to: Option<&str>, found: FoundElections) -> Result<Answer> {
    let Ask { look, force, .. } = resign;
    let election = &found.one("")?.clone();
    let mut observation = match Observation::of_leaders(look, found).await {
        Ok(observation) => observation,
        Err(error) => return Ok(unknown(election, &error.downcast::<NoAnswer>()?.0)),
    };
    if (!force || to.is_some()) && lacks_standby(&observation, to)? {
        let is_heard = |observation: &Observation, _| Ok(!lacks_standby(observation, to)?);
        ask_candidates(&look.access, &mut observation, look.timeout.min(HEARD_WITHIN), is_heard).await?;
    }
    let (at, seen) = (read_at(), observation.first()?);
    let Some(from) = seen.leadership(at).may_lead().cloned() else {
        return Ok(nobody_leads(election, seen, at));
    };
    let refused = |outcome, whom: &str, why: String| {
        let sentence = format!("{} leads, and {why}; --force asks {whom} to stand down anyway", from.shown());
        Ok(not_resigned(election, outcome, Some(&from), sentence))
    };
    let mut standbys = seen.observer().standbys(at);
    if let Some(to) = to {
        match only_one_named(&standbys, to) {
            Ok(standby) => standbys = vec![standby],
            Err(why) if from.shown() == to => {
                let is_leaving = from.resign.as_ref().map(|request| ("it was asked to stand down", request));
                let ended = seen.observer().ended().map(|ended| ("the election was ended", &ended.request));
                if let Some((what, request)) = is_leaving.or(ended) {
                    let sentence = format!("{to} leads, and {what} {}", asked_by(request));
                    return Ok(not_resigned(election, CAN_NOT_LEAD, Some(&from), sentence));
                }
                let is_named = |standby: &Standby<'_>| standby.candidate.shown() == to;
                let several = standbys.iter().any(is_named).then_some(why);
                let but = several.as_ref().map_or_else(String::new, |why| format!("; {why}"));
                let sentence = format!("{to} leads already, term {}{but}", from.term);
                let handover = handover(None, Some(&from), None);
                return Ok(Answer { handover, ..Answer::new(election, LEADS_ALREADY, several, sentence) });
            }
            // Nobody could be named, with --force either.
            Err(why) => {
                let sentence = format!("{} leads, and {why}", from.shown());
                return Ok(not_resigned(election, CAN_NOT_LEAD, Some(&from), sentence));
            }
        }
    }
    let successor = to.and_then(|_| Some(standbys.first()?.candidate.hello.member.clone()));
    if !force {
        let (outcome, whom, why) = match (&successor, standbys.as_slice()) {
            (Some(_), [named, ..]) => (CAN_NOT_LEAD, from.shown(), can_not_lead(look, named).await?),
            (_, []) => (NOBODY_STANDS_BY, "it", Some("nobody stands by".to_owned())),
            (None, all) => (NOBODY_STANDS_BY, "it", none_has_room(look, all).await?),
        };
        if let Some(why) = why {
            return refused(outcome, whom, why);
        }
        let asked = clock::now();
        let ages: Vec<(String, Duration)> =
            standbys.iter().map(|standby| (standby.candidate.shown().to_owned(), standby.age)).collect();
        let (who, outcome) = match to {
            Some(to) => (format!("{to} has not"), CAN_NOT_LEAD),
            None => ("no standby has".to_owned(), NOBODY_STANDS_BY),
        };
        let is_answered = answers(look, &mut observation, &from, successor.as_ref()).await?;
        let (at, seen) = (read_at(), observation.first()?);
        match seen.leadership(at).may_lead() {
            None => return Ok(nobody_leads(election, seen, at)),
            Some(leader) if leader.term != from.term => {
                let named = to.zip(successor);
                return next_leader(&mut observation, from, named, look.timeout, clock::now()).await;
            }
            Some(_) => {}
        }
        if !is_answered {
            let (within, waited) = (spoken(look.timeout), clock::now().since(asked));
            let said: Vec<String> =
                ages.iter().map(|(name, age)| format!("{name} said hello {} ago", span(*age + waited))).collect();
            let said = said.join(", ");
            return refused(
                outcome,
                from.shown(),
                format!("{who} answered within {within}; {said}, and may have died"),
            );
        }
    }
    ask_leader(resign, &mut observation, from, to.zip(successor)).await
}

/// Asks the leader, and waits for the next one. `named`: the name of `--to`, and that candidate.
async fn ask_leader(
    resign: &Ask,
    observation: &mut Observation,
    from: Leader,
    named: Option<(&str, MemberId)>,
) -> Result<Answer> {
    let Ask { look, reason, .. } = resign;
    let election = &observation.first()?.election.clone();
    let until = clock::now() + look.timeout;
    let (term, by, reason) = (Some(from.term), Some(operator()), reason.clone());
    let successor = named.as_ref().map(|(_, member)| member.clone());
    let appended = request(look, election, Body::Request { what: What::Resign, term, by, reason, successor }).await?;
    let sentence = match appended {
        Appended::Unknown(why) if !seems_taken(observation, &from).await? => format!(
            "whether {0} was asked is unknown: {why}; if Kafka has taken the request, {0} stands down: see neli-run status",
            from.shown()
        ),
        Appended::Yes | Appended::Unknown(_) => {
            return next_leader(observation, from, named, look.timeout, until).await;
        }
        Appended::No(why) => format!("{} was not asked: {why}", from.shown()),
    };
    Ok(not_resigned(election, TIMED_OUT, Some(&from), sentence))
}

/// Whether what has come meanwhile shows that Kafka has taken the request, or that `from` leads no more.
async fn seems_taken(observation: &mut Observation, from: &Leader) -> Result<bool> {
    while observation.next(Some(clock::now())).await?.is_some() {}
    let seen = observation.first()?;
    let leads_on = |leader: &Leader| leader.term == from.term && leader.resign.is_none();
    // While Kafka does not answer, no heartbeat is missing.
    Ok(seen.leadership(read_at()).is_vacant() || !seen.observer().leader().is_some_and(leads_on))
}

/// The answer that there is no leader, or that this is unknown.
fn nobody_leads(election: &ElectionId, seen: Seen<'_>, at: ReadAt) -> Answer {
    let current = seen.leadership(at);
    let outcome = if current.is_unknown() { UNKNOWN } else { VACANT };
    let no_record = seen.no_record().filter(|_| current.is_vacant());
    not_resigned(election, outcome, None, no_record.unwrap_or_else(|| sentence(current)))
}

/// Whether there is a leader, and no standby, or none of the name of `--to`.
fn lacks_standby(observation: &Observation, to: Option<&str>) -> Result<bool> {
    let (at, seen) = (read_at(), observation.first()?);
    let (leader, standbys) = (seen.observer().leadership(at).may_lead(), seen.observer().standbys(at));
    let is_wanted = |name: &str| to.is_none_or(|to| name == to);
    let is_leader_wanted = |leader: &Leader| to.is_some() && is_wanted(leader.shown());
    let is_there = standbys.iter().any(|standby| is_wanted(standby.candidate.shown()));
    Ok(!is_there && leader.is_some_and(|leader| !is_leader_wanted(leader)))
}

/// The standby that `--to` names, or why there is none.
fn only_one_named<'a>(standbys: &[Standby<'a>], to: &str) -> Result<Standby<'a>, String> {
    let mut named = standbys.iter().filter(|standby| standby.candidate.shown() == to);
    match (named.next(), named.count()) {
        (Some(standby), 0) => Ok(*standby),
        (Some(_), others) => Err(format!("{} standbys are named {to}: --name makes each name unique", others + 1)),
        (None, _) if standbys.is_empty() => Err(format!("{to} does not stand by, and nobody else does")),
        (None, _) => {
            let all: Vec<&str> = standbys.iter().map(|standby| standby.candidate.shown()).collect();
            let holds = spoken(HELLO_HOLDS);
            Err(format!(
                "{to} does not stand by: no candidate has this name, or it has left, or was not heard for {holds}; those that do: {}",
                all.join(", ")
            ))
        }
    }
}

/// Why this standby would not claim at once, if so.
async fn can_not_lead(look: &Look, standby: &Standby<'_>) -> Result<Option<String>> {
    let (name, back_off) = (standby.candidate.shown(), standby.back_off());
    if !back_off.is_zero() {
        let (times, wait) = (counted(standby.failed_runs, "time"), span(back_off));
        return Ok(Some(format!("{name} failed {times} in a row, so that it would claim {wait} late")));
    }
    let undecided = standby.candidate.undecided_for().saturating_sub(standby.age);
    if !undecided.is_zero() {
        return Ok(Some(format!("{name} does not know who leads, and claims nothing for {}", span(undecided))));
    }
    none_has_room(look, slice::from_ref(standby)).await
}

/// Why none of these standbys may lead another role, if so: each leads as many as its `--max-roles`.
async fn none_has_room(look: &Look, standbys: &[Standby<'_>]) -> Result<Option<String>> {
    let limits = standbys.iter().map(|standby| Some((standby.candidate.shown(), standby.candidate.max_roles()?)));
    let Some(limits) = limits.collect::<Option<Vec<(&str, u32)>>>() else { return Ok(None) };
    let of_all = Look { election: ElectionId { role_name: None, ..look.election.clone() }, ..look.clone() };
    let all = match see(&of_all, None).await {
        Ok(all) => all,
        Err(error) => {
            let (why, names) = (error.downcast::<NoAnswer>()?.0, limits.iter().map(|(name, _)| *name));
            return Ok(Some(format!(
                "how many roles are led by {} is unknown: {why}",
                names.collect::<Vec<_>>().join(", ")
            )));
        }
    };
    let at = read_at();
    let leaders: Vec<&Leader> = all.seen().filter_map(|seen| seen.read.observer().leadership(at).may_lead()).collect();
    let led = |member: &MemberId| leaders.iter().filter(|leader| leader.member.as_ref() == Some(member)).count();
    let has_room = |(standby, (_, most)): (&Standby<'_>, &(&str, u32))| {
        u32::try_from(led(&standby.candidate.hello.member)).is_ok_and(|led| led < *most)
    };
    if standbys.iter().zip(&limits).any(has_room) {
        return Ok(None);
    }
    let full = limits.iter().map(|(name, most)| format!("{name} leads {}, its --max-roles", counted(*most, "role")));
    Ok(Some(full.collect::<Vec<_>>().join(", and ")))
}

/// Asks the candidates for a sign of life. Returns whether a standby, or the named one, gives one in time, or `from` leads no more: a standby that
/// has died counts as one for 75 s, and the leader's job would be stopped for nobody. A candidate of an earlier version does not answer, but says
/// hello every 30 s.
async fn answers(look: &Look, observation: &mut Observation, from: &Leader, named: Option<&MemberId>) -> Result<bool> {
    let is_meant = |standby: &Standby<'_>| named.is_none_or(|named| standby.candidate.hello.member == *named);
    let is_answered = |observation: &Observation, asked| {
        let (at, seen) = (read_at(), observation.first()?);
        let current = seen.leadership(at);
        // While Kafka does not answer, no heartbeat is missing.
        let leads = matches!(current, Leadership::Unknown(Unknown::NotAnswered { .. }))
            || current.may_lead().is_some_and(|leader| leader.term == from.term);
        let mut standbys = seen.observer().standbys(at).into_iter();
        Ok(!leads || standbys.any(|standby| standby.candidate.received.read > asked && is_meant(&standby)))
    };
    ask_candidates(&look.access, observation, look.timeout, is_answered).await
}

/// The time between a release and the next leader's claim, by the broker's timestamps, as in `history`. Records without timestamps are
/// compared by the times at which they were read.
fn gap(released: Receipt, next: &Leader) -> Duration {
    match (released.written_ms, next.claimed_ms) {
        (Some(released_ms), Some(claimed_ms)) => Duration::from_millis(claimed_ms.saturating_sub(released_ms)),
        (None, _) | (_, None) => next.last_record.read.since(released.read),
    }
}

/// Waits until then, which is the time limit after the request, for a leader after `from`, and measures the time without a leader. `named`: the
/// name of `--to`, and that candidate.
async fn next_leader(
    observation: &mut Observation,
    from: Leader,
    named: Option<(&str, MemberId)>,
    timeout: Duration,
    until: Time,
) -> Result<Answer> {
    let election = &observation.first()?.election.clone();
    let mut released = None;
    loop {
        let observer = observation.first()?.read.observer();
        match (observer.journal().view(), observer.leader(), observer.leadership(read_at())) {
            (View::Led(term), Some(leader), _) if term.offset > from.term => {
                let gap = released.map(|released| gap(released, leader));
                let (name, term) = (leader.shown(), leader.term);
                let has_same_name = name == from.shown();
                let members = leader.member.as_ref().zip(from.member.as_ref());
                let (another_of, again) = if members.map_or(has_same_name, |(next, before)| next == before) {
                    ("", " again")
                } else if has_same_name {
                    ("another candidate named ", "")
                } else {
                    ("", "")
                };
                let for_so_long = gap.map_or_else(String::new, |gap| format!("; nobody led for {}", span(gap)));
                let another = named.filter(|(_, member)| leader.member.as_ref() != Some(member));
                let but = another.as_ref().map_or_else(String::new, |(name, _)| format!(", and not {name}"));
                let sentence = format!("{another_of}{name} leads{again}, term {term}{but}{for_so_long}");
                let (outcome, why) = match another {
                    Some(_) => (ANOTHER_LEADS, Some(sentence.clone())),
                    None => (RESIGNED, None),
                };
                let handover = handover(Some(&from), Some(leader), gap);
                return Ok(Answer { handover, ..Answer::new(election, outcome, why, sentence) });
            }
            (_, _, Leadership::Released { release, .. }) => {
                released.get_or_insert(release.received);
            }
            _ => {}
        }
        let is_late = clock::now() >= until;
        if observation.next(Some(until)).await?.is_none() || is_late {
            let within = spoken(timeout);
            let sentence = match released {
                Some(_) => format!("{} has stood down, and nobody leads yet, {within} after the request", from.shown()),
                None => format!(
                    "{} has been asked, and has not stood down within {within}; it still may: see neli-run status",
                    from.shown()
                ),
            };
            return Ok(not_resigned(election, TIMED_OUT, Some(&from), sentence));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::reading::HeardBefore;

    #[test]
    fn that_nobody_leads_is_not_said_by_a_silence_that_may_be_kafka_s() {
        let heard = HeardBefore::new();
        let answer = nobody_leads(heard.seen().election, heard.seen(), read_at());
        assert_eq!(answer.outcome, UNKNOWN, "{}", answer.sentence);
    }
}
