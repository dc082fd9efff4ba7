//! Rules that can be broken on purpose, so that the model can show that it would notice.
//!
//! Outside the tests nothing is ever broken: [`broken`] is a constant `false`, and the branches behind it vanish.

/// A rule of the logic that the model breaks deliberately; each is a way to two jobs at once.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Flaw {
    /// R3: a claim that was acknowledged counts as effective.
    AcknowledgedClaimTaken,
    /// L4: answers about the log's end are dated by their arrival, not by the asking.
    AnswersDatedByArrival,
    /// L4: an answer tells markers from missing records for ever, not for 60 s.
    AnswersHoldForEver,
    /// L1: only another claim voids a claim, a beat in between does not.
    BeatsDoNotVoid,
    /// R2: a claim says that everything up to the log's end was judged, read or not.
    ClaimAheadOfReading,
    /// R3: any record of the same kind by this member counts as the echo, whatever its `seq`.
    EchoByKind,
    /// Vacant: an empty log is believed although size retention may have cut a leader's records.
    EmptinessUnderSizeRetention,
    /// L1 is dropped: every claim is effective, the newest wins.
    EveryClaimEffective,
    /// L4: a missing offset leaves a decided view decided.
    GapIgnored,
    /// R3: a claim that comes back a lease after its sending is taken up from then on.
    LateClaimTaken,
    /// R3: the lease runs from the receipt of the echo.
    LeaseFromReceipt,
    /// R6: the main process's end counts as the end of the whole tree.
    MainEndTakenForAll,
    /// R2: silence is measured with the candidate's own lease, not with the holder's.
    OwnLeaseOfSilence,
    /// R6: a release is written for a term that is no longer current at its `seen`.
    ReleaseOfAnEndedTerm,
    /// R6: a stop between two runs releases the term, and the next run is started all the same.
    RestartAfterRelease,
    /// L4: a beat or release decides whatever its `seen`.
    SeenIgnored,
    /// R2: a start counts as silence, and what is read at a start as received long ago.
    SilenceFromBeforeListening,
    /// L4: a start in the middle of the log counts as vacancy.
    StartDecided,
    /// R6: a stop before the guard has said that the job runs is taken for done, and the release goes out; the guard
    /// starts the job all the same.
    StopBehindSpawnTakenForDone,
    /// R2: in an undecided view the leases heard are not waited for.
    UndecidedForgetsLeases,
    /// R2: in an undecided view the longest lease allowed is not waited for.
    UndecidedHurries,
    /// L4: a claim that can't be judged counts as void.
    UnjudgedIsVoid,
    /// L4: `w` stays where it was after a missing offset.
    WindowKept,
}

/// Whether this build breaks the rule. It does not.
#[cfg(not(test))]
#[must_use]
pub const fn broken(_: Flaw) -> bool {
    false
}

#[cfg(test)]
std::thread_local! {
    static BROKEN: std::cell::Cell<Option<Flaw>> = const { std::cell::Cell::new(None) };
}

/// Whether the test that runs breaks the rule.
#[cfg(test)]
#[must_use]
pub fn broken(flaw: Flaw) -> bool {
    BROKEN.get() == Some(flaw)
}

/// Breaks a rule from here on, on this thread of a test; none mends it.
#[cfg(test)]
pub fn break_rule(flaw: Option<Flaw>) {
    BROKEN.set(flaw);
}
