//! What the loop does with Kafka: the journal's two ends and the group, for the candidate.

use std::sync::Arc;
use std::time::Duration;

use neli::clock;
use neli::election::Election;
use neli::kafka::access::Access;
use neli::kafka::embedded::{Found, Seeker};
use neli::kafka::journal::{KafkaEvent, Key, Producer};
use neli::kafka::reader::{Reader, Source};
use neli_proto::broker_death;
use neli_proto::candidate::{Elector, Event};
use neli_proto::node;
use neli_proto::record::{Body, Record};
use neli_proto::time::Time;
use neli_proto::topic::{self, Place, TopicFacts};

use super::Run;
use crate::exit::StartupError;
use crate::report::log::{Event as LogEvent, timestamp};
use crate::text::reason;

impl Run {
    /// R1: a reader of its own for each reading; what the one before still says is not heard.
    pub(super) fn read_anew(&mut self) {
        self.reading += 1;
        let source = Source {
            access: self.access.clone(),
            election: self.config.election.clone(),
            create_topic: self.config.create_topic,
            joins_group: matches!(self.config.timings.elector, Elector::Group(_)),
        };
        self.reader = None;
        match Reader::start(source, self.reading, self.seen_sender.clone()) {
            Ok(reader) => self.reader = Some(reader),
            Err(error) => {
                self.refuse(format!("the journal can't be read: {}", reason(&error)));
            }
        }
        self.have_topic_judged();
    }

    pub(super) fn send(&mut self, now: Time, record: &Record) {
        let key = match record.body {
            Body::Hello { .. } => format!("{}/hello", self.config.election.key()),
            Body::Beat { .. } | Body::Claim { .. } | Body::Release { .. } | Body::Request { .. } => {
                self.config.election.key()
            }
        };
        let seq = record.seq.unwrap_or_default();
        if let Err(error) = self.producer.send(seq, &key, &record.to_bytes()) {
            // A full queue, or a record that librdkafka was told is too large: as good as not delivered.
            self.append_was_refused(now, error);
            self.hear_of_election(now, Event::Undelivered { seq });
        }
    }

    /// One line for each kind of refusal, and again every 30 s. While no broker answers that is what is said.
    fn append_was_refused(&mut self, now: Time, error: String) {
        if self.outage.trouble().is_none() {
            self.refusals.begin(now, error);
        }
    }

    pub(super) fn see(&mut self, seen: KafkaEvent) {
        let now = clock::now();
        let event = match seen {
            KafkaEvent::AppendRefused { error } => return self.append_was_refused(now, error),
            KafkaEvent::CaughtUp { reading, next } if reading == self.reading => Event::ReachedEnd { next },
            KafkaEvent::Created { replicas, brokers } => {
                let topic = self.config.election.topic.clone();
                return self.logger.event(&LogEvent::TopicCreated { topic, replicas, brokers });
            }
            KafkaEvent::Cut { reading } if reading == self.reading => Event::HistoryCut,
            KafkaEvent::Debug(message) => return self.logger.event(&LogEvent::Debug { message }),
            KafkaEvent::Delivered { seq, .. } => {
                self.refusals.end();
                Event::Delivered { seq }
            }
            KafkaEvent::Down { error } => return self.outage.begin(now, error),
            KafkaEvent::Ends { reading, asked, start, end } if reading == self.reading => {
                self.undecodable.end(now);
                Event::Answered { asked, start, end, trusted: self.log_is_trusted(now) }
            }
            KafkaEvent::Identified { asked, identity } => Event::TopicIdentified { asked, identity },
            KafkaEvent::Moved(found) => return self.move_to(now, &found),
            KafkaEvent::NotDelivered { seq, .. } => Event::Undelivered { seq },
            KafkaEvent::Record { reading, offset, key, value, .. } if reading == self.reading => match key {
                Key::Election => Event::Read { offset, record: value.and_then(|value| Record::parse(&value)) },
                Key::Hello => {
                    let hello = value.and_then(|value| Record::parse(&value));
                    Event::ReadOther { offset, hello: hello.and_then(Record::into_hello) }
                }
                Key::Other => Event::ReadOther { offset, hello: None },
            },
            KafkaEvent::Refused { error } => {
                return self.node.handle(now, node::Event::KafkaRefused { error: error.into() });
            }
            KafkaEvent::BrokerSession(session) => return self.judge_lease(session),
            KafkaEvent::Topic { reading, facts } if reading == self.reading => return self.judge_topic(now, &facts),
            KafkaEvent::Undecodable { reading, offset, error } if reading == self.reading => {
                let topic = &self.config.election.topic;
                self.undecodable.begin(
                    now,
                    format!(
                        "topic {topic:?}: the batch at offset {offset} can't be decoded ({error}): nothing behind it is \
                         read, and this candidate leads no more until it is gone"
                    ),
                );
                Event::Undecodable
            }
            KafkaEvent::Up => {
                if let Some(down) = self.outage.end(now) {
                    self.logger.event(&LogEvent::BrokerUp { down });
                }
                return;
            }
            KafkaEvent::Warning(message) => return self.logger.event(&LogEvent::Warning { message, dropped: None }),
            // A reading that is over.
            KafkaEvent::CaughtUp { .. }
            | KafkaEvent::Cut { .. }
            | KafkaEvent::Ends { .. }
            | KafkaEvent::Record { .. }
            | KafkaEvent::Topic { .. }
            | KafkaEvent::Undecodable { .. } => return,
        };
        self.hear_of_election(now, event);
    }

