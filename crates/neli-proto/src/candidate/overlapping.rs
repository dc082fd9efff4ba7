//! `--overlap`: its fields in claims and beats, and candidates whose settings differ.

use alloc::boxed::Box;
use alloc::format;

use super::Action;
use super::state::State;
use super::{Candidate, Common};
use crate::journal::{Term, Verdict, View};
use crate::listener::Received;
use crate::record::{Hello, Offset, Overlap, Record};
use crate::time::{Time, millis};

impl Common {
    /// The current term, and its known properties.
    pub(super) fn current_term(&self) -> Option<&Term> {
        match self.listener.journal().view() {
            View::Led(term) => Some(term),
            View::NeverLed | View::Released { .. } | View::Undecided(_) => None,
        }
    }

    pub(super) fn leader_name(&self) -> Option<Box<str>> {
        self.current_term().and_then(|term| term.name.clone())
    }

    /// `--overlap` in the form of a record's field.
    pub(super) fn overlap_ms(&self) -> Option<u64> {
        self.timings.overlap().map(millis)
    }

    /// The field of a claim that is sent now.
    pub(super) fn overlap_of_claim(&self) -> Option<Overlap> {
        let over = self.listener.claim_window().and_then(|window| window.over);
        self.overlap_ms().map(|within_ms| Overlap { within_ms, over, yields: false })
    }

    /// The field of a beat that is sent now.
    pub(super) fn overlap_of_beat(&self, now: Time, yields: bool) -> Option<Overlap> {
        let may_be_alive = self.listener.earlier_job_gone_at().is_some_and(|gone_at| now < gone_at);
        let over = self.listener.journal().earlier_job().term().filter(|_| may_be_alive);
        self.overlap_ms().map(|within_ms| Overlap { within_ms, over, yields })
    }

    /// Whether a leader that must stop lets its job continue (O1): a standby that may claim is known.
    pub(super) fn may_yield(&self, now: Time) -> bool {
        self.timings.overlap().is_some() && self.precedence.standbys(now) > 0
    }

    /// The term of a claim that took effect over this one and may overlap it.
    pub(super) fn overlapping_claim(&self, term: Offset) -> Option<Offset> {
        let is_over = self.listener.journal().earlier_job().term() == Some(term);
        let by_term = self.current_term().map(|current| current.offset).filter(|by_term| *by_term != term);
        by_term.filter(|_| is_over && self.timings.overlap().is_some())
    }
}

impl Candidate {
    /// Compares this candidate with a leader whose claim or beat was read (O6). If their settings differ and this candidate only stands by,
    /// it exits.
    pub(super) fn compare_with_leader(&mut self, record: &Record, received: Received) {
        let is_declared = received.fresh && received.verdict == Verdict::Effective && record.body.lease().is_some();
        let overlaps = record.body.overlap().is_some();
        // A claim that is under way is void because of that record (L1).
        let holds_nothing = self.state.holds_nothing() || matches!(self.state, State::Claiming(_));
        if is_declared && overlaps != self.common.timings.overlap().is_some() && holds_nothing {
            self.refuse_beside(record.name.as_deref(), overlaps);
        }
    }

    /// Compares this candidate with another one whose hello was read (O6). If their settings differ, the one that came later exits.
    pub(super) fn compare_with_standby(&mut self, hello: &Hello) {
        let differs = hello.overlaps != self.common.timings.overlap().is_some();
        if differs && self.common.precedence.came_before(&hello.member) && self.state.holds_nothing() {
            self.refuse_beside(hello.name.as_deref(), hello.overlaps);
        }
    }

    fn refuse_beside(&mut self, name: Option<&str>, overlaps: bool) {
        let name = name.unwrap_or("another candidate");
        let why = if overlaps {
            format!("--overlap is missing: {name} stands in this election with it; all its candidates need it, or none")
        } else {
            format!("--overlap: {name} stands in this election without it; all its candidates need it, or none")
        };
        self.common.actions.push_back(Action::Refuse { why: why.into() });
    }
}
