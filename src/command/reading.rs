//! The journal, as the commands that look at an election read it. They join no group; READ on the topic is enough.

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use neli::program::{
    Access, Brokers, Client, Elections, KafkaEvent, Key, ReadRecord, Reader, ReadingEvent, Source, clock, embedded,
};
use neli_proto::journal::{Journal, Origin, View};
use neli_proto::listener::FIRST_SPAN;
use neli_proto::observer::{Observer, ReadAt};
use neli_proto::record::{Offset, Record};
use neli_proto::time::Time;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::exit::StartupError;
use crate::process::timer::Timer;
use crate::report::log::spoken;
use crate::text::reason;

/// How many events may wait.
const WAITING: usize = 1_000;
/// How long the record of the current term's claim is waited for, where it was not read: it only tells since when somebody leads.
const CLAIM_WITHIN: Duration = Duration::from_millis(300);
/// Where what was read does not tell who leads, the next reading begins so many times as far back.
const FURTHER: Offset = 8;

/// What comes next.
#[derive(Debug)]
pub(super) enum Input {
    /// Everything below was handed over.
    CaughtUp(Offset),
    /// The history is cut or made anew.
    Cut,
    /// No broker answers.
    Down(String),
    /// Where the log begins and ends.
    Ends { asked: Time, start: Offset, end: Offset },
    /// A record.
    Record(ReadRecord),
    /// The time that was given has come.
    Timeout,
    /// A broker answers again.
    Up,
    /// Something odd that stops nothing.
    Warning(String),
}

/// One reading of a partition.
pub(super) struct Reading {
    source: Source,
    partition: i32,
    reader: Reader,
    /// How many readings there have been: events of an earlier one are dropped.
    number: u32,
    sender: Sender<KafkaEvent>,
    events: Receiver<KafkaEvent>,
    timer: Timer,
    timer_is_set_to: Option<Time>,
}

/// Runs what waits, in a runtime of its own.
///
/// # Errors
///
/// What it gives, or that the kernel has no descriptor to spare.
pub(super) fn run<T, E: From<StartupError>>(waits: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    runtime.map_err(|error| cannot_wait(&error))?.block_on(waits)
}

/// A timer that is not set. To be called within a runtime.
///
/// # Errors
///
/// The kernel has no descriptor to spare.
pub(super) fn timer() -> Result<Timer, StartupError> {
    Timer::new().map_err(|error| cannot_wait(&error))
}

/// Now, by both clocks.
pub(super) fn read_at() -> ReadAt {
    ReadAt { now: clock::now(), wall_ms: clock::wall_ms() }
}

/// How Kafka is reached.
///
/// # Errors
///
/// `--embedded`, and no such broker runs.
pub(super) fn access(client: &Client) -> Result<Access, StartupError> {
    match &client.brokers {
        Brokers::At(bootstrap) => Ok(Access::at(bootstrap, &client.properties)),
        Brokers::Embedded => {
            let found = embedded::BrokerFinder::of_user().and_then(|finder| finder.find());
            let connection =
                found.map_err(|error| StartupError::new(format!("--embedded: {NO_BROKER} ({})", reason(&error))))?;
            Ok(Access::embedded(&connection, &client.properties))
        }
    }
}

const NO_BROKER: &str = "no broker runs for this user; a candidate with --embedded starts one";

fn cannot_wait(error: &io::Error) -> StartupError {
    StartupError::new(format!("events can't be waited for: {}", reason(error)))
}

impl Reading {
    /// Begins to ask where the log of this partition begins and ends. To be called within a runtime.
    ///
    /// # Errors
    ///
    /// The machine has no thread or descriptor to spare.
    pub(super) fn start(access: &Access, elections: &Elections, partition: i32) -> Result<Self, StartupError> {
        let (sender, events) = channel(WAITING);
        let source = Source {
            access: access.clone(),
            elections: elections.clone(),
            only: Some(partition),
            create_topic: false,
            joins_group: false,
            is_looked_at: true,
        };
        let reader = start(&source, 0, &sender)?;
        let timer = timer()?;
        Ok(Self { source, partition, reader, number: 0, sender, events, timer, timer_is_set_to: None })
    }

