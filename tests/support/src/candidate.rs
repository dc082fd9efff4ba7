//! A `neli-run` under test: started, watched, signalled, awaited.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;
use std::{fmt, thread};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::process::Process;
use crate::wait;

/// Who claims a vacancy first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Elector {
    /// The consumer group.
    Group,
    /// The journal alone.
    Log,
}

impl Elector {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Log, Self::Group];

    /// As `--elect` takes it.
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
    /// `neli-run` with nothing but a log that can be read by a test.
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

    /// One more option with its value.
    #[must_use]
    pub fn option(self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.flag(name).flag(value)
    }

    /// One more option without a value.
    #[must_use]
    pub fn flag(mut self, name: impl AsRef<OsStr>) -> Self {
        self.options.push(name.as_ref().to_owned());
        self
    }

    /// `--lease`.
    #[must_use]
    pub fn lease(self, duration: &str) -> Self {
        self.option("--lease", duration)
    }

    /// A librdkafka property.
    #[must_use]
    pub fn property(self, key: &str, value: &str) -> Self {
        self.option("--property", format!("{key}={value}"))
    }

    /// An environment variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// COMMAND and its arguments, in place of any before.
    #[must_use]
    pub fn job(mut self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.job = words.into_iter().map(|word| word.as_ref().to_owned()).collect();
        self
    }

    /// What stands on its stdin; `/dev/null` otherwise.
    #[must_use]
    pub fn input(mut self, bytes: &[u8]) -> Self {
        self.input = Some(bytes.to_owned());
        self
    }

    /// The working directory.
    #[must_use]
    pub fn directory(mut self, path: &Path) -> Self {
        self.directory = Some(path.to_owned());
        self
    }

    /// The whole command line: the program, its options, COMMAND.
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

    /// Starts it, as a process that dies with the thread that called this.
    #[must_use]
    pub fn start(&self) -> Running {
        self.start_behind(&[])
    }

    /// Starts it through another command, that execs what follows: `["nice", "-n", "19"]`.
    #[must_use]
    pub fn start_behind(&self, prefix: &[&str]) -> Running {
        // The kernel's parent-death signal, set by a program: a call between fork and exec would be unsafe code.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).args(prefix).args(self.words());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.stdin(if self.input.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let started_at = wait::now();
        let mut child = command.spawn().expect("setpriv is part of util-linux: apt-get install util-linux");

        let process = Process::child(child.id());
        let told = Arc::new(Told::default());
        if let (Some(mut input), Some(bytes)) = (child.stdin.take(), self.input.clone()) {
            // A job that does not read what it is given is no failure of the test.
            thread::spawn(move || drop(input.write_all(&bytes)));
        }
        let errors = BufReader::new(child.stderr.take().expect("piped"));
        let listener = Arc::clone(&told);
        thread::spawn(move || listener.listen(errors));
        let mut output = child.stdout.take().expect("piped");
        let listener = Arc::clone(&told);
        thread::spawn(move || {
            let mut text = Vec::new();
            output.read_to_end(&mut text).expect("a pipe can be read");
            listener.state().output = Some(text);
            listener.changed.notify_all();
        });
        Running { child, process, told, returned: HashMap::new(), guard: None, started_at }
    }
}

/// An event of the log.
#[derive(Clone, Debug)]
pub struct Event {
    /// When its line came to us, in nanoseconds of `CLOCK_BOOTTIME`: a little after it was written.
    pub at: u64,
    /// The line.
    pub fields: Value,
}

impl Event {
    /// What happened.
    #[must_use]
    pub fn name(&self) -> &str {
        self.fields["event"].as_str().unwrap_or_default()
    }

    /// A field that is a number.
    #[must_use]
    pub fn number(&self, field: &str) -> u64 {
        self.fields[field].as_u64().unwrap_or_else(|| panic!("no number `{field}` in {}", self.fields))
    }

    /// A field that is a text; empty where there is none.
    #[must_use]
    pub fn text(&self, field: &str) -> &str {
        self.fields[field].as_str().unwrap_or_default()
    }
}

