use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use super::CLOCKS_DIFFER;
use super::*;
use crate::journal::Origin;
use crate::leadership::{Request, Unknown};
use crate::record::{JobState, What};

mod doubt;
mod failed;
mod history;
mod late_beats;
mod many_roles;
mod waits;

/// When the reading begins; the broker's clock and this machine's agree.
const AT: ReadAt = ReadAt { now: Time::from_nanos(1_000_000_000_000), wall_ms: 1_769_860_800_000 };

/// The time this many milliseconds after the beginning.
pub(super) fn later(ms: u64) -> ReadAt {
    ReadAt { now: AT.now + Duration::from_millis(ms), wall_ms: AT.wall_ms + ms }
}

pub(super) fn observer() -> Observer {
    Observer::new(Journal::read_from(0, Origin::Beginning))
}

/// An election of which nothing was read.
pub(super) fn election(journal: Journal) -> Election {
    Election::new(&Place { partition: 0, group: "g".into(), role: "0".into() }, journal, 0, 0)
}

/// Reads a line when it is appended, this many milliseconds after the beginning.
pub(super) fn read(observer: &mut Observer, offset: Offset, ms: u64, line: &str) -> Vec<Change> {
    read_late(observer, offset, later(ms), ms, line)
}

/// Reads a line at another time than that of its appending.
pub(super) fn read_late(observer: &mut Observer, offset: Offset, at: ReadAt, ms: u64, line: &str) -> Vec<Change> {
    observer.read(at, offset, Record::parse(line.as_bytes()).as_ref(), Some(AT.wall_ms + ms)).1
}

pub(super) fn hello(observer: &mut Observer, offset: Offset, ms: u64, name: &str) {
    let line = format!(
        r#"{{"v":1,"kind":"hello","member":"{name}","name":"{name}","seq":0,"host":"h","pid":7,"version":"0.1.0","elector":"log"}}"#
    );
    read_hello(observer, later(ms), offset, &line, Some(AT.wall_ms + ms));
}

/// Reads the hello of a candidate of one role.
pub(super) fn read_hello(observer: &mut Observer, at: ReadAt, offset: Offset, line: &str, written_ms: Option<u64>) {
    let hello = Arc::new(Hello::parse(line.as_bytes()).expect("a hello"));
    observer.read_other(at.now, offset);
    observer.hello_received(at, &hello, hello.leaves, written_ms);
}

