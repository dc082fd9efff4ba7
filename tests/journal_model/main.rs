//! An exhaustive search for two jobs at once, over the logic itself.

#[path = "../../src/logic/candidate.rs"]
mod candidate;
#[path = "../../src/logic/flaw.rs"]
mod flaw;
#[path = "../../src/logic/journal.rs"]
mod journal;
#[path = "../../src/logic/listener.rs"]
mod listener;
#[path = "../../src/logic/precedence.rs"]
mod precedence;
#[path = "../../src/logic/record.rs"]
mod record;
#[path = "../../src/logic/supervisor.rs"]
mod supervisor;
#[path = "../../src/logic/time.rs"]
mod time;

mod fingerprint;
mod flaws;
mod guard;
mod kafka;
mod machine;
mod random;
mod search;
mod setup;
mod world;

mod worlds;

use std::time::Instant;

use flaws::Broken;
use search::{Found, search};
use worlds::{CASES, Case};

/// Searches one world with its wrong rules and with the right ones.
fn look_into(case: &Case) {
    let name = (case.setup)().name;
    for rule in case.caught {
        let found = timed(name, case, Some(*rule));
        assert!(found.story.is_some(), "{rule:?} was not caught");
    }
    let found = timed(name, case, None);
    if let Some(story) = found.story {
        panic!("{name}: {:?} after {} steps\n{}", story.breach, story.steps, story.text);
    }
}

fn timed(name: &str, case: &Case, rule: Option<Broken>) -> Found {
    let begun = Instant::now();
    let found = search((case.setup)(), rule);
    let rule = rule.map_or_else(|| "the right rules".to_owned(), |rule| format!("{rule:?}"));
    let (states, depth, took) = (found.states, found.depth, search::seconds(begun.elapsed()));
    match &found.story {
        Some(story) => println!("{name}: {rule}: caught in {} steps, {states} states, {took}", story.steps),
        None => println!("{name}: {rule}: {states} states, {depth} deep, {took}"),
    }
    if let Some(story) = &found.story
        && std::env::var_os("STORIES").is_some()
    {
        println!("{}", story.text);
    }
    found
}

#[test]
fn all() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut bad = vec![];
    for case in CASES.iter().filter(|case| (case.setup)().name.contains(&only)) {
        if std::panic::catch_unwind(|| look_into(case)).is_err() {
            bad.push((case.setup)().name);
        }
    }
    assert!(bad.is_empty(), "{bad:?}");
}
