//! Records of other programs: with any content, they do not affect the leader's job, and a new candidate ignores them.

use std::time::Duration;

use harness::candidate::{Elector, Running};
use harness::election::TestElection;
use harness::journal::Pen;
use harness::kafka::Kafka;
use harness::wait;
use nix::sys::signal::Signal;

use crate::election;

/// A leader while other records are written, and the check that it was not affected.
struct Undisturbed {
    election: TestElection,
    leader: Running,
    term: u64,
}

impl Undisturbed {
    fn new() -> Self {
        let election = election(Elector::Log);
        let mut leader = election.candidate().lease("5s").start();
        let term = leader.await_lead();
        election.await_witness(term);
        Self { election, leader, term }
    }

    fn pen(&self, properties: &[(&str, &str)]) -> Pen {
        Pen::new(Kafka::shared(), &self.election.topic(), properties)
    }

    /// Asserts that beats written from now on renew the lease.
    fn assert_renewed(&self) {
        let deadline = || self.election.testimony().of(self.term).next_back().map_or(0, |line| line.deadline);
        let before = deadline();
        wait::until_true("a lease that is renewed", || deadline() > before + 1_000_000_000);
    }

    /// Asserts that the leader still leads, and that a new candidate can read the log and lead after it.
    fn assert(mut self) {
        self.assert_renewed();
        let mut newcomer = self.election.candidate().lease("2s").start();
        let standby = newcomer.await_event("standby");
        self.assert_renewed();
        assert_eq!(self.leader.events("leading").len(), 1, "{:?}", self.leader);
        assert!(self.leader.events("fence_warning").is_empty(), "{:?}", self.leader);
        assert_eq!(self.election.testimony().signals().count(), 0);
        self.leader.signal(Signal::SIGTERM);
        assert_eq!(self.leader.status(), 0);
        assert!(newcomer.await_lead() > self.term, "{standby:?}");
        self.election.close([newcomer]);
    }
}

/// A transaction marker has an offset but is never delivered. In a topic without compaction no other gap can arise. So a new candidate
/// knows that it missed no record, and does not wait for a silence.
#[test]
fn markers_of_ended_transactions_cause_no_wait() {
    let election = election(Elector::Log);
    assert_eq!(election.candidate().job(["true"]).option("--restart", "no").start().status(), 0);
    let pen = Pen::new(Kafka::shared(), &election.topic(), &[("transactional.id", &election.key())]);
    pen.begin();
    pen.write("somebody", &[b"something"]);
    pen.abort();
    let mut newcomer = election.candidate().start();
    let led = newcomer.await_event_within("leading", Duration::from_secs(20));
    assert!(led.is_some(), "{newcomer:?}");
    election.close([newcomer]);
}

