//! `resign`: asks the leader to stand down.

use std::time::Duration;

use anyhow::Result;
use neli_kafka::{Access, ElectionId, Elections, clock};
use neli_proto::journal::View;
use neli_proto::leadership::{Leader, Leadership, Receipt};
use neli_proto::mapping::Mapping;
use neli_proto::observer::{NoRoom, Standby};
use neli_proto::record::{Body, What, question};
use neli_proto::time::{Time, millis};

use crate::command::reading::{self, Input, Observation, Place, Unread, read_at};
use crate::command::request::{
    Answer, Appended, HandoverPart, KeyedRecord, Outcome, Party, answered, append, operator, record,
};
use crate::command::wording::{named, nobody_has_room};
use crate::config::Resign;
use crate::exit::{ExitStatus, line_of};
use crate::report::election::{sentence, span};
use crate::report::log::spoken;

/// Another candidate leads.
const RESIGNED: Outcome = Outcome::done("resigned");
/// No other candidate leads in time, or Kafka accepted no request.
const TIMED_OUT: Outcome = Outcome::not_done("timed-out", 1);
/// There is no standby, so nobody would lead.
const NOBODY_STANDS_BY: Outcome = Outcome::not_done("nobody-stands-by", 2);
/// There is no leader.
const VACANT: Outcome = Outcome::not_done("vacant", 3);
/// The leader is unknown.
const UNKNOWN: Outcome = Outcome::not_done("unknown", 4);

/// Asks the leader to stand down, and waits until another candidate leads.
///
/// # Errors
///
/// Kafka refuses permanently, the log can't be read, or stdout can't be written; and every unsuccessful result, with its own status.
pub fn main(resign: &Resign) -> Result<ExitStatus> {
    let mut handovers = reading::run(hand_over(resign))?;
    if handovers.len() > 1 {
        for one in &mut handovers {
            one.sentence = format!("{}: {}", named(&one.election), one.sentence);
        }
    }
    answered(&handovers, resign.look.json)
}

fn party(leader: &Leader) -> Party {
    Party { name: leader.shown().to_owned(), term: leader.term }
}

/// The answer that nobody else leads.
fn not_resigned(election: &ElectionId, outcome: Outcome, from: Option<Party>, sentence: String) -> Answer {
    let handover = Some(HandoverPart { from, ..HandoverPart::default() });
    Answer { election: election.clone(), outcome, why: Some(sentence.clone()), sentence, key: None, handover }
}

fn unknown(election: &ElectionId, why: &str) -> Answer {
    not_resigned(election, UNKNOWN, None, format!("can't tell who leads: {why}"))
}

/// Hands over the role, or with `--all-roles` one role after the other.
async fn hand_over(resign: &Resign) -> Result<Vec<Answer>> {
    let Resign { look, all_roles, .. } = resign;
    let access = reading::access(&look.client)?;
    let place = match Place::find(&access, &look.election, look.timeout, |_| {}).await {
        Ok(place) => place,
        Err(Unread::Refused(refusal)) => return Err(refusal),
        Err(Unread::NoAnswer(why)) => return Ok(vec![unknown(&look.election, &why)]),
    };
    if !all_roles {
        place.one(
            "--role says whose leader is to stand down, and --all-roles asks the leaders of all, one after the other",
        )?;
    }
    let mut handovers = Vec::new();
    for one in place.each() {
        let election = one.elections.first().cloned();
        match (hand_over_one(resign, &access, one).await, election) {
            (Ok(handover), _) => handovers.push(handover),
            // What was done before is to be printed.
            (Err(refusal), Some(election)) if !handovers.is_empty() => {
                handovers.push(unknown(&election, &line_of(&refusal)));
                break;
            }
            (Err(refusal), _) => return Err(refusal),
        }
    }
    Ok(handovers)
}

