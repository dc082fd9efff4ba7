//! `end`: ends an election.

use std::io::{self, IsTerminal, Write};

use neli::program::{ElectionId, clock};
use neli_proto::observer::Leadership;
use neli_proto::record::{Body, What};
use serde::Serialize;

use crate::command::reading::{self, Seen, Unread, read_at};
use crate::command::request::{Appended, SeenElection, append, is_answered_yes, operator, record, see};
use crate::command::stdout;
use crate::command::wording::{leadership, named, no_role};
use crate::config::End;
use crate::exit::{ExitStatus, StartupError};
use crate::report::log::timestamp;
use crate::text::{json, one_line};

/// The result of `end`, and why nothing was ended.
struct Ending {
    election: ElectionId,
    outcome: &'static str,
    why: Option<String>,
    /// Whether it may have been ended.
    is_unknown: bool,
    has_more_roles: bool,
}

/// The result as JSON; docs/json.md describes it.
#[derive(Serialize)]
struct EndLine<'a> {
    ts: String,
    group: &'a str,
    role: String,
    outcome: &'static str,
    why: Option<String>,
}

/// Ends the election: every candidate stops its job and exits with 0.
///
/// # Errors
///
/// Kafka refuses permanently or does not answer in time (1); the user has not confirmed (1); there is neither a leader nor a standby (3);
/// or stdout can't be written.
pub fn main(end: &End) -> Result<ExitStatus, StartupError> {
    let Ending { election, outcome, why, is_unknown, has_more_roles } = reading::run(ending(end))?;
    let status = match (outcome, &why) {
        (NOBODY_TO_END, _) => ExitStatus::Answer(3),
        (_, None) => ExitStatus::Success,
        (_, Some(_)) => ExitStatus::Answer(1),
    };
    let name = named(&election);
    let text = match why {
        why if end.look.json => {
            let (ts, group, role) = (timestamp(clock::wall_ms()), election.group.as_str(), election.label());
            json(&EndLine { ts, group, role, outcome, why })
        }
        Some(why) => {
            let sentence = if is_unknown {
                format!("whether {name} is ended is unknown: {why}")
            } else {
                format!("{name} was not ended: {why}")
            };
            return Err(StartupError::with(status, sentence));
        }
        None => format!(
            "{name} is ended: {}; a candidate that starts later stands for election \
            again",
            consequence(has_more_roles)
        ),
    };
    stdout::written(writeln!(io::stdout(), "{text}"))?;
    Ok(status)
}

async fn ending(end: &End) -> Result<Ending, StartupError> {
    let End { look, is_confirmed, force, reason } = end;
    let access = reading::access(&look.client)?;
    let mut ending = Ending {
        election: look.election.clone(),
        outcome: "ended",
        why: None,
        is_unknown: false,
        has_more_roles: false,
    };
    // The election is read even with `--force`: if the topic does not exist, there is nothing to end.
    let SeenElection { place, seen, .. } = match see(&access, look).await {
        Ok(seen) => seen,
        Err(Unread::Refused(refusal)) => return Err(refusal),
        Err(Unread::NoAnswer(why)) => return Ok(Ending { outcome: "no-answer", why: Some(why), ..ending }),
    };
    (ending.election, ending.has_more_roles) = (place.election, seen.others.mapping.is_some());
    if !force && let Some(why) = nobody_to_end(&ending.election, &seen) {
        return Ok(Ending { outcome: NOBODY_TO_END, why: Some(why), ..ending });
    }
    if !is_confirmed && io::stdin().is_terminal() && !is_wanted(&ending.election, &seen) {
        return Ok(Ending { outcome: "not-confirmed", why: Some("it was not confirmed".to_owned()), ..ending });
    }
    let body = Body::Request { what: What::End, term: None, by: Some(operator()), reason: reason.clone() };
    Ok(match append(&access, &ending.election, look.timeout, record(&ending.election, body)).await? {
        Appended::Yes => ending,
        Appended::No { why } => Ending { outcome: "no-answer", why: Some(why), ..ending },
        Appended::Unknown { why } => {
            let candidates = consequence(ending.has_more_roles);
            let why = format!("{why}; if Kafka has taken the request, {candidates}: see neli-run status");
            Ending { outcome: "no-answer", is_unknown: true, why: Some(why), ..ending }
        }
    })
}

/// An end affects leader and standbys: if there are none it would have no effect, and the name may be mistyped.
const NOBODY_TO_END: &str = "nobody-stands";

/// Why an end would have no effect, if so.
fn nobody_to_end(election: &ElectionId, seen: &Seen) -> Option<String> {
    // For a role that does not exist, the journal may not even show that it has no leader.
    if let Some(roles) = seen.others.other_roles(election) {
        return Some(format!("{} has {}", election.group, no_role(election, roles)));
    }
    let at = read_at();
    let current = seen.observer.leadership(at);
    if matches!(current, Leadership::Led { .. } | Leadership::Unknown) || !seen.observer.standbys(at).is_empty() {
        return None;
    }
    let why = seen.no_record(election).unwrap_or_else(|| format!("{}, and nobody stands by", leadership(current)));
    Some(format!("{why}; --force writes the request anyway"))
}

/// The consequence of an end for the candidates.
const fn consequence(has_more_roles: bool) -> &'static str {
    if has_more_roles {
        "its candidates stop its job, and exit with 0 when no other role is left to them"
    } else {
        "its candidates stop their jobs and exit with 0"
    }
}

/// Asks the user on the terminal.
fn is_wanted(election: &ElectionId, seen: &Seen) -> bool {
    let at = read_at();
    let standbys = match seen.observer.standbys(at).len() {
        0 => "nobody stands by".to_owned(),
        1 => "1 candidate stands by".to_owned(),
        count => format!("{count} candidates stand by"),
    };
    let question = format!(
        "{}: {}; {standbys}. If it is ended, {}. First stop what starts candidates again (systemd's \
         Restart=always, Kubernetes), or they stand for election again.\nEnd this election? [y/N] ",
        one_line(&named(election)),
        one_line(&leadership(seen.observer.leadership(at))),
        consequence(seen.others.mapping.is_some())
    );
    is_answered_yes(&question)
}
