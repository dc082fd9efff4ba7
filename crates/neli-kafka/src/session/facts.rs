//! What a session does with the topic of facts.

use std::io;

use super::Session;
use crate::facts::{FactsReading, FactsSource, WantedFacts};
use crate::text::ClientError;

impl Session {
    /// Reads the topic of facts up to its present end. [`SessionEvent::Facts`](crate::SessionEvent::Facts) follows with this number; dropping
    /// the returned value ends the reading. The reading continues where `earlier`, a reading of the same keys, has stopped.
    ///
    /// # Errors
    ///
    /// The machine has no thread to spare.
    pub fn read_facts(&self, wanted: WantedFacts, id: u32, earlier: Option<FactsReading>) -> io::Result<FactsReading> {
        let (elections, create_topic) = (self.settings.elections.clone(), self.settings.create_topic);
        let source = FactsSource { access: self.access.clone(), elections, create_topic, wanted };
        FactsReading::start(source, id, self.event_sender.clone(), earlier)
    }

    /// Hands over a fact under this key, and returns at once: its result is reported with `id`.
    ///
    /// # Errors
    ///
    /// The queue is full, or the fact too large; then nothing more is reported for this `id`.
    pub fn append_fact(&self, id: u32, topic: &str, key: &str, payload: &[u8]) -> Result<(), ClientError> {
        self.producer.append_fact(id, topic, key, payload)
    }
}
