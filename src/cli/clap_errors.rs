//! Converts clap's errors into the form of all others: one line, which begins with the argument.

use std::ffi::OsString;

use anyhow::anyhow;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use strsim::levenshtein;

use crate::cli::definition;
use crate::cli::options::{Opt, options};
use crate::text::quoted;

/// The refusal of a long option with one dash: clap would take `-group=g` for `-g roup=g`, which is another election.
pub(super) fn one_dash(arguments: &[OsString]) -> Option<clap::Error> {
    let is_meant = |word: &str, option: &&Opt| option.long.trim_end_matches('s') == word.trim_end_matches('s');
    arguments.iter().take_while(|argument| *argument != "--").find_map(|argument| {
        let typed = argument.to_str()?.split('=').next()?;
        let option = options().find(|option| typed.strip_prefix('-').is_some_and(|word| is_meant(word, option)))?;
        let line = format!("{typed}: a long option begins with two dashes: --{}", option.long);
        Some(clap::Error::raw(ErrorKind::ValueValidation, line))
    })
}

/// Options of other programs, each with the one that is probably meant.
const FOREIGN_OPTIONS: [(&str, &str); 10] = [
    ("--bootstrap-server", "--brokers"),
    ("--bootstrap-servers", "--brokers"),
    ("--command-config", "--properties"),
    ("--config", "--properties"),
    ("--consumer.config", "--properties"),
    ("--cron", "--schedule"),
    ("--id", "--name"),
    ("--nonblock", "--wait 0"),
    ("--silent", "--quiet"),
    ("--ttl", "--lease"),
];

/// The refusal for an error of clap.
pub fn refusal(error: &clap::Error, arguments: &[OsString]) -> anyhow::Error {
    let word = text(error, ContextKind::InvalidArg);
    // The remaining kinds belong to features of clap that the definition does not use. Their first line is shown.
    #[expect(clippy::wildcard_enum_match_arm, reason = "clap's enum is not ours, and open")]
    let line = match error.kind() {
        ErrorKind::InvalidSubcommand => stray(arguments, &text(error, ContextKind::InvalidSubcommand)),
        ErrorKind::InvalidValue => {
            let (option, value) = word.split_once(' ').unwrap_or((&word, "a value"));
            format!("{option}: needs a value: {}", value.trim_matches(['<', '>']))
        }
        // No other argument is required by the definition.
        ErrorKind::MissingRequiredArgument => "SHELL is required: bash, fish or zsh".to_owned(),
        ErrorKind::TooManyValues => {
            let value = text(error, ContextKind::InvalidValue);
            format!("{} {}: takes no value", option_of(&word), quoted(value.as_ref()))
        }
        ErrorKind::UnknownArgument if word.starts_with('-') && word != "-" => {
            unknown_option(arguments, &word, &text(error, ContextKind::SuggestedArg))
        }
        ErrorKind::ArgumentConflict | ErrorKind::UnknownArgument => stray(arguments, &word),
        _ => error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned(),
    };
    anyhow!(line)
}

fn unknown_option(arguments: &[OsString], word: &str, near: &str) -> String {
    // In `--wait -5s`, `-5s` is a negative value and not an option.
    let at = arguments.iter().position(|argument| argument.to_string_lossy().starts_with(word)).unwrap_or_default();
    if word.as_bytes().get(1).is_some_and(u8::is_ascii_digit)
        && let Some([option, value]) = at.checked_sub(1).and_then(|before| arguments.get(before..=at))
        && option.to_string_lossy().starts_with("--")
    {
        return format!("{} {}: must not be negative", quoted(option), quoted(value));
    }
    let called = called(arguments);
    let foreign =
        FOREIGN_OPTIONS.iter().find(|(other, _)| called == PROGRAM && *other == word).map(|(_, meant)| *meant);
    // `--broker` is `--brokers` and not the subcommand.
    let is_near = |near: &&str| !near.is_empty() && (levenshtein(word, near) <= 2 || near.starts_with(word));
    let subcommands = subcommands();
    let subcommand = subcommands.iter().find(|name| word.strip_prefix("--") == Some(name.as_str()));
    if let Some(name) = subcommand.filter(|_| levenshtein(word, option_of(near)) > 1) {
        return format!("{word}: no such option; {name} is a subcommand: {PROGRAM} {name} --help");
    }
    match foreign.or(Some(option_of(near)).filter(is_near)) {
        Some(near) => format!("{word}: no such option; did you mean {near}?"),
        None => format!("{word}: no such option; {called} --help lists them"),
    }
}

