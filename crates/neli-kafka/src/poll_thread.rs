//! The thread that waits inside librdkafka, so that each record is delivered as soon as it arrives.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use neli_proto::kafka::Event;
use neli_proto::record::LogRecord;
use neli_proto::time::Time;
use rdkafka::consumer::Consumer;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Message, Timestamp};

use crate::clock;
use crate::context::KafkaContext;
use crate::election::Elections;
use crate::error_class::{ErrorClass, NoToken, code_of, is_worth_another_login, of_refused_login};
use crate::event::{JournalRecord, KafkaEvent};
use crate::partition_consumer::PartitionConsumer;
use crate::reading::Reading;
use crate::topic::{may_not_describe, may_not_read};

/// The time between two attempts to read a batch that can't be decoded.
const DECODE_RETRY: Duration = Duration::from_millis(500);
/// The longest time after which a dropped reader's threads notice the drop. The caller does not wait for that.
const LINGER: Duration = Duration::from_millis(500);

/// Waits inside librdkafka.
pub(super) struct PollThread {
    pub(super) reading: Arc<Reading>,
    pub(super) consumer: Arc<PartitionConsumer<KafkaContext>>,
}

impl PollThread {
    pub(super) fn run(self) {
        // The partitions that can't be decoded, and the time of the next attempt.
        let mut retry: Option<(Time, BTreeSet<i32>)> = None;
        while !self.reading.is_over() {
            let timeout = retry.as_ref().map_or(LINGER, |(at, _)| at.since(clock::now()).min(LINGER));
            match self.consumer.consumer().poll(timeout) {
                // Between two attempts too: the asker may begin to read other partitions then. Those that were stopped deliver nothing.
                Some(Ok(message)) => self.hand_over(&message),
                Some(Err(error)) => {
                    if let Some(stopped) = self.undecodable(&error) {
                        let (_, waiting) = retry.get_or_insert_with(|| (clock::now() + DECODE_RETRY, BTreeSet::new()));
                        waiting.extend(stopped);
                    }
                }
                None => {}
            }
            self.reading.context.rebootstrap().after_poll(self.consumer.consumer().client());
            if let Some((_, stopped)) = retry.take_if(|(at, _)| clock::now() >= *at) {
                for partition in stopped {
                    let next = self.reading.next(partition).unwrap_or_default();
                    self.reading.read_from(&self.consumer, partition, next);
                }
            }
        }
    }

    fn hand_over(&self, message: &impl Message) {
        let (partition, offset) = (message.partition(), message.offset());
        self.reading.handing_over_below(partition, offset + 1);
        self.reading.up();
        let written_ms = written_ms(message);
        let (reading, key, value) = (self.reading.number, message.key(), message.payload());
        self.reading.send(if self.reading.source.is_for_display {
            KafkaEvent::ReadForDisplay { reading, partition, record: record_for_display(message) }
        } else {
            let record = self.journal_record((partition, offset), key, value, written_ms);
            KafkaEvent::Read { reading, partition, offset, record }
        });
    }

    /// A record with an election's key belongs to the election only if it is in the partition of its role.
    fn journal_record(
        &self,
        (partition, offset): (i32, i64),
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        written_ms: Option<u64>,
    ) -> JournalRecord {
        let hello = |role| JournalRecord::Role(role, Event::of_hello(offset, value));
        let is_here =
            |role| self.reading.partitions().is_some_and(|count| Elections::partition_of(role, count) == partition);
        let elections = &self.reading.source.elections;
        if partition == Elections::PARTITION_OF_HELLOS && key.is_some_and(|key| elections.is_hello(key)) {
            // A candidate without roles also reads the hellos of processes with roles, whose keys may name other roles.
            return match value {
                _ if !elections.are_many() => hello(elections.roles.start),
                Some(value) => JournalRecord::Hello(value.into()),
                None => JournalRecord::Other,
            };
        }
        match key.and_then(|key| elections.find(key)) {
            Some((role, false)) if is_here(role) => {
                JournalRecord::Role(role, Event::of_record(offset, value, written_ms))
            }
            Some((role, true)) if is_here(role) => hello(role),
            Some(_) | None => JournalRecord::Other,
        }
    }

