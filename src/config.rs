//! The configuration of a candidate, which `doctor` checks as well. `cli::validate` creates it from the command line, and its users don't depend
//! on that. (The subcommands read their own options themselves.) For a guard without real-time scheduling the kill margin is widened here.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use neli_kafka::{Client, Elections, FactsSettings, Words, clock};
use neli_proto::candidate::Timings;
use neli_proto::hooks::Hook;
use neli_proto::once;
use neli_proto::supervisor::Policy;

use crate::calendar::Calendar;
use crate::features;
use crate::text::shown_duration;

/// The variables that a job has: those that describe its run, and those by which subcommands in it find its election. Their names differ from those of options' variables, so that they have no
/// effect on a candidate that the job starts.
pub mod job_variables {
    use neli_proto::time::Span;

    use crate::text::to_the_second;

    /// The group.
    pub const GROUP: &str = "NELI_GROUP";
    /// The topic.
    pub const TOPIC: &str = "NELI_TOPIC";
    /// Kafka's addresses.
    pub const BROKERS: &str = "NELI_BROKERS";
    /// 1 with `--embedded`.
    pub const EMBEDDED: &str = "NELI_EMBEDDED";
    /// The file of `--properties`.
    pub const PROPERTIES: &str = "NELI_PROPERTIES";
    /// The term, which is the fencing token.
    pub const EPOCH: &str = "NELI_EPOCH";
    /// 1, and 1 more for each failed run before it.
    pub const ATTEMPT: &str = "NELI_ATTEMPT";
    /// The number of the lease descriptor; only the job has it.
    pub const LEASE_FD: &str = "NELI_LEASE_FD";
    /// The event of a command or a hook; the job does not have it, and neither the next variable.
    pub const EVENT: &str = "NELI_EVENT";
    /// The reason of the event.
    pub const WHY: &str = "NELI_WHY";

    /// The key of the run; with a window, the beginning of the window.
    pub const ONCE: &str = "NELI_ONCE";
    /// The beginning of the run's window, if it has one.
    pub const WINDOW_START: &str = "NELI_WINDOW_START";
    /// The beginning of the next window.
    pub const WINDOW_END: &str = "NELI_WINDOW_END";

    /// The status of the run that has ended; only its hook has it, and neither the job nor other hooks have the next two.
    pub const EXIT: &str = "NELI_EXIT";
    /// The number of the signal that ended it, in place of a status.
    pub const SIGNAL: &str = "NELI_SIGNAL";
    /// For how long it ran, in whole seconds.
    pub const RUN_SECONDS: &str = "NELI_RUN_SECONDS";

