//! R1 and R3: how a candidate handles the records that it reads, especially its own.

use alloc::boxed::Box;

use super::Candidate;
use super::action::Action;
use super::state::Input;
use crate::journal::Verdict;
use crate::kafka::Request;
use crate::leadership::Receipt;
use crate::listener::{HistoryCut, LogBounds};
use crate::note::Note;
use crate::precedence::Standing;
use crate::record::{Body, Hello, Offset, Record, What, Why};
use crate::time::Time;

/// Our claim was read back as effective, so its term is held. Only reading creates this value, and taking up or releasing the term consumes
/// it. So a released term can't be taken up (R6).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct OwnClaim {
    term: Offset,
    seq: Option<u64>,
}

impl OwnClaim {
    /// The claim's own offset.
    pub(super) const fn term(&self) -> Offset {
        self.term
    }

    pub(super) const fn seq(&self) -> Option<u64> {
        self.seq
    }

    pub(super) const fn into_term(self) -> Offset {
        self.term
    }
}

impl Candidate {
    /// Handles the answer to a question about the log's bounds.
    pub(super) fn answered(&mut self, now: Time, bounds: LogBounds) {
        match self.common.listener.answered(now, bounds) {
            Ok(Some(from)) => {
                self.common.actions.push_back(Action::Kafka(Request::ReadFrom(from)));
                self.common.introduce(now);
            }
            Ok(None) => {}
            Err(HistoryCut) => self.history_cut(now),
        }
    }

    /// Handles a cut of the history. A leader is fenced, a claim in flight belongs to the old history, and every candidate begins again at
    /// R1, with a new producer too.
    pub(super) fn history_cut(&mut self, now: Time) {
        self.step(now, Input::HistoryCut);
        self.common.forget_history(now);
    }

    /// Handles a record of the election at `offset`.
    pub(super) fn read(&mut self, now: Time, offset: Offset, record: Option<&Record>, written_ms: Option<u64>) {
        if offset < self.common.listener.journal().next() {
            return self.history_cut(now);
        }
        let own = record.is_some_and(|record| record.member.as_ref() == Some(&self.common.identity.member));
        let is_live = self.common.listener.is_caught_up();
        let received = self.common.listener.read(now, offset, record, own);
        let receipt = Receipt { read: now, written_ms, is_live };
        self.common.last_term.0.read(self.common.listener.journal().view(), offset, record, received.verdict, receipt);
        self.common.kafka_answers();
        self.common.note_successor(record, received.verdict);
        if received.fresh && self.common.is_named_by(record, received.verdict) {
            self.step(now, Input::NamedSuccessor);
        }
        if let Some(record) = record.filter(|_| received.verdict != Verdict::Nonsense) {
            self.common.count(record, received);
            match &record.body {
                Body::Request { what, term, by, reason } => {
                    let by = by.as_ref().or(record.name.as_ref()).cloned();
                    match what {
                        What::End => self.end_requested(now, offset, by, reason.clone()),
                        What::Resign => self.resign_requested(now, *term, by, reason.clone()),
                    }
                }
                Body::Beat { .. } | Body::Claim { .. } | Body::Release { .. } if own => {
                    if received.fresh {
                        self.came_back(now, offset, record, received.verdict);
                    }
                }
                Body::Beat { .. } | Body::Claim { .. } | Body::Hello { .. } | Body::Release { .. } => {
                    self.common.read_of_another(now, record, received);
                    self.compare_with_leader(record, received);
                }
            }
        }
        self.view_changed(now);
    }

    /// Handles records of other keys at the offsets from `first` to `last`. The one at `last` may be a hello.
    pub(super) fn read_others(&mut self, now: Time, first: Offset, last: Offset, hello: Option<Hello>) {
        if first < self.common.listener.journal().next() {
            return self.history_cut(now);
        }
        self.common.listener.read_others(now, first, last);
        self.common.kafka_answers();
        match hello {
            Some(hello) if hello.member != self.common.identity.member => {
                self.compare_with_standby(&hello);
                self.common.precedence.received(now, hello);
            }
            Some(_) => {
                self.common.precedence.introduced();
                self.common.beside_roles.introduced(now, last);
            }
            None => {}
        }
        self.view_changed(now);
    }

    fn view_changed(&mut self, now: Time) {
        self.common.note_leader();
        self.step(now, Input::ViewChanged);
    }

    /// Handles one of our own records that was read back for the first time.
    fn came_back(&mut self, now: Time, offset: Offset, record: &Record, verdict: Verdict) {
        let is_effective = verdict == Verdict::Effective;
        let seq = record.seq;
        if is_effective && matches!(record.body, Body::Claim { .. }) {
            self.common.beside_roles.introduced(now, offset);
        }
        let input = match &record.body {
            Body::Beat { .. } if is_effective => Input::BeatEffective { seq },
            Body::Claim { .. } if is_effective => Input::ClaimEffective(OwnClaim { term: offset, seq }),
            Body::Claim { .. } => Input::ClaimVoid { seq },
            Body::Release { term, .. } => Input::ReleaseRead { term: *term },
            Body::Beat { .. } | Body::Hello { .. } | Body::Request { .. } => return,
        };
        self.step(now, input);
    }

    /// Handles the acknowledgement of one of our records. It does not show the law's verdict on the record, so it makes no [`OwnClaim`].
    pub(super) fn delivered(&mut self, now: Time, seq: u64) {
        self.step(now, Input::Delivered { seq });
    }

    fn end_requested(&mut self, now: Time, offset: Offset, by: Option<Box<str>>, reason: Option<Box<str>>) {
        if self.common.listener.is_bound_by_end_at(offset) && self.common.leaving != Some(Why::Ended) {
            self.common.actions.push_back(Action::Note(Note::Ended { by, reason }));
            self.told_to_stand_down(now, Why::Ended, true);
        }
    }

    fn resign_requested(&mut self, now: Time, term: Option<Offset>, by: Option<Box<str>>, reason: Option<Box<str>>) {
        if let Some(term) = term.filter(|term| self.may_resign(*term)) {
            self.common.actions.push_back(Action::Note(Note::Resigned { term, by, reason }));
            self.told_to_stand_down(now, Why::Resigned, false);
        }
    }

    /// Handles a revocation: the partition was given to another member. A leader that never had the partition continues to lead, since it
    /// was not taken from it. If the topic has more partitions than roles, the group moves this one like any other, so a revocation shows
    /// nothing about the leader. One of many roles is kept as well: the number of roles decides which process gives one up.
    pub(super) fn revoked(&mut self, now: Time) {
        let was_assigned = self.common.precedence.standing() == Standing::Assigned;
        if self.common.in_group {
            self.common.precedence.set_standing(Standing::Elsewhere);
        }
        if was_assigned && !self.common.unused_partitions && !self.common.is_one_of_many {
            self.step(now, Input::Revoked);
        }
    }
}
