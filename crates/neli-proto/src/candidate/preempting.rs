//! `--preempt`: a candidate that has stood by for long enough under a leader of lower priority asks the leader to resign.
//!
//! The request is the same as an operator's, and R7 forbids the leader to claim again before another candidate has led. The priorities in
//! the hellos decide which candidate claims next. A candidate asks only leaders of lower priority, so the lead moves to higher priorities
//! only.

use alloc::format;
use core::time::Duration;

use super::Action;
use super::{Election, Judgement};
use crate::journal::View;
use crate::listener::Predecessor;
use crate::note::Note;
use crate::record::{Body, Offset, What};
use crate::time::Time;

/// A candidate that has lost its own last lead waits this many times as long, since it may lose the next one too.
const AFTER_LOSS: u32 = 10;

/// A leader of lower priority.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Preemption {
    term: Offset,
    /// When to ask it to resign.
    asks_at: Time,
}

impl Election {
    /// When to ask a leader of lower priority to resign.
    pub(super) fn preempts_at(&self) -> Option<Time> {
        self.preemption.map(|preemption| preemption.asks_at)
    }

    /// Notes a leader of lower priority, and asks it to resign when the time of `--preempt` has passed. Asks again after each further such time,
    /// since a request may be lost.
    pub(super) fn preempt_if_due(&mut self, now: Time) {
        let (Some(after), Some((term, priority))) = (self.preempt_after(), self.lower_leader(now)) else {
            self.preemption = None;
            return;
        };
        let is_known = self.preemption.is_some_and(|preemption| preemption.term == term);
        let asks_now = is_known && self.preempts_at().is_some_and(|at| now >= at);
        if asks_now || !is_known {
            self.preemption = Some(Preemption { term, asks_at: now + after });
        }
        if asks_now {
            self.ask_to_resign(term, priority);
        }
    }

    fn preempt_after(&self) -> Option<Duration> {
        let after = self.timings.preempt_after()?;
        Some(if self.has_lost_lead { after * AFTER_LOSS } else { after })
    }

    /// The term and the priority of the leader, if its priority is known and lower, and if this candidate could claim before that leader has cooled off (R7), and before
    /// another of a lower priority. Otherwise the leader's job would be stopped in vain, and nobody might lead for that long.
    fn lower_leader(&self, now: Time) -> Option<(Offset, u16)> {
        let claim_delay = self.precedence.delay(now, Predecessor::Gone)?.fixed;
        let is_ready = self.listener.claim_window().is_some()
            && !self.may_not_claim()
            && self.judgement == Judgement::Fit
            && self.leaving.is_none()
            && self.cooling_off.is_none()
            && !self.precedence.is_backing_off()
            && !self.precedence.is_forestalled(now);
        match self.listener.journal().view() {
            View::Led(term) if is_ready && claim_delay < term.lease * 2 => {
                let member = term.member.as_ref().filter(|member| **member != self.identity.member)?;
                let priority = self.precedence.priority_of(now, member)?;
                (priority < self.precedence.priority).then_some((term.offset, priority))
            }
            View::Led(_) | View::NeverLed | View::Released { .. } | View::Undecided(_) => None,
        }
    }

    fn ask_to_resign(&mut self, term: Offset, priority: u16) {
        let own = self.precedence.priority;
        self.actions.push_back(Action::Note(Note::Preempting { term, priority, own }));
        let seq = self.next_seq();
        // The record contains this candidate's name already; a long name would not fit twice.
        let reason = Some(format!("its priority is {own}, and the leader's {priority} (--preempt)").into());
        self.send(seq, Body::Request { what: What::Resign, term: Some(term), by: None, reason, successor: None });
    }
}
