//! The records that a candidate has read, and when: R1 (listen first), the silence of R2, and reading from further back.
//!
//! The law (`journal.rs`) decides the meaning of the records. This module knows when they were received, and from when on the lead may be
//! claimed. It never claims.

use core::ops::Range;
use core::time::Duration;

use crate::journal::{EarlierJob, Journal, Origin, Verdict, View};
use crate::record::{Body, Offset, Record, Why};
use crate::time::Time;
use crate::timings::LONGEST_LEASE;
use crate::topic::GONE_AFTER;

/// R1: how far before the end a reading begins, in offsets.
pub const FIRST_SPAN: Offset = 10_000;

/// The reading of the journal, with the times at which records were received.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Listener {
    journal: Journal,
    stage: Stage,
    log: Log,
    reading: Reading,
    heard: Heard,
    /// The end offset of the process's first listening, or the lower one of a later listening, if the history was cut in between. An `end`
    /// at or after it binds this candidate (R7).
    first_end: Option<Offset>,
    /// Records below this offset were received before, or count as received when listening began.
    frontier: Offset,
    /// The answers that may show that the history was cut.
    signs: CutSigns,
    /// Since when the view has been vacant, with all records read.
    vacant_since: Option<Time>,
    /// R0: whether all records that were cut from the log's head are older than every lease in it.
    cut_is_harmless: bool,
    /// Whether the history was cut or the topic was created again. Then an empty log proves nothing.
    pub(crate) history_cut: bool,
    /// `--overlap`: whether this candidate uses it.
    pub(crate) overlaps: bool,
    /// The term that was overlapped last, and when the claim that overlaps it was received.
    last_overlap: Option<(Offset, Time)>,
    /// When the leader began to yield.
    yields_since: Option<Time>,
}

/// The log as brokers have described it, and the question that is open.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Log {
    /// Its first offset, according to the last answer.
    start: Offset,
    /// Its known end, and when that was known. A smaller answer to a later question shows that the history was cut.
    known_end: (Time, Offset),
    /// The earliest time at which the present question can have been asked. An answer to an older question does not count.
    asking_since: Time,
}

impl Log {
    /// Notes that the log ends at `end`, as of a time not before `asked`. Returns the end that was known when the question was asked, if that
    /// is above this one; then this one counts as known only if `listening_begins`. Two answers to questions that were asked at the same time
    /// have no order.
    fn learn_end(&mut self, now: Time, asked: Time, end: Offset, listening_begins: bool) -> Option<Offset> {
        let (known_at, known) = self.known_end;
        let denied = (asked >= known_at && end < known).then_some(known);
        let is_news = if denied.is_some() { listening_begins } else { asked >= known_at || end > known };
        if is_news {
            self.known_end = (now, end);
        }
        denied
    }

    /// Notes that a record was handed over.
    fn has_record(&mut self, now: Time, offset: Offset) {
        if offset >= self.known_end.1 {
            self.known_end = (now, offset + 1);
        }
    }
}

/// One reading of the log.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Reading {
    /// Where it began.
    from: Offset,
    /// How far before the end the first reading begins, at most.
    first_span: Offset,
    /// How far before the end this one began, at most.
    span: Offset,
    /// The offset below which it has handed over all records.
    position: Offset,
    /// When it last handed a record over, or began.
    last_progress: Time,
    /// Since when it has been behind the log's known end.
    behind_since: Option<Time>,
    /// Whether a batch can't be decoded, so that no record after it can be read.
    undecodable: bool,
}

impl Reading {
    const fn awaited(now: Time, first_span: Offset) -> Self {
        let span = first_span;
        Self { from: 0, first_span, span, position: 0, last_progress: now, behind_since: Some(now), undecodable: false }
    }

    const fn begin(&mut self, now: Time, from: Offset) {
        (self.from, self.position, self.last_progress, self.undecodable) = (from, from, now, false);
    }

    fn reached(&mut self, now: Time, next: Offset) {
        if next > self.position {
            (self.position, self.last_progress) = (next, now);
        }
    }
}

