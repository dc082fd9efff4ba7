//! Every option, in the order of the help. A new option is one row here, and one line in `validate.rs` that reads it.

use super::{Default, Opt, Section, Takes};

/// Every option.
pub const OPTIONS: &[Opt] = &[
    Opt {
        long: "group",
        short: Some('g'),
        takes: Takes::Value("NAME"),
        default: Default::None,
        section: Section::Election,
        help: "The election, and the consumer group's id (required)",
        more: "Every machine that runs the same line with the same group is a candidate. At most 249 bytes.",
    },
    Opt {
        long: "name",
        short: None,
        takes: Takes::Value("NAME"),
        default: Default::Computed("<host>:<pid>"),
        section: Section::Election,
        help: "What this candidate is called",
        more: "In the log, in watch, and by the other candidates. At most 255 bytes.",
    },
    Opt {
        long: "roles",
        short: None,
        takes: Takes::Value("N|NAME,.."),
        default: Default::None,
        section: Section::Election,
        help: "Several elections in this process: so many, or of each name",
        more: "A job runs for each role that is led here, with its name or number in NELI_ROLE. Every candidate of the group \
               must be given the same. Role r, counted from 0, is on partition r mod partitions; a missing topic is made \
               with a partition for each role, up to 100. --restart is always, unless given; with no, a role whose job has \
               ended is stood for no more by this process, which ends when no role is left to it, with the highest status. \
               Not with --wait or --once; the jobs are given no terminal.",
    },
    Opt {
        long: "spread",
        short: None,
        takes: Takes::OneOf("yes|no", &["yes", "no"]),
        default: Default::Value("yes"),
        section: Section::Election,
        help: "Hand roles over until each candidate has a fair share",
        more: "With yes each candidate leads as many of the --roles as any other, or one more, within a minute of a join or a \
               leave, with no more moves than that takes. With no nothing is moved for it. With --elect group and as many \
               partitions as roles the group's assignment says who is to lead which; else each counts what the others lead, \
               and hands over one role at a time. Not with --claim-delay or --priority.",
    },
    Opt {
        long: "max-roles",
        short: None,
        takes: Takes::Value("N"),
        default: Default::Computed("no limit"),
        section: Section::Election,
        help: "Lead no more of the --roles than so many here",
        more: "What is beyond the limits of all candidates is led by nobody.",
    },
    Opt {
        long: "elect",
        short: None,
        takes: Takes::OneOf("group|log", &["group", "log"]),
        default: Default::Value("group"),
        section: Section::Election,
        help: "Who claims a vacancy first: the group's choice, or anybody",
        more: "With group: the member of the consumer group to which Kafka assigns the partition. It decides \
               precedence alone: with either, the journal says who leads, and no two jobs run at once. With log the first claim wins, and no group is joined: a start, and a takeover from a leader that was killed, are faster.",
    },
    Opt {
        long: "patience",
        short: None,
        takes: Takes::Value("DURATION|never"),
        default: Default::Value("500ms"),
        section: Section::Election,
        help: "How long the others leave a vacancy to the group's choice",
        more: "With never, nobody but the group's choice ever claims; not with --claim-delay. Not with --elect \
               log.",
    },
    Opt {
        long: "claim-delay",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("0"),
        section: Section::Election,
        help: "Wait before claiming a vacancy: for a machine of last resort",
        more: "",
    },
    Opt {
        long: "priority",
        short: None,
        takes: Takes::Value("N"),
        default: Default::Value("0"),
        section: Section::Election,
        help: "Who has more claims a vacancy first",
        more: "0 to 1000. Each higher one that is known to stand by costs a candidate 500ms more before it claims, with --elect \
               group the patience besides. It is precedence alone: one that is not heard may be led before. Not with --patience \
               never.",
    },
    Opt {
        long: "preempt",
        short: None,
        takes: Takes::Flag,
        default: Default::None,
        section: Section::Election,
        help: "Ask a leader of lower priority to stand down",
        more: "Its job is stopped in order, and then whoever has the highest priority leads. A leader of the same priority, or \
               a higher one, is never asked. Needs a --priority above 0.",
    },
    Opt {
        long: "preempt-after",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("1m"),
        section: Section::Election,
        help: "Stand by this long before asking it",
        more: "1s or more. Ten times as long after a lead of its own that was fenced, unhealthy, or whose guard died; and not \
               while its own last runs have failed. Not without --preempt.",
    },
    Opt {
        long: "wait",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Computed("for ever"),
        section: Section::Election,
        help: "Exit with 75 when not leading after this long",
        more: "Counted from the start of the process, to the first lead only. A living leader means 75; one \
               that has died without a word is waited out, however long that takes. With 0: lead a vacant \
               election, else 75. While Kafka gives no answer: 75 after this long (with 0: after 5s). Must be \
               more than --claim-delay.",
    },
    Opt {
        long: "brokers",
        short: Some('b'),
        takes: Takes::Value("HOST:PORT,.."),
        default: Default::None,
        section: Section::Kafka,
        help: "Kafka's bootstrap servers",
        more: "An IPv6 address stands in brackets: [::1]:9092. Either this or --embedded is required.",
    },
    Opt {
        long: "embedded",
        short: None,
        takes: Takes::Flag,
        default: Default::None,
        section: Section::Kafka,
        help: "A trial without Kafka, on this machine alone",
        more: "The first candidate starts a small broker on loopback, the others find it, and it ends after the \
               last. Its journal is kept in memory, and no other machine can see it.",
    },
    Opt {
        long: "topic",
        short: Some('t'),
        takes: Takes::Value("NAME"),
        default: Default::Computed("<group>.neli"),
        section: Section::Kafka,
        help: "The journal's topic; made if missing",
        more: "Several elections may share one. 1 to 249 of a-z A-Z 0-9 . _ - and neither . nor ..",
    },
    Opt {
        long: "no-create-topic",
        short: None,
        takes: Takes::Flag,
        default: Default::None,
        section: Section::Kafka,
        help: "Refuse to run when the topic is missing",
        more: "Or when somebody deleted it and made it again: that is not taken for the same one.",
    },
    Opt {
        long: "property",
        short: Some('X'),
        takes: Takes::Each("KEY=VALUE"),
        default: Default::None,
        section: Section::Kafka,
        help: "A librdkafka property; repeatable",
        more: "The last of one key counts. Refused are those that the protocol rests on, and those that another \
               option sets. Every user of the machine can read a command line: a password belongs into a \
               --properties file. NELI_RUN_PROPERTY holds one KEY=VALUE a line.",
    },
    Opt {
        long: "properties",
        short: None,
        takes: Takes::Path("FILE"),
        default: Default::None,
        section: Section::Kafka,
        help: "A file of KEY=VALUE lines: the place for passwords",
        more: "Blank lines, and lines that begin with #, are skipped. --property overrides it.",
    },
    Opt {
        long: "lease",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("20s"),
        section: Section::Timing,
        help: "How long a leader may act on its last heartbeat",
        more: "Counted from the moment before it was sent. After a machine's death another leads about this \
               much later; after a stop, or the death of neli-run alone, at once. After the unclean death of a broker that \
               holds the topic, a follower too, no heartbeat comes back for 9s to 14s with Kafka's own settings: a \
               lease that is not longer ends the job then. 300ms to 60s, in whole milliseconds. The guard kills the job a \
               fiftieth of it, at least 20ms, before its end.",
    },
    Opt {
        long: "heartbeat-interval",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Computed("a fifth of --lease, at most 1s"),
        section: Section::Timing,
        help: "Between two heartbeats",
        more: "10ms to a third of --lease.",
    },
    Opt {
        long: "fence-warning",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Computed("a quarter of --lease, at most 2500ms"),
        section: Section::Timing,
        help: "The stop signal comes this long before the kill",
        more: "When heartbeats don't come back, the guard kills the job just before the lease's end; this long before that, the job is asked to stop. 0 (it is not) to half of --lease.",
    },
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
               keeps less. 1h to 365d. Only with --once, --window or --schedule.",
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
    Opt {
        long: "health-cmd",
        short: None,
        takes: Takes::Value("COMMAND"),
        default: Default::None,
        section: Section::Commands,
        help: "Tells by its status whether the job is well",
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
        help: "So many failures in a row make a job ill",
        more: "A success sets the count back, and each run of the job begins with none.",
    },
    Opt {
        long: "health-start",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("0"),
        section: Section::Commands,
        help: "How long a job may take to become well",
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
    Opt {
        long: "log-format",
        short: None,
        takes: Takes::OneOf("text|json", &["text", "json"]),
        default: Default::Value("text"),
        section: Section::Log,
        help: "One sentence a line, or one JSON object",
        more: "",
    },
    Opt {
        long: "log-file",
        short: None,
        takes: Takes::Path("FILE"),
        default: Default::Computed("stderr"),
        section: Section::Log,
        help: "Append the log here, and leave stderr to the job",
        more: "",
    },
    Opt {
        long: "verbose",
        short: Some('v'),
        takes: Takes::Flag,
        default: Default::None,
        section: Section::Log,
        help: "Log what librdkafka says, too",
        more: "",
    },
    Opt {
        long: "quiet",
        short: Some('q'),
        takes: Takes::Flag,
        default: Default::None,
        section: Section::Log,
        help: "Log warnings and errors alone",
        more: "",
    },
];
