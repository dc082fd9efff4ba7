//! Rules that can be broken on purpose, so that the model can show that it would notice.
//!
//! Outside the tests nothing is ever broken: [`broken`] is a constant `false`, and the branches behind it vanish.

/// A rule of the logic that the model breaks deliberately; each is a way to two jobs at once.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Flaw {
    /// L4: answers about the log's end are dated by their arrival, not by the asking.
    AnswersDatedByArrival,
    /// R6: beats go on after the release was handed over.
    BeatAfterRelease,
    /// R2: a claim says that everything up to the log's end was judged, read or not.
    ClaimAheadOfReading,
    /// R5: a beat that comes back after the lease's end extends it all the same.
    EchoAfterTheEnd,
    /// R3: any record of the same kind by this member counts as the echo, whatever its `seq`.
    EchoByKind,
    /// Vacant: an empty log is believed although size retention may have cut a leader's records.
    EmptinessUnderSizeRetention,
    /// R3: a record read a second time counts as an echo.
    EchoOfHistory,
    /// L1 is dropped: every claim is effective, the newest wins.
    EveryClaimEffective,
    /// R3: the claim's own lease is not checked when it comes back.
    LateClaimTaken,
    /// R3: the lease runs from the receipt of the echo.
    LeaseFromReceipt,
    /// R2: silence is measured with the candidate's own lease, not with the holder's.
    OwnLeaseOfSilence,
    /// R2: reading again forgets the leases received before.
    RereadingForgetsLease,
    /// L4: a beat or release decides whatever its `seen`.
    SeenIgnored,
    /// R2: a start counts as silence, and what is read at a start as received long ago.
    SilenceFromBeforeListening,
    /// L4: a start in the middle of the log counts as vacancy.
    StartDecided,
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
