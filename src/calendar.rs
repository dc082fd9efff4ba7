//! Calendars: they divide the time of a wall clock into windows.
//!
//! Machines whose clocks differ agree on the window, since its start is the key of its run.

mod cron;

use std::ops::Range;
use std::time::Duration;

use anyhow::{Result, anyhow};
pub use cron::Expression;
use jiff::civil::{DateTime, date};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use neli_proto::time::{Span, Window, millis};

use crate::text::parse_duration;

/// Windows are counted from this Monday, so that windows of a week begin on Mondays.
const FIRST_EDGE: DateTime = date(1970, 1, 5).at(0, 0, 0, 0);

/// A day, in seconds.
const DAY: i64 = 24 * 60 * 60;

/// Within this number of years each length of a cron expression's windows occurs, except around 2100, which has no leap day.
const YEARS: u64 = 10;

/// The last moment of a calendar, in milliseconds since 1970: the end of the year 9999.
const LAST: i64 = 253_402_300_799_999;

/// The rule by which windows begin.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Calendar {
    edges: Edges,
    zone: TimeZone,
}

/// The edges between windows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Edges {
    /// At the times of a cron expression.
    At(Box<Expression>),
    /// At equal intervals.
    Every(Every),
}

/// Windows of equal length.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Every {
    /// In seconds; a day or longer is in whole days.
    length: i64,
    /// The offset from midnight in seconds; less than the length.
    offset: i64,
}

/// What the length of windows is.
pub const LENGTH: &str = "must be LENGTH or LENGTH/OFFSET, such as 15m, 1d, or 1d/2h for windows from 02:00 on; LENGTH is whole seconds \
                          from 1s to 365d, and whole days if it is longer than a day; OFFSET is less than LENGTH";

impl Every {
    /// `1d`, or `1d/2h`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (length, offset) = text.split_once('/').unwrap_or((text, "0"));
        Self::new(parse_duration(length)?, parse_duration(offset)?)
    }

    /// The longest window: a year.
    const LONGEST: i64 = 365 * DAY;

    /// Windows of this length with this offset from the hour, the day or Monday; `None` if that is not possible.
    pub fn new(length: Duration, offset: Duration) -> Option<Self> {
        let seconds = |span: Duration| i64::try_from(span.as_secs()).ok().filter(|_| span.subsec_nanos() == 0);
        let (length, offset) = (seconds(length)?, seconds(offset)?);
        let is_whole = length < DAY || length % DAY == 0;
        ((1..=Self::LONGEST).contains(&length) && is_whole && offset < length).then_some(Self { length, offset })
    }

    /// The last edge that is not after `now`, and the first that is.
    fn around(self, zone: &TimeZone, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let since = zone.to_datetime(now).duration_since(FIRST_EDGE).as_secs();
        let nearest = (since - self.offset).div_euclid(self.length);
        // If an hour occurs twice, the first one counts; for an hour that is left out, the hour after it counts.
        let edge = |count: i64| {
            let since = SignedDuration::from_secs(count * self.length + self.offset);
            zone.to_timestamp(FIRST_EDGE.checked_add(since).ok()?).ok()
        };
        let edges: Vec<Timestamp> = (nearest - 1..=nearest + 2).filter_map(edge).collect();
        let from = edges.iter().filter(|edge| **edge <= now).max()?;
        let until = edges.iter().filter(|edge| **edge > now).min()?;
        Some((*from, *until))
    }
}

impl Edges {
    /// `every 15m`, or a cron expression.
    ///
    /// # Errors
    ///
    /// It is neither.
    pub(crate) fn of_schedule(text: &str) -> Result<Self> {
        match text.strip_prefix("every ") {
            Some(length) => {
                Every::parse(length.trim()).map(Self::Every).ok_or_else(|| anyhow!("after every: {LENGTH}"))
            }
            None => Self::of_cron(text)
                .map_err(|error| anyhow!("must be a cron expression such as '30 2 * * *', or every DURATION: {error}")),
        }
    }

    /// Whether the windows have one length, of less than a day. Longer ones begin at a time of day, which depends on the time zone.
    pub(crate) const fn are_by_the_hour(&self) -> bool {
        matches!(self, Self::Every(every) if every.length < DAY)
    }

    /// The times of a cron expression.
    ///
    /// # Errors
    ///
    /// The expression can't be parsed, or has no future time.
    pub fn of_cron(expression: &str) -> Result<Self> {
        Expression::parse(expression).map(|expression| Self::At(Box::new(expression)))
    }

    /// The last edge that is not after `now`, and the first that is, if there are any.
    fn around(&self, zone: &TimeZone, now: Timestamp) -> (Option<Timestamp>, Option<Timestamp>) {
        match self {
            Self::At(expression) => (expression.last_until(zone, now), expression.first_after(zone, now)),
            Self::Every(every) => every.around(zone, now).unzip(),
        }
    }
}

