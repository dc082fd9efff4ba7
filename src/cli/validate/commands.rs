//! The options for commands beside the job: the health command and the hooks.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use anyhow::{Result, anyhow};
use neli_proto::health::HealthPolicy;

use super::{duration, executable};
use crate::cli::parsed_args::{ParsedArgs, Value};
use crate::config::Commands;

pub(super) fn validate(args: &ParsedArgs) -> Result<Commands> {
    Ok(Commands {
        health: health(args)?,
        on_fence: command(args, "on-fence")?,
        on_lead: command(args, "on-lead")?,
        on_standby: command(args, "on-standby")?,
    })
}

fn health(args: &ParsedArgs) -> Result<Option<(OsString, HealthPolicy)>> {
    let command = command(args, "health-cmd")?;
    let settings = ["health-interval", "health-timeout", "health-failures", "health-start"];
    let settings = settings.map(|long| args.setting(long));
    let [interval, timeout, failures, start] = &settings;
    let policy = HealthPolicy {
        interval: some_time(interval)?,
        timeout: some_time(timeout)?,
        failures: count(failures)?,
        start: duration(start)?,
    };
    match (command, settings.iter().find(|setting| setting.is_given())) {
        (Some(command), _) => Ok(Some((command, policy))),
        (None, Some(idle)) => Err(idle.refuse("has no meaning without --health-cmd")),
        (None, None) => Ok(None),
    }
}

/// A command line for the shell.
fn command(args: &ParsedArgs, long: &'static str) -> Result<Option<OsString>> {
    let Some(value) = args.value(long) else { return Ok(None) };
    if value.text.to_string_lossy().trim().is_empty() {
        return Err(value.refuse("must not be blank"));
    }
    executable::find(OsStr::new("/bin/sh"), None)
        .map_err(|obstacle| anyhow!("{}: needs a shell: {obstacle}", value.source.shown()))?;
    Ok(Some(value.text))
}

fn some_time(value: &Value) -> Result<Duration> {
    let time = duration(value)?;
    if time.is_zero() {
        return Err(value.refuse("must be more than 0"));
    }
    Ok(time)
}

fn count(value: &Value) -> Result<u32> {
    let number = value.text()?.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| value.refuse("must be a whole number, 1 or more"))
}
