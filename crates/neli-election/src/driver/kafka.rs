//! Passes the session's events to the nodes, and reports to users those that concern them.

use neli_kafka::{SessionEvent, clock};
use neli_proto::candidate;
use neli_proto::node;

use super::Driver;
use crate::event::Event;

impl Driver {
    pub(super) fn handle_session_event(&mut self, event: SessionEvent) {
        let now = clock::now();
        match event {
            // One warning for each kind of refusal, and again every 30 s: librdkafka tries again many times a second.
            SessionEvent::AppendRefused { error } => self.refused_appends.begin(now, error),
            SessionEvent::Down { error } => {
                self.nodes.roles.iter().for_each(|role| role.set_trouble(Some(&error)));
                self.warn(&format!("Kafka does not answer: {error}"));
            }
            SessionEvent::Group { refusal: Some(refusal) } => self.group.begin(now, refusal),
            SessionEvent::Group { refusal: None } => drop(self.group.end(now)),
            SessionEvent::Hello { offset, value } => self.nodes.handle_hello(now, offset, &value),
            SessionEvent::HelloDelivered => self.refused_appends.end(),
            SessionEvent::Refused { error } => self.nodes.tell_all(&node::Event::Refused { error: error.into() }),
            SessionEvent::Election { role, event } => {
                if matches!(event, candidate::Event::Delivered { .. }) {
                    self.refused_appends.end();
                }
                self.nodes.roles[role as usize].note(now, &event);
                self.nodes.handle_election_event(now, role as usize, event);
            }
            SessionEvent::Unfit { role, error } => {
                self.nodes.tell(now, role as usize, node::Event::Refused { error: error.into() });
            }
            SessionEvent::Warning(message) => self.warn(&message),
            SessionEvent::BrokerSession(_)
            | SessionEvent::Created { .. }
            | SessionEvent::Debug(_)
            // The library has no keys.
            | SessionEvent::Facts { .. }
            // The topic is fit nevertheless, and `neli-run doctor` names the risks.
            | SessionEvent::Risks { .. } => {}
            SessionEvent::Up => self.nodes.roles.iter().for_each(|role| role.set_trouble(None)),
        }
    }

    pub(super) fn warn_of_append(&mut self, error: &str) {
        self.warn(&format!("Kafka does not append this candidate's records: {error}"));
    }

    /// Reports to users the messages about all roles.
    pub(super) fn pass_on_notes(&mut self) {
        while let Some(note) = self.nodes.poll_note() {
            if let Some(Event::Warning { message }) = Event::of(&note) {
                self.warn(&message);
            }
        }
    }
}