    /// Handles an error. If a batch can't be decoded, reading stops and the partitions that were read are returned. librdkafka does not
    /// report which partition it is, so the others continue half a second later.
    fn undecodable(&self, error: &KafkaError) -> Option<BTreeSet<i32>> {
        if let KafkaError::PartitionEOF(partition) = error {
            self.caught_up(*partition);
            return None;
        }
        let code = code_of(error);
        let words = self.reading.context.error_text(code);
        match code.into() {
            // Perhaps only one connection of several has failed; or the topic may be gone.
            ErrorClass::Connection | ErrorClass::UnknownPartition | ErrorClass::UnknownTopic => self.reading.ask_soon(),
            ErrorClass::Moving => {}
            ErrorClass::Cut => self.cut(),
            ErrorClass::Login => self.login_failed(&words),
            ErrorClass::NoBroker => {
                if let Some(error) = self.reading.permanent_failure() {
                    self.reading.refuse(error);
                    return None;
                }
                // The first question, whose time is over then, reports it.
                if !self.reading.may_have_other_addresses() {
                    self.reading.down(self.reading.no_answer(&code.into()));
                }
                self.reading.ask_soon();
            }
            // The reader has no group.
            ErrorClass::GroupForbidden | ErrorClass::Other => {
                self.reading.warn(words);
            }
            ErrorClass::TopicForbidden => {
                let topic = &self.reading.source.elections.topic;
                let is_fetch = words.starts_with("Fetch");
                self.reading.refuse(if is_fetch { may_not_read(topic) } else { may_not_describe(topic) });
            }
            ErrorClass::Undecodable => {
                // Records after the batch must not be handed over before it.
                let stopped = self.consumer.stop();
                for partition in &stopped {
                    let offset = self.reading.next(*partition).unwrap_or_default();
                    let error = words.as_str().into();
                    self.reading.send_own(*partition, Event::Undecodable { offset, error });
                }
                return Some(stopped);
            }
        }
        None
    }

    /// Handles an offset that is out of range. If one partition is read, it is that one. Otherwise the first offsets of the logs show which
    /// one it is.
    fn cut(&self) {
        let partitions = self.reading.to_be_read().unwrap_or_default();
        match partitions.first().filter(|_| partitions.len() == 1) {
            Some(partition) => self.reading.send_own(*partition, Event::HistoryCut),
            None => self.reading.ask_soon(),
        }
    }

    fn login_failed(&self, words: &str) {
        let access = &self.reading.source.access;
        let (answered, asks_for_tokens) = (access.answered.load(Ordering::Relaxed), access.asks_for_tokens());
        if let Some(NoToken { why, is_refusal }) = self.reading.context.no_token(words) {
            if answered {
                // The new token is asked for long before the last one expires, and the last one is used until then.
                let message =
                    format!("{why}; the last token counts until it expires, and a new one is asked for every 10 s");
                self.reading.warn(message);
            } else if is_refusal {
                self.reading.refuse(why);
            } else {
                self.reading.down(why);
            }
        } else if is_worth_another_login(words) || answered {
            // A token that has expired is replaced as soon as the token endpoint gives a new one. One of several brokers may have outdated
            // users, or none yet: then other brokers answer, or the lease ends without an answer.
            self.reading.ask_soon();
        } else {
            self.reading.refuse(of_refused_login(words, asks_for_tokens));
        }
    }

    fn caught_up(&self, partition: i32) {
        let words = self.reading.context.error_text(RDKafkaErrorCode::PartitionEOF);
        let handed_over = self.reading.next(partition).unwrap_or_default();
        // rust-rdkafka leaves out the end's offset, but librdkafka's message contains it. It may be higher than the offset after the last
        // record, because a transaction's marker has no record.
        let next = end_offset(&words).map_or(handed_over, |end| end.max(handed_over));
        self.reading.handing_over_below(partition, next);
        self.reading.up();
        self.reading.send_own(partition, Event::ReachedEnd { next });
    }
}

/// The offset in `... reached end of partition at offset 57 (HighwaterMark 57)`.
pub(super) fn end_offset(words: &str) -> Option<i64> {
    let (_, tail) = words.split_once("at offset ")?;
    tail.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The whole record, for those who show it.
pub(crate) fn record_for_display(message: &impl Message) -> LogRecord {
    LogRecord {
        offset: message.offset(),
        key: message.key().map(Box::from),
        value: message.payload().map(Box::from),
        written_ms: written_ms(message),
        is_brokers_time: matches!(message.timestamp(), Timestamp::LogAppendTime(_)),
    }
}

/// The record's timestamp, in milliseconds since 1970.
fn written_ms(message: &impl Message) -> Option<u64> {
    message.timestamp().to_millis().and_then(|ms| u64::try_from(ms).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_parsed_from_librdkafkas_message() {
        let words = "Fetch from broker 1 reached end of partition at offset 57 (HighwaterMark 58)";
        assert_eq!(end_offset(words), Some(57));
        assert_eq!(end_offset("Fetch from broker 1 failed"), None);
    }
}
