//! What the loop does with the journal of one election, and what happens to it in Kafka goes to the candidate.

use neli::program::{Election, RoleEvent, clock};
use neli_proto::candidate::Event;
use neli_proto::node;
use neli_proto::precedence::Standing;
use neli_proto::record::{Body, Record};
use neli_proto::time::Time;
use neli_proto::topic::{self, Place, TopicFacts};

use super::MainLoop;
use super::kafka::Trust;
use crate::report::log::{Event as LogEvent, timestamp};

impl MainLoop {
    pub(super) fn read_anew(&mut self, at: usize) {
        self.roles[at].readings += 1;
        self.kafka.session.read_anew(self.roles[at].number());
    }

    pub(super) fn send(&mut self, at: usize, now: Time, record: &Record) {
        let election = &self.roles[at].election;
        let key = match record.body {
            Body::Hello { .. } => election.hello_key(),
            Body::Beat { .. } | Body::Claim { .. } | Body::Release { .. } | Body::Request { .. } => election.key(),
        };
        let seq = record.seq.unwrap_or_default();
        if let Err(error) = self.kafka.session.send(election.role, seq, &key, &record.to_bytes()) {
            // A full queue, or a record above librdkafka's limit: as good as not delivered.
            self.kafka.append_was_refused(now, error.to_string());
            self.election_event(at, now, Event::Undelivered { seq });
        }
    }

    /// Something has happened to an election.
    pub(super) fn handle_role_event(&mut self, at: usize, now: Time, event: RoleEvent) {
        let event = match event {
            RoleEvent::Assigned => {
                let role = &self.roles[at];
                role.logger.event(&LogEvent::Assigned { partition: role.election.partition });
                Event::StandingChanged(Standing::Assigned)
            }
            RoleEvent::CaughtUp { next } => Event::ReachedEnd { next },
            RoleEvent::Cut => Event::HistoryCut,
            RoleEvent::Delivered { seq } => {
                self.kafka.refused_appends.end();
                Event::Delivered { seq }
            }
            RoleEvent::Elsewhere => Event::StandingChanged(Standing::Elsewhere),
            RoleEvent::Ends { asked, start, end } => {
                let role = &mut self.roles[at];
                role.undecodable.end(now);
                // By now it is known how many partitions the topic has.
                self.kafka.session.election(role.number()).into_iter().for_each(|election| role.election = election);
                Event::Answered { asked, start, end, trusted: self.log_is_trusted(now) }
            }
            RoleEvent::Identified { asked, identity } => Event::TopicIdentified { asked, identity },
            RoleEvent::Named { id } => Event::Named { id: id.into() },
            RoleEvent::NotDelivered { seq } => Event::Undelivered { seq },
            RoleEvent::Passed { first, last } => Event::Passed { first, last },
            RoleEvent::Read { offset, is_hello, value } => of_record(offset, is_hello, value.as_deref()),
            RoleEvent::Revoked { lost } => {
                self.roles[at].logger.event(&LogEvent::Revoked { lost });
                if lost { Event::StandingChanged(Standing::Unknown) } else { Event::Revoked }
            }
            RoleEvent::Topic(None) => Event::TopicJudged { cut_is_harmless: false, gaps_are_markers: false },
            RoleEvent::Topic(Some(facts)) => return self.judge_topic(at, now, &facts),
            RoleEvent::Undecodable { offset, error } => {
                let topic = &self.config.election.topic;
                let message = format!(
                    "topic {topic:?}: the batch at offset {offset} can't be decoded ({error}): nothing behind it is read, and \
                     this candidate leads no more until it is gone"
                );
                self.roles[at].undecodable.begin(now, message);
                Event::Undecodable
            }
            RoleEvent::UnusedPartitions => Event::UnusedPartitions,
        };
        self.election_event(at, now, event);
        let role = &self.roles[at];
        if role.node.is_caught_up() {
            self.kafka.session.is_caught_up(role.number());
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
        let Election { topic: name, partition, .. } = &self.roles[at].election;
        let place = Place { bootstrap: &self.kafka.session.access().bootstrap, topic: name, partition: *partition };
        match topic::judge(facts, place) {
            Ok(topic::Judgement { cut_is_harmless, gaps_are_markers, risks, .. }) => {
                if !risks.is_empty() && at == 0 && self.roles[at].readings == 1 {
                    self.logger.warn(format!("topic {name:?}: {}", risks.join("; ")));
                }
                self.election_event(at, now, Event::TopicJudged { cut_is_harmless, gaps_are_markers });
            }
            Err(refusal) => {
                let error = format!("topic {name:?}: {refusal}");
                self.tell_at(at, now, node::Event::TopicRefused { error: error.into() });
            }
        }
    }
}

fn of_record(offset: i64, is_hello: bool, value: Option<&[u8]>) -> Event {
    let record = value.and_then(Record::parse);
    if is_hello {
        Event::ReadOther { offset, hello: record.and_then(Record::into_hello) }
    } else {
        Event::Read { offset, record }
    }
}
