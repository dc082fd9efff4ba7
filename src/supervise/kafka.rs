//! The session with Kafka that all elections of a process share.

use std::sync::Arc;
use std::time::Duration;

use neli::program::embedded::FoundBroker;
use neli::program::{Access, Session, SessionEvent, SessionSettings, Unperformed, clock};
use neli_proto::broker_death;
use neli_proto::node::{self, Action};
use neli_proto::time::Time;

use crate::config::Config;
use crate::exit::StartupError;
use crate::report::log::{Event as LogEvent, Logger};
use crate::supervise::main_loop::MainLoop;

/// The role with a key: `--once` is for one election, the only one of the process.
const ROLE_WITH_KEY: usize = 0;

/// Connects this process's producer.
pub(super) fn start_session(access: Access, config: &Config, logger: &Logger) -> Result<Session, StartupError> {
    let logger = logger.clone();
    let log_callback = Arc::new(move |message: &str| {
        logger.event(&LogEvent::Librdkafka { facility: "client".to_owned(), message: message.to_owned() });
    });
    let access = Access { log_callback: Some(log_callback), ..access };
    let settings = SessionSettings {
        elections: config.elections(),
        create_topic: config.create_topic,
        timeout: config.timings.lease(),
    };
    Session::start(access, settings).map_err(StartupError::new)
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
            SessionEvent::Group { refusal: Some(refusal) } => self.kafka.group.begin(now, refusal),
            SessionEvent::Group { refusal: None } => drop(self.kafka.group.end(now)),
            SessionEvent::Hello { offset, value } => self.nodes.handle_hello(now, offset, &value),
            SessionEvent::HelloDelivered => self.kafka.refused_appends.end(),
            SessionEvent::Moved(found) => self.move_to(now, &found),
            SessionEvent::Refused { error } => {
                self.nodes.tell_all(&node::Event::Refused { error: error.into() });
            }
            SessionEvent::Election { role, event } => self.handle_election_event(role as usize, now, event),
            SessionEvent::Risks { role, risks } => self.warn_of_risks(role as usize, &risks),
            SessionEvent::Unfit { role, error } => {
                self.nodes.tell(now, role as usize, node::Event::Refused { error: error.into() });
            }
            SessionEvent::Up => {
                if let Some(down) = self.kafka.outage.end(now) {
                    self.logger.event(&LogEvent::BrokerUp { down });
                }
            }
            SessionEvent::Warning(message) => self.logger.warn(message),
        }
    }

    /// Performs those actions of a node that concern Kafka.
    pub(super) fn perform_in_kafka(&mut self, at: usize, action: &Action) {
        if let Action::ReadAnew = action {
            self.nodes.roles[at].readings += 1;
        }
        if let Action::ReadAnew | Action::RenewProducer = action {
            // The reserve is lent until the log's bounds are known: at the limit of open files the client would have no descriptor to
            // connect with.
            self.reserve_of_client.lend();
        }
        let now = clock::now();
        match self.nodes.perform(now, at, action) {
            Ok(()) => {
                if let (Some(publisher), Action::Send { record }) = (&mut self.publisher, action) {
                    publisher.sent(at, now, record);
                }
            }
            Err(Unperformed::Append(error)) => self.kafka.append_was_refused(now, error.to_string()),
            Err(Unperformed::Client(error)) => {
                self.nodes.tell_all(&node::Event::Refused { error: error.to_string().into() });
            }
        }
    }

    /// Handles the death of the embedded broker: another one runs, with an empty journal.
    fn move_to(&mut self, now: Time, found: &FoundBroker) {
        let alone = self.nodes.are_alone(now);
        self.nodes.session.move_to(found, &self.config.client.properties, alone);
    }

    /// Warns once if the lease is shorter than a broker's death takes.
    fn judge_lease(&mut self, session: Duration) {
        if self.kafka.broker_session.replace(session).is_some() {
            return;
        }
        if let Some(warning) = broker_death::warning(&self.config.timings, session) {
            self.logger.warn(format!("{}: {warning}", self.config.lease_shown));
        }
    }
}
