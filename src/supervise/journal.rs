//! Passes the events of one election to its node, and logs those that users should know.

use neli::program::{RoleEvent, undecodable};
use neli_proto::time::Time;

use crate::report::log::Event as LogEvent;
use crate::supervise::main_loop::MainLoop;

impl MainLoop {
    /// Handles an event of an election.
    pub(super) fn handle_role_event(&mut self, at: usize, now: Time, event: RoleEvent) {
        self.note_role_event(at, now, &event);
        if matches!(event, RoleEvent::Ends { .. }) {
            self.reserve_of_client.take_back();
        }
        let publisher = &mut self.publisher;
        self.nodes.handle_role_event(now, at, event, |event| {
            if let Some(publisher) = publisher {
                publisher.read(at, now, event);
            }
        });
    }

    /// Logs the events that users should know, and keeps the data that the loop itself needs.
    fn note_role_event(&mut self, at: usize, now: Time, event: &RoleEvent) {
        let role = &mut self.nodes.roles[at];
        match event {
            RoleEvent::Assigned => {
                let leads = role.node.leads().is_some();
                role.logger.event(&LogEvent::Assigned { partition: role.election.partition, leads });
            }
            RoleEvent::Delivered { .. } => self.kafka.refused_appends.end(),
            RoleEvent::Ends { .. } => drop(role.undecodable.end(now)),
            RoleEvent::Revoked { lost } => role.logger.event(&LogEvent::Revoked { lost: *lost }),
            RoleEvent::Undecodable { offset, error } => {
                role.undecodable.begin(now, undecodable(&self.config.election.topic, *offset, error));
            }
            RoleEvent::CaughtUp { .. }
            | RoleEvent::Cut
            | RoleEvent::Elsewhere
            | RoleEvent::GroupRefuses { .. }
            | RoleEvent::Identified { .. }
            | RoleEvent::Named { .. }
            | RoleEvent::NotDelivered { .. }
            | RoleEvent::Passed { .. }
            | RoleEvent::Read { .. }
            | RoleEvent::Topic(_)
            | RoleEvent::UnusedPartitions => {}
        }
    }
}
