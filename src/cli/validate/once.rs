//! `--once`, `--window` or `--schedule`; `--retries`, `--done-status` and `--once-retention`.

use std::time::Duration;

use anyhow::Result;
use neli_kafka::ElectionId;
use neli_kafka::names::{self, LONGEST_TOPIC};
use neli_proto::fact::{TOPIC_SUFFIX, may_have_facts};
use neli_proto::restart::Restart;

use super::{restart, window};
use crate::cli::parsed_args::{ParsedArgs, Value};
use crate::config::{Occasion, Once};

/// The longest KEY, in bytes of its JSON in a release: a record must fit into 1 KiB.
const LONGEST_KEY: usize = 200;
/// The most retries.
const MOST_RETRIES: u32 = 10_000;
/// The shortest `--once-retention`.
const SHORTEST_RETENTION: Duration = Duration::from_secs(60 * 60);
/// The longest `--once-retention`: longer than from one leap day to the next.
const LONGEST_RETENTION: Duration = DAY.saturating_mul(3_650);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn validate(args: &ParsedArgs, election: &ElectionId) -> Result<Option<Once>> {
    let settings = ["retries", "done-status", "once-retention"].map(|long| args.setting(long));
    let [given_retries, given_status, given_retention] = &settings;
    let (windows, once) = (window::validate(args)?, args.value("once"));
    let retention = validate_retention(given_retention)?;
    let (retries, done_status) = (validate_retries(given_retries)?, validate_status(given_status)?);
    let (value, occasion) = match (once, windows) {
        (None, None) => {
            let idle = [given_retries, given_status].into_iter().find(|setting| setting.is_given());
            return match idle {
                Some(idle) => Err(idle.refuse("has no meaning without --once or --window")),
                None if given_retention.is_given() => {
                    Err(given_retention.refuse("has no meaning without --once, --window or --schedule"))
                }
                None => Ok(None),
            };
        }
        (Some(once), None) => (once.clone(), Occasion::Key(validate_key(&once)?)),
        (None, Some(windows)) => {
            if let Some(longest) = windows.longest_from(retention) {
                let longest = if longest < DAY {
                    humantime::format_duration(longest).to_string()
                } else {
                    format!("{}d", longest.div_duration_f64(DAY).ceil())
                };
                let why = format!("must be more than {longest}, the longest window of {}", windows.value.shown());
                return Err(given_retention.refuse(why));
            }
            (windows.value, windows.occasion)
        }
        (Some(once), Some(windows)) => {
            return Err(once.refuse(format!("can't be combined with {}", windows.value.shown())));
        }
    };
    validate_topic(&value, election)?;
    validate_group(args, &format!(", with {}", value.shown()))?;
    let is_schedule = matches!(occasion, Occasion::Schedule(..));
    if let Some(idle) = [given_retries, given_status].into_iter().find(|setting| is_schedule && setting.is_given()) {
        return Err(idle.refuse(format!("has no meaning with {}", value.shown())));
    }
    let restart = args.setting("restart");
    if restart::validate(args)?.restart != Restart::No {
        let meant = if is_schedule { "" } else { "; --retries is meant" };
        return Err(restart.refuse(format!("can't be combined with {}{meant}", value.shown())));
    }
    let schedule = if is_schedule { Some(value.text()?.into()) } else { None };
    Ok(Some(Once { occasion, schedule, retries, done_status, retention }))
}

fn validate_topic(value: &Value, election: &ElectionId) -> Result<()> {
    if election.topic.len() + TOPIC_SUFFIX.len() > LONGEST_TOPIC {
        let longest = LONGEST_TOPIC - TOPIC_SUFFIX.len();
        return Err(
            value.refuse(format!("the topic's name must be at most {longest} bytes, for {TOPIC_SUFFIX} is added"))
        );
    }
    Ok(())
}

/// The group can stand in the keys of the topic of facts. `beside` ends the line that refuses it.
pub(super) fn validate_group(args: &ParsedArgs, beside: &str) -> Result<()> {
    let group = args.setting("group");
    if !may_have_facts(group.text()?) {
        let why = "must not contain /, which separates group, role and KEY in the topic of facts";
        return Err(group.refuse(format!("{why}{beside}")));
    }
    Ok(())
}

pub(super) fn validate_key(value: &Value) -> Result<String> {
    let key = value.text()?.to_owned();
    if key.trim().is_empty() {
        return Err(value.refuse("must not be blank"));
    }
    if key.contains(char::is_control) {
        return Err(value.refuse("must have no control characters"));
    }
    // Two keys that look the same would be two, and the job would run for both.
    if let Some(invisible) = names::invisible_in(&key) {
        return Err(
            value.refuse(format!("must have no invisible characters, such as its {}", invisible.escape_unicode()))
        );
    }
    let length = key.bytes().map(|byte| if matches!(byte, b'"' | b'\\') { 2 } else { 1 }).sum::<usize>();
    if length > LONGEST_KEY {
        let why = format!("must be at most {LONGEST_KEY} bytes, where \" and \\ count twice, and has {length}");
        return Err(value.refuse(why));
    }
    Ok(key)
}

fn validate_retries(value: &Value) -> Result<u32> {
    let retries = value.text()?.parse().ok().filter(|retries| *retries <= MOST_RETRIES);
    retries.ok_or_else(|| value.refuse(format!("must be a number from 0 to {MOST_RETRIES}")))
}

fn validate_status(value: &Value) -> Result<u8> {
    value.text()?.parse().map_err(|_| value.refuse("must be a number from 0 to 255"))
}

fn validate_retention(value: &Value) -> Result<Duration> {
    let retention = value.duration()?;
    if !(SHORTEST_RETENTION..=LONGEST_RETENTION).contains(&retention) {
        return Err(value.refuse("must be 1h to 3650d"));
    }
    Ok(retention)
}
