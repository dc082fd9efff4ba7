//! The state of a candidate in the election, as plain data, and the transitions below: the only code that replaces it.

use core::time::Duration;

use super::lease::Leading;
use super::overlapping::Overlapped;
use super::release::{End, NothingRuns, OwnClaim, Releasing};
use super::{Action, Candidate, Election};
use crate::guard::SeenEnd;
use crate::note::Note;
use crate::precedence::RANDOM_DELAY;
use crate::record::{Body, Offset, Why};
use crate::supervisor::{Departure, JobEnd, Loss, Wanted};
use crate::time::Time;
use crate::timings::cool_off;

/// The state of a candidate in the election.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum State {
    /// A claim is in flight (R2). `stood_down`: the reason, if the candidate was asked to stand down meanwhile: then it releases the term if the
    /// claim takes effect (R7).
    Claiming { seq: u64, sent: Time, stood_down: Option<Why> },
    /// It has exited, and takes no more events.
    Departed(Departure),
    /// The lease is over, but processes of the job may be left. No record is written until they are gone.
    Fenced(Fenced),
    /// It leads: a lease is held, and a job may be alive.
    Leading(Leading),
    /// `--overlap`: another candidate has claimed. The job that runs here must stop within the overlap, or with the lease (O3).
    Overlapped(Overlapped),
    /// No process of the job is left, none will be started, and the release is in flight (R6).
    Releasing(Releasing),
    /// No term is held, and nothing is claimed before this time.
    StandingBy { not_before: Time },
    /// No term is held, and the process is suspended or about to be: it claims and sends nothing before it continues.
    Suspended,
}

/// A term whose lease is over, and whose job is being killed.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Fenced {
    /// The last thing that the leader wanted of its job.
    pub(super) wanted: Wanted,
    /// The reason that the release will carry.
    pub(super) why: Why,
    /// The reason for which it was standing down before the fence. It decides what follows the fence.
    pub(super) stood_down: Option<Why>,
    pub(super) lease_end: Time,
    pub(super) loss: Loss,
    /// `--overlap`: whether another candidate's claim overlapped this term before its lease ended.
    pub(super) is_overlapped: bool,
}

impl State {
    /// When something is due in this state.
    pub(super) fn due(&self, election: &Election) -> Option<Time> {
        match self {
            Self::Claiming { sent, .. } => Some(*sent + election.timings.lease),
            Self::Departed(_) | Self::Fenced(_) | Self::Suspended => None,
            Self::Leading(leading) => leading.due(election),
            Self::Overlapped(overlapped) => overlapped.due(election),
            Self::Releasing(releasing) => Some(releasing.due()),
            Self::StandingBy { not_before } => election.standby_due(*not_before),
        }
    }

    /// Whether it takes part in the election, that is, has neither exited nor been suspended.
    pub(super) const fn takes_part(&self) -> bool {
        !matches!(self, Self::Departed(_) | Self::Suspended)
    }

    /// Whether it holds neither a term nor a job, and has no claim under way, which could take effect without a leader.
    pub(super) const fn holds_nothing(&self) -> bool {
        matches!(self, Self::StandingBy { .. } | Self::Suspended)
    }

    /// The same, or a claim is under way.
    pub(super) const fn has_no_term(&self) -> bool {
        self.holds_nothing() || matches!(self, Self::Claiming { .. })
    }

    /// The term that a `resign` may name (held, or not released yet), and the reason for which the candidate is standing down already, if
    /// any.
    pub(super) fn resignable(&self, election: &Election) -> Option<(Offset, Option<Why>)> {
        match self {
            Self::Fenced(fenced) => Some((fenced.wanted.grant.term, fenced.stood_down)),
            Self::Leading(leading) => Some((leading.term, leading.stands_down)),
            Self::Releasing(releasing) => Some((releasing.term, election.cooling_off.map(|_| Why::Resigned))),
            Self::Claiming { .. }
            | Self::Departed(_)
            | Self::Overlapped(_)
            | Self::StandingBy { .. }
            | Self::Suspended => None,
        }
    }
}

// ---- the transitions: the only place that replaces the state -------------------------------------------------------

