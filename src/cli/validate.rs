//! Checks the parsed command line, and makes a configuration of it. Every relation between options is checked here.
//!
//! A wrong value is refused before the process joins anything, in one line that names the option, the value and the bound.

use std::time::Duration;

use anyhow::{Result, bail};
use neli_kafka::{Client, ElectionId, Elections, bootstrap_servers, names};
use neli_proto::supervisor::{OnLoss, Policy, StopPolicy};

use crate::cli::parsed_args::{ParsedArgs, Value};
use crate::config::{Config, Listen, Log};
use crate::report::log::{Level, say_at};

mod election;
mod job;
mod once;
mod properties;
mod together;

pub(crate) use election::role;
pub(crate) use once::{validate_group, validate_key};

/// The longest value of durations that the protocol does not limit: a year, so that no sum of them overflows.
pub(crate) const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The configuration of a candidate.
///
/// # Errors
/// A value is missing, out of its bounds or contradicts another; 126 or 127 if COMMAND can't be run.
pub fn config(args: &ParsedArgs) -> Result<Config> {
    if args.is_bare() && args.value("group").is_none() {
        bail!("nothing to run; try: neli-run --embedded --group NAME -- COMMAND, or neli-run --help");
    }
    let config = || {
        let config = candidate(args, election(args)?)?;
        find_command(args, &config)?;
        Ok(config)
    };
    // A variable that is misspelled may be why.
    config().inspect_err(|_| warn(&args.warnings()))
}

/// Says the warnings about the command line and the environment.
pub(crate) fn warn(warnings: &[String]) {
    for warning in warnings {
        say_at(Level::Warning, &format!("warning: {warning}"));
    }
}

/// Finds the file of COMMAND.
///
/// # Errors
/// 126 or 127: it can't be run.
pub(crate) fn find_command(args: &ParsedArgs, config: &Config) -> Result<()> {
    job::find_command(&config.command, args.raw_variable("PATH")).map(drop)
}

/// The configuration of a candidate that `doctor` checks. Without a group its election has no name; without COMMAND its command is empty.
///
/// # Errors
/// Another value is missing, out of its bounds or contradicts another.
pub fn doctor(args: &ParsedArgs) -> Result<Config> {
    let nowhere = || ElectionId { group: String::new(), topic: String::new(), partition: 0, role: 0, role_name: None };
    candidate(args, if args.value("group").is_some() { election(args)? } else { nowhere() })
}

/// The configuration of a candidate in this election. COMMAND is not checked.
fn candidate(args: &ParsedArgs, election: ElectionId) -> Result<Config> {
    let mut warnings = args.warnings();
    let roles = election::roles(args)?;
    let (count, names) = election::count_and_names(args)?;
    let once = once::validate(args, &election)?;
    let timings = election::timings(args)?;
    let config = Config {
        elections: Elections { group: election.group, topic: election.topic, roles: 0..count, names },
        roles,
        client: client(args, &mut warnings)?,
        create_topic: args.flag("no-create-topic")?.is_none(),
        name: name(args)?,
        priority: election::priority(args)?,
        wait: args.value("wait").map(|wait| duration(&wait)).transpose()?,
        once,
        timings,
        lease_shown: args.setting("lease").shown(),
        job: Policy {
            settle: duration(&args.setting("settle"))?,
            stop: StopPolicy {
                signal: job::stop_signal(&args.setting("stop-signal"))?,
                timeout: duration(&args.setting("stop-timeout"))?,
            },
            restart: job::restart(args)?,
            on_loss: args.setting("on-loss").one_of(&[("standby", OnLoss::Standby), ("exit", OnLoss::Exit)])?,
            health: job::health(args)?,
        },
        health_command: job::command(args, "health-cmd")?,
        hooks: job::hooks(args)?,
        log: log(args)?,
        listen: listen(args)?,
        listening_at: None,
        // If the path can't be made absolute, the relative one may still work in this directory.
        properties_file: args
            .value("properties")
            .map(|file| std::path::absolute(&file.text).unwrap_or(file.text.into())),
        handed_on: args.handed_on(),
        command: args.words("COMMAND"),
        warnings,
    };
    together::check(args)?;
    properties::validate_group_timings(&config.client.properties, config.timings.elector())?;
    Ok(config)
}

