//! What runs beside the job.

use crate::cli::options::{Default, Opt, Section, Takes};

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        long: "health-cmd",
        short: None,
        takes: Takes::Value("COMMAND"),
        default: Default::None,
        section: Section::Commands,
        help: "Tells by its status whether the job is healthy",
        more: "Run by /bin/sh -c beside the job, in a process group of its own that ends with it, with the job's \
               environment and NELI_EVENT=health. When it has failed --health-failures times in a row this machine \
               stands down, so that another tries. Its output goes to stderr; when it fails, the last line is logged, too.",
    },
    Opt {
        long: "health-interval",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("10s"),
        section: Section::Commands,
        help: "Between two health commands",
        more: "From the job's start to the first, and from the end of each to the next.",
    },
    Opt {
        long: "health-timeout",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("5s"),
        section: Section::Commands,
        help: "A health command that takes longer has failed",
        more: "Its process group is killed.",
    },
    Opt {
        long: "health-failures",
        short: None,
        takes: Takes::Value("N"),
        default: Default::Value("3"),
        section: Section::Commands,
        help: "So many failures in a row make a job unhealthy",
        more: "A success sets the count back, and each run of the job begins with none.",
    },
    Opt {
        long: "health-start",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("0"),
        section: Section::Commands,
        help: "How long a job may take to become healthy",
        more: "A health command that fails this early in a run counts only after one that did not.",
    },
    Opt {
        long: "on-lead",
        short: None,
        takes: Takes::Value("COMMAND"),
        default: Default::None,
        section: Section::Commands,
        help: "Run when the lead is won, beside the job",
        more: "Every hook runs by /bin/sh -c, in a process group of its own that ends with it, with the job's \
               environment, NELI_EVENT (lead, standby or fence) and NELI_WHY. Its output goes to stderr; after 10s it \
               is killed. Nothing waits for a hook but the exit, no hook waits for another, and this one ends with \
               the job.",
    },
    Opt {
        long: "on-standby",
        short: None,
        takes: Takes::Value("COMMAND"),
        default: Default::None,
        section: Section::Commands,
        help: "Run when standing by begins, and at exit after a lead",
        more: "After a lead NELI_WHY says why that ended. A neli-run that was killed runs no hook: what must be \
               undone belongs in the job.",
    },
    Opt {
        long: "on-fence",
        short: None,
        takes: Takes::Value("COMMAND"),
        default: Default::None,
        section: Section::Commands,
        help: "Run when the lease was lost and the job killed for it",
        more: "NELI_WHY is fenced, guard-died or superseded.",
    },
];
