//! The records that a candidate has read, and when: R1 (listen first), the silence of R2, and reading from further back.
//!
//! The law (`journal.rs`) decides the meaning of the records. This module knows when they were received, and from when on the lead may be
//! claimed. It never claims.

use core::time::Duration;

use crate::journal::{Journal, Origin, Verdict, View};
use crate::record::{Body, Offset, Record};
use crate::time::Time;
use overlap::Overlaps;

pub use bounds::{CutSigns, HistoryCut, LogBounds};
pub use claim_window::{Predecessor, silence};

mod bounds;
mod claim_window;
mod overlap;

/// R1: how far before the end a reading begins, in offsets.
pub const FIRST_SPAN: Offset = 10_000;

/// The reading of the journal, with the times at which records were received.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "four facts that nothing ties to each other")]
pub struct Listener {
    journal: Journal,
    stage: Stage,
    /// When listening began: when the answer with the end offset arrived.
    began: Time,
    /// The end offset of the process's first listening, or the lower one of a later listening, if the history was cut in between. An `end`
    /// at or after it binds this candidate (R7).
    first_end: Option<Offset>,
    /// Records below this offset were received before, or count as received when listening began.
    frontier: Offset,
    /// The first offset of the log, according to the last answer.
    log_start: Offset,
    /// Where this reading began.
    reading_from: Offset,
    /// How far before the end the first reading begins, at most.
    first_span: Offset,
    /// How far before the end this reading began, at most.
    span: Offset,
    /// The offset below which all records have been handed over by this reading.
    position: Offset,
    /// The earliest time at which the present question can have been asked. An answer to an older question does not count.
    asking_since: Time,
    /// The known end of the log, and when it was known. A smaller answer to a later question shows that the history was cut.
    known_end: (Time, Offset),
    /// The answers that may show that the history was cut.
    signs: CutSigns,
    /// When the reading last handed a record over, or began.
    last_progress: Time,
    /// Since when the reading has been behind the log's known end.
    behind_since: Option<Time>,
    /// When the last record of this election was received, effective or not.
    last_record: Time,
    /// When the last effective one was.
    last_effective: Time,
    /// The longest lease received since listening began.
    longest_lease: Duration,
    /// Since when the view has been vacant, with all records read.
    vacant_since: Option<Time>,
    /// Whether another leader's record was received as effective since listening began.
    has_read_other_leader: bool,
    /// R0: whether all records that were cut from the log's head are older than every lease in it.
    cut_is_harmless: bool,
    /// Whether the history was cut or the topic was created again. Then an empty log proves nothing.
    history_cut: bool,
    /// Whether a batch can't be decoded, so that no record after it can be read.
    undecodable: bool,
    /// `--overlap`.
    overlaps: Overlaps,
}

/// The progress of the reading.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Stage {
    /// R1: the end offset has been asked for.
    Asking,
    /// The end offset has been asked for again, to read from further back.
    AskingFurtherBack,
    /// Records below this offset are still to be read.
    Reading(Offset),
    /// All records up to the requested end have been read.
    CaughtUp,
}

/// A record that was received.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Received {
    /// The law's verdict.
    pub verdict: Verdict,
    /// Whether it was read for the first time; otherwise it is history.
    pub fresh: bool,
}

impl Listener {
    /// A listener that asks for the end offset at `now`, and reads from at most `first_span` offsets before it.
    #[must_use]
    pub fn asking(now: Time, first_span: Offset) -> Self {
        Self {
            journal: Journal::read_from(0, Origin::Middle),
            stage: Stage::Asking,
            began: Time::ZERO,
            first_end: None,
            frontier: 0,
            log_start: 0,
            reading_from: 0,
            first_span,
            span: first_span,
            position: 0,
            asking_since: now,
            known_end: (now, 0),
            signs: CutSigns::default(),
            last_progress: now,
            behind_since: Some(now),
            last_record: Time::ZERO,
            last_effective: Time::ZERO,
            longest_lease: Duration::ZERO,
            vacant_since: None,
            has_read_other_leader: false,
            cut_is_harmless: false,
            history_cut: false,
            undecodable: false,
            overlaps: Overlaps::default(),
        }
    }

    /// Begins R1 again: asks for the end offset, and nothing counts until the answer.
    pub fn ask_anew(&mut self, now: Time) {
        self.stage = Stage::Asking;
        self.signs = CutSigns::default();
        self.asking_since = now;
        self.note_progress(now);
    }

    /// Handles a cut of the history, or a topic that was created again: begins with R1. Earlier records don't apply to the present log, and
    /// an empty log is no vacancy any more.
    pub fn history_cut(&mut self, now: Time) {
        self.history_cut = true;
        self.cut_is_harmless = false;
        self.journal = Journal::read_from(0, Origin::Middle);
        self.known_end = (now, 0);
        self.overlaps.forget();
        self.ask_anew(now);
    }

    /// Handles the judgement of R0. `gaps_are_markers`: the topic only deletes whole segments. Returns whether the journal must be read
    /// again.
    pub(crate) fn topic_judged(&mut self, now: Time, cut_is_harmless: bool, gaps_are_markers: bool) -> bool {
        let is_misread = self.journal.topic_judged(gaps_are_markers);
        self.cut_is_harmless = cut_is_harmless;
        self.note_progress(now);
        is_misread
    }

    /// Handles a batch that can't be decoded.
    pub fn undecodable(&mut self, now: Time) {
        self.undecodable = true;
        self.note_progress(now);
    }

