//! The command line, and the environment, which is used for options that the command line lacks.
//!
//! The parser (clap) knows the options, but does not check their values. `validate.rs` checks them, so that an option and its variable are
//! refused with the same message. Every error is one line ([`line_of`](crate::exit::line_of)).

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command};

use crate::cli::options::{COMMON, SECTIONS, wrapped};
use crate::cli::parsed_args::ParsedArgs;
use crate::features;

pub use clap_errors::refusal;

mod clap_errors;
pub mod options;
pub mod parsed_args;
mod subcommands;
pub mod validate;

/// The subcommands that look at the election of the job in which they run, or `list` at its Kafka, unless the command line says otherwise.
const OF_JOB: [&str; 8] = ["assert", "end", "forget", "history", "list", "resign", "status", "watch"];

/// Parses the command line. `arguments` begins with the program's name.
///
/// # Errors
///
/// clap refuses it, of which [`refusal`] makes a line: an unknown option, a missing value, an argument before `--`. Or it asks for a text, which is to
/// be printed on stdout: `--help` or `--version`.
pub fn parse(arguments: &[OsString], environment: Vec<(OsString, OsString)>) -> Result<ParsedArgs, clap::Error> {
    if let Some(error) = clap_errors::one_dash(arguments) {
        return Err(error);
    }
    // `help` is a subcommand for the parser alone: the completions would have each subcommand a second time below it.
    let definition = definition().disable_help_subcommand(false);
    // As with every option the last one counts; the others are kept for a warning.
    let keep = |arg: Arg| if arg.get_id() == "group" { arg.action(ArgAction::Append) } else { arg };
    let definition = definition.mut_args(keep).mut_subcommands(|subcommand| subcommand.mut_args(keep));
    let args = ParsedArgs::new(definition.try_get_matches_from(arguments)?, environment);
    let is_of_job = args.subcommand().is_some_and(|name| OF_JOB.contains(&name));
    Ok(if is_of_job { args.with_election_of_job() } else { args })
}

/// The whole command line.
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
        .args(SECTIONS.into_iter().flat_map(|(section, options)| {
            options.iter().map(move |option| option.arg().help_heading(section).hide_short_help(section != COMMON))
        }))
        .subcommands(subcommands::all())
}

const AFTER_HELP: &str = "\
neli-run --brokers kafka:9092 --group billing -- ./cron-job
All options: neli-run --help. The manual: neli-run man | man -l -";

const AFTER_LONG_HELP: &str = "\
Durations are written 500ms, 5s or 2m. Each long option here is also a variable:
NELI_RUN_STOP_TIMEOUT sets --stop-timeout, and the command line wins.
The manual: neli-run man | man -l -";
