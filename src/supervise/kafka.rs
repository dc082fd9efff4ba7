//! What there is once in a process of Kafka: its session, and whether Kafka answers.

use std::sync::Arc;
use std::time::Duration;

use neli::program::embedded::FoundBroker;
use neli::program::{Access, Session, SessionEvent, SessionSettings, clock};
use neli_proto::broker_death;
use neli_proto::candidate::Elector;
use neli_proto::node;
use neli_proto::reminder::{Reminder, Reminders};
use neli_proto::time::Time;

use super::MainLoop;
use crate::config::Config;
use crate::exit::StartupError;
use crate::report::log::{Event as LogEvent, Logger};
use crate::report::notes::Trouble;

/// This process's session with Kafka, and whether Kafka answers it.
pub(super) struct KafkaSession {
    pub(super) session: Session,
    /// No broker answers.
    pub(super) outage: Reminder,
    /// Appends that Kafka refuses, by its reasons.
    pub(super) refused_appends: Reminders,
    /// When the log of an embedded broker that follows a killed one is to be trusted, while it is not.
    trusted_from: Option<Time>,
    /// A broker is taken for dead after this time without a heartbeat; whether the lease outlives that was judged.
    broker_session: Option<Duration>,
}

/// `--once` is for one election, the only one.
const ROLE_WITH_KEY: usize = 0;

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
    pub(super) fn start(access: Access, config: &Config, logger: &Logger) -> Result<Self, StartupError> {
        let logger = logger.clone();
        let log_callback = Arc::new(move |message: &str| {
            logger.event(&LogEvent::Librdkafka { facility: "client".to_owned(), message: message.to_owned() });
        });
        let access = Access { log_callback: Some(log_callback), ..access };
        let settings = SessionSettings {
            elections: config.elections(),
            create_topic: config.create_topic,
            joins_group: matches!(config.timings.elector(), Elector::Group(_)),
            timeout: config.timings.lease(),
        };
        Ok(Self {
            session: Session::start(access, settings).map_err(StartupError::new)?,
            outage: Reminder::default(),
            refused_appends: Reminders::default(),
            trusted_from: None,
            broker_session: None,
        })
    }

    pub(super) const fn is_embedded(&self) -> bool {
        self.session.access().embedded.is_some()
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
        let trusted_from = self.session.access().embedded.as_ref().map_or(Time::ZERO, |broker| broker.trusted_from());
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
    pub(super) fn handle_session_event(&mut self, event: SessionEvent) {
        let now = clock::now();
        match event {
            SessionEvent::AppendRefused { error } => self.kafka.append_was_refused(now, error),
            SessionEvent::BrokerSession(session) => self.judge_lease(session),
            SessionEvent::Created { replicas, brokers } => {
                let topic = self.config.election.topic.clone();
                self.logger.event(&LogEvent::TopicCreated { topic, replicas, brokers });
            }
            SessionEvent::Debug(message) => self.logger.event(&LogEvent::Debug { message }),
            SessionEvent::Down { error } => self.kafka.outage.begin(now, error),
            SessionEvent::Facts { id, event } => self.handle_facts(ROLE_WITH_KEY, now, id, event),
            SessionEvent::Hello { offset, value } => self.handle_hello(now, offset, &value),
            SessionEvent::HelloDelivered => self.kafka.refused_appends.end(),
            SessionEvent::Moved(found) => self.move_to(now, &found),
            SessionEvent::Refused { error } => {
                self.tell_all(&node::Event::KafkaRefused { error: error.into() });
            }
            SessionEvent::Role { role, event } => self.handle_role_event(role as usize, now, event),
            SessionEvent::Up => {
                if let Some(down) = self.kafka.outage.end(now) {
                    self.logger.event(&LogEvent::BrokerUp { down });
                }
            }
            SessionEvent::Warning(message) => self.logger.warn(message),
        }
    }

    pub(super) fn renew_producer(&mut self, role: u32) {
        self.reserve_of_client.lend();
        if let Err(error) = self.kafka.session.renew_producer(role) {
            self.refuse(error.to_string());
        }
    }

    pub(super) fn join_group(&mut self, role: u32) {
        if self.many.as_ref().is_some_and(|many| !many.uses_group()) {
            return;
        }
        if let Err(error) = self.kafka.session.join_group(role) {
            self.refuse(error.to_string());
        }
    }

    /// The embedded broker died, and another is running: its history starts anew.
    fn move_to(&mut self, now: Time, found: &FoundBroker) {
        let alone = self.roles.iter().all(|role| role.node.is_alone(now));
        if let Err(error) = self.kafka.session.move_to(found, &self.config.client.properties, alone) {
            self.refuse(error.to_string());
        }
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
