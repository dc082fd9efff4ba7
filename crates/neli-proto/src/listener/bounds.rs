//! The log's bounds: the start of a reading (R1), and the answers that show that the history was cut or the topic made anew. Whoever asks a
//! broker only reports its answers, each with the time of the question; what they show is decided here.

use core::ops::Range;
use core::time::Duration;

use super::{Listener, Stage};
use crate::journal::Origin;
use crate::record::Offset;
use crate::time::Time;

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
