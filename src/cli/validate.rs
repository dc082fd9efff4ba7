//! The parsed command line, checked: arguments become a [`Config`] or a [`Watch`] here, and every relation between options is
//! checked here.
//!
//! Whatever is refused is refused before anything is joined, with one line that names the option, the value and the bound.

use std::time::Duration;

use neli::{Brokers, Client, Election};
use neli_proto::supervisor::OnLoss;

use crate::cli::parsed_args::{ParsedArgs, Value};
use crate::config::{Config, Log, LogFormat, Watch};
use crate::exit::StartupError;

mod brokers;
mod commands;
mod executable;
mod properties;
mod restart;
mod signal;
mod timings;
mod watch;

/// The longest of the durations that the protocol sets no bound to: a year, so that no sum of them overflows.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The longest `--group`: what Kafka lets a topic's name be.
const LONGEST_GROUP: usize = 249;
/// The longest `--name`, in bytes: a record must fit 1 KiB, and JSON may need two bytes for one.
const LONGEST_NAME: usize = 255;
/// The longest name that Kafka lets a topic have.
const LONGEST_TOPIC: usize = 249;

/// The configuration of a candidate.
///
/// # Errors
///
/// When something is missing, out of its bounds, or can't hold together; 126 or 127 when COMMAND can't be run.
pub fn config(args: &ParsedArgs) -> Result<Config, StartupError> {
    let command = args.words("COMMAND");
    if args.is_bare() && args.value("group").is_none() {
        return Err(StartupError::new(
            "nothing to run; try: neli-run --embedded --group NAME -- COMMAND, or neli-run --help",
        ));
    }
    let mut warnings = args.environment().warnings();
    let election = election(args)?;
    let timings = timings::validate(args)?;
    let config = Config {
        election,
        client: client(args, &mut warnings)?,
        create_topic: args.flag("no-create-topic")?.is_none(),
        name: name(args)?,
        wait: timings::wait(args, timings.claim_delay())?,
        timings,
        lease_shown: args.setting("lease").shown(),
        stop_signal: signal::validate(&args.setting("stop-signal"))?,
        stop_timeout: duration(&args.setting("stop-timeout"))?,
        restart: restart::validate(args)?,
        on_loss: on_loss(args)?,
        commands: commands::validate(args)?,
        log: log(args)?,
        command,
        warnings,
    };
    properties::validate_group_timings(&config.client.properties, config.timings.elector())?;
    let Some(program) = config.command.first() else {
        return Err(StartupError::new("COMMAND is required; it comes after --, as in: neli-run --group .. -- COMMAND"));
    };
    executable::find(program, args.environment().raw("PATH"))?;
    Ok(config)
}

/// The configuration of `watch`.
///
/// # Errors
///
/// When something is missing or out of its bounds.
pub fn watch(args: &ParsedArgs) -> Result<Watch, StartupError> {
    let mut warnings = args.environment().warnings();
    Ok(Watch {
        election: election(args)?,
        client: client(args, &mut warnings)?,
        json: args.flag("json")?.is_some(),
        from: watch::from(args)?,
        until_end: args.flag("until-end")?.is_some(),
        warnings,
    })
}

fn election(args: &ParsedArgs) -> Result<Election, StartupError> {
    let Some(group) = args.value("group") else {
        return Err(StartupError::new("--group is required: the election's name, the same on every machine"));
    };
    let name = group.text()?.to_owned();
    validate_name(&group, &name, LONGEST_GROUP)?;
    let topic = if let Some(topic) = args.value("topic") {
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

fn client(args: &ParsedArgs, warnings: &mut Vec<String>) -> Result<Client, StartupError> {
    let properties = properties::read(args, warnings)?;
    let brokers = match (args.value("brokers"), args.flag("embedded")?) {
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

fn name(args: &ParsedArgs) -> Result<String, StartupError> {
    let Some(value) = args.value("name") else {
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

fn on_loss(args: &ParsedArgs) -> Result<OnLoss, StartupError> {
    let value = args.setting("on-loss");
    match value.text()? {
        "exit" => Ok(OnLoss::Exit),
        "standby" => Ok(OnLoss::Standby),
        _ => Err(value.refuse("must be standby or exit")),
    }
}

fn log(args: &ParsedArgs) -> Result<Log, StartupError> {
    let format = args.setting("log-format");
    let format = match format.text()? {
        "json" => LogFormat::Json,
        "text" => LogFormat::Text,
        _ => return Err(format.refuse("must be text or json")),
    };
    let verbosity = match (args.flag("quiet")?, args.flag("verbose")?) {
        (None, None) => 0,
        (None, Some(_)) => 1,
        (Some(_), None) => -1,
        (Some(quiet), Some(verbose)) => {
            return Err(StartupError::new(format!("{}: can't be combined with {}", quiet.shown(), verbose.shown())));
        }
    };
    let file = args.value("log-file");
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

#[cfg(test)]
mod tests;
