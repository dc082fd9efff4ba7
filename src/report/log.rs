//! The log: one line per event, one `write` per line. The program never waits for it.
//!
//! Lines go through a bounded queue to a thread of their own. While the descriptor accepts nothing (a full pipe, Ctrl-S, a full disk, a
//! closed pipe), 1,000 lines are kept; later ones are dropped and counted. `O_NONBLOCK` is never set on 0, 1 or 2, since the job shares
//! them.
//!
//! Several candidates may append to one file: a line is one `write` at its end. The health command's output to stderr uses the same queue,
//! so that the program never waits for that either.
//!
//! The thread inherits the signal mask of its creator, which has blocked every signal. The guard writes no log.

use std::collections::VecDeque;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use neli_kafka::{ElectionId, clock};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{AccessFlags, eaccess};
use serde_json::{Value, json};

use crate::config::Log;
use crate::exit::{ExitStatus, with_status};
use crate::process::locked;
use crate::text::{one_line, reason};

mod event;

pub use event::{Event, Level};

use event::role_of;

/// How many lines are kept while the descriptor accepts none.
const QUEUE_LINES: usize = 1_000;
/// How many of them may be from librdkafka or a health command, which write thousands.
const QUEUE_LINES_OF_DEBUG: usize = QUEUE_LINES / 2;
/// How long the exit waits for the last lines while the descriptor accepts none.
const DRAIN: Duration = Duration::from_millis(100);
/// How long the exit waits if the descriptor accepts lines, but the writer gets no processor time.
const STARVATION: Duration = Duration::from_secs(2);
/// The delay between two attempts to write.
const RETRY: Duration = Duration::from_secs(1);

/// The log. Clones share it.
#[derive(Clone, Debug)]
pub struct Logger {
    form: Form,
    queue: Arc<Queue>,
}

/// The form of lines, the verbosity, and who writes them.
#[derive(Clone, Debug)]
struct Form {
    is_json: bool,
    /// Whether lines begin with a priority, which the journal removes.
    has_priorities: bool,
    least: Level,
    /// `--name`.
    name: String,
    /// The prefix that distinguishes the text lines of several candidates.
    pid: u32,
    /// `--group`.
    group: String,
    /// The role, if there are several.
    role: Option<Value>,
}

impl Logger {
    /// Starts the writing thread. Call it with every signal blocked.
    ///
    /// # Errors
    ///
    /// The file can't be opened for appending, or no thread can be started.
    pub(crate) fn start(log: &Log, group: &str, name: &str) -> Result<Self> {
        let least = match log.verbosity {
            ..0 => Level::Warning,
            0 => Level::Info,
            1.. => Level::Debug,
        };
        let form = Form {
            is_json: log.is_json,
            has_priorities: log.file.is_none() && is_stderr_the_journal(),
            least,
            name: name.to_owned(),
            pid: std::process::id(),
            group: group.to_owned(),
            role: None,
        };
        Self::start_on(Sink::open(log)?, form)
    }

    /// The same log for lines about one of several roles.
    pub(crate) fn of_role(&self, election: &ElectionId) -> Self {
        let form = Form { role: Some(role_of(election)), ..self.form.clone() };
        Self { form, queue: Arc::clone(&self.queue) }
    }

    /// Another log of the same form that writes to stderr, even if this one writes to a file.
    ///
    /// # Errors
    ///
    /// There is no free descriptor, or no thread can be started.
    pub(crate) fn on_stderr(&self) -> Result<Self> {
        let has_priorities = is_stderr_the_journal();
        Self::start_on(Sink::stderr()?, Form { has_priorities, ..self.form.clone() })
    }

    fn start_on(sink: Sink, form: Form) -> Result<Self> {
        let queue = Arc::new(Queue::default());
        let writer = Arc::clone(&queue);
        let thread = std::thread::Builder::new().name("log".to_owned());
        let of_writer = form.clone();
        thread.spawn(move || write_lines(&writer, sink, &of_writer)).context("the log's thread can't be started")?;
        Ok(Self { form, queue })
    }

