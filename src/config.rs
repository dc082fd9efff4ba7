//! What a run is told, validated: arguments become a [`Config`] here, and every relation between options is checked here.
//!
//! Whatever is refused is refused before anything is joined, with one line that names the option, the value and the
//! bound.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use neli::election::{Brokers, Client, Election};
use neli_proto::candidate::{Elector, Patience, Timings};
use neli_proto::restart::RestartPolicy;
use neli_proto::supervision::OnLoss;

use crate::cli::parsed_args::{ParsedArgs, Value};
use crate::exit::StartupError;

mod brokers;
mod commands;
mod executable;
pub(crate) mod properties;
mod restart;
mod signal;
mod watch;

pub use crate::cli::options::VARIABLE_PREFIX;
pub use commands::Commands;
pub use signal::signal_name;
pub use watch::{Watch, WatchFrom};

/// Everything a candidate is told at its start.
#[derive(Clone, Debug)]
pub struct Config {
    /// The election.
    pub election: Election,
    /// How Kafka is reached.
    pub client: Client,
    /// Whether a missing topic is made.
    pub create_topic: bool,
    /// How this candidate is called.
    pub name: String,
    /// Who claims a vacancy first, and every duration of the protocol.
    pub timings: Timings,
    /// The lease as it was given: for whoever finds it too short later.
    pub lease_shown: String,
    /// `--wait`: how long after the process's start it may take to lead for the first time.
    pub wait: Option<Duration>,
    /// The number of the signal that asks the job to stop.
    pub stop_signal: i32,
    /// From the stop signal to SIGKILL; zero is SIGKILL with no stop signal before it.
    pub stop_timeout: Duration,
    /// Whether the job is run again.
    pub restart: RestartPolicy,
    /// What follows the loss of the lead.
    pub on_loss: OnLoss,
    /// What runs beside the job.
    pub commands: Commands,
    /// Where and how we log.
    pub log: Log,
    /// COMMAND and its arguments; never empty.
    pub command: Vec<OsString>,
    /// What is no reason to refuse, and ought to be known: one log line each.
    pub warnings: Vec<String>,
}

/// Where and how we log.
#[derive(Clone, Debug)]
pub struct Log {
    /// `--log-format`.
    pub format: LogFormat,
    /// `-q` is -1 (warnings and errors alone), `-v` is 1 (what librdkafka says, too), neither is 0.
    pub verbosity: i8,
    /// `--log-file`; stderr without it.
    pub file: Option<PathBuf>,
    /// The same as it was given, by option or variable: for whoever can't open it.
    pub file_shown: String,
}

/// `--log-format`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// One sentence a line.
    Text,
}

/// The longest of the durations that the protocol sets no bound to: a year, so that no sum of them overflows.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The lease's bounds.
const LEASE: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(60));
/// The longest heartbeat interval that is chosen unless one is given: a beat a second is 20 MB of journal a day, and a leader
/// is then never long without a word, however long its lease.
const LONGEST_DEFAULT_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// The longest fence warning that is chosen unless one is given: whoever is asked to stop sooner may be asked in vain, since
/// Kafka may still answer.
const LONGEST_DEFAULT_FENCE_WARNING: Duration = Duration::from_millis(2500);
/// The shortest heartbeat interval: an echo takes a few milliseconds, and a log that keeps a day is no place for more.
const SHORTEST_HEARTBEAT_INTERVAL: Duration = Duration::from_millis(10);
/// The shortest kill margin.
const SHORTEST_KILL_MARGIN: Duration = Duration::from_millis(20);
/// The shortest kill margin where the guard has to wait for a processor like everybody else (measured: `tests/guard/lateness.rs`).
const SHORTEST_ORDINARY_KILL_MARGIN: Duration = Duration::from_millis(300);
/// Where a quota of processor time applies, so many of its periods besides.
const PERIODS: u32 = 3;
/// The longest `--group`: what Kafka lets a topic's name be.
const LONGEST_GROUP: usize = 249;
/// The longest `--name`, in bytes: a record must fit 1 KiB, and JSON may need two bytes for one.
const LONGEST_NAME: usize = 255;
/// The longest name that Kafka lets a topic have.
const LONGEST_TOPIC: usize = 249;

impl Config {
    /// Proves what was given.
    ///
    /// # Errors
    ///
    /// When something is missing, out of its bounds, or can't hold together; 126 or 127 when COMMAND can't be run.
    pub fn validate(given: &ParsedArgs) -> Result<Self, StartupError> {
        let command = given.words("COMMAND");
        if given.is_bare() && given.value("group").is_none() {
            return Err(StartupError::new(
                "nothing to run; try: neli-run --embedded --group NAME -- COMMAND, or neli-run --help",
            ));
        }
        let mut warnings = given.environment().warnings();
        let election = election(given)?;
        let timings = timings(given)?;
        let config = Self {
            election,
            client: client(given, &mut warnings)?,
            create_topic: given.flag("no-create-topic")?.is_none(),
            name: name(given)?,
            wait: wait(given, timings.claim_delay)?,
            timings,
            lease_shown: given.setting("lease").shown(),
            stop_signal: signal::validate(&given.setting("stop-signal"))?,
            stop_timeout: duration(&given.setting("stop-timeout"))?,
            restart: restart::validate(given)?,
            on_loss: on_loss(given)?,
            commands: commands::validate(given)?,
            log: log(given)?,
            command,
            warnings,
        };
        properties::validate_group_timings(&config.client.properties, config.timings.elector)?;
        let Some(program) = config.command.first() else {
            return Err(StartupError::new(
                "COMMAND is required; it comes after --, as in: neli-run --group .. -- COMMAND",
            ));
        };
        executable::find(program, given.environment().raw("PATH"))?;
        Ok(config)
    }
}

