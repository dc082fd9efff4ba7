//! Cron expressions, with the rules of Debian's cron. The fields and the days are croner's; what croner does otherwise than cron is here: which
//! days two day fields select, which expressions are intervals, and what becomes of them when a time zone's clocks are changed.

use anyhow::{Result, anyhow, bail};
use croner::Cron;
use croner::parser::CronParser;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan};

use super::FIRST_EDGE;

/// cron takes a larger change of the clocks for another time altogether: what is left out does not come, and what comes again comes twice.
/// (At exactly this much, what is left out does not come, and nothing comes twice.)
const SUMMER_TIME: SignedDuration = SignedDuration::from_hours(3);

/// The name of each field, and what it takes.
const FIELDS: [(&str, &str); 7] = [
    ("second", "0 to 59"),
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31, L, LW, 15W"),
    ("month", "1 to 12, JAN to DEC"),
    ("day of the week", "0 to 7, SUN to SAT, FRI#2, 5L"),
    ("year", "1 to 5000"),
];
const MINUTE: usize = 1;
const HOUR: usize = 2;
const DAY_OF_MONTH: usize = 3;
const MONTH: usize = 4;
const DAY_OF_WEEK: usize = 5;

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// The times of an expression by a wall clock, and how they follow a time zone's clocks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Expression {
    cron: Cron,
    /// Neither the minute nor the hour begins with `*`: each time comes once, also if the clocks leave it out or show it twice.
    is_fixed: bool,
}

impl Expression {
    pub(super) fn parse(expression: &str) -> Result<Self> {
        let expression = match expression.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other if other.starts_with('@') => {
                bail!("{other} is none of @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly")
            }
            other => other,
        };
        let given: Vec<&str> = expression.split_whitespace().collect();
        let fields = match given.len() {
            5 => [&["0"], &given[..], &["*"]].concat(),
            6 => [&given[..], &["*"]].concat(),
            7 => given,
            count => bail!("it needs five fields (six with seconds first, seven with years last), and has {count}"),
        };
        let written: Vec<String> = fields.iter().map(|field| without_lone_stars(field)).collect();
        for (field, text) in written.iter().enumerate() {
            let mut alone = ["*"; FIELDS.len()];
            alone[field] = text;
            if !has_its_words(field, text) || CronParser::new().parse(&alone.join(" ")).is_err() {
                let ((name, values), text) = (FIELDS[field], fields[field]);
                bail!("the {name} is '{text}'; it takes {values}, *, a-b, */n, a-b/n and lists of these");
            }
        }
        let begins_with_star = |field: usize| written[field].starts_with(['*', '?']);
        let needs_both_days = begins_with_star(DAY_OF_MONTH) || begins_with_star(DAY_OF_WEEK);
        let parser = CronParser::builder().dom_and_dow(needs_both_days).build();
        let cron = parser.parse(&written.join(" ")).map_err(|_| anyhow!("it never comes"))?;
        cron.find_next_occurrence(&FIRST_EDGE, true).map_err(|_| anyhow!("it never comes"))?;
        Ok(Self { cron, is_fixed: !begins_with_star(MINUTE) && !begins_with_star(HOUR) })
    }

    /// The first time after `now`.
    pub(super) fn first_after(&self, zone: &TimeZone, now: Timestamp) -> Option<Timestamp> {
        let mut offset = zone.to_offset(now);
        let mut from = offset.to_datetime(now).checked_add(1.second()).ok()?;
        if let Some(change) = last_change(zone, now) {
            from = from.max(self.first_in(&change));
        }
        for change in zone.following(now).filter_map(|change| Change::of(zone, change.timestamp())) {
            match self.cron.find_next_occurrence(&from, true) {
                Ok(found) if found < change.ended => return offset.to_timestamp(found).ok(),
                Ok(found) if self.comes_after(&change, found) => return Some(change.at),
                Ok(_) => {}
                // The last times may come again with the change.
                Err(_) if change.resumed < from => {}
                Err(_) => return None,
            }
            (offset, from) = (change.offset, self.first_in(&change));
        }
        offset.to_timestamp(self.cron.find_next_occurrence(&from, true).ok()?).ok()
    }

    /// The last time that is not after `now`.
    pub(super) fn last_until(&self, zone: &TimeZone, now: Timestamp) -> Option<Timestamp> {
        let mut until = zone.to_datetime(now);
        let mut at = now;
        while let Some(change) = last_change(zone, at) {
            match self.cron.find_previous_occurrence(&until, true) {
                Ok(found) if found >= self.first_in(&change) => return change.offset.to_timestamp(found).ok(),
                Ok(_) => {}
                // The first times may have come before the change.
                Err(_) if until < change.ended => {}
                Err(_) => return None,
            }
            let lost = change.resumed.checked_sub(1.second()).ok()?;
            if self.cron.find_previous_occurrence(&lost, true).is_ok_and(|found| self.comes_after(&change, found)) {
                return Some(change.at);
            }
            until = change.ended.checked_sub(1.second()).ok()?;
            at = change.at.checked_sub(1.second()).ok()?;
        }
        zone.to_offset(at).to_timestamp(self.cron.find_previous_occurrence(&until, true).ok()?).ok()
    }

    /// The first time of the wall clock after a change that counts: a fixed time that comes again has come already.
    fn first_in(&self, change: &Change) -> DateTime {
        let again = change.ended.duration_since(change.resumed);
        if self.is_fixed && again <= SUMMER_TIME { change.ended.max(change.resumed) } else { change.resumed }
    }

    /// Whether this time of the wall clock is left out by the change, and comes with it.
    fn comes_after(&self, change: &Change, time: DateTime) -> bool {
        let lost = change.resumed.duration_since(change.ended);
        self.is_fixed && lost < SUMMER_TIME && change.ended <= time && time < change.resumed
    }
}