    /// Logs an event, and returns at once.
    pub(crate) fn event(&self, event: &Event) {
        if event.level >= self.form.least {
            self.queue.push(self.form.line(event).into_bytes(), event.level, &self.form);
        }
    }

    /// Logs a warning, and returns at once.
    pub(crate) fn warn(&self, message: impl Into<String>) {
        self.event(&Event::warning(message));
    }

    /// Passes on a line of another process unchanged, and returns at once. It counts as a line of level `Debug`.
    pub(crate) fn pass_on(&self, line: &[u8]) {
        self.queue.push(line.to_owned(), Level::Debug, &self.form);
    }

    /// Waits until the lines so far are written, for 100 ms at most while the descriptor accepts none.
    pub(crate) fn flush(&self) {
        self.queue.drain(locked(&self.queue.state));
    }

    /// Waits until the last lines are written, for 100 ms at most while the descriptor accepts none.
    pub(crate) fn finish(&self) {
        let mut state = locked(&self.queue.state);
        state.is_finished = true;
        self.queue.changed.notify_all();
        self.queue.drain(state);
    }
}

impl Form {
    fn line(&self, event: &Event) -> String {
        let line = event::line(self, clock::wall_ms(), event);
        if self.has_priorities { format!("{}{line}", event.level.priority()) } else { line }
    }
}

/// The lines that are not written yet.
#[derive(Debug, Default)]
struct Queue {
    state: Mutex<WriterState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct WriterState {
    lines: VecDeque<Vec<u8>>,
    /// The number of lines that were dropped because the queue was full, after all lines in it.
    dropped: u64,
    writer: Writer,
    /// Whether no more lines come.
    is_finished: bool,
}

/// The state of the writer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Writer {
    /// It has given up, after the last line: the rest will not be written.
    Gone,
    /// It has no line to write.
    #[default]
    Idle,
    /// It has a line that the descriptor does not accept.
    Stalled,
    /// It is writing a line.
    Writing,
}

impl WriterState {
    fn is_written(&self) -> bool {
        self.writer == Writer::Idle && self.lines.is_empty() && self.dropped == 0
    }

    /// The report about lines that were dropped, if there are any.
    fn take_dropped(&mut self, form: &Form) -> Option<Vec<u8>> {
        let count = mem::take(&mut self.dropped);
        (count > 0).then(|| {
            let message =
                format!("{count} lines of this log were lost here, because they could not be written in time");
            form.line(&Event::warning(message).with(json!({ "dropped": count }))).into_bytes()
        })
    }
}

impl Queue {
    fn push(&self, line: Vec<u8>, level: Level, form: &Form) {
        let room = if level == Level::Debug { QUEUE_LINES_OF_DEBUG } else { QUEUE_LINES };
        let mut state = locked(&self.state);
        // The writer has ended or is about to, so this last line would never be written.
        if state.is_finished {
            return;
        }
        if state.lines.len() >= room {
            state.dropped += 1;
            return;
        }
        // The report about dropped lines goes to the place where they are missing, which is after the lines that are queued now.
        let dropped = state.take_dropped(form);
        state.lines.extend(dropped.into_iter().chain([line]));
        drop(state);
        self.changed.notify_all();
    }

    /// The next line; `None` at the end.
    fn next(&self, form: &Form) -> Option<Vec<u8>> {
        let mut state = locked(&self.state);
        state.writer = Writer::Idle;
        self.changed.notify_all();
        let waited = self.changed.wait_while(state, |state| state.is_written() && !state.is_finished);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        let line = state.lines.pop_front().or_else(|| state.take_dropped(form))?;
        state.writer = Writer::Writing;
        Some(line)
    }

    /// Waits before the next attempt to write; returns false if there will be none.
    fn pause(&self) -> bool {
        let waited = self.changed.wait_timeout_while(locked(&self.state), RETRY, |state| !state.is_finished);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_finished {
            state.writer = Writer::Gone;
            self.changed.notify_all();
        }
        !state.is_finished
    }

