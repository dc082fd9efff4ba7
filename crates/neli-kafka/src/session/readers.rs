//! The readers of a process's journals, by the numbers of their readings.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use tokio::sync::mpsc::Sender;

use super::router::Readers;
use crate::event::KafkaEvent;
use crate::reader::Reader;
use crate::source::Source;

/// Readers of elections whose records share a topic.
pub struct KafkaReaders {
    /// The source for each later reader, except which partitions it reads. Its number of partitions is `None` if each reader is to find the
    /// topic's number.
    pub source: Source,
    /// Whether a later reader gets the number of partitions that an earlier one found.
    keeps_partitions: bool,
    by_reading: BTreeMap<u32, Reader>,
    event_sender: Sender<KafkaEvent>,
}

impl KafkaReaders {
    /// The readers send their events to `event_sender`; they are to be passed to the router.
    #[must_use]
    pub const fn new(source: Source, keeps_partitions: bool, event_sender: Sender<KafkaEvent>) -> Self {
        Self { source, keeps_partitions, by_reading: BTreeMap::new(), event_sender }
    }
}

impl Readers for KafkaReaders {
    fn start(&mut self, reading: u32, only: Option<BTreeSet<i32>>, found: Option<i32>) -> io::Result<()> {
        let partitions = found.filter(|_| self.keeps_partitions).or(self.source.partitions);
        let source = Source { partitions, only, ..self.source.clone() };
        self.by_reading.insert(reading, Reader::start(source, reading, self.event_sender.clone())?);
        Ok(())
    }

    fn close(&mut self, reading: u32) {
        self.by_reading.remove(&reading);
    }

    fn look_for_end(&mut self, reading: u32) {
        self.by_reading.get(&reading).into_iter().for_each(Reader::look_for_end);
    }

    fn read_from(&mut self, reading: u32, partition: i32, offset: i64) {
        self.by_reading.get(&reading).into_iter().for_each(|reader| reader.read_from(partition, offset));
    }
}
