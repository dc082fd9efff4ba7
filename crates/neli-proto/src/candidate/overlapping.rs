//! `--overlap`: a leader that yields, a job that continues beside the next leader's, its fields in claims and beats, and candidates whose
//! settings differ. From when on a candidate may claim beside a leader that yields, the listener knows.

use core::mem;

use super::{Action, Candidate, Election};
use crate::hello::Hello;
use crate::journal::{Term, Verdict};
use crate::note::{MOST_REPORTED, Note, Refusal};
use crate::record::{MemberId, Offset, Overlap, Record, Why};
use crate::status::OtherCandidate;
use crate::supervisor::{Wanted, WantedState};
use crate::time::{Time, millis};

/// A term that has ended while its job continues beside the next leader's. Its lease is not extended any more.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Overlapped {
    /// The last thing that the leader wanted of its job.
    pub(super) wanted: Wanted,
    /// The term of the candidate that has claimed.
    pub(super) by_term: Offset,
    /// The reason for which it stands down.
    pub(super) why: Why,
    pub(super) lease_end: Time,
    /// When the job is asked to stop, unless the next leader's job runs before; `None` after it was asked.
    pub(super) asks_at: Option<Time>,
    /// When the remaining processes of the job are killed.
    pub(super) kill_at: Time,
}

impl Overlapped {
    pub(super) fn wants(&self) -> Wanted {
        let stop = WantedState::Stop { why: self.why, by: Some(self.kill_at) };
        Wanted { state: if self.asks_at.is_some() { WantedState::Run } else { stop }, ..self.wanted }
    }

    pub(super) fn due(&self, election: &Election) -> Option<Time> {
        [Some(election.deadline(self.lease_end)), self.asks_at].into_iter().flatten().min()
    }

    /// The next leader's run, or a leader after it, as the records show it now. Returns whether this job must have ended already: at the time of
    /// a later claim no process can be left here. If one is, a clock was wrong, as in every case in which a leader is superseded.
    pub(super) fn follow(&mut self, election: &mut Election) -> bool {
        let Some(term) = election.current_term() else { return false };
        if term.offset == self.by_term && term.has_run {
            self.asks_at = None;
        }
        let is_over = term.offset > self.by_term;
        if is_over {
            let (by_term, by) = (Some(term.offset), term.name.clone());
            let superseded = Note::Superseded { term: self.wanted.grant.term, by_term, by };
            election.actions.push_back(Action::Note(superseded));
        }
        is_over
    }
}

impl Election {
    /// The current term, and its known properties.
    pub(super) const fn current_term(&self) -> Option<&Term> {
        self.listener.journal().led()
    }

    /// The leader.
    pub(super) fn leader(&self) -> Option<&MemberId> {
        self.current_term().and_then(|term| term.member.as_ref())
    }

    /// Whether the candidate uses `--overlap`.
    pub(super) fn overlaps(&self) -> bool {
        self.timings.overlap.is_some()
    }

    /// `--overlap` in the form of a record's field.
    pub(super) fn overlap_ms(&self) -> Option<u64> {
        self.timings.overlap.map(millis)
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
        self.overlaps() && self.precedence.standbys(now) > 0
    }

    /// The term of a claim that took effect over this one and may overlap it.
    pub(super) fn overlapping_claim(&self, term: Offset) -> Option<Offset> {
        let is_over = self.listener.journal().earlier_job().term() == Some(term);
        let by_term = self.current_term().map(|current| current.offset).filter(|by_term| *by_term != term);
        by_term.filter(|_| is_over && self.overlaps())
    }
}

impl Candidate {
    /// Compares this candidate with a leader whose claim or beat was read (O6). If their settings differ and this candidate only stands by,
    /// it exits.
    pub(super) fn compare_with_leader(&mut self, record: &Record, verdict: Verdict, fresh: bool) {
        let is_declared = verdict == Verdict::Effective && record.body.lease().is_some();
        let overlaps = record.body.overlap().is_some();
        let differs = overlaps != self.election.overlaps();
        if is_declared && differs {
            self.election.differing_term = self.election.current_term().map(|term| term.offset);
        }
        // A claim that is under way is void because of that record (L1).
        if is_declared && fresh && differs && self.state.has_no_term() {
            self.refuse_beside(record.name.as_deref(), overlaps);
        }
    }

    /// Compares this candidate with another one whose hello was read at `offset` for the first time (O6). If their settings differ, the one that
    /// came later exits, unless it agrees with the leader: then the other exits at the leader's next beat.
    pub(super) fn compare_with_standby(&mut self, offset: Offset, hello: &Hello) {
        let Election { differing_term, .. } = self.election;
        let own = self.election.joined();
        let came_before = own.is_some_and(|own| hello.joined.unwrap_or(offset) < own);
        let agrees_with_leader = self.election.current_term().is_some_and(|term| Some(term.offset) != differing_term);
        let differs = hello.overlap_ms.is_some() != self.election.overlaps() && !hello.leaves && !agrees_with_leader;
        if differs && came_before && self.state.holds_nothing() {
            self.refuse_beside(hello.name.as_deref(), hello.overlap_ms.is_some());
        }
    }

    /// Keeps what another candidate's hello says of `--once`, `--window` and `--schedule` if that differs. A hello that would be too
    /// long leaves it out, and the name.
    pub(super) fn compare_once(&mut self, hello: &Hello) {
        let Election { hello: own, shown, .. } = &mut self.election;
        if hello.once == own.once || hello.name.is_none() {
            shown.differing_once.remove(&hello.member);
        } else {
            shown.differing_once.insert(hello.member.clone(), hello.once.clone().unwrap_or_default());
        }
    }

    /// Notes such differences, each once, when the log was read: the writer of a hello in it may have gone since.
    pub(super) fn note_differing_once(&mut self, now: Time) {
        let Election { hello: own, listener, precedence, shown, actions, .. } = &mut self.election;
        if shown.differing_once.is_empty() || !listener.is_caught_up() {
            return;
        }
        let mut differing = mem::take(&mut shown.differing_once);
        for OtherCandidate { member, name, .. } in precedence.others(now) {
            if let Some(theirs) = differing.remove(&member)
                && shown.others_once.len() < MOST_REPORTED
                && shown.others_once.insert(theirs.clone())
            {
                let ours = own.once.clone().unwrap_or_default();
                actions.push_back(Action::Note(Note::OnceDiffers { name, theirs, ours }));
            }
        }
    }

    fn refuse_beside(&mut self, name: Option<&str>, overlaps: bool) {
        let name = name.unwrap_or("another candidate").into();
        self.election.actions.push_back(Action::Note(Note::Refused(Refusal::Overlap { name, is_theirs: overlaps })));
    }
}
