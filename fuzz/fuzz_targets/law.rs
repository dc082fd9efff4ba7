//! A journal, read by both implementations of the law.

#![no_main]

#[path = "../../crates/neli-proto/tests/law/both.rs"]
mod both;
#[path = "../../crates/neli-proto/tests/law/journals.rs"]
mod journals;
#[path = "../../crates/neli-proto/tests/law/written.rs"]
mod written;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let reading = journals::Reading::of_bytes(bytes);
    both::read(&reading).unwrap_or_else(|difference| panic!("{difference}: {reading:?}"));
});
