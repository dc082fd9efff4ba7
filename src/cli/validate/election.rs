//! The durations of the protocol, who claims first, and the roles: how many or which, whether they are spread, and how many this process leads.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use neli_kafka::names::{LONGEST_ROLE, MOST_ROLES, is_role_name, reads_as_number, role_number, validate_roles};
use neli_proto::timings::{
    Durations, Elector, Timings, default_fence_warning, default_heartbeat_interval, kill_margin,
};

use super::{LONGEST, duration};
use crate::cli::options::Opt;
use crate::cli::parsed_args::{ParsedArgs, Value};
use crate::config::Roles;

pub(super) fn timings(args: &ParsedArgs) -> Result<Timings> {
    let given = |long| args.value(long).map(|value| value.duration()).transpose();
    let lease = args.setting("lease");
    let durations = {
        let lease = lease.duration()?;
        Durations {
            lease,
            heartbeat_interval: given("heartbeat-interval")?.unwrap_or_else(|| default_heartbeat_interval(lease)),
            kill_margin: kill_margin(lease),
            fence_warning: given("fence-warning")?.unwrap_or_else(|| default_fence_warning(lease)),
            preempt_after: preemption(args)?,
            overlap: given("overlap")?,
        }
    };
    Timings::new(durations, elector(args)?).map_err(|error| match Opt::find(&error.name.replace('_', "-")) {
        Some(option) if option.long != "lease" => {
            args.setting(option.long).refuse(format!("{error}, with {}", lease.shown()))
        }
        _ => lease.refuse(error.to_string()),
    })
}

fn elector(args: &ParsedArgs) -> Result<Elector> {
    let (elector, patience) = (args.setting("elect"), args.setting("patience"));
    let patience = match patience.text()? {
        "never" => None,
        _ => Some(duration(&patience).map_err(|_| patience.refuse("must be never, or a duration from 0 to 365d"))?),
    };
    elector.one_of(&[("group", Elector::Group(patience)), ("log", Elector::Log)])
}

/// The highest priority.
const HIGHEST: u16 = 1_000;

/// The shortest time of `--preempt`: a request is sent again each time it has passed.
const SHORTEST: Duration = Duration::from_secs(1);

pub(super) fn priority(args: &ParsedArgs) -> Result<u16> {
    args.setting("priority").number_in(..=HIGHEST, &format!("must be a whole number, 0 to {HIGHEST}"))
}

/// How long a standby waits before it asks a leader of lower priority to stand down; `None` without `--preempt`.
fn preemption(args: &ParsedArgs) -> Result<Option<Duration>> {
    let preempt = args.value_or_flag("preempt");
    preempt.map(|preempt| preempt.duration_in(SHORTEST..=LONGEST, || "must be 1s to 365d".to_owned())).transpose()
}

/// The roles, if given.
///
/// # Errors
/// An option of theirs has a wrong value, or excludes another.
pub(super) fn roles(args: &ParsedArgs) -> Result<Option<Roles>> {
    let are_spread = args.setting("spread").one_of(&[("yes", true), ("no", false)])?;
    let most = args.value("max-roles").map(|most| count(&most)).transpose()?;
    let Some(value) = args.value("roles") else { return Ok(None) };
    if let Some(priority) = args.value("priority").filter(|priority| are_spread && priority.is_set()) {
        let why = "each candidate is to have a share; --spread no goes with it";
        return Err(value.refuse(format!("can't be combined with {}: {why}", priority.shown())));
    }
    Ok(Some(Roles { are_spread, most }))
}

/// `--role`: the role that a subcommand is about, by its name or number.
pub(crate) fn role(args: &ParsedArgs) -> Result<Option<String>> {
    let Some(value) = args.value("role") else { return Ok(None) };
    let text = value.text()?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_role_name(text) || (is_number && role_number(text).is_none_or(|number| number >= MOST_ROLES)) {
        let last = MOST_ROLES - 1;
        return Err(value.refuse(format!(
            "must be a role's name (1 to {LONGEST_ROLE} of a-z A-Z 0-9 . _ -) or its number (0 to {last})"
        )));
    }
    Ok(Some(text.to_owned()))
}

/// The number of roles in `--roles`, and their names if they are named; one role without it.
pub(super) fn count_and_names(args: &ParsedArgs) -> Result<(u32, Arc<[String]>)> {
    let Some(value) = args.value("roles") else { return Ok((1, Arc::default())) };
    let text = value.text()?;
    if text.is_empty() {
        return Err(value.refuse(format!("must be a number, 1 to {MOST_ROLES}, or the names of the roles: NAME,..")));
    }
    if reads_as_number(text) {
        return Ok((count(&value)?, Arc::default()));
    }
    let names: Vec<String> = text.split(',').map(str::to_owned).collect();
    validate_roles(&names).map_err(|error| value.refuse(error))?;
    Ok((u32::try_from(names.len()).unwrap_or(u32::MAX), names.into()))
}

fn count(value: &Value) -> Result<u32> {
    let count = role_number(value.text()?).filter(|count| (1..=MOST_ROLES).contains(count));
    count.ok_or_else(|| {
        value.refuse(format!("must be a whole number from 1 to {MOST_ROLES}, in digits alone, without a 0 before it"))
    })
}
