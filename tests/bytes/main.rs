//! Arbitrary bytes from outside, in the topic, in a file, or from the other end of the guard's socket, are decoded or refused without
//! any other effect, and no message contains possible secrets.

#![expect(clippy::expect_used, reason = "a test")]

mod holds;

use std::fmt::{self, Debug};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::{Config as Bounds, TestRng, TestRunner};

use neli_proto::hello::Hello;
use neli_proto::record::Record;

/// Valid records of a topic.
const RECORDS: &[&str] = &[
    r#"{"v":1,"kind":"claim","member":"m","name":"a:1","seq":1,"after":41,"lease_ms":5000}"#,
    r#"{"v":1,"kind":"beat","member":"m","seq":2,"term":42,"seen":57,"lease_ms":5000,"state":"running","pid":7,"attempt":1,"since_ms":90}"#,
    r#"{"v":1,"kind":"release","member":"m","seq":3,"term":42,"seen":57,"why":"exited","exit":0}"#,
    r#"{"v":1,"kind":"request","member":"m","seq":1,"what":"resign","term":42,"by":"ops","reason":"deploy"}"#,
    r#"{"v":1,"kind":"hello","member":"m","seq":1,"host":"a","pid":1,"version":"0.1.0","elector":"log"}"#,
];

/// Messages between supervisor and guard.
const MESSAGES: &[&str] = &[
    r#"{"order":"spawn","term":42,"seen":57,"next_seq":9,"until":1000,"attempt":1}"#,
    r#"{"order":"lease","term":42,"seen":57,"next_seq":9,"until":1000}"#,
    r#"{"order":"stop","signal":15,"kill_at":1000}"#,
    r#"{"order":"signal","signal":1,"to":"group"}"#,
    r#"{"answer":"exited","code":null,"signal":9,"left":true}"#,
    r#"{"answer":"stuck","pids":[1,2]}"#,
];

/// Lines of a properties file.
const PROPERTIES: &[&str] = &[
    "# a comment",
    "",
    "security.protocol=sasl_plaintext",
    "sasl.password = hunter2",
    "socket.timeout.ms=1000",
    "ssl.key.pem=hunter2\\n",
    "group.id=hunter2",
    "nonsense=hunter2",
    "hunter2",
    "=hunter2",
];

/// Runs the same cases each time, so that a failure is reproducible.
fn check<S: Strategy>(cases: u32, inputs: &S, property: impl Fn(S::Value) -> Result<(), TestCaseError>)
where
    S::Value: Debug,
{
    let bounds = Bounds { cases, failure_persistence: None, ..Bounds::default() };
    let random = TestRng::deterministic_rng(bounds.rng_algorithm);
    if let Err(failure) = TestRunner::new_with_rng(bounds, random).run(inputs, property) {
        panic!("{failure}");
    }
}

/// Bytes that are printed as text.
#[derive(Clone)]
struct Bytes(Vec<u8>);

impl Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

/// Arbitrary bytes, fewer than the argument.
fn anything(fewer_than: usize) -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..fewer_than).prop_map(Bytes)
}

/// One of these texts with pieces replaced, doubled, removed, or exchanged for pieces of another text.
fn damaged(texts: &'static [&'static str]) -> impl Strategy<Value = Bytes> {
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..4),
        prop::sample::select(vec![
            "null",
            "-1",
            "9223372036854775807",
            "1e400",
            "\"",
            "{",
            "}",
            ",",
            ":",
            "[[",
            "\\u0000",
            "\u{7f}"
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        prop::sample::select(texts).prop_map(|text| text.as_bytes().to_vec()),
    ];
    let damage = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), piece);
    (prop::sample::select(texts), prop::collection::vec(damage, 0..4)).prop_map(|(text, damages)| {
        let mut bytes = text.as_bytes().to_vec();
        for (from, to, piece) in damages {
            let from = from.index(bytes.len() + 1);
            let to = from + to.index(bytes.len() - from + 1).min(8);
            bytes.splice(from..to, piece);
        }
        Bytes(bytes)
    })
}

#[test]
fn records() {
    check(10_000, &prop_oneof![1 => anything(1_100), 4 => damaged(RECORDS)], |Bytes(bytes)| {
        holds::of_a_record(&bytes);
        Ok(())
    });
}

#[test]
fn valid_records_are_decoded() {
    for line in RECORDS.iter().map(|line| line.as_bytes()) {
        let record = Record::parse(line);
        let hello = Hello::parse(line);
        assert!(record.is_some() != hello.is_some(), "{}", line.escape_ascii());
        assert_eq!(record.as_ref().and_then(|record| Record::parse(&record.to_bytes())), record);
        assert_eq!(hello.as_ref().and_then(|hello| Hello::parse(&hello.to_bytes())), hello);
    }
}

#[test]
fn messages_between_supervisor_and_guard() {
    check(10_000, &prop_oneof![1 => anything(200), 4 => damaged(MESSAGES)], |Bytes(bytes)| {
        holds::of_a_message(&bytes);
        Ok(())
    });
}

#[test]
fn files_of_properties() {
    let (_directory, file) = file_of_properties();
    let lines = prop::collection::vec(damaged(PROPERTIES), 0..5)
        .prop_map(|lines| Bytes(lines.into_iter().map(|Bytes(line)| line).collect::<Vec<_>>().join(&b'\n')));
    check(1_000, &lines, |Bytes(bytes)| {
        holds::of_a_file_of_properties(&bytes, &file);
        Ok(())
    });
}

/// Inputs that fuzzing has found (`fuzz/`).
#[test]
fn the_corpora_of_the_fuzz_targets() {
    let (_directory, file) = file_of_properties();
    for bytes in corpus("records") {
        holds::of_a_record(&bytes);
    }
    for bytes in corpus("messages") {
        holds::of_a_message(&bytes);
    }
    for bytes in corpus("properties") {
        holds::of_a_file_of_properties(&bytes, &file);
    }
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let files = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let found: Vec<_> = files.map(|file| fs::read(file.expect("readable").path()).expect("readable")).collect();
    assert!(!found.is_empty(), "{target}");
    found
}

/// An empty private file, and its directory.
fn file_of_properties() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory for what is temporary");
    let file = directory.path().join("properties");
    fs::write(&file, "").expect("the file can be written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("the file's mode can be set");
    (directory, file)
}
