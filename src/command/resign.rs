//! `resign`: asks the leader to stand down.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use neli_kafka::{ElectionId, clock};
use neli_proto::leadership::{Leader, Leadership, ReadAt, Receipt, Unknown};
use neli_proto::observer::{KnownCandidate, Standby};
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
use crate::command::wording::named;
use crate::exit::{ExitStatus, or_no_answer};
use crate::report::election::{asked_by, sentence};
use crate::text::{counted, list, span, spoken};

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
    let handed_over = reading::run(hand_over(resign, to.as_deref()));
    let mut handovers = or_no_answer(handed_over, |why| vec![unknown(&resign.look.election, &why)])?;
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
    Answer { handover: handover(from, None, None), ..Answer::new(election, outcome, sentence) }
}

fn unknown(election: &ElectionId, why: &str) -> Answer {
    not_resigned(election, UNKNOWN, None, format!("can't tell who leads: {why}"))
}

/// Hands over the role, or with `--all-roles` one role after the other.
async fn hand_over(resign: &Ask, to: Option<&str>) -> Result<Vec<Answer>> {
    let found = FoundElections::find(&resign.look, |_| {}).await?;
    if !resign.all_roles {
        found.one(
            "--role says whose leader is to stand down, and --all-roles asks the leaders of all, one after the other",
        )?;
    }
    // Leaders that seem silent are listened for at once, and not one after the other.
    let all = if resign.all_roles { Observation::of_leaders(&resign.look, found.clone()).await.ok() } else { None };
    let (at, seen) = (read_at(), all.iter().flat_map(Observation::seen));
    let vacant = seen.filter(|seen| seen.read.leadership(at).is_vacant());
    let vacant: BTreeMap<u32, Answer> = vacant.map(|seen| (seen.election.role, nobody_leads(seen, at))).collect();
    let mut handovers = Vec::new();
    for (election, one) in found.elections.iter().zip(found.each()) {
        let handover = match vacant.get(&election.role) {
            Some(nobody) => Ok(nobody.clone()),
            None => or_no_answer(hand_over_one(resign, to, one).await, |why| unknown(election, &why)),
        };
        if !add(&mut handovers, handover, |refusal| unknown(election, refusal))? {
            break;
        }
    }
    Ok(handovers)
}

async fn hand_over_one(resign: &Ask, to: Option<&str>, found: FoundElections) -> Result<Answer> {
    let Ask { look, force, .. } = resign;
    let mut observation = Observation::of_leaders(look, found).await?;
    let (at, seen) = (read_at(), observation.first()?);
    let Some(from) = seen.read.leadership(at).may_lead().cloned() else { return Ok(nobody_leads(seen, at)) };
    let mut named = seen.read.observer().standbys(at);
    named.retain(|standby| is_meant(standby, to));
    let meant = named.len();
    let full = if *force { BTreeMap::new() } else { without_room(look, &named).await? };
    // With `--force` it matters only whether the named one is there. A leader that was killed and started again counts as a standby for 75 s, too.
    let are_several = to.is_some() && meant + usize::from(to == Some(from.shown())) > 1;
    let is_asked = match to {
        Some(to) if meant == 0 => to != from.shown(),
        _ => are_several || !force && (meant == 0 || full.len() < meant),
    };
    let within = if meant == 0 || are_several { look.timeout.min(HEARD_WITHIN) } else { look.timeout };
    let may_lead = |standby: &Standby<'_>| is_meant(standby, to) && !full.contains_key(&standby.candidate.hello.member);
    let asked = clock::now();
    let enough = if are_several { 2 } else { 1 };
    let (mut is_answered, why_not_asked) =
        if is_asked { answers(look, &mut observation, &from, may_lead, enough, within).await? } else { (true, None) };
    let (at, seen) = (read_at(), observation.first()?);
    match seen.read.leadership(at).may_lead() {
        None => return Ok(nobody_leads(seen, at)),
        Some(leader) if leader.term != from.term => {
            return next_leader(&mut observation, &from, to, look.timeout, clock::now()).await;
        }
        Some(_) => {}
    }
    if let Some(why) = why_not_asked.filter(|_| !is_answered && !force) {
        let sentence = format!(
            "{} was not asked to stand down, since no standby has answered, and Kafka has not taken the question to them: {why}",
            from.shown()
        );
        return Ok(not_resigned(seen.election, TIMED_OUT, Some(&from), sentence));
    }
    let mut standbys = seen.read.observer().standbys(at);
    if let Some(to) = to {
        match only_one_named(&standbys, &from, to, asked) {
            Ok(standby) => {
                is_answered |= standby.candidate.received.read > asked;
                standbys = vec![standby];
            }
            Err(why) => return Ok(not_named((seen, at), &from, to, meant, why)),
        }
    }
    if !force {
        // Those that were heard only now were not among them.
        let full = if meant == 0 { without_room(look, &standbys).await? } else { full };
        let why = why_none_leads(look, to, &standbys, &full, is_answered);
        if let Some(why) = why {
            let outcome = if to.is_some() { CAN_NOT_LEAD } else { NOBODY_STANDS_BY };
            let leads = leads(seen, at, &from);
            let sentence = format!("{leads}, and {why}; --force asks {} to stand down anyway", from.shown());
            return Ok(not_resigned(seen.election, outcome, Some(&from), sentence));
        }
    }
    let successor = standbys.first().filter(|_| to.is_some()).map(|standby| standby.candidate.hello.member.clone());
    ask_leader(resign, &mut observation, &from, to, successor).await
}

