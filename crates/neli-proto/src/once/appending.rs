//! The facts of a run: which are appended, and what follows if they are not acknowledged.

use core::time::Duration;

use super::{Action, Once, Phase};
use crate::fact::{Account, Fact, Outcome};
use crate::record::Offset;
use crate::time::Time;

/// A leader waits at least this long for the facts, and for the acknowledgement of a fact: the connections for them may still have to be
/// opened, which takes several round trips, and half of a short lease is less.
const SHORTEST_WAIT: Duration = Duration::from_secs(2);
/// It waits at most this long.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

impl Once {
    /// When a leader gives up what it asks for at `now`, and lets another candidate lead. Its lease is extended meanwhile. After a lead that was
    /// given up for this reason it waits twice as long: a next lead opens the connections anew, so on a slow link the same time would end
    /// before the answer in each lead.
    pub(super) fn end_of_wait(&self, now: Time) -> Time {
        let first = (self.lease / 2).max(SHORTEST_WAIT);
        now + first.saturating_mul(2_u32.saturating_pow(self.late_answers)).min(LONGEST_WAIT)
    }

    pub(super) fn announce(&mut self, now: Time, term: Offset, until: Time) {
        let id = self.next_id();
        let fact = Fact {
            key: self.policy.key.clone(),
            window: self.policy.window,
            outcome: Outcome::Running,
            term,
            member: Some(self.member.clone()),
            name: Some(self.name.clone()),
            exit: None,
            attempt: self.next_attempt(),
            ran_ms: None,
            at_ms: None,
            forgets: self.forgets(),
            remakes: self.remakes(term),
            seq: id,
            account: Account::default(),
        };
        self.actions.push_back(Action::Append { id, fact: fact.clone() });
        self.phase = Phase::Announcing { id, fact, until: until.max(now) };
    }

    /// Sends an outcome that was not acknowledged again, with another number.
    pub(super) fn append_again(&mut self) {
        let next = self.next_id();
        let Phase::Recording { again_at, fact, id, .. } = &mut self.phase else { return };
        (*again_at, *id) = (None, next);
        self.actions.push_back(Action::Append { id: next, fact: fact.clone() });
    }

    pub(super) fn give_up_announcing(&mut self, now: Time) {
        self.renew_producer_if_stale(now);
        self.give_up();
    }

    /// Handles that a fact was not acknowledged, and is sent again under the same lead. After two leases the topic is looked for, too, because
    /// only a reading notices that it is missing, and creates it.
    pub(super) fn look_after_topic(&mut self, now: Time) {
        if self.renew_producer_if_stale(now) {
            let id = self.next_id();
            self.actions.push_back(Action::Read { id });
        }
    }

    /// A producer that has failed for two leases is renewed, as for claims: if the topic was created again on another broker, a producer that
    /// wrote to the old one may never write to the new one. Returns whether it was renewed.
    fn renew_producer_if_stale(&mut self, now: Time) -> bool {
        let since = *self.unacknowledged_since.get_or_insert(now);
        let is_stale = now >= since + self.lease * 2;
        if is_stale {
            self.unacknowledged_since = Some(now);
            self.actions.push_back(Action::RenewProducer);
        }
        is_stale
    }
}
