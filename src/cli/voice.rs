//! What the parser could not make sense of, in the voice of all other refusals: one line, the word first.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cli::given::quoted;
use crate::exit::Refusal;

/// The refusal that says what clap's error says.
pub(super) fn refusal(error: &clap::Error, arguments: &[OsString]) -> Refusal {
    let word = text(error, ContextKind::InvalidArg);
    // Every other kind belongs to a feature that the definition does not use; its first line is as good as ours.
    #[expect(clippy::wildcard_enum_match_arm, reason = "clap's enum is not ours, and open")]
    let line = match error.kind() {
        ErrorKind::InvalidSubcommand => stray(arguments, &text(error, ContextKind::InvalidSubcommand)),
        ErrorKind::InvalidValue => {
            let (option, value) = word.split_once(' ').unwrap_or((&word, "a value"));
            format!("{option}: needs a value: {}", value.trim_matches(['<', '>']))
        }
        ErrorKind::MissingRequiredArgument => format!("{} is required", word.trim_matches(['<', '>'])),
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
    Refusal::new(line)
}

fn unknown_option(arguments: &[OsString], word: &str, near: &str) -> String {
    // `--wait -5s` is no option -5.
    if word.chars().nth(1).is_some_and(|digit| digit.is_ascii_digit())
        && let Some(at) = arguments.iter().position(|argument| argument.to_string_lossy().starts_with(word))
        && let [option, value, ..] = arguments.get(at.saturating_sub(1)..).unwrap_or_default()
    {
        return format!("{} {}: must not be negative", quoted(option), quoted(value));
    }
    if near.is_empty() {
        return format!("{word}: no such option; neli-run --help lists them");
    }
    format!("{word}: no such option; did you mean {}?", option_of(near))
}

/// A word that is neither an option nor behind `--`.
fn stray(arguments: &[OsString], word: &str) -> String {
    let at = arguments.iter().position(|argument| argument == word);
    let before = |distance: usize| at.and_then(|at| arguments.get(at.checked_sub(distance)?)?.to_str());
    // `-X sasl.password hunter2` must not say hunter2.
    if matches!(before(2), Some("-X" | "--property")) {
        return "--property: must be KEY=VALUE, in one word".to_owned();
    }
    // Nor must `-X a=b sasl.password=hunter2`.
    let word = word.split_once('=').map_or_else(|| word.to_owned(), |(key, _)| format!("{key}=.."));
    let word = quoted(word.as_ref());
    let definition = super::definition();
    let names: Vec<&str> = definition.get_subcommands().map(clap::Command::get_name).collect();
    let first = arguments.get(1).and_then(|first| first.to_str()).unwrap_or_default();
    if names.contains(&first) {
        return format!("{word}: {first} takes no such argument; neli-run {first} --help lists them");
    }
    if names.contains(&word.as_str()) {
        return format!("{word}: a subcommand comes first, as in: neli-run {word} --group ..");
    }
    if let Some(near) = names.iter().find(|name| first == word && distance(name, &word) <= 2) {
        return format!("{word}: no such subcommand; did you mean {near}?");
    }
    format!("{word}: COMMAND comes after --, as in: neli-run --group .. -- {word}")
}

/// How many letters must be put in, left out or changed to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.chars().enumerate() {
        let mut next = vec![above + 1];
        for (pair, candidate) in row.windows(2).zip(&other) {
            let left = next.last().copied().unwrap_or_default();
            let changed = pair.first().copied().unwrap_or_default() + usize::from(letter != *candidate);
            let above = pair.last().copied().unwrap_or_default();
            next.push(changed.min(left + 1).min(above + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

/// The option alone, of what clap calls it: `--lease <DURATION>`.
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
