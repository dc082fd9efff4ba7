//! R6: a release is written when no process of the job is left, and no record of the term after it.

use core::time::Duration;

use super::Common;
use super::action::Action;
use super::reading::OwnClaim;
use super::reasons::is_lost;
use super::standing_by::StandingBy;
use super::state::{Input, State};
use crate::note::Note;
use crate::precedence::RANDOM_DELAY;
use crate::record::{Body, KeyedRun, Offset, Why};
use crate::supervisor::{JobEnd, NothingLeft};
use crate::time::{Time, millis_rounded_up};
use crate::timings::cool_off;

/// A release in flight.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Releasing {
    term: Offset,
    seq: u64,
    why: Why,
    end: End,
    /// It could not be delivered, and is sent again at this time.
    again_at: Option<Time>,
    /// Until when the candidate waits for the delivery.
    gives_up_at: Time,
    /// Whether the journal must be read again afterwards, because the lease was lost (R5).
    reads_anew: bool,
    /// `--overlap`: another candidate claimed while the job continued. Then the release is void, and reports that no process of the job is
    /// left.
    overlapped_by: Option<Offset>,
}

/// The job's end, for the release.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct End {
    /// The exit status.
    exit: Option<u8>,
    /// How long after the lease's end a process of the job was still alive.
    late: Option<Duration>,
    /// The run that the release reports.
    once: Option<KeyedRun>,
}

/// The proof that no process runs under a term and none will. A release needs it (R6).
enum NothingRuns {
    /// No process was started, and the claim can't be taken up any more.
    NeverLed(OwnClaim),
    /// The job's end.
    NothingLeft(NothingLeft),
}

impl NothingRuns {
    fn into_term(self) -> Offset {
        match self {
            Self::NeverLed(claim) => claim.into_term(),
            Self::NothingLeft(proof) => proof.into_term(),
        }
    }
}

/// A term that must be released.
struct Release {
    nothing_runs: NothingRuns,
    why: Why,
    end: End,
    /// If the candidate exits, it waits for the delivery until this time at most.
    held_until: Time,
    /// Whether the journal must be read again afterwards, because the lease was lost.
    reads_anew: bool,
    overlapped_by: Option<Offset>,
}

/// A term whose job has ended.
#[derive(Clone, Copy)]
pub(super) struct JobTerm {
    /// The reason.
    pub(super) why: Why,
    /// The reason for which it was standing down when the lease ended.
    pub(super) stood_down: Option<Why>,
    /// The lease's end, or when it would have ended.
    pub(super) held_until: Time,
    /// How long after the lease's end a process of the job was still alive.
    pub(super) late: Option<Duration>,
    /// Whether the history was cut: then the term's number may belong to another candidate now.
    pub(super) is_cut: bool,
    /// `--overlap`: the term of the claim that took effect while the job continued.
    pub(super) overlapped_by: Option<Offset>,
}

impl Releasing {
    /// Releases the term of a claim that is not taken up. Its lease ends at `lease_end`.
    pub(super) fn of_claim(common: &mut Common, now: Time, claim: OwnClaim, why: Why, lease_end: Time) -> State {
        let nothing_runs = NothingRuns::NeverLed(claim);
        let (end, held_until) = (End::default(), lease_end);
        Self::begin(common, now, Release { nothing_runs, why, end, held_until, reads_anew: false, overlapped_by: None })
    }

    /// Releases a claim that was given up and took effect late: its lease is over (R5).
    pub(super) fn of_expired_claim(common: &mut Common, now: Time, claim: OwnClaim) -> State {
        Self::of_claim(common, now, claim, Why::ClaimExpired, now)
    }

    /// Releases the term of a job of which no process is left, if the term is still ours.
    pub(super) fn of_job(common: &mut Common, now: Time, job_end: JobEnd, term: JobTerm) -> State {
        let JobEnd { proof, exit, leaving, once, back_off, .. } = job_end;
        let JobTerm { why, stood_down, held_until, late, is_cut, overlapped_by } = term;
        if leaving {
            common.leaving.get_or_insert(why);
            common.leave_group();
        }
        common.back_off(back_off);
        common.has_lost_lead = is_lost(why) || stood_down.is_some_and(is_lost);
        // A leader that was overlapped has let another candidate lead.
        let reasons = [Some(why), stood_down].into_iter().flatten().filter(|_| overlapped_by.is_none());
        if let Some(span) = reasons.filter_map(|why| cool_off(why, common.timings.lease())).max() {
            common.cool_off_for(now, span);
        }
        // R6: a release is written only while the term is current in this candidate's view. After a cut the view is of another history, in
        // which the term's number may belong to another candidate.
        let is_current = (common.is_current(proof.term()) || overlapped_by.is_some()) && !is_cut;
        if is_current {
            let reads_anew = matches!(why, Why::Fenced | Why::GuardDied);
            let nothing_runs = NothingRuns::NothingLeft(proof);
            let end = End { exit, late, once };
            Self::begin(common, now, Release { nothing_runs, why, end, held_until, reads_anew, overlapped_by })
        } else {
            if late.is_some() && !is_cut && common.superseded(proof.term()).is_some() {
                Self::tell_lateness(common, now, proof, why, End { exit, late, once: None });
            }
            common.say_hello_after_lead(now);
            common.ask_anew(now);
            StandingBy::from(now)
        }
    }

