//! `--once`, `--retries`, `--done-status` and `--once-retention`.

use std::time::Duration;

use neli::program::{Election, names::LONGEST_TOPIC};
use neli_proto::fact::TOPIC_SUFFIX;
use neli_proto::restart::Restart;

use super::{duration, restart};
use crate::cli::parsed_args::{ParsedArgs, Value};
use crate::config::Once;
use crate::exit::StartupError;

/// The longest KEY, in bytes of the JSON that a release holds it in: a record must fit 1 KiB.
const LONGEST_KEY: usize = 200;
/// The most retries.
const MOST_RETRIES: u32 = 10_000;
/// A fact is kept for as long at least.
const SHORTEST_RETENTION: Duration = Duration::from_secs(60 * 60);

pub(super) fn validate(args: &ParsedArgs, election: &Election) -> Result<Option<Once>, StartupError> {
    let settings = ["retries", "done-status", "once-retention"].map(|long| args.setting(long));
    let [retries, done_status, retention] = &settings;
    let once = Once {
        key: String::new(),
        retries: validate_retries(retries)?,
        done_status: validate_status(done_status)?,
        retention: validate_retention(retention)?,
    };
    let Some(value) = args.value("once") else {
        return match settings.iter().find(|setting| setting.is_given()) {
            Some(idle) => Err(idle.refuse("has no meaning without --once")),
            None => Ok(None),
        };
    };
    let key = validate_key(&value)?;
    let topic = format!("{}{TOPIC_SUFFIX}", election.topic);
    if topic.len() > LONGEST_TOPIC {
        let longest = LONGEST_TOPIC - TOPIC_SUFFIX.len();
        return Err(
            value.refuse(format!("the topic's name must be at most {longest} bytes, for {TOPIC_SUFFIX} is added"))
        );
    }
    let restart = args.setting("restart");
    if restart::validate(args)?.restart != Restart::No {
        return Err(restart.refuse(format!("can't be combined with {}; --retries is meant", value.shown())));
    }
    Ok(Some(Once { key, ..once }))
}

fn validate_key(value: &Value) -> Result<String, StartupError> {
    let key = value.text()?.to_owned();
    if key.trim().is_empty() {
        return Err(value.refuse("must not be blank"));
    }
    if key.contains(char::is_control) {
        return Err(value.refuse("must have no control characters"));
    }
    let length = key.bytes().map(|byte| if matches!(byte, b'"' | b'\\') { 2 } else { 1 }).sum::<usize>();
    if length > LONGEST_KEY {
        let why = format!("must be at most {LONGEST_KEY} bytes, where \" and \\ count twice, and has {length}");
        return Err(value.refuse(why));
    }
    Ok(key)
}

fn validate_retries(value: &Value) -> Result<u32, StartupError> {
    let retries = value.text()?.parse().ok().filter(|retries| *retries <= MOST_RETRIES);
    retries.ok_or_else(|| value.refuse(format!("must be a number from 0 to {MOST_RETRIES}")))
}

fn validate_status(value: &Value) -> Result<u8, StartupError> {
    value.text()?.parse().map_err(|_| value.refuse("must be a number from 0 to 255"))
}

fn validate_retention(value: &Value) -> Result<Duration, StartupError> {
    let retention = duration(value)?;
    if retention < SHORTEST_RETENTION {
        return Err(value.refuse("must be 1h to 365d"));
    }
    Ok(retention)
}
