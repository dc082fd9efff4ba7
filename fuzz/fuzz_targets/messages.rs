//! A message between supervisor and guard.

#![no_main]

#[path = "../../tests/bytes/holds.rs"]
mod holds;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| holds::of_a_message(bytes));