pub(crate) fn election(args: &ParsedArgs) -> Result<ElectionId> {
    let Some(name) = group(args)? else { bail!("--group is required: the election's name, the same on every machine") };
    let topic = if let Some(topic) = topic(args)? {
        topic
    } else {
        let topic = format!("{name}.neli");
        if !names::is_topic(&topic) {
            let why = format!("the topic '{topic}' would not be {}; give another by --topic", names::TOPIC);
            return Err(args.setting("group").refuse(why));
        }
        topic
    };
    Ok(ElectionId { group: name, topic, partition: 0, role: 0, role_name: None })
}

pub(crate) fn group(args: &ParsedArgs) -> Result<Option<String>> {
    args.value("group").map(|group| group.text_if(names::validate_group)).transpose()
}

pub(crate) fn topic(args: &ParsedArgs) -> Result<Option<String>> {
    let validate = |name: &str| names::is_topic(name).then_some(()).ok_or_else(|| format!("must be {}", names::TOPIC));
    args.value("topic").map(|topic| topic.text_if(validate)).transpose()
}

pub(crate) fn client(args: &ParsedArgs, warnings: &mut Vec<String>) -> Result<Client> {
    let properties = properties::read(args, warnings)?;
    let bootstrap = match (args.value("brokers"), args.flag("embedded")?) {
        (None, None) => {
            bail!(
                "--brokers or --embedded is required: Kafka's addresses (--brokers HOST:PORT,..), or a trial on this \
                 machine alone (--embedded)"
            );
        }
        (None, Some(_)) => None,
        (Some(brokers), None) => {
            let list = bootstrap_servers::validate(brokers.text()?, &properties);
            Some(list.map_err(|error| brokers.refuse(error))?)
        }
        (Some(brokers), Some(embedded)) => {
            return Err(brokers.refuse(format!("can't be combined with {}", embedded.name())));
        }
    };
    Ok(Client { bootstrap, properties })
}

fn name(args: &ParsedArgs) -> Result<String> {
    args.value("name").map_or_else(|| Ok(names::of_process()), |value| candidate_name(&value))
}

pub(crate) fn candidate_name(value: &Value) -> Result<String> {
    value.text_if(|name| names::validate(name, names::LONGEST_NAME))
}

fn log(args: &ParsedArgs) -> Result<Log> {
    let is_json = args.setting("log-format").one_of(&[("text", false), ("json", true)])?;
    let verbosity = match (args.flag("quiet")?, args.flag("verbose")?) {
        (Some(_), _) => -1,
        (None, Some(_)) => 1,
        (None, None) => 0,
    };
    let file = args.value("log-file");
    let file_shown = file.as_ref().map(Value::shown).unwrap_or_default();
    Ok(Log { is_json, verbosity, file: file.map(|value| value.text.into()), file_shown })
}

/// A duration from 0 to a year.
pub(crate) fn duration(value: &Value) -> Result<Duration> {
    value.duration_in(..=LONGEST, || "must be 0 to 365d".to_owned())
}

/// A duration above 0, up to a year.
pub(crate) fn positive_duration(value: &Value) -> Result<Duration> {
    value.duration_in(Duration::from_nanos(1)..=LONGEST, || "must be more than 0, and at most 365d".to_owned())
}

/// The address for HTTP, if one is given. Binding shows later whether it is available.
pub(crate) fn listen(args: &ParsedArgs) -> Result<Option<Listen>> {
    let Some(value) = args.value("listen") else { return Ok(None) };
    let (host, port) = host_and_port(value.text()?).ok_or_else(|| value.refuse(LISTEN))?;
    Ok(Some(Listen { host, port, shown: value.shown() }))
}

fn host_and_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|_| port.bytes().all(|byte| byte.is_ascii_digit()))?;
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    let host = if is_bracketed { host.get(1..host.len() - 1)? } else { host };
    let is_plain = host.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-_".contains(letter));
    let is_host = if is_bracketed { host.parse::<std::net::Ipv6Addr>().is_ok() } else { is_plain };
    is_host.then(|| (host.to_owned(), port))
}

const LISTEN: &str =
    "must be HOST:PORT, as in 127.0.0.1:9464 or [::1]:9464, or :PORT for all addresses of this machine";

#[cfg(test)]
mod tests;
