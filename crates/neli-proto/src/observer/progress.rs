//! How far a partition was read, and whether its log has changed meanwhile.

use crate::journal::{Journal, Origin};
use crate::listener::{CutSigns, HistoryCut, LogBounds};
use crate::record::Offset;
use crate::time::Time;

/// How far a partition was read.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    /// The end of its log when the reading began.
    end: Offset,
    /// The offset below which all records were read.
    pub(super) next: Offset,
    /// An answer that told of more than was read: when that was asked, and the log's end then.
    ahead: Option<(Time, Offset)>,
    /// When the log last had an end that it was read up to; before that, when its bounds were asked for.
    pub(super) as_of: Time,
    /// What was read when the last answer came, and the end of the log that it told of.
    told: Option<(Offset, Offset)>,
    /// The answers that may show that the history was cut.
    pub(super) signs: CutSigns,
}

impl Progress {
    /// Begins to read a partition with such a log, from an offset on.
    pub(super) fn new(LogBounds { asked, end, .. }: LogBounds, from: Offset) -> Self {
        let ahead = Some((asked, end)).filter(|_| from < end);
        Self { end, next: from, ahead, as_of: asked, told: None, signs: CutSigns::default() }
    }

    /// Handles an answer about the log.
    ///
    /// # Errors
    ///
    /// The history was cut.
    pub(super) fn answered(&mut self, LogBounds { asked, start, end }: LogBounds) -> Result<(), HistoryCut> {
        if self.next < end {
            self.ahead = self.ahead.filter(|(_, known)| *known < end).or(Some((asked, end)));
        } else {
            (self.as_of, self.ahead) = (asked, None);
        }
        self.told = Some((self.next, end));
        self.signs.answered(asked, start..end, self.next)
    }

    /// All records below `next` were read, or are not wanted. Returns whether by this the log has been read up to an end that an answer told of.
    pub(super) fn read_up_to(&mut self, next: Offset) -> bool {
        self.next = self.next.max(next);
        let reached = self.ahead.take_if(|(_, end)| self.next >= *end);
        self.as_of = reached.map_or(self.as_of, |(asked, _)| asked);
        reached.is_some()
    }

    /// Handles that the partition's leader gave no answer. Returns whether the reading, which is incomplete, stands still since the last answer,
    /// or the last time that there was none.
    pub(super) fn unanswered(&mut self) -> bool {
        if self.is_complete() {
            return false;
        }
        // A leader that is back has told of no more yet.
        let told = self.told.replace((self.next, self.next));
        told.is_some_and(|(before, _)| self.next == before)
    }

    /// Where the reading stands, if nothing was read since the last answer, which told of more.
    pub(super) fn stands_at(&self) -> Option<Offset> {
        self.told.is_some_and(|(before, end)| self.next == before && before < end).then_some(self.next)
    }

    /// Notes, by an answer to a question of `asked`, that there is no record behind what was read.
    pub(super) fn has_no_more(&mut self, asked: Time) {
        self.end = self.end.min(self.next);
        (self.ahead, self.as_of) = (None, asked);
    }

    /// Whether the partition was read up to the end that its log had when the reading began.
    pub(super) const fn is_complete(&self) -> bool {
        self.next >= self.end
    }
}

impl LogBounds {
    /// Where its last `span` records begin.
    pub fn last(&self, span: Offset) -> Offset {
        self.start.max(self.end.saturating_sub(span))
    }

    /// The journal of an election in this log that is read from an offset on.
    pub(crate) fn journal_from(&self, now: Time, from: Offset) -> Journal {
        let mut journal = Journal::read_from(from, Origin::of(from, self.start));
        journal.answered(now, self.asked, self.end);
        journal
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::journal::View;

    fn bounds(start: Offset, end: Offset) -> LogBounds {
        LogBounds { asked: Time::ZERO, start, end }
    }

    #[test]
    fn a_reading_is_complete_at_the_end_that_the_log_had_at_first() {
        let mut progress = Progress::new(bounds(0, 5), 0);
        assert!(Progress::new(bounds(7, 7), 7).is_complete());
        assert_eq!(progress.answered(bounds(0, 9)), Ok(()));
        progress.read_up_to(4);
        assert!(!progress.is_complete());
        progress.read_up_to(5);
        progress.read_up_to(2);
        assert!(progress.is_complete());
    }

    #[test]
    fn a_log_is_read_to_its_end_once_it_is_read_as_far_as_an_answer_told() {
        let asked = |second| LogBounds { asked: Time::from_nanos(second), ..bounds(0, 5) };
        let (mut progress, mut times) = (Progress::new(asked(1), 0), Vec::new());
        assert_eq!(progress.answered(asked(2)), Ok(()));
        assert_eq!(progress.answered(LogBounds { end: 9, ..asked(3) }), Ok(()));
        for next in [4, 5, 8, 9] {
            let has_reached_end = progress.read_up_to(next);
            times.push((progress.as_of.as_nanos(), has_reached_end));
        }
        assert_eq!(progress.answered(LogBounds { end: 9, ..asked(4) }), Ok(()));
        times.push((progress.as_of.as_nanos(), false));
        assert_eq!(times, [(1, false), (2, true), (2, false), (2, false), (4, false)]);
    }

    #[test]
    fn an_empty_log_means_as_much_as_was_kept_of_it() {
        let view = |start, from| bounds(start, 100).journal_from(Time::ZERO, from).view().clone();
        assert_eq!(view(0, 0), View::NeverLed);
        assert!(matches!(view(20, 20), View::Undecided(undecided) if undecided.empty_since_cut_head));
        assert!(matches!(view(20, 60), View::Undecided(undecided) if !undecided.empty_since_cut_head));
        assert_eq!((bounds(20, 100).last(10), bounds(20, 100).last(1_000)), (90, 20));
    }
}
