//! `--restart`, `--restart-delay` and `--restart-limit`.

use anyhow::Result;
use neli_proto::restart::{Limit, Restart, RestartPolicy};

use super::{LONGEST, duration};
use crate::cli::parsed_args::{ParsedArgs, Value};

/// The most restarts in a limit: each is remembered.
const MOST_RESTARTS: u32 = 10_000;

pub(super) fn validate(args: &ParsedArgs) -> Result<RestartPolicy> {
    let restart = args.setting("restart");
    let (delay, limit) = (args.setting("restart-delay"), args.setting("restart-limit"));
    let policy = RestartPolicy {
        restart: match restart.text()? {
            // The end of one job among many is no reason to give up its role.
            _ if args.value("roles").is_some() && !restart.is_given() => Restart::Always,
            "always" => Restart::Always,
            "no" => Restart::No,
            "on-failure" => Restart::OnFailure,
            _ => return Err(restart.refuse("must be no, on-failure or always")),
        },
        delay: duration(&delay)?,
        limit: validate_limit(&limit)?,
    };
    let idle = [delay, limit].into_iter().find(|value| policy.restart == Restart::No && value.is_given());
    match idle {
        Some(value) => Err(value.refuse(format!("has no meaning with {}", restart.shown()))),
        None => Ok(policy),
    }
}

fn validate_limit(value: &Value) -> Result<Option<Limit>> {
    let text = value.text()?;
    if text == "none" {
        return Ok(None);
    }
    let limit = text.split_once('/').and_then(|(restarts, within)| {
        let digits = restarts.bytes().all(|byte| byte.is_ascii_digit());
        let restarts = restarts.parse().ok().filter(|restarts| digits && *restarts <= MOST_RESTARTS)?;
        let within = humantime::parse_duration(within).ok()?;
        (!within.is_zero() && within <= LONGEST).then_some(Limit { restarts, within })
    });
    let must_be = format!(
        "must be none, or restarts/duration such as 10/5m: 0 to {MOST_RESTARTS} in more than 0 and at most 365d"
    );
    limit.map(Some).ok_or_else(|| value.refuse(must_be))
}
