//! `--window`, `--schedule`, `--catch-up` and `--timezone`.

use std::time::Duration;

use anyhow::Result;
use jiff::tz::TimeZone;
use neli_kafka::clock;
use neli_proto::schedule::CatchUp;

use crate::calendar::{Calendar, Edges, Every, LENGTH};
use crate::cli::parsed_args::{ParsedArgs, Value};
use crate::config::Occasion;

/// The windows in which the job succeeds once.
pub(super) struct Windows {
    /// The option that asks for them.
    pub(super) value: Value,
    pub(super) occasion: Occasion,
}

impl Windows {
    /// The length of the longest window, if it is at least this long.
    pub(super) fn longest_from(&self, least: Duration) -> Option<Duration> {
        match &self.occasion {
            Occasion::Key(_) => None,
            Occasion::Schedule(calendar, _) | Occasion::Window(calendar, _) => {
                calendar.longest_window(clock::wall_ms(), least)
            }
        }
    }
}

pub(super) fn validate(args: &ParsedArgs) -> Result<Option<Windows>> {
    let (zone, catch_up) = (args.setting("timezone"), args.setting("catch-up"));
    let given = match (args.value("window"), args.value("schedule")) {
        (None, None) => {
            let idle = [(&zone, "--window or --schedule"), (&catch_up, "--schedule")];
            return match idle.iter().find(|(value, _)| value.is_given()) {
                Some((value, needed)) => Err(value.refuse(format!("has no meaning without {needed}"))),
                None => Ok(None),
            };
        }
        (Some(window), Some(schedule)) => {
            return Err(window.refuse(format!("can't be combined with {}", schedule.shown())));
        }
        (Some(window), None) if catch_up.is_given() => {
            return Err(catch_up.refuse(format!("has no meaning with {}", window.shown())));
        }
        (Some(window), None) => {
            let every = Every::parse(window.text()?).ok_or_else(|| window.refuse(LENGTH))?;
            let calendar = Calendar::new(Edges::Every(every), time_zone(&zone, Some(every), &window)?);
            let shown = calendar.window(clock::wall_ms());
            Windows { value: window, occasion: Occasion::Window(calendar, shown) }
        }
        (None, Some(schedule)) => {
            let edges = Edges::of_schedule(schedule.text()?).map_err(|error| schedule.refuse(error.to_string()))?;
            let zone = time_zone(&zone, edges.every(), &schedule)?;
            let calendar = Calendar::new(edges, zone);
            if calendar.is_over(clock::wall_ms()) {
                return Err(schedule.refuse("has no time that is still to come, by this machine's clock"));
            }
            let occasion = Occasion::Schedule(calendar, validate_catch_up(&catch_up)?);
            Windows { value: schedule, occasion }
        }
    };
    Ok(Some(given))
}

fn validate_catch_up(value: &Value) -> Result<CatchUp> {
    match value.text()? {
        "last" => Ok(CatchUp::Last),
        "none" => Ok(CatchUp::None),
        _ => Err(value.refuse("must be last or none")),
    }
}

fn time_zone(zone: &Value, every: Option<Every>, windows: &Value) -> Result<TimeZone> {
    // UTC needs no database, which small images lack.
    let name = zone.text()?;
    let is_utc = ["UTC", "Etc/UTC"].iter().any(|utc| name.eq_ignore_ascii_case(utc));
    let found = if is_utc { Ok(TimeZone::UTC) } else { TimeZone::get(name) };
    let found = found.map_err(|_| {
        zone.refuse("is not in this machine's time zone database (tzdata); must be a name such as UTC or Europe/Berlin")
    })?;
    if found != TimeZone::UTC && every.is_some_and(|every| !every.is_by_the_day()) {
        return Err(zone.refuse(format!(
            "has no meaning with {}: windows of less than a day are counted in UTC",
            windows.shown()
        )));
    }
    Ok(found)
}
