//! Every option, in the order of the help. A new option needs a row here, and a line in `validate.rs` that reads it.

use super::{OF_ELECTION, Opt, Takes};

/// Every option, by the headings of the help.
pub const SECTIONS: [(&str, &[Opt]); 7] = [
    (super::COMMON, COMMON),
    (OF_ELECTION, ELECTION),
    ("Kafka options", KAFKA),
    ("Timing options", TIMING),
    ("Job options", JOB),
    ("Health and hook options", COMMANDS),
    ("Log options", LOG),
];

/// Every option.
pub fn options() -> impl Iterator<Item = &'static Opt> {
    SECTIONS.into_iter().flat_map(|(_, options)| options)
}

const COMMON: &[Opt] = &[
    Opt::new("group", "Name of the election and of its consumer group (required)").short('g').value("NAME").more(
        "The same for all candidates, and the group.id of no other program, nor of the job. 1 to 249 bytes; \
               without / with --once, --window or --schedule.",
    ),
    Opt::new("brokers", "Kafka's bootstrap servers")
        .short('b')
        .value("HOST:PORT,..")
        .more("IPv6 addresses in brackets: [::1]:9092. Required, or --embedded."),
    Opt::new("properties", "Read properties, such as passwords, from a file")
        .takes(Takes::Path("FILE"))
        .more("Each line is KEY=VALUE, blank, or a comment that begins with #. --property overrides the file."),
    Opt::new("lease", "Time that a leader may act after it sent a heartbeat").value("DURATION").default("20s").more(
        "300ms to 60s, in whole milliseconds. After a machine's death another leads after about this time. \
               Below 18s, with Kafka's defaults, a broker's death may end jobs.",
    ),
    Opt::new("stop-timeout", "Time from the stop signal to SIGKILL").value("DURATION").default("8s").more(
        "The lease's end may shorten it; 0 sends SIGKILL at once. Set it below the time after which neli-run \
               itself is killed: 10s with Docker and Podman, TimeoutStopSec= with systemd, \
               terminationGracePeriodSeconds with Kubernetes.",
    ),
    Opt::new("restart", "Run the job again when it ends, and keep the lead")
        .takes(Takes::OneOf("no|on-failure|always", &["no", "on-failure", "always"]))
        .default("no")
        .more(
            "no: release the lead, and exit with the job's status. on-failure: the same after status 0. always is \
               the default with --roles. After a stop signal the job does not run again.",
        ),
    Opt::new("schedule", "Run the job at these times, and keep the lead in between").value("CRON|every DURATION").more(
        "A cron expression ('30 2 * * *', @daily), or 'every 15m', 'every 1d/2h'. A time that comes during a \
               run is skipped. Not with --once, --window, --roles or --restart. See docs/cron.md.",
    ),
    Opt::new("window", "Have the job succeed once per window, on all machines").value("DURATION[/OFFSET]").more(
        "1d is a day from midnight UTC, 1d/2h from 02:00, 7d a week from Monday; all are counted from Monday, \
               1970-01-05. Whole seconds, 1s to 365d; from a day on, whole days. Not with --once, --schedule, \
               --roles or --restart. See docs/cron.md.",
    ),
    Opt::new("once", "Have the job succeed once for this key, on all machines").value("KEY").more(
        "If the key is done, neli-run exits with --done-status. If it runs elsewhere, neli-run stands by, and \
               runs the job if that run is stopped, dies, or fails with --retries left. 1 to 200 bytes, of which \" \
               and \\ count twice, without control characters. Not with --roles or --restart. See docs/cron.md.",
    ),
    Opt::new("listen", "Serve metrics, probes and a status page over HTTP").value("ADDRESS").more(
        "HOST:PORT, or :PORT for all addresses; with port 0 the log says which. There is no password: only \
               trusted clients may reach it. See docs/http.md.",
    ),
];

