//! The definition of an option. All options are in one table, from which the parser, the variables, the help, the manual, the completions
//! and docs/options.md are generated.

use std::ffi::{OsStr, OsString};

use clap::builder::{PossibleValue, TypedValueParser, ValueHint};
use clap::{Arg, ArgAction, Command};
pub use table::{SECTIONS, options};

use crate::config::VARIABLE_PREFIX;
use crate::text;

mod table;

/// One option.
pub struct Opt {
    /// Its long name, without the dashes. Its variable is `NELI_RUN_<LONG>`.
    pub long: &'static str,
    /// Its short name.
    pub short: Option<char>,
    /// Its argument, as the help names it.
    pub takes: Takes,
    /// The value that counts if none is given.
    pub default: Option<&'static str>,
    /// The description of a default that is computed.
    pub computed: Option<&'static str>,
    /// Its meaning, in one line without a full stop. It is shown by `-h` and the completions, and is the first line of `--help`.
    pub help: &'static str,
    /// More sentences for `--help`, the manual and docs/options.md: bounds, exceptions, conflicts. A text that needs a paragraph is in a section
    /// of the manual instead.
    pub more: &'static str,
}

/// The argument of an option.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Takes {
    /// A value with this name. The option may be repeated, and all its values count.
    Each(&'static str),
    /// Nothing.
    Flag,
    /// A value with this name, for which the shells offer these words.
    OneOf(&'static str, &'static [&'static str]),
    /// A value with this name, or nothing, which counts as this value.
    Optional(&'static str, &'static str),
    /// The path of a file.
    Path(&'static str),
    /// A value with this name. If the option is repeated, the last value counts.
    Value(&'static str),
}

/// The heading of what most lines use, of whatever kind.
pub(crate) const COMMON: &str = "Common options";
/// The heading of the options for the election, also of a subcommand.
pub(crate) const OF_ELECTION: &str = "Election options";

/// The options for the election, which every subcommand about an election has.
pub const ELECTION: [&str; 6] = ["group", "brokers", "embedded", "topic", "property", "properties"];

/// Pairs of options for one setting: if one is on the command line, the variable of the other is ignored; both at once are refused.
pub const RIVALS: [(&str, &str); 2] = [("brokers", "embedded"), ("quiet", "verbose")];

impl Opt {
    /// A flag with this name and meaning.
    const fn new(long: &'static str, help: &'static str) -> Self {
        Self { long, short: None, takes: Takes::Flag, default: None, computed: None, help, more: "" }
    }

    const fn short(self, short: char) -> Self {
        Self { short: Some(short), ..self }
    }

    const fn takes(self, takes: Takes) -> Self {
        Self { takes, ..self }
    }

    const fn value(self, name: &'static str) -> Self {
        self.takes(Takes::Value(name))
    }

    const fn default(self, value: &'static str) -> Self {
        Self { default: Some(value), ..self }
    }

    const fn computed(self, description: &'static str) -> Self {
        Self { computed: Some(description), ..self }
    }

    const fn more(self, more: &'static str) -> Self {
        Self { more, ..self }
    }

    /// The option with this long name.
    pub(crate) fn find(long: &str) -> Option<&'static Self> {
        options().find(|option| option.long == long)
    }

    /// Its variable: `--stop-timeout` is `NELI_RUN_STOP_TIMEOUT`.
    pub(crate) fn variable(&self) -> String {
        variable(self.long)
    }

    /// Its argument, as the help names it; `None` for a flag.
    pub const fn value_name(&self) -> Option<&'static str> {
        match self.takes {
            Takes::Flag => None,
            Takes::Each(name)
            | Takes::OneOf(name, _)
            | Takes::Optional(name, _)
            | Takes::Path(name)
            | Takes::Value(name) => Some(name),
        }
    }

    /// The value that counts if the option is given without one.
    pub const fn value_if_missing(&self) -> Option<&'static str> {
        match self.takes {
            Takes::Optional(_, meant) => Some(meant),
            Takes::Each(_) | Takes::Flag | Takes::OneOf(..) | Takes::Path(_) | Takes::Value(_) => None,
        }
    }

    /// The text of the meaning and of the further sentences.
    pub fn meaning(&self) -> String {
        let more = if self.more.is_empty() { String::new() } else { format!(" {}", self.more) };
        format!("{}.{more}", self.help)
    }

    /// The clap argument. It accepts any value: `validate.rs` checks values, in the same way for the command line and the environment.
    pub(crate) fn arg(&self) -> Arg {
        let default = self.default.or(self.computed).map(|text| format!("[default: {text}]"));
        let help = |width| in_lines(self.help.split(' ').chain(default.as_deref()), width);
        let more = in_lines(self.more.split(' '), LONG_WIDTH);
        let more = if more.is_empty() { more } else { format!("\n{more}") };
        let long = format!("{}.{more}", help(LONG_WIDTH));
        let arg = Arg::new(self.long).long(self.long).short(self.short).help(help(SHORT_WIDTH)).long_help(long);
        match self.takes {
            Takes::Each(name) => value(arg, name).action(ArgAction::Append),
            Takes::Flag => arg.action(ArgAction::SetTrue),
            Takes::OneOf(name, words) => {
                value(arg, name).value_parser(Words(words.to_vec())).hide_possible_values(true)
            }
            Takes::Optional(name, meant) => value(arg, name).num_args(0..=1).default_missing_value(meant),
            Takes::Value(name) => value(arg, name),
            Takes::Path(name) => value(arg, name).value_hint(ValueHint::FilePath),
        }
    }
}

/// The variable of this long option.
pub(crate) fn variable(long: &str) -> String {
    format!("{VARIABLE_PREFIX}{}", long.replace('-', "_").to_uppercase())
}

/// The width of the help.
const COLUMNS: usize = 80;

/// The width of an option's text in `-h`: the names of the common options take the other half.
const SHORT_WIDTH: usize = COLUMNS / 2;

/// The width of an option's text in `--help`: clap indents it by ten columns, and a full stop may follow.
const LONG_WIDTH: usize = COLUMNS - 11;

/// The text in lines of at most 80 columns.
pub(crate) fn wrapped(text: &str) -> String {
    in_lines(text.split(' '), COLUMNS)
}

/// The words in lines of at most this many columns. A default is one word, so that it is not broken.
fn in_lines<'a>(words: impl Iterator<Item = &'a str>, columns: usize) -> String {
    text::in_lines(words, columns).join("\n")
}

fn value(arg: Arg, name: &'static str) -> Arg {
    arg.action(ArgAction::Set).value_name(name).value_parser(clap::value_parser!(OsString))
}

/// COMMAND and its arguments.
pub(super) fn command() -> Arg {
    Arg::new("COMMAND")
        .help("The job and its arguments, after --")
        .hide_short_help(true)
        .last(true)
        .num_args(1..)
        .action(ArgAction::Append)
        .value_hint(ValueHint::CommandName)
        .value_parser(clap::value_parser!(OsString))
}

/// A parser that accepts any value; the listed values are only for the completions and the help.
#[derive(Clone)]
pub(crate) struct Words(pub(crate) Vec<&'static str>);

impl TypedValueParser for Words {
    type Value = OsString;

    fn parse_ref(&self, _: &Command, _: Option<&Arg>, value: &OsStr) -> Result<OsString, clap::Error> {
        Ok(value.to_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}
