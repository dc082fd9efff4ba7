//! What the loop does with the journal of one election: its records are read, and ours appended.

use std::io;

use neli::program::{Election, KafkaEvent, Key, ReadRecord, Reader, ReadingEvent, Source, clock};
use neli_proto::candidate::{Elector, Event};
use neli_proto::node;
use neli_proto::record::{Body, Record};
use neli_proto::reminder::Reminder;
use neli_proto::time::Time;
use neli_proto::topic::{self, Place, TopicFacts};
use tokio::sync::mpsc::Sender;

use super::MainLoop;
use super::kafka::Trust;
use crate::report::log::timestamp;
use crate::text::reason;

/// The reading of one election's journal that goes on, by a reader of its own (R1).
pub(super) struct Reading {
    reader: Option<Reader>,
    /// How many readings there have been: events of an earlier one are dropped.
    number: u32,
    /// A batch that can't be decoded, while it keeps what is behind it from being read.
    pub(super) undecodable: Reminder,
}

impl Reading {
    /// None yet.
    pub(super) fn none() -> Self {
        Self { reader: None, number: 0, undecodable: Reminder::default() }
    }

    /// Whether this is the number of the reading that goes on.
    pub(super) const fn is(&self, number: u32) -> bool {
        self.number == number
    }

    fn start_anew(&mut self, source: Source, events: Sender<KafkaEvent>) -> io::Result<()> {
        self.number += 1;
        self.reader = None;
        self.reader = Some(Reader::start(source, self.number, events)?);
        Ok(())
    }

    pub(super) fn look_for_end(&self) {
        self.reader.iter().for_each(Reader::look_for_end);
    }

    pub(super) fn read_from(&self, offset: i64) {
        self.reader.iter().for_each(|reader| reader.read_from(offset));
    }

    pub(super) fn stop(&mut self) {
        self.reader = None;
    }
}

impl MainLoop {
    pub(super) fn read_anew(&mut self) {
        let source = Source {
            access: self.kafka.access.clone(),
            election: self.role.election.clone(),
            create_topic: self.config.create_topic,
            joins_group: matches!(self.config.timings.elector(), Elector::Group(_)),
        };
        if let Err(error) = self.role.reading.start_anew(source, self.kafka.event_sender.clone()) {
            self.refuse(format!("the journal can't be read: {}", reason(&error)));
        }
        self.ask_for_topic_facts();
    }

    pub(super) fn send(&mut self, now: Time, record: &Record) {
        let election = &self.role.election;
        let key = match record.body {
            Body::Hello { .. } => election.hello_key(),
            Body::Beat { .. } | Body::Claim { .. } | Body::Release { .. } | Body::Request { .. } => election.key(),
        };
        let seq = record.seq.unwrap_or_default();
        if let Err(error) = self.kafka.producer.send(seq, &key, &record.to_bytes()) {
            // A full queue, or a record above librdkafka's limit: as good as not delivered.
            self.kafka.append_was_refused(now, error.to_string());
            self.election_event(now, Event::Undelivered { seq });
        }
    }

    /// What the reading that goes on has come to.
    pub(super) fn handle_reading_event(&mut self, now: Time, event: ReadingEvent) {
        let event = match event {
            ReadingEvent::CaughtUp { next } => Event::ReachedEnd { next },
            ReadingEvent::Cut => Event::HistoryCut,
            ReadingEvent::Ends { asked, start, end } => {
                self.role.reading.undecodable.end(now);
                Event::Answered { asked, start, end, trusted: self.log_is_trusted(now) }
            }
            ReadingEvent::Record(record) => of_record(&record),
            ReadingEvent::Topic(facts) => return self.judge_topic(now, &facts),
            ReadingEvent::Undecodable { offset, error } => {
                let topic = &self.role.election.topic;
                let message = format!(
                    "topic {topic:?}: the batch at offset {offset} can't be decoded ({error}): nothing behind it is read, and \
                     this candidate leads no more until it is gone"
                );
                self.role.reading.undecodable.begin(now, message);
                Event::Undecodable
            }
        };
        self.election_event(now, event);
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

    /// Asks for what R0 judges, beside the reading. The embedded broker's topic has no settings to judge, and its log's head is
    /// cut by size.
    fn ask_for_topic_facts(&mut self) {
        if self.kafka.is_embedded() {
            let event = Event::TopicJudged { cut_is_harmless: false, gaps_are_markers: false };
            return self.election_event(clock::now(), event);
        }
        if let Err(error) = self.kafka.producer.judge(&self.role.election, self.role.reading.number) {
            self.logger
                .warn(format!("the topic's settings can't be asked for, for lack of a thread: {}", reason(&error)));
        }
    }

    /// R0, once in each reading; what is only a risk is warned of in the first.
    fn judge_topic(&mut self, now: Time, facts: &TopicFacts) {
        let Election { topic: name, partition, .. } = &self.role.election;
        let place = Place { bootstrap: &self.kafka.access.bootstrap, topic: name, partition: *partition };
        match topic::judge(facts, place) {
            Ok(topic::Judgement { cut_is_harmless, gaps_are_markers, risks, .. }) => {
                if !risks.is_empty() && self.role.reading.number == 1 {
                    self.logger.warn(format!("topic {name:?}: {}", risks.join("; ")));
                }
                self.election_event(now, Event::TopicJudged { cut_is_harmless, gaps_are_markers });
            }
            Err(refusal) => {
                let error = format!("topic {name:?}: {refusal}");
                self.role.node.handle(now, node::Event::TopicRefused { error: error.into() });
            }
        }
    }
}

fn of_record(ReadRecord { offset, key, value, .. }: &ReadRecord) -> Event {
    let (offset, record) = (*offset, value.as_deref().and_then(Record::parse));
    match key {
        Key::Election => Event::Read { offset, record },
        Key::Hello => Event::ReadOther { offset, hello: record.and_then(Record::into_hello) },
        Key::Other => Event::ReadOther { offset, hello: None },
    }
}