impl Candidate {
    /// No term is held. The candidate claims nothing before `not_before`.
    pub(super) fn become_standby(&mut self, not_before: Time) {
        self.state = State::StandingBy { not_before };
    }

    /// The process is suspended.
    pub(super) fn become_suspended(&mut self) {
        self.state = State::Suspended;
    }

    /// The candidate exits.
    pub(super) fn become_departed(&mut self, departure: Departure) {
        self.election.leave_for_good();
        self.state = State::Departed(departure);
    }

    /// Says that it leaves, and keeps its state: for a candidate that is refused and exits at once.
    pub(crate) fn say_last_hello(&mut self) {
        self.election.leave_for_good();
    }

    /// Sends a claim (R2).
    pub(super) fn become_claiming(&mut self, now: Time) {
        let election = &mut self.election;
        let after = election.listener.last();
        let seq = election.next_seq();
        let lease_ms = election.lease_ms();
        let overlap = election.overlap_of_claim();
        election.send(seq, Body::Claim { after, lease_ms, overlap });
        // If Kafka does not answer, that was reported, and there is a new attempt each lease.
        if election.next_claim.unanswered_since.is_none() {
            election.standing_by = None;
            election.actions.push_back(Action::Note(Note::Claiming { after }));
        }
        election.next_claim.refused_until = None;
        self.state = State::Claiming { seq, sent: now, stood_down: None };
    }

    /// Takes up the term of a claim that was sent at `sent`: from then on its lease runs (R3).
    pub(super) fn become_leader(&mut self, now: Time, claim: OwnClaim, sent: Time) {
        let term = claim.into_term();
        let election = &mut self.election;
        election.successor = None;
        election.highest_term = election.highest_term.max(term);
        let leading = Leading::begin(election, now, term, sent);
        election.actions.push_back(Action::Note(Note::Leading { term, until: leading.lease_end }));
        self.state = State::Leading(leading);
    }

    /// `--overlap`: the claim of `by_term` took effect over the own term.
    pub(super) fn become_overlapped(&mut self, now: Time, by_term: Offset) {
        if let State::Leading(leading) = &self.state {
            self.state = State::Overlapped(leading.overlapped(&mut self.election, now, by_term));
        }
    }

    /// R5: a lease that has ended is not taken up again.
    pub(super) fn become_fenced(&mut self, why: Why, loss: Loss) {
        let (wanted, stood_down, lease_end, is_overlapped) = if let State::Leading(leading) = &self.state {
            (leading.wants(), leading.stands_down, leading.lease_end, false)
        } else if let State::Overlapped(Overlapped { wanted, why, lease_end, .. }) = &self.state {
            (*wanted, Some(*why), *lease_end, true)
        } else {
            return;
        };
        self.state = State::Fenced(Fenced { wanted, why, stood_down, lease_end, loss, is_overlapped });
    }

    // ---- releases -----------------------------------------------------------------------------------------------------

    /// Releases the term of a claim that is not taken up. Its lease ends at `lease_end`.
    pub(super) fn release_claim(&mut self, now: Time, claim: OwnClaim, why: Why, lease_end: Time) {
        self.become_releasing(now, NothingRuns::NeverLed(claim), why, End::default(), lease_end);
    }

