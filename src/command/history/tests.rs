//! Tests of the table, the findings' words and the drawing.

use neli_proto::journal::{Journal, Origin};
use neli_proto::observer::Place;
use neli_proto::record::Record;
use neli_proto::time::Time;

use super::*;

const AT: ReadAt = ReadAt { now: Time::from_nanos(1_000_000_000_000), wall_ms: 1_769_860_800_000 };

/// An election of which nothing was read.
fn unread() -> Election {
    let place = Place { partition: 0, group: "g".into(), role: "0".into() };
    Election::new(&place, Journal::read_from(0, Origin::Beginning), 0, 0)
}

/// A history of two leaders that both stopped writing, the second one this many milliseconds ago.
fn died(ago_ms: u64) -> Election {
    let mut history = unread();
    let claim = |name: &str, after: i64| {
        format!(
            r#"{{"v":1,"kind":"claim","member":"{name}","name":"{name}","seq":1,"after":{after},"lease_ms":15000}}"#
        )
    };
    let last_ms = AT.wall_ms - ago_ms;
    for (offset, ms, line) in [(0, last_ms - 40_000, claim("d1", -1)), (1, last_ms, claim("d2", 0))] {
        history.judge(AT, offset, Record::parse(line.as_bytes()).as_ref(), Some(ms));
    }
    history
}

#[test]
fn a_death_is_shown_from_the_last_heartbeat_and_an_outage_up_to_now() {
    let history = died(108_000);
    let rows = rows(&history, AT, 0);
    let shown: Vec<(bool, String)> = rows.iter().map(|row| (row.is_open, row.how())).collect();
    let silent = "silent beyond its lease (15s); last heartbeat";
    let first = (false, format!("{silent} 40s before the next claim"));
    let second = (true, format!("{silent} 108s ago"));
    assert_eq!(shown, [first, second]);
    let table = table(&[("0".to_owned(), &rows, AT.wall_ms)], Style { is_coloured: false, columns: None });
    assert!(table.contains("  0ms or more  up to 40s  "), "{table}");
    assert!(table.contains("  0ms or more  up to 108s, and on  "), "{table}");
    let report = report(&rows, &history.findings(AT, 0), true, Style { is_coloured: false, columns: None });
    let gaps =
        "no leader for up to 40s after term 0\nno leader for up to 108s after term 1, and nobody has claimed yet\n";
    assert_eq!(report, format!("2 terms: no two overlapped\n{gaps}"));
}

/// The release of the first comes when the second leads.
#[test]
fn a_job_that_was_alive_when_another_led_is_shown_with_its_term() {
    let mut history = died(0);
    let late =
        r#"{"v":1,"kind":"release","member":"d1","name":"d1","seq":2,"term":0,"seen":0,"why":"fenced","late_ms":70}"#;
    history.judge(AT, 2, Record::parse(late.as_bytes()).as_ref(), Some(AT.wall_ms));
    let rows = rows(&history, AT, 0);
    let late = "; its job may have been alive until 70ms after the lease's end, and another led by then";
    let has_ended = rows.iter().map(|row| (row.how().ends_with(late), term_part(row, AT)["late_ms"].as_u64()));
    assert_eq!(has_ended.collect::<Vec<_>>(), [(true, Some(70)), (false, None)]);
}

