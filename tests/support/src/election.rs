//! One election and its witnesses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::candidate::{Candidate, Elector, Running};
use crate::kafka::Kafka;
use crate::witness::{Event, Testimony, Witness};
use crate::{install, process, wait};

/// Output and exit status of a finished command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// Its stdout.
    pub text: String,
    /// Its stderr.
    pub errors: String,
    /// Exit status as a shell reports it: 128 + n after signal n.
    pub status: i32,
}

impl Answer {
    /// Runs the command and waits for its end, for at most [`wait::PATIENCE`].
    #[must_use]
    pub fn of(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = process::output_of(command.spawn().expect("cargo has built the program"));
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        let status = output.status.code().expect("it was not killed");
        Self { text: text(output.stdout), errors: text(output.stderr), status }
    }

    /// Parses stdout, which must be one line of JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        assert_eq!((self.text.lines().count(), self.errors.as_str()), (1, ""), "{self:?}");
        serde_json::from_str(&self.text).expect("a line of JSON")
    }
}

/// One election with a new name, and the file to which all its witnesses write.
#[derive(Debug)]
pub struct TestElection {
    /// The election's name.
    pub group: String,
    program: PathBuf,
    brokers: String,
    elector: Elector,
    directory: TempDir,
}

impl TestElection {
    /// An election on `kafka`, for candidates that run `program`.
    #[must_use]
    pub fn new(program: &str, kafka: &Kafka, elector: Elector) -> Self {
        Self {
            group: fresh_name(),
            program: program.into(),
            brokers: kafka.address().to_owned(),
            elector,
            directory: install::scratch(),
        }
    }

    /// Another election of the same program, for candidates that get a topic by an option.
    #[must_use]
    pub fn another(&self) -> Self {
        let Self { program, brokers, elector, .. } = self;
        Self {
            group: fresh_name(),
            program: program.clone(),
            brokers: brokers.clone(),
            elector: *elector,
            directory: install::scratch(),
        }
    }

    /// An election on a Kafka that this harness does not know.
    #[must_use]
    pub fn unreachable(program: &str) -> Self {
        Self::new(program, &Kafka::at(""), Elector::Log)
    }

    /// A candidate whose job is a plain witness. Its lease is long enough for a busy machine; a test about the lease sets another one.
    #[must_use]
    pub fn candidate(&self) -> Candidate {
        self.candidate_of(&self.program)
    }

    /// The same candidate, with another program.
    #[must_use]
    pub fn candidate_of(&self, program: &Path) -> Candidate {
        self.bare_candidate_of(program).option("--elect", self.elector.name()).job(self.witness().command())
    }

    /// A candidate with only the options that locate the election.
    #[must_use]
    pub fn bare_candidate(&self) -> Candidate {
        self.bare_candidate_of(&self.program)
    }

    fn bare_candidate_of(&self, program: &Path) -> Candidate {
        Candidate::new(program).option("--group", &self.group).option("--brokers", &self.brokers)
    }

    /// A witness that writes to this election's file.
    #[must_use]
    pub fn witness(&self) -> Witness {
        Witness::new(&self.file())
    }

    /// The rule by which candidates order their claims.
    #[must_use]
    pub fn elector(&self) -> Elector {
        self.elector
    }

    /// The topic that candidates create if no option names another one.
    #[must_use]
    pub fn topic(&self) -> String {
        format!("{}.neli", self.group)
    }