/// A `neli-run` that was started; killed, with all that it started, when dropped.
pub struct Running {
    child: Child,
    process: Process,
    told: Arc<Told>,
    /// How many events of a name were returned already.
    returned: HashMap<String, usize>,
    guard: Option<Process>,
    /// Just before its start, in nanoseconds of `CLOCK_BOOTTIME`.
    pub started_at: u64,
}

/// What a `neli-run` has said so far.
#[derive(Default)]
struct Told {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    events: Vec<Event>,
    /// Lines on stderr that are no events: the job's.
    strange: Vec<String>,
    errors_ended: bool,
    output: Option<Vec<u8>>,
}

impl Running {
    /// The supervisor.
    #[must_use]
    pub fn process(&self) -> Process {
        self.process
    }

    /// The guard: the supervisor's child of that name.
    pub fn guard(&mut self) -> Process {
        if let Some(guard) = self.guard.filter(|guard| guard.lives()) {
            return guard;
        }
        let supervisor = self.process;
        let is_guard = |child: &Process| child.name().as_deref() == Some("neli-guard");
        let guard = wait::until("a guard", || supervisor.children().into_iter().find(is_guard));
        self.guard = Some(guard);
        guard
    }

    /// Sends the supervisor a signal.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// The first event of this name that was not returned yet, waiting for it if need be.
    pub fn await_event(&mut self, name: &str) -> Event {
        self.await_event_within(name, wait::PATIENCE)
            .unwrap_or_else(|| panic!("no `{name}`, for {:?} or before its stderr was closed", wait::PATIENCE))
    }

    /// The same; `None` when it does not come within `bound`, or can't come any more.
    pub fn await_event_within(&mut self, name: &str, bound: Duration) -> Option<Event> {
        let seen = self.returned.entry(name.to_owned()).or_default();
        let nth = *seen;
        let find = |state: &State| state.events.iter().filter(|event| event.name() == name).nth(nth).cloned();
        let state = self.told.await_until(bound, |state| state.errors_ended || find(state).is_some());
        let found = find(&state);
        *seen += usize::from(found.is_some());
        found
    }

    /// Every event of a name so far.
    #[must_use]
    pub fn events(&self, name: &str) -> Vec<Event> {
        self.told.state().events.iter().filter(|event| event.name() == name).cloned().collect()
    }

    /// The messages of all warnings so far that hold these words.
    #[must_use]
    pub fn warnings_with(&self, words: &str) -> Vec<String> {
        let messages = self.events("warning").into_iter().map(|event| event.text("message").to_owned());
        messages.filter(|message| message.contains(words)).collect()
    }

    /// Every event so far.
    #[must_use]
    pub fn history(&self) -> Vec<Event> {
        self.told.state().events.clone()
    }

    /// Every event after the first so many.
    #[must_use]
    pub fn history_from(&self, first: usize) -> Vec<Event> {
        self.told.state().events[first..].to_vec()
    }

    /// How many events of a name there were so far.
    #[must_use]
    pub fn count(&self, name: &str) -> usize {
        self.told.state().events.iter().filter(|event| event.name() == name).count()
    }

    /// Its status as a shell says it, if it has ended.
    pub fn ended(&mut self) -> Option<i32> {
        let status = self.child.try_wait().expect("a child can be waited for")?;
        Some(status.code().unwrap_or_else(|| 128 + status.signal().expect("neither exited nor killed")))
    }

    /// What was on stderr beside the log: the job's lines.
    #[must_use]
    pub fn strange_lines(&self) -> Vec<String> {
        self.told.state().strange.clone()
    }

    /// The job's main process, of the next `job_started`.
    pub fn await_job(&mut self) -> Process {
        let pid = self.await_event("job_started").number("pid");
        let pid = i32::try_from(pid).expect("a pid");
        Process::find(pid).unwrap_or_else(|| panic!("the job {pid} is gone"))
    }

    /// Waits until it leads; the term.
    pub fn await_lead(&mut self) -> u64 {
        self.await_event("leading").number("term")
    }

    /// Waits for the next release, but for that of a claim that came back too late to be used, as on a machine that stands still for
    /// seconds: of such a term there was no lead.
    pub fn await_release(&mut self) -> Event {
        loop {
            let released = self.await_event("released");
            if released.text("why") != "claim-expired" {
                return released;
            }
        }
    }

