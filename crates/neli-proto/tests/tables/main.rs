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

/// The table in Markdown: a column for each state, a row for events that do the same in each of them. Below it stand the events that do nothing.
fn drawn<S: Subject>(states: &[State<S>], events: &[Happening<S>]) -> String {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for (event, happens) in events {
        let cells: Vec<String> = states.iter().map(|(name, begin)| cell(name, begin(), *happens)).collect();
        match rows.iter_mut().find(|(_, others)| *others == cells) {
            Some((names, _)) => *names = format!("{names}; {event}"),
            None => rows.push(((*event).to_owned(), cells)),
        }
    }
    let line = |first: &str, cells: &[String]| format!("| {first} | {} |\n", cells.join(" | "));
    let mut table = line("Event", &states.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>());
    table += &line("---", &vec!["---".to_owned(); states.len()]);
    let (without_effect, with_effect): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|(_, cells)| cells.iter().all(String::is_empty));
    for (names, cells) in with_effect {
        table += &line(&names, &with_repeats(&cells));
    }
    for (names, _) in without_effect {
        table += &["\nNothing follows in any state from: ", &names, ".\n"].concat();
    }
    table
}

/// The cells, with an arrow in each that is the same as the one to its left.
fn with_repeats(cells: &[String]) -> Vec<String> {
    let before = std::iter::once(None).chain(cells.iter().map(Some));
    let is_repeat = |(before, cell): (Option<&String>, &String)| before == Some(cell) && !cell.is_empty();
    before.zip(cells).map(|pair| if is_repeat(pair) { "←".to_owned() } else { pair.1.clone() }).collect()
}

/// A cell: the next state, if it differs, and the actions.
fn cell<S: Subject>(before: &str, mut subject: S, happens: fn(&mut S)) -> String {
    subject.actions();
    assert_eq!(subject.state(), before, "the way to this state leads there");
    happens(&mut subject);
    let actions = subject.actions();
    let follows = (subject.state() != before).then(|| format!("**{}**", subject.state()));
    follows.into_iter().chain((!actions.is_empty()).then(|| actions.join(", "))).collect::<Vec<_>>().join(": ")
}
