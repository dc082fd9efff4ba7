//! The command line as the parser (clap) needs it: the program's options, COMMAND, and the subcommands.

use clap::Command;

use crate::cli::arguments;
use crate::cli::options::{Section, options, wrapped};
use crate::cli::subcommands;
use crate::features;

/// The whole command line.
#[must_use]
pub fn definition() -> Command {
    without_command().arg(arguments::command())
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
