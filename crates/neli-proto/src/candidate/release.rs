//! R6: a release is written when no process of the job is left, and no record of the term after it.

use core::time::Duration;

use super::Election;
use crate::journal::Verdict;
use crate::record::{Body, KeyedRun, MemberId, Offset, Record, Why};
use crate::supervisor::NothingLeft;
use crate::time::{Time, millis_rounded_up};

/// Our claim was read back as effective, so its term is held. Taking up or releasing the term consumes this. So a released term can't be taken
/// up (R6).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct OwnClaim {
    term: Offset,
    pub(super) seq: Option<u64>,
}

impl OwnClaim {
    /// The claim that was read at this offset, if it is an effective one of this member.
    pub(super) fn read_back(own: &MemberId, offset: Offset, record: &Record, verdict: Verdict) -> Option<Self> {
        let is_own = record.member.as_ref() == Some(own);
        let is_effective = verdict == Verdict::Effective && matches!(record.body, Body::Claim { .. });
        (is_own && is_effective).then_some(Self { term: offset, seq: record.seq })
    }

    /// The claim's own offset.
    pub(super) const fn term(&self) -> Offset {
        self.term
    }

    pub(super) const fn into_term(self) -> Offset {
        self.term
    }
}

/// A release in flight.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Releasing {
    pub(super) term: Offset,
    pub(super) seq: u64,
    pub(super) why: Why,
    end: End,
    /// It could not be delivered, and is sent again at this time.
    pub(super) again_at: Option<Time>,
    /// Until when the candidate waits for the delivery.
    pub(super) gives_up_at: Time,
    /// Whether the journal must be read again afterwards, because the lease was lost (R5).
    pub(super) reads_anew: bool,
}

/// The job's end, for the release.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct End {
    /// The exit status.
    pub(super) exit: Option<u8>,
    /// How long after the lease's end a process of the job was still alive.
    pub(super) late: Option<Duration>,
    /// The run that the release reports.
    pub(super) once: Option<KeyedRun>,
    /// If another term is current, so that the release is void and only reports that no process of the job is left: the last record at
    /// which its own term was known to be current.
    pub(super) void_seen: Option<Offset>,
}

/// The proof that no process runs under a term and none will. A release needs it (R6).
pub(super) enum NothingRuns {
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

impl Releasing {
    /// Sends the release.
    pub(super) fn begin(
        election: &mut Election,
        now: Time,
        nothing_runs: NothingRuns,
        (why, end): (Why, End),
        held_until: Time,
    ) -> Self {
        let reads_anew = matches!((&nothing_runs, why), (NothingRuns::NothingLeft(_), Why::Fenced | Why::GuardDied));
        // A candidate that exits waits no longer than its lease would have lasted (R7). One that stays has no other task meanwhile.
        let gives_up_at = held_until.max(if election.stays() { now + election.timings.lease } else { now });
        let term = nothing_runs.into_term();
        let mut releasing = Self { term, seq: 0, why, end, again_at: None, gives_up_at, reads_anew };
        releasing.send(election);
        releasing
    }

    pub(super) fn due(&self) -> Time {
        self.again_at.map_or(self.gives_up_at, |again| again.min(self.gives_up_at))
    }

    /// Whether it may be sent again: a second release is void, but it must be one of the current term, unless the first was void too.
    pub(super) fn may_be_sent(&self, election: &Election) -> bool {
        election.is_current(self.term) || self.end.void_seen.is_some()
    }

    pub(super) fn send(&mut self, election: &mut Election) {
        self.seq = election.next_seq();
        self.again_at = None;
        let release = Body::Release {
            term: self.term,
            seen: self.end.void_seen.unwrap_or(election.listener.last()),
            why: Some(self.why.as_str().into()),
            exit: self.end.exit,
            late_ms: self.end.late.map(millis_rounded_up),
            group_member: election.group.left_as.clone(),
            once: self.end.once.clone(),
            // With any other reason, no successor is named.
            successor: election.successor.clone().filter(|_| matches!(self.why, Why::Resigned | Why::Spread)),
        };
        election.send(self.seq, release);
    }
}
