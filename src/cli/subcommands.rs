//! The definitions of the subcommands. `--help` and the manual are generated from them.

use clap::builder::ValueHint;
use clap::{Arg, ArgAction, Command};

use crate::cli::options::{self, ELECTION, OF_ELECTION, Opt, Words, options, wrapped};

/// Adds the rest to the definition of a subcommand, which has a name and what it is about.
type Define = fn(Command) -> Command;

/// Each subcommand with its name, and what it is about, in the order of the help.
const ALL: [(&str, &str, Define); 13] = [
    ("status", "Show who leads an election, or why nobody does", status),
    ("list", "List the elections of a topic, or of all topics named *.neli", list),
    ("watch", "Show an election live, or print a line for each change", watch),
    ("history", "List the terms that the topic keeps, and why each ended", history),
    ("observe", "Serve all elections of a cluster on one page, with metrics", observe),
    ("resign", "Ask the leader to stand down, and wait for the next leader", resign),
    ("end", "End an election: every candidate stops its job and exits", end),
    ("forget", "Make a key of --once, or the newest window, run again", forget),
    ("assert", "Exit with 0 if the job may still act: neli-run assert && pay", assert),
    ("doctor", "Report problems of this machine and of Kafka, and their fixes", doctor),
    ("broker", "Run the broker of --embedded in the foreground", broker),
    ("completions", "Print the completions of a shell", completions),
    ("man", "Print a page of the manual: neli-run man | man -l -", man),
];

/// All subcommands. Each gets its options when it is used, or is described: most starts use none.
pub(super) fn all() -> [Command; 13] {
    ALL.map(|(name, about, define)| Command::new(name).about(about).defer(define))
}

/// A subcommand about one election, whose group is required.
fn looks_at_one(command: Command, more: &'static str, exit: &'static str) -> Command {
    let usage = format!("neli-run {} --group <NAME> [OPTIONS]", command.get_name());
    looks(command, more, exit).override_usage(usage)
}

fn status(command: Command) -> Command {
    looks_at_one(command, STATUS, STATUS_EXIT)
        .arg(role(SHOWN))
        .arg(value("once", "KEY", "Only show whether this key is done"))
        .arg(flag("json", "Print one JSON object for each election"))
        .arg(timeout("5s"))
}

const STATUS: &str = "Also shows which candidates stand by, the last run of --once, --window or --schedule, and a \
    schedule's next five times. A leader that has written nothing for longer than its lease no longer leads. With \
    several roles a table shows them all. Writes nothing; READ on the topic is enough, and on <topic>.once for the last run.";

const STATUS_EXIT: &str = "0 a candidate leads; 3 nobody leads; 4 this can't be determined, also if the leader has missed three heartbeats. With several \
    roles the highest of theirs. With --once: 0 the key is done; 3 it is not; 4 this can't be determined.";

fn list(command: Command) -> Command {
    looks(command, LIST, LIST_EXIT)
        .mut_arg("group", |group| group.help(LIST_GROUP).long_help(LIST_GROUP))
        .mut_arg("topic", |topic| topic.help(LIST_TOPIC).long_help(LIST_TOPIC))
        .arg(flag("watch", "Go on: a table, or a line for each change"))
        .arg(flag("all", "Also list elections that are dead for over a week"))
        .arg(flag("json", "Print one JSON object for each election"))
        .arg(timeout("5s"))
}

const LIST_GROUP: &str = "Only this group [default: all groups]";

const LIST_TOPIC: &str = "Only this topic [default: all named *.neli]";

const LIST: &str = "An election is listed if it has a record among the last 100,000 of its partition. One is dead if \
    it has neither a record nor a candidate's hello of the last week: without --all, --group or --json the last line \
    only counts those. --watch goes on: on a terminal as a table, with trouble first, otherwise as a line for each \
    change (with --json the election as it is then).";

const LIST_EXIT: &str =
    "0; 3 no election has that --group; 4 Kafka does not answer in time, or not all topics could be read.";

