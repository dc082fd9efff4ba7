//! `forget`: lets a key, or the newest window, run again.

use anyhow::{Result, bail};
use neli_kafka::{ElectionId, FactsTopic, clock};
use neli_proto::fact::{Account, Fact, Facts, Outcome as RunOutcome, Place, UNREADABLE};
use neli_proto::record::Offset;
use serde_json::json;

use crate::calendar::has_beginning;
use crate::cli::parsed_args::{ParsedArgs, Value};
use crate::cli::validate::{validate_group, validate_key};
use crate::command::facts::{self, OF_WINDOWS};
use crate::command::look::TIMEOUT;
use crate::command::reading::{self, Seen, read_at};
use crate::command::request::{
    Answer, Appended, Ask, NO_ANSWER, NOT_CONFIRMED, Outcome, answered, append, operator, see,
};
use crate::command::wording::named;
use crate::exit::{ExitStatus, or_no_answer};
use crate::text::one_line;

const FORGOTTEN: Outcome = Outcome { word: "forgotten", status: 0 };
/// The key is running.
const RUNNING: Outcome = Outcome { word: "running", status: 2 };
/// No fact keeps the key from running.
const NOTHING_RECORDED: Outcome = Outcome { word: "nothing-recorded", status: 3 };
/// The recorded facts could not be read.
const UNKNOWN: Outcome = Outcome { word: "unknown", status: 4 };

/// Records that a key, or the newest window, must run again.
///
/// # Errors
///
/// Kafka refuses permanently, or stdout can't be written; and every unsuccessful result, with its own status.
pub fn main(args: &ParsedArgs) -> Result<ExitStatus> {
    let (key, forget) = (key(args)?, &Ask::of(args, TIMEOUT)?);
    let no_answer = |why| {
        let sentence = format!("can't tell whether the key runs now: {why}");
        answer(&forget.look.election, key.as_deref(), UNKNOWN, sentence)
    };
    let answer = or_no_answer(reading::run(outcome(forget, key.as_deref())), no_answer)?;
    answered(&[answer], forget.look.json)
}

/// The answer; the key is that of the newest window if none is given, once it is known.
fn answer(election: &ElectionId, key: Option<&str>, outcome: Outcome, sentence: String) -> Answer {
    Answer { key: json!({ "key": key }), ..Answer::new(election, outcome, sentence) }
}

/// The key; `None` for the newest window.
fn key(args: &ParsedArgs) -> Result<Option<String>> {
    // A variable is about the candidates that have it.
    let key = match (args.value("once").filter(Value::is_option), args.flag("newest-window")?.is_some()) {
        (Some(once), true) => return Err(once.refuse("can't be combined with --newest-window")),
        (_, true) => None,
        (Some(once), false) => Some(validate_key(&once)?),
        (None, false) => bail!("--once KEY or --newest-window is required"),
    };
    validate_group(args, "")?;
    Ok(key)
}

