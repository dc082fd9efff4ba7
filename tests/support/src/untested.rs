use std::fs::File;
use std::io::{self, Write};

/// The variable with the path of a file to which each of these lines is appended too, for a summary of the run.
const LIST: &str = "NOT_TESTED";

/// Prints which part could not be tested on this machine, and why. It does not use `eprintln!`, because libtest discards that output of
/// tests that pass.
pub fn not_tested(why: &str) {
    let _ = writeln!(io::stderr(), "NOT TESTED: {why}");
    if let Some(list) = std::env::var_os(LIST)
        && let Ok(mut list) = File::options().append(true).open(list)
    {
        let _ = list.write_all(format!("{why}\n").as_bytes());
    }
}
