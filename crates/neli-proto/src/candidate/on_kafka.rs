//! What a candidate does at Kafka's other answers: about the log, the topic and the group.

use alloc::boxed::Box;

use super::release::OwnClaim;
use super::state::State;
use super::{Action, Candidate, Election, Event};
use crate::hello::Hello;
use crate::journal::Verdict;
use crate::kafka::Request;
use crate::leadership::Receipt;
use crate::listener::{HistoryCut, LogBounds};
use crate::note::Note;
use crate::precedence::Assignment;
use crate::record::{Body, MemberId, Offset, Record, What, Why};
use crate::supervisor::Loss;
use crate::time::Time;

impl Candidate {
    // ---- the log and the topic ------------------------------------------------------------------------------------------

    /// Handles the answer to a question about the log's bounds.
    pub(super) fn answered(&mut self, now: Time, bounds: LogBounds) {
        match self.election.listener.answered(now, bounds) {
            // R5: the log ends before the highest term that was held, so it is another one, with terms of its own.
            Ok(Some(_)) if self.election.listener.known_end() <= self.election.highest_term => self.history_cut(now),
            Ok(Some(from)) => {
                self.election.actions.push_back(Action::Kafka(Request::ReadFrom(from)));
                self.election.introduce(now);
            }
            Ok(None) => {}
            Err(HistoryCut) => self.history_cut(now),
        }
    }

    /// Handles a cut of the history, or a partition that was created again. A leader is fenced, a claim in flight belongs to the old history,
    /// and every candidate begins again at R1, with a new producer too.
    pub(super) fn history_cut(&mut self, now: Time) {
        match &mut self.state {
            State::Claiming { .. } => self.become_standby(now),
            State::Fenced(fenced) => fenced.loss = Loss::HistoryCut,
            State::Leading(_) | State::Overlapped(_) => self.become_fenced(Why::Fenced, Loss::HistoryCut),
            // If the release arrived after a cut, the term's number might belong to another candidate.
            State::Releasing(_) => self.release_is_over(now, false),
            State::Departed(_) | State::StandingBy { .. } | State::Suspended => {}
        }
        self.election.forget_history(now);
    }

    /// Handles an event after the departure. A process with many roles hears hellos in the partition of its first one, also when it has left
    /// that role, so the log is read on there after a cut. What is read is unknown here, so the answers show no cut: the session finds it.
    pub(super) fn read_on(&mut self, now: Time, event: &Event) {
        let Election { precedence, listener, topic, actions, .. } = &mut self.election;
        if !precedence.is_one_of_many {
            return;
        }
        if *event == Event::HistoryCut {
            *topic = topic.after_cut(now);
            listener.history_cut(now);
            actions.push_back(Action::Kafka(Request::ReadAnew));
        } else if let Event::Answered { asked, start, end } = *event
            && !listener.is_answered()
            && let Ok(Some(from)) = listener.answered(now, LogBounds { asked, start, end })
        {
            actions.push_back(Action::Kafka(Request::ReadFrom(from)));
        }
    }

    /// Handles the judgement that the topic may carry an election (R0).
    pub(super) fn topic_judged(&mut self, now: Time, cut_is_harmless: bool, gaps_are_markers: bool) {
        self.election.is_judged = true;
        let is_misread = self.election.listener.topic_judged(now, cut_is_harmless, gaps_are_markers);
        if is_misread && matches!(self.state, State::StandingBy { .. }) {
            self.election.ask_anew(now);
        }
        self.election.introduce(now);
    }

    // ---- the group ------------------------------------------------------------------------------------------------------

    /// Whether a revocation ends no lead. A leader that never had the partition continues to lead, since it was not taken from it. If the
    /// topic has more partitions than roles, the group moves this one like any other, so a revocation shows nothing about the leader. One of
    /// many roles is kept as well: the number of roles decides which process gives one up.
    pub(crate) fn is_kept_if_revoked(&self) -> bool {
        let election = &self.election;
        let is_assigned = election.precedence.assignment == Assignment::Own;
        !is_assigned || election.group.unused_partitions || election.precedence.is_one_of_many
    }

    /// Handles a revocation: the partition was given to another member.
    pub(super) fn revoked(&mut self, now: Time) {
        let is_kept = self.is_kept_if_revoked();
        let election = &mut self.election;
        if election.group.is_member {
            election.precedence.set_assignment(Assignment::Elsewhere);
        }
        if is_kept {
            return;
        }
        if let State::Claiming { stood_down, .. } = &mut self.state {
            stood_down.get_or_insert(Why::Revoked);
        } else if let State::Leading(leading) = &mut self.state {
            leading.stand_down(election, now, Why::Revoked);
        }
    }
}

// ---- what a candidate does when a record was read (R1, R3, R7), especially one of its own --------------------------