/// What was received since listening began.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Heard {
    /// When that was: when the answer with the end offset arrived.
    began: Time,
    /// When the last record of this election was received, effective or not.
    last_record: Time,
    /// When the last effective one was.
    last_effective: Time,
    longest_lease: Duration,
    /// Whether a record of another leader was received as effective.
    of_another_leader: bool,
}

impl Heard {
    const fn nothing_since(began: Time) -> Self {
        let longest_lease = Duration::ZERO;
        Self { began, last_record: began, last_effective: began, longest_lease, of_another_leader: false }
    }
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

impl Listener {
    /// A listener that asks for the end offset at `now`, and reads from at most `first_span` offsets before it.
    pub fn asking(now: Time, first_span: Offset) -> Self {
        Self {
            journal: Journal::read_from(0, Origin::Middle),
            stage: Stage::Asking,
            log: Log { start: 0, known_end: (now, 0), asking_since: now },
            reading: Reading::awaited(now, first_span),
            heard: Heard::nothing_since(Time::ZERO),
            first_end: None,
            frontier: 0,
            signs: CutSigns::default(),
            vacant_since: None,
            cut_is_harmless: false,
            history_cut: false,
            overlaps: false,
            last_overlap: None,
            yields_since: None,
        }
    }

    /// Begins R1 again: asks for the end offset, and nothing counts until the answer.
    pub fn ask_anew(&mut self, now: Time) {
        self.stage = Stage::Asking;
        self.signs = CutSigns::default();
        self.log.asking_since = now;
        self.note_progress(now);
    }

    /// Handles a cut of the history, or a topic that was created again: begins with R1. Earlier records don't apply to the present log, and
    /// an empty log is no vacancy any more.
    pub fn history_cut(&mut self, now: Time) {
        self.history_cut = true;
        self.cut_is_harmless = false;
        self.journal = Journal::read_from(0, Origin::Middle);
        self.log.known_end = (now, 0);
        // Later terms may begin from offset 0 again.
        (self.last_overlap, self.yields_since) = (None, None);
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
        self.reading.undecodable = true;
        self.note_progress(now);
    }

    /// Whether the record at this offset, if it is the next one, is read for the first time; otherwise it is history.
    pub(crate) const fn is_news(&self, offset: Offset) -> bool {
        offset >= self.frontier
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
        if core::mem::take(&mut self.reading.undecodable) {
            self.journal.miss_below(offset);
        }
    }

    /// Notes that a record was handed over.
    fn passed(&mut self, now: Time, offset: Offset) {
        self.log.has_record(now, offset);
        self.reached(now, offset + 1);
    }

    /// Handles a record of the election at `offset`; `own` if this candidate wrote it. Returns the law's verdict.
    pub fn read(&mut self, now: Time, offset: Offset, record: Option<&Record>, own: bool) -> Verdict {
        self.count_undecodable_as_missing(offset);
        let verdict = self.journal.read(now, offset, record);
        let body = record.filter(|_| verdict != Verdict::Nonsense).map(|record| &record.body);
        if let Some(lease) = body.and_then(Body::lease) {
            self.heard.longest_lease = self.heard.longest_lease.max(lease);
        }
        if self.is_news(offset) {
            self.frontier = offset + 1;
            self.heard.last_record = now;
            let of_operator = matches!(body, Some(Body::Request { .. }));
            if verdict == Verdict::Effective && !of_operator {
                self.heard.last_effective = now;
                self.heard.of_another_leader |= !own;
            }
        }
        self.note_overlap(now);
        self.passed(now, offset);
        verdict
    }

    /// Handles that everything below `next` has been handed over: records, and markers, which are never handed over.
    pub fn reached(&mut self, now: Time, next: Offset) {
        self.reading.reached(now, next);
        if let Stage::Reading(target) = self.stage
            && self.reading.position >= target
        {
            self.stage = Stage::CaughtUp;
        }
        self.note_progress(now);
    }

    /// The journal.
    pub const fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The offset of the last record that was handed over: a claim's `after`, a beat's `seen`.
    pub(crate) fn last(&self) -> Offset {
        self.journal.last()
    }

    /// When the last effective record of a leader was received; at the earliest when listening began.
    pub const fn last_effective(&self) -> Time {
        self.heard.last_effective
    }

