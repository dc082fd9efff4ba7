//! The subcommands, as the parser knows them. `--help` and the manual are drawn from it.

use clap::builder::ValueHint;
use clap::{Arg, ArgAction, Command};

use crate::cli::Words;
use crate::cli::options::{ELECTION, Opt, wrapped};

mod doctor;

/// All of them, in the order of the help.
pub(super) fn all() -> [Command; 12] {
    [
        status(),
        list(),
        watch(),
        history(),
        resign(),
        end(),
        forget(),
        assert(),
        doctor::command(),
        broker(),
        completions(),
        man(),
    ]
}

/// The same for an election whose group is required.
fn looks_at_one(name: &'static str, about: &'static str, more: &'static str) -> Command {
    looks(about, more).name(name).override_usage(format!("neli-run {name} --group <NAME> [OPTIONS]"))
}

fn status() -> Command {
    let about = "Show who leads an election, or why nobody does, and who stands by";
    looks_at_one("status", about, STATUS)
        .arg(role())
        .arg(flag("watch", "Show it again each second, on a terminal in place"))
        .arg(json("Print one JSON object; with --watch one a second"))
        .arg(timeout("5s"))
}

const STATUS: &str = "Exits with 0 when somebody leads, with 3 when nobody does, and with 4 when that can't be told. A leader that \
                      has been silent for longer than its lease leads no more. It reads the topic and writes nothing; READ on the \
                      topic is enough.";

fn list() -> Command {
    let about = "Show the elections of a topic, or of all topics whose names end in .neli";
    looks(about, LIST)
        .name("list")
        .mut_arg("group", |group| group.help("Those of this group alone").long_help("Those of this group alone"))
        .mut_arg("topic", |topic| topic.help(LIST_TOPIC).long_help(LIST_TOPIC))
        .arg(json("Print one JSON object an election"))
        .arg(timeout("5s"))
}

const LIST_TOPIC: &str = "This topic alone [default: all that end in .neli]";

const LIST: &str = "With --topic those of that topic, with --group those of that group alone (exits with 3 when there is none). An election is found by its records among \
                    the last 100,000 of each partition. Ages are told by the broker's timestamps: status looks more closely. Exits \
                    with 4 when Kafka does not answer in time, or not all of several topics could be read.";

fn history() -> Command {
    let about = "Show the terms that the topic keeps: who led, for how long, and why it ended";
    looks_at_one("history", about, HISTORY)
        .arg(role())
        .arg(value("since", "DURATION", "Leave out terms that were over before: 7d, 2h [default: none]"))
        .arg(flag("check", "Tell what is odd, and exit with 1 when two jobs may have run at once"))
        .arg(value("svg", "FILE", "Draw the terms on a time axis, into this file").value_hint(ValueHint::FilePath))
        .arg(json("Print one JSON object a term, and with --check one a finding"))
        .arg(timeout("5s"))
}

const HISTORY: &str = "GAP is the time between a term's end and the next claim, or up to now where nobody leads yet. A leader that fell silent may \
                       have been dead since its last heartbeat, and its term ends with the lease. Times are the broker's timestamps. --check applies the \
                       protocol's rules to all that is kept: terms that were claimed before the lease of the one before was over, \
                       jobs that were killed too late, records that did not count or are missing, and times of 1s and more in which \
                       nobody led. Exits with 3 when the topic keeps no record of the election, and with 4 when Kafka does not answer in time.";

fn resign() -> Command {
    let about = "Ask the leader to stand down, and wait until another leads";
    looks_at_one("resign", about, RESIGN)
        .arg(role())
        .arg(flag("force", "Also where nobody stands by"))
        .arg(reason())
        .arg(json("Print one JSON object, whatever comes of it"))
        .arg(value("timeout", "DURATION", "How long to wait until another leads [default: 30s]"))
}

const RESIGN: &str = "Its job is stopped in order (--stop-timeout is the leader's), and it stands by again; it claims nothing for two \
                      leases, or until another has led. Prints who leads then, and for how long nobody did. Exits with 0 when \
                      another leads, with 1 when that has taken too long, with 2 when nobody stands by (nothing is asked then), with \
                      3 when nobody leads, and with 4 when that can't be told. Needs READ and WRITE on the topic.";

fn end() -> Command {
    let about = "End an election: every candidate stops its job and exits with 0";
    looks_at_one("end", about, END)
        .arg(role())
        .arg(flag("yes", "Do not ask at a terminal"))
        .arg(flag("force", "Also where nobody is known to lead or stand by"))
        .arg(reason())
        .arg(json("Print one JSON object, whatever comes of it"))
        .arg(timeout("5s"))
}

const END: &str = "It binds those that stand now; one that starts later stands anew. So what starts candidates (systemd's \
                   Restart=always, Kubernetes, cron) must be stopped before. Exits with 0 when Kafka has taken the request, with 1 \
                   when it has not, or nobody has said yes, and with 3 when nobody leads or stands by (nothing is written then). Needs READ and WRITE on the topic.";