async fn outcome(forget: &Ask, key: Option<&str>) -> Result<Answer> {
    let Ask { look, force, .. } = forget;
    let observation = see(look, Some("--role says which is meant")).await?;
    let (seen, at) = (observation.first()?, read_at());
    let election = seen.election;
    let not_done = |outcome, sentence| Ok(answer(election, key, outcome, sentence));
    let topic = FactsTopic::of(election, key);
    let read = facts::read(&topic, look).await?;
    let unreadable = facts::unreadable(&read, key);
    if !unreadable.is_empty() && !force {
        return not_done(UNKNOWN, format!("topic {:?}: {UNREADABLE}", topic.name));
    }
    let mut facts = read.clone();
    for place in &unreadable {
        facts.take(*place, None);
    }
    if let Some(key) = key {
        facts::learn_release(&mut facts, key, seen);
    }
    // What is before the first time of a schedule is no window that could run again.
    let is_one = |(fact, _): &(&Fact, &str)| fact.window.is_none_or(has_beginning);
    let recorded = facts::recorded(&facts, seen, at).filter(is_one);
    if let (Some(key), None, true) = (key, recorded, read == Facts::default())
        && facts::has_windows(election, look).await?
    {
        return not_done(NOTHING_RECORDED, format!("{key}: {OF_WINDOWS}"));
    }
    if recorded.is_none() && unreadable.is_empty() && (key.is_none() || !force) {
        return not_done(NOTHING_RECORDED, nothing_recorded(&topic, key));
    }
    if let Some((fact, facts::RUNNING)) = recorded
        && !force
    {
        let run = facts::row(fact, clock::wall_ms()).1;
        // The leader of a schedule runs no window twice (S4).
        let again = if fact.window.is_some() { consequence(fact) } else { "it runs once more after this run" };
        let sentence = format!("{run}: it runs now; with --force, whether this run succeeds or fails, {again}");
        return Ok(answer(election, Some(&fact.key), RUNNING, sentence));
    }
    let recorded = recorded.map(|(fact, _)| fact);
    let fact = fact_of(key, recorded, &read, seen);
    // If no window could be read, the message can't contain one.
    let named_key = Some(&*fact.key).filter(|key| !key.is_empty());
    let answer = |outcome, sentence| Ok(answer(election, named_key, outcome, sentence));
    if !forget.is_wanted(|| question(election, &fact, recorded)) {
        return answer(NOT_CONFIRMED, format!("{} was not forgotten: it was not confirmed", fact.key));
    }
    let tombstones = unreadable.iter().map(|place| (topic.key_at(*place), None));
    let forgotten = named_key.map(|_| (topic.key_at(Place::Forgotten), Some(fact.to_bytes())));
    let of_facts = ElectionId { topic: topic.name.clone(), partition: 0, ..election.clone() };
    let what = named_key.unwrap_or("what can't be read");
    for (key, value) in tombstones.chain(forgotten) {
        let sentence = match append(&look.access, &of_facts, look.timeout, key, value.as_deref()).await? {
            Appended::Yes => continue,
            Appended::No(why) => format!("{what} was not forgotten: {why}"),
            Appended::Unknown(why) => {
                let name = &topic.name;
                let made = format!("if topic {name:?} does not exist, start a candidate first, which makes it; ");
                let made = if read == Facts::default() { &*made } else { "" };
                format!("whether {what} is forgotten is unknown: {why}; {made}run the command again to make sure")
            }
        };
        return answer(NO_ANSWER, sentence);
    }
    answer(FORGOTTEN, format!("{}: {what} is forgotten: {}", named(election), consequence(&fact)))
}

fn nothing_recorded(topic: &FactsTopic, key: Option<&str>) -> String {
    let name = &topic.name;
    match key {
        Some(key) => format!("{key}: nothing is recorded in topic {name:?} or the journal that keeps it from running"),
        None => format!("no window is recorded in topic {name:?} that is not forgotten already"),
    }
}

/// The consequence of the record for the candidates.
fn consequence(fact: &Fact) -> &'static str {
    if fact.window.is_some_and(|window| window.until_ms <= clock::wall_ms()) {
        "no candidate runs it any more, since this window is over by the clock of this machine"
    } else if fact.window.is_some() {
        "a candidate with --window that stands by, or starts in this window, runs the job again; with --schedule the next leader does, while \
         the window lasts (neli-run resign lets another lead)"
    } else {
        "a candidate with it that stands by, or starts next, runs the job again"
    }
}

/// What the user is asked.
fn question(election: &ElectionId, fact: &Fact, recorded: Option<&Fact>) -> String {
    let shown = recorded
        .map_or_else(|| format!("{}: nothing is recorded", fact.key), |fact| facts::row(fact, clock::wall_ms()).1);
    format!(
        "{}: {}. If it is forgotten, {}.\nForget it? [y/N] ",
        one_line(&named(election)),
        one_line(&shown),
        consequence(fact)
    )
}

/// The record: facts about runs whose claims are before the journal's present end no longer count.
fn fact_of(key: Option<&str>, recorded: Option<&Fact>, facts: &Facts, seen: Seen<'_>) -> Fact {
    let journal: Offset = seen.read.observer().journal().next() - 1;
    // In a journal that was created again, terms are lower.
    let known = [&facts.done, &facts.attempt].into_iter().flatten().map(|fact| fact.term);
    let term = known.chain([journal]).max().unwrap_or(journal);
    let forgets =
        Place::ALL.into_iter().filter_map(|place| facts.at(place)).map(|fact| fact.forgets).max().unwrap_or(0);
    let key = key.map_or_else(|| recorded.map_or_else(Box::default, |fact| fact.key.clone()), Box::from);
    // Those who look show what the newest fact tells of all runs and of the schedule.
    let mut account = Account::default();
    account.read(facts);
    let Account { schedule, timezone, .. } = recorded.map(|fact| fact.account.clone()).unwrap_or_default();
    Fact {
        window: recorded.and_then(|fact| fact.window),
        name: Some(operator()),
        at_ms: Some(clock::wall_ms()),
        forgets: forgets.saturating_add(1),
        account: Account { schedule, timezone, ..account },
        ..Fact::new(key, RunOutcome::Forgotten, term)
    }
}
