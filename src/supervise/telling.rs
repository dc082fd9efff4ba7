//! Passes events to the nodes, and each node's holding to the spread of the roles.

use neli::program::{RoleEvent, clock};
use neli_proto::candidate;
use neli_proto::node::{Event, Node};
use neli_proto::time::Time;

use super::MainLoop;

impl MainLoop {
    /// Calls the node of a role: it wants something since, and may hold another lead than before.
    pub(super) fn call(&mut self, at: usize, now: Time, call: impl FnOnce(&mut Node)) {
        let node = &mut self.roles[at].node;
        call(node);
        if let Some(many) = &mut self.many {
            many.observe(now, at, node.holding());
        }
        self.touched.insert(at);
    }

    /// What others wrote was read before whatever happens now.
    pub(super) fn take_passed(&mut self, at: usize, now: Time) {
        if let Some(RoleEvent::Passed { first, last }) = self.kafka.session.take_passed(self.roles[at].number()) {
            self.call(at, now, |node| node.handle(now, Event::Election(candidate::Event::Passed { first, last })));
            self.note_caught_up(at);
        }
    }

    /// A node that has read everything learns of other elections' records only before it acts.
    pub(super) fn note_caught_up(&mut self, at: usize) {
        let role = &self.roles[at];
        if role.node.is_caught_up() {
            self.settling.begin(clock::now());
            self.kafka.session.is_caught_up(role.number());
        }
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

    /// Something has happened to a role now.
    pub(super) fn tell(&mut self, at: usize, event: Event) {
        self.tell_at(at, clock::now(), event);
    }

    pub(super) fn tell_at(&mut self, at: usize, now: Time, event: Event) {
        self.take_passed(at, now);
        self.call(at, now, |node| node.handle(now, event));
        self.follow_many();
    }

    /// An event of the process, for each role.
    pub(super) fn tell_all(&mut self, event: &Event) {
        for at in 0..self.roles.len() {
            self.tell(at, event.clone());
        }
    }

    /// What a role is to do by now.
    pub(super) fn let_time_pass(&mut self, at: usize, now: Time) {
        self.take_passed(at, now);
        self.call(at, now, |node| node.handle_timeout(now));
        self.follow_many();
    }
}