    /// Whether all records up to the requested end have been read.
    pub fn is_caught_up(&self) -> bool {
        self.stage == Stage::CaughtUp
    }

    /// Whether everything that the log holds has been read, from its first offset on.
    pub fn has_read_whole_log(&self) -> bool {
        self.is_caught_up() && self.reading.from <= self.log.start
    }

    /// Whether the last question for the end offset has been answered.
    pub(crate) fn is_answered(&self) -> bool {
        self.stage != Stage::Asking
    }

    /// Since when the reading has been behind the log's known end.
    pub(crate) const fn behind_since(&self) -> Option<Time> {
        self.reading.behind_since
    }

    /// Since when the reading has delivered nothing, behind the log's known end, and no earlier leader can hold a lease. If a batch can't be
    /// decoded: since when it is behind.
    pub(crate) fn stalled_since(&self) -> Option<Time> {
        let since = self.reading.behind_since?;
        let delivered = self.reading.last_progress.max(self.any_lease_is_over_at());
        Some(if self.reading.undecodable { since } else { since.max(delivered) })
    }

    /// Since when the reader has delivered no record although the log grows; `None` if there is a reason for it.
    pub fn stuck_since(&self) -> Option<Time> {
        let is_asking = matches!(self.stage, Stage::Asking | Stage::AskingFurtherBack);
        let is_reading = !is_asking && !self.reading.undecodable;
        self.reading.behind_since.filter(|_| is_reading).map(|since| since.max(self.reading.last_progress))
    }

    /// The end of the log, as far as it is known.
    pub(crate) const fn known_end(&self) -> Offset {
        self.log.known_end.1
    }

    /// Whether another leader's record was received as effective since listening began.
    pub(crate) const fn has_read_other_leader(&self) -> bool {
        self.heard.of_another_leader
    }

    /// Whether an `end` at `offset` binds this candidate (R7).
    pub(crate) fn is_bound_by_end_at(&self, offset: Offset) -> bool {
        self.first_end.is_some_and(|first| offset >= first)
    }

    /// Whether the records show that there is no leader.
    pub(crate) fn is_vacant(&self) -> bool {
        match self.journal.view() {
            View::Led(_) => false,
            View::NeverLed | View::Released { .. } => true,
            View::Undecided(undecided) => undecided.empty_since_cut_head && self.cut_is_harmless,
        }
    }

