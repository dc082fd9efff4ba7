//! The configuration of a candidate and of `watch`: types alone. `cli::validate` makes them of the command line, on which their users
//! do not depend.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use neli::program::{Client, ElectionId, Elections, FactsSettings, clock};
use neli_proto::candidate::Timings;
use neli_proto::health::HealthPolicy;
use neli_proto::restart::RestartPolicy;
use neli_proto::schedule::CatchUp;
use neli_proto::supervisor::OnLoss;
use neli_proto::window::Window;

use crate::calendar::Calendar;
use crate::exit::StartupError;

mod kill_margin;

/// The variables by which a job's subcommands find its election. They are not those of options, so that they have no effect on a candidate
/// that the job starts.
pub mod job_variables {
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
}

/// What the variables of options begin with.
pub const VARIABLE_PREFIX: &str = "NELI_RUN_";

/// The configuration of a candidate.
#[derive(Clone, Debug)]
pub struct Config {
    /// The election; of several roles the first one's.
    pub election: ElectionId,
    /// `--roles`: the elections beside it.
    pub roles: Option<Roles>,
    /// How Kafka is reached.
    pub client: Client,
    /// Whether a missing topic is made.
    pub create_topic: bool,
    /// How this candidate is called.
    pub name: String,
    /// `--priority`: the candidate with the higher value claims a vacancy first.
    pub priority: u16,
    /// Which candidate claims a vacancy first, and every duration of the protocol.
    pub timings: Timings,
    /// The option or variable that sets the lease, with its value: for a message about a lease that is found too short later.
    pub lease_shown: String,
    /// `--wait`: how long after the process's start it may take to lead for the first time.
    pub wait: Option<Duration>,
    /// `--settle`: from the lead to the start of its job.
    pub settle: Duration,
    /// `--once`, `--window` or `--schedule`: what the job succeeds once for.
    pub once: Option<Once>,
    /// The number of the signal that asks the job to stop.
    pub stop_signal: i32,
    /// From the stop signal to SIGKILL; zero is SIGKILL with no stop signal before it.
    pub stop_timeout: Duration,
    /// Whether the job is run again.
    pub restart: RestartPolicy,
    /// What follows the loss of the lead.
    pub on_loss: OnLoss,
    /// The health command and the hooks.
    pub commands: Commands,
    /// Where and how we log.
    pub log: Log,
    /// `--listen`: where HTTP is served.
    pub listen: Option<Listen>,
    /// `--properties`: the file, by its whole path.
    pub properties_file: Option<PathBuf>,
    /// Variables of options that had no effect, since the command line says otherwise: the job does not get them.
    pub overridden: Vec<OsString>,
    /// COMMAND and its arguments; never empty.
    pub command: Vec<OsString>,
    /// What is no reason to refuse, and ought to be known: one log line each.
    pub warnings: Vec<String>,
}

/// `--roles`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Roles {
    /// As it was given.
    pub text: String,
    /// How many there are: 1 or more.
    pub count: u32,
    /// How they are called, where they were named.
    pub names: Vec<String>,
    /// `--spread`: whether roles are handed over so that everybody holds a fair share.
    pub are_spread: bool,
    /// `--max-roles`: how many are led here at most.
    pub most: Option<u32>,
}

impl Config {
    /// The elections that the process stands in.
    #[must_use]
    pub fn elections(&self) -> Elections {
        let ElectionId { group, topic, .. } = self.election.clone();
        let (count, names) = self.roles.as_ref().map_or((1, &[][..]), |roles| (roles.count, &roles.names));
        Elections { group, topic, roles: 0..count, names: names.into() }
    }
}

/// `--once`, `--window` or `--schedule`, and what belongs to it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Once {
    /// What the job succeeds once for.
    pub occasion: Occasion,
    /// `--retries`: this many failed runs are followed by another.
    pub retries: u32,
    /// `--done-status`: the exit status of a candidate that finds the key done.
    pub done_status: u8,
    /// `--once-retention`: for how long a topic of facts that is made here keeps a fact.
    pub retention: Duration,
}

/// What the job succeeds once for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Occasion {
    /// `--once`: this key.
    Key(String),
    /// `--schedule`: each window of this calendar, one after the other.
    Schedule(Calendar, CatchUp),
    /// `--window`: this window of this calendar, which the wall clock showed at the start.
    Window(Calendar, Window),
}

impl Once {
    /// The key, where there is one that is no window's.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        match &self.occasion {
            Occasion::Key(key) => Some(key),
            Occasion::Schedule(..) | Occasion::Window(..) => None,
        }
    }

    /// How the topic of facts is made. What a key's record replaces is kept for a segment's time, what a window's replaces for a window's.
    #[must_use]
    pub fn topic_settings(&self) -> FactsSettings {
        const LEAST: Duration = Duration::from_secs(60 * 60);
        let longest = self.calendar().and_then(|calendar| calendar.longest_window(clock::wall_ms(), LEAST));
        FactsSettings { retention: self.retention, compaction_lag: longest.unwrap_or(LEAST) }
    }

    /// The kind of windows.
    #[must_use]
    pub const fn calendar(&self) -> Option<&Calendar> {
        match &self.occasion {
            Occasion::Key(_) => None,
            Occasion::Schedule(calendar, _) | Occasion::Window(calendar, _) => Some(calendar),
        }
    }
}

