//! A running `neli-run`, and the events that it has logged.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::process::Process;
use crate::wait;

/// An event of the log.
#[derive(Clone, Debug)]
pub struct Event {
    /// When the test read the line, in nanoseconds of `CLOCK_BOOTTIME`: slightly after it was written.
    pub at: u64,
    /// The line as JSON.
    pub fields: Value,
}

impl Event {
    /// The event's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.fields["event"].as_str().unwrap_or_default()
    }

    /// A numeric field.
    #[must_use]
    pub fn number(&self, field: &str) -> u64 {
        self.fields[field].as_u64().unwrap_or_else(|| panic!("no number `{field}` in {}", self.fields))
    }

    /// A text field; empty if it is absent.
    #[must_use]
    pub fn text(&self, field: &str) -> &str {
        self.fields[field].as_str().unwrap_or_default()
    }
}

/// A line that the harness itself writes to the process's stderr. When it is read, all earlier lines have been read.
const MARK: &str = "\u{1}read up to here";

/// A running `neli-run`. When dropped it is killed together with all its descendants.
pub struct Running {
    child: Child,
    process: Process,
    shared: Arc<Shared>,
    /// The pipe of its stderr, which is needed to open a second write end.
    errors: OwnedFd,
    /// For each event name, how many events were returned already.
    returned: HashMap<String, usize>,
    guard: Option<Process>,
    /// The time just before its start, in nanoseconds of `CLOCK_BOOTTIME`.
    pub started_at: u64,
}

/// The output of a `neli-run` so far.
#[derive(Default)]
struct Shared {
    state: Mutex<OutputState>,
    changed: Condvar,
}

#[derive(Default)]
struct OutputState {
    events: Vec<Event>,
    /// Lines on stderr that are not log events: the job's output.
    strange: Vec<String>,
    /// How many [`MARK`] lines were read.
    marks: u32,
    errors_ended: bool,
    output: Option<Vec<u8>>,
}

impl Running {
    /// Starts the command, gives it `input`, and reads its log.
    pub(super) fn spawn(mut command: Command, input: Option<Vec<u8>>) -> Self {
        let started_at = wait::now();
        let mut child = command.spawn().expect("setpriv is part of util-linux: apt-get install util-linux");

        let process = Process::child(child.id());
        let shared = Arc::new(Shared::default());
        if let (Some(mut stdin), Some(bytes)) = (child.stdin.take(), input) {
            // A job that does not read its input does not fail the test.
            thread::spawn(move || drop(stdin.write_all(&bytes)));
        }
        let stderr = child.stderr.take().expect("piped");
        let errors = stderr.as_fd().try_clone_to_owned().expect("a descriptor");
        let listener = Arc::clone(&shared);
        thread::spawn(move || listener.listen(BufReader::new(stderr)));
        let mut output = child.stdout.take().expect("piped");
        let listener = Arc::clone(&shared);
        thread::spawn(move || {
            let mut text = Vec::new();
            output.read_to_end(&mut text).expect("a pipe can be read");
            listener.state().output = Some(text);
            listener.changed.notify_all();
        });
        Self { child, process, shared, errors, returned: HashMap::new(), guard: None, started_at }
    }

    /// The supervisor's process.
    #[must_use]
    pub fn process(&self) -> Process {
        self.process
    }

    /// The guard's process: the supervisor's child with that name.
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

    /// Sends a signal to the supervisor.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Waits for the first event of this name that was not returned yet.
    pub fn await_event(&mut self, name: &str) -> Event {
        self.await_event_within(name, wait::PATIENCE)
            .unwrap_or_else(|| panic!("no `{name}`, for {:?} or before its stderr was closed", wait::PATIENCE))
    }

    /// Like [`Self::await_event`], but `None` if the event does not come within `bound`, or if the process has ended without it.
    pub fn await_event_within(&mut self, name: &str, bound: Duration) -> Option<Event> {
        let seen = self.returned.entry(name.to_owned()).or_default();
        let nth = *seen;
        let find = |state: &OutputState| state.events.iter().filter(|event| event.name() == name).nth(nth).cloned();
        let state = self.shared.await_until(bound, |state| state.errors_ended || find(state).is_some());
        let found = find(&state);
        *seen += usize::from(found.is_some());
        found
    }

    /// All events of this name so far.
    #[must_use]
    pub fn events(&self, name: &str) -> Vec<Event> {
        self.shared.state().events.iter().filter(|event| event.name() == name).cloned().collect()
    }

    /// The messages of all warnings so far that contain all these words.
    #[must_use]
    pub fn warnings_with(&self, words: &str) -> Vec<String> {
        let messages = self.events("warning").into_iter().map(|event| event.text("message").to_owned());
        messages.filter(|message| message.contains(words)).collect()
    }

    /// All events so far.
    #[must_use]
    pub fn history(&self) -> Vec<Event> {
        self.shared.state().events.clone()
    }

    /// All events after the first `count`.
    #[must_use]
    pub fn history_from(&self, first: usize) -> Vec<Event> {
        self.shared.state().events[first..].to_vec()
    }