    /// The embedded broker, where that is what is read.
    pub(super) fn embedded(&self) -> Option<&Arc<embedded::Connection>> {
        self.source.access.embedded.as_ref()
    }

    /// Reads from this offset on.
    pub(super) fn read_from(&self, offset: Offset) {
        self.reader.read_from(self.partition, offset);
    }

    /// Reads anew: where the log begins and ends is asked again.
    fn begin_anew(&mut self) -> Result<(), StartupError> {
        self.number += 1;
        self.reader = start(&self.source, self.number, &self.sender)?;
        Ok(())
    }

    /// What comes next; at `due` at the latest, if that is given.
    ///
    /// # Errors
    ///
    /// Kafka refuses for good, or the log can't be read.
    pub(super) async fn next(&mut self, due: Option<Time>) -> Result<Input, StartupError> {
        loop {
            if let Some(input) = self.try_next()? {
                return Ok(input);
            }
            if self.timer_is_set_to != due {
                self.timer.set(due);
                self.timer_is_set_to = due;
            }
            let event = tokio::select! {
                biased;
                event = self.events.recv() => event.ok_or_else(gone)?,
                () = self.timer.due() => {
                    self.timer_is_set_to = None;
                    return Ok(Input::Timeout);
                }
            };
            if let Some(input) = self.input(event)? {
                return Ok(input);
            }
        }
    }

    /// What is there, if anything is.
    ///
    /// # Errors
    ///
    /// As for [`next`](Self::next).
    pub(super) fn try_next(&mut self) -> Result<Option<Input>, StartupError> {
        loop {
            match self.events.try_recv() {
                Ok(event) => {
                    if let Some(input) = self.input(event)? {
                        return Ok(Some(input));
                    }
                }
                Err(TryRecvError::Disconnected) => return Err(gone()),
                Err(TryRecvError::Empty) => return Ok(None),
            }
        }
    }

    fn input(&self, event: KafkaEvent) -> Result<Option<Input>, StartupError> {
        Ok(Some(match event {
            KafkaEvent::Reading { reading, event, .. } if reading == self.number => match event {
                ReadingEvent::CaughtUp { next } => Input::CaughtUp(next),
                ReadingEvent::Cut => Input::Cut,
                ReadingEvent::Ends { asked, start, end } => Input::Ends { asked, start, end },
                ReadingEvent::Record(record) => Input::Record(record),
                ReadingEvent::Undecodable { offset, error } => {
                    return Err(StartupError::new(format!(
                        "the records from offset {offset} on can't be decoded: {error}"
                    )));
                }
            },
            KafkaEvent::Down { .. } if self.embedded().is_some() => {
                return Err(StartupError::new("the embedded broker is gone, and its journal with it"));
            }
            KafkaEvent::Down { error } => Input::Down(error),
            KafkaEvent::Up => Input::Up,
            KafkaEvent::Refused { error } => return Err(StartupError::new(error)),
            KafkaEvent::Warning(warning) => Input::Warning(warning),
            // The embedded broker's move is for whoever follows it; here its end shows as silence.
            KafkaEvent::AppendRefused { .. }
            | KafkaEvent::BrokerSession(_)
            | KafkaEvent::Created { .. }
            | KafkaEvent::Debug(_)
            | KafkaEvent::Delivered { .. }
            | KafkaEvent::Facts { .. }
            | KafkaEvent::Identified { .. }
            | KafkaEvent::Moved(_)
            | KafkaEvent::NotDelivered { .. }
            | KafkaEvent::Partitions(_)
            | KafkaEvent::Reading { .. }
            | KafkaEvent::Topic { .. } => return Ok(None),
        }))
    }