    /// Handles that no process is left of the job of the term that is held: releases the term, if it is still ours.
    pub(super) fn release_job(&mut self, now: Time, job_end: JobEnd) {
        let lease = self.election.timings.lease;
        let Some(wanted) = self.wants() else { return };
        let (why, stood_down, held_until, is_overlapped) = if let State::Leading(leading) = &self.state {
            // R7: the term is held until one lease after the last effective record was sent.
            (leading.stands_down.unwrap_or(job_end.why), None, leading.last_effective_sent + lease, false)
        } else if let State::Overlapped(Overlapped { why, lease_end, .. }) = &self.state {
            (*why, None, *lease_end, true)
        } else if let State::Fenced(Fenced { why, stood_down, lease_end, is_overlapped, .. }) = &self.state {
            (*why, *stood_down, *lease_end, *is_overlapped)
        } else {
            return;
        };
        let (late, is_cut) = self.note_fence(now, job_end.seen);
        let election = &mut self.election;
        let JobEnd { proof, exit, leaving, once, back_off, .. } = job_end;
        if leaving {
            election.leaving.get_or_insert(why);
            election.leave_group();
        }
        if why != Why::FactsUnavailable {
            // Only a lead in which the job may have run ends the wait.
            election.wait_until = None;
        }
        election.back_off(back_off);
        election.has_lost_lead = why.is_of_this_machine() || stood_down.is_some_and(Why::is_of_this_machine);
        // A leader that was overlapped has let another candidate lead.
        let reasons = [Some(why), stood_down].into_iter().flatten().filter(|_| !is_overlapped);
        if let Some(span) = reasons.filter_map(|why| cool_off(why, lease)).max() {
            election.cooling_off = Some(now + span);
        }
        // R6: a release is written only while the term is current in this candidate's view. After a cut the view is of another history, in
        // which the term's number may belong to another candidate.
        let is_current = (election.is_current(proof.term()) || is_overlapped) && !is_cut;
        // L4: a reader that begins behind the other's claim must not take the term for the current one, so a void release has as `seen` the
        // last record at which it was.
        let void_seen = Some(wanted.grant.seen);
        if is_current {
            let end = End { exit, late, once, void_seen: void_seen.filter(|_| is_overlapped) };
            self.become_releasing(now, NothingRuns::NothingLeft(proof), why, end, held_until);
            return;
        }
        if late.is_some() && !is_cut && election.superseded(proof.term()).is_some() {
            let end = End { exit, late, once: None, void_seen };
            // Sent once, without waiting for the delivery. Another candidate may have led by then, so the release is void. It is for operators, who
            // would otherwise find the broken guarantee only in this machine's log.
            Releasing::begin(election, now, NothingRuns::NothingLeft(proof), (why, end), now);
        }
        election.say_hello_after_lead(now);
        election.ask_anew(now);
        self.become_standby(now);
    }

    /// Notes the fence of the term, if it was fenced. Returns how long after the lease's end a process of the job was still alive, and whether the
    /// history was cut: then the term's number may belong to another candidate now.
    fn note_fence(&mut self, now: Time, seen: Option<SeenEnd>) -> (Option<Duration>, bool) {
        let State::Fenced(Fenced { wanted, why, lease_end, loss, .. }) = &self.state else { return (None, false) };
        let late = seen.and_then(|seen| seen.overrun(*lease_end));
        if *loss != Loss::Superseded {
            let (term, left) = (wanted.grant.term, lease_end.since(seen.map_or(now, |seen| seen.gone_at)));
            self.election.actions.push_back(Action::Note(Note::Fenced { term, why: *why, loss: *loss, left, late }));
        }
        (late, *loss == Loss::HistoryCut)
    }

    /// Sends the release of a term under which nothing runs and nothing will (R6). If the candidate exits, it waits for the delivery until
    /// `held_until` at most.
    fn become_releasing(&mut self, now: Time, nothing_runs: NothingRuns, why: Why, end: End, held_until: Time) {
        let election = &mut self.election;
        let releasing = Releasing::begin(election, now, nothing_runs, (why, end), held_until);
        election.highest_term = election.highest_term.max(releasing.term);
        self.state = State::Releasing(releasing);
    }

    /// Ends the wait for the delivery of the release.
    pub(super) fn release_is_over(&mut self, now: Time, delivered: bool) {
        let State::Releasing(Releasing { term, why, reads_anew, .. }) = self.state else { return };
        let election = &mut self.election;
        election.actions.push_back(Action::Note(Note::Released { term, why, delivered }));
        // R2: a claim that was read back late may have voided another candidate's, which retries at the same pace as ours.
        let not_before = if why == Why::ClaimExpired { now + election.random.up_to(RANDOM_DELAY) } else { now };
        (election.standing_by, election.successor) = (None, None);
        election.say_hello_after_lead(now);
        if reads_anew {
            election.ask_anew(now);
        }
        self.become_standby(not_before);
    }
}

impl Election {
    /// Leaves the group, and says goodbye: the other candidates count a candidate as alive if it has sent a hello and has not just released a
    /// term.
    fn leave_for_good(&mut self) {
        self.leave_group();
        if self.next_hello.take().is_some() && !self.precedence.is_one_of_many {
            self.send_hello(None);
        }
    }
}
