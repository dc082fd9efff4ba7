//! Scenarios of a candidate, a supervisor, a guard and a schedule, as text: events, and below each, indented, the resulting actions and
//! the next timeout. `UPDATE=1 cargo test --test scenarios` writes the actions; the difference is reviewed.
//!
//! A scenario begins with `candidate`, `guard`, `schedule` or `supervisor`. Times count from its first line. `timeout` advances the time
//! to the last timeout and handles it.

use std::fs;
use std::path::{Path, PathBuf};

mod candidate;
mod guard;
#[path = "../proof/mod.rs"]
mod proof;
#[path = "../records/mod.rs"]
mod records;
mod schedule;
mod supervisor;
mod words;

use neli_proto::time::Time;
use words::{Words, shown_time, time};

/// The object of a scenario.
trait Subject {
    /// The scenario's time.
    fn now(&mut self) -> &mut Time;
    /// Handles an event.
    fn meet(&mut self, words: &Words<'_>);
    fn handle_timeout(&mut self, now: Time);
    fn poll_timeout(&self) -> Option<Time>;
    /// The object's actions.
    fn actions(&mut self) -> Vec<String>;
}

/// Plays one line; returns the resulting actions.
fn play(subject: &mut dyn Subject, words: &Words<'_>) -> Vec<String> {
    match words.verb() {
        "time" => {
            let then = time(words.word(1));
            assert!(then >= *subject.now(), "time does not go back");
            *subject.now() = then;
            Vec::new()
        }
        "timeout" => {
            let before = *subject.now();
            let now = before.max(subject.poll_timeout().unwrap_or(before));
            *subject.now() = now;
            subject.handle_timeout(now);
            let mut actions = vec![format!("at {}", shown_time(now))];
            actions.extend(actions_of(subject));
            actions
        }
        _ => {
            subject.meet(words);
            actions_of(subject)
        }
    }
}

/// The actions, and the next timeout, which must be in the future because otherwise the program would use all of a CPU.
fn actions_of(subject: &mut dyn Subject) -> Vec<String> {
    let mut actions = subject.actions();
    if let Some(next) = subject.poll_timeout() {
        assert!(next > *subject.now(), "the timeout stays due: {}", shown_time(next));
        actions.push(format!("next: {}", shown_time(next)));
    }
    actions
}

#[test]
fn every_scenario_has_its_recorded_outcome() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut scenarios: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|ext| ext == "txt")).collect();
    scenarios.sort();
    assert!(!scenarios.is_empty());
    let mut changed = Vec::new();
    for path in scenarios {
        let written = fs::read_to_string(&path).unwrap();
        let actual = run(&written);
        if written == actual {
            continue;
        }
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, actual).unwrap();
        } else {
            changed.push(difference(&path, &written, &actual));
        }
    }
    assert!(
        changed.is_empty(),
        "{}\nUPDATE=1 cargo test --test scenarios writes the actual actions",
        changed.join("\n")
    );
}

/// The scenario with the actual actions.
#[expect(clippy::print_stdout, reason = "shown when a line panics: which one it was")]
fn run(written: &str) -> String {
    let mut subject: Option<Box<dyn Subject>> = None;
    let mut actual = String::new();
    let mut say = |line: &str| {
        actual.push_str(line);
        actual.push('\n');
    };
    for line in written.lines().filter(|line| !line.starts_with("    ")) {
        say(line);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words = Words::of(line);
        let actions = match (words.verb(), &mut subject) {
            ("candidate", _) => {
                let (born, actions) = candidate::Scenario::begin(&words);
                subject = Some(Box::new(born));
                actions
            }
            ("guard", _) => {
                subject = Some(Box::new(guard::Scenario::begin(&words)));
                Vec::new()
            }
            ("schedule", _) => {
                subject = Some(Box::new(schedule::Scenario::begin(&words)));
                Vec::new()
            }
            ("supervisor", _) => {
                subject = Some(Box::new(supervisor::Scenario::begin(&words)));
                Vec::new()
            }
            (_, Some(subject)) => {
                println!("{line}");
                play(subject.as_mut(), &words)
            }
            (verb, None) => panic!("{verb}: a scenario begins with candidate, guard, schedule or supervisor"),
        };
        words.check_all_used();
        for action in actions {
            say(&format!("    {action}"));
        }
    }
    actual
}

fn difference(path: &Path, written: &str, actual: &str) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let differs = written.lines().zip(actual.lines()).position(|(written, actual)| written != actual);
    let at = differs.unwrap_or_else(|| written.lines().count().min(actual.lines().count()));
    let line = |text: &str| text.lines().nth(at).unwrap_or("(its end)").to_owned();
    format!("{name}:{}\n  written: {}\n  actual: {}", at + 1, line(written), line(actual))
}
