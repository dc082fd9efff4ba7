use std::fs::File;
use std::io::{self, Write};

/// The variable that names a file in which what could not be tested is listed too, for a summary of the run.
const LIST: &str = "NOT_TESTED";

/// Says what could not be tested here, and why. Past the test runner's silence: what goes by `eprintln!` a test that passes keeps to
/// itself.
pub fn not_tested(why: &str) {
    let _ = writeln!(io::stderr(), "NOT TESTED: {why}");
    if let Some(list) = std::env::var_os(LIST)
        && let Ok(mut list) = File::options().append(true).open(list)
    {
        let _ = list.write_all(format!("{why}\n").as_bytes());
    }
}