    /// The number of events of this name so far.
    #[must_use]
    pub fn count(&self, name: &str) -> usize {
        self.shared.state().events.iter().filter(|event| event.name() == name).count()
    }

    /// Its exit status as a shell reports it, if it has ended.
    pub fn ended(&mut self) -> Option<i32> {
        let status = self.child.try_wait().expect("a child can be waited for")?;
        Some(status.code().unwrap_or_else(|| 128 + status.signal().expect("neither exited nor killed")))
    }

    /// The lines on stderr that are not log events: the job's output.
    #[must_use]
    pub fn strange_lines(&self) -> Vec<String> {
        self.shared.state().strange.clone()
    }

    /// Waits for the next `job_started`, and returns the job's main process.
    pub fn await_job(&mut self) -> Process {
        let pid = self.await_event("job_started").number("pid");
        let pid = i32::try_from(pid).expect("a pid");
        Process::find(pid).unwrap_or_else(|| panic!("the job {pid} is gone"))
    }

    /// Waits until it leads, and returns the term.
    pub fn await_lead(&mut self) -> u64 {
        self.await_event("leading").number("term")
    }

    /// Waits for the next release of a term in which it led. On a stalled machine a claim may be read back too late to be used; its term is
    /// released as well, and is skipped here.
    pub fn await_release(&mut self) -> Event {
        loop {
            let released = self.await_event("released");
            if released.text("why") != "claim-expired" {
                return released;
            }
        }
    }

    /// Waits for its end, and until its whole log is read. Returns the exit status as a shell reports it: 128 + n after signal n.
    pub fn status(&mut self) -> i32 {
        let ended = wait::poll_for(wait::PATIENCE, || self.ended());
        let status = ended.unwrap_or_else(|| panic!("the candidate has not ended within {:?}", wait::PATIENCE));
        self.await_read();
        status
    }

    /// Waits until all output to stderr so far has been read. Other processes may keep stderr open for longer.
    fn await_read(&self) {
        let marks_before = {
            let state = self.shared.state();
            if state.errors_ended {
                return;
            }
            state.marks
        };
        // Opening the pipe's entry under /proc gives another write end of the same pipe.
        let pipe = format!("/proc/self/fd/{}", self.errors.as_raw_fd());
        let mut pipe = File::options().write(true).open(pipe).expect("our own pipe");
        writeln!(pipe, "{MARK}").expect("a pipe that is read");
        drop(pipe);
        let state = self.shared.await_until(wait::PATIENCE, |state| state.errors_ended || state.marks > marks_before);
        assert!(state.errors_ended || state.marks > marks_before, "the log was not closed within {:?}", wait::PATIENCE);
    }

    /// Waits until every process has closed stdout, and returns what was written to it.
    #[must_use]
    pub fn output(&self) -> Vec<u8> {
        let state = self.shared.await_until(wait::PATIENCE, |state| state.output.is_some());
        state.output.clone().unwrap_or_else(|| panic!("stdout was not closed within {:?}", wait::PATIENCE))
    }

    /// Waits until every process has closed stderr.
    pub fn await_silence(&self) {
        let state = self.shared.await_until(wait::PATIENCE, |state| state.errors_ended);
        assert!(state.errors_ended, "stderr was not closed within {:?}", wait::PATIENCE);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, OutputState> {
        self.state.lock().expect("no panic while it was locked")
    }

    fn await_until(&self, bound: Duration, condition: impl Fn(&OutputState) -> bool) -> MutexGuard<'_, OutputState> {
        self.changed
            .wait_timeout_while(self.state(), bound, |state| !condition(state))
            .expect("no panic while it was locked")
            .0
    }

    /// Reads lines until the end of the stream.
    fn listen(&self, errors: impl BufRead) {
        for line in errors.split(b'\n').map_while(Result::ok) {
            let at = wait::now();
            self.state().take(at, String::from_utf8_lossy(&line).into_owned());
            self.changed.notify_all();
        }
        self.state().errors_ended = true;
        self.changed.notify_all();
    }
}

impl OutputState {
    fn take(&mut self, at: u64, line: String) {
        if let Some(before) = line.strip_suffix(MARK) {
            self.marks += 1;
            // This is a last line without a newline.
            if !before.is_empty() {
                self.take(at, before.to_owned());
            }
            return;
        }
        match serde_json::from_str(&line) {
            Ok(fields @ Value::Object(_)) => self.events.push(Event { at, fields }),
            _ => self.strange.push(line),
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state();
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
    #[expect(clippy::print_stderr, reason = "a failed test prints the logs of its candidates")]
    fn drop(&mut self) {
        // It is stopped first, because a living supervisor would start a new guard in place of one that is killed here.
        self.process.signal(Signal::SIGSTOP);
        // No descendant may outlive the test, even if the program is broken.
        Process::cut_power([vec![self.process], self.process.descendants()].concat());
        self.child.wait().expect("a child can be waited for");
        if thread::panicking() {
            eprintln!("{self:?}");
        }
    }
}
