//! Every option, in the order of the help. A new option needs a row here, and a line in `validate.rs` that reads it.

use super::{Default, Opt, Section, Takes};

/// Every option.
pub fn options() -> impl Iterator<Item = &'static Opt> {
    [COMMON, ELECTION, KAFKA, TIMING, JOB, COMMANDS, LOG, FORMER].into_iter().flatten()
}

/// What a row does not say of itself: a flag of this section.
const fn of(section: Section) -> Opt {
    Opt { long: "", short: None, takes: Takes::Flag, default: Default::None, section, help: "", more: "" }
}

const COMMON: &[Opt] = &[
    Opt {
        long: "group",
        short: Some('g'),
        takes: Takes::Value("NAME"),
        help: "Name of the election and of its consumer group (required)",
        more: "The same for all candidates, and the group.id of no other program: a job that consumes from Kafka \
               needs another one. 1 to 249 bytes; with --once, --window or --schedule without /.",
        ..of(Section::Common)
    },
    Opt {
        long: "brokers",
        short: Some('b'),
        takes: Takes::Value("HOST:PORT,.."),
        help: "Kafka's bootstrap servers",
        more: "Write an IPv6 address in brackets: [::1]:9092. This option or --embedded is required.",
        ..of(Section::Common)
    },
    Opt {
        long: "properties",
        takes: Takes::Path("FILE"),
        help: "Read properties, such as passwords, from a file",
        more: "One KEY=VALUE a line; blank lines, and lines that begin with #, are skipped. --property overrides \
               the file.",
        ..of(Section::Common)
    },
    Opt {
        long: "lease",
        takes: Takes::Value("DURATION"),
        default: Default::Value("20s"),
        help: "Time that a leader may act after it sent a heartbeat",
        more: "300ms to 60s, in whole milliseconds. When a machine dies, another leads after about this time. \
               With less than 18s and Kafka's own settings, the death of a broker may end jobs.",
        ..of(Section::Common)
    },
    Opt {
        long: "stop-timeout",
        takes: Takes::Value("DURATION"),
        default: Default::Value("8s"),
        help: "Time from the stop signal to SIGKILL",
        more: "The end of the lease may shorten it; with 0 the job gets SIGKILL at once. Set it below the time \
               after which neli-run itself is killed: 10s with Docker and Podman, TimeoutStopSec= with systemd, \
               terminationGracePeriodSeconds with Kubernetes.",
        ..of(Section::Common)
    },
    Opt {
        long: "restart",
        takes: Takes::OneOf("no|on-failure|always", &["no", "on-failure", "always"]),
        default: Default::Value("no"),
        help: "Run the job again when it ends, and keep the lead",
        more: "no: release the lead, and exit with the job's status. on-failure: run it again after a signal or \
               a status other than 0; after 0, release the lead and exit with 0. always is the default with \
               --roles. After a stop signal the job does not run again.",
        ..of(Section::Common)
    },
    Opt {
        long: "schedule",
        takes: Takes::Value("CRON|every DURATION"),
        help: "Run the job at these times, and keep the lead in between",
        more: "A cron expression such as '30 2 * * *' (with seconds if it has six fields; also @daily, \
               @midnight, L, W and #), or 'every 15m', 'every 1d/2h'. A time that comes during a run is skipped. \
               Not with --once, --window, --roles or --restart. See docs/cron.md.",
        ..of(Section::Common)
    },
    Opt {
        long: "window",
        takes: Takes::Value("DURATION[/OFFSET]"),
        help: "Have the job succeed once per window, on all machines",
        more: "For crontabs: 1d is a day from midnight UTC, 1d/2h a day from 02:00, 7d a week from Monday. Whole \
               seconds, 1s to 365d; from a day on, whole days. Not with --once, --schedule, --roles or \
               --restart. See docs/cron.md.",
        ..of(Section::Common)
    },
    Opt {
        long: "once",
        takes: Takes::Value("KEY"),
        help: "Have the job succeed once for this key, on all machines",
        more: "If the key is done, neli-run exits with --done-status. If it runs elsewhere, neli-run stands by, \
               and runs the job from the beginning if that run is stopped, dies, or fails with --retries left. 1 \
               to 200 bytes, without control characters. Not with --roles or --restart. See docs/cron.md.",
        ..of(Section::Common)
    },
    Opt {
        long: "listen",
        takes: Takes::Value("ADDRESS"),
        help: "Serve metrics, probes and a status page over HTTP",
        more: "HOST:PORT, or :PORT for all addresses of the machine; with port 0 the log says which is used. \
               There is no password: choose an address that only trusted clients reach. See docs/http.md.",
        ..of(Section::Common)
    },
];

