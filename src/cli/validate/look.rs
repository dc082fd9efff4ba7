//! The settings of subcommands that show an election or send it a request. Problems that do not prevent them are added to `warnings`.

use std::ffi::OsStr;
use std::ops::Bound;
use std::time::Duration;

use anyhow::{Result, bail};
use neli_kafka::ElectionId;

use super::{LONGEST, candidate_name, client, duration, group, listen, once, topic};
use crate::cli::parsed_args::{ParsedArgs, Value};
use crate::config::{Ask, Assert, HistoryOf, List, Look, Observe, TopicPatterns, Watch, WatchFrom, job_variables};
use crate::text::quoted;

/// The default limit for Kafka's answers (`--timeout`).
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
/// The default where an answer takes longer: `resign` waits until another candidate leads.
const LONG_TIMEOUT: Duration = Duration::from_secs(30);

/// A record has at most 1 KiB.
const LONGEST_REASON: usize = 400;

/// The settings of a subcommand about one election.
///
/// # Errors
/// A value is missing or out of its bounds.
pub fn look(args: &ParsedArgs, warnings: &mut Vec<String>) -> Result<Look> {
    look_for(args, warnings, TIMEOUT)
}

fn look_for(args: &ParsedArgs, warnings: &mut Vec<String>, default_timeout: Duration) -> Result<Look> {
    Ok(Look {
        election: election(args)?,
        client: client(args, warnings)?,
        json: args.flag("json")?.is_some(),
        timeout: timeout(args, default_timeout)?,
    })
}

/// The election. `--role` is taken as its role's name, even if it is a number, until the hellos show which role it
/// is. In a job of one of several roles it is the job's role, unless `--role` names another.
fn election(args: &ParsedArgs) -> Result<ElectionId> {
    let of_job = || {
        let is_one_of_several =
            args.is_about_election_of_job() && args.nonempty_variable(job_variables::ROLES).is_some();
        let role = args.nonempty_variable(job_variables::ROLE).filter(|_| is_one_of_several)?;
        role.to_str().map(str::to_owned)
    };
    Ok(ElectionId { role_name: super::election::role(args)?.or_else(of_job), ..super::election(args)? })
}

/// The configuration of `list`.
///
/// # Errors
/// A value is missing or out of its bounds.
pub fn list(args: &ParsedArgs, warnings: &mut Vec<String>) -> Result<List> {
    Ok(List {
        client: client(args, warnings)?,
        topic: topic(args)?,
        group: group(args)?,
        is_live: args.flag("watch")?.is_some(),
        has_dead: args.flag("all")?.is_some(),
        json: args.flag("json")?.is_some(),
        timeout: timeout(args, TIMEOUT)?,
    })
}

/// The configuration of `observe`.
///
/// # Errors
/// A value is missing or out of its bounds.
pub fn observe(args: &ParsedArgs, warnings: &mut Vec<String>) -> Result<Observe> {
    let Some(listen) = listen(args)? else { bail!("--listen is required: HOST:PORT, or :PORT for all addresses") };
    let topics = match args.value("topics") {
        None => vec!["*.neli".to_owned()],
        Some(value) => {
            let is_pattern = |part: &&str| {
                !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-*".contains(&byte))
            };
            let parts: Vec<&str> = value.text()?.split(',').map(str::trim).collect();
            if !parts.iter().all(is_pattern) {
                return Err(value.refuse("must be names of topics, with * for any characters, as in a.neli,*.neli"));
            }
            parts.into_iter().map(str::to_owned).collect()
        }
    };
    let (client, group) = (client(args, warnings)?, group(args)?);
    Ok(Observe { client, listen, topics: TopicPatterns(topics), group })
}

/// `status --once`: the key whose state is shown alone.
///
/// # Errors
/// It can't be a key.
pub fn key_of_status(args: &ParsedArgs) -> Result<Option<String>> {
    // A variable is about the candidates that have it.
    args.value("once").filter(Value::is_option).map(|once| once::validate_key(&once)).transpose()
}

/// The configuration of `history`.
///
/// # Errors
/// A value is missing or out of its bounds.
pub fn history(args: &ParsedArgs, warnings: &mut Vec<String>) -> Result<HistoryOf> {
    Ok(HistoryOf {
        look: look(args, warnings)?,
        since: args.value("since").map(|value| duration(&value)).transpose()?,
        check: args.flag("check")?.is_some(),
        svg: args.value("svg").map(|value| value.text.into()),
    })
}

/// The configuration of `watch`.
///
/// # Errors
/// A value is missing or out of its bounds.
pub fn watch(args: &ParsedArgs, warnings: &mut Vec<String>) -> Result<Watch> {
    let (until_end, has_hellos) = (args.flag("until-end")?.is_some(), args.flag("all")?.is_some());
    Ok(Watch { look: look_for(args, warnings, LONG_TIMEOUT)?, from: from(args)?, until_end, has_hellos })
}

/// The configuration of `resign`.
///
/// # Errors
/// A value is missing or out of its bounds.
pub fn resign(args: &ParsedArgs, warnings: &mut Vec<String>) -> Result<Ask> {
    let ask = ask(args, warnings, LONG_TIMEOUT)?;
    let to = args.value("to");
    if let Some(to) = to.as_ref().filter(|_| ask.all_roles) {
        return Err(to.refuse("can't be combined with --all-roles: it names who is to lead one role, so give --role"));
    }
    Ok(Ask { to: to.map(|to| candidate_name(&to).map(Into::into)).transpose()?, ..ask })
}

