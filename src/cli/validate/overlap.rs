//! `--overlap`.

use std::time::Duration;

use anyhow::Result;
use neli_proto::timings::overlaps;

use crate::cli::parsed_args::ParsedArgs;
use crate::text::shown_duration;

/// How long a job may run beside its successor's; `None` without `--overlap`.
pub(super) fn overlap(args: &ParsedArgs, lease: Duration) -> Result<Option<Duration>> {
    let Some(value) = args.value("overlap") else { return Ok(None) };
    let overlap = value.duration()?;
    let allowed = overlaps(lease);
    if !allowed.contains(&overlap) {
        let (shortest, longest) = (shown_duration(*allowed.start()), shown_duration(*allowed.end()));
        return Err(value.refuse(format!("must be {shortest} to {longest}, half of {}", args.setting("lease").shown())));
    }
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
