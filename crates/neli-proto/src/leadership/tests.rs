use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::*;
use crate::journal::{Journal, Origin};

const BEAT: &str = r#"{"v":1,"member":"m","seq":2,"kind":"beat","term":0,"seen":0,"lease_ms":5000}"#;

fn claim(after: i64, lease_ms: u64) -> String {
    format!(r#"{{"v":1,"member":"m","seq":1,"kind":"claim","after":{after},"lease_ms":{lease_ms}}}"#)
}

/// The leader after these records, each with the time at which it was appended.
fn leader_after(records: &[(u64, String)]) -> Leader {
    let (mut journal, mut last_term) = (Journal::read_from(0, Origin::Beginning), LastTerm::default());
    for (offset, (written_ms, line)) in (0..).zip(records) {
        let record = Record::parse(line.as_bytes()).expect("a record");
        let verdict = journal.read(Time::ZERO, offset, Some(&record));
        assert_eq!(verdict, Verdict::Effective, "{line}");
        let received =
            Receipt { read: Time::ZERO, written_ms: Some(*written_ms), is_brokers_time: true, is_live: false };
        last_term.read(journal.view(), offset, Some(&record), verdict, received);
    }
    last_term.leader.expect("a leader")
}

/// Whether the leader is shown as leading after heartbeats under a lease of 5 s, which were appended this many milliseconds after the
/// leader's claim.
fn leads_after(beats: &[u64]) -> bool {
    let began = 1_769_860_800_000;
    let beats = beats.iter().map(|ms| (began + ms, BEAT.into()));
    leader_after(&[(began, claim(-1, 5_000))].into_iter().chain(beats).collect::<Vec<_>>()).late().is_none()
}

#[test]
fn a_heartbeat_is_late_from_the_silence_on() {
    let silence = millis(silence(Duration::from_secs(5)));
    assert!(leads_after(&[silence - 1]));
    assert!(!leads_after(&[silence]));
}

#[test]
fn a_leader_is_not_shown_after_late_heartbeats() {
    assert!(leads_after(&[4_900]));
    assert!(!leads_after(&[5_100]));
    assert!(!leads_after(&[1_000, 9_000, 9_400]));
    assert!(!leads_after(&[9_000, 9_600, 10_400]), "however many were queued");
}

#[test]
fn a_leader_that_still_leads_is_shown_again() {
    let until = |last: u64| (9_000..last).step_by(1_000).chain([last]).collect::<Vec<u64>>();
    assert!(leads_after(&until(19_001)) && !leads_after(&until(19_000)), "two leases later");
}

/// After how many milliseconds without a record a leader with this lease is shown as silent. Of each of its heartbeats: when it was appended,
/// in milliseconds after the claim, and the process of the job.
fn overdue_after(lease_ms: u64, beats: &[(u64, u32)]) -> u64 {
    let beats = beats.iter().map(|(ms, pid)| {
        let beat = format!(
            r#"{{"v":1,"member":"m","seq":2,"kind":"beat","term":0,"seen":0,"lease_ms":{lease_ms},"state":"running","pid":{pid}}}"#
        );
        (1_000 + ms, beat)
    });
    millis(leader_after(&[(1_000, claim(-1, lease_ms))].into_iter().chain(beats).collect::<Vec<_>>()).overdue_after())
}

#[test]
fn a_leader_is_overdue_after_three_of_its_heartbeats() {
    let overdue = |beats: &[(u64, u32)]| overdue_after(20_000, beats);
    assert_eq!(overdue(&[]), 3_200, "those of the default, a second");
    assert_eq!(overdue(&[(4_000, 7)]), 3_200, "it may report that the job runs");
    assert_eq!(overdue(&[(100, 7), (5_100, 7)]), 15_200, "of 5 s");
    assert_eq!(overdue(&[(100, 7), (5_100, 7), (5_300, 8)]), 15_200, "another job");
    assert_eq!(overdue(&[(100, 7), (200, 7)]), 3_200, "no shorter than the default");
    assert_eq!(overdue(&[(100, 7), (15_100, 7)]), 20_199, "of the longest interval that the lease allows");
    assert_eq!(overdue(&[(100, 7), (15_100, 7), (16_100, 7)]), 3_200, "it was held up once");
    assert_eq!(overdue_after(300, &[]), millis(silence(Duration::from_millis(300))));
}

#[test]
fn another_term_has_no_late_heartbeat() {
    let late = [(1, claim(-1, 5_000)), (9_000, BEAT.into())];
    assert!(leader_after(&late).late().is_some());
    let [claimed, late] = late;
    assert_eq!(leader_after(&[claimed, late, (20_000, claim(1, 5_000))]).late(), None);
}
