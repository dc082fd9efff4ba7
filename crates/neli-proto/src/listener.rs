//! The records that a candidate has read, and when: R1 (listen first), the silence of R2, and reading from further back.
//!
//! The law (`journal.rs`) decides the meaning of the records. This module knows when they were received, and from when on the lead may be
//! claimed. It never claims.

use core::ops::Range;
use core::time::Duration;

use crate::journal::{Journal, Origin, Verdict, View};
use crate::record::{Body, Offset, Record};
use crate::time::Time;
use overlap::Overlaps;

pub use claim_window::{Predecessor, silence};

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

// ---- the log's bounds: the start of a reading (R1), and the answers that show that the history was cut -------------

/// The history counts as cut if a broker reports a log's end below a record that was read, and reports it so again after this time.
const SHRUNK_FOR: Duration = Duration::from_secs(1);
/// A topic that has been missing in all answers for this long is gone. Before that, a broker that has just started may not know it yet.
const GONE_AFTER: Duration = Duration::from_secs(5);

/// The bounds of the log: it contains `start..end`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LogBounds {
    /// The time just before the request.
    pub asked: Time,
    /// The first offset that is still stored.
    pub start: Offset,
    /// The offset of the next record.
    pub end: Offset,
}

/// The log's history was cut, or the log was created anew.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HistoryCut;

/// The answers that may show that a log's history was cut, or its topic made anew.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct CutSigns {
    /// When the question was asked whose answer was below a known end, and that end. No answer has shown since that the log reaches it.
    shrunk: Option<(Time, Offset)>,
    /// Since when answers have said that the topic does not exist.
    missing: Option<Time>,
}

impl CutSigns {
    /// Handles an answer that the log contains `log`, of which everything below `position` was read.
    ///
    /// # Errors
    ///
    /// The history was cut.
    pub fn answered(&mut self, asked: Time, log: Range<Offset>, position: Offset) -> Result<(), HistoryCut> {
        self.missing = None;
        if log.start > position {
            return Err(HistoryCut);
        }
        self.ends(asked, log.end, (log.end < position).then_some(position))
    }

    /// Handles an answer that the log ends at `end`; `denied` is a known end that is above that. A broker that has just taken over the partition may deny
    /// one for a moment. Records that are read meanwhile show nothing: in a topic that was made anew, those of the leader itself may follow.
    fn ends(&mut self, asked: Time, end: Offset, denied: Option<Offset>) -> Result<(), HistoryCut> {
        self.shrunk.take_if(|(_, denied)| end >= *denied);
        let Some(denied) = denied else { return Ok(()) };
        let (since, _) = *self.shrunk.get_or_insert((asked, denied));
        lasted(since, asked, SHRUNK_FOR)
    }

    /// Handles an answer that there is no such topic.
    ///
    /// # Errors
    ///
    /// The topic is gone, and the history with it.
    pub fn missing(&mut self, asked: Time) -> Result<(), HistoryCut> {
        lasted(*self.missing.get_or_insert(asked), asked, GONE_AFTER)
    }
}

/// The history counts as cut if the last of several answers in a row was asked for this long after the first.
fn lasted(since: Time, asked: Time, long: Duration) -> Result<(), HistoryCut> {
    if asked.since(since) >= long { Err(HistoryCut) } else { Ok(()) }
}

impl Listener {
    /// Handles a broker's answer about the log's bounds. Returns the offset to read from, if a reading is wanted.
    ///
    /// # Errors
    ///
    /// The log begins behind the records that were read, or ends before an end that was reported earlier: its history was cut.
    pub fn answered(&mut self, now: Time, bounds: LogBounds) -> Result<Option<Offset>, HistoryCut> {
        let LogBounds { asked, start, end } = bounds;
        if matches!(self.stage, Stage::Asking | Stage::AskingFurtherBack) && asked < self.asking_since {
            return Ok(None);
        }
        let denied = self.learn_end(now, asked, end);
        self.topic_found();
        match self.stage {
            Stage::Asking => {
                self.history_cut |= denied.is_some();
                self.began = now;
                // In a history that was cut, or a topic that was created again, offsets may begin again below the first end.
                self.first_end = Some(self.first_end.map_or(end, |first| first.min(end)));
                self.frontier = end;
                self.last_record = now;
                self.last_effective = now;
                self.longest_lease = Duration::ZERO;
                self.has_read_other_leader = false;
                self.span = self.first_span;
            }
            Stage::AskingFurtherBack => {
                if denied.is_some() {
                    return Err(HistoryCut);
                }
                // If this reading shows that a record was effective, that record was received no later than the last record.
                self.last_effective = self.last_record;
                self.span = self.span.saturating_mul(2);
            }
            Stage::CaughtUp | Stage::Reading(_) => {
                if start > self.position {
                    return Err(HistoryCut);
                }
                self.signs.ends(asked, end, denied)?;
                if denied.is_some() {
                    return Ok(None);
                }
                self.journal.answered(now, asked, end);
                self.note_progress(now);
                return Ok(None);
            }
        }
        // A record that was appended since the last reading is not skipped, because in a later reading it would count as received long ago.
        let from = start.max((end - self.span).min(self.frontier));
        let origin = if self.history_cut || from > start {
            Origin::Middle
        } else if start > 0 {
            Origin::CutHead
        } else {
            Origin::Beginning
        };
        self.journal = self.journal.read_again_from(from, origin);
        self.journal.answered(now, asked, end);
        self.log_start = start;
        self.reading_from = from;
        (self.position, self.last_progress) = (from, now);
        self.undecodable = false;
        self.vacant_since = None;
        self.stage = Stage::Reading(end.max(self.frontier));
        self.reached(now, from);
        Ok(Some(from))
    }

    /// Handles a broker's answer that there is no such topic.
    ///
    /// # Errors
    ///
    /// The topic is gone, and the history with it.
    pub fn topic_missing(&mut self, asked: Time) -> Result<(), HistoryCut> {
        self.signs.missing(asked)
    }

    /// Handles a broker's answer that the topic exists.
    pub(crate) const fn topic_found(&mut self) {
        self.signs.missing = None;
    }

    /// Whether the last answer was that there is no such topic.
    pub(crate) const fn is_topic_missing(&self) -> bool {
        self.signs.missing.is_some()
    }

    /// Notes that the log ends at `end`, as of a time not before `asked`. Returns the end that was known when the question was asked, if that
    /// is above this one. Two answers to questions that were asked at the same time have no order.
    fn learn_end(&mut self, now: Time, asked: Time, end: Offset) -> Option<Offset> {
        let (known_at, known) = self.known_end;
        let denied = (asked >= known_at && end < known).then_some(known);
        let is_news = if denied.is_some() { self.stage == Stage::Asking } else { asked >= known_at || end > known };
        if is_news {
            self.known_end = (now, end);
        }
        denied
    }
}
