//! Passes the events of one election to its node, and logs those that users should know.

use neli::program::{clock, undecodable};
use neli_proto::candidate::Event;
use neli_proto::precedence::Standing;
use neli_proto::time::{Time, millis};

use crate::report::log::{Event as LogEvent, timestamp};
use crate::supervise::kafka_state::Trust;
use crate::supervise::main_loop::MainLoop;

impl MainLoop {
    /// Handles an event of an election.
    pub(super) fn handle_election_event(&mut self, at: usize, now: Time, mut event: Event) {
        self.note_election_event(at, now, &event);
        if let Event::Answered { trusted, .. } = &mut event {
            self.reserve_of_client.take_back();
            *trusted = self.log_is_trusted(now);
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
            Event::Revoked => role.logger.event(&LogEvent::Revoked { lost: false }),
            Event::StandingChanged(Standing::Assigned) => {
                let leads = role.node.leads().is_some();
                role.logger.event(&LogEvent::Assigned { partition: role.election.partition, leads });
            }
            Event::StandingChanged(Standing::Unknown) => role.logger.event(&LogEvent::Revoked { lost: true }),
            Event::Undecodable { offset, error } => {
                role.undecodable.begin(now, undecodable(&self.config.election.topic, *offset, error));
            }
            Event::GroupRefuses { .. }
            | Event::HelloAsked { .. }
            | Event::HelloReceived(_)
            | Event::HistoryCut
            | Event::LogTrusted
            | Event::Named { .. }
            | Event::Passed { .. }
            | Event::ReachedEnd { .. }
            | Event::Read { .. }
            | Event::ReadOther { .. }
            | Event::ReadProcessHello { .. }
            | Event::StandingChanged(Standing::Elsewhere)
            | Event::TopicIdentified { .. }
            | Event::TopicJudged { .. }
            | Event::Undelivered { .. }
            | Event::UnusedPartitions => {}
        }
    }

    /// Whether an empty log is a new one. An embedded broker that follows a killed one has lost the log; that is warned about once.
    fn log_is_trusted(&mut self, now: Time) -> bool {
        let embedded = self.nodes.session.access().embedded.as_ref();
        let trusted_from = embedded.map_or(Time::ZERO, |broker| broker.trusted_from());
        let trusted_from = match self.kafka.trust_in_log(now, trusted_from) {
            Trust::Full => return true,
            Trust::From { is_known: true, .. } => return false,
            Trust::From { at, is_known: false } => at,
        };
        let left = trusted_from.since(now);
        let left_ms = millis(left);
        let until = timestamp(clock::wall_ms().saturating_add(left_ms));
        self.logger.warn(format!(
            "the embedded broker before this one was killed, or stopped while or soon after candidates ran, and its journal is lost: a \
             job may still run under a lease from it, so nobody leads until {until}, in {}s, when the longest lease is over",
            left.as_secs() + 1
        ));
        false
    }
}
