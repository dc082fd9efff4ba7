//! The log's bounds: the start of a reading (R1), and the answers that show that the history was cut.

use core::time::Duration;

use super::{Listener, Stage};
use crate::journal::Origin;
use crate::record::Offset;
use crate::time::Time;

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

impl Listener {
    /// Handles a broker's answer about the log's bounds. Returns the offset to read from, if a reading is wanted.
    ///
    /// # Errors
    ///
    /// The log ends before an end that was reported earlier: its history was cut.
    pub fn answered(&mut self, now: Time, bounds: LogBounds) -> Result<Option<Offset>, HistoryCut> {
        let LogBounds { asked, start, end } = bounds;
        if matches!(self.stage, Stage::Asking | Stage::AskingFurtherBack) && asked < self.asking_since {
            return Ok(None);
        }
        let shrunk = self.learn_end(now, asked, end);
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
                if shrunk {
                    // A broker that has just taken over the partition may report a lower end for a moment, so it is asked again.
                    let first = *self.shrunk.get_or_insert(asked);
                    return if asked.since(first) >= SHRUNK_FOR { Err(HistoryCut) } else { Ok(None) };
                }
                if end >= self.known_end.1 {
                    self.shrunk = None;
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