/// Asks the leader, and waits for the next one; `successor` is the candidate of `--to`.
async fn ask_leader(
    resign: &Ask,
    observation: &mut Observation,
    from: &Leader,
    to: Option<&str>,
    successor: Option<MemberId>,
) -> Result<Answer> {
    let Ask { look, reason, .. } = resign;
    let election = &observation.first()?.election.clone();
    let until = clock::now() + look.timeout;
    let (term, by, reason) = (Some(from.term), Some(operator()), reason.clone());
    let appended = request(look, election, Body::Request { what: What::Resign, term, by, reason, successor }).await?;
    let sentence = match appended {
        Appended::Unknown(why) if !seems_taken(observation, from).await? => format!(
            "whether {0} was asked is unknown: {why}; if Kafka has taken the request, {0} stands down: see neli-run status",
            from.shown()
        ),
        Appended::Yes | Appended::Unknown(_) => {
            return next_leader(observation, from, to, look.timeout, until).await;
        }
        Appended::No(why) => format!("{} was not asked: {why}", from.shown()),
    };
    Ok(not_resigned(election, TIMED_OUT, Some(from), sentence))
}

/// Whether what has come meanwhile shows that Kafka has taken the request, or that `from` leads no more.
async fn seems_taken(observation: &mut Observation, from: &Leader) -> Result<bool> {
    while observation.next(Some(clock::now())).await?.is_some() {}
    let seen = observation.first()?;
    let leads_on = |leader: &Leader| leader.term == from.term && leader.resign.is_none();
    // While Kafka does not answer, no heartbeat is missing.
    Ok(seen.read.leadership(read_at()).is_vacant() || !seen.read.observer().leader().is_some_and(leads_on))
}

/// The answer that there is no leader, or that this is unknown.
fn nobody_leads(seen: Seen<'_>, at: ReadAt) -> Answer {
    let current = seen.read.leadership(at);
    let outcome = if current.is_unknown() { UNKNOWN } else { VACANT };
    let no_record = seen.no_record().filter(|_| current.is_vacant());
    not_resigned(seen.election, outcome, None, no_record.unwrap_or_else(|| sentence(current)))
}

/// That the leader has missed three heartbeats, if so, and may be dead.
fn silence(seen: Seen<'_>, at: ReadAt) -> Option<String> {
    let current = seen.read.leadership(at);
    current.silent_for().map(|_| sentence(current))
}

/// That `from` leads, or that it is silent.
fn leads(seen: Seen<'_>, at: ReadAt, from: &Leader) -> String {
    silence(seen, at).unwrap_or_else(|| format!("{} leads", from.shown()))
}

/// Whether this is the standby that `--to` names; without it each is.
fn is_meant(standby: &Standby<'_>, to: Option<&str>) -> bool {
    to.is_none_or(|to| standby.candidate.shown() == to)
}

/// The standby that `--to` names, or why there is none. Of several the one that was heard since they were `asked`: a candidate that was killed counts
/// for 75 s beside the one that was started again in its place.
fn only_one_named<'a>(standbys: &[Standby<'a>], from: &Leader, to: &str, asked: Time) -> Result<Standby<'a>, String> {
    let named = || standbys.iter().filter(|standby| is_meant(standby, Some(to)));
    let mut heard = named().filter(|standby| standby.candidate.received.read > asked);
    if let (Some(standby), None) = (heard.next(), heard.next()) {
        return Ok(*standby);
    }
    let mut named = named();
    match (named.next(), named.count()) {
        (Some(standby), 0) if from.shown() != to => Ok(*standby),
        (Some(_), 0) => Err("a standby of this name has not answered".to_owned()),
        (Some(_), others) => Err(format!("{} standbys are named {to}: --name makes each name unique", others + 1)),
        (None, _) if standbys.is_empty() => Err(format!("{to:?} does not stand by, and nobody else does")),
        (None, _) => {
            let all = list(standbys.iter().map(|standby| standby.candidate.shown()));
            let holds = spoken(HELLO_HOLDS);
            Err(format!(
                "{to:?} does not stand by: no candidate has this name, or it has left, or was not heard for {holds}; those that do: {all}"
            ))
        }
    }
}