const ELECTION: &[Opt] = &[
    Opt::new("name", "Name of this candidate, in the log and for the others")
        .value("NAME")
        .computed("<host>:<pid>")
        .more("1 to 255 bytes."),
    Opt::new("roles", "Stand in N elections, or in one for each name").value("N|NAME,..").more(
        "A job runs for each role that is led here, with the role in NELI_ROLE. Give every candidate the same \
           roles. Not with --wait, --overlap, --once, --window or --schedule. See docs/service.md.",
    ),
    Opt::new("spread", "Move roles until each candidate leads a fair share")
        .takes(Takes::OneOf("yes|no", &["yes", "no"]))
        .default("yes")
        .more("no: they stay where they are. yes: not with --priority. Only with --roles."),
    Opt::new("max-roles", "Lead at most N roles in this process")
        .value("N")
        .computed("no limit")
        .more("If all candidates together may lead too few, some roles have no leader. Only with --roles; not with --preempt."),
    Opt::new("elect", "Which candidate claims first when nobody leads")
        .takes(Takes::OneOf("group|log", &["group", "log"]))
        .default("group")
        .more(
            "group: the member that Kafka's consumer group chooses. log: any candidate; no right on a group is \
           needed. See WHO GOES FIRST in neli-run(1).",
        ),
    Opt::new("patience", "Time for which the group's choice alone may claim")
        .value("DURATION|never")
        .default("500ms")
        .more(
            "never: the others never claim (not with --priority; with --roles they do, after 500ms). Not \
           with --elect log.",
        ),
    Opt::new("priority", "Claim before candidates of a lower priority")
        .value("N")
        .default("0")
        .more("0 to 1000. Not with --patience never. See WHO GOES FIRST in neli-run(1)."),
    Opt::new("preempt", "Ask a leader of a lower priority to stand down")
        .takes(Takes::Optional("DURATION", "1m"))
        .more(
            "It asks once it has stood by for DURATION under that leader: 1m if not given, at least 1s; ten times that if its last \
           lead was fenced or unhealthy, or its guard died. Needs a --priority above 0.",
        ),
    Opt::new("wait", "Exit with 75 if not leading after this time").value("DURATION").computed("no limit").more(
        "From the start to the first lead; if the leader has died, however long ago, neli-run first waits for \
           its lease. 0: lead at once or exit, after 5s if Kafka does not answer.",
    ),
];

const KAFKA: &[Opt] = &[
    Opt::new("embedded", "Try neli-run on this machine, without Kafka").more(
        "The first candidate starts a small broker, which ends after the last. Its journal is in memory, and \
           other machines can't reach it.",
    ),
    Opt::new("topic", "Topic of the journal, made if missing")
        .short('t')
        .value("NAME")
        .computed("<group>.neli")
        .more(
            "The same for all candidates: each topic has a leader of its own. Several elections may share a topic. 1 to 249 of \
           a-z A-Z 0-9 . _ -, and neither . nor ..",
        ),
    Opt::new("no-create-topic", "Exit with 125 if the topic is missing")
        .more("Also if it is deleted and created again."),
    Opt::new("property", "Set a property of librdkafka; repeatable")
        .short('X')
        .takes(Takes::Each("KEY=VALUE"))
        .more(
            "A key's last value counts; properties that the protocol needs, or another option sets, are refused. \
           Put passwords into a --properties file. NELI_RUN_PROPERTY has one KEY=VALUE a line.",
        ),
];

const TIMING: &[Opt] = &[
    Opt::new("heartbeat-interval", "Time between two heartbeats")
        .value("DURATION")
        .computed("--lease / 5, at most 1s")
        .more("10ms to a third of --lease."),
    Opt::new("fence-warning", "Time from the stop signal to the kill by the guard")
        .value("DURATION")
        .computed("--lease / 4, at most 2500ms")
        .more(
            "If no heartbeat comes back, the guard kills the job just before the lease ends. 0 (no stop signal) \
               to half of --lease.",
        ),
];

