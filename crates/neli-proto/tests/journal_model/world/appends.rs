//! Effects in Kafka: appends, and the answers to queries about the log and its topic.

use std::rc::Rc;
use std::time::Duration;

use neli_proto::candidate;
use neli_proto::guard::Grant;
use neli_proto::record::{Body, MemberId, Offset, Record, What};
use neli_proto::time::millis_rounded_up;
use neli_proto::topic::TopicIdentity;

use super::{Flight, Known, World};
use crate::fingerprint;
use crate::guard::Life;
use crate::kafka::{Log, Sealed, Slot};
use crate::machine::{Bounds, Input};
use crate::setup::{NAMES, Who};

impl World {
    pub(super) fn identify(&mut self, who: Who) {
        let identity = TopicIdentity::Id { high: 1, low: self.remakes.into() };
        self.tell(who, Input::Identify(identity));
    }

    /// Creates the topic again. Appends under way reach the new topic, because producers retry.
    pub(super) fn remake_unnoticed(&mut self) {
        (self.remakes, self.remade_at, self.highest_started) = (self.remakes + 1, self.now, -1);
        self.log = Known::new(Log::with_others(0, self.now));
        for who in 0..self.machines.len() {
            self.tell(who, Input::Remade);
        }
    }

    pub(super) fn request(&mut self, what: What, term: Option<Offset>) {
        let body =
            Body::Request { what, term, by: None, reason: None, successor: self.setup.successor.map(MemberId::from) };
        self.append_slot(Slot::Record(Sealed::new(Record { member: None, name: None, seq: None, body })));
    }

    pub(super) fn append(&mut self, flight: &Flight) {
        self.append_slot(Slot::Record(flight.record.clone()));
        self.receipt(flight, true);
    }

    pub(super) fn append_slot(&mut self, slot: Slot) {
        let now = self.now;
        self.change_log(|log| {
            log.append(now, slot);
        });
    }

    /// Delivers the report about a record. Only a release waits for it. Worlds with `claims_are_acknowledged` show that a claim does
    /// not.
    pub(super) fn receipt(&mut self, flight: &Flight, delivered: bool) {
        let Some(record) = flight.record.record() else { return };
        let (Some(who), Some(seq)) = (flight.from, record.seq) else { return };
        let is_reported = match record.body {
            Body::Claim { .. } => self.setup.claims_are_acknowledged,
            Body::Release { .. } => true,
            Body::Beat { .. } | Body::Request { .. } => false,
        };
        if !is_reported {
            return;
        }
        let event = if delivered {
            candidate::Event::Delivered { seq }
        } else {
            candidate::Event::Undelivered { seq, may_be_in_log: false }
        };
        if self.machine(who).is_some_and(|machine| machine.life != Life::Dead) {
            self.tell(who, Input::Reported(event));
        }
    }

    pub(super) fn release_for_the_dead(&mut self, who: Who, grant: Grant, late: Option<Duration>) {
        let member = self.machine(who).map(|machine| machine.member.clone());
        let Grant { term, seen, next_seq, .. } = grant;
        let record = Record::release_for_dead(member, NAMES[who], term, seen, next_seq, late.map(millis_rounded_up));
        self.say(&format!("           {}'s guard sends {}", NAMES[who], Sealed::new(record.clone())));
        self.flying.push(Flight { from: None, record: Sealed::new(record), delayed: false });
    }

    pub(super) fn bounds(&self) -> Bounds {
        (self.log.part.start(), self.log.part.end())
    }

    pub(super) fn change_log(&mut self, change: impl FnOnce(&mut Log)) {
        let log = Rc::make_mut(&mut self.log);
        change(&mut log.part);
        log.print = fingerprint::of(&log.part);
    }
}
