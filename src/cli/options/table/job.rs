//! The job.

use crate::cli::options::{Default, Opt, Section, Takes};

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        long: "settle",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("0"),
        section: Section::Job,
        help: "From the lead to the start of its job",
        more: "At every lead, with the lease kept: what the leader before has sent out can take effect first. A stop \
               meanwhile runs nothing and gives the lead back; after TERM neli-run exits with 143. Runs that follow under the \
               same lead do not wait. --on-lead runs with the first.",
    },
    Opt {
        long: "overlap",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::None,
        section: Section::Job,
        help: "Let the next leader's job start before the old one stops",
        more: "For work that must not pause, and may run twice for a moment. A leader that is told to stop, asked to resign, or \
               revoked keeps its job running until another has claimed (a lease at most), and ends it within this time of \
               seeing the claim: the stop signal when the new job runs, or after half of it; SIGKILL at its end, or at the \
               stop timeout. Two jobs run at once then, never three. 10ms to half of --lease. Every candidate of the election \
               needs it, or none. Not with --once, --window, --schedule or --settle.",
    },
    Opt {
        long: "stop-signal",
        short: None,
        takes: Takes::Value("SIGNAL"),
        default: Default::Value("TERM"),
        section: Section::Job,
        help: "What asks the job to stop, by name or number",
        more: "neli-run itself takes this signal as it takes TERM.",
    },
    Opt {
        long: "stop-timeout",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("8s"),
        section: Section::Job,
        help: "From the stop signal to SIGKILL",
        more: "The end of the lease may cut it short. Keep it below what stops neli-run itself: 10s with Docker \
               and Podman, TimeoutStopSec with systemd, terminationGracePeriodSeconds with Kubernetes. With 0: \
               SIGKILL at once, with no stop signal before it.",
    },
    Opt {
        long: "restart",
        short: None,
        takes: Takes::OneOf("no|on-failure|always", &["no", "on-failure", "always"]),
        default: Default::Value("no"),
        section: Section::Job,
        help: "Whether the job is run again here when it ends",
        more: "The lead is kept between runs. With no: release, and exit with the job's status. With on-failure: \
               again after a signal or a status other than 0; after 0, release and exit 0. With always: again \
               whatever it was, which is the default with --roles. A run that was told to stop is not followed by another.",
    },
    Opt {
        long: "restart-delay",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("1s"),
        section: Section::Job,
        help: "From the end of a run to the next",
        more: "Each failed run doubles it, up to 30s; one that ends with 0, or fails after 30s or more, sets it \
               back. With 0 a job that ends at once is run again hundreds of times a second, each run with its lines \
               in the log and its records in the topic; only failures meet --restart-limit. Not with --restart no.",
    },
    Opt {
        long: "restart-limit",
        short: None,
        takes: Takes::Value("N/DURATION|none"),
        default: Default::Value("10/5m"),
        section: Section::Job,
        help: "How often it is run again after failures",
        more: "So many times in so long, while the lead lasts; at the next failure neli-run releases and exits \
               with 84, so that another machine tries. A run that ends with 0 does not count. Not with --restart \
               no.",
    },
    Opt {
        long: "once",
        short: None,
        takes: Takes::Value("KEY"),
        default: Default::None,
        section: Section::Job,
        help: "The job succeeds once for this key, on all machines",
        more: "Who finds the key done exits with --done-status and does not run the job. Who finds it running stands by; \
               then the key is done, or it is run there. A machine that died, lost its lease or was stopped in a run has \
               neither done nor failed it: another runs it, from the beginning. What is known of the key stands in the \
               topic <topic>.once, too, which is made if missing and outlives the journal's records. A leader that can't \
               read or write it does not run the job. The job finds the key in NELI_ONCE. 1 to 200 bytes, without control \
               characters. Not with --restart.",
    },
    Opt {
        long: "window",
        short: None,
        takes: Takes::Value("DURATION[/OFFSET]"),
        default: Default::None,
        section: Section::Job,
        help: "The job succeeds once in each window, on all machines",
        more: "For crontabs: the machines' lines start it at one time, and it runs on one of them. As --once with the window's \
               start for its key: 1d is a day from midnight UTC on, 1d/2h one from 02:00 on, 7d a week from Monday on. The window \
               is that of the machine's clock at the start, so that clocks may differ: put its edge far from the time of the \
               crontab. A window is over when a newer one is done; one that is recorded and lies more than a window ahead of \
               this machine's clock is not believed. The job finds the window in NELI_WINDOW_START and NELI_WINDOW_END. Whole \
               seconds, 1s to 365d, from a day on whole days. Not with --once or --schedule.",
    },
    Opt {
        long: "timezone",
        short: None,
        takes: Takes::Value("NAME"),
        default: Default::Value("UTC"),
        section: Section::Job,
        help: "Where a schedule's times are, and midnight of a window",
        more: "A name of this machine's time zone database, such as Europe/Berlin; the same on every machine. Windows of less than \
               a day are counted in UTC. Only with --window or --schedule.",
    },
    Opt {
        long: "schedule",
        short: None,
        takes: Takes::Value("CRON|every DURATION"),
        default: Default::None,
        section: Section::Job,
        help: "Run the job at these times, and keep the lead between",
        more: "A daemon in the place of a crontab: '30 2 * * *' (with seconds before, where six fields are given; @daily; L, W and \
               #), or 'every 15m', 'every 1d/2h' with the windows of --window. Each time begins a window, which lasts until the next. \
               Runs never overlap: what begins while a run goes on is skipped. A failed run does not end it. A new leader runs \
               what was not done (--catch-up); at a first start there is nothing to catch up. Of an hour that a time zone leaves \
               out, a fixed time comes after it; of one that is there twice, in the first. The clock may be set at any time: no \
               window is run twice under one lead. What is run stands in the topic <topic>.once, too. The job finds its window in \
               NELI_WINDOW_START and NELI_WINDOW_END. Not with --once, --window or --restart.",
    },
    Opt {
        long: "catch-up",
        short: None,
        takes: Takes::OneOf("last|none", &["last", "none"]),
        default: Default::Value("last"),
        section: Section::Job,
        help: "What a new leader runs of windows in which nobody led",
        more: "With last: the window that its clock shows, where that was not done. With none: nothing before the next. What is \
               skipped is told in the log. Only with --schedule.",
    },
    Opt {
        long: "retries",
        short: None,
        takes: Takes::Value("N"),
        default: Default::Value("0"),
        section: Section::Job,
        help: "So many failed runs of the key are followed by another",
        more: "Counted across machines; a run fails by a status other than 0. When they are used up, everybody exits with \
               the status that was recorded. Only with --once or --window.",
    },
    Opt {
        long: "done-status",
        short: None,
        takes: Takes::Value("N"),
        default: Default::Value("0"),
        section: Section::Job,
        help: "What those exit with who find the key done",
        more: "0 to 255. The one who runs the job exits with its status. Only with --once or --window.",
    },
    Opt {
        long: "once-retention",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("90d"),
        section: Section::Job,
        help: "For how long a key is known",
        more: "The retention.ms of the topic <topic>.once where it is made here; a warning tells where an existing one \
               keeps less. 1h to 3650d, and more than the longest window. Only with --once, --window or --schedule.",
    },
    Opt {
        long: "on-loss",
        short: None,
        takes: Takes::OneOf("standby|exit", &["standby", "exit"]),
        default: Default::Value("standby"),
        section: Section::Job,
        help: "What to do when the lead is lost",
        more: "Lost is a lead that was revoked, resigned, unhealthy, superseded or fenced, or whose guard died. \
               With standby: stand by, and run the job again when elected. With exit: exit with 80, 81 or 82.",
    },
];