impl Config {
    /// Widens the kill margin for a guard that may not schedule in real time, and warns of what that means. `quota` is a
    /// quota of processor time on guard and job, where there is one: the file that says so, and its period.
    ///
    /// # Errors
    ///
    /// When there is a quota, and the lease is too short for the margin that it takes.
    pub fn widen_kill_margin(&mut self, quota: Option<(&Path, Duration)>) -> Result<(), StartupError> {
        let Timings { lease, heartbeat_interval, fence_warning, .. } = self.timings;
        let period = quota.map_or(Duration::ZERO, |(_, period)| period);
        let needed = (PERIODS * period).max(SHORTEST_ORDINARY_KILL_MARGIN);
        // Some of the lease must be left to start a job in: a tenth, besides heartbeat interval and fence warning (R3).
        let widest = (lease * 9 / 10).saturating_sub(heartbeat_interval + fence_warning);
        let margin = self.timings.kill_margin.max(needed.min(widest));
        if let Some((file, _)) = quota {
            let better =
                "better: real-time scheduling for neli-run (ulimit -r 2, LimitRTPRIO=2, or CAP_SYS_NICE), or no quota";
            let why =
                format!("a CPU quota ({}) holds up the guard, which may not schedule in real time", file.display());
            if margin < needed {
                return Err(StartupError::new(format!(
                    "{}: too short: {why}, so that it kills {} before the lease ends, and heartbeat interval ({}) and fence \
                     warning ({}) come besides; {better}, or a longer lease",
                    self.lease_shown,
                    shown(needed),
                    shown(heartbeat_interval),
                    shown(fence_warning)
                )));
            }
            self.warnings.push(format!("{why}: it kills the job {} before the lease ends; {better}", shown(margin)));
        }
        self.timings.kill_margin = margin;
        Ok(())
    }
}

fn election(given: &ParsedArgs) -> Result<Election, StartupError> {
    let Some(group) = given.value("group") else {
        return Err(StartupError::new("--group is required: the election's name, the same on every machine"));
    };
    let name = group.text()?.to_owned();
    validate_name(&group, &name, LONGEST_GROUP)?;
    let topic = if let Some(topic) = given.value("topic") {
        let name = topic.text()?.to_owned();
        if !is_topic_name(&name) {
            return Err(topic.refuse(format!("must be {TOPIC_NAME}")));
        }
        name
    } else {
        let topic = format!("{name}.neli");
        if !is_topic_name(&topic) {
            return Err(group.refuse(format!("the topic '{topic}' would not be {TOPIC_NAME}; give another by --topic")));
        }
        topic
    };
    Ok(Election { group: name, topic, partition: 0, role: 0 })
}

const TOPIC_NAME: &str = "1 to 249 of a-z A-Z 0-9 . _ -, and neither . nor ..";

fn is_topic_name(name: &str) -> bool {
    let fits = (1..=LONGEST_TOPIC).contains(&name.len());
    let plain = name.chars().all(|character| character.is_ascii_alphanumeric() || "._-".contains(character));
    fits && plain && name != "." && name != ".."
}

fn client(given: &ParsedArgs, warnings: &mut Vec<String>) -> Result<Client, StartupError> {
    let properties = properties::read(given, warnings)?;
    let brokers = match (given.value("brokers"), given.flag("embedded")?) {
        (None, None) => {
            return Err(StartupError::new(
                "--brokers or --embedded is required: Kafka's addresses (--brokers HOST:PORT,..), or a trial on this \
                 machine alone (--embedded)",
            ));
        }
        (None, Some(_)) => Brokers::Embedded,
        (Some(brokers), None) => Brokers::At(brokers::validate(&brokers, &properties)?),
        (Some(brokers), Some(embedded)) => {
            return Err(brokers.refuse(format!("can't be combined with {}", embedded.shown())));
        }
    };
    Ok(Client { brokers, properties })
}

fn name(given: &ParsedArgs) -> Result<String, StartupError> {
    let Some(value) = given.value("name") else {
        let host = nix::unistd::gethostname().unwrap_or_default();
        return Ok(format!("{}:{}", host.to_string_lossy(), std::process::id()));
    };
    let name = value.text()?.to_owned();
    validate_name(&value, &name, LONGEST_NAME)?;
    Ok(name)
}

fn validate_name(value: &Value, name: &str, longest: usize) -> Result<(), StartupError> {
    if name.trim().is_empty() {
        return Err(value.refuse("must not be blank"));
    }
    if name.len() > longest {
        return Err(value.refuse(format!("must be at most {longest} bytes, and has {}", name.len())));
    }
    if name.contains(char::is_control) {
        return Err(value.refuse("must have no control characters"));
    }
    Ok(())
}