    /// The variables of a run with this window.
    pub(crate) fn of_window(window: Span) -> [(&'static str, String); 3] {
        let (start, end) = (to_the_second(window.from_ms), to_the_second(window.until_ms));
        [(ONCE, start.clone()), (WINDOW_START, start), (WINDOW_END, end)]
    }

    /// The role.
    pub const ROLE: &str = "NELI_ROLE";
    /// `--roles`.
    pub const ROLES: &str = "NELI_ROLES";
    /// The time namespace whose `CLOCK_BOOTTIME` the deadline in the lease descriptor is.
    pub const TIME_NAMESPACE: &str = "NELI_TIME_NAMESPACE";

    /// Variables that are set for each run: those of an outer `neli-run` are not passed on.
    pub const OF_RUN: [&str; 10] =
        [EPOCH, ATTEMPT, LEASE_FD, EVENT, WHY, WINDOW_START, WINDOW_END, EXIT, SIGNAL, RUN_SECONDS];
    /// Variables that only some jobs get, of which the same is true.
    pub const OF_SOME_JOBS: [&str; 6] = [ROLES, BROKERS, EMBEDDED, PROPERTIES, TIME_NAMESPACE, ONCE];
}

/// The prefix of the options' variables.
pub const VARIABLE_PREFIX: &str = "NELI_RUN_";

/// Why a candidate does not stand at the address of an embedded broker.
pub const EMBEDDED_BY_ADDRESS: &str = "a broker of --embedded, which loses its journal when it ends: give --embedded in place of --brokers, by which the \
                                       next broker knows whether a job is left";

/// What messages about Kafka tell a user of this program to do.
pub const WORDS: Words = Words {
    choose_another_group: "choose another --group",
    create_topic: "drop --no-create-topic",
    own_broker: "if it is neli-run's own, say --embedded",
    use_log_elector: "use --elect log",
    brokers: "say --brokers",
    elector: "the order of candidates depends on the classic protocol; see --elect",
    group: "say --group",
    lease: "it follows from --lease",
    topic: "neli-run makes the topic itself; see --no-create-topic",
    for_a_trial: "; for a trial say --embedded",
    not_built: features::not_built,
};

/// The configuration of a candidate.
#[derive(Clone, Debug)]
pub struct Config {
    /// All elections of this process: one, or with `--roles` one for each role.
    pub elections: Elections,
    /// `--roles`: what belongs to it.
    pub roles: Option<Roles>,
    /// The connection to Kafka.
    pub client: Client,
    /// Whether a missing topic is created.
    pub create_topic: bool,
    /// This candidate's name.
    pub name: String,
    /// `--priority`: the candidate with the higher value claims a vacancy first.
    pub priority: u16,
    /// Which candidate claims a vacancy first, and every duration of the protocol.
    pub timings: Timings,
    /// The option or variable that sets the lease, with its value: for a later message that the lease is too short.
    pub lease_shown: String,
    /// `--wait`: the longest time from the process's start to its first lead.
    pub wait: Option<Duration>,
    /// `--once`, `--window` or `--schedule`: the key or the windows for which the job succeeds once.
    pub once: Option<Once>,
    /// When the job is started, stopped and run again, when its health is checked, and what follows a loss of the lead.
    pub job: Policy,
    /// `--health-cmd`.
    pub health_command: Option<OsString>,
    /// The command lines of the hooks.
    pub hooks: BTreeMap<Hook, OsString>,
    /// The settings of the log.
    pub log: Log,
    /// `--listen`: the address for HTTP.
    pub listen: Option<Listen>,
    /// The address that was bound for it, with the port that the kernel chose if 0 was given.
    pub listening_at: Option<SocketAddr>,
    /// `--properties`: the file, by its whole path.
    pub properties_file: Option<PathBuf>,
    /// The variables of options that the job gets.
    pub handed_on: Vec<OsString>,
    /// COMMAND and its arguments; never empty.
    pub command: Vec<OsString>,
    /// Problems that do not prevent the start: one warning each.
    pub warnings: Vec<String>,
}

/// The options that belong to `--roles`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Roles {
    /// `--spread`: whether roles are handed over so that every process has a fair share.
    pub are_spread: bool,
    /// `--max-roles`: the most roles that this process leads.
    pub most: Option<u32>,
}

/// `--once`, `--window` or `--schedule`, and the options that belong to it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Once {
    /// The key or the windows for which the job succeeds once, and how often a failed run is repeated.
    pub policy: once::Policy,
    /// `--window` and `--schedule`: the calendar of the windows.
    pub calendar: Option<Calendar>,
    /// `--schedule`, as it was given.
    pub schedule: Option<Box<str>>,
    /// These options as they are typed, without the key.
    pub options: Box<str>,
    /// `--once-retention`: how long a topic of facts that is created here keeps a fact.
    pub retention: Duration,
}

impl Once {
    /// The key, if it is not a window's.
    pub(crate) fn key(&self) -> Option<&str> {
        self.calendar.is_none().then_some(&*self.policy.key)
    }

