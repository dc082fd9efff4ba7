//! The records that a candidate hands out.

use super::{Candidate, Judgement};
use crate::candidate::{Action, Milestone, Standby, Waiting};
use crate::journal::View;
use crate::precedence::{HELLO_AWAITS_NAME, HELLO_INTERVAL, SPREAD};
use crate::record::{Body, Record};
use crate::time::Time;
use alloc::boxed::Box;

/// The longest id of the group's that is handed on: librdkafka's client id, a hyphen and 36 characters. A record must fit 1 KiB.
const LONGEST_GROUP_MEMBER: usize = 128;

impl Candidate {
    pub(super) fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    pub(super) fn lease_ms(&self) -> u64 {
        u64::try_from(self.timings.lease.as_millis()).unwrap_or(u64::MAX)
    }

    pub(super) fn send(&mut self, seq: u64, body: Body) {
        let (member, name) = (Some(self.identity.member.clone()), Some(self.identity.name.clone()));
        self.actions.push_back(Action::Send { record: Record { member, name, seq: Some(seq), body } });
    }

    /// Joins the group once the topic is known to be there, and says hello once it is known to be fit for an election:
    /// nothing but one claim, and its release, is written into one that R0 refuses. What the group says takes a while, and is asked for meanwhile.
    pub(super) fn introduce(&mut self, now: Time) {
        if !self.listener.is_answered() || self.leaving.is_some() || self.suspending || self.next_hello.is_some() {
            return;
        }
        self.join_group();
        if self.judgement != Judgement::Fit {
            return;
        }
        if self.in_group && self.precedence.group_member().is_none() {
            self.next_hello = Some(now + HELLO_AWAITS_NAME);
        } else {
            self.say_hello(now);
        }
    }

    /// The group's coordinator has given us an id: the others are told, so that they can foresee whose turn it is.
    pub(super) fn named(&mut self, now: Time, id: Box<str>) {
        // What the group said before it was left is said to nobody; nor is what would make a record too long.
        if !self.in_group || id.len() > LONGEST_GROUP_MEMBER {
            return;
        }
        self.precedence.name(Some(id));
        if self.next_hello.is_some() && !self.suspending {
            self.say_hello(now);
        }
    }

    pub(super) fn say_hello(&mut self, now: Time) {
        self.next_hello = Some(now + HELLO_INTERVAL);
        let seq = self.next_seq();
        let mut hello = self.identity.hello.clone();
        if let Body::Hello { group_member, .. } = &mut hello {
            *group_member = self.precedence.group_member().map(Into::into);
        }
        self.send(seq, hello);
    }

    pub(super) fn note_standby(&mut self, now: Time) {
        if !self.listener.is_caught_up() || self.judgement != Judgement::Fit {
            return;
        }
        let (leader, term, why) = match self.listener.journal().view() {
            // Our own release is on its way, or our own silence is waited for: nobody leads.
            View::Led(term) if term.member.as_ref() == Some(&self.identity.member) => return,
            View::Led(term) => (term.name.clone(), Some(term.offset), Some(Waiting::Led)),
            _ if self.cooling_off.is_some() => (None, None, Some(Waiting::CoolingOff)),
            View::Undecided(_) => (None, None, Some(Waiting::Undecided)),
            // A claim that is all but due is not worth a word.
            View::NeverLed | View::Released { .. } if self.claim_due().is_some_and(|due| due < now + SPREAD) => return,
            View::NeverLed | View::Released { .. } => (None, None, Some(Waiting::Precedence)),
        };
        let standby = Standby { leader, term, why };
        if self.standing_by.as_ref() != Some(&standby) {
            self.standing_by = Some(standby.clone());
            self.actions.push_back(Action::Reached(Milestone::Standby(standby)));
        }
    }
}
