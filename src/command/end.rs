//! `end`: ends an election.

use anyhow::Result;
use neli_kafka::ElectionId;
use neli_proto::record::{Body, What};

use crate::cli::parsed_args::ParsedArgs;
use crate::command::look::TIMEOUT;
use crate::command::reading::{self, Observation, Seen, read_at};
use crate::command::request::{
    Answer, Appended, Ask, HEARD_WITHIN, NO_ANSWER, NOT_CONFIRMED, Outcome, add, answered, ask_candidates, operator,
    request, see,
};
use crate::command::wording::named;
use crate::exit::{ExitStatus, or_no_answer};
use crate::report::election::sentence;
use crate::text::one_line;

const ENDED: Outcome = Outcome { word: "ended", status: 0 };
/// An end affects leader and standbys: if there are none it would have no effect, and the name may be mistyped.
const NOBODY_STANDS: Outcome = Outcome { word: "nobody-stands", status: 3 };

/// Ends the election, or with `--all-roles` those of all roles: every candidate stops its job and exits.
///
/// # Errors
///
/// Kafka refuses permanently or does not answer in time (1); the user has not confirmed (1); there is neither a leader nor a standby (3); the
/// group has several roles and none is named (125); or stdout can't be written.
pub fn main(args: &ParsedArgs) -> Result<ExitStatus> {
    let end = &Ask::of(args, TIMEOUT)?;
    let no_answer = |why: String| vec![not_ended(&end.look.election, NO_ANSWER, &why)];
    answered(&or_no_answer(reading::run(ending(end)), no_answer)?, end.look.json)
}

/// Ends the elections.
async fn ending(end: &Ask) -> Result<Vec<Answer>> {
    let Ask { look, all_roles, force, .. } = end;
    let only_one = (!all_roles).then_some("--role says which is to be ended, and --all-roles ends them all");
    // It is read even with `--force`: if the topic does not exist, there is nothing to end.
    let mut observation = see(look, only_one).await?;
    let lacks_candidate = |observation: &Observation| {
        observation.seen().any(|seen| seen.no_record().is_none() && nobody_to_end(seen).is_some())
    };
    if !force && lacks_candidate(&observation) {
        let is_heard = |observation: &Observation, _| Ok(!lacks_candidate(observation));
        ask_candidates(&look.access, &mut observation, look.timeout.min(HEARD_WITHIN), is_heard).await?;
    }
    let all: Vec<(Seen<'_>, Option<String>)> =
        observation.seen().map(|seen| (seen, nobody_to_end(seen).filter(|_| !force))).collect();
    let wanted: Vec<Seen<'_>> = all.iter().filter(|(_, futile)| futile.is_none()).map(|(seen, _)| *seen).collect();
    let is_wanted = wanted.is_empty() || end.is_wanted(|| question(&wanted));
    let mut endings = Vec::new();
    for (Seen { election, .. }, futile) in all {
        let ending = match futile {
            Some(why) => Ok(not_ended(election, NOBODY_STANDS, &why)),
            None if is_wanted => end_one(end, election).await,
            None => Ok(not_ended(election, NOT_CONFIRMED, "it was not confirmed")),
        };
        if !add(&mut endings, ending, |refusal| not_ended(election, NO_ANSWER, refusal))? {
            break;
        }
    }
    Ok(endings)
}

async fn end_one(Ask { look, reason, .. }: &Ask, election: &ElectionId) -> Result<Answer> {
    let (by, reason) = (Some(operator()), reason.clone());
    let body = Body::Request { what: What::End, term: None, by, reason, successor: None };
    let name = named(election);
    let (outcome, sentence) = match request(look, election, body).await? {
        Appended::Yes => {
            (ENDED, format!("{name} is ended: {CONSEQUENCE}; a candidate that starts later stands for election again"))
        }
        Appended::No(why) => return Ok(not_ended(election, NO_ANSWER, &why)),
        Appended::Unknown(why) => {
            let then = format!("if Kafka has taken the request, {CONSEQUENCE}: see neli-run status");
            (NO_ANSWER, format!("whether {name} is ended is unknown: {why}; {then}"))
        }
    };
    Ok(Answer::new(election, outcome, sentence))
}

fn not_ended(election: &ElectionId, outcome: Outcome, why: &str) -> Answer {
    Answer::new(election, outcome, format!("{} was not ended: {why}", named(election)))
}

/// Why an end would have no effect, if nobody leads or stands by.
fn nobody_to_end(seen: Seen<'_>) -> Option<String> {
    let at = read_at();
    let current = seen.read.leadership(at);
    let is_nobody_there = current.is_vacant() && seen.read.observer().standbys(at).is_empty();
    is_nobody_there.then(|| {
        let why = seen.no_record().unwrap_or_else(|| format!("{}, and nobody stands by", sentence(current)));
        format!("{why}; --force writes the request anyway")
    })
}

/// The consequence of an end for the candidates.
const CONSEQUENCE: &str =
    "its candidates stop its job, at the latest when its lease ends, and exit if they stand for nothing else";

/// What the user is asked.
fn question(wanted: &[Seen<'_>]) -> String {
    let at = read_at();
    let state = |seen: &Seen<'_>| {
        let standbys = seen.read.observer().standbys(at).len();
        let current = sentence(seen.read.observer().leadership(at));
        format!("{}: {}; standbys: {standbys}.", one_line(&named(seen.election)), one_line(&current))
    };
    let states: Vec<String> = wanted.iter().map(state).collect();
    let (it_is, this) = if wanted.len() == 1 { ("it is", "this election") } else { ("they are", "these elections") };
    format!(
        "{} If {it_is} ended, {CONSEQUENCE}. First stop what starts candidates again (systemd's Restart=always, Kubernetes), or they stand for \
         election again.\nEnd {this}? [y/N] ",
        states.join("\n")
    )
}
