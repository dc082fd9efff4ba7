//! Reads the journal for the subcommands. They join no group; READ on the topic is enough.

use std::future::Future;
use std::io;
use std::mem;
use std::sync::Arc;

use neli::program::{
    Access, Brokers, Client, ElectionId, Elections, IfMissing, KafkaEvent, ReadRecord, Reader, ReadingEvent, Source,
    clock, embedded,
};
use neli_proto::journal::Origin;
use neli_proto::observer::ReadAt;
use neli_proto::record::Offset;
use neli_proto::time::Time;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::exit::StartupError;
use crate::process::timer::Timer;
use crate::text::reason;

mod doubt;
mod hellos;
mod last;
mod others;
mod place;
mod seen;

pub(super) use doubt::{doubt, warn_of_clock};
use hellos::HellosElsewhere;
pub(super) use hellos::is_hello;
pub(super) use last::{Begin, read_last};
pub(super) use others::Others;
pub(super) use place::Place;
pub(super) use seen::{ElectionKey, Seen, Unread, key_of_election, no_answer, observe};

/// The capacity of the queue of events.
const WAITING: usize = 1_000;

/// An event of the reading.
#[derive(Debug)]
pub(super) enum Input {
    /// All records below this offset were passed on.
    CaughtUp(Offset),
    /// The history was cut or the topic was created again.
    Cut,
    /// No broker answers.
    Down(String),
    /// The start and the end of the log.
    Ends { asked: Time, start: Offset, end: Offset },
    /// A hello in partition 0, while the election is in another partition.
    Hello(ReadRecord),
    /// A record.
    Record(ReadRecord),
    /// The time limit was reached.
    Timeout,
    /// A broker answers again.
    Up,
    /// A problem that does not stop the reading.
    Warning(String),
}

/// One reading of a partition.
pub(super) struct Reading {
    source: Source,
    partition: i32,
    /// The progress in the partition of the hellos, if that is another one and hellos are wanted.
    hellos: Option<HellosElsewhere>,
    /// Whether an outage was reported that has not ended.
    is_down: bool,
    /// The number of the topic's partitions. It is reported if more than one role was requested.
    partitions: Option<i32>,
    reader: Reader,
    /// The number of readings so far. Events of an earlier reading are dropped.
    number: u32,
    sender: Sender<KafkaEvent>,
    events: Receiver<KafkaEvent>,
    timer: Timer,
    timer_is_set_to: Option<Time>,
}

/// Runs the future in a runtime of its own.
///
/// # Errors
/// The future's error; or the process has no free descriptor.
pub(super) fn run<T, E: From<StartupError>>(waits: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    runtime.map_err(|error| cannot_wait(&error))?.block_on(waits)
}

/// A timer that is not set. Must be called within a runtime.
///
/// # Errors
/// The process has no free descriptor.
pub(super) fn timer() -> Result<Timer, StartupError> {
    Timer::new().map_err(|error| cannot_wait(&error))
}

/// The time by both clocks.
pub(super) fn read_at() -> ReadAt {
    ReadAt { now: clock::now(), wall_ms: clock::wall_ms() }
}