    /// Handles records of other keys at the offsets from `first` to `last`.
    pub fn read_others(&mut self, now: Time, first: Offset, last: Offset) {
        self.count_undecodable_as_missing(first);
        self.journal.read_others(now, first, last);
        self.frontier = self.frontier.max(last + 1);
        self.passed(now, last);
    }

    /// Counts the records before this one that could not be decoded as missing (L4). They were passed, and no answer about the log's end
    /// makes them markers.
    fn count_undecodable_as_missing(&mut self, offset: Offset) {
        if core::mem::take(&mut self.undecodable) {
            self.journal.miss_below(offset);
        }
    }

    /// Notes that a record was handed over.
    fn passed(&mut self, now: Time, offset: Offset) {
        if offset >= self.known_end.1 {
            self.known_end = (now, offset + 1);
        }
        self.reached(now, offset + 1);
    }

    /// Handles a record of the election at `offset`; `own` if this candidate wrote it.
    pub fn read(&mut self, now: Time, offset: Offset, record: Option<&Record>, own: bool) -> Received {
        let fresh = offset >= self.frontier;
        self.count_undecodable_as_missing(offset);
        let verdict = self.journal.read(now, offset, record);
        let body = record.filter(|_| verdict != Verdict::Nonsense).map(|record| &record.body);
        if let Some(lease) = body.and_then(Body::lease) {
            self.longest_lease = self.longest_lease.max(lease);
        }
        if fresh {
            self.frontier = offset + 1;
            self.last_record = now;
            let of_leader = body.is_some_and(|body| match body {
                Body::Beat { .. } | Body::Claim { .. } | Body::Release { .. } => true,
                Body::Hello { .. } | Body::Request { .. } => false,
            });
            if verdict == Verdict::Effective && of_leader {
                self.last_effective = now;
                self.has_read_other_leader |= !own;
            }
        }
        self.note_overlap(now);
        self.passed(now, offset);
        Received { verdict, fresh }
    }

    /// Handles that everything below `next` has been handed over: records, and markers, which are never handed over.
    pub fn reached(&mut self, now: Time, next: Offset) {
        if next > self.position {
            (self.position, self.last_progress) = (next, now);
        }
        if let Stage::Reading(target) = self.stage
            && self.position >= target
        {
            self.stage = Stage::CaughtUp;
        }
        self.note_progress(now);
    }

    /// Whether the history was cut, or the topic created again, since listening began.
    #[must_use]
    pub(crate) const fn was_cut(&self) -> bool {
        self.history_cut
    }

    /// The journal.
    #[must_use]
    pub const fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The offset of the last record that was handed over: a claim's `after`, a beat's `seen`.
    #[must_use]
    pub(crate) fn last(&self) -> Offset {
        self.journal.last()
    }

    /// When the last effective record of a leader was received; at the earliest when listening began.
    #[must_use]
    pub const fn last_effective(&self) -> Time {
        self.last_effective
    }

    /// Whether all records up to the requested end have been read.
    #[must_use]
    pub fn is_caught_up(&self) -> bool {
        self.stage == Stage::CaughtUp
    }

    /// Whether everything that the log holds has been read, from its first offset on.
    #[must_use]
    pub fn has_read_whole_log(&self) -> bool {
        self.is_caught_up() && self.reading_from <= self.log_start
    }

    /// Whether the last question for the end offset has been answered.
    #[must_use]
    pub(crate) fn is_answered(&self) -> bool {
        match self.stage {
            Stage::Asking => false,
            Stage::AskingFurtherBack | Stage::CaughtUp | Stage::Reading(_) => true,
        }
    }

    /// Since when the reading has been behind the log's known end.
    #[must_use]
    pub(crate) const fn behind_since(&self) -> Option<Time> {
        self.behind_since
    }

    /// Since when the reader has delivered no record although the log grows; `None` if there is a reason for it.
    #[must_use]
    pub fn stuck_since(&self) -> Option<Time> {
        let is_reading = match self.stage {
            Stage::Asking | Stage::AskingFurtherBack => false,
            Stage::CaughtUp | Stage::Reading(_) => !self.undecodable,
        };
        self.behind_since.filter(|_| is_reading).map(|since| since.max(self.last_progress))
    }

    /// The end of the log, as far as it is known.
    #[must_use]
    pub(crate) const fn known_end(&self) -> Offset {
        self.known_end.1
    }

    /// Whether another leader's record was received as effective since listening began.
    #[must_use]
    pub(crate) const fn has_read_other_leader(&self) -> bool {
        self.has_read_other_leader
    }

    /// Whether an `end` at `offset` binds this candidate (R7).
    #[must_use]
    pub(crate) fn is_bound_by_end_at(&self, offset: Offset) -> bool {
        self.first_end.is_some_and(|first| offset >= first)
    }

    /// Whether the records show that there is no leader.
    #[must_use]
    pub fn is_vacant(&self) -> bool {
        match self.journal.view() {
            View::Led(_) => false,
            View::NeverLed | View::Released { .. } => true,
            View::Undecided(undecided) => undecided.empty_since_cut_head && self.cut_is_harmless,
        }
    }

    /// Notes since when the view has been vacant, and since when the reading is behind.
    fn note_progress(&mut self, now: Time) {
        let can_tell = self.is_caught_up() && !self.undecodable;
        if can_tell && self.position >= self.known_end.1 {
            self.behind_since = None;
        } else {
            self.behind_since.get_or_insert(now);
        }
        if can_tell && self.is_vacant() {
            self.vacant_since.get_or_insert(now);
        } else {
            self.vacant_since = None;
        }
    }
}
