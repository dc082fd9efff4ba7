//! The tables of docs/states.md: the actions of candidate, supervisor and guard in each state at each event. The objects
//! themselves make them. `UPDATE=1 cargo test --test tables` writes them, and the difference is reviewed.

mod candidate;
mod guard;
#[path = "../proof/mod.rs"]
mod proof;
#[path = "../records/mod.rs"]
mod records;
mod supervisor;

use std::fs;
use std::path::Path;

#[test]
fn the_tables_show_what_the_objects_do() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/states.md");
    let page = fs::read_to_string(&path).unwrap();
    let mut drawn = page.clone();
    for (name, table) in [
        ("candidate", candidate::table()),
        ("supervisor", supervisor::table()),
        ("guard", guard::table()),
        ("guard's supervisor", guard::table_of_supervisor()),
    ] {
        drawn = with_table(&drawn, name, &table);
    }
    if page == drawn {
        return;
    }
    assert!(std::env::var_os("UPDATE").is_some(), "UPDATE=1 cargo test --test tables writes:\n{drawn}");
    fs::write(&path, drawn).unwrap();
}

/// The page with this table between the markers with its name.
fn with_table(page: &str, name: &str, table: &str) -> String {
    let [begin, end] = ["begin", "end"].map(|mark| format!("<!-- table of the {name}: {mark} -->\n"));
    let parts = page.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    let (before, after) = parts.unwrap_or_else(|| panic!("{begin} and {end} are missing"));
    format!("{before}{begin}{table}{end}{after}")
}

/// A state's name, and a function that makes an object in that state.
type State<S> = (&'static str, fn() -> S);
/// An event's name, and a function that applies it.
type Happening<S> = (&'static str, fn(&mut S));

/// The object of a table.
trait Subject {
    /// The name of its state.
    fn state(&self) -> &'static str;
    /// Its actions, except for log messages.
    fn actions(&mut self) -> Vec<String>;
}

/// Actions that come together, and their name in the page.
const TOGETHER: [(&str, &str); 3] = [
    ("new guard, new producer, read anew", "begin anew"),
    ("kill the main group, kill the known", "kill"),
    ("kill the main group, kill all, by every means", "kill by every means"),
];

/// The table as a list in Markdown: an item for events that do the same in each state. Below it stand the events that do nothing.
fn drawn<S: Subject>(states: &[State<S>], events: &[Happening<S>]) -> String {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for (event, happens) in events {
        let outcomes: Vec<String> = states.iter().map(|(name, begin)| outcome(name, begin(), *happens)).collect();
        match rows.iter_mut().find(|(_, others)| *others == outcomes) {
            Some((names, _)) => *names = format!("{names}; {event}"),
            None => rows.push(((*event).to_owned(), outcomes)),
        }
    }
    let names: Vec<&str> = states.iter().map(|(name, _)| *name).collect();
    let (without_effect, with_effect): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|(_, outcomes)| outcomes.iter().all(String::is_empty));
    let mut table = String::new();
    let mut written: Vec<(&str, &[String])> = Vec::new();
    for (event, outcomes) in &with_effect {
        let all = joined(&names, outcomes);
        let short = written.iter().map(|(other, base)| difference(&names, outcomes, other, base));
        let short = short.min_by_key(|short| words(short)).filter(|short| words(short) * 4 <= words(&all) * 3);
        if short.is_none() {
            written.push((event.split("; ").next().unwrap_or(event), outcomes));
        }
        table += &["- **", event, "**: ", &short.unwrap_or(all), "\n"].concat();
    }
    for (event, _) in without_effect {
        table += &["\nNothing follows in any state from: ", &event, ".\n"].concat();
    }
    table
}

/// Each outcome once, with the states in which it follows.
fn joined(names: &[&str], outcomes: &[String]) -> String {
    let mut groups: Vec<(&String, Vec<&str>)> = Vec::new();
    for (outcome, name) in outcomes.iter().zip(names).filter(|(outcome, _)| !outcome.is_empty()) {
        match groups.iter_mut().find(|(other, _)| *other == outcome) {
            Some((_, states)) => states.push(name),
            None => groups.push((outcome, vec![name])),
        }
    }
    let shown = groups.into_iter().map(|(outcome, states)| format!("{}: {outcome}", listed(names, &states)));
    shown.collect::<Vec<_>>().join("; ")
}

/// The outcomes of an event, by the difference from those of another.
fn difference(names: &[&str], outcomes: &[String], other: &str, base: &[String]) -> String {
    let other_outcomes = outcomes.iter().zip(base).map(|(outcome, of_other)| match outcome.as_str() {
        _ if outcome == of_other => String::new(),
        "" => "nothing".to_owned(),
        _ => outcome.clone(),
    });
    format!("as for \"{other}\", but {}", joined(names, &other_outcomes.collect::<Vec<_>>()))
}

fn words(text: &str) -> usize {
    text.split(' ').count()
}

/// Some of these states, by those that are missing if these are one or two of many.
fn listed(names: &[&str], states: &[&str]) -> String {
    let [these, missing] = [true, false].map(|is_listed| {
        let some = names.iter().filter(|name| states.contains(name) == is_listed);
        some.map(|name| format!("*{name}*")).collect::<Vec<_>>()
    });
    match missing.len() {
        0 => "all".to_owned(),
        1 if these.len() > 2 => format!("all but {}", missing[0]),
        2 if these.len() > 4 => format!("all but {}", missing.join(" and ")),
        _ => these.join(", "),
    }
}

/// What follows: the next state, if it differs, and the actions.
fn outcome<S: Subject>(before: &str, mut subject: S, happens: fn(&mut S)) -> String {
    subject.actions();
    assert_eq!(subject.state(), before, "the way to this state leads there");
    happens(&mut subject);
    let actions = subject.actions().join(", ");
    let actions = TOGETHER.iter().fold(actions, |text, (all, name)| text.replace(all, name));
    let next = (subject.state() != before).then(|| format!("→{}", subject.state()));
    next.into_iter().chain((!actions.is_empty()).then_some(actions)).collect::<Vec<_>>().join(", ")
}
