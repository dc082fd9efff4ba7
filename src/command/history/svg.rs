//! `history --svg`: one row per candidate and one bar per term on a time axis. A file for a post-mortem, which needs neither this tool nor
//! the network.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use neli_proto::leadership::HowReleased;
use neli_proto::observer::TermEnd;

use super::{Row, unled_for};
use crate::command::output::fitted;
use crate::text::{counted, date, html, one_line};

/// The drawing's width in its own units, which a viewer scales.
const WIDTH: u64 = 1_000;
const LEFT: u64 = 160;
/// Half the width of a time's label.
const RIGHT: u64 = 75;
const TOP: u64 = 60;
const ROW: u64 = 26;
/// A longer name does not fit beside its row.
const LONGEST_NAME: usize = 20;
/// The height of a row of the list below the axis.
const LINE: u64 = 17;
/// The axis has at most this many steps, so that no label covers the next one.
const TICKS: u64 = 4;
/// The list below the axis has at most this many terms: the last ones.
const LISTED: usize = 60;
/// A strip names its terms if it has at most this many.
const NAMED: usize = 40;

/// The drawing as SVG, for a period that ends now.
pub(in crate::command) fn draw(group: &str, rows: &[Row<'_>], time_ms: Range<u64>) -> String {
    if rows.is_empty() {
        return without_terms(group, time_ms);
    }
    let Range { start: from_ms, end: now_ms } = time_ms;
    let begins = rows.iter().filter_map(|row| row.past.from_ms.or(row.past.last_record_ms)).min().unwrap_or(now_ms);
    let begin = begins.max(from_ms);
    let axis = begin..now_ms.max(begin + 1);
    let mut lanes: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows {
        let next = u64::try_from(lanes.len()).unwrap_or_default();
        lanes.entry(row.past.shown()).or_insert(next);
    }
    let bottom = TOP + ROW * u64::try_from(lanes.len()).unwrap_or_default().max(1);
    let height = bottom + 70 + LINE * u64::try_from(rows.len().min(LISTED) + 1).unwrap_or_default();
    let mut svg = head(height, group, &format!("who led, {}", span(&axis)));
    let nexts = rows.iter().skip(1).map(|next| next.past.from_ms).chain([Some(now_ms)]);
    for (row, to_ms) in rows.iter().zip(nexts) {
        let unled = row.gap.map_or_else(String::new, |gap| format!("no leader for {}", unled_for(gap)));
        for (class, from, width) in gaps_at(&axis, row, to_ms) {
            rect(&mut svg, class, (from, TOP), (width, bottom - TOP), &unled);
        }
    }
    for (name, lane) in &lanes {
        text(
            &mut svg,
            (LEFT - 10, TOP + ROW * lane + 17),
            " text-anchor=\"end\"",
            &fitted(&one_line(name), LONGEST_NAME),
        );
    }
    for row in rows {
        let lane = lanes.get(row.past.shown()).copied().unwrap_or_default();
        bar(&mut svg, &axis, row, TOP + ROW * lane + 3, now_ms);
    }
    ticks(&mut svg, &axis, bottom);
    let legend = [
        ("led", "leads"),
        ("ended", "ended in order"),
        ("lost", "killed, silent or unknown"),
        ("gap", "no leader"),
        ("doubt", "silent: dead perhaps"),
    ];
    for (place, (class, meaning)) in (0..).zip(legend) {
        let x = LEFT + place * 165;
        rect(&mut svg, class, (x, bottom + 36), (12, 12), "");
        text(&mut svg, (x + 18, bottom + 46), "", meaning);
    }
    list(&mut svg, rows, bottom + 75, now_ms);
    svg + "</svg>\n"
}

/// The beginning of a drawing of this height, with its title.
fn head(height: u64, group: &str, what: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <style>.led{{fill:#3a7d44}}.ended{{fill:#4a6fa5}}.lost{{fill:#b3402a}}.gap{{fill:#e9b44c}}.doubt{{fill:url(#hatch)}}.axis{{stroke:#999}}</style>\n\
         <defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
         <rect width=\"3\" height=\"6\" fill=\"#e9b44c\"/></pattern></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"10\" y=\"22\" font-size=\"16\">election {}: {what}</text>\n",
        html(group)
    )
}

/// The drawing of a time without a term. Without `--since` that time has no beginning, and so no axis.
fn without_terms(group: &str, time_ms: Range<u64>) -> String {
    let Range { start: from_ms, end: now_ms } = time_ms;
    let axis = from_ms..now_ms.max(from_ms + 1);
    let (bottom, span) = (TOP + ROW, if from_ms > 0 { span(&axis) } else { format!("up to {}", date(now_ms)) });
    let mut svg = head(bottom + 30, group, "who led");
    let middle = LEFT + (WIDTH - LEFT - RIGHT) / 2;
    text(&mut svg, (middle, TOP - 10), " text-anchor=\"middle\"", &format!("no terms {span}"));
    if from_ms > 0 {
        ticks(&mut svg, &axis, bottom);
    }
    svg + "</svg>\n"
}

/// The terms in one bar without text, for a table: its colours are the page's. What is not known of is left out. It has no length in words, and so
/// changes only as its bars do. Of more terms than [`NAMED`] it names none: a page of many elections would have tens of megabytes.
pub(in crate::command) fn strip(rows: &[Row<'_>], time_ms: Range<u64>) -> String {
    let Range { start: begin, end: now_ms } = time_ms;
    let axis = begin..now_ms.max(begin + 1);
    let width = WIDTH - LEFT - RIGHT;
    let mut svg = format!("<svg class=\"strip\" viewBox=\"{LEFT} {TOP} {width} {ROW}\" preserveAspectRatio=\"none\">");
    let nexts = rows.iter().skip(1).map(|next| next.past.from_ms).chain([Some(now_ms)]);
    let bars = rows.iter().zip(nexts).flat_map(|(row, to_ms)| {
        let (from, width) = term_at(&axis, row, now_ms);
        let gaps = gaps_at(&axis, row, to_ms).into_iter().map(|(class, from, width)| (class, from, width, None));
        gaps.chain([(class(row), from, width, Some(row))])
    });
    if rows.len() <= NAMED {
        for (class, from, width, row) in bars {
            let title = row.map_or_else(
                || "no leader".to_owned(),
                |row| {
                    let since =
                        row.past.from_ms.map_or_else(String::new, |from_ms| format!(", from {}", date(from_ms)));
                    format!("term {}: {}{since}", row.past.term, row.past.shown())
                },
            );
            rect(&mut svg, class, (from, TOP), (width, ROW), &title);
        }
        return svg + "</svg>";
    }
    let mut spans: BTreeMap<&str, Vec<Range<u64>>> = BTreeMap::new();
    for (class, from, width, _) in bars {
        join(spans.entry(class).or_default(), from..from + width);
    }
    let terms = counted(rows.len() as u64, "term");
    // What is drawn later covers what is under it: a moment without a leader must be seen.
    for class in ["led", "ended", "lost", "doubt", "gap"] {
        let Some(spans) = spans.get(class) else { continue };
        let _ = write!(svg, "<path class=\"{class}\" d=\"");
        for Range { start, end } in spans {
            let _ = write!(svg, "M{start} {TOP}h{0}v{ROW}h-{0}z", end - start);
        }
        let _ = write!(svg, "\"><title>{terms}</title></path>");
    }
    svg + "</svg>"
}

/// Adds a span to those before it, and to the last of them if they touch.
fn join(spans: &mut Vec<Range<u64>>, span: Range<u64>) {
    match spans.last_mut() {
        Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
        _ => spans.push(span),
    }
}

/// The list of all terms in words, the last one at the bottom: a printed page has no tooltips.
fn list(svg: &mut String, rows: &[Row<'_>], top: u64, now_ms: u64) {
    let (left_out, mut y) = (rows.len().saturating_sub(LISTED), top);
    if left_out > 0 {
        text(svg, (26, y), "", &format!("the first {} are not listed", counted(left_out as u64, "term")));
        y += LINE;
    }
    for row in rows.iter().skip(left_out) {
        let from = row.past.from_ms.map_or_else(|| "?".to_owned(), date);
        let on = if row.is_open { ", and nobody has claimed yet" } else { "" };
        let gap = row.gap.map_or_else(String::new, |gap| format!("; nobody led for {}{on}", unled_for(gap)));
        rect(svg, class(row), (10, y - 9), (10, 10), "");
        text(svg, (26, y), "", &format!("{from}  {}{gap}", words(row, now_ms)));
        y += LINE;
    }
}

/// The colour for the end of a term.
fn class(row: &Row<'_>) -> &'static str {
    match row.end {
        TermEnd::Open => "led",
        TermEnd::Overlapped { .. } => "ended",
        TermEnd::Released { how, .. } if !was_killed(how) => "ended",
        TermEnd::Released { .. } | TermEnd::Silent | TermEnd::Unknown => "lost",
    }
}

/// Whether the job was killed because of its lease, its guard or `neli-run`.
fn was_killed(how: &HowReleased) -> bool {
    matches!(how.why.as_deref(), Some("fenced" | "guard-died" | "supervisor-died"))
}

/// A term in words.
fn words(row: &Row<'_>, now_ms: u64) -> String {
    let led_for = row.led(now_ms).map_or_else(String::new, |led| format!(", {led}"));
    format!("term {}: {}{led_for}: {}", row.past.term, row.past.shown(), row.how())
}

/// The time of an axis in words.
fn span(axis: &Range<u64>) -> String {
    format!("from {} to {}", date(axis.start), date(axis.end))
}

/// The position of a time on an axis, which is not empty.
fn at(axis: &Range<u64>, ms: u64) -> u64 {
    let room = u128::from(WIDTH - LEFT - RIGHT);
    let along = u128::from(ms.clamp(axis.start, axis.end) - axis.start) * room / u128::from(axis.end - axis.start);
    LEFT + u64::try_from(along).unwrap_or_default()
}

fn bar(svg: &mut String, axis: &Range<u64>, row: &Row<'_>, y: u64, now_ms: u64) {
    let (from, width) = term_at(axis, row, now_ms);
    rect(svg, class(row), (from, y), (width, 20), &words(row, now_ms));
    if class(row) == "lost" {
        text(svg, (from + width, y + 15), " fill=\"#b3402a\"", "\u{2715}");
    }
    if width > 40 {
        text(svg, (from + 4, y + 15), " fill=\"#fff\"", &row.past.term.to_string());
    }
}

/// Where the bar of a term begins, and its width, as of a time.
fn term_at(axis: &Range<u64>, row: &Row<'_>, now_ms: u64) -> (u64, u64) {
    let from = at(axis, row.past.from_ms.unwrap_or(axis.start));
    let end_ms = row.to_ms.or(row.past.last_record_ms).filter(|_| *row.end != TermEnd::Open);
    let to = at(axis, end_ms.unwrap_or(now_ms));
    (from, to.saturating_sub(from).max(2))
}

/// A time without a leader: from the end of the lease on for certain, and perhaps since the leader's last record. Each with where it begins, and
/// its width.
fn gaps_at(axis: &Range<u64>, row: &Row<'_>, to_ms: Option<u64>) -> Vec<(&'static str, u64, u64)> {
    let times = (row.gap, row.to_ms, row.past.lease_over_ms(), to_ms);
    let (Some(_), Some(led_until), Some(over), Some(to_ms)) = times else { return Vec::new() };
    let parts = [("doubt", led_until, over.min(to_ms)), ("gap", over, to_ms)];
    let placed = parts.into_iter().filter(|(_, from_ms, to_ms)| from_ms < to_ms).map(|(class, from_ms, to_ms)| {
        let (from, to) = (at(axis, from_ms), at(axis, to_ms));
        (class, from, to.saturating_sub(from).max(1))
    });
    placed.collect()
}

fn ticks(svg: &mut String, axis: &Range<u64>, bottom: u64) {
    // The labels have whole seconds: in a shorter time they would be the same.
    let steps = TICKS.min((axis.end - axis.start) / 1_000);
    for tick in 0..=steps {
        let ms = axis.start + (axis.end - axis.start) / steps.max(1) * tick;
        let x = at(axis, ms);
        let end = bottom + 4;
        let _ = writeln!(svg, "<line class=\"axis\" x1=\"{x}\" y1=\"{TOP}\" x2=\"{x}\" y2=\"{end}\"/>");
        text(svg, (x, bottom + 18), " text-anchor=\"middle\"", &date(ms));
    }
}

/// A rectangle with a tooltip, unless that is empty.
fn rect(svg: &mut String, class: &str, (x, y): (u64, u64), (width, height): (u64, u64), title: &str) {
    let title = if title.is_empty() { String::new() } else { format!("<title>{}</title>", html(title)) };
    let _ = writeln!(
        svg,
        "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\">{title}</rect>"
    );
}

/// A text with these attributes, which begin with a space.
fn text(svg: &mut String, (x, y): (u64, u64), attributes: &str, text: &str) {
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\"{attributes}>{}</text>", html(text));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use neli_proto::observer::{PastLeader, PastTerm};

    use super::*;

    fn of(count: i64) -> String {
        let terms: Vec<PastTerm> = (0..count)
            .map(|term| PastTerm {
                term,
                leader: Arc::new(PastLeader { member: None, name: Some("<a>".into()) }),
                lease: Duration::from_secs(20),
                from_ms: Some(1_000 * term.unsigned_abs()),
                last_record_ms: None,
                end: if term + 1 == count {
                    TermEnd::Open
                } else {
                    TermEnd::Overlapped { claimed_ms: None, how: None }
                },
            })
            .collect();
        let rows: Vec<Row<'_>> = terms
            .iter()
            .map(|past| Row {
                past,
                to_ms: past.from_ms.map(|from_ms| from_ms + 500),
                end: &past.end,
                late: None,
                gap: None,
                is_open: false,
            })
            .collect();
        strip(&rows, 0..1_000 * count.unsigned_abs())
    }

    #[test]
    fn a_strip_names_its_terms_unless_they_are_too_many() {
        let few = of(40);
        assert_eq!((few.matches("<rect ").count(), few.matches("<path ").count()), (40, 0), "{few}");
        assert!(few.contains("<title>term 7: &lt;a&gt;, from "), "{few}");
        let many = of(200);
        assert_eq!((many.matches("<rect ").count(), many.matches("<path ").count()), (0, 2), "{many}");
        assert!(many.contains("<path class=\"led\" d=\"M921 60h4v26h-4z\"><title>200 terms</title></path>"), "{many}");
        assert!(many.len() < 5_000, "{}", many.len());
    }
}
