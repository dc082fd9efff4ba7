//! The thread that waits inside librdkafka, so that a record is handed over the instant it is there.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use neli_proto::time::Time;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;

use crate::clock;
use crate::kafka::context::KafkaContext;
use crate::kafka::error_class::{ErrorClass, NoToken, is_worth_another_login};
use crate::kafka::event::{KafkaEvent, Key, ReadRecord, ReadingEvent};
use crate::kafka::group::refusal;
use crate::kafka::partition_consumer::PartitionConsumer;
use crate::kafka::reader::Source;
use crate::kafka::reading::Reading;
use crate::kafka::topic::{may_not_describe, may_not_read};

/// Between two tries to read what can't be decoded.
const DECODE_RETRY: Duration = Duration::from_millis(500);
/// How soon a dropped reader's threads notice it. Nobody waits for that.
const LINGER: Duration = Duration::from_millis(500);

/// Waits inside librdkafka.
pub(super) struct PollThread {
    pub(super) reading: Arc<Reading>,
    pub(super) consumer: Arc<PartitionConsumer<KafkaContext>>,
}

impl PollThread {
    pub(super) fn run(self) {
        let election = &self.reading.source.election;
        let (key, hello_key) = (election.key(), election.hello_key());
        let keys = (key.as_bytes(), hello_key.as_bytes());
        let mut retry_at: Option<Time> = None;
        while !self.reading.is_over() {
            let timeout = retry_at.map_or(LINGER, |at| at.since(clock::now()).min(LINGER));
            match self.consumer.consumer().poll(timeout) {
                // Between two tries nothing is read, so a record here is one that was under way.
                Some(Ok(_)) if retry_at.is_some() => {}
                Some(Ok(message)) => self.hand_over(&message, keys),
                Some(Err(error)) if self.undecodable(&error) => {
                    retry_at.get_or_insert_with(|| clock::now() + DECODE_RETRY);
                }
                Some(Err(_)) | None => {}
            }
            if retry_at.is_some_and(|at| clock::now() >= at) {
                retry_at = None;
                self.reading.read_from(&self.consumer, self.reading.next.load(Ordering::Relaxed));
            }
        }
    }

    fn hand_over(&self, message: &impl Message, (election, hello): (&[u8], &[u8])) {
        let key = match message.key() {
            Some(key) if key == election => Key::Election,
            Some(key) if key == hello => Key::Hello,
            Some(_) | None => Key::Other,
        };
        let value = match key {
            Key::Election | Key::Hello => message.payload().map(Box::from),
            Key::Other => None,
        };
        let offset = message.offset();
        self.reading.next.store(offset + 1, Ordering::Relaxed);
        self.reading.up();
        let written_ms = message.timestamp().to_millis().and_then(|ms| u64::try_from(ms).ok());
        self.reading.send_own(ReadingEvent::Record(ReadRecord { offset, key, value, written_ms }));
    }

    /// Says what the error is; true when it is that a batch can't be decoded.
    fn undecodable(&self, error: &KafkaError) -> bool {
        if let KafkaError::PartitionEOF(_) = error {
            self.caught_up();
            return false;
        }
        let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail);
        let words = self.reading.context.error_text(code);
        match code.into() {
            // One connection of several, perhaps; and a topic that may be gone.
            ErrorClass::Connection | ErrorClass::UnknownTopic => self.reading.ask_soon(),
            ErrorClass::GroupForbidden => {
                // The reader itself has no use for the group.
                let Source { joins_group, election, .. } = &self.reading.source;
                if let Some(error) = refusal(code, &words, &election.group).filter(|_| *joins_group) {
                    self.reading.refuse(error);
                }
            }
            ErrorClass::Moving => {}
            ErrorClass::Cut => {
                self.reading.send_own(ReadingEvent::Cut);
            }
            ErrorClass::Login => self.login_failed(&words),
            ErrorClass::NoBroker => {
                if let Some(error) = self.reading.permanent_failure() {
                    self.reading.refuse(error);
                    return false;
                }
                self.reading.down(self.reading.no_answer(code));
                self.reading.ask_soon();
            }
            ErrorClass::Other => {
                self.reading.send(KafkaEvent::Warning(words));
            }
            ErrorClass::TopicForbidden => {
                let topic = &self.reading.source.election.topic;
                let is_fetch = words.starts_with("Fetch");
                self.reading.refuse(if is_fetch { may_not_read(topic) } else { may_not_describe(topic) });
            }
            ErrorClass::Undecodable => {
                // What follows the batch must not be handed over before it.
                self.consumer.stop();
                let offset = self.reading.next.load(Ordering::Relaxed);
                self.reading.send_own(ReadingEvent::Undecodable { offset, error: words });
                return true;
            }
        }
        false
    }

    fn login_failed(&self, words: &str) {
        let access = &self.reading.source.access;
        let (answered, asks_for_tokens) = (access.answered.load(Ordering::Relaxed), access.asks_for_tokens());
        if let Some(NoToken { why, is_refusal }) = self.reading.context.no_token(words) {
            if answered {
                // It is asked for long before the last one expires, and that one counts until then.
                let message =
                    format!("{why}; the last token counts until it expires, and a new one is asked for every 10 s");
                self.reading.send(KafkaEvent::Warning(message));
            } else if is_refusal {
                self.reading.refuse(why);
            } else {
                self.reading.down(why);
            }
        } else if is_worth_another_login(words) || (asks_for_tokens && answered) {
            // A token that has expired since is replaced when the token endpoint gives one again.
            self.reading.ask_soon();
        } else {
            let advice = if asks_for_tokens {
                "that the broker accepts this provider's tokens, and sasl.oauthbearer.scope"
            } else {
                "sasl.mechanisms, sasl.username and sasl.password"
            };
            self.reading.refuse(format!("{words}; check {advice}"));
        }
    }

    fn caught_up(&self) {
        let words = self.reading.context.error_text(RDKafkaErrorCode::PartitionEOF);
        let handed_over = self.reading.next.load(Ordering::Relaxed);
        // rust-rdkafka leaves out the offset of the end; librdkafka's message has it. A marker has no record.
        let next = end_offset(&words).map_or(handed_over, |end| end.max(handed_over));
        self.reading.next.store(next, Ordering::Relaxed);
        self.reading.up();
        self.reading.send_own(ReadingEvent::CaughtUp { next });
    }
}

/// The offset in `... reached end of partition at offset 57 (HighwaterMark 57)`.
fn end_offset(words: &str) -> Option<i64> {
    let (_, tail) = words.split_once("at offset ")?;
    tail.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_read_from_librdkafkas_words() {
        let words = "Fetch from broker 1 reached end of partition at offset 57 (HighwaterMark 58)";
        assert_eq!(end_offset(words), Some(57));
        assert_eq!(end_offset("Fetch from broker 1 failed"), None);
    }
}
