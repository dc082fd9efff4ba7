//! What the threads of one reading share: how far it is, whether a broker answers, and the channel for its events.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use rdkafka::error::RDKafkaErrorCode;
use tokio::sync::mpsc::Sender;

use crate::kafka::context::KafkaContext;
use crate::kafka::error_class::{self, ErrorClass, plain};
use crate::kafka::event::{KafkaEvent, ReadingEvent};
use crate::kafka::partition_consumer::PartitionConsumer;
use crate::kafka::reader::{Order, Source};

/// Whether a broker answers.
#[derive(Eq, PartialEq)]
enum Contact {
    Unknown,
    Down(String),
    Up,
}

/// One reading, as its two threads share it.
pub(super) struct Reading {
    number: u32,
    pub(super) source: Source,
    events: Sender<KafkaEvent>,
    pub(super) context: KafkaContext,
    orders: mpsc::Sender<Order>,
    stopped: Arc<AtomicBool>,
    /// The offset after the last one handed over; 0 before reading.
    pub(super) next: AtomicI64,
    contact: Mutex<Contact>,
    refused: AtomicBool,
    /// Whether the asker has an order to ask that it has not begun.
    pub(super) is_asked_for: AtomicBool,
}

impl Reading {
    /// `stopped` is set once nobody listens to it any more; `orders` leads to its asker.
    pub(super) fn new(
        source: Source,
        number: u32,
        events: Sender<KafkaEvent>,
        orders: mpsc::Sender<Order>,
        stopped: Arc<AtomicBool>,
    ) -> Self {
        Self {
            number,
            context: KafkaContext::new(&source.access),
            source,
            events,
            orders,
            stopped,
            next: AtomicI64::new(0),
            contact: Mutex::new(Contact::Unknown),
            refused: AtomicBool::new(false),
            is_asked_for: AtomicBool::new(false),
        }
    }

    /// Sends an event of the whole session, unless this reading is over.
    pub(super) fn send(&self, event: KafkaEvent) {
        if !self.stopped.load(Ordering::Relaxed) {
            // Fails when nobody listens any more, which `is_over` shows.
            let _ = self.events.blocking_send(event);
        }
    }

    /// Sends an event of this reading, unless it is over.
    pub(super) fn send_own(&self, event: ReadingEvent) {
        self.send(KafkaEvent::Reading { reading: self.number, event });
    }

    /// Whether nobody listens to this reading any more.
    pub(super) fn is_over(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.events.is_closed()
    }

    /// A broker has answered.
    pub(super) fn up(&self) {
        self.source.access.answered.store(true, Ordering::Relaxed);
        if let Some(Contact::Down(_)) = self.change_contact(Contact::Up) {
            self.context.forget_trouble();
            self.send(KafkaEvent::Up);
        }
    }

    /// No broker answers, for this reason.
    pub(super) fn down(&self, error: String) {
        if self.change_contact(Contact::Down(error.clone())).is_some() {
            self.send(KafkaEvent::Down { error });
        }
    }

    /// What the contact was before, when it changes.
    fn change_contact(&self, to: Contact) -> Option<Contact> {
        let mut contact = self.contact.lock().unwrap_or_else(PoisonError::into_inner);
        (*contact != to).then(|| std::mem::replace(&mut *contact, to))
    }

    /// Why nobody answers, in one line.
    pub(super) fn no_answer(&self, code: RDKafkaErrorCode) -> String {
        let bootstrap = &self.source.access.bootstrap;
        self.context.trouble().unwrap_or_else(|| {
            if self.source.access.asks_for_tokens() && !self.source.access.answered.load(Ordering::Relaxed) {
                // librdkafka connects to no broker before that, and asks an endpoint that has trouble again for 50 s.
                format!("{bootstrap}: no answer; no broker is asked before the token endpoint has given a token")
            } else if matches!(code.into(), ErrorClass::Connection | ErrorClass::NoBroker) {
                format!("{bootstrap}: no answer")
            } else {
                format!("{bootstrap}: {}", plain(code))
            }
        })
    }

    /// Kafka refuses for good, which is reported once.
    pub(super) fn refuse(&self, error: String) {
        if !self.refused.swap(true, Ordering::Relaxed) {
            self.send(KafkaEvent::Refused { error });
        }
    }

    /// Why no broker will ever answer, when none has: a certificate that is not accepted. Later it is a trouble that is waited
    /// for: some of the brokers have another.
    pub(super) fn permanent_failure(&self) -> Option<String> {
        if self.source.access.answered.load(Ordering::Relaxed) {
            return None;
        }
        self.context.trouble().as_deref().and_then(error_class::of_certificate)
    }

    /// Has the asker ask soon.
    pub(super) fn ask_soon(&self) {
        if !self.is_asked_for.swap(true, Ordering::Relaxed) {
            let _ = self.orders.send(Order::Ask);
        }
    }

    /// Has the consumer read from this offset on.
    pub(super) fn read_from(&self, consumer: &PartitionConsumer<KafkaContext>, offset: i64) {
        if let Err(error) = consumer.read_from(offset) {
            let topic = &self.source.election.topic;
            self.send(KafkaEvent::Refused {
                error: format!("topic \"{topic}\": it can't be read from offset {offset}: {error}"),
            });
        }
    }
}