    /// What an empty log that begins at `from` would mean, where the log begins at `start`.
    pub(super) fn origin(&self, from: Offset, start: Offset) -> Origin {
        match () {
            () if from > start => Origin::Middle,
            () if from > 0 => Origin::CutHead,
            // A broker whose forerunner died may have lost what was there.
            () if self.embedded().is_some_and(|broker| broker.trusted_from() > clock::now()) => Origin::Middle,
            () => Origin::Beginning,
        }
    }

    /// The line about a history that was cut meanwhile.
    pub(super) fn history_cut(&self) -> StartupError {
        let topic = &self.source.elections.topic;
        StartupError::new(format!("topic {topic}: its history was cut or made anew meanwhile"))
    }
}

fn start(source: &Source, number: u32, sender: &Sender<KafkaEvent>) -> Result<Reader, StartupError> {
    Reader::start(source.clone(), number, sender.clone())
        .map_err(|error| StartupError::new(format!("no thread for the reader: {}", reason(&error))))
}

fn gone() -> StartupError {
    StartupError::new("the reader's threads are gone")
}

/// An election, as it was read.
pub(super) struct Seen {
    pub(super) observer: Observer,
    /// The groups of other elections on the same partition.
    pub(super) others: BTreeSet<String>,
    /// Where the reading began.
    from: Offset,
    /// Where the log begins, and where it ended when the reading began.
    start: Offset,
    end: Offset,
}

/// Why an election was not read to its end.
pub(super) enum Unread {
    /// Kafka refuses for good, or the log can't be read.
    Refused(StartupError),
    /// Kafka has not answered in time, as a sentence says.
    NoAnswer(String),
}

impl From<StartupError> for Unread {
    fn from(refusal: StartupError) -> Self {
        Self::Refused(refusal)
    }
}

/// Reads an election up to what is the log's end, as far back as it takes to know who leads; and listens for a moment where its
/// timestamps are not to be believed. Kafka's answers are waited for so long, in all.
///
/// # Errors
///
/// As [`Unread`] says.
pub(super) async fn observe(reading: &mut Reading, timeout: Duration) -> Result<Seen, Unread> {
    let (deadline, mut span) = (clock::now() + timeout, FIRST_SPAN);
    let mut seen = loop {
        let seen = read_to_end(reading, span, deadline, timeout).await?;
        let is_undecided = matches!(seen.observer.journal().view(), View::Undecided(_));
        if !is_undecided || seen.from == seen.start {
            break seen;
        }
        span = span.saturating_mul(FURTHER);
        reading.begin_anew()?;
    };
    seen.observer.caught_up();
    if let Some(doubt) = seen.observer.doubts_timestamps(read_at()) {
        let until = deadline.min(clock::now() + doubt);
        while seen.observer.doubts_timestamps(read_at()).is_some() {
            let input = reading.next(Some(until)).await?;
            if matches!(input, Input::Timeout) {
                break;
            }
            seen.take_in(input);
        }
    }
    Ok(seen)
}

async fn read_to_end(reading: &mut Reading, span: Offset, deadline: Time, timeout: Duration) -> Result<Seen, Unread> {
    let mut seen: Option<Seen> = None;
    let mut trouble = None;
    loop {
        match reading.next(Some(deadline)).await? {
            Input::Ends { asked, start, end } if seen.is_none() => {
                let from = start.max(end - span);
                let mut journal = Journal::read_from(from, reading.origin(from, start));
                journal.answered(clock::now(), asked, end);
                seen = Some(Seen { observer: Observer::new(journal), others: BTreeSet::new(), from, start, end });
                reading.read_from(from);
            }
            Input::Timeout => return Err(Unread::NoAnswer(no_answer(timeout, trouble))),
            Input::Cut => return Err(reading.history_cut().into()),
            Input::Down(error) => trouble = Some(error),
            Input::CaughtUp(next) if seen.as_ref().is_some_and(|seen| next >= seen.end) => {
                if let Some(seen) = seen {
                    return Ok(seen);
                }
            }
            input @ (Input::CaughtUp(_) | Input::Ends { .. } | Input::Record(_) | Input::Up | Input::Warning(_)) => {
                if let Some(seen) = &mut seen {
                    seen.take_in(input);
                }
            }
        }
        if let Some(seen) = seen.take_if(|seen| seen.observer.journal().next() >= seen.end) {
            return Ok(seen);
        }
    }
}

