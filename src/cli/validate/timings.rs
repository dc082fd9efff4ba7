//! The durations of the protocol, and the elector.

use std::time::Duration;

use anyhow::Result;
use neli_proto::timings::{
    Durations, Elector, LONGEST_LEASE, Patience, SHORTEST_LEASE, Timings, default_fence_warning,
    default_heartbeat_interval, heartbeat_intervals, kill_margin, longest_fence_warning,
};

use super::duration;
use super::overlap::overlap;
use super::priority::preempt_after;
use crate::cli::parsed_args::ParsedArgs;
use crate::text::shown_duration;

pub(super) fn validate(args: &ParsedArgs) -> Result<Timings> {
    let value = args.setting("lease");
    let lease = value.duration()?;
    if !(SHORTEST_LEASE..=LONGEST_LEASE).contains(&lease) {
        let (shortest, longest) = (shown_duration(SHORTEST_LEASE), shown_duration(LONGEST_LEASE));
        return Err(value.refuse(format!("must be {shortest} to {longest}")));
    }
    if lease.subsec_nanos() % 1_000_000 != 0 {
        return Err(value.refuse("must be whole milliseconds"));
    }
    let claim_delay = duration(&args.setting("claim-delay"))?;
    let durations = Durations {
        lease,
        heartbeat_interval: heartbeat_interval(args, lease)?,
        kill_margin: kill_margin(lease),
        fence_warning: fence_warning(args, lease)?,
        claim_delay,
        preempt_after: preempt_after(args)?,
        overlap: overlap(args, lease)?,
    };
    Ok(Timings::new(durations, elector(args, claim_delay)?)?)
}

fn heartbeat_interval(args: &ParsedArgs, lease: Duration) -> Result<Duration> {
    let Some(value) = args.value("heartbeat-interval") else {
        return Ok(default_heartbeat_interval(lease));
    };
    let interval = value.duration()?;
    let allowed = heartbeat_intervals(lease);
    if !allowed.contains(&interval) {
        let (shortest, longest) = (shown_duration(*allowed.start()), shown_duration(*allowed.end()));
        let lease = args.setting("lease").shown();
        return Err(value.refuse(format!("must be {shortest} to {longest}, a third of {lease}")));
    }
    Ok(interval)
}

fn fence_warning(args: &ParsedArgs, lease: Duration) -> Result<Duration> {
    let Some(value) = args.value("fence-warning") else {
        return Ok(default_fence_warning(lease));
    };
    let warning = value.duration()?;
    let longest = longest_fence_warning(lease);
    if warning > longest {
        let (longest, lease) = (shown_duration(longest), args.setting("lease").shown());
        return Err(value.refuse(format!("must be 0 to {longest}, half of {lease}")));
    }
    Ok(warning)
}

fn elector(args: &ParsedArgs, claim_delay: Duration) -> Result<Elector> {
    let elector = args.setting("elect");
    let patience = args.setting("patience");
    match elector.text()? {
        "group" if patience.text()? != "never" => Ok(Elector::Group(Patience::For(duration(&patience)?))),
        "group" if claim_delay.is_zero() => Ok(Elector::Group(Patience::Never)),
        "group" => Err(patience.refuse(format!(
            "can't be combined with {}: none but the group's choice claims",
            args.setting("claim-delay").shown()
        ))),
        "log" if patience.is_given() => Err(patience.refuse(format!("has no meaning with {}", elector.shown()))),
        "log" => Ok(Elector::Log),
        _ => Err(elector.refuse("must be group or log")),
    }
}

pub(super) fn wait(args: &ParsedArgs, claim_delay: Duration) -> Result<Option<Duration>> {
    let Some(value) = args.value("wait") else { return Ok(None) };
    let wait = duration(&value)?;
    if !claim_delay.is_zero() && wait <= claim_delay {
        return Err(value.refuse(format!("must be more than {}", args.setting("claim-delay").shown())));
    }
    Ok(Some(wait))
}
