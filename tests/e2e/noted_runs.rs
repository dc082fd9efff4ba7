//! Jobs that write a line to a file when they begin, so that a test can count their runs.

use std::fs;
use std::path::PathBuf;

use harness::election::TestElection;

/// The file to which each run of the election's job writes a line.
pub(crate) fn file(election: &TestElection) -> PathBuf {
    election.directory().join("runs")
}

/// The lines of the runs so far.
pub(crate) fn lines(election: &TestElection) -> Vec<String> {
    fs::read_to_string(file(election)).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// A job that writes a line with these words of a shell, and then runs this script.
pub(crate) fn job(election: &TestElection, words: &str, script: &str) -> [String; 3] {
    let script = format!("echo {words} >> {}; {script}", file(election).display());
    ["sh".to_owned(), "-c".to_owned(), script]
}
