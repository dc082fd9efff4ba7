//! R1 and R3: what a candidate makes of what it reads, its own records first.

use core::time::Duration;

use super::{Candidate, End, Judgement, NothingLeft, Role};
use crate::candidate::{Action, Loss, Milestone, Note};
use crate::journal::{Term, Verdict, View};
use crate::record::{Body, Offset, Record, Why};
use crate::time::Time;

/// librdkafka itself may need so long to find out that a connection is dead, and to read on.
const READER_RECOVERS: Duration = Duration::from_secs(5);

impl Candidate {
    pub(super) fn answered(&mut self, now: Time, asked: Time, (start, end): (Offset, Offset), trusted: bool) {
        match self.listener.answered(now, asked, (start, end), trusted) {
            Ok(Some(from)) => {
                self.actions.push_back(Action::ReadFrom(from));
                self.introduce(now);
            }
            Ok(None) => {}
            Err(crate::listener::HistoryCut) => self.history_cut(now),
        }
    }

    /// Whoever waits for silence alone, because the log was not trusted, reads it again from R1: it may be vacant.
    pub(super) fn log_trusted(&mut self, now: Time) {
        if matches!(self.role, Role::Standby { .. }) && self.listener.is_undecided_by_distrust() {
            self.listener.ask_anew(now);
            self.actions.push_back(Action::Ask);
        }
    }

    /// The leader fences, a claim under way spoke of what is gone, and everybody starts again at R1, with a producer that knows
    /// nothing of the old topic either.
    pub(super) fn history_cut(&mut self, now: Time) {
        match &self.role {
            Role::AwaitingJudgement { .. } | Role::Claiming { .. } => self.role = Role::Standby { not_before: now },
            Role::Leading(_) => {
                self.lose_lease(Why::Fenced, Loss::HistoryCut);
            }
            Role::Fenced { .. } => {
                if let Role::Fenced { loss, .. } = &mut self.role {
                    *loss = Loss::HistoryCut;
                }
            }
            // Where it would arrive now, a term of that number may be another's.
            Role::Releasing(_) => self.release_is_over(now, false),
            Role::Departed | Role::Standby { .. } | Role::Suspended => {}
        }
        self.forget_topic(now);
        self.leader_since.0 = None;
        self.listener.history_cut(now);
        // What was held there says nothing of the terms to come, which may begin from 0 again.
        self.highest_term = -1;
        // Nor does the judgement of the old topic: nothing is written into the new one but one claim until it is judged, too.
        self.judgement = Judgement::awaited();
        self.next_hello = None;
        self.actions.push_back(Action::ForgetTerms);
        self.actions.push_back(Action::RenewProducer);
        self.actions.push_back(Action::Ask);
    }

    /// A reader that has handed over nothing for so long, although the log goes on, is replaced.
    fn patience_with_reader(&self) -> Duration {
        self.timings.lease.max(READER_RECOVERS)
    }

    /// When the reader of a standby is to be replaced. That of a leader ends the lease, and is replaced then.
    pub(super) fn stuck_due(&self) -> Option<Time> {
        self.listener.stuck_since().map(|since| since + self.patience_with_reader())
    }

    pub(super) fn replace_reader_if_stuck(&mut self, now: Time) {
        if matches!(self.role, Role::Standby { .. }) && self.stuck_due().is_some_and(|due| now >= due) {
            let silent = self.patience_with_reader();
            self.actions.push_back(Action::Note(Note::ReaderStuck { end: self.listener.known_end(), silent }));
            self.ask_anew(now);
        }
    }