    fn drain(&self, state: MutexGuard<'_, WriterState>) {
        let waits = |state: &WriterState| state.writer != Writer::Gone && !state.is_written();
        let waited = self.changed.wait_timeout_while(state, DRAIN, |state| waits(state));
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(
            self.changed.wait_timeout_while(state, STARVATION, |state| waits(state) && state.writer != Writer::Stalled),
        );
    }

    /// Notes the writer's next step.
    fn note(&self, writer: Writer) {
        let mut state = locked(&self.state);
        if state.writer != writer {
            state.writer = writer;
            self.changed.notify_all();
        }
    }

    #[cfg(test)]
    fn is_written(&self) -> bool {
        locked(&self.state).is_written()
    }
}

/// The log's thread: writes lines until the end.
fn write_lines(queue: &Queue, mut sink: Sink, form: &Form) {
    while let Some(line) = queue.next(form) {
        sink.follow();
        if !write_line(queue, &sink, &line) {
            return;
        }
    }
}

/// Writes a whole line, and waits as long as necessary; returns false if the log was finished before.
fn write_line(queue: &Queue, sink: &Sink, line: &[u8]) -> bool {
    // After a full disk has cut a line, it is written again after a newline, because others may have appended meanwhile.
    let again = [b"\n", line].concat();
    let (mut rest, mut cut, mut is_told) = (line, false, false);
    while !rest.is_empty() {
        // A blocked write can't report its state. So the state is noted before the write, for the thread that waits for the last lines.
        queue.note(if takes_lines(sink, PollTimeout::ZERO) { Writer::Writing } else { Writer::Stalled });
        match nix::unistd::write(&sink.descriptor, rest) {
            Ok(written) => {
                rest = rest.get(written..).unwrap_or_default();
                cut = true;
            }
            Err(Errno::EINTR) => {}
            // Another process, possibly the job, has set O_NONBLOCK. An error here occurs at the next write again.
            Err(Errno::EAGAIN) => {
                takes_lines(sink, PollTimeout::try_from(RETRY).unwrap_or(PollTimeout::MAX));
            }
            Err(error) => {
                if cut {
                    rest = &again;
                }
                if !mem::replace(&mut is_told, true) {
                    sink.say_refused(error);
                }
                if !queue.pause() {
                    return false;
                }
            }
        }
    }
    true
}

/// Whether a write would not block, waiting at most `within`.
fn takes_lines(sink: &Sink, within: PollTimeout) -> bool {
    poll(&mut [PollFd::new(sink.descriptor.as_fd(), PollFlags::POLLOUT)], within) != Ok(0)
}

/// The destination of the lines: stderr, or a file that is appended to and reopened when it is renamed.
#[derive(Debug)]
struct Sink {
    descriptor: OwnedFd,
    /// The file's path, and its device and inode when it was opened, if it may be renamed.
    file: Option<(PathBuf, (u64, u64))>,
    /// `--log-file` and its value, as typed.
    named: Option<String>,
    /// Whether it was said that the present file is not at its path any more.
    is_left: bool,
}

impl Sink {
    /// The destination: stderr, or the file of `--log-file`.
    ///
    /// # Errors
    ///
    /// The file can't be opened for appending.
    fn open(log: &Log) -> Result<Self> {
        let Some(path) = &log.file else { return Self::stderr() };
        let opened = Self::append_to(path).map_err(|error| not_opened(log, error))?;
        Ok(Self { named: Some(log.file_shown.clone()), ..opened })
    }

    /// The destination stderr.
    ///
    /// # Errors
    ///
    /// There is no free descriptor.
    fn stderr() -> Result<Self> {
        let descriptor = io::stderr().as_fd().try_clone_to_owned();
        descriptor.map(Self::from).context("stderr")
    }

    fn append_to(path: &Path) -> io::Result<Self> {
        // A named pipe without a reader must not block the start, and a terminal must not become the controlling one.
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let file: File = OpenOptions::new().append(true).create(true).custom_flags(flags.bits()).open(path)?;
        let metadata = file.metadata()?;
        let identity = metadata.is_file().then(|| (metadata.dev(), metadata.ino()));
        let file_at = identity.map(|identity| (path.to_owned(), identity));
        Ok(Self { descriptor: file.into(), file: file_at, named: None, is_left: false })
    }

