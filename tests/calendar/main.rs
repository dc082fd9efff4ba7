//! Cron expressions against a table that another program made: cron.py, which says what it follows, wrote cron.txt.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use jiff::civil::date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use neli_run::calendar::{Calendar, Edges};

/// The words of a section's first line.
type Head = Vec<&'static str>;
/// Expressions, and what the table says of each.
type Rows = Vec<(&'static str, &'static str)>;

fn sections(kind: &str) -> Vec<(Head, Rows)> {
    let sections = include_str!("cron.txt").split("\n\n").filter_map(|section| {
        let (head, rows) = section.trim_end().split_once('\n')?;
        let words: Vec<&str> = head.split([' ', ':']).collect();
        (words[0] == kind).then(|| (words, rows.lines().map(|row| row.split_once(" = ").unwrap()).collect()))
    });
    sections.collect()
}

/// The numbers of `1+2*3 7`: 1, 3, 5 and 7.
fn numbers(text: &str) -> BTreeSet<i64> {
    let number = |text: &str| text.parse::<i64>().unwrap();
    let word = |word: &str| match word.split_once('+') {
        None => vec![number(word)],
        Some((first, steps)) => {
            let (step, count) = steps.split_once('*').unwrap();
            (0..number(count)).map(|at| number(first) + at * number(step)).collect()
        }
    };
    text.split_whitespace().flat_map(word).collect()
}

fn ms(at: Timestamp) -> u64 {
    at.as_millisecond().try_into().unwrap()
}

/// The windows' starts from one moment to another, both included, found forward, and found backward.
fn starts(calendar: &Calendar, from: Timestamp, until: Timestamp) -> [BTreeSet<u64>; 2] {
    let (from, until) = (ms(from), ms(until));
    let forward =
        std::iter::successors(Some(calendar.window(from - 1)), |window| Some(calendar.window(window.span.until_ms)));
    let forward = forward.map(|window| window.span.until_ms).take_while(|start| *start <= until).collect();
    let backward = std::iter::successors(Some(calendar.window(until)), |window| {
        Some(calendar.window(window.span.from_ms.saturating_sub(1)))
    });
    let backward = backward.map(|window| window.span.from_ms).take_while(|start| *start >= from).collect();
    [forward, backward]
}

fn calendar(expression: &str, zone: &TimeZone) -> Calendar {
    Calendar::new(Edges::of_cron(expression).unwrap_or_else(|error| panic!("{expression}: {error}")), zone.clone())
}

#[test]
fn around_the_changes_of_clocks_each_shape_comes_when_cron_runs_it() {
    const AROUND: SignedDuration = SignedDuration::from_hours(30);
    let sections = sections("change");
    assert_eq!(sections.len(), 26);
    for (head, rows) in sections {
        let zone = TimeZone::get(head[1]).unwrap();
        let change: Timestamp = head[2..5].join(":").trim_end_matches(':').parse().unwrap();
        for (expression, expected) in rows {
            let expected: BTreeSet<u64> =
                numbers(expected).into_iter().map(|minute| ms(change + SignedDuration::from_mins(minute))).collect();
            for found in starts(&calendar(expression, &zone), change - AROUND, change + AROUND) {
                let minutes = |times: &BTreeSet<u64>| {
                    times.iter().map(|at| (at.cast_signed() - ms(change).cast_signed()) / 60_000).collect::<Vec<_>>()
                };
                assert_eq!(minutes(&found), minutes(&expected), "{expression} in {head:?}");
            }
        }
    }
}

/// Where the expression names only the day of a change, what comes on that day is the same: its last times come again, its first ones came before.
#[test]
fn the_only_day_of_an_expression_may_be_that_of_a_change() {
    const AROUND: SignedDuration = SignedDuration::from_hours(4);
    let mut compared = 0;
    for (head, rows) in sections("change") {
        let zone = TimeZone::get(head[1]).unwrap();
        let change: Timestamp = head[2..5].join(":").trim_end_matches(':').parse().unwrap();
        let day = zone.to_datetime(change).date();
        // What is left out before midnight comes on the next day.
        if zone.to_datetime(change - SignedDuration::from_mins(1)).date() != day {
            continue;
        }
        let is_there =
            |at: &u64| zone.to_datetime(Timestamp::from_millisecond(at.cast_signed()).unwrap()).date() == day;
        for (expression, _) in rows {
            let Some(times) = expression.strip_suffix(" * * *") else { continue };
            let on_it = calendar(&format!("0 {times} {} {} * {}", day.day(), day.month(), day.year()), &zone);
            let [every_day, only] = [&calendar(expression, &zone), &on_it]
                .map(|calendar| starts(calendar, change - AROUND, change + AROUND));
            let every_day: BTreeSet<u64> = every_day[0].iter().copied().filter(is_there).collect();
            let only = only.map(|found| found.into_iter().filter(is_there).collect::<BTreeSet<u64>>());
            assert_eq!(only, [every_day.clone(), every_day], "{expression} in {head:?}");
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn the_fields_of_days_select_the_days_that_cron_selects() {
    let [(head, rows)] = &sections("days")[..] else { panic!("one year") };
    let year: i16 = head[1].parse().unwrap();
    for (expression, expected) in rows {
        let months = expected.split(' ').map(|month| u32::from_str_radix(month, 16).unwrap());
        let day =
            |month: usize, day: usize| date(year, i8::try_from(month + 1).unwrap(), i8::try_from(day + 1).unwrap());
        let days =
            |(month, bits): (usize, u32)| (0..32).filter(move |at| bits >> at & 1 == 1).map(move |at| day(month, at));
        let expected: BTreeSet<_> = months.enumerate().flat_map(days).collect();
        if expected.is_empty() && Edges::of_cron(expression).is_err_and(|error| error.to_string() == "it never comes") {
            continue;
        }
        let at = |date: jiff::civil::Date| date.to_zoned(TimeZone::UTC).unwrap().timestamp();
        let (from, until) = (at(date(year, 1, 1)), at(date(year, 12, 31)));
        for found in starts(&calendar(expression, &TimeZone::UTC), from, until) {
            let date_of =
                |at: &u64| TimeZone::UTC.to_datetime(Timestamp::from_millisecond(at.cast_signed()).unwrap()).date();
            assert_eq!(found.iter().map(date_of).collect::<BTreeSet<_>>(), expected, "{expression}");
        }
    }
    assert!(rows.len() > 100);
}

#[test]
fn each_field_takes_its_own_shapes() {
    let [(_, rows)] = &sections("shapes")[..] else { panic!("one section") };
    assert!(rows.len() > 100);
    for (expression, expected) in rows {
        let found = if Edges::of_cron(expression).is_ok() { "taken" } else { "refused" };
        assert_eq!(found, *expected, "{expression}");
    }
}