fn timings(given: &ParsedArgs) -> Result<Timings, StartupError> {
    let value = given.setting("lease");
    let lease = value.duration()?;
    if lease < LEASE.0 || lease > LEASE.1 {
        return Err(value.refuse(format!("must be {} to {}", shown(LEASE.0), shown(LEASE.1))));
    }
    if lease.subsec_nanos() % 1_000_000 != 0 {
        return Err(value.refuse("must be whole milliseconds"));
    }
    let claim_delay = duration(&given.setting("claim-delay"))?;
    Ok(Timings {
        lease,
        heartbeat_interval: heartbeat_interval(given, lease)?,
        kill_margin: (lease / 50).max(SHORTEST_KILL_MARGIN),
        fence_warning: fence_warning(given, lease)?,
        claim_delay,
        elector: elector(given, claim_delay)?,
    })
}

fn heartbeat_interval(given: &ParsedArgs, lease: Duration) -> Result<Duration, StartupError> {
    let Some(value) = given.value("heartbeat-interval") else {
        return Ok((lease / 5).min(LONGEST_DEFAULT_HEARTBEAT_INTERVAL));
    };
    let interval = value.duration()?;
    if interval < SHORTEST_HEARTBEAT_INTERVAL || interval > lease / 3 {
        let (shortest, longest) = (shown(SHORTEST_HEARTBEAT_INTERVAL), shown(lease / 3));
        let lease = given.setting("lease").shown();
        return Err(value.refuse(format!("must be {shortest} to {longest}, a third of {lease}")));
    }
    Ok(interval)
}

fn fence_warning(given: &ParsedArgs, lease: Duration) -> Result<Duration, StartupError> {
    let Some(value) = given.value("fence-warning") else {
        return Ok((lease / 4).min(LONGEST_DEFAULT_FENCE_WARNING));
    };
    let warning = value.duration()?;
    if warning > lease / 2 {
        let (longest, lease) = (shown(lease / 2), given.setting("lease").shown());
        return Err(value.refuse(format!("must be 0 to {longest}, half of {lease}")));
    }
    Ok(warning)
}

fn elector(given: &ParsedArgs, claim_delay: Duration) -> Result<Elector, StartupError> {
    let elector = given.setting("elect");
    let patience = given.setting("patience");
    match elector.text()? {
        "group" if patience.text()? != "never" => Ok(Elector::Group(Patience::For(duration(&patience)?))),
        "group" if claim_delay.is_zero() => Ok(Elector::Group(Patience::Never)),
        "group" => Err(patience.refuse(format!(
            "can't be combined with {}: none but the group's choice claims",
            given.setting("claim-delay").shown()
        ))),
        "log" if patience.is_given() => Err(patience.refuse(format!("has no meaning with {}", elector.shown()))),
        "log" => Ok(Elector::Log),
        _ => Err(elector.refuse("must be group or log")),
    }
}

fn wait(given: &ParsedArgs, claim_delay: Duration) -> Result<Option<Duration>, StartupError> {
    let Some(value) = given.value("wait") else { return Ok(None) };
    let wait = duration(&value)?;
    if !claim_delay.is_zero() && wait <= claim_delay {
        return Err(value.refuse(format!("must be more than {}", given.setting("claim-delay").shown())));
    }
    Ok(Some(wait))
}

fn on_loss(given: &ParsedArgs) -> Result<OnLoss, StartupError> {
    let value = given.setting("on-loss");
    match value.text()? {
        "exit" => Ok(OnLoss::Exit),
        "standby" => Ok(OnLoss::Standby),
        _ => Err(value.refuse("must be standby or exit")),
    }
}

fn log(given: &ParsedArgs) -> Result<Log, StartupError> {
    let format = given.setting("log-format");
    let format = match format.text()? {
        "json" => LogFormat::Json,
        "text" => LogFormat::Text,
        _ => return Err(format.refuse("must be text or json")),
    };
    let verbosity = match (given.flag("quiet")?, given.flag("verbose")?) {
        (None, None) => 0,
        (None, Some(_)) => 1,
        (Some(_), None) => -1,
        (Some(quiet), Some(verbose)) => {
            return Err(StartupError::new(format!("{}: can't be combined with {}", quiet.shown(), verbose.shown())));
        }
    };
    let file = given.value("log-file");
    let file_shown = file.as_ref().map(Value::shown).unwrap_or_default();
    Ok(Log { format, verbosity, file: file.map(|value| value.text.into()), file_shown })
}

/// A duration from 0 to a year.
fn duration(value: &Value) -> Result<Duration, StartupError> {
    let duration = value.duration()?;
    if duration > LONGEST {
        return Err(value.refuse("must be 0 to 365d"));
    }
    Ok(duration)
}

/// A duration as a person would give it, rounded down to whole milliseconds.
fn shown(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{}s", duration.as_secs())
    } else {
        format!("{}ms", duration.as_millis())
    }
}

#[cfg(test)]
mod tests;
