//! Passes the events of one election to its node, and logs those that users should know.

use neli_kafka::undecodable;
use neli_proto::candidate::Event;
use neli_proto::precedence::Assignment;
use neli_proto::time::Time;

use crate::report::events;
use crate::supervise::main_loop::MainLoop;

impl MainLoop {
    /// Handles an event of an election.
    pub(super) fn handle_election_event(&mut self, at: usize, now: Time, event: Event) {
        self.note_election_event(at, now, &event);
        if let Event::Answered { .. } = event {
            self.reserve_of_client.take_back();
        }
        if let Some(publisher) = &mut self.publisher {
            publisher.read(at, now, &event);
        }
        self.nodes.handle_election_event(now, at, event);
    }

    /// Logs the events that users should know, and keeps the data that the loop itself needs.
    fn note_election_event(&mut self, at: usize, now: Time, event: &Event) {
        let role = &mut self.nodes.roles[at];
        match event {
            Event::Answered { .. } => drop(role.undecodable.end(now)),
            Event::Delivered { .. } => self.kafka.refused_appends.end(),
            Event::Revoked => role.logger.event(&events::revoked(false)),
            Event::AssignmentChanged(Assignment::Own) => {
                let leads = role.node.leads().is_some();
                role.logger.event(&events::assigned(role.election.partition, leads));
            }
            Event::AssignmentChanged(Assignment::Unknown) => role.logger.event(&events::revoked(true)),
            Event::Undecodable { offset, error } => {
                role.undecodable.begin(now, undecodable(&self.config.election.topic, *offset, error));
            }
            Event::GroupRefuses { .. }
            | Event::HelloAsked { .. }
            | Event::HelloReceived(_)
            | Event::HistoryCut
            | Event::Named { .. }
            | Event::Passed { .. }
            | Event::ReachedEnd { .. }
            | Event::Read { .. }
            | Event::ReadOther { .. }
            | Event::ReadProcessHello { .. }
            | Event::AssignmentChanged(Assignment::Elsewhere)
            | Event::TopicIdentified { .. }
            | Event::TopicJudged { .. }
            | Event::Undelivered { .. }
            | Event::UnusedPartitions => {}
        }
    }
}
