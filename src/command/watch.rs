//! `watch`: shows how the law judges each record, for users and for tests. It reads like every other reader and writes nothing. It begins
//! up to 10,000 records before the first shown one, so that it knows the law's verdict on that one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::ops::Range;

use anyhow::{Result, anyhow, bail};
use neli_kafka::{ElectionId, Key, ReadRecord, clock};
use neli_proto::journal::Journal;
use neli_proto::leadership::ReadAt;
use neli_proto::listener::FIRST_SPAN;
use neli_proto::record::Offset;
use neli_proto::time::{Time, millis};

use crate::command::reading::{self, Input, Others, Place, Reading, Unread, is_hello, no_answer, read_at};
use crate::command::screen;
use crate::command::status;
use crate::command::watch::account::{Account, Position, Shown};
use crate::command::wording::no_record;
use crate::config::{Look, Watch, WatchFrom};
use crate::exit::{ExitStatus, with_status};
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
pub fn main(watch: &Watch) -> Result<ExitStatus> {
    let wants_lines = watch.json || watch.has_hellos || watch.until_end || watch.from.is_some();
    if !wants_lines && screen::is_drawable() {
        let Watch { election, client, json, timeout, .. } = watch.clone();
        let look = Look { election, client, json, timeout, warnings: Vec::new() };
        return status::live(&look);
    }
    match show(watch) {
        Ok(()) => Ok(ExitStatus::Success),
        // A closed pipe is no error; a full disk is one.
        Err(Obstacle::Stdout(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(ExitStatus::Success),
        Err(Obstacle::Stdout(error)) => Err(anyhow!("stdout: {}", reason(&error))),
        Err(Obstacle::Refused(refusal)) => Err(refusal),
    }
}

/// The reason for an early end of the display.
enum Obstacle {
    Refused(anyhow::Error),
    Stdout(io::Error),
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Self {
        Self::Stdout(error)
    }
}

impl From<anyhow::Error> for Obstacle {
    fn from(refusal: anyhow::Error) -> Self {
        Self::Refused(refusal)
    }
}

fn show(watch: &Watch) -> Result<(), Obstacle> {
    reading::run(async {
        let access = reading::access(&watch.client)?;
        let deadline = clock::now() + watch.timeout;
        let place = match Place::find(&access, &watch.election, watch.timeout, say_outage).await {
            Ok(place) => place,
            Err(Unread::NoAnswer(why)) => return Err(unknown(&why).into()),
            Err(Unread::Refused(refusal)) => return Err(refusal.into()),
        };
        let mut reading = place.read(&access)?;
        let mut show = Show::new(watch, &place)?;
        // If a refusal ends the display, the buffer is written when it is dropped.
        let mut screen = BufWriter::new(io::stdout());
        loop {
            let input = if let Some(input) = reading.try_next()? {
                input
            } else {
                // The output is flushed before each wait.
                screen.flush()?;
                let due = if show.has_begun() { show.poll_timeout() } else { Some(deadline) };
                reading.next(due).await?
            };
            if !show.has_begun() && matches!(input, Input::Timeout) {
                return Err(unknown(&no_answer(watch.timeout, show.trouble)).into());
            }
            let handled = show.handle(&mut reading, input);
            for line in show.accounts.iter_mut().flat_map(Account::take_lines) {
                writeln!(screen, "{line}")?;
            }
            handled?;
            if reading.is_at_end() && matches!(show.caught_up(), Step::Done) {
                show.accounts
                    .iter_mut()
                    .flat_map(Account::take_lines)
                    .try_for_each(|line| writeln!(screen, "{line}"))?;
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
    place: &'a Place,
    /// When each partition's end was asked for, its first and its next offset, until all are known.
    ends: BTreeMap<i32, (Time, Range<Offset>)>,
    /// The output of each election, which begins when the bounds of all logs are known.
    accounts: Vec<Account>,
    caught_up: bool,
    /// Whether a record of an election, or the hello of a candidate for one, was read.
    is_known: bool,
    /// The other elections whose records were read.
    others: Others,
    /// Why Kafka has not answered yet.
    trouble: Option<String>,
}

impl<'a> Show<'a> {
    fn new(watch: &'a Watch, place: &'a Place) -> Result<Self> {
        let partitions: BTreeSet<i32> = place.elections.iter().map(|election| election.partition).collect();
        if let (Some(WatchFrom::Offset(offset)), 2..) = (watch.from, partitions.len()) {
            place.one(&format!("--from {offset} is in one partition, and --role says in which"))?;
        }
        let (ends, accounts, others) = (BTreeMap::new(), Vec::new(), Others::default());
        Ok(Self { watch, place, ends, accounts, caught_up: false, is_known: false, others, trouble: None })
    }

    const fn has_begun(&self) -> bool {
        !self.accounts.is_empty()
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.accounts.iter().filter_map(|account| account.poll_timeout(read_at())).min()
    }

    /// The elections in a partition, with their accounts.
    fn in_partition(&mut self, partition: i32) -> impl Iterator<Item = (&ElectionId, &mut Account)> {
        let elections = self.place.elections.iter().zip(&mut self.accounts);
        elections.filter(move |(election, _)| election.partition == partition)
    }

    fn handle(&mut self, reading: &mut Reading, input: Input) -> Result<()> {
        let at = read_at();
        match input {
            Input::Cut => return Err(reading.history_cut()),
            Input::Down(error) => {
                say_outage(&error);
                self.accounts.iter_mut().for_each(Account::unanswered);
                self.trouble = Some(error).filter(|_| !self.has_begun());
            }
            Input::Ends { partition, asked, end, .. } if self.has_begun() => {
                self.in_partition(partition).for_each(|(_, account)| account.answered(at.now, asked, end));
            }
            Input::Ends { partition, asked, start, end } => {
                self.ends.insert(partition, (asked, start..end));
                if self.ends.len() == self.place.partitions().len() {
                    self.begin(reading)?;
                }
            }
            Input::Record { partition, record } => self.read(at, partition, &record),
            Input::Timeout => self.accounts.iter_mut().for_each(|account| account.handle_timeout(at)),
            Input::Up => say("Kafka answers again"),
            Input::Warning(warning) => say(&warning),
            Input::CaughtUp => {}
        }
        Ok(())
    }

    fn read(&mut self, at: ReadAt, partition: i32, record: &ReadRecord) {
        let ReadRecord { offset, key, value, written_ms, .. } = record;
        for (election, account) in self.in_partition(partition) {
            if *key == Key::Election(election.role) {
                account.read(at, *offset, value.as_deref(), *written_ms);
            } else {
                account.read_other(at.now, *offset);
            }
        }
        let place = self.place;
        self.is_known |= matches!(key, Key::Election(_));
        for election in &place.elections {
            self.is_known |= self.others.take_in(election, record);
        }
        let Some(group) = place.elections.first().map(|election| &election.group) else { return };
        // The offset where an election was read from has no meaning in another partition.
        let is_elsewhere = place.elections.iter().all(|election| election.partition != partition);
        let is_shown = self.watch.has_hellos
            && (!is_elsewhere
                || self.caught_up
                || matches!(self.watch.from, Some(WatchFrom::Since(_) | WatchFrom::Start)));
        if let (Some(value), Some(account)) = (value, self.accounts.first_mut())
            && is_shown
            && is_hello(group, record)
        {
            account.hello(at, Position { partition, offset: *offset }, value, *written_ms);
        }
    }

    /// Begins the output, since the bounds of all logs are known.
    fn begin(&mut self, reading: &mut Reading) -> Result<()> {
        for election in &self.place.elections {
            let Some((asked, Range { start, end })) = self.ends.get(&election.partition) else { continue };
            let first = match self.watch.from.unwrap_or(WatchFrom::End) {
                WatchFrom::End => *end,
                WatchFrom::Offset(offset) if offset > *end => {
                    bail!("--from {offset}: must be at most {end}, the log's end");
                }
                WatchFrom::Offset(offset) => offset.max(*start),
                WatchFrom::Since(_) | WatchFrom::Start => *start,
            };
            let since_ms = match self.watch.from.unwrap_or(WatchFrom::End) {
                WatchFrom::Since(span) => read_at().wall_ms.saturating_sub(millis(span)),
                WatchFrom::End | WatchFrom::Offset(_) | WatchFrom::Start => 0,
            };
            let from = (*start).max(first - RUN_UP);
            let mut journal = Journal::read_from(from, reading::origin(from, *start));
            journal.answered(clock::now(), *asked, *end);
            let (shown, is_one_of_many) = (Shown { first, since_ms }, self.place.elections.len() > 1);
            self.accounts.push(Account::new(self.watch.json, election, is_one_of_many, shown, journal));
        }
        for (partition, (_, Range { start, end })) in &self.ends {
            let elections = self.place.elections.iter().zip(&self.accounts);
            let first = elections
                .filter(|(election, _)| election.partition == *partition)
                .map(|(_, account)| account.next())
                .min();
            reading.read_from(*partition, first.unwrap_or((*start).max(end - FIRST_SPAN)));
        }
        Ok(())
    }

    /// Everything was read up to the ends that the logs had at the start.
    fn caught_up(&mut self) -> Step {
        // If there are other elections, the name may be mistyped. Without others, this election may be the first one.
        if let ([election, ..], false) = (self.place.elections.as_slice(), self.caught_up || self.is_known)
            && !self.others.groups.is_empty()
        {
            say(&no_record(election, &self.others));
        }
        if self.watch.until_end {
            for account in self.accounts.iter_mut().filter(|_| self.watch.from.is_some()) {
                account.tell_silence(read_at());
            }
            return Step::Done;
        }
        if !std::mem::replace(&mut self.caught_up, true) {
            self.accounts.iter_mut().for_each(|account| account.caught_up(read_at()));
        }
        Step::On
    }
}

/// The error for a Kafka that has not answered in time at the start.
fn unknown(why: &str) -> anyhow::Error {
    with_status(UNKNOWN, format!("can't tell who leads: {why}"))
}

fn say_outage(error: &str) {
    say(&format!("Kafka does not answer, so it is unknown who leads: {error}; waiting"));
}

/// Prints a line on stderr. If stderr is closed, it is lost.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "neli-run: warning: {}", one_line(line));
}
