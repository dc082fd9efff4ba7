//! What the loop does with the journal of one election, and what happens to it in Kafka goes to the candidate.

use neli::program::{ElectionId, RoleEvent, clock};
use neli_proto::candidate::Event;
use neli_proto::node;
use neli_proto::record::Record;
use neli_proto::time::Time;
use neli_proto::topic::{self, JudgedPartition, TopicFacts};

use super::MainLoop;
use super::kafka::Trust;
use crate::report::log::{Event as LogEvent, timestamp};

impl MainLoop {
    pub(super) fn read_anew(&mut self, at: usize) {
        self.roles[at].readings += 1;
        // Until it has an answer. At the limit of open files it would find none to connect with.
        self.reserve_of_client.lend();
        self.kafka.session.read_anew(self.roles[at].number());
    }

    pub(super) fn send(&mut self, at: usize, now: Time, record: &Record) {
        if let Err(error) = self.kafka.session.send(self.roles[at].number(), record) {
            // A full queue, or a record above librdkafka's limit: as good as not delivered.
            self.kafka.append_was_refused(now, error.to_string());
            self.election_event(at, now, Event::Undelivered { seq: record.seq.unwrap_or_default() });
        } else if let Some(publisher) = &mut self.publisher {
            publisher.sent(at, now, record);
        }
    }

    /// Something has happened to an election.
    pub(super) fn handle_role_event(&mut self, at: usize, now: Time, event: RoleEvent) {
        self.note_role_event(at, now, &event);
        let partitions = self.kafka.session.partitions();
        self.many.iter_mut().for_each(|many| event.tell_many(many, now, at, partitions));
        if let RoleEvent::Ends { .. } = event {
            self.reserve_of_client.take_back();
        }
        let is_trusted = !matches!(event, RoleEvent::Ends { .. }) || self.log_is_trusted(now);
        let event = event.for_candidate(is_trusted);
        if let (Some(publisher), Ok(event)) = (&mut self.publisher, &event) {
            publisher.read(at, now, event);
        }
        match event {
            Ok(event) => self.election_event(at, now, event),
            Err(facts) => return self.judge_topic(at, now, &facts),
        }
        self.note_caught_up(at);
    }

    /// Logs what a person is to know of it, and keeps what the loop itself needs.
    fn note_role_event(&mut self, at: usize, now: Time, event: &RoleEvent) {
        let role = &mut self.roles[at];
        match event {
            RoleEvent::Assigned => {
                let leads = role.node.leads().is_some();
                role.logger.event(&LogEvent::Assigned { partition: role.election.partition, leads });
            }
            RoleEvent::Delivered { .. } => self.kafka.refused_appends.end(),
            RoleEvent::Ends { .. } => {
                role.undecodable.end(now);
                // By now it is known how many partitions the topic has.
                self.kafka.session.election(role.number()).into_iter().for_each(|election| role.election = election);
            }
            RoleEvent::Revoked { lost } => role.logger.event(&LogEvent::Revoked { lost: *lost }),
            RoleEvent::Undecodable { offset, error } => {
                let topic = &self.config.election.topic;
                let message = format!(
                    "topic {topic:?}: the batch at offset {offset} can't be decoded ({error}): nothing behind it is read, and \
                     this candidate leads no more until it is gone"
                );
                role.undecodable.begin(now, message);
            }
            RoleEvent::CaughtUp { .. }
            | RoleEvent::Cut
            | RoleEvent::Elsewhere
            | RoleEvent::Identified { .. }
            | RoleEvent::Named { .. }
            | RoleEvent::NotDelivered { .. }
            | RoleEvent::Passed { .. }
            | RoleEvent::Read { .. }
            | RoleEvent::Topic(_)
            | RoleEvent::UnusedPartitions => {}
        }
    }

    /// Whether an empty log is a new one: the embedded broker that follows a killed one has lost its log, which is warned of once.
    fn log_is_trusted(&mut self, now: Time) -> bool {
        let trusted_from = match self.kafka.trust_in_log(now) {
            Trust::Full => return true,
            Trust::From { is_known: true, .. } => return false,
            Trust::From { at, is_known: false } => at,
        };
        let left = trusted_from.since(now);
        let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let until = timestamp(clock::wall_ms().saturating_add(left_ms));
        self.logger.warn(format!(
            "the embedded broker before this one was killed, and its journal is lost: a job may still run under a lease from it, \
             so nobody leads until {until}, in {}s, when the longest lease is over",
            left.as_secs() + 1
        ));
        false
    }

    /// R0, once in each reading; what is only a risk is warned of in the first.
    fn judge_topic(&mut self, at: usize, now: Time, facts: &TopicFacts) {
        let ElectionId { topic: name, partition, .. } = &self.roles[at].election;
        let place =
            JudgedPartition { bootstrap: &self.kafka.session.access().bootstrap, topic: name, partition: *partition };
        match topic::judge(facts, place) {
            Ok(topic::Judgement { cut_is_harmless, gaps_are_markers, risks, .. }) => {
                if !risks.is_empty() && at == 0 && self.roles[at].readings == 1 {
                    self.logger.warn(format!("topic {name:?}: {}", topic::warning(&risks)));
                }
                self.many.iter_mut().for_each(|many| many.topic_judged(now, at));
                self.election_event(at, now, Event::TopicJudged { cut_is_harmless, gaps_are_markers });
            }
            Err(refusal) => {
                let error = format!("topic {name:?}: {refusal}");
                self.tell_at(at, now, node::Event::TopicRefused { error: error.into() });
            }
        }
    }
}
