//! What the parser could not make sense of, in the voice of all other refusals: one line, the word first.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cli::given::quoted;
use crate::exit::Refusal;

/// The refusal that says what clap's error says.
pub(super) fn refusal(error: &clap::Error, arguments: &[OsString]) -> Refusal {
    let word = invalid_argument(error);
    // Every other kind belongs to a feature that the definition does not use; its first line is as good as ours.
    #[expect(clippy::wildcard_enum_match_arm, reason = "clap's enum is not ours, and open")]
    let line = match error.kind() {
        ErrorKind::ArgumentConflict => subcommand_is_not_first(arguments, &word),
        ErrorKind::InvalidSubcommand => match text(error, ContextKind::SuggestedSubcommand) {
            Some(near) => format!("{}: no such subcommand; did you mean {near}?", subcommand(error)),
            None => stray(arguments, &subcommand(error)),
        },
        ErrorKind::InvalidValue => format!("{}: needs a value", option_of(&word)),
        ErrorKind::MissingRequiredArgument => format!("{word}: is required"),
        ErrorKind::TooManyValues => {
            let value = text(error, ContextKind::InvalidValue).unwrap_or_default();
            format!("{} {}: takes no value", option_of(&word), quoted(value.as_ref()))
        }
        ErrorKind::UnknownArgument if word.starts_with('-') && word != "-" => {
            match text(error, ContextKind::SuggestedArg) {
                Some(near) => format!("{word}: no such option; did you mean {}?", option_of(&near)),
                None => format!("{word}: no such option; neli-run --help lists them"),
            }
        }
        ErrorKind::UnknownArgument => stray(arguments, &word),
        _ => error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned(),
    };
    Refusal::new(line)
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
    if super::definition().get_subcommands().any(|subcommand| subcommand.get_name() == word) {
        return format!("{word}: a subcommand comes first, as in: neli-run {word} --group ..");
    }
    format!("{word}: COMMAND comes after --, as in: neli-run --group .. -- {word}")
}

fn subcommand_is_not_first(arguments: &[OsString], word: &str) -> String {
    stray(arguments, word)
}

/// The option alone, of what clap calls it: `--lease <DURATION>`.
fn option_of(argument: &str) -> &str {
    argument.split([' ', '=']).next().unwrap_or(argument)
}

fn invalid_argument(error: &clap::Error) -> String {
    text(error, ContextKind::InvalidArg).unwrap_or_default()
}

fn subcommand(error: &clap::Error) -> String {
    text(error, ContextKind::InvalidSubcommand).unwrap_or_default()
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    let value = error.get(kind)?;
    if let ContextValue::Strings(texts) = value {
        return texts.first().cloned();
    }
    if let ContextValue::String(text) = value { Some(text.clone()) } else { None }
}
