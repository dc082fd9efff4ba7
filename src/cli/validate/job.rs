//! How the job is run: the commands beside it, whether it is run again, and the signal that asks it to stop.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use anyhow::{Result, anyhow};
use neli_proto::health::HealthPolicy;
use neli_proto::restart::{Limit, Restart, RestartPolicy};
use nix::libc;
use nix::sys::signal::Signal;

use super::{LONGEST, duration, executable};
use crate::cli::parsed_args::{ParsedArgs, Value};
use crate::config::Commands;

/// The health command and the hooks.
pub(super) fn commands(args: &ParsedArgs) -> Result<Commands> {
    Ok(Commands {
        health: health(args)?,
        on_exit: command(args, "on-exit")?,
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
    let number = value.digits().filter(|number| *number > 0);
    number.ok_or_else(|| value.refuse("must be a whole number, 1 or more"))
}

/// The most restarts in a limit: each is remembered.
const MOST_RESTARTS: u32 = 10_000;

/// Whether and when the job is run again.
pub(super) fn restart(args: &ParsedArgs) -> Result<RestartPolicy> {
    let restart = args.setting("restart");
    let (delay, limit) = (args.setting("restart-delay"), args.setting("restart-limit"));
    let policy = RestartPolicy {
        // The end of one job among many is no reason to give up its role.
        restart: if args.value("roles").is_some() && !restart.is_given() {
            Restart::Always
        } else {
            restart.one_of(&[("no", Restart::No), ("on-failure", Restart::OnFailure), ("always", Restart::Always)])?
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

/// The number of `--stop-signal`, which is a name, with or without SIG, or a number; `None` for `none`.
pub(super) fn stop_signal(value: &Value) -> Result<Option<i32>> {
    let text = value.text()?;
    if text == "none" {
        return Ok(None);
    }
    let Some(number) = number(text) else {
        return Err(value.refuse(format!(
            "must be a signal's name or number, such as TERM, SIGINT, 15 or RTMIN+1 (numbers 1 to {}), or none",
            libc::SIGRTMAX()
        )));
    };
    match why_not(number) {
        Some(why) => Err(value.refuse(why)),
        None => Ok(Some(number)),
    }
}

fn number(text: &str) -> Option<i32> {
    let known = |number: &i32| Signal::try_from(*number).is_ok() || is_real_time(*number);
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().filter(known);
    }
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let offset = |digits: &str| digits.parse::<i32>().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if name == "RTMIN" {
        return Some(libc::SIGRTMIN());
    }
    if name == "RTMAX" {
        return Some(libc::SIGRTMAX());
    }
    if let Some(above) = name.strip_prefix("RTMIN+") {
        return offset(above)
            .map(|above| libc::SIGRTMIN().saturating_add(above))
            .filter(|number| is_real_time(*number));
    }
    if let Some(below) = name.strip_prefix("RTMAX-") {
        return offset(below)
            .map(|below| libc::SIGRTMAX().saturating_sub(below))
            .filter(|number| is_real_time(*number));
    }
    format!("SIG{name}").parse::<Signal>().ok().map(|signal| signal as i32)
}

fn is_real_time(number: i32) -> bool {
    (libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&number)
}

/// Why a signal can't be the stop signal. The signal asks the job to end, and `neli-run` handles it like TERM.
fn why_not(number: i32) -> Option<&'static str> {
    match number {
        libc::SIGKILL => Some("asks nothing; for SIGKILL at once use --stop-timeout 0"),
        libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => {
            Some("stops a process for a while, and doesn't end it")
        }
        libc::SIGCONT => Some("follows every stop signal, so it can't be one"),
        libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGSEGV | libc::SIGTRAP | libc::SIGSYS => {
            Some("is what the kernel sends for a fault, and neli-run would take it for a stop")
        }
        libc::SIGCHLD | libc::SIGPIPE => Some("comes in normal operation, and neli-run would take it for a stop"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::signal_name;

    #[test]
    fn names_and_numbers() {
        for text in ["TERM", "SIGTERM", "15", "term", "sigterm"] {
            assert_eq!(number(text), Some(libc::SIGTERM), "{text}");
        }
        assert_eq!(number("RTMIN+1"), Some(libc::SIGRTMIN() + 1));
        assert_eq!(number("SIGRTMAX-1"), Some(libc::SIGRTMAX() - 1));
        assert_eq!(number("64"), Some(64));
    }

    #[test]
    fn a_name_that_is_no_signal_gives_none() {
        for text in ["", "0", "32", "65", "-1", "+15", "FOO", "SIG", "RTMIN+99", "RTMIN+-1", "RTMAX-99", "99999999999"]
        {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn a_name_reads_back() {
        for signal in (1..=64).filter(|signal| ![32, 33].contains(signal)) {
            assert_eq!(number(&signal_name(signal)), Some(signal));
        }
    }
}
