//! What a candidate does at Kafka's other answers: about the log, the topic and the group.

use super::action::Action;
use super::identifying::TopicChange;
use super::state::{AwaitingJudgement, State};
use super::{Candidate, Judgement};
use crate::kafka::Request;
use crate::listener::{HistoryCut, LogBounds};
use crate::note::Note;
use crate::precedence::Standing;
use crate::record::Why;
use crate::supervisor::Loss;
use crate::time::Time;
use crate::topic::TopicIdentity;

impl Candidate {
    // ---- the log and the topic ------------------------------------------------------------------------------------------

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

    /// Handles a cut of the history, or a partition that was created again. A leader is fenced, a claim in flight belongs to the old history,
    /// and every candidate begins again at R1, with a new producer too.
    pub(super) fn history_cut(&mut self, now: Time) {
        match &mut self.state {
            State::AwaitingJudgement(_) | State::Claiming(_) => self.become_standby(now),
            State::Fenced(fenced) => fenced.loss = Loss::HistoryCut,
            State::Leading(_) | State::Overlapped(_) => self.become_fenced(Why::Fenced, Loss::HistoryCut),
            // If the release arrived after a cut, the term's number might belong to another candidate.
            State::Releasing(_) => self.release_is_over(now, false),
            State::Departed | State::StandingBy { .. } | State::Suspended => {}
        }
        self.common.forget_history(now);
    }

    /// Handles the judgement that the topic may carry an election (R0).
    pub(super) fn topic_judged(&mut self, now: Time, cut_is_harmless: bool, gaps_are_markers: bool) {
        self.common.judgement = Judgement::Fit;
        let is_misread = self.common.listener.topic_judged(now, cut_is_harmless, gaps_are_markers);
        if let State::AwaitingJudgement(awaiting) = &self.state
            && now >= self.common.claim_expires_at(awaiting.sent)
        {
            self.release_unjudged(now, Why::ClaimExpired);
        } else if let Some(AwaitingJudgement { claim, sent }) = self.take_unjudged(now) {
            if self.common.is_current(claim.term()) {
                self.become_leader(now, claim, sent);
            } else {
                self.drop_unjudged(now);
            }
        } else if is_misread && matches!(self.state, State::StandingBy { .. }) {
            self.common.ask_anew(now);
        }
        self.common.introduce(now);
    }

    /// Releases the term of a claim that took effect before the topic was judged, and is not wanted any more. No job has run under it.
    pub(super) fn release_unjudged(&mut self, now: Time, why: Why) {
        let Some(AwaitingJudgement { claim, sent }) = self.take_unjudged(now) else { return };
        let lease_end = sent + self.common.timings.lease();
        if why.lets_another_lead() {
            self.common.cool_off(now);
        }
        if self.common.is_current(claim.term()) {
            self.release_claim(now, claim, why, lease_end);
        } else {
            self.drop_unjudged(now);
        }
    }

    /// R6: if the term is no longer current in this candidate's view, no record is written under it. Its lease runs out.
    fn drop_unjudged(&mut self, now: Time) {
        self.common.ask_anew(now);
        self.become_standby(now);
    }

    /// Handles an answer about the topic's id to the question that was asked at `asked`.
    pub(super) fn identified(&mut self, now: Time, asked: Time, identity: TopicIdentity) {
        match self.common.identified(asked, identity) {
            TopicChange::Gone => self.history_cut(now),
            TopicChange::None => {}
            TopicChange::Remade => {
                self.common.actions.push_back(Action::Note(Note::TopicRemade));
                self.history_cut(now);
                self.common.topic.forget_earlier();
            }
        }
    }

    // ---- the group ------------------------------------------------------------------------------------------------------

    /// Handles a revocation: the partition was given to another member. A leader that never had the partition continues to lead, since it
    /// was not taken from it. If the topic has more partitions than roles, the group moves this one like any other, so a revocation shows
    /// nothing about the leader. One of many roles is kept as well: the number of roles decides which process gives one up.
    pub(super) fn revoked(&mut self, now: Time) {
        let common = &mut self.common;
        let was_assigned = common.precedence.standing() == Standing::Assigned;
        if common.group.is_member {
            common.precedence.set_standing(Standing::Elsewhere);
        }
        if !was_assigned || common.group.unused_partitions || common.is_one_of_many {
            return;
        }
        match &mut self.state {
            State::AwaitingJudgement(_) => self.release_unjudged(now, Why::Revoked),
            State::Claiming(claiming) => {
                claiming.stood_down.get_or_insert(Why::Revoked);
            }
            State::Leading(leading) => leading.stand_down(common, now, Why::Revoked),
            State::Departed
            | State::Fenced(_)
            | State::Overlapped(_)
            | State::Releasing(_)
            | State::StandingBy { .. }
            | State::Suspended => {}
        }
    }
}