async fn hand_over_one(resign: &Resign, access: &Access, place: Place) -> Result<Answer> {
    let Resign { look, force, reason, .. } = resign;
    let election = &place.one("")?.clone();
    let mut observation = match Observation::of_leaders(access, place, look.timeout).await {
        Ok(observation) => observation,
        Err(Unread::Refused(refusal)) => return Err(refusal),
        Err(Unread::NoAnswer(why)) => return Ok(unknown(election, &why)),
    };
    let (at, seen) = (read_at(), observation.first()?);
    let current = seen.observer().leadership(at);
    let Some(from) = current.may_lead().map(party) else {
        let outcome = if current.is_unknown() { UNKNOWN } else { VACANT };
        let no_record = seen.no_record().filter(|_| current.is_vacant());
        let sentence = no_record.unwrap_or_else(|| sentence(current).to_string());
        return Ok(not_resigned(election, outcome, None, sentence));
    };
    if seen.observer().standbys(at).is_empty() && !force {
        let sentence = format!("{} leads, and nobody stands by; --force asks it to stand down anyway", from.name);
        return Ok(not_resigned(election, NOBODY_STANDS_BY, Some(from), sentence));
    }
    let (standbys, leader) = (seen.observer().standbys(at), seen.observer().leaders_hello());
    let roles = observation.place.mapping.as_ref().map_or(1, Mapping::count);
    let no_room = leader.and_then(|leader| NoRoom::for_successor(&standbys, leader, roles));
    if let Some(no_room) = no_room.filter(|_| !force) {
        let why = nobody_has_room(&no_room, roles);
        let sentence = format!("{} leads, and {why}; --force asks it to stand down anyway", from.name);
        return Ok(not_resigned(election, NOBODY_STANDS_BY, Some(from), sentence));
    }
    let said: Vec<String> = standbys.iter().map(said_hello).collect();
    if !force && !answers(access, &mut observation, look.timeout).await? {
        let sentence = format!(
            "{} leads, and no standby has answered within {}; {}, and may have died; --force asks {0} to stand down anyway",
            from.name,
            spoken(look.timeout),
            said.join(", ")
        );
        return Ok(not_resigned(election, NOBODY_STANDS_BY, Some(from), sentence));
    }
    let until = clock::now() + look.timeout;
    let body =
        Body::Request { what: What::Resign, term: Some(from.term), by: Some(operator()), reason: reason.clone() };
    let sentence = match append(access, election, look.timeout, record(election, body)).await? {
        Appended::Yes => {
            let asked = Asked { election, from, timeout: look.timeout, until };
            return successor(&mut observation, asked).await;
        }
        Appended::No { why } => format!("{} was not asked: {why}", from.name),
        Appended::Unknown { why } => format!(
            "whether {0} was asked is unknown: {why}; if Kafka has taken the request, {0} stands down: see neli-run status",
            from.name
        ),
    };
    Ok(not_resigned(election, TIMED_OUT, Some(from), sentence))
}

/// Asks the candidates for a sign of life. Returns whether a standby gives one in time: a standby that has died counts as one for 75 s, and the
/// leader's job would be stopped for nobody. A candidate of an earlier version does not answer, but says hello every 30 s.
async fn answers(access: &Access, observation: &mut Observation, timeout: Duration) -> Result<bool> {
    let asked = clock::now();
    let of_hellos = ElectionId { partition: Elections::PARTITION_OF_HELLOS, ..observation.first()?.election.clone() };
    let record = KeyedRecord { key: of_hellos.hello_key(), value: Some(question(&operator())) };
    // If it is not appended, a regular hello is as good as an answer.
    append(access, &of_hellos, timeout, record).await?;
    let until = asked + timeout;
    loop {
        let mut standbys = observation.first()?.observer().standbys(read_at()).into_iter();
        if standbys.any(|standby| standby.candidate.received.read > asked) {
            return Ok(true);
        }
        if let Input::Timeout = observation.next(Some(until)).await?.input {
            return Ok(false);
        }
    }
}

/// When a standby last said hello: `second said hello 40s ago`.
fn said_hello(standby: &Standby<'_>) -> String {
    format!("{} said hello {} ago", standby.candidate.shown(), span(standby.age))
}

/// A leader that was asked to stand down, and the time limit.
struct Asked<'a> {
    election: &'a ElectionId,
    from: Party,
    /// How long to wait for another leader, and until when.
    timeout: Duration,
    until: Time,
}

/// The time between a release and the next leader's claim, by the broker's timestamps, as in `history`. Records without timestamps are
/// compared by the times at which they were read.
fn gap(released: Receipt, next: &Leader) -> Duration {
    match (released.written_ms, next.claimed_ms) {
        (Some(released_ms), Some(claimed_ms)) => Duration::from_millis(claimed_ms.saturating_sub(released_ms)),
        (None, _) | (_, None) => next.last_record.read.since(released.read),
    }
}

/// Waits for another leader, and measures the time without a leader.
async fn successor(observation: &mut Observation, asked: Asked<'_>) -> Result<Answer> {
    let Asked { election, from, timeout, until } = asked;
    let mut released = None;
    loop {
        let observer = observation.first()?.observer();
        match (observer.journal().view(), observer.leader(), observer.leadership(read_at())) {
            (View::Led(term), Some(leader), _) if term.offset > from.term => {
                let gap = released.map(|released| gap(released, leader));
                let to = party(leader);
                let again = if to.name == from.name { " again" } else { "" };
                let for_so_long = gap.map_or_else(String::new, |gap| format!("; nobody led for {}", span(gap)));
                let sentence = format!("{} leads{again}, term {}{for_so_long}", to.name, to.term);
                let handover = HandoverPart { from: Some(from), to: Some(to), gap_ms: gap.map(millis) };
                let election = election.clone();
                return Ok(Answer {
                    election,
                    outcome: RESIGNED,
                    why: None,
                    sentence,
                    key: None,
                    handover: Some(handover),
                });
            }
            (_, _, Leadership::Released { release, .. }) => {
                released.get_or_insert(release.received);
            }
            _ => {}
        }
        let is_late = clock::now() >= until;
        let input = observation.next(Some(until)).await?.input;
        if is_late || matches!(input, Input::Timeout) {
            let within = spoken(timeout);
            let sentence = match released {
                Some(_) => format!("{} has stood down, and nobody leads yet, {within} after the request", from.name),
                None => format!(
                    "{} has been asked, and has not stood down within {within}; it still may: see neli-run status",
                    from.name
                ),
            };
            return Ok(not_resigned(election, TIMED_OUT, Some(from), sentence));
        }
    }
}