const JOB: &[Opt] = &[
    Opt::new("settle", "Time from winning the lead to the start of the job").value("DURATION").default("0").more(
        "Messages of the previous leader can arrive meanwhile; later runs under the same lead do not \
               wait. A stop in this time ends the lead without a run, after TERM with status 143.",
    ),
    Opt::new("overlap", "Time for which the old job runs on beside the new one").value("DURATION").more(
        "At a handover the leader keeps its job until another candidate claims, and ends it within this \
               time after that. 10ms to half of --lease; for all candidates or none. Not with --roles, \
               --settle, --once, --window or --schedule. See docs/service.md.",
    ),
    Opt::new("stop-signal", "Signal that asks the job to stop, by name or number")
        .takes(Takes::OneOf(
            "SIGNAL|none",
            &["TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "WINCH", "ALRM", "ABRT", "none"],
        ))
        .default("TERM")
        .more("neli-run itself stops at it as at TERM. none: a stop lets the run finish, up to --stop-timeout."),
    Opt::new("restart-delay", "Time from the end of a run to the next run").value("DURATION").default("1s").more(
        "Each failed run doubles it, up to 30s; a run that succeeds, or takes 30s or more, resets it. \
               Not with --restart no.",
    ),
    Opt::new("restart-limit", "Number of restarts after failures within a time")
        .value("N/DURATION")
        .default("10/5m")
        .more(
            "At the next failure neli-run releases the lead and exits with 84; with --roles it leaves that \
               role. none: no limit. Not with --restart no.",
        ),
    Opt::new("timezone", "Time zone of --schedule, and of the midnight of --window").value("NAME").default("UTC").more(
        "Such as Europe/Berlin, the same on every machine. Windows shorter than a day are in UTC. Only with \
               --window or --schedule.",
    ),
    Opt::new("catch-up", "Which missed window a new leader runs")
        .takes(Takes::OneOf("last|none", &["last", "none"]))
        .default("last")
        .more(
            "last: the current window, if it is not done. none: it waits for the next time. Only with \
               --schedule.",
        ),
    Opt::new("retries", "Number of runs after a failed run of the key").value("N").default("0").more(
        "Counted on all machines together. When none is left, each candidate exits with the recorded status. A run \
               that could not be started is not counted, but each candidate repeats it no more often. Only with --once \
               or --window.",
    ),
    Opt::new("done-status", "Exit status if the key is already done")
        .value("N")
        .default("0")
        .more("0 to 255; a candidate that runs the job exits with its status. Only with --once or --window."),
    Opt::new("once-retention", "Time for which the record of a key is kept")
        .value("DURATION")
        .computed("90d, or twice the window")
        .more(
            "The longer of the two; of a schedule the longest window counts. It is the retention.ms of a \
               <topic>.once that neli-run makes. 1h to 3650d, and more than the longest window. Only with --once, \
               --window or --schedule.",
        ),
    Opt::new("on-loss", "Stand by again, or exit, when the lead is lost")
        .takes(Takes::OneOf("standby|exit", &["standby", "exit"]))
        .default("standby")
        .more(
            "A lead is lost if it is revoked, resigned, superseded or fenced, the job is unhealthy, the guard \
               dies, or <topic>.once can't be read or written. exit: with status 80, 81 or 82; with --roles it ends \
               only the lost role, and none is revoked.",
        ),
];

const COMMANDS: &[Opt] = &[
    Opt::new("health-cmd", "Shell command whose status says if the job is healthy").value("COMMAND").more(
        "/bin/sh -c runs it beside the job, with its environment; the output goes to stderr, the last line of \
           a failure also to the log. After --health-failures in a row this candidate stands down.",
    ),
    Opt::new("health-interval", "Time between two health commands")
        .value("DURATION")
        .default("10s")
        .more("From the end of one to the start of the next; the first starts this long after the job. Only with --health-cmd."),
    Opt::new("health-timeout", "Time after which a health command has failed")
        .value("DURATION")
        .default("5s")
        .more("Its process group is killed then. Only with --health-cmd."),
    Opt::new("health-failures", "Number of failures in a row that make a job unhealthy")
        .value("N")
        .default("3")
        .more("Each run of the job starts at 0. Only with --health-cmd."),
    Opt::new("health-start", "Time that a job has to become healthy")
        .value("DURATION")
        .default("0")
        .more("An earlier failure in a run counts only after a success. Only with --health-cmd."),
    Opt::new("on-lead", "Shell command to run when this candidate wins the lead").value("COMMAND").more(
        "/bin/sh -c runs each hook beside the job, with its environment and more (ENVIRONMENT in \
           neli-run(1)); the output goes to stderr. Only the exit of neli-run waits for a hook, which is killed \
           after 10s, as is its process group when it ends. This one begins with the lead's first run, and ends \
           with the job.",
    ),
    Opt::new("on-exit", "Shell command to run after each run of the job").value("COMMAND").more(
        "It begins when nothing of the run is left, and delays neither the release nor the next run. NELI_EXIT \
           or NELI_SIGNAL tells how the run ended; NELI_WHY is exited or stopped. Of 8 at once the oldest is \
           killed.",
    ),
    Opt::new("on-standby", "Shell command to run when this candidate stands by").value("COMMAND").more(
        "Also at the exit after a lead; NELI_WHY says why a lead ended. If neli-run is killed, it runs \
         no hook, and the shell of one that runs is killed, but not what that has started.",
    ),
    Opt::new("on-fence", "Shell command to run after a fence has killed the job")
        .value("COMMAND")
        .more("NELI_WHY is fenced, guard-died or superseded."),
];

const LOG: &[Opt] = &[
    Opt::new("log-format", "Log a sentence a line, or a JSON object a line")
        .takes(Takes::OneOf("text|json", &["text", "json"]))
        .default("text"),
    Opt::new("log-file", "Append the log to this file, and keep stderr for the job")
        .takes(Takes::Path("FILE"))
        .computed("stderr"),
    Opt::new("verbose", "Log the messages of librdkafka, too").short('v'),
    Opt::new("quiet", "Log only warnings and errors").short('q'),
];