/// Whether the window begins at a time of its calendar: what is before the first time has none.
pub(crate) const fn has_beginning(window: Span) -> bool {
    window.from_ms > 0
}

/// Whether another window begins where one ends. None does after the last time of a calendar.
pub(crate) const fn is_start(until_ms: u64) -> bool {
    until_ms < LAST.unsigned_abs()
}

/// The time zone with this name. UTC needs no database, which small images lack.
pub(crate) fn zone(name: &str) -> Option<TimeZone> {
    let is_utc = ["UTC", "Etc/UTC"].iter().any(|utc| name.eq_ignore_ascii_case(utc));
    if is_utc { Some(TimeZone::UTC) } else { TimeZone::get(name).ok() }
}

/// The second of a wall clock, given in milliseconds since 1970.
fn second_of(wall_ms: u64) -> Timestamp {
    let ms = i64::try_from(wall_ms).unwrap_or(LAST).min(LAST);
    // A timestamp ends a day earlier, so that it has a date in each time zone.
    Timestamp::from_second(ms / 1_000).unwrap_or(Timestamp::MAX)
}

impl Calendar {
    /// Windows by the clocks of this time zone.
    pub const fn new(edges: Edges, zone: TimeZone) -> Self {
        Self { edges, zone }
    }

    /// The time zone's name.
    pub(crate) fn zone_name(&self) -> Option<&str> {
        self.zone.iana_name()
    }

    /// The starts of the next windows, in milliseconds since 1970.
    pub(crate) fn next_starts(&self, wall_ms: u64) -> impl Iterator<Item = u64> {
        let starts = std::iter::successors(Some(wall_ms), |at| Some(self.window(*at).span.until_ms));
        starts.skip(1).take_while(|start| is_start(*start))
    }

    /// Whether no window begins after this moment, in milliseconds since 1970: each year of a cron expression that names years is over.
    pub(crate) fn is_over(&self, wall_ms: u64) -> bool {
        self.edges.around(&self.zone, second_of(wall_ms)).1.is_none()
    }

    /// The window of a wall clock, given in milliseconds since 1970.
    pub fn window(&self, wall_ms: u64) -> Window {
        let (from, until) = self.edges.around(&self.zone, second_of(wall_ms));
        // The defaults apply to a time before the first edge or after the last one.
        let from = from.unwrap_or(Timestamp::UNIX_EPOCH).max(Timestamp::UNIX_EPOCH);
        let ms = |edge: Timestamp| u64::try_from(edge.as_millisecond()).unwrap_or(0);
        let until_ms = until.map_or(LAST.unsigned_abs(), ms);
        Window { key: from.to_string().into(), span: Span { from_ms: ms(from), until_ms } }
    }

    /// The longest window from now on, if one is at least this long.
    pub(crate) fn longest_window(&self, wall_ms: u64, least: Duration) -> Option<Duration> {
        let day = DAY.unsigned_abs() * 1_000;
        let least_ms = millis(least).max(1);
        // A window that is longer than the step contains one of the moments. Shorter windows than a day are the same on each day that has
        // windows, except when clocks are changed.
        let by_day = (least_ms.max(day), wall_ms + YEARS * 366 * day);
        let by_hour = (least_ms.min(day), wall_ms + 7 * day);
        [by_hour, by_day]
            .into_iter()
            .filter_map(|(step, until)| self.longest_shown(wall_ms..until, step))
            .max()
            .filter(|longest| *longest >= least)
    }

