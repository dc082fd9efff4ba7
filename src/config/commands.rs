//! What runs beside the job: its health command, and the hooks.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use neli_proto::health::HealthPolicy;

use super::{duration, executable};
use crate::cli::parsed_args::{ParsedArgs, Value};
use crate::exit::StartupError;

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

pub(super) fn validate(given: &ParsedArgs) -> Result<Commands, StartupError> {
    Ok(Commands {
        health: health(given)?,
        on_fence: command(given, "on-fence")?,
        on_lead: command(given, "on-lead")?,
        on_standby: command(given, "on-standby")?,
    })
}

fn health(given: &ParsedArgs) -> Result<Option<(OsString, HealthPolicy)>, StartupError> {
    let command = command(given, "health-cmd")?;
    let settings = ["health-interval", "health-timeout", "health-failures", "health-start"];
    let settings = settings.map(|long| given.setting(long));
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
fn command(given: &ParsedArgs, long: &'static str) -> Result<Option<OsString>, StartupError> {
    let Some(value) = given.value(long) else { return Ok(None) };
    if value.text.to_string_lossy().trim().is_empty() {
        return Err(value.refuse("must not be blank"));
    }
    executable::find(OsStr::new("/bin/sh"), None)
        .map_err(|obstacle| StartupError::new(format!("{}: needs a shell: {obstacle}", value.source.shown())))?;
    Ok(Some(value.text))
}

fn some_time(value: &Value) -> Result<Duration, StartupError> {
    let time = duration(value)?;
    if time.is_zero() {
        return Err(value.refuse("must be more than 0"));
    }
    Ok(time)
}

fn count(value: &Value) -> Result<u32, StartupError> {
    let number = value.text()?.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| value.refuse("must be a whole number, 1 or more"))
}
