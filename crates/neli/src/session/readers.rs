//! The readers of a process's journals. The router decides which readers are started and closed, and what they read.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use neli_proto::time::Time;
use tokio::sync::mpsc::Sender;

use super::event::RoleEvent;
use super::router::{self, Router};
use crate::kafka::event::{KafkaEvent, ReadingEvent};
use crate::kafka::reader::Reader;
use crate::kafka::source::Source;

/// Readers of elections whose records share a topic.
pub(crate) struct Readers {
    /// The source for each reader, except its partitions.
    source: Source,
    /// Whether a later reader gets the number of partitions that an earlier one found.
    keeps_partitions: bool,
    router: Router,
    by_reading: BTreeMap<u32, Reader>,
    event_sender: Sender<KafkaEvent>,
}

/// A result of reading.
#[derive(Debug)]
pub(crate) enum Output {
    /// A hello of a process with many roles.
    Hello { offset: i64, value: Box<[u8]> },
    /// A reader could not be started: the machine has no thread to spare.
    NotStarted(io::Error),
    /// An event of an election.
    Role { role: u32, event: RoleEvent },
}

impl Readers {
    /// The readers send their events to `event_sender`; they are to be passed to [`handle`](Self::handle).
    pub(crate) fn new(source: Source, keeps_partitions: bool, event_sender: Sender<KafkaEvent>) -> Self {
        let router = Router::new(source.elections.roles.clone());
        Self { source, keeps_partitions, router, by_reading: BTreeMap::new(), event_sender }
    }

    /// Performs the outputs of the router up to the first one that the caller has to handle.
    pub(crate) fn poll(&mut self) -> Option<Output> {
        while let Some(output) = self.router.poll() {
            match output {
                router::Output::Close { reading } => drop(self.by_reading.remove(&reading)),
                router::Output::Hello { offset, value } => return Some(Output::Hello { offset, value }),
                router::Output::LookForEnd { reading } => {
                    self.by_reading.get(&reading).into_iter().for_each(Reader::look_for_end);
                }
                router::Output::ReadFrom { reading, partition, offset } => {
                    self.by_reading.get(&reading).into_iter().for_each(|reader| reader.read_from(partition, offset));
                }
                router::Output::Start { reading, only } => match self.start(reading, only) {
                    Ok(reader) => drop(self.by_reading.insert(reading, reader)),
                    Err(error) => return Some(Output::NotStarted(error)),
                },
                router::Output::Tell { role, event } => return Some(Output::Role { role, event }),
            }
        }
        None
    }

    fn start(&self, reading: u32, only: Option<BTreeSet<i32>>) -> io::Result<Reader> {
        let found = self.router.partitions().filter(|_| self.keeps_partitions);
        let source = Source { partitions: found.or(self.source.partitions), only, ..self.source.clone() };
        Reader::start(source, reading, self.event_sender.clone())
    }

    // ---- events: `poll` is to be called after each -------------------------------------------------------------

    /// Handles an event of a reading of a partition.
    pub(crate) fn handle(&mut self, now: Time, reading: u32, partition: i32, event: ReadingEvent) {
        self.router.handle(now, reading, partition, event);
    }

    /// Sets the number of the topic's partitions.
    pub(crate) const fn found(&mut self, partitions: i32) {
        self.router.found(partitions);
    }

    /// Sets the number of partitions by which later readers map roles to partitions; `None` if each reader is to find the topic's number.
    pub(crate) const fn count_by(&mut self, partitions: Option<i32>) {
        self.source.partitions = partitions;
        if let Some(partitions) = partitions {
            self.router.found(partitions);
        }
    }

    /// The number of the topic's partitions, once it is known.
    pub(crate) const fn partitions(&self) -> Option<i32> {
        self.router.partitions()
    }

    /// Whether this reading is in progress.
    pub(crate) fn has(&self, reading: u32) -> bool {
        self.by_reading.contains_key(&reading)
    }

    // ---- requests of an election: `poll` is to be called after each -----------------------------------------------------

    /// Reads the role's journal again: [`RoleEvent::Ends`] follows, to be answered by [`read_from`](Self::read_from).
    pub(crate) fn read_anew(&mut self, now: Time, role: u32) {
        self.router.read_anew(now, role);
    }

    /// Reads the role's journal from this offset on.
    pub(crate) fn read_from(&mut self, now: Time, role: u32, offset: i64) {
        self.router.read_from(now, role, offset);
    }

    /// The role has read its journal up to the end.
    pub(crate) fn note_caught_up(&mut self, role: u32) {
        self.router.note_caught_up(role);
    }

    /// The records of other elections since the role last got them.
    pub(crate) fn take_passed(&mut self, role: u32) -> Option<RoleEvent> {
        self.router.take_passed(role)
    }

    /// Asks soon where the role's log ends.
    pub(crate) fn look_for_end(&mut self, role: u32) {
        self.router.look_for_end(role);
    }

    /// Reads nothing more, for any role.
    pub(crate) fn stop(&mut self) {
        self.router.stop();
    }
}
