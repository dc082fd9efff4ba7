//! Reads the journal for the subcommands. They join no group; READ on the topic is enough.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::io;
use std::mem;

use anyhow::{Context as _, Result, anyhow, bail};
use neli_kafka::{
    Access, Brokers, Client, Elections, IfMissing, KafkaEvent, ReadRecord, Reader, SessionEvent, Source, clock,
    embedded,
};
use neli_proto::candidate::Event;
use neli_proto::journal::Origin;
use neli_proto::leadership::ReadAt;
use neli_proto::listener::{CutSigns, HistoryCut};
use neli_proto::record::Offset;
use neli_proto::time::Time;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::process::ready::Timer;
use crate::text::reason;

mod doubt;
mod last;
mod others;
mod place;
mod seen;

pub(super) use doubt::{doubt, warn_of_clock};
pub(super) use last::{Begin, read_last};
pub(super) use others::{Others, is_hello};
pub(super) use place::Place;
pub(super) use seen::{ElectionKey, Seen, Unread, key_of_election, no_answer, observe, take_in};

/// The capacity of the queue of events.
const WAITING: usize = 1_000;

/// An event of the reading.
#[derive(Debug)]
pub(super) enum Input {
    /// Markers at the end of a partition count as read: see [`Reading::is_at_end`].
    CaughtUp,
    /// The history was cut or the topic was created again.
    Cut,
    /// No broker answers.
    Down(String),
    /// The start and the end of a partition's log.
    Ends { partition: i32, asked: Time, start: Offset, end: Offset },
    /// A record of a partition.
    Record { partition: i32, record: ReadRecord },
    /// The time limit was reached.
    Timeout,
    /// A broker answers again.
    Up,
    /// A problem that does not stop the reading.
    Warning(String),
}

