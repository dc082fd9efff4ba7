//! `status --once KEY`: the state of a key.

use anyhow::Result;
use neli_kafka::{FactsTopic, clock};
use neli_proto::fact::UNREADABLE;
use serde_json::json;

use crate::command::facts::{self, INTERRUPTED, OF_WINDOWS, learn_release, unreadable};
use crate::command::look::Look;
use crate::command::output;
use crate::command::reading::{self, read_at};
use crate::command::request::see;
use crate::command::wording::named;
use crate::exit::{ExitStatus, or_no_answer};
use crate::report::json::{election as head, joined, run};
use crate::text::{json, one_line};

const DONE: &str = "done";

/// Shows the state of the key. Exit status: 0 it is done; 3 it is not; 4 this can't be determined.
///
/// # Errors
///
/// Kafka refuses permanently, or stdout can't be written; and every state but done, with its own status.
pub(super) fn main(look: &Look, key: &str) -> Result<ExitStatus> {
    let known = reading::run(async {
        let observation = see(look, Some("--role says which is meant")).await?;
        let (seen, at) = (observation.first()?, read_at());
        let mut facts = facts::read(&FactsTopic::of(seen.election, Some(key)), look).await?;
        learn_release(&mut facts, key, seen);
        let recorded = facts::recorded(&facts, seen, at);
        let state = recorded.map_or("not-recorded", |(_, outcome)| outcome);
        // A candidate, too, looks for a success before it minds a record that it can't read.
        let known = if state != DONE && !unreadable(&facts, Some(key)).is_empty() {
            Err(UNREADABLE.to_owned())
        } else {
            Ok((state, recorded.map(|(fact, _)| fact.clone())))
        };
        let of_windows = matches!(known, Ok((_, None))) && facts::has_windows(seen.election, look).await?;
        // The request to forget the key, if it came after this run had begun.
        let request = facts.forgotten.as_ref().filter(|_| recorded.is_some_and(|(run, _)| facts.has_forgotten(run)));
        let forgotten = request.map(|request| facts::forgotten(request, at.wall_ms));
        Ok((seen.election.clone(), known, (of_windows.then_some(OF_WINDOWS), forgotten)))
    });
    let (election, known, (of_windows, forgotten)) =
        or_no_answer(known, |why| (look.election.clone(), Err(why), (None, None)))?;
    let (state, status, sentence) = match &known {
        Ok((state, fact)) => {
            let is_done = *state == DONE;
            let gone = if *state == INTERRUPTED { "; its runner is gone, and the next candidate runs it" } else { "" };
            let again = forgotten.as_ref().map_or_else(String::new, |forgotten| format!("; {forgotten}"));
            let shown = fact.as_ref().map(|fact| facts::row(fact, clock::wall_ms()).1 + &again);
            let shown = shown.unwrap_or_else(|| format!("{key}: {}", of_windows.unwrap_or("nothing is recorded")));
            (*state, if is_done { ExitStatus::SUCCESS } else { ExitStatus::VACANT }, format!("{shown}{gone}"))
        }
        Err(why) => ("unknown", ExitStatus::UNKNOWN, format!("can't tell whether {key} is done: {why}")),
    };
    let text = if look.json {
        json(&joined([
            head(clock::wall_ms(), &election),
            json!({
                "key": key,
                "state": state,
                "why": known.as_ref().err().map(String::as_str).or(of_windows).or(forgotten.as_deref()),
                "run": known.as_ref().ok().and_then(|(_, fact)| fact.as_ref()).map(run),
            }),
        ]))
    } else {
        one_line(&format!("{}: {sentence}", named(&election)))
    };
    output::print(&(text + "\n"))?;
    Ok(status)
}