const ELECTION: &[Opt] = &[
    Opt {
        long: "name",
        takes: Takes::Value("NAME"),
        default: Default::Computed("<host>:<pid>"),
        help: "Name of this candidate, in the log and for the others",
        more: "1 to 255 bytes.",
        ..of(Section::Election)
    },
    Opt {
        long: "roles",
        takes: Takes::Value("N|NAME,.."),
        help: "Stand in N elections, or in one for each name",
        more: "One job runs for each role that this candidate leads; NELI_ROLE contains the role. Give every \
               candidate the same roles. Not with --wait, --overlap, --once, --window or --schedule. See \
               docs/service.md.",
        ..of(Section::Election)
    },
    Opt {
        long: "spread",
        takes: Takes::OneOf("yes|no", &["yes", "no"]),
        default: Default::Value("yes"),
        help: "Move roles until each candidate leads a fair share",
        more: "With no, roles stay where they are. yes can't be combined with --claim-delay or --priority.",
        ..of(Section::Election)
    },
    Opt {
        long: "max-roles",
        takes: Takes::Value("N"),
        default: Default::Computed("no limit"),
        help: "Lead at most N roles in this process",
        more: "If all candidates together may lead fewer than --roles defines, some roles have no leader. A \
               warning says if the limit of open files allows fewer. Not with --preempt.",
        ..of(Section::Election)
    },
    Opt {
        long: "elect",
        takes: Takes::OneOf("group|log", &["group", "log"]),
        default: Default::Value("group"),
        help: "Which candidate claims first when nobody leads",
        more: "group: the member to which Kafka's consumer group assigns the partition. log: any candidate; no \
               right on a group is needed. See WHO GOES FIRST in neli-run(1).",
        ..of(Section::Election)
    },
    Opt {
        long: "patience",
        takes: Takes::Value("DURATION|never"),
        default: Default::Value("500ms"),
        help: "Time for which the group's choice alone may claim",
        more: "never: the others never claim (not with --claim-delay or --priority; with --roles they do, after 500ms). Not \
               with --elect log.",
        ..of(Section::Election)
    },
    Opt {
        long: "claim-delay",
        takes: Takes::Value("DURATION"),
        default: Default::Value("0"),
        help: "Time to wait before each claim; for a last-resort machine",
        ..of(Section::Election)
    },
    Opt {
        long: "priority",
        takes: Takes::Value("N"),
        default: Default::Value("0"),
        help: "Claim before candidates of a lower priority",
        more: "0 to 1000. For each higher priority that stands by, a candidate claims 500ms later, with --elect \
               group also --patience later. Not with --patience never.",
        ..of(Section::Election)
    },
    Opt {
        long: "preempt",
        takes: Takes::Optional("DURATION", "1m"),
        help: "Ask a leader of a lower priority to stand down",
        more: "It asks once it has stood by for DURATION: 1m if none is given, at least 1s; ten times as long if its last \
               lead was fenced or unhealthy, or its guard died. The leader stops its job, and the candidate of the \
               highest priority leads next. Needs a --priority above 0.",
        ..of(Section::Election)
    },
    Opt {
        long: "wait",
        takes: Takes::Value("DURATION"),
        default: Default::Computed("no limit"),
        help: "Exit with 75 if not leading after this time",
        more: "Counted from the start, until the first lead; if the leader has died, neli-run first waits for \
               the end of its lease. With 0, neli-run leads at once or exits, after 5s if Kafka does not answer. \
               Must be more than --claim-delay.",
        ..of(Section::Election)
    },
];

const KAFKA: &[Opt] = &[
    Opt {
        long: "embedded",
        help: "Try neli-run on this machine, without Kafka",
        more: "The first candidate starts a small broker, which ends after the last one. It keeps the journal in \
               memory, and other machines can't reach it.",
        ..of(Section::Kafka)
    },
    Opt {
        long: "topic",
        short: Some('t'),
        takes: Takes::Value("NAME"),
        default: Default::Computed("<group>.neli"),
        help: "Topic of the journal, made if missing",
        more: "Several elections may share a topic. 1 to 249 of a-z A-Z 0-9 . _ -, and neither . nor ..",
        ..of(Section::Kafka)
    },
    Opt {
        long: "no-create-topic",
        help: "Exit with 125 if the topic is missing",
        more: "Also if it is deleted and created again.",
        ..of(Section::Kafka)
    },
    Opt {
        long: "property",
        short: Some('X'),
        takes: Takes::Each("KEY=VALUE"),
        help: "Set a property of librdkafka; repeatable",
        more: "The last value of a key counts; properties that the protocol needs, or that another option sets, \
               are refused. Every user of the machine can read a command line: put passwords into a --properties \
               file. NELI_RUN_PROPERTY holds one KEY=VALUE a line.",
        ..of(Section::Kafka)
    },
];

