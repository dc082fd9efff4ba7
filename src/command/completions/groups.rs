//! The groups that a shell offers for `--group`: those that `list` finds, if the line or the environment contains the access to Kafka and
//! Kafka answers at once. No error is printed, since it would appear in the middle of the line that a user types.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::cli::parsed_args::Environment;
use crate::cli::validate::look;
use crate::cli::{self, Request};
use crate::command::list;
use crate::config::List;
use crate::exit::ExitStatus;

/// The longest wait after Tab was pressed.
const WITHIN: Duration = Duration::from_millis(500);

/// The options for the access to Kafka that take a value.
const WITH_VALUE: [&str; 4] = ["brokers", "topic", "property", "properties"];
/// The short forms of these options.
const SHORT: [&str; 3] = ["-b", "-t", "-X"];

/// Prints the groups, one a line. `words` is a command line without the program's name.
#[must_use]
pub fn main(words: &[OsString], environment: Environment) -> ExitStatus {
    let (sender, receiver) = mpsc::channel();
    if let Some(list) = configuration(words, environment) {
        // If no thread can be started, no group is offered.
        let _ = thread::Builder::new().spawn(move || sender.send(list::groups(&list).unwrap_or_default()));
    }
    let groups = receiver.recv_timeout(WITHIN).unwrap_or_default();
    let lines: String = groups.into_iter().filter(|group| is_plain(group)).map(|group| group + "\n").collect();
    let _ = std::io::stdout().write_all(lines.as_bytes());
    ExitStatus::Success
}

/// The configuration that `list` has with the same options.
fn configuration(words: &[OsString], environment: Environment) -> Option<List> {
    let mut line: Vec<OsString> = ["neli-run", "list"].map(OsString::from).into();
    line.extend(options(words));
    let Ok(Request::List(args)) = cli::parse(&line, environment) else { return None };
    let list = look::list(&args).ok()?;
    Some(List { timeout: WITHIN, ..list })
}

/// The options for the access to Kafka, with their values.
fn options(words: &[OsString]) -> Vec<OsString> {
    let mut options = Vec::new();
    let mut words = words.iter().take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        match kind(word) {
            WordKind::Alone => options.push(word.clone()),
            WordKind::BeforeValue => {
                options.push(word.clone());
                options.extend(words.next().cloned());
            }
            WordKind::Other => {}
        }
    }
    options
}

/// The kind of a word of the line.
enum WordKind {
    /// An option that is complete.
    Alone,
    /// An option whose value is the next word.
    BeforeValue,
    /// Anything else.
    Other,
}

fn kind(word: &OsStr) -> WordKind {
    let Some(word) = word.to_str() else { return WordKind::Other };
    if let Some(long) = word.strip_prefix("--") {
        return match long.split_once('=') {
            Some((long, _)) if WITH_VALUE.contains(&long) => WordKind::Alone,
            None if long == "embedded" => WordKind::Alone,
            None if WITH_VALUE.contains(&long) => WordKind::BeforeValue,
            _ => WordKind::Other,
        };
    }
    match SHORT.iter().find_map(|short| word.strip_prefix(short)) {
        Some("") => WordKind::BeforeValue,
        Some(_) => WordKind::Alone,
        None => WordKind::Other,
    }
}

/// Whether no shell gives a special meaning to any of its characters.
fn is_plain(group: &str) -> bool {
    group.chars().all(|character| character.is_ascii_alphanumeric() || "._-/@%+,:".contains(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options_of(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        options(&words).iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn only_the_options_for_the_access_to_kafka_are_taken_from_the_line() {
        assert_eq!(options_of("status --brokers k:1 --json --group"), "--brokers k:1");
        assert_eq!(
            options_of("-b k:1 -Xa=b --topic=t --name n --properties f -g"),
            "-b k:1 -Xa=b --topic=t --properties f"
        );
        assert_eq!(options_of("--embedded -vq -- --brokers x"), "--embedded");
    }

    #[test]
    fn a_line_without_the_access_to_kafka_offers_no_group() {
        let configured = |line: &str, variables: &[(&str, &str)]| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            configuration(&words, Environment(variables)).is_some()
        };
        assert!(!configured("status --group", &[]));
        assert!(!configured("status --group --brokers", &[]));
        assert!(configured("status --brokers k:1 --group", &[]));
        assert!(configured("status --group", &[("NELI_RUN_BROKERS", "k:1")]));
    }

    #[test]
    fn names_that_would_have_to_be_quoted_are_not_offered() {
        assert!(is_plain("billing-2.eu/west"));
        assert!(["a b", "a\nb", "$(x)", "a'b", "a;b", "é"].iter().all(|group| !is_plain(group)));
    }
}