    /// Opens a new file if the present one was renamed or removed (`logrotate`).
    fn follow(&mut self) {
        let Some((path, identity)) = &self.file else { return };
        let found = fs::metadata(path).map(|found| (found.dev(), found.ino()));
        if found.is_ok_and(|found| found == *identity) {
            return;
        }
        match Self::append_to(path) {
            Ok(anew) => *self = Self { named: self.named.take(), ..anew },
            // Until a new file can be opened, the old one still accepts lines.
            Err(error) if !mem::replace(&mut self.is_left, true) => {
                let why = reason(&error);
                self.say(&format!(
                    "it was renamed or removed, and can't be created again: {why}; the log goes on in the old file until there is a new one \
                     (logrotate: create)"
                ));
            }
            Err(_) => {}
        }
    }

    /// Says on stderr that a line can't be written to the file.
    fn say_refused(&self, error: Errno) {
        let why = reason(&error.into());
        let lost = format!("up to {QUEUE_LINES} lines wait for room, and are lost if neli-run ends before");
        self.say(&format!("can't be written: {why}; {lost}"));
    }

    /// Says on stderr what is wrong with the file, unless that would wait.
    fn say(&self, what: &str) {
        let Some(named) = &self.named else { return };
        let Ok(stderr) = Self::stderr() else { return };
        if takes_lines(&stderr, PollTimeout::ZERO) {
            say_at(Level::Error, &format!("{named}: {what}"));
        }
    }
}

fn not_opened(log: &Log, error: io::Error) -> anyhow::Error {
    let cause = match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENXIO) => anyhow!("it is a named pipe that nobody reads, or a socket"),
        // A disk that is full for now is no reason to be out of the election for good.
        Some(Errno::ENOSPC | Errno::EDQUOT) => with_status(ExitStatus::UNAVAILABLE, reason(&error)),
        _ => error.into(),
    };
    cause.context(format!("{}: can't be opened", log.file_shown))
}

/// Whether the file of `--log-file` could be opened. It is not created, and a pipe is not opened: its reader would take that for its end.
///
/// # Errors
///
/// It could not be opened for appending.
pub(crate) fn check_file(log: &Log) -> Result<()> {
    let Some(path) = &log.file else { return Ok(()) };
    let checked = match fs::metadata(path) {
        Ok(found) if found.is_file() || found.is_dir() => OpenOptions::new().append(true).open(path).map(drop),
        Ok(_) => eaccess(path, AccessFlags::W_OK).map_err(io::Error::from),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            eaccess(directory, AccessFlags::W_OK | AccessFlags::X_OK).map_err(io::Error::from)
        }
        Err(error) => Err(error),
    };
    checked.map_err(|error| not_opened(log, error))
}

impl From<OwnedFd> for Sink {
    fn from(descriptor: OwnedFd) -> Self {
        Self { descriptor, file: None, named: None, is_left: false }
    }
}

/// Prints a line on stderr. systemd's journal, if stderr is one, gets its level too. If stderr is closed, the line is lost.
pub fn say_at(level: Level, line: &str) {
    let priority = if is_stderr_the_journal() { level.priority() } else { "" };
    let _ = writeln!(io::stderr(), "{priority}neli-run: {}", one_line(line));
}

/// Whether stderr is systemd's journal: `$JOURNAL_STREAM` contains its device and inode, which differ if stderr was redirected since.
fn is_stderr_the_journal() -> bool {
    let Some(named) = env::var_os("JOURNAL_STREAM") else { return false };
    let stderr = io::stderr().as_fd().try_clone_to_owned().map(File::from);
    let identity = stderr.and_then(|file| file.metadata()).map(|file| format!("{}:{}", file.dev(), file.ino()));
    identity.is_ok_and(|identity| named == *identity)
}

#[cfg(test)]
mod tests;
