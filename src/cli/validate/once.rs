//! `--once`, `--window` or `--schedule`, and the options that belong to them.

use std::time::Duration;

use anyhow::Result;
use jiff::tz::TimeZone;
use neli_kafka::names::{self, LONGEST_TOPIC};
use neli_kafka::{ElectionId, clock};
use neli_proto::fact::{TOPIC_SUFFIX, may_have_facts};
use neli_proto::once::Policy;
use neli_proto::schedule::CatchUp;
use neli_proto::time::Window;

use crate::calendar::{self, Calendar, Edges, Every, LENGTH};
use crate::cli::parsed_args::{ParsedArgs, Value};
use crate::config::Once;

/// The longest KEY, in bytes of its JSON in a release: a record must fit into 1 KiB.
const LONGEST_KEY: usize = 200;
/// The most retries.
const MOST_RETRIES: u32 = 10_000;
/// The shortest `--once-retention`.
const SHORTEST_RETENTION: Duration = Duration::from_secs(60 * 60);
/// The longest `--once-retention`: longer than from one leap day to the next.
const LONGEST_RETENTION: Duration = DAY.saturating_mul(3_650);
/// The default of `--once-retention`, unless a window is longer than half of it.
const USUAL_RETENTION: Duration = DAY.saturating_mul(90);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The options for work that must be done once.
const MODES: [&str; 3] = ["once", "window", "schedule"];

pub(super) fn validate(args: &ParsedArgs, election: &ElectionId) -> Result<Option<Once>> {
    let [zone, catch_up, given_retries, given_status] =
        &["timezone", "catch-up", "retries", "done-status"].map(|long| args.setting(long));
    let given_retention = args.value("once-retention");
    let bounds = SHORTEST_RETENTION..=LONGEST_RETENTION;
    let retention =
        given_retention.as_ref().map(|given| given.duration_in(bounds, || "must be 1h to 3650d".to_owned()));
    let retention = retention.transpose()?;
    let retries = given_retries.number_in(..=MOST_RETRIES, &format!("must be a number from 0 to {MOST_RETRIES}"))?;
    let done_status = given_status.number_in(.., "must be a number from 0 to 255")?;
    // Two of them are refused together with the other options that exclude each other.
    let Some((mode, value)) = MODES.into_iter().find_map(|long| Some((long, args.value(long)?))) else {
        return Ok(None);
    };
    let value = &value;
    let policy = |key, window, schedule| Policy { key, window, schedule, retries, done_status };
    let (policy, calendar) = match mode {
        "once" => (policy(validate_key(value)?.into(), None, None), None),
        "window" => {
            let every = Every::parse(value.text()?).ok_or_else(|| value.refuse(LENGTH))?;
            let calendar = calendar_of(Edges::Every(every), zone, value)?;
            let Window { key, span } = calendar.window(clock::wall_ms());
            (policy(key, Some(span), None), Some(calendar))
        }
        _ => {
            let (calendar, catch_up) = schedule_of(value, zone, catch_up)?;
            (policy("".into(), None, Some(catch_up)), Some(calendar))
        }
    };
    let longest_from = |least| calendar.as_ref()?.longest_window(clock::wall_ms(), least);
    if let Some(longest) = longest_from(LONGEST_RETENTION) {
        let why = "no --once-retention, which is at most 3650d, is more than its longest window";
        return Err(value.refuse(format!("{why}, {}", days(longest))));
    }
    if let Some((given, longest)) = given_retention.as_ref().zip(retention.and_then(longest_from)) {
        let why = format!("must be more than {}, the longest window of {}", days(longest), value.shown());
        return Err(given.refuse(why));
    }
    let retention = retention.unwrap_or_else(|| {
        longest_from(USUAL_RETENTION / 2)
            .map_or(USUAL_RETENTION, |longest| (2 * longest).clamp(USUAL_RETENTION, LONGEST_RETENTION))
    });
    validate_topic(value, election)?;
    validate_group(args, &format!(", with {}", value.shown()))?;
    let text = value.text()?;
    let mut options = match mode {
        "once" => "--once".to_owned(),
        "window" => format!("--window {text}"),
        _ => format!("--schedule '{text}'"),
    };
    for (option, setting) in [("timezone", zone), ("catch-up", catch_up), ("retries", given_retries)] {
        if setting.is_given() {
            options = options + " --" + option + " " + setting.text()?;
        }
    }
    let schedule = (mode == "schedule").then(|| text.into());
    Ok(Some(Once { policy, calendar, schedule, options: options.into(), retention }))
}

/// A duration as a user would type it, in days if it is one or more.
fn days(duration: Duration) -> String {
    if duration < DAY {
        humantime::format_duration(duration).to_string()
    } else {
        format!("{}d", duration.div_duration_f64(DAY).ceil())
    }
}

/// `--schedule`: the calendar, and what a new leader runs.
fn schedule_of(value: &Value, zone: &Value, catch_up: &Value) -> Result<(Calendar, CatchUp)> {
    let edges = Edges::of_schedule(value.text()?).map_err(|error| value.refuse(error.to_string()))?;
    let calendar = calendar_of(edges, zone, value)?;
    if calendar.is_over(clock::wall_ms()) {
        return Err(value.refuse("has no time that is still to come, by this machine's clock"));
    }
    Ok((calendar, catch_up.one_of(&[("last", CatchUp::Last), ("none", CatchUp::None)])?))
}

fn validate_topic(value: &Value, election: &ElectionId) -> Result<()> {
    if election.topic.len() + TOPIC_SUFFIX.len() > LONGEST_TOPIC {
        let longest = LONGEST_TOPIC - TOPIC_SUFFIX.len();
        return Err(value.refuse(format!(
            "the topic's name (--topic) must be at most {longest} bytes, for {TOPIC_SUFFIX} is added, and has {}",
            election.topic.len()
        )));
    }
    Ok(())
}

/// The group can stand in the keys of the topic of facts. `beside` ends the line that refuses it.
pub(crate) fn validate_group(args: &ParsedArgs, beside: &str) -> Result<()> {
    let group = args.setting("group");
    if !may_have_facts(group.text()?) {
        let why = "must not contain /, which separates group, role and KEY in the topic of facts";
        return Err(group.refuse(format!("{why}{beside}")));
    }
    Ok(())
}

pub(crate) fn validate_key(value: &Value) -> Result<String> {
    // Two keys that look the same would be two, and the job would run for both.
    let key = value.text_if(|key| names::validate_visible(key, usize::MAX))?;
    let length = key.bytes().map(|byte| if matches!(byte, b'"' | b'\\') { 2 } else { 1 }).sum::<usize>();
    if length > LONGEST_KEY {
        let why = format!("must be at most {LONGEST_KEY} bytes, where \" and \\ count twice, and has {length}");
        return Err(value.refuse(why));
    }
    Ok(key)
}

/// The calendar with the time zone that `zone` names.
fn calendar_of(edges: Edges, zone: &Value, windows: &Value) -> Result<Calendar> {
    let found = calendar::zone(zone.text()?).ok_or_else(|| {
        zone.refuse("is not in this machine's time zone database (tzdata); must be a name such as UTC or Europe/Berlin")
    })?;
    if found != TimeZone::UTC && edges.are_by_the_hour() {
        return Err(zone.refuse(format!(
            "has no meaning with {}: windows of less than a day are counted in UTC",
            windows.shown()
        )));
    }
    Ok(Calendar::new(edges, found))
}
