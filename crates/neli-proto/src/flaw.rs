//! Rules that can be broken on purpose, so that the model and the chaos can show that they would notice.
//!
//! Without the feature `flaws`, or without debug assertions, [`broken`] is a constant `false`, and the branches behind it vanish:
//! no release can break a rule.

/// A rule that is broken deliberately; each is a way to two jobs at once. The model breaks those of the logic, the chaos
/// some of these and those of the hands.
#[cfg_attr(feature = "flaws", derive(serde::Deserialize))]
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
    /// R6: a fence is over for the candidate before the guard has said that nothing is left.
    FenceTakenForDone,
    /// L4: a missing offset leaves a decided view decided.
    GapIgnored,
    /// R6: the guard takes the main process's end for that of the whole tree.
    GuardForgetsTree,
    /// R4: the guard starts and kills nothing by its deadline.
    GuardIgnoresDeadline,
    /// R6: the guard, left alone, releases before it has killed.
    GuardReleasesFirst,
    /// R6: the guard releases for the dead before it has read all that they had ordered.
    GuardReleasesUnread,
    /// R0: a claim that took effect is taken up although nobody has said that the topic may carry an election.
    JudgementNotAwaited,
    /// R3: a claim that comes back a lease after its sending is taken up from then on.
    LateClaimTaken,
    /// R3: the lease runs from the receipt of the echo.
    LeaseFromReceipt,
    /// R3: a lease is extended although nobody has confirmed that the topic is still the one in which it was claimed.
    LeaseWithoutIdentity,
    /// R6: the main process's end counts as the end of the whole tree.
    MainEndTakenForAll,
    /// L3: any member's beat or release of the current term counts.
    MemberIgnored,
    /// R6: whoever inherits a dead guard's job takes it for gone, alive as it is.
    OrphansTakenForGone,
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
    /// R2: a leader that is heard is not waited for.
    SilenceNotAwaited,
    /// R2: a silence is claimed although nobody has confirmed since that the topic is still the one that was read.
    SilenceWithoutIdentity,
    /// L4: a start in the middle of the log counts as vacancy.
    StartDecided,
    /// R6: a stop before the guard has said that the job runs is taken for done, and the release goes out; the guard
    /// starts the job all the same.
    StopBehindSpawnTakenForDone,
    /// R6: a job that was asked to stop is taken for gone, and the release goes out.
    StopTakenForDone,
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
#[cfg(not(all(feature = "flaws", debug_assertions)))]
#[must_use]
pub const fn broken(_: Flaw) -> bool {
    false
}

// A thread of its own for each test: what it breaks must not break another's rules.
#[cfg(all(feature = "flaws", debug_assertions))]
extern crate std;

#[cfg(all(feature = "flaws", debug_assertions))]
std::thread_local! {
    static BROKEN: core::cell::Cell<Option<Flaw>> = const { core::cell::Cell::new(None) };
}

/// Whether this thread breaks the rule.
#[cfg(all(feature = "flaws", debug_assertions))]
#[must_use]
pub fn broken(flaw: Flaw) -> bool {
    BROKEN.get() == Some(flaw)
}

/// Breaks a rule from here on, on this thread; none mends it.
#[cfg(all(feature = "flaws", debug_assertions))]
pub fn break_rule(flaw: Option<Flaw>) {
    BROKEN.set(flaw);
}
