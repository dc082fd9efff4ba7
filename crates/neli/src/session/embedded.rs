//! A session with the embedded broker, which may die and be replaced.

use std::io;
use std::sync::Arc;

use neli_proto::kafka::Event;

use super::Session;
use crate::election::Properties;
use crate::kafka::access::Access;
use crate::kafka::broker_watch;
use crate::kafka::embedded::{BrokerFinder, FoundBroker};

impl Session {
    /// Replaces the embedded broker when it dies. Returns its address; none if Kafka is a real one.
    ///
    /// # Errors
    ///
    /// The machine has no thread to spare.
    pub fn follow_broker(&self, finder: BrokerFinder) -> io::Result<Option<String>> {
        let Some(broker) = &self.access.embedded else { return Ok(None) };
        broker_watch::watch(finder, Arc::clone(broker), self.event_sender.clone())?;
        Ok(Some(broker.bootstrap().to_owned()))
    }

    /// The embedded broker died, and another one runs: every journal is cut, and the group is joined at the new one. `alone`: as for
    /// [`leave_group`](Self::leave_group).
    pub fn move_to(&mut self, found: &FoundBroker, properties: &Properties, alone: bool) {
        let log_callback = self.access.log_callback.clone();
        self.access = Access { log_callback, ..Access::embedded(&found.connection, properties) };
        self.router.readers.source.access = self.access.clone();
        self.stop_reading();
        for role in self.settings.elections.roles.clone() {
            self.tell(role, Event::HistoryCut);
        }
        if self.members.is_in_group() {
            self.leave(alone);
            self.join();
        }
    }
}
