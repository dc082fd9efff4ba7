//! The lines of `watch`, with a simulated clock.

use std::time::Duration;

use neli_proto::journal::{Journal, Origin};
use neli_proto::time::Time;
use serde_json::Value;

use super::*;

const NOW: Time = Time::from_nanos(1_000_000_000_000);
const AT: ReadAt = ReadAt { now: NOW, wall_ms: 1_769_860_800_123 };

/// An election that is read, and what is printed of it.
struct Fixture {
    printout: Printout,
    election: Election,
    is_live: bool,
}

impl Fixture {
    fn new(json: bool, partition: i32, first: Offset, since_ms: u64) -> Self {
        let (group, topic, role_name) = ("g".into(), "t".into(), Some("bill".into()));
        let election = ElectionId { group, topic, partition, role: 0, role_name };
        let read = Election::new(&in_topic(&election), Journal::read_from(0, Origin::Beginning), 0, 0);
        Self { printout: Printout::new(json, &election, false, first, since_ms), election: read, is_live: false }
    }

    fn read(&mut self, at: ReadAt, offset: Offset, value: Option<&[u8]>, written_ms: Option<u64>) {
        let (key, value) = (Some(Box::from(&b"g/bill"[..])), value.map(Box::from));
        let record = LogRecord { offset, key, value, written_ms, is_brokers_time: true };
        if let Some(judged) = self.election.read(at, &record) {
            self.printout.judged(at, self.election.observer(), &record, judged, self.is_live);
        }
    }

    fn hello(&mut self, offset: Offset, value: &[u8], written_ms: u64) {
        let (value, written_ms) = (Some(Box::from(value)), Some(written_ms));
        let record = LogRecord { offset, key: None, value, written_ms, is_brokers_time: true };
        self.printout.hello(AT, self.election.observer(), self.printout.place.partition, &record);
    }

    fn caught_up(&mut self, at: ReadAt) {
        self.election.caught_up();
        self.is_live = true;
        self.printout.caught_up(at, &mut self.election);
    }

    fn handle_timeout(&mut self, at: ReadAt) {
        self.printout.tell_silence(at, &mut self.election);
    }

    fn poll_timeout(&self, at: ReadAt) -> Option<Time> {
        self.election.silence_due(at)
    }

    fn take_lines(&mut self) -> Vec<String> {
        self.printout.take_lines()
    }
}

fn printout(json: bool, first: Offset) -> Fixture {
    Fixture::new(json, 2, first, 0)
}

fn read(printout: &mut Fixture, offset: Offset, record: &str) {
    printout.read(AT, offset, Some(record.as_bytes()), Some(1_769_860_800_123));
}

const CLAIM: &str = r#"{"v":1,"kind":"claim","member":"m","name":"web","seq":1,"after":-1,"lease_ms":5000}"#;

fn beat(state: &str, pid: u32) -> String {
    format!(
        r#"{{"v":1,"kind":"beat","member":"m","name":"web","seq":2,"term":0,"seen":0,"lease_ms":5000,"state":"{state}","pid":{pid},"attempt":1,"since_ms":1}}"#
    )
}

const RELEASE: &str =
    r#"{"v":1,"kind":"release","member":"m","name":"web","seq":9,"term":0,"seen":0,"why":"exited","exit":3}"#;

