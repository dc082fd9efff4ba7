//! What a reader reads, and the data that its threads share: its progress, whether a broker answers, and the channel for its events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use neli_proto::kafka::Event;
use neli_proto::time::Time;
use tokio::sync::mpsc::Sender;

use crate::access::Access;
use crate::clock;
use crate::context::KafkaContext;
use crate::election::Elections;
use crate::error_class::{self, ErrorClass};
use crate::event::{KafkaEvent, SessionEvent};
use crate::librdkafka::AdminError;
use crate::partition_consumer::PartitionConsumer;
use crate::topic;

/// What to read, and from which cluster.
#[derive(Clone)]
pub struct Source {
    /// The access to Kafka.
    pub access: Access,
    /// The elections whose records are read.
    pub elections: Elections,
    /// The topic's number of partitions, if an earlier reading has found it: it determines which election a record belongs to.
    pub partitions: Option<i32>,
    /// The partitions to read; `None` means all that have a role.
    pub only: Option<BTreeSet<i32>>,
    /// What to do if the topic is missing.
    pub if_missing: IfMissing,
    /// Whether an observer reads. Then each record of the topic is delivered with its key and value, and the refusal of a missing topic names
    /// the topics that exist.
    pub is_for_display: bool,
}

/// What to do if a topic is missing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IfMissing {
    /// Waits for it. Meanwhile the missing topic is reported as the reason why Kafka is down.
    Await,
    /// Counts it as an empty one. Only for a reading of partition 0.
    CountAsEmpty,
    /// Creates it.
    Create,
    /// Refuses.
    Refuse,
}

/// A refused connection counts only after this time.
const OTHER_ADDRESSES: Duration = Duration::from_secs(1);

/// Whether a broker answers.
#[derive(Eq, PartialEq)]
enum Contact {
    Unknown,
    Down(String),
    Up,
}

/// An order to the asker.
pub(super) enum Order {
    /// Something may have changed: ask soon, and look whether the reading is over.
    Ask,
    /// Read this partition from this offset on.
    ReadFrom { partition: i32, offset: i64 },
}

/// One reading, as its two threads share it.
pub(super) struct Reading {
    pub(super) number: u32,
    pub(super) source: Source,
    events: Sender<KafkaEvent>,
    pub(super) context: KafkaContext,
    orders: mpsc::Sender<Order>,
    stopped: Arc<AtomicBool>,
    /// The number of the topic's partitions, once it is known.
    partitions: OnceLock<i32>,
    /// For each partition that is read, the offset after the last record that was handed over.
    next: Mutex<BTreeMap<i32, i64>>,
    contact: Mutex<Contact>,
    begun: Time,
    refused: AtomicBool,
    /// Whether the asker has an order to ask that it has not begun to execute.
    pub(super) is_asked_for: AtomicBool,
}

impl Reading {
    /// `stopped` is set when the receiver is gone; `orders` are received by the asker.
    pub(super) fn new(
        source: Source,
        number: u32,
        events: Sender<KafkaEvent>,
        orders: mpsc::Sender<Order>,
        stopped: Arc<AtomicBool>,
    ) -> Self {
        // A process with a single role always uses partition 0.
        let known = if source.elections.roles.end == 1 { Some(1) } else { source.partitions };
        let partitions = known.map_or_else(OnceLock::new, OnceLock::from);
        Self {
            number,
            partitions,
            context: KafkaContext::new(&source.access),
            source,
            events,
            orders,
            stopped,
            next: Mutex::default(),
            contact: Mutex::new(Contact::Unknown),
            begun: clock::now(),
            refused: AtomicBool::new(false),
            is_asked_for: AtomicBool::new(false),
        }
    }

    /// Sends an event, unless this reading is over.
    pub(super) fn send(&self, event: impl Into<KafkaEvent>) {
        if !self.stopped.load(Ordering::Relaxed) {
            // Fails when the receiver is gone, which `is_over` shows.
            let _ = self.events.blocking_send(event.into());
        }
    }

    pub(super) fn warn(&self, warning: String) {
        self.send(SessionEvent::Warning(warning));
    }

    /// Sends an event of this reading of a partition, for all its elections.
    pub(super) fn send_own(&self, partition: i32, event: Event) {
        self.send(KafkaEvent::Reading { reading: self.number, partition, event });
    }

    /// Handles the topic's number of partitions. With fewer than before, a reading of several roles can't continue, because each role would
    /// move to another partition. With more it continues; another question finds out whether it is the same topic.
    pub(super) fn found(&self, partitions: i32) {
        if self.source.elections.roles.end == 1 {
            return;
        }
        let known = *self.partitions.get_or_init(|| {
            self.send(KafkaEvent::Partitions(partitions));
            partitions
        });
        if partitions < known {
            self.refuse(topic::partitions_changed(&self.source.elections.topic, known, partitions));
        }
    }