pub(super) fn claim(member: &str, after: Offset) -> String {
    format!(r#"{{"v":1,"kind":"claim","member":"{member}","name":"{member}","seq":1,"after":{after},"lease_ms":5000}}"#)
}

pub(super) fn beat(member: &str, term: Offset, state: &str) -> String {
    format!(
        r#"{{"v":1,"kind":"beat","member":"{member}","name":"{member}","seq":2,"term":{term},"seen":{term},"lease_ms":5000,"state":"{state}","pid":7,"attempt":1,"since_ms":40}}"#
    )
}

pub(super) fn release(member: &str, term: Offset, why: &str, exit: &str) -> String {
    format!(
        r#"{{"v":1,"kind":"release","member":"{member}","name":"{member}","seq":9,"term":{term},"seen":{term},"why":"{why}","exit":{exit}}}"#
    )
}

#[test]
fn a_leader_is_silent_after_three_heartbeats_and_leads_no_more_after_its_lease() {
    let mut observer = observer();
    assert_eq!(observer.leadership(AT), Leadership::NeverLed);
    assert_eq!(read(&mut observer, 0, 0, &claim("m", -1)), [Change::Led]);
    read(&mut observer, 1, 1_000, &beat("m", 0, "running"));
    observer.caught_up();
    let Leadership::Led { leader, age, left } = observer.leadership(later(1_400)) else { panic!("led") };
    assert_eq!((leader.shown(), leader.term, leader.claimed_ms), ("m", 0, Some(AT.wall_ms)));
    assert_eq!((age.as_millis(), left.as_millis()), (400, 4_600));
    assert_eq!(leader.job.map(|job| (job.state, job.pid, job.since_ms)), Some((JobState::Running, Some(7), Some(40))));
    // Three heartbeats, and the time that one needs to be read.
    assert_eq!(observer.silent_at(later(1_400)), Some(later(1_000 + 3_200).now));
    assert!(matches!(observer.leadership(later(4_199)), Leadership::Led { .. }));
    let Leadership::Overdue { age, left, claimable_in, .. } = observer.leadership(later(4_200)) else {
        panic!("silent")
    };
    assert_eq!((age.as_millis(), left.as_millis(), claimable_in.as_millis()), (3_200, 1_800, 1_860));
    // R2: a lease, a hundredth of it and 10 ms.
    assert_eq!(observer.silent_at(later(4_200)), Some(later(1_000 + 5_060).now));
    assert!(matches!(observer.leadership(later(6_059)), Leadership::Overdue { .. }));
    assert!(matches!(observer.leadership(later(6_060)), Leadership::Silent { .. }));
    let Leadership::Silent { leader, age, claimable_since, .. } = observer.leadership(later(109_000)) else {
        panic!("silent")
    };
    assert_eq!((leader.shown(), age.as_millis(), claimable_since.as_millis()), ("m", 108_000, 108_000 - 5_060));
    assert_eq!(observer.silent_at(later(109_000)), None);
}

#[test]
fn a_heartbeat_ends_the_silence_of_a_leader_that_missed_some() {
    let mut observer = observer();
    observer.caught_up();
    read(&mut observer, 0, 0, &claim("m", -1));
    read(&mut observer, 1, 100, &beat("m", 0, "running"));
    assert_eq!(read(&mut observer, 2, 3_299, &beat("m", 0, "running")), []);
    let mut short = observer.clone();
    // It has sent a heartbeat in 3.2 s once, so that three may take longer than its lease of 5 s.
    assert_eq!(short.silent_at(later(3_299)), Some(later(3_299 + 5_060).now));
    assert_eq!(read(&mut short, 3, 4_299, &beat("m", 0, "running")), []);
    let silent = Duration::from_millis(3_200);
    assert_eq!(read(&mut short, 4, 7_499, &beat("m", 0, "running")), [Change::SilenceEnded { silent }]);
}

#[test]
fn a_late_reading_takes_the_age_from_the_timestamp() {
    let mut observer = observer();
    read_late(&mut observer, 0, later(108_000), 0, &claim("m", -1));
    observer.caught_up();
    let Leadership::Silent { leader, age, .. } = observer.leadership(later(108_000)) else { panic!("silent") };
    assert_eq!((leader.last_record.is_aged_by_timestamp(), age.as_secs()), (true, 108));
    let changes = read_late(&mut observer, 1, later(108_000), 108_000, &beat("m", 0, "running"));
    assert!(matches!(changes.as_slice(), [Change::LateBeat { gap }, Change::Job(_)] if gap.as_secs() == 108));
    // The age of a record that is read live is the time since the reading.
    read_late(&mut observer, 2, later(109_000), 109_000, &claim("n", 1));
    let Leadership::Led { leader, age, .. } = observer.leadership(later(110_000)) else { panic!("led") };
    assert_eq!((leader.last_record.is_aged_by_timestamp(), age.as_secs()), (false, 1));
}

/// A machine whose clock is two minutes ahead must not take a living leader for a dead one.
#[test]
fn timestamps_do_not_count_before_a_record_is_read_live() {
    let fast = |ms: u64| ReadAt { now: later(ms).now, wall_ms: later(ms + 120_000).wall_ms };
    let mut observer = observer();
    read_late(&mut observer, 0, fast(5_000), 0, &claim("m", -1));
    read_late(&mut observer, 1, fast(5_000), 4_000, &beat("m", 0, "running"));
    hello(&mut observer, 2, 4_500, "other");
    observer.caught_up();
    assert!(matches!(observer.leadership(fast(5_000)), Leadership::Silent { .. }));
    assert_eq!(observer.standbys(fast(5_000)).len(), 0);
    // Two of its heartbeats take two seconds at most.
    assert_eq!(observer.doubts_timestamps(fast(5_000)), Some(Duration::from_millis(2_200)));
    read_late(&mut observer, 3, fast(5_010), 5_005, &beat("m", 0, "running"));
    assert!(matches!(observer.leadership(fast(5_010)), Leadership::Led { .. }));
    assert_eq!(observer.doubts_timestamps(fast(5_010)), None);
    let standbys = observer.standbys(fast(5_010));
    assert_eq!(standbys.iter().map(|standby| standby.age.as_millis()).collect::<Vec<_>>(), [510]);
}

/// With a clock that is behind, every record seems new, also the last record of a dead leader.
#[test]
fn timestamps_of_the_future_do_not_count() {
    let mut observer = observer();
    read_late(&mut observer, 0, later(0), 1_500, &claim("m", -1));
    observer.caught_up();
    assert!(matches!(observer.leadership(AT), Leadership::Led { .. }));
    assert!(observer.doubts_timestamps(AT).is_some());
    assert!(matches!(observer.leadership(later(2_199)), Leadership::Led { .. }));
    assert!(observer.doubts_timestamps(later(2_199)).is_some(), "also once this machine's clock has passed it");
    for ms in [2_200, 5_059] {
        assert!(matches!(observer.leadership(later(ms)), Leadership::Unknown(Unknown::Unheard { .. })), "{ms} ms");
    }
    assert!(matches!(observer.leadership(later(5_060)), Leadership::Silent { .. }), "it was read a lease ago");
    read_late(&mut observer, 1, later(5_070), 6_400, &beat("m", 0, "running"));
    assert!(matches!(observer.leadership(later(8_000)), Leadership::Led { .. }), "that was read live");
}

#[test]
fn a_timestamp_of_the_future_counts_within_the_tolerance() {
    let ahead = u64::try_from(CLOCKS_DIFFER.as_millis()).expect("a short time");
    for (ahead, is_doubted) in [(ahead, false), (ahead + 1, true)] {
        let mut observer = observer();
        read_late(&mut observer, 0, AT, ahead, &claim("m", -1));
        assert_eq!(observer.doubts_timestamps(AT).is_some(), is_doubted, "{ahead} ms");
    }
}

/// With a short lease, the leader sends three beats per lease.
#[test]
fn a_leader_with_a_short_lease_is_listened_to_for_two_of_its_heartbeats() {
    let mut observer = observer();
    read_late(&mut observer, 0, later(9_000), 0, &claim("m", -1).replace("5000", "300"));
    assert_eq!(observer.doubts_timestamps(later(9_000)), Some(Duration::from_millis(2 * 100 + 200)));
}

/// `--heartbeat-interval` may be longer than the default, as far as the lease allows.
#[test]
fn a_leader_with_a_long_interval_is_listened_to_for_two_of_its_heartbeats() {
    let listened_to = |intervals: &[u64]| {
        let (mut observer, mut ms) = (observer(), 0);
        let of_a_lease_of_21_s = |line: String| line.replace("5000", "21000");
        read_late(&mut observer, 0, later(60_000), ms, &of_a_lease_of_21_s(claim("m", -1)));
        for (offset, interval) in (1..).zip(intervals) {
            ms += interval;
            read_late(&mut observer, offset, later(60_000), ms, &of_a_lease_of_21_s(beat("m", 0, "running")));
        }
        observer.doubts_timestamps(later(60_000)).unwrap().as_millis()
    };
    assert_eq!(listened_to(&[0, 5_000]), 2 * 5_000 + 200);
    assert_eq!(listened_to(&[0, 15_000]), 2 * 7_000 + 200, "no interval is longer than a third of the lease");
    assert_eq!([listened_to(&[0]), listened_to(&[0, 100])], [2 * 1_000 + 200; 2]);
}

#[test]
fn standbys_are_known_by_hellos_of_the_last_75_s() {
    let mut observer = observer();
    for (offset, (ms, name)) in (0..).zip([(0, "old"), (60_000, "b"), (70_000, "a"), (70_000, "m")]) {
        hello(&mut observer, offset, ms, name);
    }
    read(&mut observer, 4, 75_000, &claim("m", 3));
    observer.caught_up();
    let names: Vec<&str> = observer.standbys(later(75_000)).iter().map(|standby| standby.candidate.shown()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(observer.leaders_hello().and_then(|known| known.hello.elector.as_deref()), Some("log"));
    // A candidate that has released is gone, unless it sends another hello.
    read(&mut observer, 5, 76_000, &release("m", 4, "exited", "3"));
    assert_eq!(observer.standbys(later(76_000)).len(), 2);
    hello(&mut observer, 6, 77_000, "m");
    let standbys = observer.standbys(later(77_000));
    let failed: Vec<(&str, u32, u128)> = standbys
        .iter()
        .map(|standby| (standby.candidate.shown(), standby.failed_runs, standby.back_off().as_millis()))
        .collect();
    assert_eq!(failed, [("a", 0, 0), ("b", 0, 0), ("m", 1, 500)]);
}

#[test]
fn a_release_shows_its_writer_its_reason_and_its_time() {
    let mut observer = observer();
    read(&mut observer, 0, 0, &claim("m", -1));
    let changes = read(&mut observer, 1, 1_000, &release("m", 0, "exited", "3"));
    let Leadership::Released { release: seen, age } = observer.leadership(later(1_000 + 12_000)) else {
        panic!("released")
    };
    assert_eq!((seen.shown(), seen.term, seen.how.why.as_deref(), seen.how.exit), ("m", 0, Some("exited"), Some(3)));
    assert_eq!((age.as_secs(), seen.received.at_ms(AT)), (12, AT.wall_ms + 1_000));
    assert_eq!(changes, [Change::Released(seen.clone())]);
    // A second release, or a void claim of another candidate, changes nothing; the void claim is reported.
    assert_eq!(read(&mut observer, 2, 1_100, &release("m", 0, "exited", "3")), []);
    assert_eq!(read(&mut observer, 3, 1_200, &claim("n", 0)), []);
    assert!(matches!(observer.leadership(later(2_000)), Leadership::Released { .. }));
    assert_eq!(observer.void_claims(), 1);
    assert_eq!(read(&mut observer, 4, 1_300, &claim("n", 3)), [Change::Led]);
    assert_eq!((observer.void_claims(), observer.leader().map(Leader::shown)), (0, Some("n")));
}

/// The view that draws a page each second does not look between the end of a silence and the claim.
#[test]
fn a_claim_that_ends_a_silence_says_so_when_it_is_read_live() {
    // After a restart of the broker a record comes late. Another broker's clock may be behind.
    for (read_ms, written_ms, silent_ms) in [(5_061, 5_061, 5_061), (7_061, 5_061, 5_061), (5_061, 2_000, 5_060)] {
        let mut observer = observer();
        observer.caught_up();
        read(&mut observer, 0, 0, &claim("m", -1));
        let changes = read_late(&mut observer, 1, later(read_ms), written_ms, &claim("n", 0));
        let [Change::FellSilent(silence), Change::Led] = changes.as_slice() else { panic!("{changes:?}") };
        assert_eq!((&*silence.name, silence.silent.as_millis()), ("m", silent_ms));
        assert_eq!(silence.since_ms, AT.wall_ms + written_ms.min(5_060));
        read(&mut observer, 2, 7_100, &release("n", 1, "stopped", "0"));
        assert_eq!(read(&mut observer, 3, 7_200, &claim("m", 2)), [Change::Led], "the release says why");
    }
}

/// Who ended it, and why: the leader's release names only the writer.
#[test]
fn a_release_at_an_operators_request_names_the_operator_and_the_reason() {
    let request = |what: &str, term: &str| {
        format!(
            r#"{{"v":1,"kind":"request","member":null,"name":"ann@db1","seq":null,"what":"{what}","term":{term},"by":null,"reason":"moving"}}"#
        )
    };
    let ann = Request { by: Some("ann@db1".into()), reason: Some("moving".into()) };
    for (what, term, why, is_expected) in
        [("end", "null", "ended", true), ("resign", "0", "resigned", true), ("end", "null", "stopped", false)]
    {
        let mut observer = observer();
        read(&mut observer, 0, 0, &claim("m", -1));
        read(&mut observer, 1, 10, &request(what, term));
        // Of two that ask a leader to resign it obeys the first.
        let second = if what == "resign" { "bob" } else { "ann" };
        read(&mut observer, 2, 11, &request(what, term).replace("ann", second));
        read(&mut observer, 3, 20, &release("m", 0, why, "0"));
        let Leadership::Released { release, .. } = observer.leadership(later(20)) else { panic!("released") };
        assert_eq!(release.how.request.as_ref(), is_expected.then_some(&ann), "{why}");
        assert_eq!(observer.ended().map(|(request, _)| request), (what == "end").then_some(&ann));
        read(&mut observer, 4, 30, &claim("n", 3));
        assert_eq!(observer.ended(), None, "a candidate that started later leads");
    }
    let mut nobody = observer();
    read(&mut nobody, 0, 0, &request("end", "null"));
    assert_eq!(nobody.ended().map(|(request, _)| request), Some(&ann), "the standbys exit");
}

#[test]
fn a_request_to_resign_belongs_to_the_term() {
    let mut observer = observer();
    read(&mut observer, 0, 0, &claim("m", -1));
    let request = r#"{"v":1,"kind":"request","member":null,"name":"ann@db1","seq":null,"what":"resign","term":0,"by":null,"reason":"patching"}"#;
    let requested = Change::Requested {
        what: What::Resign,
        by: Some("ann@db1".into()),
        reason: Some("patching".into()),
        successor: None,
    };
    assert_eq!(read(&mut observer, 1, 10, request), [requested]);
    // The leader stands down because of the first.
    let second = request.replace("ann", "bob").replace("patching", "moving");
    assert_eq!(read(&mut observer, 2, 11, &second).len(), 1);
    let resign = observer.leader().and_then(|leader| leader.resign.clone()).expect("asked");
    assert_eq!((resign.by.as_deref(), resign.reason.as_deref()), (Some("ann@db1"), Some("patching")));
    read(&mut observer, 3, 20, &release("m", 0, "resigned", "null"));
    read(&mut observer, 4, 30, &claim("n", 3));
    assert_eq!(observer.leader().and_then(|leader| leader.resign.clone()), None);
}

#[test]
fn a_reading_from_the_middle_is_undecided_before_a_record_of_the_leader() {
    let mut observer = Observer::new(Journal::read_from(50, Origin::Middle));
    assert_eq!(observer.leadership(AT), Leadership::Unknown(Unknown::Missing));
    let changes = read(&mut observer, 50, 0, &beat("m", 7, "running").replace("\"seen\":7", "\"seen\":49"));
    assert!(matches!(changes.as_slice(), [Change::Led, Change::Job(_)]), "{changes:?}");
    assert_eq!(observer.leader().map(|leader| (leader.term, leader.claimed_ms)), Some((7, None)));
    observer.learn_claim(6, Some(1));
    observer.learn_claim(7, Some(2));
    assert_eq!(observer.leader().and_then(|leader| leader.claimed_ms), Some(2));
    let observer = Observer::new(Journal::read_from(50, Origin::CutHead));
    assert_eq!(observer.leadership(AT), Leadership::Forgotten);
}

/// Otherwise `resign` would count the dead leader as a standby, and find no other one.
#[test]
fn a_leader_that_was_replaced_after_a_silence_stands_by_only_after_another_hello() {
    let names = |observer: &Observer, ms| {
        let standbys = observer.standbys(later(ms));
        standbys.iter().map(|standby| standby.candidate.shown().to_owned()).collect::<Vec<_>>()
    };
    let mut observer = observer();
    hello(&mut observer, 0, 0, "d1");
    read(&mut observer, 1, 0, &claim("d1", 0));
    hello(&mut observer, 2, 0, "d2");
    read(&mut observer, 3, 4_000, &beat("d1", 1, "running"));
    // It sent the hello during its lease, and no record shows that it has died since.
    hello(&mut observer, 4, 4_500, "d1");
    read(&mut observer, 5, 9_100, &claim("d2", 3));
    assert_eq!(names(&observer, 9_100), [""; 0]);
    hello(&mut observer, 6, 20_000, "d1");
    assert_eq!(names(&observer, 20_000), ["d1"]);
}

/// `--overlap`: whether it leaves is not known before it says hello again.
#[test]
fn a_leader_that_is_overlapped_stands_by_only_after_another_hello() {
    let mut observer = observer();
    let marked = |line: String, more: &str| line.replace("\"lease_ms\"", &format!("{more},\"lease_ms\""));
    hello(&mut observer, 0, 0, "a");
    read(&mut observer, 1, 0, &marked(claim("a", 0), "\"overlap_ms\":900"));
    assert!(observer.leadership(later(1_000)).is_usual());
    read(&mut observer, 2, 1_000, &marked(beat("a", 1, "running"), "\"overlap_ms\":900,\"yields\":true"));
    assert!(!observer.leadership(later(1_000)).is_usual(), "it is to stop");
    read(&mut observer, 3, 1_100, &marked(claim("b", 2), "\"overlap_ms\":900,\"over\":1"));
    assert_eq!(observer.standbys(later(1_100)).len(), 0);
    hello(&mut observer, 4, 1_200, "a");
    assert_eq!(observer.standbys(later(1_200)).len(), 1, "it is alive");
    for (why, is_there_again) in [("stopped", false), ("resigned", true)] {
        let mut observer = observer.clone();
        read(&mut observer, 5, 1_900, &release("a", 1, why, "0"));
        assert_eq!(observer.standbys(later(1_900)).len(), 0, "{why}");
        hello(&mut observer, 6, 3_900, "a");
        assert_eq!(observer.standbys(later(3_900)).len(), usize::from(is_there_again), "{why}");
    }
}

/// A release that was sent twice: its writer leads again when the second one is appended.
#[test]
fn a_release_that_is_appended_twice_hides_no_leader() {
    let mut observer = observer();
    read(&mut observer, 0, 0, &claim("m", -1));
    read(&mut observer, 1, 10, &release("m", 0, "failed", "1"));
    hello(&mut observer, 2, 20, "m");
    read(&mut observer, 3, 30, &claim("m", 2));
    read(&mut observer, 4, 40, &release("m", 0, "failed", "1"));
    assert_eq!(observer.leaders_hello().map(KnownCandidate::shown), Some("m"));
}

#[test]
fn nonsense_changes_nothing() {
    let mut observer = observer();
    read(&mut observer, 0, 0, &claim("m", -1));
    assert_eq!(observer.read(later(1), 1, None, None), (Verdict::Nonsense, Vec::new()));
    observer.read_other(later(2).now, 2);
    observer.read_other(later(2).now, 3);
    observer.read_other(later(2).now, 1);
    assert_eq!(observer.journal().next(), 4);
    let name = "someone".to_owned();
    hello(&mut observer, 4, 3, &name);
    assert_eq!(observer.standbys(later(3)).len(), 1);
}

#[test]
fn missing_records_are_reported_once_and_the_leader_is_unknown() {
    let mut observer = observer();
    read(&mut observer, 0, 0, &claim("m", -1));
    assert_eq!(read(&mut observer, 5, 10, &beat("m", 0, "running")), [Change::Missing]);
    assert_eq!(observer.leadership(later(10)), Leadership::Unknown(Unknown::Missing));
    assert_eq!(read(&mut observer, 6, 20, &beat("m", 0, "running")), []);
}

#[test]
fn offsets_missing_below_an_answered_end_are_markers() {
    let mut journal = Journal::read_from(0, Origin::Beginning);
    journal.answered(later(5).now, later(4).now, 1);
    let mut observer = Observer::new(journal);
    read(&mut observer, 0, 6, &claim("m", -1));
    assert!(matches!(read(&mut observer, 5, 10, &beat("m", 0, "running")).as_slice(), [Change::Job(_)]));
}

#[test]
fn records_of_others_are_not_missing() {
    let mut observer = observer();
    read(&mut observer, 0, 0, &claim("m", -1));
    observer.read_others_up_to(later(5).now, 5);
    observer.read_others_up_to(later(5).now, 3);
    assert_eq!((observer.journal().next(), observer.journal().last()), (5, 4));
    assert!(matches!(read(&mut observer, 5, 10, &beat("m", 0, "running")).as_slice(), [Change::Job(_)]));
}

#[test]
fn a_hello_of_75_s_ago_is_forgotten_at_the_next() {
    let mut observer = observer();
    hello(&mut observer, 0, 0, "m");
    read(&mut observer, 1, 10, &claim("m", 0));
    hello(&mut observer, 2, 74_999, "n");
    assert!(observer.leaders_hello().is_some());
    hello(&mut observer, 3, 75_000, "n");
    assert!(observer.leaders_hello().is_none());
}

#[test]
fn a_run_that_succeeds_resets_the_failed_runs() {
    let mut observer = observer();
    let failed_runs = |observer: &mut Observer, claimed: Offset, ms: u64, (why, exit): (&str, &str)| {
        read(observer, claimed, ms, &claim("m", claimed - 1));
        read(observer, claimed + 1, ms, &release("m", claimed, why, exit));
        hello(observer, claimed + 2, ms, "m");
        observer.standbys(later(ms)).first().map(|standby| standby.failed_runs)
    };
    assert_eq!(failed_runs(&mut observer, 0, 10, ("exited", "3")), Some(1));
    assert_eq!(failed_runs(&mut observer, 3, 20, ("exited", "1")), Some(2));
    assert_eq!(failed_runs(&mut observer, 6, 30, ("unhealthy", "0")), Some(3), "it was asked to stop");
    assert_eq!(failed_runs(&mut observer, 9, 40, ("resigned", "1")), Some(3), "a run that was stopped shows nothing");
    assert_eq!(failed_runs(&mut observer, 12, 50, ("exited", "0")), Some(0));
}

/// With `--restart` the lead goes on. The candidate lets others claim first nevertheless, and nobody would see why.
#[test]
fn runs_that_fail_within_a_lead_are_failed_runs() {
    let mut observer = observer();
    let mut offset = 0;
    let mut failed_runs = |line: &str| {
        read(&mut observer, offset, 10, line);
        hello(&mut observer, offset + 1, 10, "m");
        offset += 2;
        observer.leaders_hello().map(|_| observer.failed_runs.get(&MemberId::from("m")).copied().unwrap_or_default())
    };
    let beat = |state: &str, attempt: u32, since_ms: u32| {
        let known = format!(r#""attempt":{attempt},"since_ms":{since_ms}"#);
        beat("m", 0, state).replace(r#""attempt":1,"since_ms":40"#, &known)
    };
    assert_eq!(failed_runs(&claim("m", -1)), Some(0));
    for (state, attempt, since_ms, failed) in [
        ("running", 1, 40, 0),
        ("restarting", 2, 40, 1),
        ("running", 2, 40, 1),
        ("running", 4, 40, 3),
        ("running", 4, 600_000, 0),
        ("restarting", 5, 40, 1),
        ("restarting", 1, 40, 0),
    ] {
        assert_eq!(failed_runs(&beat(state, attempt, since_ms)), Some(failed), "{state} {attempt} {since_ms}");
    }
}

/// A record that is only read late is no silence; a beat in time shows that there was none.
#[test]
fn a_leader_that_was_not_silent_ends_no_silence() {
    for (is_live, read_ms) in [(true, 1_000), (false, 109_000)] {
        let mut observer = observer();
        read(&mut observer, 0, 0, &claim("m", -1));
        if is_live {
            observer.caught_up();
        }
        let changes = read_late(&mut observer, 1, later(read_ms), 1_000, &beat("m", 0, "running"));
        assert!(matches!(changes.as_slice(), [Change::Job(_)]), "{changes:?}");
    }
}

#[test]
fn a_silence_that_is_over_when_it_is_read_is_reported() {
    let mut observer = observer();
    read_late(&mut observer, 0, later(109_000), 0, &claim("m", -1));
    let changes = read_late(&mut observer, 1, later(109_000), 30_000, &claim("n", 0));
    let [Change::FellSilent(silence), Change::Led] = changes.as_slice() else { panic!("{changes:?}") };
    assert_eq!((&*silence.name, silence.since_ms), ("m", AT.wall_ms + 5_060));
}

#[test]
fn a_silence_with_a_request_in_it_is_reported_once() {
    let mut observer = observer();
    read_late(&mut observer, 0, later(109_000), 0, &claim("m", -1));
    let end = r#"{"v":1,"kind":"request","member":null,"name":"ann@db1","seq":null,"what":"end","term":null}"#;
    let changes = read_late(&mut observer, 1, later(109_000), 20_000, end);
    assert!(matches!(changes.as_slice(), [Change::FellSilent(_), Change::Requested { .. }]), "{changes:?}");
    assert_eq!(read_late(&mut observer, 2, later(109_000), 30_000, &claim("n", 1)), [Change::Led]);
    let changes = read_late(&mut observer, 3, later(109_000), 60_000, &claim("o", 2));
    assert!(matches!(changes.as_slice(), [Change::FellSilent(_), Change::Led]), "{changes:?}");
}

#[test]
fn terms_hellos_and_missing_records_count_as_read() {
    let anything = |read_it: &dyn Fn(&mut Observer)| {
        let mut observer = observer();
        read_it(&mut observer);
        observer.has_read_anything()
    };
    assert!(!anything(&|_| {}));
    assert!(anything(&|observer| drop(read(observer, 0, 0, &claim("m", -1)))));
    assert!(anything(&|observer| hello(observer, 0, 0, "m")));
    assert!(anything(&|observer| drop(read(observer, 5, 0, &beat("m", 0, "running")))));
}

/// A leader also sends beats when its job's state changes, and when the job runs.
#[test]
fn two_records_close_together_do_not_shorten_the_wait() {
    let mut observer = observer();
    read_late(&mut observer, 0, later(9_000), 0, &claim("m", -1));
    read_late(&mut observer, 1, later(9_000), 30, &beat("m", 0, "running"));
    assert_eq!(observer.doubts_timestamps(later(9_000)), Some(Duration::from_millis(2 * 1_000 + 200)));
}

/// It is dead a week after the newest of its records and hellos, whichever was read last.
#[test]
fn an_election_is_dead_after_a_week_without_a_record() {
    const WEEK_MS: u64 = 7 * 24 * 3_600_000;
    let mut observer = observer();
    assert!(!observer.is_dead(later(2 * WEEK_MS)), "nothing was read of it");
    read(&mut observer, 0, 1_000, &claim("m", -1));
    hello(&mut observer, 1, 3_000, "n");
    read_late(&mut observer, 2, later(3_000), 2_000, &release("m", 0, "exited", "0"));
    assert!(!observer.is_dead(later(3_000 + WEEK_MS)));
    assert!(observer.is_dead(later(3_001 + WEEK_MS)));
    read(&mut observer, 3, 3_001 + WEEK_MS, "not a record");
    assert!(!observer.is_dead(later(3_001 + WEEK_MS)), "something was written under its key");
}

/// The clock of a machine that wrote one was wrong.
#[test]
fn an_election_that_is_read_on_is_alive_after_the_week_of_a_timestamp_in_the_future() {
    const WEEK_MS: u64 = 7 * 24 * 3_600_000;
    let mut observer = observer();
    observer.caught_up();
    read_late(&mut observer, 0, later(0), 2 * WEEK_MS, &claim("m", -1));
    read(&mut observer, 1, WEEK_MS, &beat("m", 0, "running"));
    assert!(!observer.is_dead(later(WEEK_MS + 1)));
    assert!(observer.is_dead(later(2 * WEEK_MS + 1)));
}

#[test]
fn elections_are_shown_by_group_then_by_the_number_of_the_role_in_whatever_partition() {
    let ordered = [("a", "0", 3), ("a", "2", 2), ("a", "10", 1), ("a", "bill", 2), ("a", "report", 0), ("b", "0", 0)];
    let place =
        |(group, role, partition): (&str, &str, i32)| Place { partition, group: group.into(), role: role.into() };
    assert!(ordered.map(place).is_sorted());
}