/// That Kafka has not answered in time, and what was said of that last.
fn no_answer(timeout: Duration, why: Option<String>) -> String {
    let within = spoken(timeout);
    why.map_or_else(|| format!("no answer within {within}"), |why| format!("{why} (no answer within {within})"))
}

impl Seen {
    /// Takes in what was read.
    pub(super) fn take_in(&mut self, input: Input) {
        let at = read_at();
        match input {
            Input::Ends { asked, end, .. } => self.observer.answered(at.now, asked, end),
            Input::Record(record) if record.offset >= self.observer.journal().next() => self.take_in_record(at, record),
            Input::CaughtUp(_)
            | Input::Cut
            | Input::Down(_)
            | Input::Record(_)
            | Input::Timeout
            | Input::Up
            | Input::Warning(_) => {}
        }
    }

    fn take_in_record(&mut self, at: ReadAt, record: ReadRecord) {
        let ReadRecord { offset, key, value, other_key, written_ms } = record;
        let parsed = || value.as_deref().and_then(Record::parse);
        match key {
            Key::Election(_) => {
                self.observer.read(at, offset, parsed().as_ref(), written_ms);
            }
            Key::Hello(_) => self.observer.read_hello(at, offset, parsed(), written_ms),
            Key::Other => {
                self.observer.read_other(at.now, offset);
                let election = other_key.as_deref().and_then(key_of_election);
                self.others.extend(election.map(|(group, ..)| group.to_owned()));
            }
        }
    }

    /// Reads the current term's claim, where that lies further back than what was read: it tells since when somebody leads.
    ///
    /// # Errors
    ///
    /// As for [`Reading::start`] and [`Reading::next`].
    pub(super) async fn learn_claim(&mut self, reading: &Reading) -> Result<(), StartupError> {
        let leader = self.observer.leader().filter(|leader| leader.claimed_ms.is_none());
        let Some(term) = leader.map(|leader| leader.term).filter(|term| (self.start..self.from).contains(term)) else {
            return Ok(());
        };
        // By a connection of its own: on the other one the fetch that waits for the next record is in the way.
        let mut aside = Reading::start(&reading.source.access, &reading.source.elections, reading.partition)?;
        let until = clock::now() + CLAIM_WITHIN;
        let mut is_asked_for = false;
        loop {
            match aside.next(Some(until)).await? {
                Input::Ends { .. } if !std::mem::replace(&mut is_asked_for, true) => aside.read_from(term),
                Input::Record(record) if record.offset == term => {
                    self.observer.learn_claim(term, record.written_ms);
                    return Ok(());
                }
                // Retention was quicker, or the broker is slow: since when is not known.
                Input::Cut | Input::Record(_) | Input::Timeout => return Ok(()),
                Input::CaughtUp(_) | Input::Down(_) | Input::Ends { .. } | Input::Up | Input::Warning(_) => {}
            }
        }
    }
}

/// Group and role in the key of an election's record, `<group>/<role>`, or of a hello, `<group>/<role>/hello`; and whether it is a hello.
pub(super) fn key_of_election(key: &[u8]) -> Option<(&str, &str, bool)> {
    let key = std::str::from_utf8(key).ok()?;
    let (label, is_hello) = key.strip_suffix("/hello").map_or((key, false), |label| (label, true));
    let (group, role) = label.rsplit_once('/')?;
    (!group.is_empty() && !role.is_empty()).then_some((group, role, is_hello))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_its_election() {
        let told = ["a/0", "a/b/ingest", "a/0/hello", "a", "/0", "a/", ""].map(|key| key_of_election(key.as_bytes()));
        let expected =
            [Some(("a", "0", false)), Some(("a/b", "ingest", false)), Some(("a", "0", true)), None, None, None, None];
        assert_eq!(told, expected);
    }
}
