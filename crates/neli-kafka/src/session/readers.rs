//! The readers of a process's journals, by the numbers of their readings.

use std::collections::BTreeMap;
use std::io;

use tokio::sync::mpsc::Sender;

use super::router::{ReaderOrder, Router};
use crate::event::KafkaEvent;
use crate::reader::Reader;
use crate::reading::Source;

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
    /// The readers send their events to `event_sender`, which are to be passed to the router.
    #[must_use]
    pub const fn new(source: Source, keeps_partitions: bool, event_sender: Sender<KafkaEvent>) -> Self {
        Self { source, keeps_partitions, by_reading: BTreeMap::new(), event_sender }
    }

    /// Does what the router wants of the readers.
    ///
    /// # Errors
    ///
    /// A reader can't be started: the machine has no thread to spare.
    pub fn follow(&mut self, router: &mut Router) -> io::Result<()> {
        while let Some((reading, order)) = router.poll_order() {
            match (order, self.by_reading.get(&reading)) {
                (ReaderOrder::Close, _) => drop(self.by_reading.remove(&reading)),
                (ReaderOrder::LookForEnd, Some(reader)) => reader.look_for_end(),
                (ReaderOrder::ReadFrom { partition, offset }, Some(reader)) => reader.read_from(partition, offset),
                (ReaderOrder::LookForEnd | ReaderOrder::ReadFrom { .. }, None) => {}
                (ReaderOrder::Start { only, found }, _) => {
                    let partitions = found.filter(|_| self.keeps_partitions).or(self.source.partitions);
                    let source = Source { partitions, only, ..self.source.clone() };
                    let reader = Reader::start(source, reading, self.event_sender.clone())?;
                    self.by_reading.insert(reading, reader);
                }
            }
        }
        Ok(())
    }
}