impl Candidate {
    /// Handles a record of the election at `offset`.
    pub(super) fn read(&mut self, now: Time, offset: Offset, record: Option<&Record>, written_ms: Option<u64>) {
        if offset < self.election.listener.journal().next() {
            return self.history_cut(now);
        }
        let own = record.is_some_and(|record| record.member.as_ref() == Some(&self.election.hello.member));
        let is_live = self.election.listener.is_caught_up();
        let fresh = self.election.listener.is_news(offset);
        let verdict = self.election.listener.read(now, offset, record, own);
        let receipt = Receipt { read: now, written_ms, is_brokers_time: true, is_live };
        let (journal, last_term) = (self.election.listener.journal(), &mut self.election.shown.last_term);
        // A reading that was begun anew tells nothing of the last term until it has come to it again.
        if fresh || last_term.leader.as_ref().is_none_or(|leader| journal.last_term() >= Some(leader.term)) {
            last_term.read(journal.view(), offset, record, verdict, receipt);
        }
        self.election.kafka_answers();
        self.election.note_successor(record, verdict);
        if let Some(record) = record.filter(|_| verdict != Verdict::Nonsense) {
            if fresh {
                self.election.count(record, verdict);
            }
            match &record.body {
                Body::Request { what, term, by, reason, successor } => {
                    let by = by.as_ref().or(record.name.as_ref()).cloned();
                    match what {
                        What::End => self.end_requested(now, offset, by, reason.clone()),
                        What::Resign => self.resign_requested(now, *term, (by, reason.clone()), successor.clone()),
                    }
                }
                Body::Beat { .. } | Body::Claim { .. } | Body::Release { .. } if own => {
                    if fresh {
                        self.came_back(now, offset, record, verdict);
                    }
                }
                Body::Beat { .. } | Body::Claim { .. } | Body::Release { .. } => {
                    self.election.read_of_another(now, record, verdict, fresh);
                    self.compare_with_leader(record, verdict, fresh);
                }
            }
        }
        self.view_changed(now);
    }

    /// Handles records of other keys at the offsets from `first` to `last`. The one at `last` may be a hello.
    pub(super) fn read_others(&mut self, now: Time, first: Offset, last: Offset, hello: Option<Hello>) {
        if first < self.election.listener.journal().next() {
            return self.history_cut(now);
        }
        let fresh = self.election.listener.is_news(last);
        self.election.listener.read_others(now, first, last);
        self.election.kafka_answers();
        match hello {
            Some(hello) if hello.member == self.election.hello.member => {
                self.election.was_introduced(now, last);
            }
            Some(hello) => self.read_hello(now, last, hello, fresh),
            None => {}
        }
        self.view_changed(now);
    }

    /// Handles another candidate's hello at `offset`. The writer of one that is read again may have gone since.
    fn read_hello(&mut self, now: Time, offset: Offset, hello: Hello, fresh: bool) {
        if hello.roles.is_some() {
            self.compare_with_process(now, offset, &hello, fresh);
        }
        // A process with many roles is a standby of this election if it stands for role 0 too.
        let Some(role) = hello.mapping().number("0") else { return };
        let hello = hello.about(role);
        if fresh {
            self.compare_with_standby(offset, &hello);
        }
        self.compare_once(&hello);
        self.election.precedence.received(now, hello);
    }

    /// The journal's view of who leads may have changed.
    fn view_changed(&mut self, now: Time) {
        let holds_nothing = self.state.holds_nothing();
        let election = &mut self.election;
        if election.note_leader() && holds_nothing {
            // The others count no hello that it sent while its term lasted in the journal, which has no release of it.
            election.say_hello_after_lead(now);
        }
        if let State::Leading(leading) = &mut self.state {
            let term = leading.term;
            if let Some(by_term) = election.overlapping_claim(term) {
                self.become_overlapped(now, by_term);
            } else if let Some((by_term, by)) = election.superseded(term) {
                election.actions.push_back(Action::Note(Note::Superseded { term, by_term, by }));
                // Another candidate leads, so there is no reason to stand down any more.
                leading.stands_down = None;
                self.become_fenced(Why::Fenced, Loss::Superseded);
            } else if leading.yields_until.is_some() && !election.may_yield(now) {
                // The last standby has gone, so nobody would claim.
                leading.is_stopping = true;
            }
        } else if let State::Overlapped(overlapped) = &mut self.state
            && overlapped.follow(election)
        {
            self.become_fenced(Why::Fenced, Loss::Superseded);
        }
    }

    // ---- own records --------------------------------------------------------------------------------------------------

    /// Handles one of our own records that was read back for the first time.
    fn came_back(&mut self, now: Time, offset: Offset, record: &Record, verdict: Verdict) {
        let is_effective = verdict == Verdict::Effective;
        let seq = record.seq;
        match &record.body {
            Body::Beat { .. } if is_effective => {
                if let State::Leading(leading) = &mut self.state {
                    leading.extend_by(&mut self.election, now, seq);
                }
            }
            Body::Claim { .. } => {
                if let Some(claim) = OwnClaim::read_back(&self.election.hello.member, offset, record, verdict) {
                    self.election.was_introduced(now, offset);
                    self.own_claim_effective(now, claim);
                } else if matches!(self.state, State::Claiming { seq: own, .. } if seq == Some(own)) {
                    self.claim_was_void(now);
                }
            }
            Body::Release { term, .. } => {
                if let State::Releasing(releasing) = &self.state
                    && releasing.term == *term
                {
                    self.release_is_over(now, true);
                }
            }
            Body::Beat { .. } | Body::Request { .. } => {}
        }
    }

