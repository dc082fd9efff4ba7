//! The outcome of each record that was queued: translates librdkafka's delivery reports to [`KafkaEvent`]s.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::ProducerContext;
use tokio::sync::mpsc::Sender;

use crate::access::Access;
use crate::context::KafkaContext;
use crate::error_class::{ErrorClass, of_refused_append, plain};
use crate::event::{FactsEvent, KafkaEvent, SessionEvent};
use crate::rebootstrap::Rebootstrap;
use crate::topic;

/// A record that was queued.
pub(super) enum Sent {
    /// A fact, by its number.
    Fact(u32),
    /// A hello of a process with many roles, or the last one of a candidate.
    Hello,
    /// A record of the journal of a role's election.
    Record { role: u32, seq: u64 },
}

/// The producer's context: it translates librdkafka's delivery reports to [`KafkaEvent`]s.
pub(super) struct Deliveries {
    context: KafkaContext,
    pub(super) events: Sender<KafkaEvent>,
    /// A record was refused because this user lacks a right.
    pub(super) forbidden: AtomicBool,
    /// A record was refused, and none has been appended since.
    refused: AtomicBool,
    /// How long after its sending a record is given up.
    timeout: Duration,
    /// Whether the user asks for librdkafka's debug lines.
    wants_debug: bool,
}

impl Deliveries {
    /// The context of a producer that gives up a record `timeout` after it was sent.
    pub(super) fn reported_to(events: Sender<KafkaEvent>, access: &Access, timeout: Duration) -> Self {
        Self {
            context: KafkaContext::new(access),
            events,
            forbidden: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            timeout,
            wants_debug: access.wants_debug(),
        }
    }

    pub(super) fn send(&self, event: impl Into<KafkaEvent>) {
        // An error means that the receiver is gone and this producer is about to be dropped.
        let _ = self.events.blocking_send(event.into());
    }

    fn fact_delivered(&self, result: &DeliveryResult<'_>, id: u32) {
        let event = match result {
            Ok(_) => FactsEvent::Appended,
            Err((error, message)) => {
                let code = error.rdkafka_error_code();
                if code.is_some_and(|code| ErrorClass::from(code) == ErrorClass::TopicForbidden) {
                    self.send(SessionEvent::Refused { error: topic::may_not_write(message.topic()) });
                }
                FactsEvent::NotAppended { error: reason(error) }
            }
        };
        self.send(SessionEvent::Facts { id, event });
    }

    /// The object that gives the producer its brokers again.
    pub(super) fn rebootstrap(&self) -> Arc<Rebootstrap> {
        Arc::clone(self.context.rebootstrap())
    }

    fn refused(&self, error: String) {
        self.refused.store(true, Ordering::Relaxed);
        self.send(SessionEvent::AppendRefused { error });
    }
}

impl ClientContext for Deliveries {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        // librdkafka reports no delivery of a record that it retries until it gives up, and that report lacks the reason. So the reason is
        // taken from the log.
        if let Some(error) = refused_append(line) {
            self.refused(error);
        }
        if self.wants_debug || !matches!(level, RDKafkaLogLevel::Debug) {
            self.context.log(level, facility, line);
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        // The reader is connected to the same brokers, and reports the error.
        self.context.error(error, reason);
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = Box<Sent>;

    fn delivery(&self, result: &DeliveryResult<'_>, sent: Box<Sent>) {
        let record = match *sent {
            Sent::Fact(id) => return self.fact_delivered(result, id),
            Sent::Hello => None,
            Sent::Record { role, seq } => Some((role, seq)),
        };
        let error = match result {
            Ok(message) => {
                self.refused.store(false, Ordering::Relaxed);
                self.context.rebootstrap().answered();
                return self.send(match record {
                    Some((role, seq)) => KafkaEvent::Delivered { role, seq, offset: message.offset() },
                    None => SessionEvent::HelloDelivered.into(),
                });
            }
            Err((error, _)) => error,
        };
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::MessageTimedOut) {
            self.context.rebootstrap().all_down();
        }
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::PurgeInflight | RDKafkaErrorCode::PurgeQueue) | None => {}
            Some(RDKafkaErrorCode::MessageTimedOut) if self.refused.load(Ordering::Relaxed) => {}
            Some(RDKafkaErrorCode::MessageTimedOut) => {
                let timeout = self.timeout.as_millis();
                self.send(SessionEvent::AppendRefused { error: format!("no acknowledgement within {timeout} ms") });
            }
            Some(code) if ErrorClass::from(code) == ErrorClass::TopicForbidden => {
                self.forbidden.store(true, Ordering::Relaxed);
            }
            Some(code) => {
                if let Some(error) = of_refused_append(&plain(code)) {
                    self.refused(error);
                }
            }
        }
        if let Some((role, seq)) = record {
            let may_be_in_log = error.rdkafka_error_code().is_none_or(ends_a_wait);
            self.send(KafkaEvent::NotDelivered { role, seq, error: reason(error), may_be_in_log });
        }
    }
}

/// The reason in librdkafka's debug line about an append that was refused; `None` for any other line. The line, which the property
/// `debug=msg` enables, is `TOPIC [0]: MessageSet with 1 message(s) (MsgId 0, BaseSeq -1) encountered error: Broker: WORDS (actions
/// Retry,..)`.
fn refused_append(line: &str) -> Option<String> {
    let (_, message) = line.split_once(") encountered error: ")?;
    let (words, _) = message.split_once(" (actions ")?;
    of_refused_append(words)
}

/// Whether the code reports that no acknowledgement is awaited any more. A broker may have taken the record.
const fn ends_a_wait(code: RDKafkaErrorCode) -> bool {
    matches!(code, RDKafkaErrorCode::MessageTimedOut | RDKafkaErrorCode::PurgeInflight | RDKafkaErrorCode::PurgeQueue)
}

/// Why a record was not appended, or not queued.
pub(super) fn reason(error: &KafkaError) -> String {
    match error.rdkafka_error_code() {
        Some(RDKafkaErrorCode::MessageTimedOut) => "no acknowledgement in time".to_owned(),
        Some(code) => plain(code),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_parsed_from_librdkafkas_message() {
        let line = "[thrd:127.0.0.1:9092/1]: 127.0.0.1:9092/1: g.neli [0]: MessageSet with 1 message(s) (MsgId 0, BaseSeq \
                    -1) encountered error: Broker: Not enough in-sync replicas (actions Retry,MsgNotPersisted)";
        assert!(refused_append(line).unwrap().starts_with("Not enough in-sync replicas; "));
        assert_eq!(refused_append(&line.replace("Broker: Not enough in-sync replicas", "Local: Timed out")), None);
        assert_eq!(refused_append("g.neli [0]: Produce MessageSet with 1 message(s)"), None);
    }
}