/// The configuration of `end`.
///
/// # Errors
/// A value is missing or out of its bounds.
pub fn end(args: &ParsedArgs, warnings: &mut Vec<String>) -> Result<Ask> {
    ask(args, warnings, TIMEOUT)
}

/// What is common to the subcommands that ask for something. Those that lack an option leave it unset.
fn ask(args: &ParsedArgs, warnings: &mut Vec<String>, default_timeout: Duration) -> Result<Ask> {
    let mut look = look_for(args, warnings, default_timeout)?;
    let all = args.flag("all-roles")?;
    if let (Some(all), Some(role)) = (&all, args.value("role")) {
        return Err(role.refuse(format!("can't be combined with {}", all.name())));
    }
    if all.is_some() {
        // Also in a job of one of them.
        look.election.role_name = None;
    }
    Ok(Ask {
        look,
        all_roles: all.is_some(),
        is_confirmed: args.flag("yes")?.is_some(),
        force: args.flag("force")?.is_some(),
        reason: reason(args)?,
        to: None,
        key: None,
    })
}

/// The configuration of `forget`.
///
/// # Errors
/// A value is missing or out of its bounds.
pub fn forget(args: &ParsedArgs, warnings: &mut Vec<String>) -> Result<Ask> {
    let (ask, is_window) = (ask(args, warnings, TIMEOUT)?, args.flag("newest-window")?.is_some());
    let key = match args.value("once") {
        // If a variable and an option are given, the option counts.
        Some(once) if is_window && once.is_option() => {
            return Err(once.refuse("can't be combined with --newest-window"));
        }
        Some(once) if !is_window => Some(once::validate_key(&once)?),
        None if !is_window => bail!("--once KEY or --newest-window is required"),
        _ => None,
    };
    once::validate_group(args, "")?;
    Ok(Ask { key, ..ask })
}

fn reason(args: &ParsedArgs) -> Result<Option<Box<str>>> {
    let Some(value) = args.value("reason") else { return Ok(None) };
    let text = value.text()?;
    if text.len() > LONGEST_REASON || text.chars().any(char::is_control) {
        return Err(value.refuse(format!("must be at most {LONGEST_REASON} bytes, without control characters")));
    }
    Ok(Some(text.into()))
}

/// `--timeout`.
pub(super) fn timeout(args: &ParsedArgs, default: Duration) -> Result<Duration> {
    Ok(limit(args, "timeout")?.unwrap_or(default))
}

/// `broker --idle-timeout`; `None` without it.
///
/// # Errors
/// The value is no duration, or out of its bounds.
pub fn idle_timeout(args: &ParsedArgs) -> Result<Option<Duration>> {
    limit(args, "idle-timeout")
}

fn limit(args: &ParsedArgs, long: &'static str) -> Result<Option<Duration>> {
    let Some(value) = args.value(long) else { return Ok(None) };
    let bounds = (Bound::Excluded(Duration::ZERO), Bound::Included(LONGEST));
    value.duration_in(bounds, || "must be more than 0, and at most 365d".to_owned()).map(Some)
}

/// The configuration of `assert`: `--epoch` from outside, or the variables that a job has.
///
/// # Errors
/// A value is missing or out of its bounds.
pub fn assert(args: &ParsedArgs) -> Result<Assert> {
    let of_job = |name: &str| args.raw_variable(name);
    let parsed = |text: &str| text.parse().ok().filter(|term| *term >= 0);
    let (term, descriptor) = if let Some(value) = args.value("epoch") {
        let Some(term) = parsed(value.text()?) else {
            return Err(value.refuse("must be a term (0 or more), as in NELI_EPOCH"));
        };
        (term, None)
    } else if let Some(text) = of_job(job_variables::EPOCH) {
        let Some(term) = text.to_str().and_then(parsed) else {
            let (text, why) = (quoted(text), "must be a term (0 or more); outside a job use --epoch");
            bail!("NELI_EPOCH={text}: {why}");
        };
        (term, of_job(job_variables::LEASE_FD).and_then(|number| number.to_str()?.parse().ok()))
    } else {
        bail!("--epoch is required outside a job: NELI_EPOCH is not set");
    };
    let min_left = args.value("min-left").map_or(Ok(Duration::ZERO), |value| duration(&value))?;
    let time_namespace = of_job(job_variables::TIME_NAMESPACE).map(OsStr::to_owned);
    Ok(Assert { term, descriptor, time_namespace, min_left, json: args.flag("json")?.is_some() })
}

const EXPECTED: &str = "must be start, end, an offset (0 or more), or how long ago (at most 365d), such as 30m or 1h";

fn from(args: &ParsedArgs) -> Result<Option<WatchFrom>> {
    let Some(value) = args.value("from") else { return Ok(None) };
    let from = match value.text()? {
        "end" => WatchFrom::End,
        "start" => WatchFrom::Start,
        text => match text.parse() {
            Ok(offset) if offset >= 0 => WatchFrom::Offset(offset),
            _ => WatchFrom::Since(duration(&value).map_err(|_| value.refuse(EXPECTED))?),
        },
    };
    Ok(Some(from))
}