fn history(command: Command) -> Command {
    looks_at_one(command, HISTORY, HISTORY_EXIT)
        .arg(role(SHOWN))
        .arg(value("since", "DURATION", "Only terms led since then or whose gap lasts: 7d, 2h"))
        .arg(flag("check", "Report violations, gaps and missing records"))
        .arg(value("svg", "FILE", "Draw the terms on a time axis into this file").value_hint(ValueHint::FilePath))
        .arg(flag("json", "Print one JSON object for each term and finding"))
        .arg(timeout("5s"))
}

const HISTORY: &str = "GAP is the time without a leader before the next claim. It begins with the release; if a leader fell silent, with its last \
    heartbeat (\"up to\": it may have led until its lease's end). Times are the broker's timestamps; if they are the candidates' \
    own (message.timestamp.type=CreateTime), they can't show an overlap. --check reports terms that were claimed before the \
    previous lease was over, jobs that were killed too late, records that were void or are missing, and times without a leader of \
    more than a tenth of the lease. Of a leader that fell silent it does not see when its job was gone.";

const HISTORY_EXIT: &str = "0; 1 with --check, if by the journal two jobs may have run at once; 3 the topic keeps no record of the \
    election; 4 Kafka does not answer in time.";

fn observe(command: Command) -> Command {
    let listen = Opt::find("listen").map(Opt::arg);
    told(command, OBSERVE, "0 after TERM or INT; 86 the address can't be used now; 125 Kafka refuses.")
        .override_usage("neli-run observe --listen <ADDRESS> [OPTIONS]")
        .args(listen)
        .arg(value("topics", "NAMES", "Only these topics; * is any text [default: *.neli]"))
        .args(election().filter(|arg| arg.get_id() != "topic"))
        .mut_arg("group", |group| group.help(LIST_GROUP).long_help(LIST_GROUP))
}

const OBSERVE: &str = "Serves a page of all elections, trouble first, one of each group with its terms and \
    candidates, the same as JSON, and metrics. It stands in no election and writes nothing; READ on the topics is \
    enough, and on <topic>.once for recorded runs. Topics that are made, made anew or deleted, and a Kafka that is \
    away, need no restart.";

fn resign(command: Command) -> Command {
    looks_at_one(command, RESIGN, RESIGN_EXIT)
        .arg(role(NEEDED))
        .arg(flag("all-roles", "Ask the leaders of all roles, one after the other"))
        .arg(value("to", "NAME", "The standby that is to lead next"))
        .arg(flag("force", "Ask even if no candidate stands by"))
        .arg(reason())
        .arg(flag("json", "Print one JSON object for each election"))
        .arg(value("timeout", "DURATION", "Limit for each wait [default: 30s]"))
}

const RESIGN: &str = "The leader stops its job (--stop-timeout is the leader's) and stands by. It claims nothing for \
    two leases, or until another candidate has led. It is not asked before a standby has answered; --timeout limits \
    that wait, and then the one for the next leader. Prints the next leader, and for how long nobody led. With --to \
    the standby of that name (neli-run status shows them) claims at once, whatever group or --priority \
    say, and the others wait for it for 500ms. It is refused if it can't lead: it is not heard, its \
    runs fail, or it leads --max-roles. It may lose the lead again as any leader: by --preempt, or with --roles \
    because another leads less than its share. Needs READ and WRITE on the topic.";

const RESIGN_EXIT: &str = "0 another candidate leads (the same again if no other has claimed), or the one of --to; \
    1 not in time, but it may still happen, or another than that of --to leads; 2 no candidate stands by, answers or has room (--max-roles), or the one of --to can't lead, and nothing was asked; 3 nobody leads; 4 this can't be determined. With --all-roles the highest of theirs.";

