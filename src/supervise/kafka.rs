//! The session with Kafka that all elections of a process share.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use neli_kafka::{Access, Session, SessionEvent, SessionSettings, Unperformed, clock};
use neli_proto::broker_death;
use neli_proto::candidate;
use neli_proto::node::{self, Action};
use neli_proto::record::Body;

use crate::config::Config;
use crate::report::events;
use crate::report::log::{Event as LogEvent, Logger};
use crate::supervise::main_loop::MainLoop;

/// The role with a key: `--once` is for one election, the only one of the process.
const ROLE_WITH_KEY: usize = 0;

/// Connects this process's producer.
pub(super) fn start_session(access: Access, config: &Config, logger: &Logger) -> Result<Session> {
    let logger = logger.clone();
    let log_callback = Arc::new(move |message: &str| {
        logger.event(&events::librdkafka("client", message));
    });
    let access = Access { log_callback: Some(log_callback), ..access };
    let settings = SessionSettings {
        elections: config.elections(),
        create_topic: config.create_topic,
        timeout: config.timings.lease(),
    };
    Ok(Session::start(access, settings)?)
}

impl MainLoop {
    pub(super) fn handle_session_event(&mut self, event: SessionEvent) {
        if self.broker_has_ended() {
            return;
        }
        let now = clock::now();
        match event {
            SessionEvent::AppendRefused { error } => self.kafka.append_was_refused(now, error),
            SessionEvent::BrokerSession(session) => self.judge_lease(session),
            SessionEvent::Created { replicas, brokers } => {
                self.logger.event(&events::topic_created(&self.config.election.topic, replicas, brokers));
            }
            SessionEvent::Debug(message) => self.logger.event(&LogEvent::debug(message)),
            SessionEvent::Down { error } => self.kafka.outage.begin(now, error),
            SessionEvent::Facts { id, event } => self.handle_facts(ROLE_WITH_KEY, now, id, event),
            SessionEvent::Group { refusal: Some(refusal) } => self.kafka.group.begin(now, refusal),
            SessionEvent::Group { refusal: None } => drop(self.kafka.group.end(now)),
            SessionEvent::Hello { offset, value } => self.nodes.handle_hello(now, offset, &value),
            SessionEvent::HelloDelivered => self.kafka.refused_appends.end(),
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
                    self.logger.event(&events::broker_up(down));
                }
            }
            SessionEvent::Warning(message) => self.logger.warn(message),
        }
    }

    /// Performs those actions of a node that concern Kafka.
    pub(super) fn perform_in_kafka(&mut self, at: usize, action: &Action) {
        if self.broker_has_ended() {
            return self.perform_without_broker(at, action);
        }
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

    // ---- --embedded -------------------------------------------------------------------------------------------------

    pub(super) fn warn_of_trial(&self) {
        let access = self.nodes.session.access();
        if access.embedded.is_some() {
            self.logger.warn(format!(
                "--embedded is for a trial on this one machine: its broker, at {}, keeps nothing",
                access.bootstrap
            ));
        }
    }

    pub(super) fn broker_has_ended(&self) -> bool {
        self.broker.as_ref().is_some_and(|broker| broker.has_ended)
    }

    /// Ends the process. A job that runs is stopped in order, as far as its lease permits: until nothing of it is left, this process and the
    /// guard keep the next broker from starting.
    pub(super) fn end_with_broker(&mut self) {
        self.broker.iter_mut().for_each(|broker| broker.has_ended = true);
        let error = "the embedded broker has ended, and its journal with it, so this candidate ends too; start the candidates again, and the \
                     first one starts a new broker";
        self.nodes.tell_all(&node::Event::Refused { error: error.into() });
        for at in 0..self.nodes.roles.len() {
            if self.nodes.roles[at].node.leads().is_none() {
                self.forget_journal(at);
            }
        }
    }

    /// A release would reach nobody, and is not waited for.
    pub(super) fn perform_without_broker(&mut self, at: usize, action: &Action) {
        if let Action::Send { record } = action
            && let Body::Release { .. } = record.body
        {
            self.forget_journal(at);
        }
    }

    fn forget_journal(&mut self, at: usize) {
        self.tell(at, node::Event::Election(candidate::Event::HistoryCut));
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
