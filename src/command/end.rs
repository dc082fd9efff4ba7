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
use crate::exit::{ExitStatus, NoAnswer};
use crate::report::election::sentence;
use crate::text::one_line;

const ENDED: Outcome = Outcome { word: "ended", status: 0 };
/// An end affects leader and standbys: if there are none it would have no effect, and the name may be mistyped.
const NOBODY_STANDS: Outcome = Outcome { word: "nobody-stands", status: 3 };

/// Ends the election, or with `--all-roles` those of all roles: every candidate stops its job and exits with 0.
///
/// # Errors
///
/// Kafka refuses permanently or does not answer in time (1); the user has not confirmed (1); there is neither a leader nor a standby (3); the
/// group has several roles and none is named (125); or stdout can't be written.
pub fn main(args: &ParsedArgs) -> Result<ExitStatus> {
    let end = &Ask::of(args, TIMEOUT)?;
    answered(&reading::run(ending(end))?, end.look.json)
}

/// Ends the elections.
async fn ending(end: &Ask) -> Result<Vec<Answer>> {
    let Ask { look, all_roles, force, .. } = end;
    let only_one = (!all_roles).then_some("--role says which is to be ended, and --all-roles ends them all");
    // It is read even with `--force`: if the topic does not exist, there is nothing to end.
    let mut observation = match see(look, only_one).await {
        Ok(read) => read,
        Err(error) => return Ok(vec![not_ended(&look.election, NO_ANSWER, error.downcast::<NoAnswer>()?.0)]),
    };
    let lacks_candidate =
        |observation: &Observation| observation.seen().any(|seen| seen.no_record().is_none() && is_nobody_there(seen));
    if !force && lacks_candidate(&observation) {
        let is_heard = |observation: &Observation, _| Ok(!lacks_candidate(observation));
        ask_candidates(&look.access, &mut observation, look.timeout.min(HEARD_WITHIN), is_heard).await?;
    }
    let candidates = consequence(observation.found.mapping.is_some() && !all_roles);
    let (mut endings, mut wanted) = (Vec::new(), Vec::new());
    for seen in observation.seen() {
        match nobody_to_end(seen).filter(|_| !force) {
            Some(why) => endings.push(not_ended(seen.election, NOBODY_STANDS, why)),
            None => wanted.push(seen),
        }
    }
    if !wanted.is_empty() && !end.is_wanted(|| question(&wanted, candidates)) {
        let not = |seen: &Seen<'_>| not_ended(seen.election, NOT_CONFIRMED, "it was not confirmed".to_owned());
        endings.extend(wanted.iter().map(not));
        wanted.clear();
    }
    for Seen { election, .. } in wanted {
        let ending = end_one(end, election, candidates).await;
        if !add(&mut endings, ending, |refusal| not_ended(election, NO_ANSWER, refusal.to_owned()))? {
            break;
        }
    }
    let of_role = |ending: &Answer| observation.seen().position(|seen| seen.election.key() == ending.election.key());
    endings.sort_by_key(of_role);
    Ok(endings)
}

async fn end_one(Ask { look, reason, .. }: &Ask, election: &ElectionId, candidates: &str) -> Result<Answer> {
    let (by, reason) = (Some(operator()), reason.clone());
    let body = Body::Request { what: What::End, term: None, by, reason, successor: None };
    Ok(match request(look, election, body).await? {
        Appended::Yes => {
            let name = named(election);
            let sentence =
                format!("{name} is ended: {candidates}; a candidate that starts later stands for election again");
            Answer::new(election, ENDED, None, sentence)
        }
        Appended::No(why) => not_ended(election, NO_ANSWER, why),
        Appended::Unknown(why) => {
            let why = format!("{why}; if Kafka has taken the request, {candidates}: see neli-run status");
            let sentence = format!("whether {} is ended is unknown: {why}", named(election));
            Answer { sentence, ..not_ended(election, NO_ANSWER, why) }
        }
    })
}

fn not_ended(election: &ElectionId, outcome: Outcome, why: String) -> Answer {
    let sentence = format!("{} was not ended: {why}", named(election));
    Answer::new(election, outcome, Some(why), sentence)
}

/// Whether nobody leads or stands by, so that an end would have no effect.
fn is_nobody_there(seen: Seen<'_>) -> bool {
    let at = read_at();
    seen.leadership(at).is_vacant() && seen.observer().standbys(at).is_empty()
}

/// Why an end would have no effect, if so.
fn nobody_to_end(seen: Seen<'_>) -> Option<String> {
    is_nobody_there(seen).then(|| {
        let current = seen.leadership(read_at());
        let why = seen.no_record().unwrap_or_else(|| format!("{}, and nobody stands by", sentence(current)));
        format!("{why}; --force writes the request anyway")
    })
}

/// The consequence of an end for the candidates.
const fn consequence(is_one_of_many: bool) -> &'static str {
    if is_one_of_many {
        "its candidates stop its job, at the latest when its lease ends, and exit with 0 when no other role is left to them"
    } else {
        "its candidates stop their jobs, at the latest when the lease ends, and exit with 0"
    }
}

/// What the user is asked.
fn question(wanted: &[Seen<'_>], candidates: &str) -> String {
    let at = read_at();
    let state = |seen: &Seen<'_>| {
        let standbys = match seen.observer().standbys(at).len() {
            0 => "nobody stands by".to_owned(),
            1 => "1 candidate stands by".to_owned(),
            count => format!("{count} candidates stand by"),
        };
        let current = sentence(seen.observer().leadership(at));
        format!("{}: {}; {standbys}.", one_line(&named(seen.election)), one_line(&current))
    };
    let states: Vec<String> = wanted.iter().map(state).collect();
    let (it_is, this) = if wanted.len() == 1 { ("it is", "this election") } else { ("they are", "these elections") };
    format!(
        "{} If {it_is} ended, {candidates}. First stop what starts candidates again (systemd's Restart=always, Kubernetes), or they stand for \
         election again.\nEnd {this}? [y/N] ",
        states.join("\n")
    )
}
