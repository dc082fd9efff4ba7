use std::io::{self, Write};

/// Says what could not be tested here, and why. Past the test runner's silence: what goes by `eprintln!` a test that passes keeps to
/// itself.
pub fn not_tested(why: &str) {
    let _ = writeln!(io::stderr(), "NOT TESTED: {why}");
}
