//! What there is once in a process of Kafka: how it is reached, the producer, and whether it answers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use neli::program::embedded::{BrokerFinder, FoundBroker};
use neli::program::{Access, Election, KafkaEvent, Producer, clock};
use neli_proto::broker_death;
use neli_proto::candidate::Event;
use neli_proto::node;
use neli_proto::reminder::{Reminder, Reminders};
use neli_proto::time::Time;
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::MainLoop;
use super::group::Group;
use crate::exit::StartupError;
use crate::report::log::{Event as LogEvent, Logger};
use crate::report::notes::Trouble;

/// How many events of Kafka may wait for the loop; the threads that send them wait beyond that.
pub(super) const EVENTS_WAITING: usize = 1024;

/// This process's clients of Kafka, and whether Kafka answers them.
pub(super) struct KafkaSession {
    pub(super) access: Access,
    pub(super) producer: Producer,
    pub(super) group: Group,
    pub(super) events: Receiver<KafkaEvent>,
    pub(super) event_sender: Sender<KafkaEvent>,
    /// No broker answers.
    pub(super) outage: Reminder,
    /// Appends that Kafka refuses, by its reasons.
    pub(super) refused_appends: Reminders,
    /// When the log of an embedded broker that follows a killed one is to be trusted, while it is not.
    trusted_from: Option<Time>,
    /// After so long without a heartbeat a broker is taken for dead: whether the lease outlives that has been judged.
    broker_session: Option<Duration>,
}

/// Whether an empty log is a new one.
pub(super) enum Trust {
    Full,
    /// From `at` on; `is_known` when that was the answer before.
    From {
        at: Time,
        is_known: bool,
    },
}

impl KafkaSession {
    pub(super) fn start(
        access: Access,
        election: &Election,
        lease: Duration,
        logger: &Logger,
    ) -> Result<Self, StartupError> {
        let (event_sender, events) = mpsc::channel(EVENTS_WAITING);
        let logger = logger.clone();
        let log_callback = Arc::new(move |message: &str| {
            logger.event(&LogEvent::Librdkafka { facility: "client".to_owned(), message: message.to_owned() });
        });
        let access = Access { log_callback: Some(log_callback), ..access };
        let producer = Producer::start(&access, election, lease, event_sender.clone()).map_err(StartupError::new)?;
        Ok(Self {
            access,
            producer,
            group: Group::none(),
            events,
            event_sender,
            outage: Reminder::default(),
            refused_appends: Reminders::default(),
            trusted_from: None,
            broker_session: None,
        })
    }

    pub(super) const fn is_embedded(&self) -> bool {
        self.access.embedded.is_some()
    }

    /// Has the embedded broker replaced when it dies: where it is; none when Kafka is a real one.
    pub(super) fn follow(&self, finder: BrokerFinder) -> io::Result<Option<String>> {
        let Some(broker) = &self.access.embedded else { return Ok(None) };
        finder.follow(Arc::clone(broker), self.event_sender.clone())?;
        Ok(Some(broker.bootstrap().to_owned()))
    }

    /// One line for each kind of refusal, and again every 30 s. While no broker answers, that is logged instead.
    pub(super) fn append_was_refused(&mut self, now: Time, error: String) {
        if self.outage.trouble().is_none() {
            self.refused_appends.begin(now, error);
        }
    }

    /// What keeps Kafka from its work, and since when.
    pub(super) fn trouble(&self) -> Option<(Time, Trouble)> {
        let down = self.outage.trouble().map(|(since, error)| (since, Trouble::NoBroker(error.to_owned())));
        let refused =
            || self.refused_appends.trouble().map(|(since, error)| (since, Trouble::Refused(error.to_owned())));
        down.or_else(refused)
    }

    /// Whether an empty log is a new one. One of an embedded broker that follows a killed one is not for a while.
    pub(super) fn trust_in_log(&mut self, now: Time) -> Trust {
        let trusted_from = self.access.embedded.as_ref().map_or(Time::ZERO, |broker| broker.trusted_from());
        if now >= trusted_from {
            return Trust::Full;
        }
        Trust::From { at: trusted_from, is_known: self.trusted_from.replace(trusted_from) == Some(trusted_from) }
    }

    /// Whether a log that was not trusted is from now on; once.
    pub(super) fn log_becomes_trusted(&mut self, now: Time) -> bool {
        self.trusted_from.take_if(|from| now >= *from).is_some()
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        let timeouts = [self.outage.poll_timeout(), self.refused_appends.poll_timeout(), self.trusted_from];
        timeouts.into_iter().flatten().min()
    }
}

impl MainLoop {
    pub(super) fn handle_kafka_event(&mut self, event: KafkaEvent) {
        let now = clock::now();
        match event {
            KafkaEvent::AppendRefused { error } => self.kafka.append_was_refused(now, error),
            KafkaEvent::BrokerSession(session) => self.judge_lease(session),
            KafkaEvent::Created { replicas, brokers } => {
                let topic = self.role.election.topic.clone();
                self.logger.event(&LogEvent::TopicCreated { topic, replicas, brokers });
            }
            KafkaEvent::Debug(message) => self.logger.event(&LogEvent::Debug { message }),
            KafkaEvent::Delivered { seq, .. } => {
                self.kafka.refused_appends.end();
                self.election_event(now, Event::Delivered { seq });
            }
            KafkaEvent::Down { error } => self.kafka.outage.begin(now, error),
            KafkaEvent::Identified { asked, identity } => {
                self.election_event(now, Event::TopicIdentified { asked, identity });
            }
            KafkaEvent::Moved(found) => self.move_to(now, &found),
            KafkaEvent::NotDelivered { seq, .. } => self.election_event(now, Event::Undelivered { seq }),
            KafkaEvent::Reading { reading, event } => {
                if self.role.reading.is(reading) {
                    self.handle_reading_event(now, event);
                }
            }
            KafkaEvent::Refused { error } => {
                self.role.node.handle(now, node::Event::KafkaRefused { error: error.into() });
            }
            KafkaEvent::Up => {
                if let Some(down) = self.kafka.outage.end(now) {
                    self.logger.event(&LogEvent::BrokerUp { down });
                }
            }
            KafkaEvent::Warning(message) => self.logger.warn(message),
        }
    }

    /// What librdkafka remembers of partitions' leaders may keep a producer from a topic that was made anew, for good
    /// (librdkafka's issue 4898): another one knows nothing.
    pub(super) fn renew_producer(&mut self) {
        let (lease, events) = (self.config.timings.lease(), self.kafka.event_sender.clone());
        match Producer::start(&self.kafka.access, &self.role.election, lease, events) {
            Ok(producer) => self.kafka.producer = producer,
            Err(error) => {
                self.refuse(error.to_string());
            }
        }
    }

    /// The embedded broker died, and another is there: its history is made anew.
    fn move_to(&mut self, now: Time, found: &FoundBroker) {
        let log_callback = self.kafka.access.log_callback.clone();
        self.kafka.access =
            Access { log_callback, ..Access::embedded(&found.connection, &self.config.client.properties) };
        if self.kafka.group.members.is_in_group() {
            self.kafka.group.leave(self.role.node.is_alone(now));
            self.join_group();
        }
        self.election_event(now, Event::HistoryCut);
    }

    /// Whether the lease outlives a broker's death: the warning once.
    fn judge_lease(&mut self, session: Duration) {
        if self.kafka.broker_session.replace(session).is_some() {
            return;
        }
        if let Some(warning) = broker_death::warning(&self.config.timings, session) {
            self.logger.warn(format!("{}: {warning}", self.config.lease_shown));
        }
    }
}
