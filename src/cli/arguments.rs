//! Arguments that the program and its subcommands have in common.

use std::ffi::{OsStr, OsString};

use clap::builder::{TypedValueParser, ValueHint};
use clap::{Arg, ArgAction, Command};

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
pub(crate) struct Words(pub(crate) &'static [&'static str]);

impl TypedValueParser for Words {
    type Value = OsString;

    fn parse_ref(&self, _: &Command, _: Option<&Arg>, value: &OsStr) -> Result<OsString, clap::Error> {
        Ok(value.to_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = clap::builder::PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(clap::builder::PossibleValue::new)))
    }
}
