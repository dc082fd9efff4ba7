//! `--priority`, `--preempt` and `--preempt-after`.

use std::time::Duration;

use anyhow::{Result, bail};
use neli_proto::timings::{Elector, Patience};

use super::LONGEST;
use crate::cli::parsed_args::ParsedArgs;

/// The highest priority.
const HIGHEST: u16 = 1_000;

/// The shortest `--preempt-after`: a request is sent again each time it has passed.
const SHORTEST: Duration = Duration::from_secs(1);

pub(super) fn priority(args: &ParsedArgs, elector: Elector) -> Result<u16> {
    let value = args.setting("priority");
    let text = value.text()?;
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let priority = text.parse().ok().filter(|priority| digits && *priority <= HIGHEST);
    let Some(priority) = priority else {
        return Err(value.refuse(format!("must be a whole number, 0 to {HIGHEST}")));
    };
    if priority > 0 && elector == Elector::Group(Patience::Never) {
        let patience = args.setting("patience").shown();
        return Err(value.refuse(format!("can't be combined with {patience}: none but the group's choice claims")));
    }
    if let Some(preempt) = args.flag("preempt")?.filter(|_| priority == 0) {
        let (preempt, priority) = (preempt.shown(), value.shown());
        bail!("{preempt}: has no meaning with {priority}: no leader's is lower");
    }
    Ok(priority)
}

/// How long a standby waits before it asks a leader of lower priority to stand down; `None` without `--preempt`.
pub(super) fn preempt_after(args: &ParsedArgs) -> Result<Option<Duration>> {
    let value = args.setting("preempt-after");
    let after = value.duration()?;
    if !(SHORTEST..=LONGEST).contains(&after) {
        return Err(value.refuse("must be 1s to 365d"));
    }
    if args.flag("preempt")?.is_none() {
        return if value.is_given() { Err(value.refuse("has no meaning without --preempt")) } else { Ok(None) };
    }
    Ok(Some(after))
}