    fn longest_shown(&self, times_ms: Range<u64>, step: u64) -> Option<Duration> {
        let mut at = times_ms.start;
        let spans = std::iter::from_fn(|| {
            let span = self.window(at).span;
            let is_over = at >= times_ms.end;
            at = span.until_ms.max(at + step);
            (!is_over).then_some(span)
        });
        // Before the first time and after the last one there is no window.
        let is_one = |span: &Span| has_beginning(*span) && is_start(span.until_ms);
        spans.filter(is_one).map(|span| Duration::from_millis(span.until_ms - span.from_ms)).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600;

    fn every(length: u64, offset: u64) -> Every {
        Every::new(Duration::from_secs(length), Duration::from_secs(offset)).unwrap()
    }

    fn ms(text: &str) -> u64 {
        text.parse::<Timestamp>().unwrap().as_millisecond().try_into().unwrap()
    }

    /// Begin and end of the window at that time.
    fn shown(calendar: &Calendar, at: &str) -> [String; 2] {
        let Window { key, span } = calendar.window(ms(at));
        let text = |ms: u64| Timestamp::from_millisecond(ms.try_into().unwrap()).unwrap().to_string();
        assert_eq!(*key, *text(span.from_ms));
        [span.from_ms, span.until_ms].map(text)
    }

    #[test]
    fn a_window_begins_at_its_edge_and_ends_before_the_next() {
        for (length, offset, at, expected) in [
            (24 * HOUR, 0, "2026-11-22T00:00:00Z", ["2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z"]),
            (24 * HOUR, 0, "2026-11-22T23:59:59.999Z", ["2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z"]),
            (24 * HOUR, HOUR, "2026-11-22T00:59:59Z", ["2026-11-21T01:00:00Z", "2026-11-22T01:00:00Z"]),
            (900, 0, "2026-11-22T12:29:59Z", ["2026-11-22T12:15:00Z", "2026-11-22T12:30:00Z"]),
            (7 * 24 * HOUR, 0, "2026-11-22T12:00:00Z", ["2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z"]),
            (1, 0, "2026-11-22T12:00:00.5Z", ["2026-11-22T12:00:00Z", "2026-11-22T12:00:01Z"]),
        ] {
            assert_eq!(shown(&Calendar::new(Edges::Every(every(length, offset)), TimeZone::UTC), at), expected);
        }
    }

    #[test]
    fn a_length_is_whole_seconds_and_from_a_day_on_whole_days() {
        let can_be = |length: Duration, offset: Duration| Every::new(length, offset).is_some();
        let seconds = Duration::from_secs;
        assert!(can_be(seconds(1), seconds(0)) && can_be(seconds(365 * 86_400), seconds(86_400)));
        for (length, offset) in [
            (seconds(0), seconds(0)),
            (Duration::from_millis(1_500), seconds(0)),
            (seconds(86_401), seconds(0)),
            (seconds(366 * 86_400), seconds(0)),
            (seconds(60), seconds(60)),
            (seconds(60), Duration::from_millis(1)),
        ] {
            assert!(!can_be(length, offset), "{length:?}/{offset:?}");
        }
    }

    #[test]
    fn a_length_in_months_is_refused_as_in_each_duration() {
        for months in ["365d/5M", "60d/1M", "1M"] {
            assert_eq!(Every::parse(months), None, "{months}");
        }
        assert_eq!(Every::parse("365d/5m"), Some(every(365 * 24 * HOUR, 300)));
    }

    #[test]
    fn a_day_begins_at_midnight_there_whatever_its_length() {
        let days = Edges::Every(every(24 * HOUR, 2 * HOUR + 1_800));
        let berlin = Calendar::new(days, TimeZone::get("Europe/Berlin").unwrap());
        // 02:30 is skipped on one of the days and occurs twice on the other.
        for (at, expected) in [
            ("2026-03-28T12:00:00Z", ["2026-03-28T01:30:00Z", "2026-03-29T01:30:00Z"]),
            ("2026-03-29T12:00:00Z", ["2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"]),
            ("2026-10-25T00:30:00Z", ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]),
            ("2026-10-25T01:45:00Z", ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]),
        ] {
            assert_eq!(shown(&berlin, at), expected, "{at}");
        }
    }

    #[test]
    fn a_cron_expression_is_read_in_its_time_zone() {
        let berlin =
            |expression| Calendar::new(Edges::of_cron(expression).unwrap(), TimeZone::get("Europe/Berlin").unwrap());
        for (expression, at, expected) in [
            ("30 2 * * *", "2026-11-22T12:00:00Z", ["2026-11-22T01:30:00Z", "2026-11-23T01:30:00Z"]),
            ("30 2 * * *", "2026-11-22T01:30:00.5Z", ["2026-11-22T01:30:00Z", "2026-11-23T01:30:00Z"]),
            ("@midnight", "2026-11-22T12:00:00Z", ["2026-11-21T23:00:00Z", "2026-11-22T23:00:00Z"]),
            ("@hourly", "2026-11-22T12:00:00Z", ["2026-11-22T12:00:00Z", "2026-11-22T13:00:00Z"]),
            ("0 9 * * MON-FRI", "2026-11-22T12:00:00Z", ["2026-11-20T08:00:00Z", "2026-11-23T08:00:00Z"]),
            ("*/10 * * * * *", "2026-11-22T12:00:05Z", ["2026-11-22T12:00:00Z", "2026-11-22T12:00:10Z"]),
            // An hour that is skipped, and one that occurs twice: interval times continue through both, other times occur once.
            ("30 2 * * *", "2026-03-29T12:00:00Z", ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]),
            ("30 2 * * *", "2026-10-25T01:45:00Z", ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]),
            // A `*` in the second makes no interval.
            ("*/20 30 2 * * *", "2026-10-25T01:45:00Z", ["2026-10-25T00:30:40Z", "2026-10-26T01:30:00Z"]),
            ("*/30 * * * *", "2026-10-25T01:45:00Z", ["2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"]),
        ] {
            assert_eq!(shown(&berlin(expression), at), expected, "{expression} at {at}");
        }
    }

    #[test]
    fn the_longest_window_is_found_even_if_it_is_rare() {
        let days = |days: u64| Duration::from_secs(days * 24 * HOUR);
        for (expression, least, expected) in [
            ("30 2 * * *", days(90), None),
            ("30 2 * * *", days(1), Some(days(1))),
            ("0 */8 * * *", Duration::from_secs(HOUR), Some(Duration::from_secs(8 * HOUR))),
            ("@yearly", days(90), Some(days(366))),
            ("0 0 29 2 *", days(90), Some(days(4 * 365 + 1))),
            ("* * * 1 *", days(90), Some(days(334) + Duration::from_secs(24 * HOUR + 60))),
            ("0 9 * * MON", days(90), None),
            ("0 0 0 1 1 * 2027", days(90), None),
            ("0 0 0 * * * 2027-2028", days(1), Some(days(1))),
        ] {
            let calendar = Calendar::new(Edges::of_cron(expression).unwrap(), TimeZone::UTC);
            let longest = calendar.longest_window(ms("2026-11-22T12:00:00Z"), least);
            assert_eq!(longest, expected, "{expression}");
        }
        let year = Calendar::new(Edges::Every(every(365 * 24 * HOUR, 0)), TimeZone::UTC);
        assert_eq!(year.longest_window(ms("2026-11-22T12:00:00Z"), days(90)), Some(days(365)));
    }

    #[test]
    fn an_invalid_cron_expression_or_one_without_a_future_time_is_refused() {
        for wrong in ["", "* * *", "61 * * * *", "daily", "0 0 30 2 *", "0 0 L,LW * *", "0 0 1 * L", "@reboot"] {
            assert!(Edges::of_cron(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Edges::of_cron("0 0 30 2 *").unwrap_err().to_string(), "it never comes");
    }

    #[test]
    fn a_cron_expression_that_names_years_is_over_after_its_last_time() {
        let calendar = |expression| Calendar::new(Edges::of_cron(expression).unwrap(), TimeZone::UTC);
        let once = calendar("0 30 2 22 11 * 2026");
        assert!(!once.is_over(ms("2026-11-22T02:29:59Z")));
        assert!(once.is_over(ms("2026-11-22T02:30:00Z")));
        assert!(!calendar("30 2 * * *").is_over(ms("2026-11-22T02:30:00Z")));
    }

    /// The last window ends with the calendar.
    #[test]
    fn after_the_last_time_no_window_begins() {
        for name in ["UTC", "Europe/Berlin", "Pacific/Apia"] {
            for expression in ["0 30 2 22 11 * 2026-2027", "30 2 * * *"] {
                let calendar = Calendar::new(Edges::of_cron(expression).unwrap(), zone(name).unwrap());
                let last = calendar.window(LAST.unsigned_abs() - 1);
                assert!(!is_start(last.span.until_ms), "{last:?}");
                assert_eq!(calendar.next_starts(last.span.until_ms).next(), None, "{expression} in {name}");
            }
        }
    }

    /// The windows follow each other without gaps around each change of a time zone's clocks, at each moment that is asked for.
    #[test]
    fn windows_follow_each_other_without_a_gap() {
        const EXPRESSIONS: [&str; 5] = ["30 2 * * *", "0 0 * * *", "*/20 * * * *", "15 */2 * * *", "0 2,3 * * SUN"];
        for name in ["Europe/Berlin", "America/Havana", "Pacific/Apia", "Australia/Lord_Howe"] {
            let zone = TimeZone::get(name).unwrap();
            let start: Timestamp = "2011-01-01T00:00:00Z".parse().unwrap();
            let changes: Vec<u64> =
                zone.following(start).take(4).map(|change| ms(&change.timestamp().to_string())).collect();
            let days = [0, 2 * HOUR + 900].map(|offset| ("days", Edges::Every(every(24 * HOUR, offset))));
            let crons = EXPRESSIONS.map(|expression| (expression, Edges::of_cron(expression).unwrap()));
            for (what, edges) in days.into_iter().chain(crons) {
                let calendar = Calendar::new(edges, zone.clone());
                for change in &changes {
                    let mut window = calendar.window(change - 36 * HOUR * 1_000).span;
                    while window.from_ms < change + 36 * HOUR * 1_000 {
                        for at in [window.from_ms, window.from_ms.midpoint(window.until_ms), window.until_ms - 1] {
                            assert_eq!(calendar.window(at).span, window, "{name}, {what}, at {at}");
                        }
                        let next = calendar.window(window.until_ms).span;
                        assert_eq!(next.from_ms, window.until_ms, "{name}, {what}");
                        window = next;
                    }
                }
            }
        }
    }
}