fn forget() -> Command {
    let about = "Have a key of --once, or the newest window, run again";
    looks(about, FORGET)
        .name("forget")
        .arg(role())
        .arg(value("once", "KEY", "The key that is to run again"))
        .arg(flag("newest-window", "The newest window of --window or --schedule that is recorded"))
        .arg(flag("force", "Also where it runs now (then it runs once more), or nothing is recorded of it"))
        .arg(flag("yes", "Do not ask at a terminal"))
        .arg(json("Print one JSON object, whatever comes of it"))
        .arg(timeout("5s"))
}

const FORGET: &str = "What was recorded of it until now counts for nothing, whether it was done or has failed, so that a candidate                       that starts with it runs the job. It is recorded in the topic <topic>.once; candidates of a version without                       this subcommand do not know of it, and skip the key as before. Exits with 0 when it is recorded, with 1 when                       Kafka has not taken it or nobody has said yes, with 2 when the key runs now, with 3 when nothing is recorded                       that keeps it from running, and with 4 when that can't be told. Needs READ on the topic, and READ and WRITE                       on <topic>.once.";

fn assert() -> Command {
    let about = "Tell by the exit status whether a job may act still: neli-run assert && pay";
    looks(about, ASSERT)
        .name("assert")
        .arg(role())
        .arg(value("epoch", "TERM", "The term, outside a job [default: NELI_EPOCH]"))
        .arg(value("min-left", "DURATION", "So much of the lease must be left [default: 0]"))
        .arg(json("Print one JSON object, and no line on stderr"))
        .arg(timeout("5s"))
}

const ASSERT: &str = "Exits with 0 when the term is led, with 83 when it is not, and with 4 when that can't be told. Inside a job \
                      it needs no option and no Kafka: the lease descriptor (NELI_LEASE_FD) tells, and what it tells holds until \
                      the lease ends. Where a program on the way has closed the descriptor, and with --epoch, the journal tells, by \
                      the age of the leader's last heartbeat: that is an estimate.";

/// A subcommand that looks at one election; `more` are the sentences that `--help` and the manual add.
fn looks(about: &'static str, more: &'static str) -> Command {
    let long = wrapped(&format!("{about}. {more}"));
    Command::new("").about(about).long_about(long).args_override_self(true).args(election())
}

/// Which election of `--roles`.
fn role() -> Arg {
    value("role", "ROLE", "Which role of --roles, by its name or number [default: 0]")
}

fn json(help: &'static str) -> Arg {
    flag("json", help)
}

fn flag(long: &'static str, help: &'static str) -> Arg {
    Arg::new(long).long(long).action(ArgAction::SetTrue).help(help)
}

fn reason() -> Arg {
    value("reason", "TEXT", "Why, for the candidates' logs")
}

fn timeout(default: &'static str) -> Arg {
    value("timeout", "DURATION", &format!("How long to wait for Kafka's answers [default: {default}]"))
}

fn value(long: &'static str, name: &'static str, help: &str) -> Arg {
    let text = clap::value_parser!(std::ffi::OsString);
    Arg::new(long).long(long).value_name(name).value_parser(text).help(help.to_owned())
}

const WATCH: &str = "With --json, --from, --all or --until-end it prints lines on a terminal, too. It reads the topic and writes nothing; READ on \
                     the topic is enough.";

fn watch() -> Command {
    Command::new("watch")
        .about("Show an election live: a page on a terminal, elsewhere a line per change")
        .long_about(wrapped(&format!(
            "Show an election live: a page on a terminal, elsewhere a line per change. {WATCH}"
        )))
        .override_usage("neli-run watch --group <NAME> [OPTIONS]")
        .args_override_self(true)
        .args(election())
        .arg(role())
        .arg(json("Print every record of the election with the law's verdict, one JSON object a line"))
        .arg(
            Arg::new("from")
                .long("from")
                .value_name("start|end|OFFSET|DURATION")
                .value_parser(Words(&["start", "end"]))
                .hide_possible_values(true)
                .help("Where to begin; 1h is an hour ago [default: end]"),
        )
        .arg(flag("all", "Print the candidates' hellos, too"))
        .arg(flag("until-end", "Exit at what was the end when watch began"))
}

fn broker() -> Command {
    Command::new("broker").about("Run the small broker of --embedded in the foreground, and print its address")
}

fn completions() -> Command {
    Command::new("completions").about("Print a shell's completions").arg(
        Arg::new("SHELL")
            .required(true)
            .value_parser(Words(&["bash", "fish", "zsh"]))
            .hide_possible_values(true)
            .help("bash, fish or zsh"),
    )
}

fn man() -> Command {
    Command::new("man").about("Print the manual page: neli-run man | man -l -").arg(
        Arg::new("SUBCOMMAND")
            .value_parser(clap::value_parser!(std::ffi::OsString))
            .value_hint(ValueHint::Other)
            .help("The subcommand whose page is printed [default: neli-run's own page]"),
    )
}

fn election() -> impl Iterator<Item = Arg> {
    // A subcommand creates no topic.
    let topic = "The journal's topic [default: <group>.neli]";
    ELECTION.iter().filter_map(|long| Opt::find(long)).map(move |option| match option.long {
        "topic" => option.arg().help(topic).long_help(topic),
        _ => option.arg(),
    })
}
