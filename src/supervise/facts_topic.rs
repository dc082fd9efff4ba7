//! The topic with the facts of one election's key.

use neli::program::{ElectionId, FactsReading, FactsSettings};
use neli_proto::fact::{self, Place};

use crate::config::Once;
use crate::supervise::wall_clock::WallClock;

/// The topic with the facts of one election's key.
pub(super) struct FactsTopic {
    pub(super) name: String,
    /// The Kafka keys of the records with the key's facts.
    pub(super) keys: [(String, Place); 3],
    pub(super) settings: FactsSettings,
    /// `--window` and `--schedule`: the window according to the wall clock.
    pub(super) wall_clock: Option<WallClock>,
    /// The present or last reading with its number. Events of earlier readings are dropped.
    pub(super) reading: Option<(u32, FactsReading)>,
    pub(super) is_judged: bool,
}

impl FactsTopic {
    pub(super) fn new(election: &ElectionId, once: &Once) -> Self {
        let key = |place| (fact::record_key(&election.key(), once.key(), place), place);
        Self {
            name: format!("{}{}", election.topic, fact::TOPIC_SUFFIX),
            keys: Place::ALL.map(key),
            settings: once.topic_settings(),
            wall_clock: WallClock::of(once),
            reading: None,
            is_judged: false,
        }
    }

    pub(super) fn stop_reading(&mut self) {
        self.reading = None;
    }

    pub(super) fn key_at(&self, wanted: Place) -> &str {
        self.keys.iter().find(|(_, place)| *place == wanted).map_or("", |(key, _)| key)
    }
}