    /// Writes once, without waiting for the delivery, that the job of a term was alive after its lease's end. Another candidate may have
    /// led by then, so the release is void. It is for operators, who would otherwise find the broken guarantee only in this machine's log.
    fn tell_lateness(common: &mut Common, now: Time, proof: NothingLeft, why: Why, end: End) {
        let term = NothingRuns::NothingLeft(proof).into_term();
        let mut void =
            Self { term, seq: 0, why, end, again_at: None, gives_up_at: now, reads_anew: false, overlapped_by: None };
        void.send(common);
    }

    fn begin(common: &mut Common, now: Time, release: Release) -> State {
        let Release { nothing_runs, why, end, held_until, reads_anew, overlapped_by } = release;
        let term = nothing_runs.into_term();
        common.highest_term = common.highest_term.max(term);
        // A candidate that exits waits no longer than its lease would have lasted (R7). One that stays has no other task meanwhile.
        let exits_or_suspends = common.leaving.is_some() || common.suspending;
        let gives_up_at = held_until.max(if exits_or_suspends { now } else { now + common.timings.lease() });
        let mut releasing = Self { term, seq: 0, why, end, again_at: None, gives_up_at, reads_anew, overlapped_by };
        releasing.send(common);
        State::Releasing(releasing)
    }

    pub(super) const fn term(&self) -> Offset {
        self.term
    }

    /// Until when the candidate waits for the delivery.
    pub(super) const fn gives_up_at(&self) -> Time {
        self.gives_up_at
    }

    pub(super) fn due(&self) -> Time {
        self.again_at.map_or(self.gives_up_at, |again| again.min(self.gives_up_at))
    }

    #[expect(clippy::needless_pass_by_value, reason = "the step of every state has this signature")]
    pub(super) fn step(mut self, common: &mut Common, now: Time, input: Input) -> State {
        match input {
            Input::Delivered { seq } if seq == self.seq => return self.over(common, now, true),
            Input::ReleaseRead { term } if term == self.term => return self.over(common, now, true),
            // If the release arrived after a cut, the term's number might belong to another candidate.
            Input::GivenUp | Input::HistoryCut => return self.over(common, now, false),
            Input::StandDown { why } => {
                if why.lets_another_lead() {
                    common.cool_off(now);
                }
            }
            Input::TimedOut => {
                if now >= self.gives_up_at {
                    return self.over(common, now, false);
                }
                if self.again_at.is_some_and(|again| now >= again) {
                    // A second release is void, so the release can be sent again while there is time, but only while the term is current.
                    if !common.is_current(self.term) && self.overlapped_by.is_none() {
                        return self.over(common, now, false);
                    }
                    self.send(common);
                }
            }
            // It is not sent again at once: an undelivered record may have been refused before it was sent.
            Input::Undelivered { seq } => {
                if seq == self.seq {
                    self.again_at = Some(now + common.timings.heartbeat_interval());
                }
            }
            Input::BeatEffective { .. }
            | Input::ClaimEffective(_)
            | Input::ClaimVoid { .. }
            | Input::Continued
            | Input::Delivered { .. }
            | Input::GuardFenced { .. }
            | Input::Job(_)
            | Input::MoveOn
            | Input::NamedSuccessor
            | Input::NothingLeft(_)
            | Input::ReleaseRead { .. }
            | Input::Revoked
            | Input::TimePassed
            | Input::TopicJudged { .. }
            | Input::ViewChanged => {}
        }
        State::Releasing(self)
    }

    fn send(&mut self, common: &mut Common) {
        self.seq = common.next_seq();
        self.again_at = None;
        let release = Body::Release {
            term: self.term,
            // The term was current up to the claim that overlapped it.
            seen: self.overlapped_by.map_or(common.listener.last(), |by| by - 1),
            why: Some(self.why.as_str().into()),
            exit: self.end.exit,
            late_ms: self.end.late.map(millis_rounded_up),
            group_member: common.left_as.clone(),
            once: self.end.once.clone(),
            // With any other reason, no successor is named.
            successor: common.successor.clone().filter(|_| self.why == Why::Spread),
        };
        common.send(self.seq, release);
    }

    fn over(self, common: &mut Common, now: Time, delivered: bool) -> State {
        let Self { term, why, reads_anew, .. } = self;
        common.actions.push_back(Action::Note(Note::Released { term, why, delivered }));
        // R2: a claim that was read back late may have voided another candidate's, which retries at the same pace as ours.
        let not_before = if why == Why::ClaimExpired { now + common.random.up_to(RANDOM_DELAY) } else { now };
        (common.standing_by, common.successor) = (None, None);
        common.say_hello_after_lead(now);
        if reads_anew {
            common.ask_anew(now);
        }
        StandingBy::from(not_before)
    }
}
