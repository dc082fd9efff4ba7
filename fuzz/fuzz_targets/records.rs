//! A record in the topic.

#![no_main]

#[path = "../../tests/bytes/holds.rs"]
mod holds;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| holds::of_a_record(bytes));
