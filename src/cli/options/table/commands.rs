//! Options for commands that run beside the job.

use crate::cli::options::{Default, Opt, Section, Takes};

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        long: "health-cmd",
        short: None,
        takes: Takes::Value("COMMAND"),
        default: Default::None,
        section: Section::Commands,
        help: "Shell command whose status says if the job is healthy",
        more: "/bin/sh -c runs it beside the job, with the job's environment and NELI_EVENT=health; the output \
               goes to stderr, and the last line of a failure also to the log. After --health-failures in a row \
               this candidate stands down, so that another one tries.",
    },
    Opt {
        long: "health-interval",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("10s"),
        section: Section::Commands,
        help: "Time between two health commands",
        more: "From the end of one to the start of the next; the first starts this long after the job.",
    },
    Opt {
        long: "health-timeout",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("5s"),
        section: Section::Commands,
        help: "Time after which a health command has failed",
        more: "Its process group is killed then.",
    },
    Opt {
        long: "health-failures",
        short: None,
        takes: Takes::Value("N"),
        default: Default::Value("3"),
        section: Section::Commands,
        help: "Number of failures in a row that make a job unhealthy",
        more: "A success resets the count, and each run of the job starts at 0.",
    },
    Opt {
        long: "health-start",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("0"),
        section: Section::Commands,
        help: "Time that a job has to become healthy",
        more: "A health command that fails earlier in a run counts only after one that succeeded.",
    },
    Opt {
        long: "on-lead",
        short: None,
        takes: Takes::Value("COMMAND"),
        default: Default::None,
        section: Section::Commands,
        help: "Shell command to run when this candidate wins the lead",
        more: "/bin/sh -c runs each hook beside the job, with the job's environment, NELI_EVENT (lead, standby \
               or fence) and NELI_WHY; the output goes to stderr. Only the exit of neli-run waits for a hook, \
               which is killed after 10s; this one also ends with the job. With --settle, it runs with the first \
               run of the job.",
    },
    Opt {
        long: "on-standby",
        short: None,
        takes: Takes::Value("COMMAND"),
        default: Default::None,
        section: Section::Commands,
        help: "Shell command to run when this candidate stands by",
        more: "It also runs at the exit after a lead; NELI_WHY says why a lead ended. A neli-run that is killed \
               runs no hook.",
    },
    Opt {
        long: "on-fence",
        short: None,
        takes: Takes::Value("COMMAND"),
        default: Default::None,
        section: Section::Commands,
        help: "Shell command to run after a fence has killed the job",
        more: "NELI_WHY is fenced, guard-died or superseded.",
    },
];
