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
    /// When the question was asked whose answer was below a record that was read, if no other answer has come since.
    pub(super) shrunk: Option<Time>,
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
        if log.end < position {
            return self.shrunk(asked);
        }
        self.shrunk = None;
        Ok(())
    }

    /// Handles an answer that the log ends below a record that was read. A broker that has just taken over the partition may report that for a
    /// moment.
    fn shrunk(&mut self, asked: Time) -> Result<(), HistoryCut> {
        lasts(&mut self.shrunk, asked, SHRUNK_FOR)
    }

    /// Handles an answer that there is no such topic.
    ///
    /// # Errors
    ///
    /// The topic is gone, and the history with it.
    pub fn missing(&mut self, asked: Time) -> Result<(), HistoryCut> {
        lasts(&mut self.missing, asked, GONE_AFTER)
    }
}

/// Notes the first of several answers in a row; the history counts as cut if the last was asked for this long after it.
fn lasts(since: &mut Option<Time>, asked: Time, long: Duration) -> Result<(), HistoryCut> {
    if asked.since(*since.get_or_insert(asked)) >= long { Err(HistoryCut) } else { Ok(()) }
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
        let shrunk = self.learn_end(now, asked, end);
        self.signs.missing = None;
        match self.stage {
            Stage::Asking => {
                self.history_cut |= shrunk;
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
                if shrunk {
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
                if shrunk {
                    return self.signs.shrunk(asked).map(|()| None);
                }
                if end >= self.known_end.1 {
                    self.signs.shrunk = None;
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

    /// Notes that the log ends at `end`, as of a time not before `asked`. Returns whether that is below an end that was known when the
    /// question was asked. Two answers to questions that were asked at the same time have no order.
    fn learn_end(&mut self, now: Time, asked: Time, end: Offset) -> bool {
        let (known_at, known) = self.known_end;
        let shrunk = asked >= known_at && end < known;
        let is_news = if shrunk { self.stage == Stage::Asking } else { asked >= known_at || end > known };
        if is_news {
            self.known_end = (now, end);
        }
        shrunk
    }
}