/// The records between the two terms are missing, so the end of the first one is unknown.
#[test]
fn a_term_of_unknown_end_is_over_when_the_next_one_begins() {
    let mut history = died(0);
    let beat = |seen: i64| {
        format!(r#"{{"v":1,"kind":"beat","member":"d4","name":"d4","term":9,"seen":{seen},"lease_ms":15000}}"#)
    };
    for (offset, seen) in [(20, 9), (21, 20)] {
        history.judge(AT, offset, Record::parse(beat(seen).as_bytes()).as_ref(), Some(AT.wall_ms + 60_000));
    }
    let shown = |from_ms| rows(&history, AT, from_ms).iter().map(|row| row.past.term).collect::<Vec<_>>();
    assert_eq!(history.terms()[1].end, TermEnd::Unknown);
    assert_eq!(shown(AT.wall_ms + 60_000), [1, 9]);
    assert_eq!(shown(AT.wall_ms + 60_001), [9]);
}

/// The clock of a candidate that claims after the silence is behind that of the leader before it.
#[test]
fn clocks_of_candidates_that_differ_are_no_overlap() {
    let mut history = died(0);
    let claim = r#"{"v":1,"kind":"claim","member":"d3","name":"d3","seq":1,"after":1,"lease_ms":15000}"#;
    history.judge(AT, 2, Record::parse(claim.as_bytes()).as_ref(), Some(AT.wall_ms + 14_000));
    let (rows, findings) = (rows(&history, AT, 0), history.findings(AT, 0));
    let of = |clock| report(&rows, &findings, clock, Style { is_coloured: false, columns: None });
    assert!(of(true).starts_with("3 terms: two jobs may have run at once\noverlap: term 2 "));
    let doubtful = of(false);
    assert!(doubtful.starts_with("3 terms: can't tell whether two overlapped\n"), "{doubtful}");
    assert!(doubtful.contains("CreateTime"), "{doubtful}");
    let violates = |is_one_clock| findings.iter().any(|(finding, _)| is_violation(finding, is_one_clock));
    assert!(violates(true) && !violates(false));
}

#[test]
fn a_drawing_of_the_last_minutes_begins_there_and_describes_the_terms_in_words() {
    let history = died(108_000);
    let from_ms = AT.wall_ms - 100_000;
    let rows = rows(&history, AT, from_ms);
    let drawn = draw("g", &rows, from_ms..AT.wall_ms);
    assert!(drawn.contains(&format!("from {} to {}", date(from_ms), date(AT.wall_ms))), "{drawn}");
    let line = "term 1: d2, 0ms or more: silent beyond its lease (15s); last heartbeat 108s ago; nobody led for up to 108s, and nobody has \
                claimed yet";
    assert!(drawn.contains(&format!("{line}</text>")), "{drawn}");
    // The silence up to the lease's end, and the time after that; the legend has one of each.
    for class in ["doubt", "gap"] {
        assert_eq!(drawn.matches(&format!("class=\"{class}\"")).count(), 2, "{class}: {drawn}");
    }
}

/// Its job was killed, and did not end in order.
#[test]
fn a_term_whose_leader_died_is_drawn_as_lost() {
    for (why, is_lost) in [("supervisor-died", true), ("fenced", true), ("stopped", false)] {
        let mut history = unread();
        let claim = r#"{"v":1,"kind":"claim","member":"d1","name":"d1","seq":1,"after":-1,"lease_ms":15000}"#;
        let release = format!(
            r#"{{"v":1,"kind":"release","member":"d1","name":"d1","seq":2,"term":0,"seen":0,"why":"{why}","exit":null}}"#
        );
        for (offset, line) in [(0, claim), (1, release.as_str())] {
            let ms = AT.wall_ms - 60_000 + u64::try_from(offset).unwrap() * 30_000;
            history.judge(AT, offset, Record::parse(line.as_bytes()).as_ref(), Some(ms));
        }
        let drawn = draw("g", &rows(&history, AT, 0), 0..AT.wall_ms);
        // The legend has one of each.
        assert_eq!(drawn.matches("class=\"lost\"").count(), if is_lost { 3 } else { 1 }, "{why}: {drawn}");
    }
}

#[test]
fn a_drawing_without_terms_explains_that_and_marks_the_time_span() {
    let (from_ms, to_ms) = (AT.wall_ms - 3_600_000, AT.wall_ms);
    let drawn = draw("g", &[], from_ms..to_ms);
    let span = format!("from {} to {}", date(from_ms), date(to_ms));
    assert!(drawn.contains(&format!(">no terms {span}</text>")), "{drawn}");
    assert!(drawn.contains(&format!(">{}</text>", date(from_ms + 1_800_000))), "the axis shows the time: {drawn}");
    assert!(!drawn.contains("class=\"gap\""), "no legend of what is not drawn: {drawn}");
    // Without --since there is no time span to mark.
    let drawn = draw("g", &[], 0..to_ms);
    assert!(drawn.contains(&format!(">no terms up to {}</text>", date(to_ms))), "{drawn}");
    assert!(!drawn.contains("class=\"axis\""), "an axis of no time: {drawn}");
}

#[test]
fn a_count_of_one_is_in_the_singular() {
    let one = Finding::NotEffective { claims: 1, words: 2, nonsense: 0 };
    let expected = "not effective: 1 claim that came too late, 2 records of leaders whose term was over";
    assert_eq!(sentence(&one, true), expected);
    assert_eq!(counted(1_u64, "term"), "1 term");
}

/// The leader of term 0 yields, and its successor's claim overlaps its term.
#[test]
fn terms_that_overlapped_as_they_were_asked_to_are_no_violation_and_are_named() {
    let mut history = unread();
    let claim =
        r#"{"v":1,"kind":"claim","member":"d1","name":"d1","seq":1,"after":-1,"lease_ms":15000,"overlap_ms":5000}"#;
    let beat = r#"{"v":1,"kind":"beat","member":"d1","name":"d1","seq":2,"term":0,"seen":0,"lease_ms":15000,"overlap_ms":5000,"yields":true}"#;
    let next = r#"{"v":1,"kind":"claim","member":"d2","name":"d2","seq":1,"after":1,"lease_ms":15000,"overlap_ms":5000,"over":0}"#;
    for (offset, ago_ms, line) in [(0, 3_000, claim), (1, 2_000, beat), (2, 1_000, next)] {
        history.judge(AT, offset, Record::parse(line.as_bytes()).as_ref(), Some(AT.wall_ms - ago_ms));
    }
    let overlapped = "another led while its job ran on (--overlap)";
    assert_eq!(rows(&history, AT, 0)[0].how(), overlapped);
    let release =
        r#"{"v":1,"kind":"release","member":"d1","name":"d1","seq":3,"term":0,"seen":2,"why":"resigned","exit":0}"#;
    history.judge(AT, 3, Record::parse(release.as_bytes()).as_ref(), Some(AT.wall_ms));
    let rows = rows(&history, AT, 0);
    assert_eq!(rows[0].how(), format!("{overlapped}: it was asked to stand down (the job's status: 0)"));
    let json = term_part(&rows[0], AT);
    assert_eq!((&json["end"], &json["why"], &json["exit"]), (&"overlapped".into(), &"resigned".into(), &0.into()));
    let report = report(&rows, &history.findings(AT, 0), true, Style { is_coloured: false, columns: None });
    assert_eq!(report, "2 terms: no two overlapped but by --overlap\n");
}

#[test]
fn a_leader_of_which_nothing_was_heard_since_a_heartbeat_of_the_future_is_unknown() {
    let mut history = unread();
    let claim = r#"{"v":1,"kind":"claim","member":"d1","name":"d1","seq":1,"after":-1,"lease_ms":15000}"#;
    history.judge(AT, 0, Record::parse(claim.as_bytes()).as_ref(), Some(AT.wall_ms + 60_000));
    let shown = |ms| {
        let at = ReadAt { now: AT.now + Duration::from_millis(ms), wall_ms: AT.wall_ms + ms };
        rows(&history, at, 0).iter().map(Row::how).collect::<String>()
    };
    assert_eq!(shown(2_100), "leads");
    assert_eq!(shown(3_000), "unknown: no heartbeat has come since one that lies in the future");
}
