//! Whatever bytes come from outside, in the topic, in a file, or from the other side of the guard's socket: they are
//! understood or refused, never more, and nothing is shown that may be a secret.

use std::ffi::OsString;
use std::fmt::{self, Debug};
use std::fs;
use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;
use proptest::test_runner::{Config as Bounds, TestRng, TestRunner};

use neli_run::cli::given::Environment;
use neli_run::cli::{self, Request};
use neli_run::config::Config;
use neli_run::driver::guard::{Answer, Order};
use neli_run::logic::record::{MAX_BYTES, Record};

/// What stands for a secret.
const SECRET: &str = "hunter2";

/// Lines as they stand in a topic.
const RECORDS: &[&str] = &[
    r#"{"v":1,"kind":"claim","member":"m","name":"a:1","seq":1,"after":41,"lease_ms":5000}"#,
    r#"{"v":1,"kind":"beat","member":"m","seq":2,"term":42,"seen":57,"lease_ms":5000,"state":"running","pid":7,"attempt":1,"since_ms":90}"#,
    r#"{"v":1,"kind":"release","member":"m","seq":3,"term":42,"seen":57,"why":"exited","exit":0}"#,
    r#"{"v":1,"kind":"request","member":"m","seq":1,"what":"resign","term":42,"by":"ops","reason":"deploy"}"#,
    r#"{"v":1,"kind":"hello","member":"m","seq":1,"host":"a","pid":1,"version":"0.1.0","elector":"log"}"#,
];

/// Words between supervisor and guard.
const MESSAGES: &[&str] = &[
    r#"{"order":"spawn","term":42,"seen":57,"next_seq":9,"until":1000,"attempt":1}"#,
    r#"{"order":"lease","term":42,"seen":57,"next_seq":9,"until":1000}"#,
    r#"{"order":"stop","signal":15,"kill_at":1000}"#,
    r#"{"order":"signal","signal":1,"to":"group"}"#,
    r#"{"answer":"exited","code":null,"signal":9,"left":true}"#,
    r#"{"answer":"stuck","pids":[1,2]}"#,
];

/// Lines as they stand in a file of properties.
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

/// The same cases each time: what was found is found again.
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

/// Bytes that are shown as text.
#[derive(Clone)]
struct Bytes(Vec<u8>);

impl Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

/// Any bytes, fewer than this.
fn anything(fewer_than: usize) -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..fewer_than).prop_map(Bytes)
}

/// One of these texts, in which pieces were replaced, doubled, cut out, or swapped for pieces of another.
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
        let Some(record) = Record::parse(&bytes) else { return Ok(()) };
        prop_assert!(bytes.len() <= MAX_BYTES);
        for offset in [0, 1, 58, i64::MAX] {
            let _ = record.makes_sense_at(offset);
        }
        // What was odd or unknown is gone; what was understood is written, and read, as it was understood.
        let written = record.to_bytes();
        if written.len() <= MAX_BYTES {
            prop_assert_eq!(Record::parse(&written), Some(record));
        }
        Ok(())
    });
}

#[test]
fn undamaged_records_are_understood() {
    for line in RECORDS {
        let record = Record::parse(line.as_bytes()).unwrap();
        assert!(Record::parse(&record.to_bytes()) == Some(record), "{line}");
    }
}

#[test]
fn words_between_supervisor_and_guard() {
    check(10_000, &prop_oneof![1 => anything(200), 4 => damaged(MESSAGES)], |Bytes(bytes)| {
        if let Ok(order) = serde_json::from_slice::<Order>(&bytes) {
            let written = serde_json::to_vec(&order).unwrap();
            prop_assert_eq!(serde_json::from_slice::<Order>(&written).unwrap(), order);
        }
        if let Ok(answer) = serde_json::from_slice::<Answer>(&bytes) {
            let written = serde_json::to_vec(&answer).unwrap();
            prop_assert_eq!(serde_json::from_slice::<Answer>(&written).unwrap(), answer);
        }
        Ok(())
    });
}

#[test]
fn files_of_properties() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("properties");
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let lines = prop::collection::vec(damaged(PROPERTIES), 0..5)
        .prop_map(|lines| Bytes(lines.into_iter().map(|Bytes(line)| line).collect::<Vec<_>>().join(&b'\n')));
    check(1_000, &lines, |Bytes(bytes)| {
        fs::write(&file, &bytes).unwrap();
        let words = ["neli-run", "--group=g", "--brokers=k:9092", "--properties"].map(OsString::from);
        let command = ["--", "/bin/true"].map(OsString::from);
        let arguments: Vec<OsString> = words.into_iter().chain([file.clone().into()]).chain(command).collect();
        let Ok(Request::Run(given)) = cli::parse(&arguments, Environment(Vec::new())) else {
            return Err(TestCaseError::fail("the command line itself is right"));
        };
        let said = match Config::prove(&given) {
            Ok(config) => config.warnings,
            Err(refusal) => vec![refusal.to_string()],
        };
        // A property is called by its name.
        let text = String::from_utf8_lossy(&bytes);
        let names_it = text.lines().filter_map(|line| line.split_once('=')).any(|(name, _)| name.contains(SECRET));
        for line in said {
            prop_assert!(!line.contains('\n') && !line.contains('\0'), "one line: {:?}", line);
            prop_assert!(names_it || !line.contains(SECRET), "a value is shown: {:?}", line);
        }
        Ok(())
    });
}
