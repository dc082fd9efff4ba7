//! What happens in the session with Kafka goes to the nodes, and to what spreads the roles.

use neli_proto::candidate;
use neli_proto::many_roles::{Action, ManyRoles};
use neli_proto::node::{Event, Node};
use neli_proto::process_hello::ProcessHello;
use neli_proto::time::Time;
use neli_proto::topic::{self, JudgedPartition, TopicFacts, TopicIdentity};

use super::Driver;
use crate::clock;
use crate::election::ElectionId;
use crate::session::event::{RoleEvent, SessionEvent};

impl Driver {
    /// What is known from the start: the embedded broker's topics have no ids.
    pub(super) fn topics_have_no_ids_if_embedded(&mut self) {
        if self.session.access().embedded.is_some() {
            let (asked, identity) = (clock::now(), TopicIdentity::Unnamed);
            let event = Event::Election(candidate::Event::TopicIdentified { asked, identity });
            self.roles.iter_mut().for_each(|role| role.node.handle(asked, event.clone()));
        }
    }

    pub(super) fn handle_session_event(&mut self, event: SessionEvent) {
        let now = clock::now();
        match event {
            SessionEvent::AppendRefused { error } => {
                self.warn(&format!("Kafka does not append this candidate's records: {error}"));
            }
            SessionEvent::Down { error } => {
                self.roles.iter().for_each(|role| role.is_in_trouble(Some(&error)));
                self.warn(&format!("Kafka does not answer: {error}"));
            }
            SessionEvent::Hello { offset, value } => self.handle_hello(now, offset, &value),
            SessionEvent::Refused { error } => self.tell_all(now, &Event::KafkaRefused { error: error.into() }),
            SessionEvent::Role { role, event } => self.handle_role_event(role as usize, now, event),
            SessionEvent::Warning(message) => self.warn(&message),
            SessionEvent::BrokerSession(_)
            | SessionEvent::Created { .. }
            | SessionEvent::Debug(_)
            // No key is asked for.
            | SessionEvent::Facts { .. }
            | SessionEvent::HelloDelivered
            | SessionEvent::Moved(_) => {}
            SessionEvent::Up => self.roles.iter().for_each(|role| role.is_in_trouble(None)),
        }
    }

    fn handle_role_event(&mut self, at: usize, now: Time, event: RoleEvent) {
        let partitions = self.session.partitions();
        if matches!(event, RoleEvent::Ends { .. }) {
            // By now it is known how many partitions the topic has.
            let role = &mut self.roles[at];
            self.session.election(role.election.role).into_iter().for_each(|election| role.election = election);
        }
        self.many.iter_mut().for_each(|many| event.tell_many(many, now, at, partitions));
        // One embedded broker that follows another is in another process: this one's has lost nothing.
        let is_trusted = true;
        match event.for_candidate(is_trusted) {
            Ok(event) => self.election_event(at, now, event),
            Err(facts) => self.judge_topic(at, now, &facts),
        }
        self.note_caught_up(at);
    }

    /// R0.
    fn judge_topic(&mut self, at: usize, now: Time, facts: &TopicFacts) {
        let ElectionId { topic: name, partition, .. } = &self.roles[at].election;
        let place = JudgedPartition { bootstrap: &self.session.access().bootstrap, topic: name, partition: *partition };
        match topic::judge(facts, place) {
            Ok(topic::Judgement { cut_is_harmless, gaps_are_markers, .. }) => {
                self.many.iter_mut().for_each(|many| many.topic_judged(now, at));
                self.election_event(at, now, candidate::Event::TopicJudged { cut_is_harmless, gaps_are_markers });
            }
            Err(refusal) => {
                let error = format!("topic {name:?}: {refusal}").into();
                self.call(at, now, |node| node.handle(now, Event::TopicRefused { error }));
            }
        }
    }

    fn handle_hello(&mut self, now: Time, offset: i64, value: &[u8]) {
        if let Some(event) = self.many.as_mut().and_then(|many| many.heard(now, offset, value)) {
            for at in 0..self.roles.len() {
                self.call(at, now, |node| node.handle(now, event.clone()));
            }
        }
        self.follow_many();
    }

    // ---- the nodes ----------------------------------------------------------------------------------------------------

    /// Calls the node of a role: it wants something since, and may hold another lead than before.
    pub(super) fn call(&mut self, at: usize, now: Time, call: impl FnOnce(&mut Node)) {
        let node = &mut self.roles[at].node;
        call(node);
        if let Some(many) = &mut self.many {
            many.observe(now, at, node.holding());
        }
        self.touched.insert(at);
    }

    /// An event of a role's election, before which the session has reported what other elections wrote.
    pub(super) fn election_event(&mut self, at: usize, now: Time, event: candidate::Event) {
        let node = &mut self.roles[at].node;
        match &mut self.many {
            Some(many) => many.tell(now, at, node, event),
            None => node.handle(now, Event::Election(event)),
        }
        self.touched.insert(at);
        self.follow_many();
    }

    fn tell_all(&mut self, now: Time, event: &Event) {
        for at in 0..self.roles.len() {
            self.take_passed(at, now);
            self.call(at, now, |node| node.handle(now, event.clone()));
        }
        self.follow_many();
    }

    /// What others wrote was read before whatever happens now.
    pub(super) fn take_passed(&mut self, at: usize, now: Time) {
        if let Some(RoleEvent::Passed { first, last }) = self.session.take_passed(self.roles[at].election.role) {
            self.call(at, now, |node| node.handle(now, Event::Election(candidate::Event::Passed { first, last })));
            self.note_caught_up(at);
        }
    }

    /// A node that has read everything learns of other elections' records only before it acts.
    fn note_caught_up(&mut self, at: usize) {
        if self.roles[at].node.is_caught_up() {
            self.session.is_caught_up(self.roles[at].election.role);
        }
    }

    // ---- what spreads the roles --------------------------------------------------------------------------------------

    /// Does what is wanted for all roles, until nothing more is: what a role does with it may change what is wanted of another.
    pub(super) fn follow_many(&mut self) {
        while let Some(action) = self.many.as_mut().and_then(ManyRoles::poll_action) {
            let now = clock::now();
            match action {
                Action::Hello(hello) => self.say_hello(&hello),
                Action::Refuse { error } => self.tell_all(now, &Event::KafkaRefused { error }),
                Action::SpreadWithoutGroup { partitions } => self.warn(&format!(
                    "the topic has {partitions} partitions for {} roles: the group could not assign each candidate a fair share, so \
                     the roles are spread as with the elector Log",
                    self.roles.len()
                )),
                Action::Stranger { warning } => self.warn(&warning),
                Action::Tell { role: at, event } => {
                    self.take_passed(at, now);
                    self.call(at, now, |node| node.handle(now, event));
                }
                Action::Wait { why, until } => self.warn(&format!(
                    "{why}; it may have gone: for {} s nothing is claimed, unless that is known before",
                    until.since(now).as_secs() + 1
                )),
            }
        }
    }

    fn say_hello(&mut self, hello: &ProcessHello) {
        if let Err(error) = self.session.say_hello(hello) {
            self.warn(&format!("Kafka does not append this candidate's records: {error}"));
        }
    }

    /// Says the last hello, if the process has said hello.
    pub(super) fn say_goodbye(&mut self) {
        if let Some(goodbye) = self.many.as_ref().and_then(ManyRoles::goodbye) {
            self.say_hello(&goodbye);
        }
    }
}