    /// Waits for its end; its status as a shell says it: 128 + n after a signal.
    pub fn status(&mut self) -> i32 {
        let ended = wait::poll_for(wait::PATIENCE, || self.ended());
        ended.unwrap_or_else(|| panic!("waited {:?} in vain for its end", wait::PATIENCE))
    }

    /// Waits until stdout is closed by all who had it; what was written to it.
    #[must_use]
    pub fn output(&self) -> Vec<u8> {
        let state = self.told.await_until(wait::PATIENCE, |state| state.output.is_some());
        state.output.clone().unwrap_or_else(|| panic!("waited {:?} in vain for the end of stdout", wait::PATIENCE))
    }

    /// Waits until stderr is closed by all who had it.
    pub fn await_silence(&self) {
        let state = self.told.await_until(wait::PATIENCE, |state| state.errors_ended);
        assert!(state.errors_ended, "waited {:?} in vain for the end of stderr", wait::PATIENCE);
    }
}

impl Told {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while it was locked")
    }

    fn await_until(&self, bound: Duration, condition: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        self.changed
            .wait_timeout_while(self.state(), bound, |state| !condition(state))
            .expect("no panic while it was locked")
            .0
    }

    /// Takes lines until there are no more.
    fn listen(&self, errors: impl BufRead) {
        for line in errors.split(b'\n').map_while(Result::ok) {
            let at = wait::now();
            let line = String::from_utf8_lossy(&line).into_owned();
            match serde_json::from_str(&line) {
                Ok(fields @ Value::Object(_)) => self.state().events.push(Event { at, fields }),
                _ => self.state().strange.push(line),
            }
            self.changed.notify_all();
        }
        self.state().errors_ended = true;
        self.changed.notify_all();
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.told.state();
        let mut text = format!("--- neli-run {} said:\n", self.process.pid);
        for event in &state.events {
            writeln!(text, "{} {}", event.at / 1_000_000, event.fields)?;
        }
        for line in &state.strange {
            writeln!(text, "{line}")?;
        }
        f.write_str(&text)
    }
}

impl Drop for Running {
    #[expect(clippy::print_stderr, reason = "a failed test shows what its candidates said")]
    fn drop(&mut self) {
        // Alive, it would start a new guard for one that we kill; stopped, it can't.
        self.process.signal(Signal::SIGSTOP);
        let family = self.process.descendants();
        self.process.signal(Signal::SIGKILL);
        self.child.wait().expect("a child can be waited for");
        // Whatever the program is worth, nothing of it outlives the test.
        for process in family {
            process.signal(Signal::SIGKILL);
        }
        if thread::panicking() {
            eprintln!("{self:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::install;

    /// A program of a few lines of shell in place of `neli-run`.
    fn candidate(script: &str) -> (tempfile::TempDir, Candidate) {
        let directory = install::scratch();
        let program = directory.path().join("program");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
        let candidate = Candidate::new(&program);
        (directory, candidate)
    }

    #[test]
    fn events_are_told_from_other_lines() {
        let script =
            r#"echo '{"event":"one","term":3}' >&2; echo noise >&2; echo '{"event":"one","term":4}' >&2; cat; exit 7"#;
        let (_directory, candidate) = candidate(script);
        let mut running = candidate.input(b"in and out").start();
        assert_eq!(running.await_event("one").number("term"), 3);
        assert_eq!(running.await_event("one").number("term"), 4);
        assert!(running.await_event_within("one", wait::PATIENCE).is_none(), "it can't come any more");
        assert_eq!(running.status(), 7);
        assert_eq!(running.output(), b"in and out");
        assert_eq!(running.strange_lines(), ["noise"]);
    }

    #[test]
    fn a_signal_is_a_status() {
        let (_directory, candidate) = candidate("kill -9 $$");
        assert_eq!(candidate.start().status(), 137);
    }

    #[test]
    fn what_is_dropped_is_gone_with_all_it_started() {
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
                // Not dropped: as when the whole test process is killed.
                std::mem::forget(running);
                process
            });
            started.join().expect("no panic")
        });
        wait::until_true("a candidate that is gone", || !process.lives());
    }
}
