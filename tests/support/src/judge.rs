//! The judges of the chaos test. They break nothing and start nothing: what was seen of a run goes in, and its violations come out. So
//! their own tests give them evidence that is made by hand.

mod axis;
/// What the law says of the claims under which jobs ran.
pub mod claims;
mod history;
mod job_run;
/// Candidates that run their job once for a key.
pub mod keys;
/// The times at which nobody led.
pub mod leaderless;
mod overlaps;
/// What was written about the runs of keys and windows.
pub mod recorded;
/// How many of many roles each candidate leads.
pub mod shares;
/// Candidates that run their job once in each window of time.
pub mod windows;

pub use axis::{Axis, nanos};
pub use history::{History, Law};
pub use job_run::{Counts, End, JobRun, Latest, Overlap, life_of};

/// What became of the keys, or of the windows.
#[derive(Debug, Default)]
pub struct Judged {
    /// A line for the report.
    pub shown: String,
    /// The violations.
    pub violations: Vec<String>,
}
