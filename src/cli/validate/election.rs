//! The durations of the protocol, who claims first, and the roles: how many or which, whether they are spread, and how many this process leads.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use neli_kafka::names::{LONGEST_ROLE, MOST_ROLES, is_role_name, reads_as_number, validate_roles};
use neli_proto::timings::{
    Durations, Elector, LONGEST_LEASE, Patience, SHORTEST_LEASE, Timings, default_fence_warning,
    default_heartbeat_interval, heartbeat_intervals, kill_margin, longest_fence_warning, overlaps,
};

use super::{LONGEST, duration};
use crate::cli::parsed_args::{ParsedArgs, Value};
use crate::config::Roles;
use crate::text::shown_duration;

pub(super) fn timings(args: &ParsedArgs) -> Result<Timings> {
    let value = args.setting("lease");
    let must_be = || format!("must be {} to {}", shown_duration(SHORTEST_LEASE), shown_duration(LONGEST_LEASE));
    let lease = value.duration_in(SHORTEST_LEASE..=LONGEST_LEASE, must_be)?;
    if lease.subsec_nanos() % 1_000_000 != 0 {
        return Err(value.refuse("must be whole milliseconds"));
    }
    let durations = Durations {
        lease,
        heartbeat_interval: heartbeat_interval(args, lease)?,
        kill_margin: kill_margin(lease),
        fence_warning: fence_warning(args, lease)?,
        preempt_after: preemption(args)?.map(|(_, after)| after),
        overlap: overlap(args, lease)?,
    };
    Ok(Timings::new(durations, elector(args)?)?)
}

fn heartbeat_interval(args: &ParsedArgs, lease: Duration) -> Result<Duration> {
    let Some(value) = args.value("heartbeat-interval") else {
        return Ok(default_heartbeat_interval(lease));
    };
    let allowed = heartbeat_intervals(lease);
    value.duration_in(allowed.clone(), || part_of_lease(args, &allowed, "a third"))
}

fn fence_warning(args: &ParsedArgs, lease: Duration) -> Result<Duration> {
    let Some(value) = args.value("fence-warning") else {
        return Ok(default_fence_warning(lease));
    };
    let longest = longest_fence_warning(lease);
    let must_be = || format!("must be 0 to {}, half of {}", shown_duration(longest), args.setting("lease").shown());
    value.duration_in(..=longest, must_be)
}

/// What a duration must be whose longest value is this part of the lease.
fn part_of_lease(args: &ParsedArgs, allowed: &RangeInclusive<Duration>, part: &str) -> String {
    let (shortest, longest) = (shown_duration(*allowed.start()), shown_duration(*allowed.end()));
    format!("must be {shortest} to {longest}, {part} of {}", args.setting("lease").shown())
}

fn elector(args: &ParsedArgs) -> Result<Elector> {
    let elector = args.setting("elect");
    let patience = args.setting("patience");
    match elector.text()? {
        "group" if patience.text()? != "never" => {
            let patience =
                duration(&patience).map_err(|_| patience.refuse("must be never, or a duration from 0 to 365d"))?;
            Ok(Elector::Group(Patience::For(patience)))
        }
        "group" => Ok(Elector::Group(Patience::Never)),
        "log" if patience.is_given() => Err(patience.refuse(format!("has no meaning with {}", elector.shown()))),
        "log" => Ok(Elector::Log),
        _ => Err(elector.refuse("must be group or log")),
    }
}

/// How long a job may run beside its successor's; `None` without `--overlap`.
fn overlap(args: &ParsedArgs, lease: Duration) -> Result<Option<Duration>> {
    let Some(value) = args.value("overlap") else { return Ok(None) };
    let allowed = overlaps(lease);
    let overlap = value.duration_in(allowed.clone(), || part_of_lease(args, &allowed, "half"))?;
    if !overlap.subsec_nanos().is_multiple_of(1_000_000) {
        return Err(value.refuse("must be whole milliseconds"));
    }
    if let Some(other) = ["once", "window", "schedule"].iter().find_map(|long| args.value(long)) {
        let why = "its job never runs twice at a time";
        return Err(value.refuse(format!("can't be combined with {}: {why}", other.shown())));
    }
    let settle = args.setting("settle");
    if !settle.duration()?.is_zero() {
        return Err(
            value.refuse(format!("can't be combined with {}: the next job is to start at once", settle.shown()))
        );
    }
    Ok(Some(overlap))
}