    /// The key of the election's records.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}/0", self.group)
    }

    /// A directory for this election's files.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A shell script that runs until [`Self::create_go_file`].
    #[must_use]
    pub fn until_go_file(&self) -> String {
        format!("until [ -e {} ]; do sleep 0.01; done", self.go_file().display())
    }

    /// Lets the scripts of [`Self::until_go_file`] end, also those that start later.
    pub fn create_go_file(&self) {
        fs::write(self.go_file(), "").expect("a file in the election's directory can be created");
    }

    fn go_file(&self) -> PathBuf {
        self.directory().join("go")
    }

    /// The lines that the witnesses have written so far.
    #[must_use]
    pub fn testimony(&self) -> Testimony {
        Testimony::read(&self.file())
    }

    /// Waits until a witness of this term writes: from then on it handles signals.
    pub fn await_witness(&self, epoch: u64) {
        wait::until_true("a job that runs", || self.testimony().of(epoch).any(|line| line.event == Event::Beat));
    }

    /// Waits until a witness of a later term writes, and returns that term. If a lease may be lost again at once, a `leading` event alone
    /// does not mean that a job runs.
    #[expect(clippy::must_use_candidate, reason = "most callers need a running job, but not its term")]
    pub fn await_witness_after(&self, epoch: u64) -> u64 {
        wait::until("a job in a later term", || {
            let beats = self.testimony().lines.into_iter().filter(|line| line.event == Event::Beat);
            beats.filter_map(|line| line.epoch).find(|later| *later > epoch)
        })
    }

    /// The time of the first instruction of a term's job, in nanoseconds of `CLOCK_BOOTTIME`.
    #[must_use]
    pub fn first_instruction(&self, epoch: u64) -> u64 {
        let testimony = self.testimony();
        testimony.of(epoch).find(|line| matches!(line.event, Event::Start(_))).expect("it started").at
    }

    /// The time of the last instruction of a term's job that ended by itself.
    #[must_use]
    pub fn last_instruction(&self, epoch: u64) -> u64 {
        let testimony = self.testimony();
        testimony.of(epoch).rfind(|line| matches!(line.event, Event::End(_))).expect("it ended by itself").at
    }

    /// Waits until no process of a term's job is left; fails if a process stays.
    pub fn await_gone(&self, epoch: u64) {
        wait::until_true("a job's tree that is gone", || self.testimony().alive(Some(epoch)).is_empty());
    }

    /// Asserts that no process of this term's job is left now.
    pub fn assert_gone(&self, epoch: u64) {
        let orphans = self.testimony().alive(Some(epoch));
        assert!(orphans.is_empty(), "orphans of term {epoch}: {orphans:?}");
    }

    /// Asserts that no two jobs ever ran at the same time.
    pub fn assert_never_two(&self) {
        let overlaps = self.testimony().overlaps();
        assert!(overlaps.is_empty(), "{overlaps:?}");
    }

    /// Ends the election: each candidate ends after SIGTERM, no job is left, and no two jobs ever ran at the same time.
    pub fn close(&self, candidates: impl IntoIterator<Item = Running>) {
        let mut candidates: Vec<Running> = candidates.into_iter().collect();
        for candidate in &candidates {
            candidate.signal(Signal::SIGTERM);
        }
        for candidate in &mut candidates {
            candidate.status();
        }
        let orphans = self.testimony().alive(None);
        assert!(orphans.is_empty(), "orphans: {orphans:?}");
        self.assert_never_two();
    }

    /// Every record of the election with its verdict under the law, as `neli-run watch` prints it.
    #[must_use]
    pub fn verdicts(&self) -> Vec<Value> {
        let answer = self.ask("watch", &["--json", "--from", "start", "--until-end"]);
        assert_eq!(answer.status, 0, "watch: {}", answer.errors);
        let lines = answer.text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
        lines.filter(|line| line["event"] == "record").collect()
    }

    /// Runs a subcommand for this election.
    #[must_use]
    pub fn ask(&self, subcommand: &str, arguments: &[&str]) -> Answer {
        let mut command = Command::new(&self.program);
        command.args([subcommand, "--group", &self.group, "--brokers", &self.brokers]).args(arguments);
        Answer::of(command)
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("witness")
    }
}

impl Drop for TestElection {
    fn drop(&mut self) {
        // Kills a job that a broken program left behind. A job that keeps forking ends by its own time limit.
        for process in self.testimony().alive(None) {
            process.signal(Signal::SIGKILL);
        }
    }
}

/// A name that no election had before.
fn fresh_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("t{:x}-{:x}-{}", wait::now(), std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
