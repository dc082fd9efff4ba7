//! When a reading of some partitions is complete: each was read up to the end that its log had when the reading began.

use alloc::collections::BTreeMap;

use crate::journal::{Journal, Origin};
use crate::listener::{CutSigns, HistoryCut, LogBounds};
use crate::record::Offset;
use crate::time::Time;

/// How far the partitions of a reading were read.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    by_partition: BTreeMap<i32, Read>,
}

/// How far a partition was read.
#[derive(Clone, Debug)]
struct Read {
    /// The end of its log when the reading began.
    end: Offset,
    /// The offset below which all records were read.
    next: Offset,
    /// An answer that told of more than was read: when that was asked, and the log's end then.
    ahead: Option<(Time, Offset)>,
    /// When the log last had an end that it was read up to; before that, when its bounds were asked for.
    as_of: Time,
    /// What was read when the last answer came, and the end of the log that it told of.
    told: Option<(Offset, Offset)>,
    /// The answers that may show that the history was cut.
    signs: CutSigns,
}

impl Progress {
    /// Begins to read a partition with such a log, from an offset on.
    pub(super) fn begin(&mut self, partition: i32, bounds: LogBounds, from: Offset) {
        let LogBounds { asked, end, .. } = bounds;
        let ahead = Some((asked, end)).filter(|_| from < end);
        let read = Read { end, next: from, ahead, as_of: asked, told: None, signs: CutSigns::default() };
        self.by_partition.insert(partition, read);
    }

    /// Handles an answer about a partition's log.
    ///
    /// # Errors
    ///
    /// The history was cut.
    pub(super) fn answered(&mut self, partition: i32, bounds: LogBounds) -> Result<(), HistoryCut> {
        let Some(read) = self.by_partition.get_mut(&partition) else { return Ok(()) };
        let LogBounds { asked, start, end } = bounds;
        if read.next < end {
            read.ahead = read.ahead.filter(|(_, known)| *known < end).or(Some((asked, end)));
        } else {
            (read.as_of, read.ahead) = (asked, None);
        }
        read.told = Some((read.next, end));
        read.signs.answered(asked, start..end, read.next)
    }

    /// Handles the answer to a question of `asked` that there is no such topic.
    ///
    /// # Errors
    ///
    /// The topic is gone.
    pub(super) fn missing(&mut self, partition: i32, asked: Time) -> Result<(), HistoryCut> {
        self.by_partition.get_mut(&partition).map_or(Ok(()), |read| read.signs.missing(asked))
    }

    /// All records of a partition below `next` were read, or are not wanted. Returns when the log had an end that it has been read up to by this.
    pub(super) fn read_up_to(&mut self, partition: i32, next: Offset) -> Option<Time> {
        let read = self.by_partition.get_mut(&partition)?;
        read.next = read.next.max(next);
        let (asked, _) = read.ahead.take_if(|(_, end)| read.next >= *end)?;
        read.as_of = asked;
        Some(asked)
    }

    /// Handles that the leader of a partition gave no answer. Returns whether its reading, which is incomplete, stands still since the last answer,
    /// or the last time that there was none.
    pub(super) fn unanswered(&mut self, partition: i32) -> bool {
        let Some(read) = self.by_partition.get_mut(&partition).filter(|read| !read.is_complete()) else { return false };
        // A leader that is back has told of no more yet.
        let told = read.told.replace((read.next, read.next));
        told.is_some_and(|(before, _)| read.next == before)
    }

    /// Where a partition's reading stands, if nothing was read since the last answer, which told of more.
    pub(super) fn stands_at(&self, partition: i32) -> Option<Offset> {
        let Read { next, told, .. } = self.by_partition.get(&partition)?;
        told.is_some_and(|(before, end)| *next == before && before < end).then_some(*next)
    }

    /// Notes, by an answer to a question of `asked`, that there is no record behind what was read of a partition.
    pub(super) fn has_no_more(&mut self, partition: i32, asked: Time) {
        if let Some(read) = self.by_partition.get_mut(&partition) {
            read.end = read.end.min(read.next);
            (read.ahead, read.as_of) = (None, asked);
        }
    }

    /// When a partition's log last had an end that it was read up to.
    pub(super) fn read_to_end(&self, partition: i32) -> Option<Time> {
        self.by_partition.get(&partition).map(|read| read.as_of)
    }

    /// The offset below which all records of a partition were read.
    pub(super) fn next(&self, partition: i32) -> Option<Offset> {
        self.by_partition.get(&partition).map(|read| read.next)
    }

    /// Whether all partitions were read up to the ends that they had when the reading began.
    pub(super) fn is_complete(&self) -> bool {
        self.by_partition.values().all(Read::is_complete)
    }

    /// The same of one partition.
    pub(super) fn is_complete_in(&self, partition: i32) -> bool {
        self.by_partition.get(&partition).is_some_and(Read::is_complete)
    }
}

impl Read {
    const fn is_complete(&self) -> bool {
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
    fn a_reading_is_complete_at_the_ends_that_the_logs_had_at_first() {
        let mut progress = Progress::default();
        progress.begin(0, bounds(0, 5), 0);
        progress.begin(1, bounds(7, 7), 7);
        assert_eq!(progress.answered(0, bounds(0, 9)), Ok(()));
        assert_eq!(progress.answered(2, bounds(0, 9)), Ok(()));
        progress.read_up_to(0, 4);
        assert!(!progress.is_complete());
        progress.read_up_to(0, 5);
        progress.read_up_to(0, 2);
        assert!(progress.is_complete());
    }

    #[test]
    fn a_log_is_read_to_its_end_once_it_is_read_as_far_as_an_answer_told() {
        let asked = |second| LogBounds { asked: Time::from_nanos(second), ..bounds(0, 5) };
        let (mut progress, mut times) = (Progress::default(), Vec::new());
        progress.begin(0, asked(1), 0);
        assert_eq!(progress.answered(0, asked(2)), Ok(()));
        assert_eq!(progress.answered(0, LogBounds { end: 9, ..asked(3) }), Ok(()));
        for next in [4, 5, 8, 9] {
            progress.read_up_to(0, next);
            times.push(progress.read_to_end(0));
        }
        assert_eq!(progress.answered(0, LogBounds { end: 9, ..asked(4) }), Ok(()));
        times.push(progress.read_to_end(0));
        let nanos: Vec<Option<u64>> = times.into_iter().map(|time| time.map(Time::as_nanos)).collect();
        assert_eq!(nanos, [Some(1), Some(2), Some(2), Some(2), Some(4)]);
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