    /// Notes since when the view has been vacant, and since when the reading is behind.
    fn note_progress(&mut self, now: Time) {
        let can_tell = self.is_caught_up() && !self.reading.undecodable;
        if can_tell && self.reading.position >= self.log.known_end.1 {
            self.reading.behind_since = None;
        } else {
            self.reading.behind_since.get_or_insert(now);
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
    pub(crate) fn missing(&mut self, asked: Time) -> Result<(), HistoryCut> {
        lasted(*self.missing.get_or_insert(asked), asked, GONE_AFTER)
    }
}

/// The history counts as cut if the last of several answers in a row was asked for this long after the first.
fn lasted(since: Time, asked: Time, long: Duration) -> Result<(), HistoryCut> {
    if asked.since(since) >= long { Err(HistoryCut) } else { Ok(()) }
}

impl Listener {
    /// Whether records were deleted that were appended after the last reading, but within the longest silence: they may be a leader's.
    fn recent_records_are_gone(&self, now: Time, start: Offset) -> bool {
        let is_recent = |since| now < since + silence(LONGEST_LEASE);
        self.first_end.is_some() && start > self.reading.position && self.reading.behind_since.is_some_and(is_recent)
    }

    /// Handles a broker's answer about the log's bounds. Returns the offset to read from, if a reading is wanted.
    ///
    /// # Errors
    ///
    /// The log begins behind the records that were read, or ends before an end that was reported earlier: its history was cut.
    pub fn answered(&mut self, now: Time, bounds: LogBounds) -> Result<Option<Offset>, HistoryCut> {
        let LogBounds { asked, start, mut end } = bounds;
        if matches!(self.stage, Stage::Asking | Stage::AskingFurtherBack) && asked < self.log.asking_since {
            return Ok(None);
        }
        let denied = self.log.learn_end(now, asked, end, self.stage == Stage::Asking);
        self.topic_found();
        match self.stage {
            Stage::Asking => {
                self.history_cut |= denied.is_some() || self.recent_records_are_gone(now, start);
                self.heard = Heard::nothing_since(now);
                // In a history that was cut, or a topic that was created again, offsets may begin again below the first end.
                self.first_end = Some(self.first_end.map_or(end, |first| first.min(end)));
                self.frontier = end;
                self.reading.span = self.reading.first_span;
            }
            Stage::AskingFurtherBack => {
                // One answer is no proof of a cut. The log is read up to the end that is known.
                self.signs.ends(asked, end, denied)?;
                end = denied.unwrap_or(end);
                // If this reading shows that a record was effective, that record was received no later than the last record.
                self.heard.last_effective = self.heard.last_record;
                self.reading.span = self.reading.span.saturating_mul(2);
            }
            Stage::CaughtUp | Stage::Reading(_) => {
                if start > self.reading.position {
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
        let from = start.max((end - self.reading.span).min(self.frontier));
        let origin = if self.history_cut { Origin::Middle } else { Origin::of(from, start) };
        self.journal = self.journal.read_again_from(from, origin);
        if denied.is_none() {
            self.journal.answered(now, asked, end);
        }
        self.log.start = start;
        self.reading.begin(now, from);
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
}

// ---- from when on a vacancy or a silence may be claimed (R2), and whether there is time to read further back before ---

/// How long before the end of a silence the topic's identity may be confirmed, so that no claim waits for the answer. If the topic is
/// created again after that confirmation, a candidate that takes it for the old one may claim in it.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(2);

/// From when on a vacancy or a silence may be claimed, before any delay.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ClaimWindow {
    /// From when on the view is vacant, or counts as silent.
    pub since: Time,
    /// How the last leader's term ended.
    pub predecessor: Predecessor,
    /// For a silence: the topic's identity must have been confirmed at this time or later. A candidate that did not notice that the topic
    /// was created again would take the new leader's beats for void.
    pub confirmed_from: Option<Time>,
    /// `--overlap`: the term of the leader that yields, whose job continues.
    pub over: Option<Offset>,
}

/// The end of the last leader's term, as far as it decides which candidate may claim first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Predecessor {
    /// It has released the term, or no leader is known.
    Gone,
    /// A guard wrote its release because the supervisor died.
    Died,
    /// It stopped writing.
    Silent,
}

impl Listener {
    /// Whether to ask for the bounds again and read from further back (R2). This is so if all records were read and don't decide the view,
    /// older ones exist, and there is time. The reading stops until the answer arrives.
    #[must_use]
    pub fn ask_further_back(&mut self, now: Time) -> bool {
        let wanted = self.stage == Stage::CaughtUp
            && matches!(self.journal.view(), View::Undecided(_))
            && !self.is_vacant()
            && self.reading.from > self.log.start
            && !self.reading.undecodable
            && self.has_time_to_read(now);
        if wanted {
            self.stage = Stage::AskingFurtherBack;
            self.log.asking_since = now;
            self.note_progress(now);
        }
        wanted
    }

    /// Whether a reading from twice as far back will probably end before the silence does. It takes as long as all readings before; if it
    /// ended later, it would only delay the claim.
    fn has_time_to_read(&self, now: Time) -> bool {
        let claim_from = self.claim_window().map(|claim_window| claim_window.since);
        claim_from.is_none_or(|since| now + now.since(self.heard.began) < since)
    }

    /// How much longer nothing may be claimed because the records don't show who leads; `None` if they show it.
    pub(crate) fn undecided_for(&self, now: Time) -> Option<Duration> {
        // After a cut no earlier record shows it, so that this is known before the new ones are read.
        let is_known = self.is_caught_up() || self.history_cut && self.is_answered();
        if !is_known
            || self.reading.undecodable
            || self.is_vacant()
            || !matches!(self.journal.view(), View::Undecided(_))
        {
            return None;
        }
        Some(self.any_lease_is_over_at().since(now)).filter(|left| !left.is_zero())
    }

    /// When the lease of whichever leader is over, unless a record comes before.
    fn any_lease_is_over_at(&self) -> Time {
        let longest_allowed = self.heard.began + silence(LONGEST_LEASE);
        let longest_known = self.heard.last_record + silence(self.heard.longest_lease);
        longest_allowed.max(longest_known)
    }

    /// From when on a candidate may claim (R2), before any delay; `None` while that is unknown.
    pub(crate) fn claim_window(&self) -> Option<ClaimWindow> {
        if self.stage != Stage::CaughtUp || self.reading.undecodable {
            return None;
        }
        if let Some(since) = self.vacant_since {
            let predecessor = match self.journal.view() {
                View::Released { why: Some(why), .. } if **why == *Why::SupervisorDied.as_str() => Predecessor::Died,
                View::Led(_) | View::NeverLed | View::Released { .. } | View::Undecided(_) => Predecessor::Gone,
            };
            let since = self.after_earlier_job(since);
            return Some(ClaimWindow { since, predecessor, confirmed_from: None, over: None });
        }
        if let Some(window) = self.overlap_window() {
            return Some(window);
        }
        let (predecessor, silent_since, since) = match self.journal.view() {
            View::Led(term) => {
                let since = self.after_earlier_job(self.heard.last_effective + silence(term.lease));
                (Predecessor::Silent, self.heard.last_effective, since)
            }
            View::NeverLed | View::Released { .. } | View::Undecided(_) => {
                (Predecessor::Gone, self.heard.last_record, self.any_lease_is_over_at())
            }
        };
        let confirmed_from = since - (since.since(silent_since) / 2).min(CONFIRMED_WITHIN);
        Some(ClaimWindow { since, predecessor, confirmed_from: Some(confirmed_from), over: None })
    }
}

/// How long no record of a leader with this lease must have been read before the leader counts as silent. The leader's clock may run 1 %
/// slower (R2, R8).
pub fn silence(lease: Duration) -> Duration {
    lease + lease / 100 + Duration::from_millis(10)
}

// ---- --overlap: from when on another candidate may claim beside a leader that yields -------------------------------

impl Listener {
    /// Notes the change by a record.
    fn note_overlap(&mut self, now: Time) {
        if let Some(term) = self.journal.earlier_job().term()
            && self.last_overlap.is_none_or(|(last, _)| last != term)
        {
            self.last_overlap = Some((term, now));
        }
        if self.journal.led().is_some_and(|term| term.yields) {
            self.yields_since.get_or_insert(now);
        } else {
            self.yields_since = None;
        }
    }

    /// When the lease of the job before the current one is over, so that no process of it can be left (O4). `None` if the records show
    /// that none is left.
    pub(crate) fn earlier_job_gone_at(&self) -> Option<Time> {
        match self.journal.earlier_job() {
            EarlierJob::Gone => None,
            EarlierJob::Overlapped { lease, .. } => {
                let received = self.last_overlap.map_or(self.heard.last_record, |(_, received)| received);
                Some(received + silence(*lease))
            }
            EarlierJob::Unknown => Some(self.heard.began + silence(LONGEST_LEASE)),
        }
    }

    /// When a candidate may claim if an overlapped job may be alive (O5): only after it, because otherwise three jobs could run.
    fn after_earlier_job(&self, since: Time) -> Time {
        let is_known = matches!(self.journal.earlier_job(), EarlierJob::Overlapped { .. });
        let is_decided = !matches!(self.journal.view(), View::Undecided(_));
        let gone_at = self.earlier_job_gone_at().filter(|_| is_decided && (is_known || self.overlaps));
        gone_at.map_or(since, |gone_at| since.max(gone_at))
    }

    /// From when on another candidate may claim beside a leader that yields (O2), if all records were read.
    fn overlap_window(&self) -> Option<ClaimWindow> {
        let term = self.journal.led()?;
        let yields_since = self.yields_since.filter(|_| self.overlaps)?;
        let since = self.after_earlier_job(yields_since);
        // The topic's identity must be confirmed as for a silence, because the leader continues meanwhile and is not asked.
        let confirmed_from = yields_since.max(since - CONFIRMED_WITHIN);
        let (predecessor, over) = (Predecessor::Gone, Some(term.offset));
        Some(ClaimWindow { since, predecessor, confirmed_from: Some(confirmed_from), over })
    }
}