fn end(command: Command) -> Command {
    looks_at_one(command, END, END_EXIT)
        .arg(role(NEEDED))
        .arg(flag("all-roles", "End the elections of all roles"))
        .arg(flag("yes", "Do not ask for confirmation on a terminal"))
        .arg(flag("force", "Write the request even if no candidate is known"))
        .arg(reason())
        .arg(flag("json", "Print one JSON object for each election"))
        .arg(timeout("5s"))
}

const END: &str = "A program with the library gets Error::Ended. A candidate that starts later stands for election again. So \
    first stop what starts candidates (systemd, Kubernetes, cron). Needs READ and WRITE on the topic.";

const END_EXIT: &str = "0 Kafka has taken the request; 1 Kafka has not said that it took it, or you have not confirmed it; 3 no candidate leads or \
    stands by, and nothing was written. With --all-roles the highest of theirs.";

fn forget(command: Command) -> Command {
    looks(command, FORGET, FORGET_EXIT)
        .arg(role(NEEDED))
        .arg(value("once", "KEY", "The key to forget"))
        .arg(flag("newest-window", "Forget the newest recorded window"))
        .arg(flag("force", "Even if it runs, is not recorded or can't be read"))
        .arg(flag("yes", "Do not ask for confirmation on a terminal"))
        .arg(flag("json", "Print the outcome as one JSON object"))
        .arg(timeout("5s"))
}

const FORGET: &str = "The records of earlier runs, done or failed, no longer count, and a candidate with the key that stands by, or starts next, runs the job. \
    Candidates of a version without this subcommand still skip the key. Needs READ on the topic, and READ and WRITE on \
    <topic>.once.";

const FORGET_EXIT: &str = "0 it is recorded in the topic <topic>.once; 1 Kafka has not said that it took the record, or you have not confirmed it; 2 the \
    key runs now; 3 nothing is recorded that keeps the key from running; 4 this can't be determined.";

fn assert(command: Command) -> Command {
    looks(command, ASSERT, ASSERT_EXIT)
        .arg(role(NEEDED))
        .arg(value("epoch", "TERM", "The term, outside a job [default: NELI_EPOCH]"))
        .arg(value("min-left", "DURATION", "Time that must be left of the lease [default: 0]"))
        .arg(flag("json", "Print one JSON object"))
        .arg(timeout("5s"))
}

const ASSERT: &str = "Inside a job it needs no option and no Kafka: it reads the lease descriptor (NELI_LEASE_FD). With --epoch, which \
    another election than the job's needs, or if the descriptor was closed, it reads the journal and estimates by the age of the last \
    heartbeat.";

const ASSERT_EXIT: &str = "0 the term is led; 83 it is not led, or --min-left is not left; 4 this can't be determined.";

/// A subcommand about elections.
fn looks(command: Command, more: &'static str, exit: &'static str) -> Command {
    told(command, more, exit).args(election())
}

/// A subcommand; `more` are further sentences for `--help` and the manual, and `exit` are its exit statuses.
fn told(command: Command, more: &'static str, exit: &'static str) -> Command {
    let about = command.get_about().map_or_else(String::new, |about| format!("{about}."));
    let long = format!("{}\n{}", wrapped(&about), wrapped(more));
    let exit = wrapped(&format!("Exit status: {exit}"));
    command.long_about(long).after_help(exit).args_override_self(true)
}

/// The option that selects an election of `--roles`, of a subcommand that shows elections.
const SHOWN: &str = "Role, by its name, else its number [default: all]";
/// The same of a subcommand that acts on an election.
const NEEDED: &str = "Role (its name, else number); needed with several";

fn role(help: &str) -> Arg {
    value("role", "ROLE", help)
}

fn flag(long: &'static str, help: &'static str) -> Arg {
    Arg::new(long).long(long).action(ArgAction::SetTrue).help(help)
}

fn reason() -> Arg {
    value("reason", "TEXT", "Reason, for the candidates' logs")
}

fn timeout(default: &'static str) -> Arg {
    value("timeout", "DURATION", &format!("Time to wait for Kafka's answers [default: {default}]"))
}