    pub(super) fn read(&mut self, now: Time, offset: Offset, record: Option<&Record>) {
        if offset < self.listener.journal().next() {
            return self.history_cut(now);
        }
        let own = record.is_some_and(|record| record.member.as_ref() == Some(&self.identity.member));
        let received = self.listener.read(now, offset, record, own);
        self.kafka_answers();
        if let Some(record) = record.filter(|_| received.verdict != Verdict::Nonsense) {
            match &record.body {
                Body::Request { what, term, by, reason } => {
                    self.requested(now, offset, *what, (*term, by, reason));
                }
                Body::Beat { .. } | Body::Claim { .. } | Body::Release { .. } if own => {
                    if received.fresh {
                        self.came_back(now, offset, record, received.verdict);
                    }
                }
                Body::Claim { .. } if received.verdict == Verdict::Effective && received.fresh => {
                    self.precedence.forget_foresight();
                    // R7: somebody else leads now; the cool-off has done its work.
                    if self.cooling_off.is_some() {
                        self.cool_off_is_over();
                    }
                }
                Body::Release { group_member, .. } => {
                    if let Some(member) = &record.member {
                        self.precedence.released(member);
                    }
                    if received.verdict == Verdict::Effective && received.fresh {
                        match group_member {
                            Some(left) => self.precedence.foresee(now, left),
                            None => self.precedence.forget_foresight(),
                        }
                    }
                }
                Body::Beat { .. } | Body::Claim { .. } | Body::Hello { .. } => {}
            }
        }
        self.note_leader(now);
        self.superseded_by_the_view(now);
    }

    /// Notes since when it has been known who leads.
    pub(super) fn note_leader(&mut self, now: Time) {
        let term = self.listener.journal().term();
        if self.leader_since.0.map(|(term, _)| term) != term {
            self.leader_since.0 = term.map(|term| (term, now));
        }
    }

    /// One of our own records has been read for the first time.
    pub(super) fn came_back(&mut self, now: Time, offset: Offset, record: &Record, verdict: Verdict) {
        let effective = verdict == Verdict::Effective;
        match (&record.body, &mut self.role) {
            (Body::Claim { .. }, Role::Claiming { seq, sent, stood_down }) if record.seq == Some(*seq) => {
                let (sent, stood_down) = (*sent, *stood_down);
                if effective {
                    self.claim_took_effect(now, offset, sent, stood_down);
                } else {
                    self.claim_was_void(now);
                }
            }
            // A claim that was given up took effect all the same: its lease is over (R5).
            (Body::Claim { .. }, Role::Claiming { .. } | Role::Standby { .. } | Role::Suspended) if effective => {
                self.release(now, offset, (Why::ClaimExpired, End::default()), (now, false), NothingLeft);
            }
            (Body::Beat { .. }, Role::Leading(_)) if effective => {
                if let Some(seq) = record.seq {
                    self.extend_by(now, seq);
                }
            }
            (Body::Release { term, .. }, Role::Releasing(releasing)) if *term == releasing.term => {
                self.release_is_over(now, true);
            }
            (
                Body::Beat { .. }
                | Body::Claim { .. }
                | Body::Hello { .. }
                | Body::Release { .. }
                | Body::Request { .. },
                Role::AwaitingJudgement { .. }
                | Role::Claiming { .. }
                | Role::Departed
                | Role::Fenced { .. }
                | Role::Leading(_)
                | Role::Releasing(_)
                | Role::Standby { .. }
                | Role::Suspended,
            ) => {}
        }
    }

    /// R7: a decided view in which another term is current, or ours is released, ends ours at once.
    pub(super) fn superseded_by_the_view(&mut self, now: Time) {
        let (term, lease_end) = match &self.role {
            Role::AwaitingJudgement { term, sent } => (*term, *sent + self.timings.lease),
            Role::Leading(lead) => (lead.term, lead.lease_end),
            Role::Claiming { .. }
            | Role::Departed
            | Role::Fenced { .. }
            | Role::Releasing(_)
            | Role::Standby { .. }
            | Role::Suspended => return,
        };
        let (by_term, by) = match self.listener.journal().view() {
            View::Led(Term { offset, name, .. }) if *offset != term => (Some(*offset), name.clone()),
            View::NeverLed | View::Released { .. } => (None, None),
            View::Led(_) | View::Undecided(_) => return,
        };
        if matches!(self.role, Role::AwaitingJudgement { .. }) {
            self.role = Role::Standby { not_before: now };
            return;
        }
        // Another leads: whatever this term stood down for has come about.
        self.role = Role::Fenced { term, why: Why::Fenced, stood_down: None, lease_end, loss: Loss::Superseded };
        self.actions.push_back(Action::Reached(Milestone::Superseded { term, by_term, by }));
        self.actions.push_back(Action::Kill(Loss::Superseded));
    }
}
