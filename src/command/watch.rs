//! `watch`: shows how the law judges each record, for users and for tests. It reads like every other reader and writes nothing. It begins
//! up to 10,000 records before the first shown one, so that it knows the law's verdict on that one.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::ops::Range;

use neli::program::{ElectionId, Elections, Key, clock};
use neli_proto::journal::Journal;
use neli_proto::record::Offset;
use neli_proto::time::{Time, millis};

use crate::command::reading::{self, Input, Others, Place, Reading, Unread, is_hello, no_answer, read_at};
use crate::command::screen;
use crate::command::status::{self, How};
use crate::command::watch::account::{Account, Position, Shown};
use crate::command::wording::no_record;
use crate::config::{Look, Watch, WatchFrom};
use crate::exit::{ExitStatus, StartupError};
use crate::text::{one_line, reason};

mod account;

/// Kafka does not answer in time.
const UNKNOWN: ExitStatus = ExitStatus::Answer(4);
/// How far before the first shown record the reading begins.
const RUN_UP: Offset = 10_000;

/// Shows the election until the requested end, or until stdout is closed: on a terminal as a page, unless lines were
/// requested.
///
/// # Errors
/// Kafka refuses permanently, `--from` is behind the end, the history was cut or can't be decoded, or stdout can't be
/// written.
pub fn main(watch: &Watch) -> Result<ExitStatus, StartupError> {
    let wants_lines = watch.json || watch.has_hellos || watch.until_end || watch.from.is_some();
    if !wants_lines && screen::is_drawable() {
        let Watch { election, client, json, timeout, .. } = watch.clone();
        let look = Look { election, client, json, timeout, warnings: Vec::new() };
        return status::shown(&look, How::Live);
    }
    match show(watch) {
        Ok(()) => Ok(ExitStatus::Success),
        // A closed pipe is no error; a full disk is one.
        Err(Obstacle::Stdout(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(ExitStatus::Success),
        Err(Obstacle::Stdout(error)) => Err(StartupError::new(format!("stdout: {}", reason(&error)))),
        Err(Obstacle::Refused(refusal)) => Err(refusal),
    }
}

/// The reason for an early end of the display.
enum Obstacle {
    Refused(StartupError),
    Stdout(io::Error),
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Self {
        Self::Stdout(error)
    }
}

impl From<StartupError> for Obstacle {
    fn from(refusal: StartupError) -> Self {
        Self::Refused(refusal)
    }
}

fn show(watch: &Watch) -> Result<(), Obstacle> {
    reading::run(async {
        let access = reading::access(&watch.client)?;
        let deadline = clock::now() + watch.timeout;
        let place = match Place::find(&access, &watch.election, watch.timeout).await {
            Ok(place) => place,
            Err(Unread::NoAnswer(why)) => return Err(unknown(&why).into()),
            Err(Unread::Refused(refusal)) => return Err(refusal.into()),
        };
        let mut reading =
            if watch.has_hellos { Reading::with_hellos(&access, &place)? } else { Reading::of(&access, &place)? };
        let mut show = Show {
            watch,
            election: &place.election,
            account: None,
            end: 0,
            caught_up: false,
            is_known: false,
            others: Others::default(),
            trouble: None,
        };
        // If a refusal ends the display, the buffer is written when it is dropped.
        let mut screen = BufWriter::new(io::stdout());
        loop {
            let input = if let Some(input) = reading.try_next()? {
                input
            } else {
                // The output is flushed before each wait.
                screen.flush()?;
                let due = match &show.account {
                    Some(account) => account.poll_timeout(read_at()),
                    None => Some(deadline),
                };
                reading.next(due).await?
            };
            if show.account.is_none() && matches!(input, Input::Timeout) {
                return Err(unknown(&no_answer(watch.timeout, show.trouble)).into());
            }
            let step = show.handle(&reading, input);
            for line in show.account.as_mut().map(Account::take_lines).unwrap_or_default() {
                writeln!(screen, "{line}")?;
            }
            if let Step::Done = step? {
                return Ok(screen.flush()?);
            }
        }
    })
}

/// Whether the display continues.
enum Step {
    Done,
    On,
}

struct Show<'a> {
    watch: &'a Watch,
    election: &'a ElectionId,
    /// The output, which begins when the first and the next offset of the log are known.
    account: Option<Account>,
    /// The log's next offset at that time.
    end: Offset,
    caught_up: bool,
    /// Whether a record of the election, or the hello of a candidate for it, was read.
    is_known: bool,
    /// The other elections whose records were read.
    others: Others,
    /// Why Kafka has not answered yet.
    trouble: Option<String>,
}

impl Show<'_> {
    fn handle(&mut self, reading: &Reading, input: Input) -> Result<Step, StartupError> {
        let at = read_at();
        match (input, &mut self.account) {
            (Input::CaughtUp(next), _) => return Ok(self.read_up_to(next)),
            (Input::Cut, _) => return Err(reading.history_cut()),
            (Input::Down(error), None) => {
                say(&format!("Kafka does not answer: {error}; waiting"));
                self.trouble = Some(error);
            }
            (Input::Down(error), Some(account)) => {
                say(&format!("Kafka does not answer, so it is unknown who leads: {error}; waiting"));
                account.unanswered();
            }
            (Input::Ends { asked, end, .. }, Some(account)) => account.answered(at.now, asked, end),
            (Input::Ends { asked, start, end }, None) => return self.begin(reading, asked, start..end),
            (Input::Hello(record), Some(account)) => {
                // The offset where the election was read from has no meaning in another partition.
                let is_shown =
                    self.caught_up || matches!(self.watch.from, Some(WatchFrom::Since(_) | WatchFrom::Start));
                if let Some(value) = record.value.filter(|_| is_shown) {
                    let position = Position { partition: Elections::PARTITION_OF_HELLOS, offset: record.offset };
                    account.hello(at, position, &value, record.written_ms);
                }
            }
            (Input::Record(record), Some(account)) => {
                let offset = record.offset;
                if let Key::Election(_) = record.key {
                    self.is_known = true;
                    account.read(at, offset, record.value.as_deref(), record.written_ms);
                } else {
                    account.read_other(at.now, offset);
                    self.is_known |= self.others.take_in(self.election, &record);
                    let is_shown_hello = self.watch.has_hellos && is_hello(&self.election.group, &record);
                    if let Some(value) = record.value.filter(|_| is_shown_hello) {
                        let position = Position { partition: self.election.partition, offset };
                        account.hello(at, position, &value, record.written_ms);
                    }
                }
                return Ok(self.read_up_to(offset + 1));
            }
            (Input::Timeout, Some(account)) => account.handle_timeout(at),
            (Input::Up, _) => say("Kafka answers again"),
            (Input::Warning(warning), _) => say(&warning),
            // No record comes before the log's bounds are known.
            (Input::Hello(_) | Input::Record(_) | Input::Timeout, _) => {}
        }
        Ok(Step::On)
    }

    /// Begins the output. The log had these offsets when it was `asked`.
    fn begin(&mut self, reading: &Reading, asked: Time, log: Range<Offset>) -> Result<Step, StartupError> {
        let Range { start, end } = log;
        let first = match self.watch.from.unwrap_or(WatchFrom::End) {
            WatchFrom::End => end,
            WatchFrom::Offset(offset) if offset > end => {
                return Err(StartupError::new(format!("--from {offset}: must be at most {end}, the log's end")));
            }
            WatchFrom::Offset(offset) => offset.max(start),
            WatchFrom::Since(_) | WatchFrom::Start => start,
        };
        let since_ms = match self.watch.from.unwrap_or(WatchFrom::End) {
            WatchFrom::Since(span) => read_at().wall_ms.saturating_sub(millis(span)),
            WatchFrom::End | WatchFrom::Offset(_) | WatchFrom::Start => 0,
        };
        let from = start.max(first - RUN_UP);
        self.end = end;
        let mut journal = Journal::read_from(from, reading.origin(from, start));
        journal.answered(clock::now(), asked, end);
        self.account = Some(Account::new(self.watch.json, self.election.partition, Shown { first, since_ms }, journal));
        reading.read_from(from);
        Ok(self.read_up_to(from))
    }

    fn read_up_to(&mut self, next: Offset) -> Step {
        if next < self.end {
            return Step::On;
        }
        // If there are other elections, the name may be mistyped. Without others, this election may be the first one.
        let has_others = !self.others.groups.is_empty() || self.others.other_roles(self.election).is_some();
        if !self.caught_up && !self.is_known && has_others {
            say(&no_record(self.election, &self.others));
        }
        if self.watch.until_end {
            if let Some(account) = self.account.as_mut().filter(|_| self.watch.from.is_some()) {
                account.tell_silence(read_at());
            }
            return Step::Done;
        }
        if !std::mem::replace(&mut self.caught_up, true)
            && let Some(account) = &mut self.account
        {
            account.caught_up(read_at());
        }
        Step::On
    }
}

/// The error for a Kafka that has not answered in time at the start.
fn unknown(why: &str) -> StartupError {
    StartupError::with(UNKNOWN, format!("can't tell who leads: {why}"))
}

/// Prints a line on stderr. If stderr is closed, it is lost.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "neli-run: warning: {}", one_line(line));
}