fn value(long: &'static str, name: &'static str, help: &str) -> Arg {
    let text = clap::value_parser!(std::ffi::OsString);
    Arg::new(long).long(long).value_name(name).value_parser(text).help(help.to_owned())
}

const WATCH: &str = "Shows a page on a terminal, and prints lines elsewhere or with --json, --from, --all or \
    --until-end. If Kafka ceases to answer, it waits until Kafka answers again. Writes nothing; READ on the topic is \
    enough.";

const WATCH_EXIT: &str =
    "0; 4 Kafka does not answer in time at the start; 125 also if the topic is deleted or made anew meanwhile.";

fn watch(command: Command) -> Command {
    let from = value("from", "WHERE", "start, end, an offset or an age (1h) [default: end]");
    looks_at_one(command, WATCH, WATCH_EXIT)
        .arg(role(SHOWN))
        .arg(flag("json", "Print each record, and whether it counts, as JSON"))
        .arg(from.value_parser(Words(vec!["start", "end"])).hide_possible_values(true))
        .arg(flag("all", "Also print the hellos of the candidates"))
        .arg(flag("until-end", "Exit where the topic ended when watch started"))
        .arg(value("timeout", "DURATION", "Limit for Kafka's first answers [default: 30s]"))
}

fn broker(command: Command) -> Command {
    command.arg(value("idle-timeout", "DURATION", "Exit when unused for this long [default: none]"))
}

fn completions(command: Command) -> Command {
    command.arg(
        Arg::new("SHELL")
            .required(true)
            .value_parser(Words(vec!["bash", "fish", "zsh"]))
            .hide_possible_values(true)
            .help("bash, fish or zsh"),
    )
}

fn man(command: Command) -> Command {
    command.arg(
        Arg::new("SUBCOMMAND")
            .value_parser(Words(ALL.iter().map(|(name, ..)| *name).collect()))
            .hide_possible_values(true)
            .help("The subcommand [default: the page of neli-run itself]"),
    )
}

fn election() -> impl Iterator<Item = Arg> {
    // A subcommand creates no topic, and starts no broker.
    let topic = "Topic of the journal [default: <group>.neli]";
    let embedded = "Look at a trial on this machine, without Kafka";
    let args = ELECTION.iter().filter_map(|long| Opt::find(long)).map(move |option| match option.long {
        "embedded" => option.arg().help(embedded).long_help(embedded),
        "topic" => option.arg().help(topic).long_help(topic),
        _ => option.arg(),
    });
    args.map(|arg| arg.help_heading(OF_ELECTION))
}

/// Its help shows only those of a candidate's options that concern the election.
fn doctor(command: Command) -> Command {
    told(command, DOCTOR, "0 no check fails; 1 a check fails.")
        .override_usage("neli-run doctor [OPTIONS] [-- <COMMAND> [ARG]...]")
        .args(options().map(candidates))
        .mut_arg("group", |group| group.help(DOCTOR_GROUP).long_help(DOCTOR_GROUP))
        .arg(flag("print-topic", "Only print the command that makes the topic"))
        .arg(flag("json", "Print one JSON object for each finding"))
        .arg(timeout("5s"))
        .arg(options::command().help("The job, to check that it is found"))
}

const DOCTOR_GROUP: &str = "The election [default: check machine and Kafka]";

const DOCTOR: &str = "Put doctor before the rest of a candidate's line: it takes each option of a candidate, and \
    COMMAND after --. It checks this machine (limits, priority, CPU quota, memory, control group, rate of the \
    clock), Kafka (brokers, TLS, login, rights, topic, replicas, timeouts) and the other candidates. It joins \
    nothing and writes nothing. It prints a line for each finding, which begins with ok, WARN or FAIL, and below it \
    what fixes the problem, unless the line says it; with -q only the problems.";

fn candidates(option: &Opt) -> Arg {
    let arg = option.arg();
    if ELECTION.contains(&option.long) { arg.help_heading(OF_ELECTION) } else { arg.hide(true) }
}