const TIMING: &[Opt] = &[
    Opt {
        long: "heartbeat-interval",
        takes: Takes::Value("DURATION"),
        default: Default::Computed("--lease / 5, at most 1s"),
        help: "Time between two heartbeats",
        more: "10ms to a third of --lease.",
        ..of(Section::Timing)
    },
    Opt {
        long: "fence-warning",
        takes: Takes::Value("DURATION"),
        default: Default::Computed("--lease / 4, at most 2500ms"),
        help: "Time from the stop signal to the kill by the guard",
        more: "If no heartbeat comes back, the guard kills the job just before the lease ends; the job gets the \
               stop signal this long before that. 0 (no stop signal) to half of --lease.",
        ..of(Section::Timing)
    },
];

const JOB: &[Opt] = &[
    Opt {
        long: "settle",
        takes: Takes::Value("DURATION"),
        default: Default::Value("0"),
        help: "Time from winning the lead to the start of the job",
        more: "Messages that the previous leader has sent can arrive in this time; later runs under the same \
               lead do not wait. A stop in this time ends the lead without a run, after TERM with status 143.",
        ..of(Section::Job)
    },
    Opt {
        long: "overlap",
        takes: Takes::Value("DURATION"),
        help: "Time for which the old job runs on beside the new one",
        more: "A leader that is told to stop, asked to resign or revoked keeps its job until another candidate \
               claims (a lease at most), and ends it within this time after the claim. 10ms to half of --lease; \
               for all candidates, or for none. Not with --roles, --settle, --once, --window or --schedule. See \
               docs/service.md.",
        ..of(Section::Job)
    },
    Opt {
        long: "stop-signal",
        takes: Takes::OneOf(
            "SIGNAL|none",
            &["TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "WINCH", "ALRM", "ABRT", "none"],
        ),
        default: Default::Value("TERM"),
        help: "Signal that asks the job to stop, by name or number",
        more: "neli-run itself treats this signal as it treats TERM. none: a stop sends nothing and lets the run \
               finish, up to --stop-timeout.",
        ..of(Section::Job)
    },
    Opt {
        long: "restart-delay",
        takes: Takes::Value("DURATION"),
        default: Default::Value("1s"),
        help: "Time from the end of a run to the next run",
        more: "Each failed run doubles it, up to 30s; a run that succeeds, or fails after 30s or more, resets \
               it. Not with --restart no.",
        ..of(Section::Job)
    },
    Opt {
        long: "restart-limit",
        takes: Takes::Value("N/DURATION"),
        default: Default::Value("10/5m"),
        help: "Number of restarts after failures within a time",
        more: "At the next failure neli-run releases the lead and exits with 84, so that another machine tries; \
               a run that succeeds does not count. none: no limit. Not with --restart no.",
        ..of(Section::Job)
    },
    Opt {
        long: "timezone",
        takes: Takes::Value("NAME"),
        default: Default::Value("UTC"),
        help: "Time zone of --schedule, and of the midnight of --window",
        more: "A name in this machine's time zone database, such as Europe/Berlin; the same on every machine. \
               Windows shorter than a day are in UTC. Only with --window or --schedule.",
        ..of(Section::Job)
    },
    Opt {
        long: "catch-up",
        takes: Takes::OneOf("last|none", &["last", "none"]),
        default: Default::Value("last"),
        help: "Which missed window a new leader runs",
        more: "last: the current window, if it is not done. none: the leader waits for the next time. Only with \
               --schedule.",
        ..of(Section::Job)
    },
    Opt {
        long: "retries",
        takes: Takes::Value("N"),
        default: Default::Value("0"),
        help: "Number of runs after a failed run of the key",
        more: "Counted on all machines together; a run has failed if its status is not 0. When no retry is left, \
               each candidate exits with the recorded status. Only with --once or --window.",
        ..of(Section::Job)
    },
    Opt {
        long: "done-status",
        takes: Takes::Value("N"),
        default: Default::Value("0"),
        help: "Exit status if the key is already done",
        more: "0 to 255; the candidate that runs the job exits with the job's status. Only with --once or --window.",
        ..of(Section::Job)
    },
    Opt {
        long: "once-retention",
        takes: Takes::Value("DURATION"),
        default: Default::Value("90d"),
        help: "Time for which the record of a key is kept",
        more: "It is the retention.ms of a topic <topic>.once that neli-run makes; neli-run warns of one that \
               keeps less. 1h to 3650d, and more than the longest window. Only with --once, --window or \
               --schedule.",
        ..of(Section::Job)
    },
    Opt {
        long: "on-loss",
        takes: Takes::OneOf("standby|exit", &["standby", "exit"]),
        default: Default::Value("standby"),
        help: "Stand by again, or exit, when the lead is lost",
        more: "A lead is lost if it is revoked, resigned, superseded or fenced, if the job is unhealthy, if the \
               guard dies, or if <topic>.once can't be read or written. With exit, the status is 80, 81 or 82; \
               with --roles it ends only the role that is lost, and none is revoked.",
        ..of(Section::Job)
    },
];

const COMMANDS: &[Opt] = &[
    Opt {
        long: "health-cmd",
        takes: Takes::Value("COMMAND"),
        help: "Shell command whose status says if the job is healthy",
        more: "/bin/sh -c runs it beside the job, with the job's environment and NELI_EVENT=health; the output \
               goes to stderr, and the last line of a failure also to the log. After --health-failures in a row \
               this candidate stands down, so that another one tries.",
        ..of(Section::Commands)
    },
    Opt {
        long: "health-interval",
        takes: Takes::Value("DURATION"),
        default: Default::Value("10s"),
        help: "Time between two health commands",
        more: "From the end of one to the start of the next; the first starts this long after the job.",
        ..of(Section::Commands)
    },
    Opt {
        long: "health-timeout",
        takes: Takes::Value("DURATION"),
        default: Default::Value("5s"),
        help: "Time after which a health command has failed",
        more: "Its process group is killed then.",
        ..of(Section::Commands)
    },
    Opt {
        long: "health-failures",
        takes: Takes::Value("N"),
        default: Default::Value("3"),
        help: "Number of failures in a row that make a job unhealthy",
        more: "A success resets the count, and each run of the job starts at 0.",
        ..of(Section::Commands)
    },
    Opt {
        long: "health-start",
        takes: Takes::Value("DURATION"),
        default: Default::Value("0"),
        help: "Time that a job has to become healthy",
        more: "A health command that fails earlier in a run counts only after one that succeeded.",
        ..of(Section::Commands)
    },
    Opt {
        long: "on-lead",
        takes: Takes::Value("COMMAND"),
        help: "Shell command to run when this candidate wins the lead",
        more: "/bin/sh -c runs each hook beside the job, with the job's environment, NELI_EVENT (lead, standby \
               or fence) and NELI_WHY; the output goes to stderr. Only the exit of neli-run waits for a hook, \
               which is killed after 10s; this one also ends with the job. With --settle, it runs with the first \
               run of the job.",
        ..of(Section::Commands)
    },
    Opt {
        long: "on-standby",
        takes: Takes::Value("COMMAND"),
        help: "Shell command to run when this candidate stands by",
        more: "It also runs at the exit after a lead; NELI_WHY says why a lead ended. A neli-run that is killed \
               runs no hook.",
        ..of(Section::Commands)
    },
    Opt {
        long: "on-fence",
        takes: Takes::Value("COMMAND"),
        help: "Shell command to run after a fence has killed the job",
        more: "NELI_WHY is fenced, guard-died or superseded.",
        ..of(Section::Commands)
    },
];

const LOG: &[Opt] = &[
    Opt {
        long: "log-format",
        takes: Takes::OneOf("text|json", &["text", "json"]),
        default: Default::Value("text"),
        help: "Log a sentence a line, or a JSON object a line",
        ..of(Section::Log)
    },
    Opt {
        long: "log-file",
        takes: Takes::Path("FILE"),
        default: Default::Computed("stderr"),
        help: "Append the log to this file, and keep stderr for the job",
        ..of(Section::Log)
    },
    Opt { long: "verbose", short: Some('v'), help: "Log the messages of librdkafka, too", ..of(Section::Log) },
    Opt { long: "quiet", short: Some('q'), help: "Log only warnings and errors", ..of(Section::Log) },
];

/// Options of the last version. They still work, with a warning, and no help shows them.
const FORMER: &[Opt] = &[Opt {
    long: "preempt-after",
    takes: Takes::Value("DURATION"),
    help: "The DURATION of --preempt",
    ..of(Section::Former)
}];