/// An argument that is neither an option nor after `--`.
fn stray(arguments: &[OsString], word: &str) -> String {
    if is_half_of_property(arguments, word) {
        return "--property: must be KEY=VALUE, in one word".to_owned();
    }
    if let Some(begin) = unquoted_schedule(arguments, word) {
        return format!("{begin}: an expression with spaces needs quotes, as in: --schedule '30 2 * * *'");
    }
    // The value is not shown, because it may be a secret: `-X a=b sasl.password=hunter2`.
    let word = word.split_once('=').map_or_else(|| word.to_owned(), |(key, _)| format!("{key}=.."));
    let word = quoted(word.as_ref());
    let (names, called) = (subcommands(), called(arguments));
    if called != PROGRAM {
        return format!("{word}: no such argument; {called} --help lists them");
    }
    if names.contains(&word) {
        return format!("{word}: a subcommand comes first, as in: neli-run {word} --group ..");
    }
    let asks_for_help = arguments.get(1).is_some_and(|first| first == "help");
    let is_first = arguments.get(1 + usize::from(asks_for_help)).is_some_and(|first| *first == *word);
    // In a short name two letters are most of it: `run` is not meant as `man`.
    let is_near = |name: &&String| levenshtein(name, &word) <= if name.len() < 5 { 1 } else { 2 };
    if let Some(near) = names.iter().find(|name| is_first && is_near(name)) {
        return format!("{word}: no such subcommand; did you mean {near}?");
    }
    if asks_for_help || (is_first && arguments.iter().any(|argument| argument == "--")) {
        return format!("{word}: no such subcommand; neli-run --help lists them");
    }
    format!("{word}: COMMAND comes after --, as in: neli-run --group .. -- {word}")
}

/// Whether the argument is probably the value of a property that was written without `=`. It is not shown, because it may be a secret: `-X
/// sasl.password hunter2`.
fn is_half_of_property(arguments: &[OsString], word: &str) -> bool {
    let at = arguments.iter().position(|argument| argument == word);
    let before = |distance: usize| at.and_then(|at| arguments.get(at.checked_sub(distance)?)?.to_str());
    let Some(last) = before(1) else { return false };
    let property = match before(2) {
        Some("-X" | "--property") => Some(last),
        // A short option's value may follow `=`, too.
        _ => last.strip_prefix("--property=").or_else(|| Some(last.strip_prefix("-X")?.trim_start_matches('='))),
    };
    property.is_some_and(|property| property.split_once('=').is_none_or(|(_, value)| value.is_empty()))
}

/// The beginning of an expression that the shell has split, if the argument is its second word.
fn unquoted_schedule(arguments: &[OsString], word: &str) -> Option<String> {
    // What has a `=` may be a secret.
    if word.contains('=') {
        return None;
    }
    let mut before = arguments.windows(3).filter(|three| three[2] == *word).filter_map(|three| {
        let [option, value] = [three[0].to_str()?, three[1].to_str()?];
        if option == "--schedule" { Some(value) } else { value.strip_prefix("--schedule=") }
    });
    let first = before.find(|value| !value.contains(' ') && !value.starts_with('@'))?;
    Some(format!("--schedule {} {}", quoted(first.as_ref()), quoted(word.as_ref())))
}

const PROGRAM: &str = "neli-run";

/// The program, with its subcommand if there is one.
fn called(arguments: &[OsString]) -> String {
    let first = arguments.get(1).and_then(|first| first.to_str()).unwrap_or_default();
    if subcommands().iter().any(|name| name == first) { format!("{PROGRAM} {first}") } else { PROGRAM.to_owned() }
}

fn subcommands() -> Vec<String> {
    definition().get_subcommands().map(|subcommand| subcommand.get_name().to_owned()).collect()
}

/// The option's name from clap's description: `--lease <DURATION>`.
fn option_of(argument: &str) -> &str {
    argument.split([' ', '=']).next().unwrap_or(argument)
}

fn text(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.first().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}
