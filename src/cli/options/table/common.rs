//! The options that most lines use. `-h` shows these alone.

use crate::cli::options::{Default, Opt, Section, Takes};

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        long: "group",
        short: Some('g'),
        takes: Takes::Value("NAME"),
        default: Default::None,
        section: Section::Common,
        help: "Name of the election and of its consumer group (required)",
        more: "The same for all candidates, and the group.id of no other program: a job that consumes from Kafka \
               needs another one. 1 to 249 bytes; with --once, --window or --schedule without /.",
    },
    Opt {
        long: "brokers",
        short: Some('b'),
        takes: Takes::Value("HOST:PORT,.."),
        default: Default::None,
        section: Section::Common,
        help: "Kafka's bootstrap servers",
        more: "Write an IPv6 address in brackets: [::1]:9092. This option or --embedded is required.",
    },
    Opt {
        long: "properties",
        short: None,
        takes: Takes::Path("FILE"),
        default: Default::None,
        section: Section::Common,
        help: "Read properties, such as passwords, from a file",
        more: "One KEY=VALUE a line; blank lines, and lines that begin with #, are skipped. --property overrides \
               the file.",
    },
    Opt {
        long: "lease",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("20s"),
        section: Section::Common,
        help: "Time that a leader may act after it sent a heartbeat",
        more: "300ms to 60s, in whole milliseconds. When a machine dies, another leads after about this time. \
               With less than 18s and Kafka's own settings, the death of a broker may end jobs.",
    },
    Opt {
        long: "stop-timeout",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("8s"),
        section: Section::Common,
        help: "Time from the stop signal to SIGKILL",
        more: "The end of the lease may shorten it; with 0 the job gets SIGKILL at once. Set it below the time \
               after which neli-run itself is killed: 10s with Docker and Podman, TimeoutStopSec= with systemd, \
               terminationGracePeriodSeconds with Kubernetes.",
    },
    Opt {
        long: "restart",
        short: None,
        takes: Takes::OneOf("no|on-failure|always", &["no", "on-failure", "always"]),
        default: Default::Value("no"),
        section: Section::Common,
        help: "Run the job again when it ends, and keep the lead",
        more: "no: release the lead, and exit with the job's status. on-failure: run it again after a signal or \
               a status other than 0; after 0, release the lead and exit with 0. always is the default with \
               --roles. After a stop signal the job does not run again.",
    },
    Opt {
        long: "schedule",
        short: None,
        takes: Takes::Value("CRON|every DURATION"),
        default: Default::None,
        section: Section::Common,
        help: "Run the job at these times, and keep the lead in between",
        more: "A cron expression such as '30 2 * * *' (with seconds if it has six fields; also @daily, \
               @midnight, L, W and #), or 'every 15m', 'every 1d/2h'. A time that comes during a run is skipped. \
               Not with --once, --window, --roles or --restart. See SCHEDULES in neli-run(1).",
    },
    Opt {
        long: "window",
        short: None,
        takes: Takes::Value("DURATION[/OFFSET]"),
        default: Default::None,
        section: Section::Common,
        help: "Have the job succeed once per window, on all machines",
        more: "For crontabs: 1d is a day from midnight UTC, 1d/2h a day from 02:00, 7d a week from Monday. Whole \
               seconds, 1s to 365d; from a day on, whole days. Not with --once, --schedule, --roles or \
               --restart. See WINDOWS in neli-run(1).",
    },
    Opt {
        long: "once",
        short: None,
        takes: Takes::Value("KEY"),
        default: Default::None,
        section: Section::Common,
        help: "Have the job succeed once for this key, on all machines",
        more: "If the key is done, neli-run exits with --done-status. If it runs elsewhere, neli-run stands by, \
               and runs the job from the beginning if that run is stopped, dies, or fails with --retries left. 1 \
               to 200 bytes, without control characters. Not with --roles or --restart. See ONCE in neli-run(1).",
    },
    Opt {
        long: "listen",
        short: None,
        takes: Takes::Value("ADDRESS"),
        default: Default::None,
        section: Section::Common,
        help: "Serve metrics, probes and a status page over HTTP",
        more: "HOST:PORT, or :PORT for all addresses of the machine; with port 0 the log says which is used. \
               There is no password: choose an address that only trusted clients reach. See MONITORING in \
               neli-run(1).",
    },
];
