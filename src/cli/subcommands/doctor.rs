//! The definition of `doctor`, which takes the same options as a candidate.

use clap::{Arg, Command};

use super::{exit_status, flag, json, long_about, timeout};
use crate::cli::arguments;
use crate::cli::options::{ELECTION, Opt, Section, options};

/// The subcommand. Its help shows only those of a candidate's options that concern the election.
pub(super) fn command() -> Command {
    let about = "Report problems of this machine and of Kafka, and their fixes";
    Command::new("doctor")
        .about(about)
        .long_about(long_about(about, MORE))
        .after_help(exit_status("0 no check fails; 1 a check fails."))
        .override_usage("neli-run doctor [OPTIONS] [-- <COMMAND> [ARG]...]")
        .args_override_self(true)
        .args(options().map(candidates))
        .mut_arg("group", |group| group.help(GROUP).long_help(GROUP))
        .arg(flag("print-topic", "Only print the command that makes the topic"))
        .arg(json("Print one JSON object for each finding"))
        .arg(timeout("5s"))
        .arg(arguments::command().help("The job, to check that it is found"))
}

const GROUP: &str = "The election [default: check machine and Kafka]";

const MORE: &str = "Put doctor before the rest of a candidate's line: it takes each option of a candidate, and COMMAND after --. It \
    checks this machine (limits, priority, CPU quota, memory, control group, rate of the clock), Kafka (brokers, TLS, \
    login, rights, topic, replicas, timeouts) and the other candidates. It joins nothing and writes nothing. It prints a \
    line for each finding, which begins with ok, WARN or FAIL, and below it the command that fixes the problem; with -q the \
    problems alone.";

fn candidates(option: &Opt) -> Arg {
    let arg = option.arg();
    if ELECTION.contains(&option.long) { arg.help_heading(Section::Election.heading()) } else { arg.hide(true) }
}
