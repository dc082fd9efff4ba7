//! Which options have no meaning without another, and which exclude each other.

use anyhow::{Result, anyhow};

use crate::cli::options::{Opt, Takes};
use crate::cli::parsed_args::{ParsedArgs, Value};

/// Options, each with those of which it needs one.
const NEEDS: [(&str, &[&str]); 11] = [
    ("spread", &["roles"]),
    ("max-roles", &["roles"]),
    ("timezone", &["window", "schedule"]),
    ("catch-up", &["schedule"]),
    ("retries", &["once", "window"]),
    ("done-status", &["once", "window"]),
    ("once-retention", &["once", "window", "schedule"]),
    ("health-interval", &["health-cmd"]),
    ("health-timeout", &["health-cmd"]),
    ("health-failures", &["health-cmd"]),
    ("health-start", &["health-cmd"]),
];

/// Options, each with one that it can't be combined with, or a value of that, and the reason.
const EXCLUDES: [(&str, &str, &str); 20] = [
    ("once", "window", ""),
    ("once", "schedule", ""),
    ("window", "schedule", ""),
    ("roles", "once", "the key would be done for each role"),
    ("roles", "overlap", "two jobs of one role never run at once"),
    ("roles", "schedule", "each role would have a schedule of its own"),
    ("roles", "window", "the window would be done for each role"),
    ("roles", "wait", "a role may be led by another for as long as it likes"),
    ("max-roles", "preempt", "it would ask the leaders of more roles than it may lead"),
    ("patience", "elect log", "any candidate claims"),
    ("priority", "patience never", "none but the group's choice claims"),
    ("preempt", "priority 0", "no leader's is lower"),
    ("restart", "once", "--retries is meant"),
    ("restart", "window", "--retries is meant"),
    ("restart", "schedule", ""),
    ("overlap", "once", "its job never runs twice at a time"),
    ("overlap", "window", "its job never runs twice at a time"),
    ("overlap", "schedule", "its job never runs twice at a time"),
    ("overlap", "settle", "the next job is to start at once"),
    ("quiet", "verbose", ""),
];

/// Checks the options against each other. Each by itself has a right value.
pub(super) fn check(args: &ParsedArgs) -> Result<()> {
    for (long, needed) in NEEDS {
        if let Some(idle) = given(args, long)?
            && !needed.iter().any(|other| args.value(other).is_some())
        {
            return Err(idle.refuse(format!("has no meaning without --{}", needed.join(" or --"))));
        }
    }
    for (long, other, why) in EXCLUDES {
        let (other, excluded) = match other.split_once(' ') {
            Some((other, text)) => (Some(args.setting(other)), Some(text)),
            None => (given(args, other)?.filter(Value::is_set), None),
        };
        let one = given(args, long)?.filter(Value::is_set);
        if let Some((one, other)) = one.zip(other.filter(|other| excluded.is_none_or(|text| other.text == *text))) {
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            return Err(anyhow!("{}: can't be combined with {}{why}", shown(&one), shown(&other)));
        }
    }
    Ok(())
}

/// The value of an option, or the flag, if the command line or its variable gives it.
fn given(args: &ParsedArgs, long: &'static str) -> Result<Option<Value>> {
    let value = match Opt::find(long).map(|option| option.takes) {
        Some(Takes::Flag) => args.flag(long)?,
        Some(Takes::Optional(..)) => args.value_or_flag(long),
        _ => args.value(long),
    };
    Ok(value.filter(Value::is_given))
}

/// A flag has no value.
fn shown(value: &Value) -> String {
    if value.text.is_empty() { value.name() } else { value.shown() }
}