#[test]
fn json_shows_every_record_with_its_verdict() {
    let mut printout = printout(true, 0);
    read(&mut printout, 0, CLAIM);
    read(&mut printout, 1, "not json");
    read(&mut printout, 2, "{\"v\":9,\n\t\"new\":true}");
    printout.read(AT, 3, None, None);
    read(&mut printout, 4, RELEASE);
    let lines = printout.take_lines();
    let claim: Value = serde_json::from_str(CLAIM).unwrap();
    let (ts, first): (_, Value) = ("2026-01-31T12:00:00.123Z", serde_json::from_str(&lines[0]).unwrap());
    assert_eq!(
        first,
        serde_json::json!({
            "ts": ts, "role": "bill", "event": "record", "partition": 2, "offset": 0, "verdict": "effective", "term": 0, "record": claim, "silent": null
        })
    );
    let begin = format!(r#"{{"ts":"{ts}","role":"bill","event":"record","partition":2,"#);
    let lines: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix(&begin)).collect();
    assert_eq!(lines[1], r#""offset":1,"verdict":"nonsense","term":0,"record":null,"silent":null}"#);
    assert_eq!(lines[2], r#""offset":2,"verdict":"nonsense","term":0,"record":{"v":9,  "new":true},"silent":null}"#);
    assert_eq!(lines[3], r#""offset":3,"verdict":"nonsense","term":0,"record":null,"silent":null}"#);
    assert!(lines[4].starts_with(r#""offset":4,"verdict":"effective","term":null,"record":{"#), "{}", lines[4]);
    assert_eq!(lines.len(), 5);
}

#[test]
fn terms_before_the_requested_time_are_not_shown() {
    let mut printout = Fixture::new(false, 0, 0, AT.wall_ms);
    printout.read(AT, 0, Some(CLAIM.as_bytes()), Some(AT.wall_ms - 1));
    printout.read(AT, 1, Some(beat("running", 7).as_bytes()), Some(AT.wall_ms));
    let hello = br#"{"v":1,"kind":"hello","member":"m","name":"web","host":"h","version":"1","elector":"log"}"#;
    printout.hello(2, hello, AT.wall_ms - 1);
    printout.hello(3, hello, AT.wall_ms);
    let at = "2026-01-31T12:00:00.123Z";
    let expected =
        [format!("{at} web: the job runs, pid 7"), format!("{at} web says hello: on h, version 1, --elect log")];
    assert_eq!(printout.take_lines(), expected);
}

#[test]
fn a_release_tells_what_became_of_its_key() {
    for (release, told) in [
        (r#""why":"exited","exit":0,"once":"v1.42""#, "the job has ended (the job's status: 0); v1.42 has succeeded"),
        (
            r#""why":"failed","exit":3,"once":"v1.42""#,
            "the job has failed, and is to be tried again (the job's status: 3); v1.42 has failed",
        ),
        (
            r#""why":"skipped","exit":null,"once":"v1.42""#,
            "the key needs no run; v1.42 was done already (or a newer window was), or had failed with no retries left",
        ),
        (r#""why":"stopped","exit":0"#, "a signal to neli-run (the job's status: 0)"),
        (r#""why":"facts-unavailable","exit":null"#, "the outcomes of runs can't be read or written"),
    ] {
        let mut printout = printout(false, 1);
        read(&mut printout, 0, CLAIM);
        read(
            &mut printout,
            1,
            &format!(r#"{{"v":1,"kind":"release","member":"m","name":"web","seq":2,"term":0,"seen":0,{release}}}"#),
        );
        assert_eq!(
            printout.take_lines(),
            [format!("2026-01-31T12:00:00.123Z term 0 was released: {told}")],
            "{release}"
        );
    }
}

#[test]
fn changes_are_reported_as_sentences() {
    let mut printout = printout(false, 0);
    read(&mut printout, 0, CLAIM);
    read(&mut printout, 1, &beat("running", 7));
    read(&mut printout, 2, &beat("running", 7));
    read(&mut printout, 3, &beat("stopping", 7));
    read(&mut printout, 4, &beat("stopping", 7).replace(r#""pid":7"#, r#""pid":null"#));
    read(&mut printout, 5, RELEASE);
    read(&mut printout, 6, RELEASE);
    let at = "2026-01-31T12:00:00.123Z";
    assert_eq!(
        printout.take_lines(),
        [
            format!("{at} web leads, term 0"),
            format!("{at} web: the job runs, pid 7"),
            format!("{at} web: the job has been asked to stop, pid 7"),
            format!("{at} web: the job has ended: what it left is stopped, and its outcome recorded"),
            format!("{at} term 0 was released: the job has ended (the job's status: 3)"),
        ]
    );
}

/// An effective release shows that no other candidate led by then; one that is void because another leads shows that one did.
#[test]
fn a_job_that_outlived_its_lease_is_told_and_whether_another_led_by_then() {
    let at = "2026-01-31T12:00:00.123Z";
    let late = RELEASE.replace("\"exit\":3", "\"exit\":null,\"late_ms\":70").replace("exited", "fenced");
    let mut alone = printout(false, 1);
    read(&mut alone, 0, CLAIM);
    read(&mut alone, 1, &late);
    read(&mut alone, 2, &late);
    let alive = "its job may have been alive until 70ms after the lease's end";
    let released = format!("{at} term 0 was released: no heartbeat extended the lease; {alive}");
    assert_eq!(alone.take_lines(), [released]);
    let mut beside = printout(false, 2);
    read(&mut beside, 0, CLAIM);
    read(&mut beside, 1, &CLAIM.replace("\"m\"", "\"n\"").replace("-1", "0"));
    read(&mut beside, 2, &late);
    let told = "the job of term 0 may have been alive until 70ms after the lease's end, and another led by then";
    assert_eq!(beside.take_lines(), [format!("{at} {told}")]);
}

#[test]
fn earlier_records_are_known_and_not_shown() {
    let mut printout = printout(false, 2);
    read(&mut printout, 0, CLAIM);
    read(&mut printout, 1, &beat("running", 7));
    read(&mut printout, 2, &beat("running", 7));
    assert_eq!(printout.take_lines(), [""; 0]);
    printout.caught_up(AT);
    assert_eq!(printout.take_lines(), ["2026-01-31T12:00:00.123Z as of now: web leads, term 0: the job runs, pid 7"]);
}

/// The time after this many milliseconds.
fn later(ms: u64) -> ReadAt {
    ReadAt { now: NOW + Duration::from_millis(ms), wall_ms: AT.wall_ms + ms }
}

#[test]
fn a_leader_that_is_silent_for_longer_than_its_lease_no_longer_leads() {
    let mut printout = printout(false, 2);
    read(&mut printout, 0, CLAIM);
    read(&mut printout, 1, &beat("running", 7));
    printout.caught_up(later(1_000));
    printout.take_lines();
    assert_eq!(printout.poll_timeout(later(1_000)), Some(later(3_200).now));
    printout.handle_timeout(later(3_199));
    assert_eq!(printout.take_lines(), [""; 0]);
    printout.handle_timeout(later(3_200));
    let silent = "web has been silent for 3.2s (lease 5s): unless a heartbeat comes, another may claim in 1.8s";
    assert_eq!(printout.take_lines(), [format!("2026-01-31T12:00:03.323Z {silent}")]);
    assert_eq!(printout.poll_timeout(later(3_200)), Some(later(5_060).now));
    printout.handle_timeout(later(5_059));
    assert_eq!(printout.take_lines(), [""; 0]);
    printout.handle_timeout(later(5_060));
    let silent = "no leader: web has been silent for 5s (lease 5s)";
    assert_eq!(printout.take_lines(), [format!("2026-01-31T12:00:05.183Z {silent}")]);
    assert_eq!(printout.poll_timeout(later(5_060)), None);
    printout.read(later(7_123), 2, Some(beat("running", 7).as_bytes()), Some(0));
    assert_eq!(printout.take_lines(), ["2026-01-31T12:00:07.246Z web leads on, after 7.1s of silence"]);
    assert_eq!(printout.poll_timeout(later(7_123)), Some(later(7_123 + 3_200).now));
}

#[test]
fn a_leader_that_has_missed_three_heartbeats_has_a_line_in_json() {
    let mut printout = printout(true, 1);
    read(&mut printout, 0, CLAIM);
    printout.caught_up(later(1_000));
    printout.handle_timeout(later(3_200));
    let line = r#"{"ts":"2026-01-31T12:00:05.183Z","role":"bill","event":"overdue","partition":2,"offset":null,"verdict":null,"term":null,"record":null,"silent":{"name":"web","term":0,"lease_ms":5000,"for_ms":3200}}"#;
    assert_eq!(printout.take_lines(), [line]);
    printout.handle_timeout(later(5_060));
    assert_eq!(printout.take_lines(), [line.replace("overdue", "silent").replace("3200", "5060")]);
}

#[test]
fn a_leader_whose_lease_is_over_may_be_overdue_for_a_hundredth_more() {
    let mut printout = printout(true, 1);
    read(&mut printout, 0, CLAIM);
    printout.caught_up(later(0));
    for (ms, event) in [(5_059, "overdue"), (5_060, "silent")] {
        printout.handle_timeout(later(ms));
        let [line] = &printout.take_lines()[..] else { panic!("one line") };
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!((line["event"].as_str(), line["silent"]["for_ms"].as_u64()), (Some(event), Some(ms)), "{line}");
    }
}

#[test]
fn a_silence_that_another_s_claim_ends_is_reported_once() {
    let claim = CLAIM.replace("\"m\"", "\"n\"").replace("web", "db").replace("-1", "0");
    for is_told in [true, false] {
        let mut printout = printout(false, 1);
        read(&mut printout, 0, CLAIM);
        printout.caught_up(later(0));
        if is_told {
            printout.handle_timeout(later(5_060));
        }
        printout.read(later(5_061), 1, Some(claim.as_bytes()), Some(AT.wall_ms + 5_061));
        let lines = printout.take_lines();
        assert_eq!(lines.iter().filter(|line| line.contains("no leader: web ")).count(), 1, "{lines:?}");
        assert_eq!(lines.last().map(String::as_str), Some("2026-01-31T12:00:05.184Z db leads, term 1"));
    }
}

#[test]
fn a_release_names_the_operator_who_asked_for_it() {
    let mut printout = printout(false, 1);
    read(&mut printout, 0, CLAIM);
    let end = r#"{"v":1,"kind":"request","member":null,"name":"ann@db1","seq":null,"what":"end","term":null,"by":null,"reason":"moving"}"#;
    read(&mut printout, 1, end);
    read(&mut printout, 2, &RELEASE.replace("exited", "ended"));
    let at = "2026-01-31T12:00:00.123Z";
    let released = "term 0 was released: the election was ended by ann@db1: moving (the job's status: 3)";
    assert_eq!(
        printout.take_lines(),
        [format!("{at} ann@db1 has ended the election: moving"), format!("{at} {released}")]
    );
}

/// No record reports a silence. Without a line about it, scripts and readers would believe that the leader still leads.
#[test]
fn a_silence_has_a_line_in_json_too_even_if_it_ended_long_ago() {
    let records = |printout: &mut Fixture| {
        printout.read(later(60_000), 0, Some(CLAIM.as_bytes()), Some(AT.wall_ms));
        printout.read(later(60_000), 1, Some(beat("running", 7).as_bytes()), Some(AT.wall_ms + 30_000));
    };
    let mut json = printout(true, 0);
    records(&mut json);
    json.caught_up(later(60_000));
    let lines = json.take_lines();
    assert_eq!(lines.len(), 4, "{lines:?}");
    let silent = |ts: &str, ms: u32| {
        format!(
            r#"{{"ts":"{ts}","role":"bill","event":"silent","partition":2,"offset":null,"verdict":null,"term":null,"record":null,"silent":{{"name":"web","term":0,"lease_ms":5000,"for_ms":{ms}}}}}"#
        )
    };
    assert_eq!(lines[1], silent("2026-01-31T12:00:05.183Z", 30_000));
    assert_eq!(lines[3], silent("2026-01-31T12:00:35.183Z", 30_000));
    json.handle_timeout(later(61_000));
    assert_eq!(json.take_lines(), [""; 0], "told once");
    let mut text = printout(false, 0);
    records(&mut text);
    let lines = text.take_lines();
    assert_eq!(lines[1], "2026-01-31T12:00:05.183Z no leader: web was silent for 30s (lease 5s)");
    let late = "was heard after 30s of silence: its lease (5s) was over by then; it will release its term, or another will claim";
    assert_eq!(lines[2], format!("2026-01-31T12:00:30.123Z web {late}"));
    text.caught_up(later(31_000));
    let silent = "no leader: web was silent for 30s (lease 5s); a heartbeat that came after that extends no lease";
    assert_eq!(text.take_lines().last(), Some(&format!("2026-01-31T12:00:31.123Z as of now: {silent}")));
    text.read(later(32_000), 2, Some(beat("running", 7).as_bytes()), Some(AT.wall_ms + 32_000));
    assert_eq!(text.take_lines(), [""; 0], "however many beats were late");
}

#[test]
fn a_record_that_is_read_late_has_the_age_of_its_timestamp() {
    let mut printout = printout(false, 2);
    printout.read(later(108_700), 0, Some(CLAIM.as_bytes()), Some(AT.wall_ms));
    printout.caught_up(later(108_800));
    let silent = "as of now: no leader: web has been silent for 108s (lease 5s)";
    assert_eq!(printout.take_lines(), [format!("2026-01-31T12:01:48.923Z {silent}")]);
    assert_eq!(printout.poll_timeout(later(108_800)), None);
}

#[test]
fn a_record_read_twice_is_reported_once() {
    let mut printout = printout(true, 0);
    read(&mut printout, 0, CLAIM);
    read(&mut printout, 0, CLAIM);
    assert_eq!(printout.take_lines().len(), 1);
}

#[test]
fn a_time_may_lie_in_any_future() {
    let mut printout = printout(false, 0);
    printout.read(AT, 0, Some(CLAIM.as_bytes()), Some(u64::MAX));
    assert_eq!(printout.take_lines(), ["9999-12-31T23:59:59.999Z web leads, term 0"]);
}

#[test]
fn a_name_is_one_line() {
    let mut printout = printout(false, 0);
    read(&mut printout, 0, &CLAIM.replace("web", "a\\nb\\u001b[2J"));
    assert_eq!(printout.take_lines(), ["2026-01-31T12:00:00.123Z a\\nb\\u{1b}[2J leads, term 0"]);
}
