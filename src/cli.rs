//! The command line, and the environment, which holds where an option is not on the command line.
//!
//! The parser (clap) knows which options there are, and nothing of what their values must be: `validate.rs` checks that,
//! so that an option and its variable are refused by the same message. Whatever is wrong is one line ([`StartupError`]).

use std::ffi::{OsStr, OsString};

use clap::builder::{TypedValueParser, ValueHint};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};

use crate::cli::options::{Opt, options, wrapped};
use crate::cli::parsed_args::{Environment, ParsedArgs};
use crate::exit::StartupError;
use crate::features;

mod clap_errors;
mod distance;
pub mod options;
pub mod parsed_args;
mod subcommands;
pub mod validate;

/// What the command line asks for.
#[derive(Debug)]
pub enum Request {
    /// `assert`.
    Assert(ParsedArgs),
    /// `broker`.
    Broker,
    /// `completions`.
    Completions(ParsedArgs),
    /// `doctor`.
    Doctor(ParsedArgs),
    /// `end`.
    End(ParsedArgs),
    /// `forget`.
    Forget(ParsedArgs),
    /// `--help` or `--version`: print it, exit 0.
    Help(Box<clap::Error>),
    /// `history`.
    History(ParsedArgs),
    /// `list`.
    List(ParsedArgs),
    /// `man`.
    Man(ParsedArgs),
    /// `resign`.
    Resign(ParsedArgs),
    /// Stand for election and run COMMAND.
    Run(ParsedArgs),
    /// `status`.
    Status(ParsedArgs),
    /// `watch`.
    Watch(ParsedArgs),
}

/// Reads the command line (`arguments` begins with the program's name).
///
/// # Errors
///
/// When clap can't make sense of it: an option that there is none of, a value that is missing, an argument before `--`.
pub fn parse(arguments: &[OsString], environment: Environment) -> Result<Request, StartupError> {
    let mut matches = match keeping_each_group(definition()).try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            return Ok(Request::Help(Box::new(error)));
        }
        Err(error) => return Err(clap_errors::refusal(&error, arguments)),
    };
    let bare = arguments.len() <= 1;
    match matches.remove_subcommand() {
        None => Ok(Request::Run(ParsedArgs::new(matches, environment, bare))),
        Some((name, matches)) => {
            let args = ParsedArgs::new(matches, environment, false);
            match name.as_str() {
                "assert" => Ok(Request::Assert(args.with_election_of_job())),
                "broker" => Ok(Request::Broker),
                "completions" => Ok(Request::Completions(args)),
                "doctor" => Ok(Request::Doctor(args)),
                "end" => Ok(Request::End(args.with_election_of_job())),
                "forget" => Ok(Request::Forget(args.with_election_of_job())),
                "history" => Ok(Request::History(args.with_election_of_job())),
                "list" => Ok(Request::List(args.with_election_of_job())),
                "man" => Ok(Request::Man(args)),
                "resign" => Ok(Request::Resign(args.with_election_of_job())),
                "status" => Ok(Request::Status(args.with_election_of_job())),
                "watch" => Ok(Request::Watch(args.with_election_of_job())),
                _ => Err(StartupError::new(format!("{name}: no such subcommand"))),
            }
        }
    }
}

/// The last `--group` counts, as with every option; the others are kept for a warning.
fn keeping_each_group(definition: Command) -> Command {
    let keep = |arg: Arg| if arg.get_id() == "group" { arg.action(ArgAction::Append) } else { arg };
    definition.mut_args(keep).mut_subcommands(|subcommand| subcommand.mut_args(keep))
}

/// The command line, as clap knows it.
#[must_use]
pub fn definition() -> Command {
    without_command().arg(command())
}

/// The same without COMMAND.
pub(crate) fn without_command() -> Command {
    Command::new("neli-run")
        .version(features::version())
        .about("Run a command on at most one machine at a time, with nothing but Kafka")
        .long_about(wrapped(
            "Runs COMMAND on at most one machine at a time. Run the same line on every machine: one of them leads and runs \
             COMMAND, the job. When the job ends, or the machine fails, another machine leads and runs it.",
        ))
        .override_usage(
            "neli-run [OPTIONS] --group <NAME> -- <COMMAND> [ARG]...\n       neli-run <SUBCOMMAND> [OPTIONS]",
        )
        .after_help(AFTER_HELP)
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true)
        .args_override_self(true)
        .disable_help_subcommand(true)
        .subcommand_value_name("SUBCOMMAND")
        .subcommand_help_heading("Subcommands")
        .args(options().map(Opt::arg))
        .subcommands(subcommands::all())
}

const AFTER_HELP: &str = "\
Durations are written 500ms, 5s or 2m. Each long option is also a variable:
NELI_RUN_STOP_TIMEOUT sets --stop-timeout, and the command line wins.
The manual: neli-run man | man -l -";

fn command() -> Arg {
    Arg::new("COMMAND")
        .help("The job and its arguments, after --")
        .last(true)
        .num_args(1..)
        .action(ArgAction::Append)
        .value_hint(ValueHint::CommandName)
        .value_parser(clap::value_parser!(OsString))
}

/// Any value is accepted; these values are only for the completions and the help.
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