/// The access to Kafka.
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
    /// Asks for the start and the end of this partition's log. Must be called within a runtime.
    ///
    /// # Errors
    /// The process has no free thread or descriptor.
    pub(super) fn start(access: &Access, elections: &Elections, partition: i32) -> Result<Self, StartupError> {
        Self::with(access, elections, partition, None, None)
    }

    /// Like [`start`](Self::start), for an election.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start).
    pub(super) fn of(access: &Access, place: &Place) -> Result<Self, StartupError> {
        Self::with(access, &place.elections, place.election.partition, place.counted, None)
    }

    /// Like [`start`](Self::start), for an election and the hellos of its candidates, in any partition.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start).
    pub(super) fn with_hellos(access: &Access, place: &Place) -> Result<Self, StartupError> {
        let hellos = place.has_hellos_elsewhere().then(HellosElsewhere::default);
        Self::with(access, &place.elections, place.election.partition, place.counted, hellos)
    }

    fn with(
        access: &Access,
        elections: &Elections,
        partition: i32,
        counted: Option<i32>,
        hellos: Option<HellosElsewhere>,
    ) -> Result<Self, StartupError> {
        let (sender, events) = channel(WAITING);
        let of_hellos = hellos.as_ref().map(|_| Elections::PARTITION_OF_HELLOS);
        let source = Source {
            access: access.clone(),
            elections: elections.clone(),
            partitions: counted,
            only: Some(of_hellos.into_iter().chain([partition]).collect()),
            if_missing: IfMissing::Refuse,
            is_for_display: true,
        };
        let reader = start(&source, 0, &sender)?;
        let timer = timer()?;
        Ok(Self {
            source,
            partition,
            hellos,
            is_down: false,
            partitions: None,
            reader,
            number: 0,
            sender,
            events,
            timer,
            timer_is_set_to: None,
        })
    }

    /// The embedded broker, if it is read.
    pub(super) fn embedded(&self) -> Option<&Arc<embedded::Connection>> {
        self.source.access.embedded.as_ref()
    }

    /// Reads from this offset.
    pub(super) fn read_from(&self, offset: Offset) {
        self.reader.read_from(self.partition, offset);
    }

    /// The election that is read.
    fn election(&self) -> ElectionId {
        let elections = &self.source.elections;
        elections.election(elections.roles.start, 1)
    }

    /// Whether the hellos in another partition have been read up to their end at the start of the reading.
    pub(super) fn has_read_hellos(&self) -> bool {
        self.hellos.as_ref().is_none_or(HellosElsewhere::are_read)
    }

    /// Starts again: asks for the first and the next offset of the log.
    fn begin_anew(&mut self) -> Result<(), StartupError> {
        self.number += 1;
        self.hellos = self.hellos.take().map(|_| HellosElsewhere::default());
        self.reader = start(&self.source, self.number, &self.sender)?;
        Ok(())
    }

    /// The next event, or the time limit at `due`, if there is one.
    ///
    /// # Errors
    ///
    /// Kafka refuses permanently, or the log can't be read.
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

    /// The next event, if one is available.
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

    fn input(&mut self, event: KafkaEvent) -> Result<Option<Input>, StartupError> {
        Ok(Some(match event {
            KafkaEvent::Partitions(partitions) => {
                self.partitions = Some(partitions);
                return Ok(None);
            }
            KafkaEvent::Reading { reading, partition, event }
                if reading == self.number && partition != self.partition =>
            {
                return self.elsewhere(event);
            }
            KafkaEvent::Reading { reading, event, .. } if reading == self.number => match event {
                ReadingEvent::CaughtUp { next } => Input::CaughtUp(next),
                ReadingEvent::Cut => Input::Cut,
                ReadingEvent::Ends { asked, start, end } => Input::Ends { asked, start, end },
                ReadingEvent::Record(record) => Input::Record(record),
                ReadingEvent::Undecodable { offset, error } => return Err(undecodable(offset, &error)),
            },
            KafkaEvent::Down { .. } if self.embedded().is_some() => {
                return Err(StartupError::new("the embedded broker is gone, and its journal with it"));
            }
            KafkaEvent::Down { error } => {
                self.is_down = true;
                Input::Down(error)
            }
            // A first answer without an outage before it is not reported.
            KafkaEvent::Up if !mem::take(&mut self.is_down) => return Ok(None),
            KafkaEvent::Up => Input::Up,
            KafkaEvent::Refused { error } => return Err(StartupError::new(error)),
            KafkaEvent::Warning(warning) => Input::Warning(warning),
            // Followers react to a move of the embedded broker. Here its end only appears as a missing answer.
            KafkaEvent::AppendRefused { .. }
            | KafkaEvent::BrokerSession(_)
            | KafkaEvent::Created { .. }
            | KafkaEvent::Debug(_)
            | KafkaEvent::Delivered { .. }
            | KafkaEvent::Facts { .. }
            | KafkaEvent::HelloDelivered
            | KafkaEvent::Identified { .. }
            | KafkaEvent::Moved(_)
            | KafkaEvent::NotDelivered { .. }
            | KafkaEvent::Reading { .. }
            | KafkaEvent::Topic { .. } => return Ok(None),
        }))
    }

    /// Handles an event of the partition with the hellos.
    fn elsewhere(&mut self, event: ReadingEvent) -> Result<Option<Input>, StartupError> {
        let Some(hellos) = &mut self.hellos else { return Ok(None) };
        match event {
            ReadingEvent::CaughtUp { next } => hellos.caught_up(next),
            ReadingEvent::Cut => return Ok(Some(Input::Cut)),
            ReadingEvent::Ends { start, end, .. } => {
                if let Some(from) = hellos.ends(start, end) {
                    self.reader.read_from(Elections::PARTITION_OF_HELLOS, from);
                }
            }
            ReadingEvent::Record(record) => {
                hellos.caught_up(record.offset + 1);
                return Ok(is_hello(&self.source.elections.group, &record).then_some(Input::Hello(record)));
            }
            ReadingEvent::Undecodable { offset, error } => return Err(undecodable(offset, &error)),
        }
        Ok(None)
    }

    /// The meaning of an empty log from `from` on, if the log starts at `start`.
    pub(super) fn origin(&self, from: Offset, start: Offset) -> Origin {
        match () {
            () if from > start => Origin::Middle,
            () if from > 0 => Origin::CutHead,
            // If the previous broker was killed, its records may have been lost.
            () if self.embedded().is_some_and(|broker| broker.trusted_from() > clock::now()) => Origin::Middle,
            () => Origin::Beginning,
        }
    }

    /// The error that the history was cut meanwhile.
    pub(super) fn history_cut(&self) -> StartupError {
        let topic = &self.source.elections.topic;
        StartupError::new(format!("topic {topic}: its history was cut or made anew meanwhile; run the command again"))
    }
}

fn start(source: &Source, number: u32, sender: &Sender<KafkaEvent>) -> Result<Reader, StartupError> {
    Reader::start(source.clone(), number, sender.clone())
        .map_err(|error| StartupError::new(format!("no thread for the reader: {}", reason(&error))))
}

fn undecodable(offset: Offset, error: &str) -> StartupError {
    StartupError::new(format!("the records from offset {offset} on can't be decoded: {error}"))
}

fn gone() -> StartupError {
    StartupError::new("the reader's threads are gone")
}
