//! The command line, and the environment, which is used for options that the command line lacks.
//!
//! The parser (clap) knows the options, but does not check their values. `validate.rs` checks them, so that an option and its variable are
//! refused with the same message. Every error is one line ([`line_of`](crate::exit::line_of)).

use std::ffi::OsString;

use anyhow::{Result, anyhow};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};

use crate::cli::options::{Section, options, wrapped};
use crate::cli::parsed_args::{Environment, ParsedArgs};
use crate::features;

mod clap_errors;
pub mod options;
pub mod parsed_args;
mod subcommands;
pub mod validate;

/// The request of a command line.
#[derive(Debug)]
pub enum Request {
    /// `assert`.
    Assert(ParsedArgs),
    /// `broker`.
    Broker(ParsedArgs),
    /// `completions`.
    Completions(ParsedArgs),
    /// `doctor`.
    Doctor(ParsedArgs),
    /// `end`.
    End(ParsedArgs),
    /// `forget`.
    Forget(ParsedArgs),
    /// `--help` or `--version`: the text must be printed, with exit status 0.
    Help(Box<clap::Error>),
    /// `history`.
    History(ParsedArgs),
    /// `list`.
    List(ParsedArgs),
    /// `man`.
    Man(ParsedArgs),
    /// `observe`.
    Observe(ParsedArgs),
    /// `resign`.
    Resign(ParsedArgs),
    /// The process stands for election and runs COMMAND.
    Run(ParsedArgs),
    /// `status`.
    Status(ParsedArgs),
    /// `watch`.
    Watch(ParsedArgs),
}

/// Parses the command line. `arguments` begins with the program's name.
///
/// # Errors
///
/// clap refuses it: an unknown option, a missing value, an argument before `--`.
pub fn parse(arguments: &[OsString], environment: Environment) -> Result<Request> {
    // `help` is a subcommand for the parser alone: the completions would have each subcommand a second time below it.
    let definition = keeping_each_group(definition().disable_help_subcommand(false));
    let mut matches = match definition.try_get_matches_from(arguments) {
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
                "broker" => Ok(Request::Broker(args)),
                "completions" => Ok(Request::Completions(args)),
                "doctor" => Ok(Request::Doctor(args)),
                "end" => Ok(Request::End(args.with_election_of_job())),
                "forget" => Ok(Request::Forget(args.with_election_of_job())),
                "history" => Ok(Request::History(args.with_election_of_job())),
                "list" => Ok(Request::List(args.with_election_of_job())),
                "man" => Ok(Request::Man(args)),
                "observe" => Ok(Request::Observe(args)),
                "resign" => Ok(Request::Resign(args.with_election_of_job())),
                "status" => Ok(Request::Status(args.with_election_of_job())),
                "watch" => Ok(Request::Watch(args.with_election_of_job())),
                _ => Err(anyhow!("{name}: no such subcommand")),
            }
        }
    }
}

/// Makes clap keep each `--group`. As with every option the last one counts; the others are kept for a warning.
fn keeping_each_group(definition: Command) -> Command {
    let keep = |arg: Arg| if arg.get_id() == "group" { arg.action(ArgAction::Append) } else { arg };
    definition.mut_args(keep).mut_subcommands(|subcommand| subcommand.mut_args(keep))
}

/// The whole command line.
#[must_use]
pub fn definition() -> Command {
    without_command().arg(options::command())
}

/// The command line without COMMAND.
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
        .after_long_help(AFTER_LONG_HELP)
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true)
        .args_override_self(true)
        .disable_help_subcommand(true)
        .subcommand_value_name("SUBCOMMAND")
        .subcommand_help_heading("Subcommands")
        .args(options().map(|option| option.arg().hide_short_help(option.section != Section::Common)))
        .subcommands(subcommands::all())
}

const AFTER_HELP: &str = "\
neli-run --brokers kafka:9092 --group billing -- ./cron-job
All options: neli-run --help. The manual: neli-run man | man -l -";

const AFTER_LONG_HELP: &str = "\
Durations are written 500ms, 5s or 2m. Each long option is also a variable:
NELI_RUN_STOP_TIMEOUT sets --stop-timeout, and the command line wins.
The manual: neli-run man | man -l -";