    /// The settings for creating the topic of facts. A fact that a later one replaces is kept for the time of a segment, and with windows for a window
    /// more: by a time zone that is set later, the longest day may have an hour more.
    pub(crate) fn topic_settings(&self) -> FactsSettings {
        const LEAST: Duration = Duration::from_secs(60 * 60);
        let (calendar, now_ms) = (self.calendar.as_ref(), clock::wall_ms());
        let longest = calendar.and_then(|calendar| calendar.longest_window(now_ms, LEAST));
        let present = calendar.map(|calendar| calendar.window(now_ms).span);
        let present = present.map(|span| Duration::from_millis(span.until_ms.saturating_sub(span.from_ms)));
        let (compaction_lag, window) =
            (longest.unwrap_or_default() + LEAST, longest.or(present.map(|present| present.min(LEAST))));
        FactsSettings { retention: self.retention, compaction_lag, window }
    }
}

/// The settings of the log.
#[derive(Clone, Debug)]
pub struct Log {
    /// `--log-format`: whether each event is one JSON object in a line, or one sentence.
    pub is_json: bool,
    /// `-q` is -1 (only warnings and errors), `-v` is 1 (librdkafka's log, too), otherwise 0.
    pub verbosity: i8,
    /// `--log-file`; stderr without it.
    pub file: Option<PathBuf>,
    /// The option or variable that sets the file, with its value: for an error that the file can't be opened.
    pub file_shown: String,
}

/// `--listen`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Listen {
    /// A name or an address; empty for all addresses of the machine.
    pub host: String,
    /// 0 for any free port.
    pub port: u16,
    /// The option or variable that sets the address, with its value: for an error that it is not available.
    pub shown: String,
}

/// The shortest kill margin of a guard without real-time scheduling, which has to wait for a processor (measured by `benches/lateness.rs`).
const SHORTEST_ORDINARY_KILL_MARGIN: Duration = Duration::from_millis(300);
/// The rights with which the guard gets a processor at once.
const REAL_TIME: &str = "real-time scheduling for neli-run (ulimit -r 2, LimitRTPRIO=2, or CAP_SYS_NICE)";
/// With a CPU quota the margin is also at least this many of its periods.
const PERIODS: u32 = 3;

impl Config {
    /// The timings with a wider kill margin, for a guard without real-time scheduling, and a warning about the consequence, or that the lease
    /// is too short for the desired margin. `quota` is the quota of processor time for guard and job, if there is one: its file and its period.
    ///
    /// # Errors
    ///
    /// There is a quota, and the lease is too short for the margin that the quota requires.
    pub(crate) fn with_wider_kill_margin(
        &self,
        quota: Option<&(PathBuf, Duration)>,
    ) -> Result<(Timings, Option<String>)> {
        let period = quota.map_or(Duration::ZERO, |(_, period)| *period);
        let needed = (PERIODS * period).max(SHORTEST_ORDINARY_KILL_MARGIN);
        let timings = self.timings.clone().with_kill_margin_of(needed);
        let is_short = timings.kill_margin < needed;
        let [margin, needed, heartbeat_interval, fence_warning] =
            [timings.kill_margin, needed, timings.heartbeat_interval, timings.fence_warning].map(shown_duration);
        let lease = &self.lease_shown;
        let others = format!(
            "heartbeat interval ({heartbeat_interval}) and fence warning ({fence_warning}) also take their time"
        );
        let warning = match quota {
            Some((file, _)) => {
                let file = file.display();
                let why = format!("a CPU quota ({file}) holds up the guard, which may not schedule in real time");
                let better = format!("better: {REAL_TIME}, or no quota");
                if is_short {
                    bail!(
                        "{lease}: too short: {why}, so that it kills {needed} before the lease ends, and {others}; {better}, or a \
                         longer lease"
                    );
                }
                Some(format!("{why}: it kills the job {margin} before the lease ends; {better}"))
            }
            None => is_short.then(|| {
                format!(
                    "{lease}: short for a guard without real-time scheduling: it kills the job {margin} before the lease ends, and \
                     not {needed}, because {others}; on a busy machine the job may outlive its lease; better: {REAL_TIME}, or a longer \
                     lease"
                )
            }),
        };
        Ok((timings, warning))
    }
}
