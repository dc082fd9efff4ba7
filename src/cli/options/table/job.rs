//! Options for the job.

use crate::cli::options::{Default, Opt, Section, Takes};

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        long: "settle",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("0"),
        section: Section::Job,
        help: "Time from winning the lead to the start of the job",
        more: "Messages that the previous leader has sent can arrive in this time; later runs under the same \
               lead do not wait. A stop in this time ends the lead without a run, after TERM with status 143.",
    },
    Opt {
        long: "overlap",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::None,
        section: Section::Job,
        help: "Time for which the old job runs on beside the new one",
        more: "A leader that is told to stop, asked to resign or revoked keeps its job until another candidate \
               claims (a lease at most), and ends it within this time after the claim. 10ms to half of --lease; \
               for all candidates, or for none. Not with --roles, --settle, --once, --window or --schedule. See \
               OVERLAP in neli-run(1).",
    },
    Opt {
        long: "stop-signal",
        short: None,
        takes: Takes::OneOf(
            "SIGNAL|none",
            &["TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "WINCH", "ALRM", "ABRT", "none"],
        ),
        default: Default::Value("TERM"),
        section: Section::Job,
        help: "Signal that asks the job to stop, by name or number",
        more: "neli-run itself treats this signal as it treats TERM. none: a stop sends nothing and lets the run \
               finish, up to --stop-timeout.",
    },
    Opt {
        long: "restart-delay",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("1s"),
        section: Section::Job,
        help: "Time from the end of a run to the next run",
        more: "Each failed run doubles it, up to 30s; a run that succeeds, or fails after 30s or more, resets \
               it. Not with --restart no.",
    },
    Opt {
        long: "restart-limit",
        short: None,
        takes: Takes::Value("N/DURATION"),
        default: Default::Value("10/5m"),
        section: Section::Job,
        help: "Number of restarts after failures within a time",
        more: "At the next failure neli-run releases the lead and exits with 84, so that another machine tries; \
               a run that succeeds does not count. none: no limit. Not with --restart no.",
    },
    Opt {
        long: "timezone",
        short: None,
        takes: Takes::Value("NAME"),
        default: Default::Value("UTC"),
        section: Section::Job,
        help: "Time zone of --schedule, and of the midnight of --window",
        more: "A name in this machine's time zone database, such as Europe/Berlin; the same on every machine. \
               Windows shorter than a day are in UTC. Only with --window or --schedule.",
    },
    Opt {
        long: "catch-up",
        short: None,
        takes: Takes::OneOf("last|none", &["last", "none"]),
        default: Default::Value("last"),
        section: Section::Job,
        help: "Which missed window a new leader runs",
        more: "last: the current window, if it is not done. none: the leader waits for the next time. Only with \
               --schedule.",
    },
    Opt {
        long: "retries",
        short: None,
        takes: Takes::Value("N"),
        default: Default::Value("0"),
        section: Section::Job,
        help: "Number of runs after a failed run of the key",
        more: "Counted on all machines together; a run has failed if its status is not 0. When no retry is left, \
               each candidate exits with the recorded status. Only with --once or --window.",
    },
    Opt {
        long: "done-status",
        short: None,
        takes: Takes::Value("N"),
        default: Default::Value("0"),
        section: Section::Job,
        help: "Exit status if the key is already done",
        more: "0 to 255; the candidate that runs the job exits with the job's status. Only with --once or --window.",
    },
    Opt {
        long: "once-retention",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("90d"),
        section: Section::Job,
        help: "Time for which the record of a key is kept",
        more: "It is the retention.ms of a topic <topic>.once that neli-run makes; neli-run warns of one that \
               keeps less. 1h to 3650d, and more than the longest window. Only with --once, --window or \
               --schedule.",
    },
    Opt {
        long: "on-loss",
        short: None,
        takes: Takes::OneOf("standby|exit", &["standby", "exit"]),
        default: Default::Value("standby"),
        section: Section::Job,
        help: "Stand by again, or exit, when the lead is lost",
        more: "A lead is lost if it is revoked, resigned, superseded or fenced, if the job is unhealthy, if the \
               guard dies, or if <topic>.once can't be read or written. With exit, the status is 80, 81 or 82; \
               with --roles it ends only the role that is lost, and none is revoked.",
    },
];
