//! A `neli-run` under test: its command line, and its start.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

mod running;

pub use running::{Event, Running};

/// The rule by which candidates order their claims (`--elect`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Elector {
    /// The consumer group.
    Group,
    /// The journal alone.
    Log,
}

impl Elector {
    /// Both electors.
    pub const ALL: [Self; 2] = [Self::Log, Self::Group];

    /// The value of `--elect`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Log => "log",
        }
    }
}

impl FromStr for Elector {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|elector| elector.name() == name).ok_or_else(|| "it is group or log".to_owned())
    }
}

/// A command line of `neli-run`, before it is started.
#[derive(Clone, Debug)]
pub struct Candidate {
    program: PathBuf,
    options: Vec<OsString>,
    environment: Vec<(String, OsString)>,
    job: Vec<OsString>,
    input: Option<Vec<u8>>,
    directory: Option<PathBuf>,
}

impl Candidate {
    /// A `neli-run` with only the options for a log that a test can read.
    #[must_use]
    pub fn new(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
            options: vec!["--log-format".into(), "json".into()],
            environment: Vec::new(),
            job: Vec::new(),
            input: None,
            directory: None,
        }
    }

    /// Adds an option with a value.
    #[must_use]
    pub fn option(self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.flag(name).flag(value)
    }

    /// Adds an option without a value.
    #[must_use]
    pub fn flag(mut self, name: impl AsRef<OsStr>) -> Self {
        self.options.push(name.as_ref().to_owned());
        self
    }

    /// Sets `--lease`.
    #[must_use]
    pub fn lease(self, duration: &str) -> Self {
        self.option("--lease", duration)
    }

    /// Sets a librdkafka property.
    #[must_use]
    pub fn property(self, key: &str, value: &str) -> Self {
        self.option("--property", format!("{key}={value}"))
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets COMMAND and its arguments, in place of earlier ones.
    #[must_use]
    pub fn job(mut self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.job = words.into_iter().map(|word| word.as_ref().to_owned()).collect();
        self
    }

    /// Sets the input on stdin; without it stdin is `/dev/null`.
    #[must_use]
    pub fn input(mut self, bytes: &[u8]) -> Self {
        self.input = Some(bytes.to_owned());
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn directory(mut self, path: &Path) -> Self {
        self.directory = Some(path.to_owned());
        self
    }

    /// The whole command line: the program, its options and COMMAND.
    #[must_use]
    pub fn words(&self) -> Vec<OsString> {
        let mut words = vec![self.program.clone().into_os_string()];
        words.extend(self.options.iter().cloned());
        if !self.job.is_empty() {
            words.push("--".into());
            words.extend(self.job.iter().cloned());
        }
        words
    }

    /// Starts it. The kernel kills the process when the thread that called this ends.
    #[must_use]
    pub fn start(&self) -> Running {
        self.start_behind(&[])
    }

    /// Starts it through another command that executes the rest of its arguments, such as `["nice", "-n", "19"]`.
    #[must_use]
    pub fn start_behind(&self, prefix: &[&str]) -> Running {
        // A program sets the kernel's parent-death signal, because a call between fork and exec would be unsafe code.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).args(prefix).args(self.words());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.stdin(if self.input.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::spawn(command, self.input.clone())
    }
}
#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::{install, wait};

    /// A candidate whose program is a short shell script instead of `neli-run`.
    fn candidate(script: &str) -> (tempfile::TempDir, Candidate) {
        let directory = install::scratch();
        let program = directory.path().join("program");
        crate::program::write(&program, &format!("#!/bin/sh\n{script}\n"));
        let candidate = Candidate::new(&program);
        (directory, candidate)
    }

    #[test]
    fn events_are_distinguished_from_other_lines() {
        let script =
            r#"echo '{"event":"one","term":3}' >&2; echo noise >&2; echo '{"event":"one","term":4}' >&2; cat; exit 7"#;
        let (_directory, candidate) = candidate(script);
        let mut running = candidate.input(b"in and out").start();
        assert_eq!(running.await_event("one").number("term"), 3);
        assert_eq!(running.await_event("one").number("term"), 4);
        assert!(running.await_event_within("one", wait::PATIENCE).is_none(), "the script prints no third event");
        assert_eq!(running.status(), 7);
        assert_eq!(running.output(), b"in and out");
        assert_eq!(running.strange_lines(), ["noise"]);
    }

    /// `status` returns only after all stderr output of the process itself has been read, even if other processes keep stderr open.
    #[test]
    fn output_before_the_end_is_read_before_the_status_is_returned() {
        let script = "sleep 1000 & yes | head -n 20000 >&2; printf '%s' last >&2";
        let (_directory, candidate) = candidate(script);
        let mut running = candidate.start();
        assert_eq!(running.status(), 0);
        let lines = running.strange_lines();
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (20_001, Some("last")));
    }

    #[test]
    fn a_signal_is_a_status() {
        let (_directory, candidate) = candidate("kill -9 $$");
        assert_eq!(candidate.start().status(), 137);
    }

    #[test]
    fn a_dropped_process_is_gone_with_its_descendants() {
        let (_directory, candidate) = candidate(r#"setsid sleep 1000 & echo '{"event":"up"}' >&2; sleep 1000"#);
        let mut running = candidate.start();
        running.await_event("up");
        let family =
            wait::until("two sleeps", || Some(running.process().descendants()).filter(|found| found.len() == 2));
        drop(running);
        wait::until_true("an end of them all", || !family.iter().any(|process| process.lives()));
    }

    #[test]
    fn a_candidate_dies_with_the_thread_that_started_it() {
        let (_directory, candidate) = candidate(r#"echo '{"event":"up"}' >&2; exec sleep 1000"#);
        let process = thread::scope(|scope| {
            let started = scope.spawn(|| {
                let mut running = candidate.start();
                running.await_event("up");
                let process = running.process();
                // The value is not dropped, as if the whole test process were killed.
                std::mem::forget(running);
                process
            });
            started.join().expect("no panic")
        });
        wait::until_true("a candidate that is gone", || !process.lives());
    }
}