/// The answer that not one standby alone is named by `--to`, but `meant` ones, for this reason. If the leader has that name, all is well, unless it
/// is about to stand down, or silent.
fn not_named((seen, at): (Seen<'_>, ReadAt), from: &Leader, to: &str, meant: usize, why: String) -> Answer {
    let resigns = from.resign.as_ref().map(|request| ("it was asked to stand down", request));
    let ended = seen.read.observer().ended().map(|(request, _)| ("the election was ended", request));
    let why_not = match resigns.or(ended) {
        _ if from.shown() != to => Some(why.clone()),
        leaves => leaves.map(|(what, request)| format!("{what} {}", asked_by(request))),
    };
    if let Some(why) = why_not {
        let sentence = format!("{}, and {why}", leads(seen, at, from));
        return not_resigned(seen.election, CAN_NOT_LEAD, Some(from), sentence);
    }
    let several = (meant > 0).then_some(why);
    let but = several.as_ref().map_or_else(String::new, |why| format!("; {why}"));
    if let Some(silence) = silence(seen, at) {
        return not_resigned(seen.election, UNKNOWN, Some(from), silence + &but);
    }
    let sentence = format!("{to} leads already, term {}{but}", from.term);
    let handover = handover(None, Some(from), None);
    Answer { why: several, handover, ..Answer::new(seen.election, LEADS_ALREADY, sentence) }
}

/// Why none of these standbys, or not the one of `--to`, would lead next, if so.
fn why_none_leads(
    look: &Look,
    to: Option<&str>,
    standbys: &[Standby<'_>],
    without_room: &BTreeMap<MemberId, String>,
    is_answered: bool,
) -> Option<String> {
    let why = |standby: &Standby<'_>| without_room.get(&standby.candidate.hello.member);
    let full = standbys.iter().filter_map(why).cloned().collect::<Vec<_>>().join(", and ");
    let with_room: Vec<&Standby<'_>> = standbys.iter().filter(|standby| why(standby).is_none()).collect();
    match with_room.as_slice() {
        [] if full.is_empty() => Some("nobody stands by".to_owned()),
        [] => Some(full),
        all if !is_answered => Some(unanswered(look, to, all, &full)),
        [named, ..] if to.is_some() => backs_off(named),
        _ => None,
    }
}

/// That the standby of `--to` has not answered, or none of these that have room; the others are `full`.
fn unanswered(look: &Look, to: Option<&str>, standbys: &[&Standby<'_>], full: &str) -> String {
    let (that_has_room, others) = if full.is_empty() { ("", "") } else { (" that has room", "; ") };
    let who = to.map_or_else(|| format!("no standby{that_has_room} has"), |to| format!("{to} has not"));
    let said =
        standbys.iter().map(|standby| format!("{} said hello {} ago", standby.candidate.shown(), span(standby.age)));
    let (said, within) = (list(said), spoken(look.timeout));
    format!("{who} answered within {within}; {said}, and may have died{others}{full}")
}

/// That this standby would not claim at once because its runs fail, if so.
fn backs_off(standby: &Standby<'_>) -> Option<String> {
    let (name, back_off) = (standby.candidate.shown(), standby.back_off());
    let (times, wait) = (counted(standby.failed_runs, "time"), span(back_off));
    (!back_off.is_zero()).then(|| format!("{name} failed {times} in a row, so that it would claim {wait} late"))
}

/// Those of these standbys that may lead no other role, each with the reason: it leads as many as its `--max-roles`.
async fn without_room(look: &Look, standbys: &[Standby<'_>]) -> Result<BTreeMap<MemberId, String>> {
    let limits = standbys.iter().filter_map(|standby| Some((standby.candidate, standby.candidate.max_roles()?)));
    let limits: Vec<(&KnownCandidate, u32)> = limits.collect();
    if limits.is_empty() {
        return Ok(BTreeMap::new());
    }
    let of_all = Look { election: ElectionId { role_name: None, ..look.election.clone() }, ..look.clone() };
    let seen = or_no_answer(see(&of_all, None).await.map(|all| Ok((all, read_at()))), Err)?;
    let why_full = |(candidate, most): (&KnownCandidate, u32)| {
        let (member, name) = (&candidate.hello.member, candidate.shown());
        let why = match &seen {
            Ok((all, at)) => {
                let is_its = |leader: &Leader| leader.member.as_ref() == Some(member);
                let leads = |seen: &Seen<'_>| seen.read.observer().leadership(*at).may_lead().is_some_and(is_its);
                let has_room = all.seen().filter(leads).count() < most as usize;
                (!has_room).then(|| format!("{name} leads {}, its --max-roles", counted(most, "role")))?
            }
            Err(why) => format!("how many roles {name} leads is unknown: {why}"),
        };
        Some((member.clone(), why))
    };
    Ok(limits.into_iter().filter_map(why_full).collect())
}

/// Asks the candidates for a sign of life. Returns whether enough standbys that may lead give one in time, or `from` leads no more, and why Kafka has
/// not taken the question, if so: a standby that has died counts as one for 75 s, and the leader's job would be stopped for nobody. A candidate of an
/// earlier version does not answer, but says hello every 30 s.
async fn answers(
    look: &Look,
    observation: &mut Observation,
    from: &Leader,
    may_lead: impl Fn(&Standby<'_>) -> bool,
    enough: usize,
    within: Duration,
) -> Result<(bool, Option<String>)> {
    let is_answered = |observation: &Observation, asked| {
        let (at, seen) = (read_at(), observation.first()?);
        let current = seen.read.leadership(at);
        // While Kafka does not answer, no heartbeat is missing.
        let leads = matches!(current, Leadership::Unknown(Unknown::NotAnswered { .. }))
            || current.may_lead().is_some_and(|leader| leader.term == from.term);
        let standbys = seen.read.observer().standbys(at).into_iter();
        let heard = standbys.filter(|standby| standby.candidate.received.read > asked && may_lead(standby));
        Ok(!leads || heard.count() >= enough)
    };
    ask_candidates(&look.access, observation, within, is_answered).await
}

/// The time between a release and the next leader's claim, by the broker's timestamps, as in `history`. Records without timestamps are
/// compared by the times at which they were read.
fn gap(released: Receipt, next: &Leader) -> Duration {
    match (released.written_ms, next.claimed_ms) {
        (Some(released_ms), Some(claimed_ms)) => Duration::from_millis(claimed_ms.saturating_sub(released_ms)),
        (None, _) | (_, None) => next.last_record.read.since(released.read),
    }
}

/// Waits until then, which is the time limit after the request, for a leader after `from`.
async fn next_leader(
    observation: &mut Observation,
    from: &Leader,
    to: Option<&str>,
    timeout: Duration,
    until: Time,
) -> Result<Answer> {
    let mut released = None;
    loop {
        let seen = observation.first()?;
        let current = seen.read.observer().leadership(read_at());
        if let Some(leader) = current.leader().filter(|leader| leader.term > from.term) {
            return Ok(handed_over(seen.election, from, leader, to, released.map(|released| gap(released, leader))));
        }
        if let Leadership::Released { release, .. } = current {
            released.get_or_insert(release.received);
        }
        if clock::now() >= until {
            let within = spoken(timeout);
            let sentence = if released.is_some() {
                format!("{} has stood down, and nobody leads yet, {within} after the request", from.shown())
            } else {
                let but = silence(seen, read_at()).unwrap_or_else(|| "it still may: see neli-run status".to_owned());
                format!("{} has been asked, and has not stood down within {within}; {but}", from.shown())
            };
            return Ok(not_resigned(seen.election, TIMED_OUT, Some(from), sentence));
        }
        observation.next_or_silence(until).await?;
    }
}

/// The answer that this leader has come after `from`, and nobody led in between for `gap`.
fn handed_over(
    election: &ElectionId,
    from: &Leader,
    leader: &Leader,
    to: Option<&str>,
    gap: Option<Duration>,
) -> Answer {
    let (name, has_same_name) = (leader.shown(), leader.shown() == from.shown());
    let members = leader.member.as_ref().zip(from.member.as_ref());
    let is_same = members.map_or(has_same_name, |(next, before)| next == before);
    let again = if is_same { " again" } else { "" };
    let another_of = if has_same_name && !is_same { "another candidate named " } else { "" };
    let missed = to.filter(|to| *to != name || is_same);
    let but = missed.map_or_else(String::new, |to| format!(", and not {to}"));
    let for_so_long = gap.map_or_else(String::new, |gap| format!("; nobody led for {}", span(gap)));
    let sentence = format!("{another_of}{name} leads{again}, term {}{but}{for_so_long}", leader.term);
    let outcome = if missed.is_some() { ANOTHER_LEADS } else { RESIGNED };
    Answer { handover: handover(Some(from), Some(leader), gap), ..Answer::new(election, outcome, sentence) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::reading::HeardBefore;

    #[test]
    fn that_nobody_leads_is_not_said_by_a_silence_that_may_be_kafka_s() {
        let heard = HeardBefore::new();
        let answer = nobody_leads(heard.seen(), read_at());
        assert_eq!(answer.outcome, UNKNOWN, "{}", answer.sentence);
    }
}
