//! `doctor` takes the same line as a candidate.

use clap::{Arg, Command};

use super::{flag, json, timeout};
use crate::cli::command as job;
use crate::cli::options::{ELECTION, Opt, options, wrapped};

/// The subcommand. Of a candidate's options the help shows those that say which election.
pub(super) fn command() -> Command {
    let about = "Tell all that would keep a candidate here from its work, and what fixes it";
    Command::new("doctor")
        .about(about)
        .long_about(wrapped(&format!("{about}. {MORE}")))
        .override_usage("neli-run doctor [OPTIONS] [-- <COMMAND> [ARG]...]")
        .args_override_self(true)
        .args(options().map(candidates))
        .mut_arg("group", |group| group.help(GROUP).long_help(GROUP))
        .arg(flag("print-topic", "Print the command that makes the topic, and look at nothing else"))
        .arg(json("Print one JSON object a finding"))
        .arg(timeout("5s"))
        .arg(job().help("The job, to see whether it is found"))
}

const GROUP: &str = "The election [default: none, and this machine and the brokers are looked at]";

const MORE: &str = "Takes every option of a candidate, and COMMAND after --: put doctor before the rest of the line. It looks at this machine \
                    (limits, priority, CPU quota, memory, control group, how fast its clock runs), at Kafka (brokers, TLS, login, rights, topic, replicas, \
                    timeouts) and at the other candidates, joins nothing and writes nothing. A line a finding: ok, WARN or FAIL, and \
                    below it the command that fixes it. Without --group it looks at the machine and the brokers alone. Exits with 0 \
                    when nothing fails, and with 1 when something does.";

fn candidates(option: &Opt) -> Arg {
    option.arg().hide(!ELECTION.contains(&option.long))
}