    /// The number of the topic's partitions, once it is known.
    pub(super) fn partitions(&self) -> Option<i32> {
        self.partitions.get().copied()
    }

    /// The partitions to be read, once they are known.
    pub(super) fn to_be_read(&self) -> Option<BTreeSet<i32>> {
        let Source { elections, only, .. } = &self.source;
        let partitions = self.partitions()?;
        Some(only.clone().unwrap_or_else(|| elections.partitions_in_use(partitions)))
    }

    /// The offset after the last record of a partition that was handed over; `None` before the partition is read.
    pub(super) fn next(&self, partition: i32) -> Option<i64> {
        self.nexts().get(&partition).copied()
    }

    /// Notes that every record of a partition below `next` is being handed over.
    pub(super) fn handing_over_below(&self, partition: i32, next: i64) {
        self.nexts().insert(partition, next);
    }

    fn nexts(&self) -> MutexGuard<'_, BTreeMap<i32, i64>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the receiver of this reading is gone.
    pub(super) fn is_over(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.events.is_closed()
    }

    /// A broker has answered. The first answer is reported too, because a previous reading may have reported that no broker answers.
    pub(super) fn up(&self) {
        self.source.access.answered.store(true, Ordering::Relaxed);
        if self.change_contact(Contact::Up).is_some() {
            self.context.forget_trouble();
            self.send(SessionEvent::Up);
        }
    }

    /// No broker answers, for this reason. A refused reading reports nothing, because it does not wait for a broker.
    pub(super) fn down(&self, error: String) {
        if self.refused.load(Ordering::Relaxed) {
            return;
        }
        if self.change_contact(Contact::Down(error.clone())).is_some() {
            self.send(SessionEvent::Down { error });
        }
    }

    /// Changes the contact, and returns the previous one; `None` if it is the same.
    fn change_contact(&self, to: Contact) -> Option<Contact> {
        let mut contact = self.contact.lock().unwrap_or_else(PoisonError::into_inner);
        (*contact != to).then(|| std::mem::replace(&mut *contact, to))
    }

    /// The last failure of a connection, if there was one since the last answer.
    pub(super) fn trouble(&self) -> Option<String> {
        let has_answered = self.source.access.answered.load(Ordering::Relaxed);
        if has_answered { self.context.trouble() } else { self.context.first_trouble() }
    }

    /// The reason for the missing answer, in one line.
    pub(super) fn no_answer(&self, error: &AdminError) -> String {
        let bootstrap = &self.source.access.bootstrap;
        let has_answered = self.source.access.answered.load(Ordering::Relaxed);
        self.trouble().unwrap_or_else(|| {
            if self.source.access.asks_for_tokens() && !has_answered {
                // librdkafka connects to no broker before it has a token, and retries a failing endpoint for 50 s without a report.
                format!("{bootstrap}: no answer; no broker is asked before the token endpoint has given a token")
            } else if matches!(error.code.into(), ErrorClass::Connection | ErrorClass::NoBroker) {
                format!("{bootstrap}: no answer")
            } else {
                format!("{bootstrap}: {}", error.text)
            }
        })
    }

    /// Reports that Kafka refuses, and another attempt is useless. It is reported once.
    pub(super) fn refuse(&self, error: String) {
        if !self.refused.swap(true, Ordering::Relaxed) {
            self.send(SessionEvent::Refused { error });
        }
    }

    /// Whether a failed connection may be that of the first address of a host with several, which librdkafka tries in turn: `localhost` is `::1` and
    /// `127.0.0.1`.
    pub(super) fn may_have_other_addresses(&self) -> bool {
        let has_answered = self.source.access.answered.load(Ordering::Relaxed);
        !has_answered && clock::now().since(self.begun) < OTHER_ADDRESSES
    }

    /// If no broker has answered yet: the line about a certificate that is not accepted, since then no broker will ever answer. Later the
    /// same error is temporary, because some of the brokers may have another certificate.
    pub(super) fn permanent_failure(&self) -> Option<String> {
        if self.source.access.answered.load(Ordering::Relaxed) {
            return None;
        }
        self.context.trouble().as_deref().and_then(error_class::of_certificate)
    }

    /// Makes the asker ask soon.
    pub(super) fn ask_soon(&self) {
        if !self.is_asked_for.swap(true, Ordering::Relaxed) {
            let _ = self.orders.send(Order::Ask);
        }
    }

    /// Makes the consumer read a partition from this offset on.
    pub(super) fn read_from(&self, consumer: &PartitionConsumer<KafkaContext>, partition: i32, offset: i64) {
        self.handing_over_below(partition, offset);
        if let Err(error) = consumer.read_from(partition, offset) {
            let topic = &self.source.elections.topic;
            self.send(SessionEvent::Refused {
                error: format!("topic \"{topic}\": it can't be read from offset {offset}: {error}"),
            });
        }
    }
}
