//! The log's bounds: where a reading begins (R1), and what shows that the history was cut.

use core::time::Duration;

use super::{Listener, Stage};
use crate::journal::Origin;
use crate::record::Offset;
use crate::time::Time;

/// A log that is said to end before what was read is cut when that is said again so much later.
const SHRUNK_FOR: Duration = Duration::from_secs(1);

/// What the log holds: `start..end`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LogBounds {
    /// Just before the asking.
    pub asked: Time,
    /// The first offset that is still there.
    pub start: Offset,
    /// The offset of the next record.
    pub end: Offset,
    /// An empty log from offset 0 is a new one: no broker may have lost it.
    pub trusted: bool,
}

/// The log's history was cut or made anew.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HistoryCut;

impl Listener {
    /// Takes in the answer to a question about the log's bounds. Gives the offset to read from, when one is wanted.
    ///
    /// # Errors
    ///
    /// The log ends before what was answered earlier: its history was cut.
    pub fn answered(&mut self, now: Time, bounds: LogBounds) -> Result<Option<Offset>, HistoryCut> {
        let LogBounds { asked, start, end, trusted } = bounds;
        if matches!(self.stage, Stage::Asking | Stage::AskingFurtherBack) && asked < self.asking_since {
            return Ok(None);
        }
        let shrunk = self.learn_end(now, asked, end);
        match self.stage {
            Stage::Asking => {
                if shrunk {
                    self.history_cut = true;
                    self.first_end = self.first_end.map(|first| first.min(end));
                }
                self.began = now;
                self.first_end.get_or_insert(end);
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
                // What this reading will show to have been effective was received at the last record's receipt at the
                // latest.
                self.last_effective = self.last_record;
                self.span = self.span.saturating_mul(2);
            }
            Stage::CaughtUp | Stage::Reading(_) => {
                if shrunk {
                    // Some brokers say less for a moment after another took over the partition: they are asked again.
                    let first = *self.shrunk.get_or_insert(asked);
                    return if asked.since(first) >= SHRUNK_FOR { Err(HistoryCut) } else { Ok(None) };
                }
                if end >= self.known_end.1 {
                    self.shrunk = None;
                }
                self.journal.answered(now, asked, end);
                self.settle(now);
                return Ok(None);
            }
        }
        // What was appended since the last reading is not skipped: read later, it would count as received long ago.
        let from = start.max((end - self.span).min(self.frontier));
        let origin = match () {
            () if self.history_cut || from > start => Origin::Middle,
            () if start > 0 => Origin::CutHead,
            () if trusted => Origin::Beginning,
            () => Origin::Middle,
        };
        self.distrusted = from == 0 && origin == Origin::Middle && !self.history_cut;
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

    /// Takes in that the log ends at `end`, as of a moment not before `asked`; whether it ends before what was known
    /// to be there when the question was asked. Two questions that were under way at once tell no order.
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