/// The command line of each command that runs beside the job.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Commands {
    /// `--health-cmd`, and how often it runs.
    pub health: Option<(OsString, HealthPolicy)>,
    /// `--on-fence`.
    pub on_fence: Option<OsString>,
    /// `--on-lead`.
    pub on_lead: Option<OsString>,
    /// `--on-standby`.
    pub on_standby: Option<OsString>,
}

/// Where and how we log.
#[derive(Clone, Debug)]
pub struct Log {
    /// `--log-format`.
    pub format: LogFormat,
    /// `-q` is -1 (warnings and errors alone), `-v` is 1 (librdkafka's log, too), neither is 0.
    pub verbosity: i8,
    /// `--log-file`; stderr without it.
    pub file: Option<PathBuf>,
    /// The option or variable that sets it, with its value: for a message that it can't be opened.
    pub file_shown: String,
}

/// `--listen`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Listen {
    /// A name or an address; empty for all addresses of the machine.
    pub host: String,
    /// 0 for any that is free.
    pub port: u16,
    /// The option or variable that sets it, with its value: for a message that it can't be had.
    pub shown: String,
}

/// `--log-format`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// One sentence a line.
    Text,
}

/// The configuration of a subcommand that looks at one election.
#[derive(Clone, Debug)]
pub struct Look {
    /// The election.
    pub election: ElectionId,
    /// How Kafka is reached.
    pub client: Client,
    /// `--json`: for programs.
    pub json: bool,
    /// `--timeout`: how long Kafka's answers are waited for.
    pub timeout: Duration,
    /// What is no reason to refuse, and ought to be known.
    pub warnings: Vec<String>,
}

/// The configuration of `status`.
#[derive(Clone, Debug)]
pub struct StatusOf {
    /// Where.
    pub look: Look,
    /// `--watch`: it is shown again each second.
    pub is_repeated: bool,
}

/// The configuration of `list`.
#[derive(Clone, Debug)]
pub struct List {
    /// How Kafka is reached.
    pub client: Client,
    /// `--topic`: this one alone.
    pub topic: Option<String>,
    /// `--group`: its elections alone.
    pub group: Option<String>,
    /// `--json`: for programs.
    pub json: bool,
    /// `--timeout`: how long Kafka's answers are waited for.
    pub timeout: Duration,
    /// What is no reason to refuse, and ought to be known.
    pub warnings: Vec<String>,
}

/// The configuration of `doctor`.
#[derive(Clone, Debug)]
pub struct Doctor {
    /// That of the candidate that is examined. Without a group its election has no name; without COMMAND its command is empty.
    pub candidate: Config,
    /// Whether `--group` was given.
    pub has_group: bool,
    /// Why COMMAND can't be run, where one was given.
    pub command: Option<Result<(), StartupError>>,
    /// `--print-topic`: the commands that make the topics, and nothing else.
    pub print_topic: bool,
    /// `--json`: for programs.
    pub json: bool,
    /// `--timeout`: how long each of Kafka's answers is waited for.
    pub timeout: Duration,
}

/// The configuration of `history`.
#[derive(Clone, Debug)]
pub struct HistoryOf {
    /// Where.
    pub look: Look,
    /// `--since`: terms that were over before that are left out.
    pub since: Option<Duration>,
    /// `--check`: what the law finds odd.
    pub check: bool,
    /// `--svg`: the file for a drawing.
    pub svg: Option<PathBuf>,
}

/// The configuration of `resign`.
#[derive(Clone, Debug)]
pub struct Resign {
    /// Where.
    pub look: Look,
    /// `--force`: resign even if nobody stands by.
    pub force: bool,
    /// `--reason`.
    pub reason: Option<Box<str>>,
}

/// The configuration of `end`.
#[derive(Clone, Debug)]
pub struct End {
    /// Where.
    pub look: Look,
    /// `--yes`: do not ask for confirmation.
    pub is_confirmed: bool,
    /// `--force`: also where nobody leads or stands by.
    pub force: bool,
    /// `--reason`.
    pub reason: Option<Box<str>>,
}

/// The configuration of `forget`.
#[derive(Clone, Debug)]
pub struct Forget {
    /// Where.
    pub look: Look,
    /// `--once`: the key; without it the newest window.
    pub key: Option<String>,
    /// `--force`: also where the key runs now, or nothing is recorded of it.
    pub force: bool,
    /// `--yes`: nobody is asked.
    pub is_confirmed: bool,
}

/// The configuration of `assert`.
#[derive(Clone, Debug)]
pub struct Assert {
    /// Whether this term is led: `--epoch`, or the job's own.
    pub term: i64,
    /// The number of the job's lease descriptor; none if the journal must answer.
    pub descriptor: Option<i32>,
    /// `--min-left`: so much of the lease must be left.
    pub min_left: Duration,
    /// `--json`: for programs.
    pub json: bool,
}

/// The configuration of `watch`.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The election.
    pub election: ElectionId,
    /// How Kafka is reached.
    pub client: Client,
    /// `--json`: every record, with the law's verdict.
    pub json: bool,
    /// `--from`; at the end without it.
    pub from: Option<WatchFrom>,
    /// `--until-end`.
    pub until_end: bool,
    /// `--all`: hellos, too.
    pub has_hellos: bool,
    /// `--timeout`: how long Kafka's first answers are waited for.
    pub timeout: Duration,
    /// What is no reason to refuse, and ought to be known.
    pub warnings: Vec<String>,
}

/// `--from`: where `watch` begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WatchFrom {
    /// At the end.
    End,
    /// At this offset.
    Offset(i64),
    /// Records appended this long ago.
    Since(Duration),
    /// At the first record that is kept.
    Start,
}