/// A change of a time zone's clocks.
struct Change {
    at: Timestamp,
    /// What the wall clock would have shown then.
    ended: DateTime,
    /// What it shows instead.
    resumed: DateTime,
    /// The offset from then on.
    offset: Offset,
}

impl Change {
    fn of(zone: &TimeZone, at: Timestamp) -> Option<Self> {
        let before = zone.to_offset(at.checked_sub(1.second()).ok()?);
        let offset = zone.to_offset(at);
        Some(Self { at, ended: before.to_datetime(at), resumed: offset.to_datetime(at), offset })
    }
}

/// The last change that is not after `now`.
fn last_change(zone: &TimeZone, now: Timestamp) -> Option<Change> {
    let after = now.checked_add(1.second()).ok()?;
    Change::of(zone, zone.preceding(after).next()?.timestamp())
}

/// croner has no `*` in a list.
fn without_lone_stars(field: &str) -> String {
    if !field.contains(',') {
        return field.to_uppercase();
    }
    let parts = field.split(',').map(|part| if part == "*" { "*/1" } else { part });
    parts.collect::<Vec<_>>().join(",").to_uppercase()
}

/// Whether each part is written with the words of this field. (croner reads the names of months and days as numbers in each field, leaves
/// out an empty part, takes an `L` that means nothing, and takes `L,LW` for `LW`.)
fn has_its_words(field: usize, text: &str) -> bool {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_word = |word: &str| {
        is_number(word)
            || matches!(word, "*" | "?")
            || match field {
                DAY_OF_MONTH => matches!(word, "L" | "LW") || word.strip_suffix('W').is_some_and(is_number),
                MONTH => MONTHS.contains(&word),
                DAY_OF_WEEK => {
                    let day = word.strip_suffix('L').unwrap_or(word);
                    DAYS.contains(&day) || is_number(day)
                }
                _ => false,
            }
    };
    let text = if field == DAY_OF_WEEK { text.strip_prefix('+').unwrap_or(text) } else { text };
    let has = |wanted: &str| text.split(',').any(|part| part == wanted);
    let separators = if field == DAY_OF_WEEK { &['-', '/', '#'][..] } else { &['-', '/'] };
    text.split(',').flat_map(|part| part.split(separators)).all(is_word) && !(has("L") && has("LW"))
}