/// One reading of some partitions.
pub(super) struct Reading {
    source: Source,
    progress: BTreeMap<i32, Progress>,
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

/// The progress of a partition.
#[derive(Default)]
struct Progress {
    /// The end of the log when the reading began, once it is known.
    end: Option<Offset>,
    /// The offset below which all records were passed on, once the partition is read.
    next: Option<Offset>,
    /// The answers that may show that the history was cut.
    signs: CutSigns,
}

/// Runs the future in a runtime of its own.
///
/// # Errors
/// The future's error; or the process has no free descriptor.
pub(super) fn run<T, E: From<anyhow::Error>>(waits: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    runtime.map_err(|error| cannot_wait(&error))?.block_on(waits)
}

/// A timer that is not set. Must be called within a runtime.
///
/// # Errors
/// The process has no free descriptor.
pub(super) fn timer() -> Result<Timer> {
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
pub(super) fn access(client: &Client) -> Result<Access> {
    match &client.brokers {
        Brokers::At(bootstrap) => Ok(Access::at(bootstrap, &client.properties)),
        Brokers::Embedded => {
            let found = embedded::BrokerFinder::of_user().and_then(|finder| finder.find());
            let connection = found.map_err(|error| anyhow!("--embedded: {NO_BROKER} ({})", reason(&error)))?;
            Ok(Access::embedded(&connection, &client.properties))
        }
    }
}

const NO_BROKER: &str = "no broker runs for this user; a candidate with --embedded starts one";

fn cannot_wait(error: &io::Error) -> anyhow::Error {
    anyhow!("events can't be waited for: {}", reason(error))
}

impl Reading {
    /// Asks for the start and the end of these partitions' logs. Must be called within a runtime. `counted`: by how many partitions roles are
    /// mapped, if that is known.
    ///
    /// # Errors
    /// The process has no free thread or descriptor.
    pub(super) fn start(
        access: &Access,
        elections: &Elections,
        partitions: impl IntoIterator<Item = i32>,
        counted: Option<i32>,
    ) -> Result<Self> {
        let (sender, events) = channel(WAITING);
        let partitions: BTreeSet<i32> = partitions.into_iter().collect();
        let source = Source {
            access: access.clone(),
            elections: elections.clone(),
            partitions: counted,
            only: Some(partitions.clone()),
            if_missing: IfMissing::Refuse,
            is_for_display: true,
        };
        let reader = start(&source, 0, &sender)?;
        let timer = timer()?;
        Ok(Self {
            source,
            progress: partitions.into_iter().map(|partition| (partition, Progress::default())).collect(),
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

    /// Whether the embedded broker is read.
    pub(super) fn is_embedded(&self) -> bool {
        self.source.access.embedded.is_some()
    }

    /// Reads a partition from this offset.
    pub(super) fn read_from(&mut self, partition: i32, offset: Offset) {
        self.read_up_to(partition, offset);
        self.reader.read_from(partition, offset);
    }

    /// Whether all partitions were read up to the ends that they had when the reading began.
    pub(super) fn is_at_end(&self) -> bool {
        self.progress.values().all(|Progress { end, next, .. }| end.is_some_and(|end| next.unwrap_or_default() >= end))
    }

    fn read_up_to(&mut self, partition: i32, offset: Offset) {
        if let Some(progress) = self.progress.get_mut(&partition) {
            progress.next = progress.next.max(Some(offset));
        }
    }

    /// Starts again: asks for the first and the next offset of each log.
    fn begin_anew(&mut self) -> Result<()> {
        self.number += 1;
        self.progress.values_mut().for_each(|progress| *progress = Progress::default());
        self.reader = start(&self.source, self.number, &self.sender)?;
        Ok(())
    }

    /// The next event, or the time limit at `due`, if there is one.
    ///
    /// # Errors
    ///
    /// Kafka refuses permanently, or the log can't be read.
    pub(super) async fn next(&mut self, due: Option<Time>) -> Result<Input> {
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
    pub(super) fn try_next(&mut self) -> Result<Option<Input>> {
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

    fn input(&mut self, event: KafkaEvent) -> Result<Option<Input>> {
        Ok(Some(match event {
            KafkaEvent::Partitions(partitions) => {
                self.partitions = Some(partitions);
                return Ok(None);
            }
            KafkaEvent::Process(event) => return self.input_of_process(event),
            KafkaEvent::ReadForDisplay { reading, partition, record } if reading == self.number => {
                self.read_up_to(partition, record.offset + 1);
                Input::Record { partition, record }
            }
            KafkaEvent::Reading { reading, partition, event } if reading == self.number => {
                let Some(progress) = self.progress.get_mut(&partition) else { return Ok(None) };
                if let Event::Answered { asked, start, end } = event {
                    progress.end.get_or_insert(end);
                    let cut = progress.next.map(|next| progress.signs.answered(asked, start..end, next));
                    if cut == Some(Err(HistoryCut)) { Input::Cut } else { Input::Ends { partition, asked, start, end } }
                } else if let Event::TopicIdentified { asked, .. } = event {
                    match progress.signs.missing(asked) {
                        Ok(()) => return Ok(None),
                        Err(HistoryCut) => Input::Cut,
                    }
                } else if let Event::ReachedEnd { next } = event {
                    self.read_up_to(partition, next);
                    Input::CaughtUp
                } else if let Event::Undecodable { offset, error } = event {
                    return Err(undecodable(offset, &error));
                } else {
                    Input::Cut
                }
            }
            KafkaEvent::Delivered { .. }
            | KafkaEvent::Identified { .. }
            | KafkaEvent::NotDelivered { .. }
            | KafkaEvent::Read { .. }
            | KafkaEvent::ReadForDisplay { .. }
            | KafkaEvent::Reading { .. }
            | KafkaEvent::Topic { .. } => return Ok(None),
        }))
    }

    fn input_of_process(&mut self, event: SessionEvent) -> Result<Option<Input>> {
        Ok(Some(match event {
            SessionEvent::Down { .. } if self.is_embedded() => {
                bail!("the embedded broker is gone, and its journal with it");
            }
            SessionEvent::Down { error } => {
                self.is_down = true;
                Input::Down(error)
            }
            // A first answer without an outage before it is not reported.
            SessionEvent::Up if !mem::take(&mut self.is_down) => return Ok(None),
            SessionEvent::Up => Input::Up,
            SessionEvent::Refused { error } => bail!(error),
            SessionEvent::Warning(warning) => Input::Warning(warning),
            // A reader alone reports none of these.
            SessionEvent::AppendRefused { .. }
            | SessionEvent::BrokerSession(_)
            | SessionEvent::Created { .. }
            | SessionEvent::Debug(_)
            | SessionEvent::Election { .. }
            | SessionEvent::Facts { .. }
            | SessionEvent::Group { .. }
            | SessionEvent::Hello { .. }
            | SessionEvent::HelloDelivered
            | SessionEvent::Risks { .. }
            | SessionEvent::Unfit { .. } => return Ok(None),
        }))
    }

    /// The error that the history was cut meanwhile.
    pub(super) fn history_cut(&self) -> anyhow::Error {
        let topic = &self.source.elections.topic;
        anyhow!("topic {topic}: its history was cut or made anew meanwhile; run the command again")
    }
}

/// The meaning of an empty log from `from` on, if the log starts at `start`.
pub(super) fn origin(from: Offset, start: Offset) -> Origin {
    match () {
        () if from > start => Origin::Middle,
        () if from > 0 => Origin::CutHead,
        () => Origin::Beginning,
    }
}

fn start(source: &Source, number: u32, sender: &Sender<KafkaEvent>) -> Result<Reader> {
    Reader::start(source.clone(), number, sender.clone()).context("no thread for the reader")
}

fn undecodable(offset: Offset, error: &str) -> anyhow::Error {
    anyhow!("the records from offset {offset} on can't be decoded: {error}")
}

fn gone() -> anyhow::Error {
    anyhow!("the reader's threads are gone")
}
