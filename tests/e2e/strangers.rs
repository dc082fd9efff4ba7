//! Records that are not ours: whatever a stranger writes, the leader's job is never disturbed, and a newcomer reads past it.

use std::time::Duration;

use harness::candidate::{Elector, Running};
use harness::election::TestElection;
use harness::journal::Pen;
use harness::kafka::Kafka;
use harness::wait;
use nix::sys::signal::Signal;

use crate::election;

/// A leader, while a stranger writes; and what must hold afterwards.
struct Undisturbed {
    election: TestElection,
    leader: Running,
    term: u64,
}

impl Undisturbed {
    fn new() -> Self {
        let election = election(Elector::Log);
        let mut leader = election.candidate().lease("2s").start();
        let term = leader.await_lead();
        election.await_witness(term);
        Self { election, leader, term }
    }

    fn pen(&self, properties: &[(&str, &str)]) -> Pen {
        Pen::new(Kafka::shared(), &self.election.topic(), properties)
    }

    /// The lease is renewed by beats that were written from now on.
    fn assert_renewed(&self) {
        let deadline = || self.election.testimony().of(self.term).next_back().map_or(0, |line| line.deadline);
        let before = deadline();
        wait::until_true("a lease that is renewed", || deadline() > before + 1_000_000_000);
    }

    /// The leader leads on, a newcomer finds its way through it all, and leads when it may.
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

/// A transaction's marker has an offset and is never handed over. Where the topic deletes whole segments alone nothing else leaves a
/// gap, so a newcomer has not missed a record and waits for no silence.
#[test]
fn that_ended_a_transaction_cost_no_cold_start() {
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

/// Nonsense under the election's own key.
#[test]
fn that_make_no_sense() {
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

/// Lies that make sense where they stand, and are void by the law.
#[test]
fn that_lie() {
    let undisturbed = Undisturbed::new();
    let (key, term) = (undisturbed.election.key(), undisturbed.term);
    let pen = undisturbed.pen(&[]);
    // A beat comes between its `after` and itself in time; a claim that says it had seen but the leader's claim is late.
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

/// Records of others in the same topic are not seen at all.
#[test]
fn under_other_keys() {
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

/// As large as the broker takes.
#[test]
fn that_are_huge() {
    let undisturbed = Undisturbed::new();
    let pen = undisturbed.pen(&[("message.max.bytes", "1048000")]);
    let huge = vec![b'x'; 1_000_000];
    for key in [undisturbed.election.key(), "another/0".to_owned()] {
        pen.write(&key, &[&huge, &huge, &huge]);
    }
    undisturbed.assert();
}

/// Every codec that Kafka has. A codec that a reader can't undo would hold it at that offset for ever.
#[test]
fn that_are_compressed() {
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

/// A transaction that is left open holds no reader, and the markers of ended ones hide nothing.
#[test]
fn in_an_open_transaction() {
    let undisturbed = Undisturbed::new();
    let pen = undisturbed.pen(&[("transactional.id", &undisturbed.election.group)]);
    pen.begin();
    pen.write("another/0", &[b"one", b"two"]);
    undisturbed.assert_renewed();
    let mut newcomer = undisturbed.election.candidate().lease("2s").start();
    newcomer.await_event("standby");
    // Now a marker, at an offset that no reader is given.
    pen.abort();
    undisturbed.assert_renewed();
    newcomer.signal(Signal::SIGTERM);
    assert_eq!(newcomer.status(), 143);
    undisturbed.assert();
}
