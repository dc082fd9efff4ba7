//! Properties that must hold for arbitrary bytes; the fuzz targets check them as well.

#![allow(clippy::expect_used, reason = "a test fails by panicking; so does a fuzz target")]

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use neli_proto::hello::Hello;
use neli_proto::record::{MAX_BYTES, Record};
use neli_run::cli::{self, validate};
use neli_run::guard::{Answer, Order};

/// A text that represents a secret.
#[allow(dead_code, reason = "a fuzz target asks for one of these at a time")]
pub(crate) const SECRET: &str = "hunter2";

/// A record in the topic, or a hello. A record that can be decoded is encoded again and decodes to the same value.
#[allow(dead_code, reason = "a fuzz target asks for one of these at a time")]
pub(crate) fn of_a_record(bytes: &[u8]) {
    if let Some(hello) = Hello::parse(bytes) {
        // What is only displayed may be left out.
        let read = Hello::parse(&hello.to_bytes());
        assert!(read.is_none_or(|read| (read.member, read.left) == (hello.member, hello.left)));
    }
    let Some(record) = Record::parse(bytes) else { return };
    assert!(bytes.len() <= MAX_BYTES);
    for offset in [0, 1, 58, i64::MAX] {
        let _ = record.makes_sense_at(offset);
    }
    let written = record.to_bytes();
    if written.len() <= MAX_BYTES {
        assert_eq!(Record::parse(&written), Some(record));
    }
}

/// A message between supervisor and guard.
#[allow(dead_code, reason = "a fuzz target asks for one of these at a time")]
pub(crate) fn of_a_message(bytes: &[u8]) {
    if let Ok(order) = serde_json::from_slice::<Order>(bytes) {
        let written = serde_json::to_vec(&order).expect("an order can be written");
        assert_eq!(serde_json::from_slice::<Order>(&written).expect("what was written can be read"), order);
    }
    if let Ok(answer) = serde_json::from_slice::<Answer>(bytes) {
        let written = serde_json::to_vec(&answer).expect("an answer can be written");
        assert_eq!(serde_json::from_slice::<Answer>(&written).expect("what was written can be read"), answer);
    }
}

/// A file of properties, written to `file`, which belongs to us and is private.
#[allow(dead_code, reason = "a fuzz target asks for one of these at a time")]
pub(crate) fn of_a_file_of_properties(bytes: &[u8], file: &Path) {
    fs::write(file, bytes).expect("the file can be written");
    let words = ["neli-run", "--group=g", "--brokers=k:9092", "--properties"].map(OsString::from);
    let command = ["--", "/bin/true"].map(OsString::from);
    let arguments: Vec<OsString> = words.into_iter().chain([file.into()]).chain(command).collect();
    let args = cli::parse(&arguments, Vec::new()).expect("the command line itself is right");
    let said = match validate::config(&args) {
        Ok(config) => config.warnings,
        Err(refusal) => vec![refusal.to_string()],
    };
    // A message may contain the name of a property, but not its value.
    let text = String::from_utf8_lossy(bytes);
    let names_it = text.lines().filter_map(|line| line.split_once('=')).any(|(name, _)| name.contains(SECRET));
    for line in said {
        assert!(!line.contains('\n') && !line.contains('\0'), "one line: {line:?}");
        assert!(names_it || !line.contains(SECRET), "a value is shown: {line:?}");
    }
}