    fn hear_of_election(&mut self, now: Time, event: Event) {
        self.node.handle(now, node::Event::Election(event));
    }

    /// Whether an empty log is a new one. One of an embedded broker that follows a killed one is not for a while, which is said.
    fn log_is_trusted(&mut self, now: Time) -> bool {
        let sure_from = self.access.embedded.as_ref().map_or(Time::ZERO, |broker| broker.sure_from());
        if now >= sure_from {
            return true;
        }
        if self.distrust_ends.replace(sure_from) != Some(sure_from) {
            let left = sure_from.since(now);
            let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            let until = timestamp(clock::wall_ms().saturating_add(left_ms));
            let message = format!(
                "the embedded broker before this one was killed, and its journal is lost: a job may still run under a lease \
                 from it, so nobody leads until {until}, in {}s, when the longest lease is over",
                left.as_secs() + 1
            );
            self.logger.event(&LogEvent::Warning { message, dropped: None });
        }
        false
    }

    /// Says what an embedded broker is for, and has it replaced when it dies.
    pub(super) fn follow_broker(&mut self, seeker: Seeker) -> Result<(), StartupError> {
        self.brokers_started = seeker.started.clone();
        let Some(broker) = &self.access.embedded else { return Ok(()) };
        let message = format!(
            "--embedded is for a trial on this one machine: its broker, at {}, keeps nothing",
            broker.bootstrap()
        );
        self.logger.event(&LogEvent::Warning { message, dropped: None });
        let follow = seeker.follow(Arc::clone(broker), self.seen_sender.clone());
        follow.map_err(|error| StartupError::new(format!("--embedded: {}", reason(&error))))
    }

    /// What librdkafka remembers of partitions' leaders may keep a producer from a topic that was made anew, for good
    /// (librdkafka's issue 4898): another one knows nothing.
    pub(super) fn renew_producer(&mut self) {
        let lease = self.config.timings.lease;
        match Producer::start(&self.access, &self.config.election, lease, self.seen_sender.clone()) {
            Ok(producer) => self.producer = producer,
            Err(error) => {
                self.refuse(error);
            }
        }
    }

    /// The embedded broker died, and another is there: its history is made anew.
    pub(super) fn move_to(&mut self, now: Time, found: &Found) {
        let log_callback = self.access.log_callback.clone();
        self.access = Access { log_callback, ..Access::embedded(&found.connection, &self.config.client.properties) };
        if self.members.is_in_group() {
            self.leave_group(self.node.is_alone(now));
            self.join_group();
        }
        self.hear_of_election(now, Event::HistoryCut);
    }

    /// Asks for what R0 judges, beside the reading. The embedded broker's topic has no settings to judge, and its log's head is
    /// cut by size.
    fn have_topic_judged(&mut self) {
        if self.access.embedded.is_some() {
            let event = Event::TopicJudged { cut_is_harmless: false, gaps_are_markers: false };
            return self.hear_of_election(clock::now(), event);
        }
        if let Err(error) = self.producer.judge(&self.config.election, self.reading) {
            let message = format!("the topic's settings can't be asked for, for lack of a thread: {}", reason(&error));
            self.logger.event(&LogEvent::Warning { message, dropped: None });
        }
    }

    /// Whether the lease outlives a broker's death: the warning once.
    fn judge_lease(&mut self, session: Duration) {
        if self.broker_session.replace(session).is_some() {
            return;
        }
        if let Some(warning) = broker_death::warning(&self.config.timings, session) {
            let message = format!("{}: {warning}", self.config.lease_shown);
            self.logger.event(&LogEvent::Warning { message, dropped: None });
        }
    }

    /// R0, once a reading: the warning once.
    pub(super) fn judge_topic(&mut self, now: Time, facts: &TopicFacts) {
        let Election { topic: name, partition, .. } = &self.config.election;
        let place = Place { bootstrap: &self.access.bootstrap, topic: name, partition: *partition };
        match topic::judge(facts, place) {
            Ok(judgement) => {
                if !judgement.risks.is_empty() && self.reading == 1 {
                    let message = format!("topic {name:?}: {}", judgement.risks.join("; "));
                    self.logger.event(&LogEvent::Warning { message, dropped: None });
                }
                let topic::Judgement { cut_is_harmless, gaps_are_markers, .. } = judgement;
                self.hear_of_election(now, Event::TopicJudged { cut_is_harmless, gaps_are_markers });
            }
            Err(refusal) => {
                let error = format!("topic {name:?}: {refusal}");
                self.node.handle(now, node::Event::TopicRefused { error: error.into() });
            }
        }
    }
}