/// The highest priority.
const HIGHEST: u16 = 1_000;

/// The shortest time of `--preempt`: a request is sent again each time it has passed.
const SHORTEST: Duration = Duration::from_secs(1);

pub(super) fn priority(args: &ParsedArgs, elector: Elector) -> Result<u16> {
    let value = args.setting("priority");
    let priority = value.number_in(..=HIGHEST, &format!("must be a whole number, 0 to {HIGHEST}"))?;
    if priority > 0 && elector == Elector::Group(Patience::Never) {
        let patience = args.setting("patience").shown();
        return Err(value.refuse(format!("can't be combined with {patience}: none but the group's choice claims")));
    }
    if let Some((preempt, _)) = preemption(args)?.filter(|_| priority == 0) {
        let (preempt, priority) = (preempt.name(), value.shown());
        bail!("{preempt}: has no meaning with {priority}: no leader's is lower");
    }
    Ok(priority)
}

/// How long a standby waits before it asks a leader of lower priority to stand down, and the value that says that it asks; `None` without
/// `--preempt`.
fn preemption(args: &ParsedArgs) -> Result<Option<(Value, Duration)>> {
    let Some(preempt) = args.value_or_flag("preempt") else { return Ok(None) };
    let after = preempt.duration_in(SHORTEST..=LONGEST, || "must be 1s to 365d".to_owned())?;
    Ok(Some((preempt, after)))
}

/// Options that exclude it, with the reason.
const RIVALS: [(&str, &str); 5] = [
    ("once", "the key would be done for each role"),
    ("overlap", "two jobs of one role never run at once"),
    ("schedule", "each role would have a schedule of its own"),
    ("window", "the window would be done for each role"),
    ("wait", "a role may be led by another for as long as it likes"),
];
/// The option that excludes it while roles are spread, with the reason.
const RIVAL_OF_SPREAD: (&str, &str) = ("priority", "each candidate is to have a share; --spread no goes with it");

/// The roles, if given.
///
/// # Errors
/// It is neither a number nor a list of names, or excludes another option.
pub(super) fn roles(args: &ParsedArgs) -> Result<Option<Roles>> {
    let [spread, max_roles] = ["spread", "max-roles"].map(|long| args.setting(long));
    let are_spread = spread.one_of(&[("yes", true), ("no", false)])?;
    let most = if max_roles.is_given() { Some(count(&max_roles)?) } else { None };
    let Some(value) = args.value("roles") else {
        return match [spread, max_roles].iter().find(|setting| setting.is_given()) {
            Some(idle) => Err(idle.refuse("has no meaning without --roles")),
            None => Ok(None),
        };
    };
    for (rival, why) in RIVALS.into_iter().chain(are_spread.then_some(RIVAL_OF_SPREAD)) {
        if let Some(rival) = args.value(rival).filter(Value::is_given) {
            return Err(value.refuse(format!("can't be combined with {}: {why}", rival.shown())));
        }
    }
    if let Some((preempt, _)) = preemption(args)?.filter(|_| max_roles.is_given()) {
        let why = "it would ask the leaders of more roles than it may lead";
        return Err(max_roles.refuse(format!("can't be combined with {}: {why}", preempt.name())));
    }
    Ok(Some(Roles { are_spread, most }))
}

/// `--role`: the role that a subcommand is about, by its name or number.
pub(crate) fn role(args: &ParsedArgs) -> Result<Option<String>> {
    let Some(value) = args.value("role") else { return Ok(None) };
    let text = value.text()?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_role_name(text) || (is_number && number(text).is_none_or(|number| number >= MOST_ROLES)) {
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
    let text = value.text()?;
    let is_count = |count: &u32| (1..=MOST_ROLES).contains(count);
    number(text).filter(is_count).ok_or_else(|| match number(text.trim_start_matches('0')).filter(is_count) {
        Some(meant) => value.refuse(format!("must be written without a zero before it: {meant}")),
        None => value.refuse(format!("must be a whole number from 1 to {MOST_ROLES}, in digits alone")),
    })
}

/// A number as it is written in a key, without leading zeros.
fn number(text: &str) -> Option<u32> {
    let is_canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|number| is_canonical && *number <= MOST_ROLES)
}