/// Undecodable records under the election's own key.
#[test]
fn records_that_make_no_sense_are_ignored() {
    let undisturbed = Undisturbed::new();
    let (key, term) = (undisturbed.election.key(), undisturbed.term);
    let nonsense = [
        String::new(),
        "hello".to_owned(),
        "{".to_owned(),
        "[]".to_owned(),
        "null".to_owned(),
        "{}".to_owned(),
        r#"{"v":1}"#.to_owned(),
        r#"{"v":1,"kind":"claim"}"#.to_owned(),
        r#"{"v":1,"kind":"coup","member":"m","name":"n","seq":1}"#.to_owned(),
        r#"{"v":9,"kind":"claim","member":"m","name":"n","seq":1,"after":0,"lease_ms":5000}"#.to_owned(),
        r#"{"v":1,"kind":"claim","member":"m","name":"n","seq":1,"after":99999999,"lease_ms":5000}"#.to_owned(),
        r#"{"v":1,"kind":"claim","member":"m","name":"n","seq":1,"after":1e99,"lease_ms":5000}"#.to_owned(),
        r#"{"v":1,"kind":"claim","member":"m","name":"n","seq":1,"after":"0","lease_ms":5000}"#.to_owned(),
        format!(r#"{{"v":1,"kind":"beat","member":"m","name":"n","seq":1,"term":{term},"seen":{term},"lease_ms":1}}"#),
        format!(
            r#"{{"v":1,"kind":"beat","member":"m","name":"n","seq":1,"term":{term},"seen":{term},"lease_ms":99999999999}}"#
        ),
        format!(
            r#"{{"v":1,"kind":"release","member":"m","name":"n","seq":1,"term":{term},"seen":99999999,"why":"lies","exit":null}}"#
        ),
        r#"{"v":1,"kind":"request","member":"m","name":"n","seq":1,"what":"coup","term":null,"by":"x","reason":"y"}"#
            .to_owned(),
        "[".repeat(900),
    ];
    let payloads: Vec<&[u8]> = nonsense.iter().map(String::as_bytes).chain([&b"\xff\xfe\x00"[..]]).collect();
    let pen = undisturbed.pen(&[]);
    pen.write(&key, &payloads);
    pen.write_tombstone(&key);

    let strange: Vec<_> =
        undisturbed.election.verdicts().into_iter().filter(|line| line["verdict"] == "nonsense").collect();
    assert_eq!(strange.len(), payloads.len() + 1, "{strange:?}");
    undisturbed.assert();
}

/// Forged records that are plausible but void by the law.
#[test]
fn forged_records_that_are_void_have_no_effect() {
    let undisturbed = Undisturbed::new();
    let (key, term) = (undisturbed.election.key(), undisturbed.term);
    let pen = undisturbed.pen(&[]);
    // A beat is written between the record to which the forged one refers and the forged record. So a claim that had only read the leader's
    // claim comes too late.
    undisturbed.assert_renewed();
    let lies = [
        format!(r#"{{"v":1,"kind":"claim","member":"m","name":"n","seq":1,"after":{term},"lease_ms":5000}}"#),
        r#"{"v":1,"kind":"claim","member":"m","name":"n","seq":2,"after":-1,"lease_ms":60000}"#.to_owned(),
        format!(
            r#"{{"v":1,"kind":"release","member":"m","name":"n","seq":3,"term":{0},"seen":{0},"why":"lies","exit":0}}"#,
            term + 1
        ),
        format!(
            r#"{{"v":1,"kind":"request","member":"m","name":"n","seq":4,"what":"resign","term":{},"by":"x","reason":"y"}}"#,
            term + 1
        ),
    ];
    pen.write(&key, &lies.iter().map(String::as_bytes).collect::<Vec<_>>());
    let verdicts = undisturbed.election.verdicts();
    let of_liar = |kind: &str| {
        verdicts
            .iter()
            .filter(|line| line["record"]["member"] == "m" && line["record"]["kind"] == kind)
            .cloned()
            .collect::<Vec<_>>()
    };
    let claims = of_liar("claim");
    assert_eq!(claims.len(), 2);
    let releases = of_liar("release");
    assert_eq!(releases.len(), 1);
    assert!(
        claims.iter().chain(&releases).all(|line| line["verdict"] == "void" && line["term"] == term),
        "{verdicts:?}"
    );
    undisturbed.assert();
}

/// Records of other elections in the same topic are ignored.
#[test]
fn records_of_other_elections_are_ignored() {
    let undisturbed = Undisturbed::new();
    let pen = undisturbed.pen(&[]);
    let claim = br#"{"v":1,"kind":"claim","member":"m","name":"n","seq":1,"after":0,"lease_ms":5000}"#;
    for key in
        ["another/0", "", &format!("{}/1", undisturbed.election.group), &format!("{}/00", undisturbed.election.group)]
    {
        pen.write(key, &[claim, b"nonsense", b""]);
        pen.write_tombstone(key);
    }
    pen.write(&format!("{}/hello", undisturbed.election.key()), &[b"nonsense", b"{}", &vec![b'x'; 100_000]]);
    pen.write_keyless(claim);
    let verdicts = undisturbed.election.verdicts();
    assert!(verdicts.iter().all(|line| line["record"]["member"] != "m"), "{verdicts:?}");
    undisturbed.assert();
}

/// A record of the largest size that the broker accepts.
#[test]
fn records_of_the_largest_size_are_ignored() {
    let undisturbed = Undisturbed::new();
    let pen = undisturbed.pen(&[("message.max.bytes", "1048000")]);
    let huge = vec![b'x'; 1_000_000];
    for key in [undisturbed.election.key(), "another/0".to_owned()] {
        pen.write(&key, &[&huge, &huge, &huge]);
    }
    undisturbed.assert();
}

/// Every compression codec of Kafka. A codec that a reader can't decompress would stop it at that offset for ever.
#[test]
fn compressed_records_stop_no_reader() {
    let undisturbed = Undisturbed::new();
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let pen = undisturbed.pen(&[("compression.type", codec), ("linger.ms", "50")]);
        let text = "a record that is like the next ".repeat(20);
        pen.write(&undisturbed.election.key(), &vec![text.as_bytes(); 50]);
        pen.write("another/0", &vec![text.as_bytes(); 50]);
        undisturbed.assert_renewed();
    }
    undisturbed.assert();
}

/// An open transaction does not block readers, and the markers of ended ones hide no record.
#[test]
fn an_open_transaction_blocks_no_reader() {
    let undisturbed = Undisturbed::new();
    let pen = undisturbed.pen(&[("transactional.id", &undisturbed.election.group)]);
    pen.begin();
    pen.write("another/0", &[b"one", b"two"]);
    undisturbed.assert_renewed();
    let mut newcomer = undisturbed.election.candidate().lease("2s").start();
    newcomer.await_event("standby");
    // This writes a marker, at an offset that no reader receives.
    pen.abort();
    undisturbed.assert_renewed();
    newcomer.signal(Signal::SIGTERM);
    assert_eq!(newcomer.status(), 143);
    undisturbed.assert();
}
