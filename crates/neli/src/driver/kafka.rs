//! The session of one election with Kafka: what the node wants of it, and what it reports.

use std::time::Duration;

use neli_proto::candidate;
use neli_proto::node::Event;
use neli_proto::record::Record;
use neli_proto::topic::{self, Place, TopicFacts, TopicIdentity};

use crate::clock;
use crate::election::{Election as Coordinates, Elections};
use crate::kafka::access::Access;
use crate::session::event::{RoleEvent, SessionEvent};
use crate::session::{Session, SessionSettings};
use crate::text::ClientError;

/// What a session is made of.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) access: Access,
    pub(crate) election: Coordinates,
    pub(crate) create_topic: bool,
    pub(crate) joins_group: bool,
    pub(crate) lease: Duration,
}

/// The session of one election.
pub(super) struct ElectionSession {
    session: Session,
    election: Coordinates,
}

/// What the session reports.
pub(super) enum Report {
    /// For the node.
    Event(Event),
    /// For a person: one line.
    Warning(String),
}

impl ElectionSession {
    pub(super) fn start(settings: Settings) -> Result<Self, ClientError> {
        let Settings { access, election, create_topic, joins_group, lease } = settings;
        let elections = Elections::from(&election);
        let settings = SessionSettings { elections, create_topic, joins_group, timeout: lease };
        Ok(Self { session: Session::start(access, settings)?, election })
    }

    /// What is known from the start: the embedded broker's topics have no ids.
    pub(super) fn first_event(&self) -> Option<Event> {
        let (asked, identity) = (clock::now(), TopicIdentity::Unnamed);
        let is_embedded = self.session.access().embedded.is_some();
        is_embedded.then_some(Event::Election(candidate::Event::TopicIdentified { asked, identity }))
    }

    /// Waits until [`poll`](Self::poll) may have something.
    pub(super) async fn wait(&mut self) {
        self.session.wait().await;
    }

    // ---- what the node wants -----------------------------------------------------------------------------------------

    pub(super) fn identify(&self) {
        self.session.identify();
    }

    pub(super) fn look_for_end(&mut self) {
        self.session.look_for_end(self.election.role);
    }

    pub(super) fn read_from(&mut self, offset: i64) {
        self.session.read_from(self.election.role, offset);
    }

    pub(super) fn read_anew(&mut self) {
        self.session.read_anew(self.election.role);
    }

    pub(super) fn stop_reading(&mut self) {
        self.session.stop_reading();
    }

    /// The node has read all that there was.
    pub(super) fn is_caught_up(&mut self) {
        self.session.is_caught_up(self.election.role);
    }

    pub(super) fn renew_producer(&mut self) -> Result<(), ClientError> {
        self.session.renew_producer(self.election.role)
    }

    pub(super) fn join_group(&mut self) -> Result<(), ClientError> {
        self.session.join_group(self.election.role)
    }

    /// `alone`: no other candidate is known.
    pub(super) fn leave_group(&mut self, alone: bool) {
        self.session.leave_group(self.election.role, alone);
    }

    pub(super) const fn is_leaving_group(&self) -> bool {
        self.session.is_leaving_group()
    }

    /// Gives what came of it where that is known at once: it could not be handed over.
    pub(super) fn send(&self, record: &Record) -> Option<Event> {
        let undelivered = candidate::Event::Undelivered { seq: record.seq.unwrap_or_default() };
        self.session.send(self.election.role, record).err().map(|_| Event::Election(undelivered))
    }

    // ---- what has happened ---------------------------------------------------------------------------------------------

    /// What has happened; none while nothing has.
    pub(super) fn poll(&mut self) -> Option<Report> {
        loop {
            let event = self.session.poll()?;
            if let Some(report) = self.of_session(event) {
                return Some(report);
            }
        }
    }

    /// What others have written: to be taken in before the node is told anything else.
    pub(super) fn take_passed(&mut self) -> Option<Report> {
        let event = self.session.take_passed(self.election.role)?;
        Some(self.of_role(event))
    }

    fn of_session(&self, event: SessionEvent) -> Option<Report> {
        Some(match event {
            SessionEvent::AppendRefused { error } => {
                Report::Warning(format!("Kafka does not append this candidate's records: {error}"))
            }
            SessionEvent::Down { error } => Report::Warning(format!("Kafka does not answer: {error}")),
            SessionEvent::Refused { error } => Report::Event(Event::KafkaRefused { error: error.into() }),
            SessionEvent::Role { event, .. } => self.of_role(event),
            SessionEvent::Warning(message) => Report::Warning(message),
            SessionEvent::BrokerSession(_)
            | SessionEvent::Created { .. }
            | SessionEvent::Debug(_)
            // No key is asked for.
            | SessionEvent::Facts { .. }
            | SessionEvent::Hello { .. }
            | SessionEvent::HelloDelivered
            | SessionEvent::Moved(_)
            | SessionEvent::Up => return None,
        })
    }

    fn of_role(&self, event: RoleEvent) -> Report {
        // One embedded broker that follows another is in another process: this one's has lost nothing.
        let is_trusted = true;
        Report::Event(match event.for_candidate(is_trusted) {
            Ok(event) => Event::Election(event),
            Err(facts) => self.judged(&facts),
        })
    }

    /// R0.
    fn judged(&self, facts: &TopicFacts) -> Event {
        let Coordinates { topic: name, partition, .. } = &self.election;
        let place = Place { bootstrap: &self.session.access().bootstrap, topic: name, partition: *partition };
        match topic::judge(facts, place) {
            Ok(topic::Judgement { cut_is_harmless, gaps_are_markers, .. }) => {
                Event::Election(candidate::Event::TopicJudged { cut_is_harmless, gaps_are_markers })
            }
            Err(refusal) => Event::TopicRefused { error: format!("topic {name:?}: {refusal}").into() },
        }
    }
}
