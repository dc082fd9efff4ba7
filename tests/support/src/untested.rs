use std::io::{self, Write};

/// Prints what could not be tested on this machine, and why. It writes past libtest's capture, which discards the `eprintln!` output of
/// tests that pass.
pub fn not_tested(why: &str) {
    let _ = writeln!(io::stderr(), "NOT TESTED: {why}");
}