    fn own_claim_effective(&mut self, now: Time, claim: OwnClaim) {
        if let State::Claiming { seq, sent, stood_down } = self.state
            && claim.seq == Some(seq)
        {
            self.claim_took_effect(now, (sent, stood_down), claim);
        } else if self.state.has_no_term() {
            // A claim that was given up took effect late: its lease is over (R5).
            self.release_claim(now, claim, Why::ClaimExpired, now);
        }
    }

    /// R3: the lease runs from the claim's sending. R5: a claim that is read back too late is released.
    fn claim_took_effect(&mut self, now: Time, (sent, stood_down): (Time, Option<Why>), claim: OwnClaim) {
        let election = &mut self.election;
        let lease_end = sent + election.timings.lease;
        if stood_down.is_some_and(Why::lets_another_lead) {
            election.cool_off(now);
        }
        let is_late = now >= election.claim_expires_at(sent) || claim.term() <= election.highest_term;
        if let Some(why) = election.leaving.or(stood_down).or(is_late.then_some(Why::ClaimExpired)) {
            self.release_claim(now, claim, why, lease_end);
        } else {
            self.become_leader(now, claim, sent);
        }
    }

    /// Handles that the claim in flight is void, or counts as void (R2).
    pub(super) fn claim_was_void(&mut self, now: Time) {
        if let State::Claiming { sent, .. } = self.state {
            let not_before = self.election.claims_again_from(now, sent);
            self.claim_is_over(now, not_before);
        }
    }

    /// Ends the claim in flight, which has not taken effect. The next one comes at `not_before` at the earliest.
    fn claim_is_over(&mut self, now: Time, not_before: Time) {
        let State::Claiming { stood_down, .. } = self.state else { return };
        let election = &mut self.election;
        if stood_down.is_some_and(Why::lets_another_lead) {
            election.cool_off(now);
        }
        election.next_claim.draw = None;
        self.become_standby(not_before);
    }

    /// Handles the acknowledgement of one of our records. It does not show the law's verdict on the record, so it makes no [`OwnClaim`].
    pub(super) fn delivered(&mut self, now: Time, seq: u64) {
        if let State::Releasing(releasing) = &self.state
            && releasing.seq == seq
        {
            self.release_is_over(now, true);
        }
    }

    /// Handles that one of our records could not be delivered. A release is not sent again at once: it may have been refused before it was
    /// sent. A claim that is refused for good is no longer under way (R2); the next one is as late as if it had not been answered.
    pub(super) fn undelivered(&mut self, now: Time, seq: u64, may_be_in_log: bool) {
        if let State::Releasing(releasing) = &mut self.state
            && releasing.seq == seq
        {
            releasing.again_at = Some(now + self.election.timings.heartbeat_interval);
        } else if let State::Claiming { seq: own, sent, .. } = self.state
            && own == seq
            && !may_be_in_log
        {
            let election = &mut self.election;
            let not_before = sent + election.timings.lease;
            election.next_claim.refused_until = Some(not_before);
            election.claim_went_unanswered(now, sent);
            self.claim_is_over(now, not_before);
        }
    }

    // ---- requests -----------------------------------------------------------------------------------------------------

    fn end_requested(&mut self, now: Time, offset: Offset, by: Option<Box<str>>, reason: Option<Box<str>>) {
        if self.election.listener.is_bound_by_end_at(offset) && self.election.leaving != Some(Why::Ended) {
            self.election.actions.push_back(Action::Note(Note::Ended { by, reason }));
            self.stand_down_for(now, Why::Ended, true);
        }
    }

    fn resign_requested(
        &mut self,
        now: Time,
        term: Option<Offset>,
        (by, reason): (Option<Box<str>>, Option<Box<str>>),
        successor: Option<MemberId>,
    ) {
        if let Some(term) = term.filter(|term| self.may_resign(*term)) {
            let named = successor.as_ref().map(|successor| self.election.precedence.shown(successor).into());
            self.election.actions.push_back(Action::Note(Note::Resigned { term, by, reason, successor: named }));
            self.election.successor = successor;
            self.stand_down_for(now, Why::Resigned, false);
        }
    }

    /// Whether the candidate holds `term` or has not released it yet, and is not yet standing down for good or for another candidate.
    fn may_resign(&self, term: Offset) -> bool {
        let is_free = |why: Option<Why>| why.is_none_or(|why| why.rank() < Why::Resigned.rank());
        self.state.resignable(&self.election).is_some_and(|(held, stood_down)| held == term && is_free(stood_down))
    }
}
