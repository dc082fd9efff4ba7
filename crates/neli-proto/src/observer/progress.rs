//! When a reading of some partitions is complete: each was read up to the end that its log had when the reading began.

use alloc::collections::BTreeMap;
use core::mem;

use crate::journal::{Journal, Origin};
use crate::listener::{CutSigns, HistoryCut, LogBounds};
use crate::record::Offset;
use crate::time::Time;

/// How far the partitions of a reading were read.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    by_partition: BTreeMap<i32, Read>,
}

/// How far a partition was read.
#[derive(Clone, Debug, Default)]
struct Read {
    /// The bounds of its log when the reading began, once they are known.
    bounds: Option<LogBounds>,
    /// The offset below which all records were read, once it is read.
    next: Option<Offset>,
    /// An answer that told of more than was read: when that was asked, and the log's end then.
    ahead: Option<(Time, Offset)>,
    /// When the log last had an end that it was read up to.
    as_of: Option<Time>,
    /// What was read when the last answer came, and the end of the log that it told of.
    told: Option<(Offset, Offset)>,
    /// The answers that may show that the history was cut.
    signs: CutSigns,
}

impl Progress {
    /// A reading of these partitions that has just begun.
    pub fn new(partitions: impl IntoIterator<Item = i32>) -> Self {
        Self { by_partition: partitions.into_iter().map(|partition| (partition, Read::default())).collect() }
    }

    /// Begins to read another partition with such a log, from an offset on.
    pub(super) fn begin(&mut self, partition: i32, bounds: LogBounds, from: Offset) {
        let LogBounds { asked, end, .. } = bounds;
        let (ahead, as_of) = (Some((asked, end)).filter(|_| from < end), Some(asked));
        let read = Read { bounds: Some(bounds), next: Some(from), ahead, as_of, ..Read::default() };
        self.by_partition.insert(partition, read);
    }

    /// Handles an answer about a partition's log. The first one says how far it is to be read.
    ///
    /// # Errors
    ///
    /// The history was cut.
    pub fn answered(&mut self, partition: i32, bounds: LogBounds) -> Result<(), HistoryCut> {
        let Some(read) = self.by_partition.get_mut(&partition) else { return Ok(()) };
        read.bounds.get_or_insert(bounds);
        let LogBounds { asked, start, end } = bounds;
        if read.next < Some(end) {
            read.ahead = read.ahead.filter(|(_, known)| *known < end).or(Some((asked, end)));
        } else {
            (read.as_of, read.ahead) = (Some(asked), None);
        }
        read.told = read.next.map(|next| (next, end));
        read.next.map_or(Ok(()), |next| read.signs.answered(asked, start..end, next))
    }

    /// Handles the answer to a question of `asked` that there is no such topic.
    ///
    /// # Errors
    ///
    /// The topic is gone.
    pub fn missing(&mut self, partition: i32, asked: Time) -> Result<(), HistoryCut> {
        self.by_partition.get_mut(&partition).map_or(Ok(()), |read| read.signs.missing(asked))
    }

    /// All records of a partition below `next` were read, or are not wanted. Returns when the log had an end that it has been read up to by this.
    pub fn read_up_to(&mut self, partition: i32, next: Offset) -> Option<Time> {
        let read = self.by_partition.get_mut(&partition)?;
        read.next = read.next.max(Some(next));
        let (asked, _) = read.ahead.take_if(|(_, end)| read.next >= Some(*end))?;
        read.as_of = Some(asked);
        read.as_of
    }

    /// Handles that the leader of a partition gave no answer. Returns whether its reading, which is incomplete, stands still since the last answer,
    /// or the last time that there was none.
    pub(super) fn unanswered(&mut self, partition: i32) -> bool {
        let Some(read) = self.by_partition.get_mut(&partition).filter(|read| !read.is_complete()) else { return false };
        // A leader that is back has told of no more yet.
        let told = mem::replace(&mut read.told, read.next.map(|next| (next, next)));
        told.is_some_and(|(before, _)| read.next == Some(before))
    }

    /// Where a partition's reading stands, if nothing was read since the last answer, which told of more.
    pub(super) fn stands_at(&self, partition: i32) -> Option<Offset> {
        let Read { next, told, .. } = self.by_partition.get(&partition)?;
        next.filter(|next| told.is_some_and(|(before, end)| *next == before && before < end))
    }

    /// Notes, by an answer to a question of `asked`, that there is no record behind what was read of a partition.
    pub(super) fn has_no_more(&mut self, partition: i32, asked: Time) {
        if let Some(Read { bounds: Some(bounds), next: Some(next), ahead, as_of, .. }) =
            self.by_partition.get_mut(&partition)
        {
            bounds.end = bounds.end.min(*next);
            (*ahead, *as_of) = (None, Some(asked));
        }
    }

    /// When a partition's log last had an end that it was read up to.
    pub fn read_to_end(&self, partition: i32) -> Option<Time> {
        self.by_partition.get(&partition)?.as_of
    }

    /// The bounds of all logs when the reading began; `None` until all are known. Nothing is read before: a hello in one partition may be
    /// about an election in another.
    pub fn bounds(&self) -> Option<BTreeMap<i32, LogBounds>> {
        self.by_partition.iter().map(|(partition, read)| Some((*partition, read.bounds?))).collect()
    }

    /// The offset below which all records of a partition were read.
    pub(super) fn next(&self, partition: i32) -> Option<Offset> {
        self.by_partition.get(&partition)?.next
    }

    /// Whether all partitions were read up to the ends that they had when the reading began.
    pub fn is_complete(&self) -> bool {
        self.by_partition.values().all(Read::is_complete)
    }

    /// The same of one partition.
    pub(super) fn is_complete_in(&self, partition: i32) -> bool {
        self.by_partition.get(&partition).is_some_and(Read::is_complete)
    }
}

impl Read {
    fn is_complete(&self) -> bool {
        self.bounds.is_some_and(|bounds| self.next.is_some_and(|next| next >= bounds.end))
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
        let mut progress = Progress::new([0, 1]);
        assert_eq!(progress.answered(0, bounds(0, 5)), Ok(()));
        assert_eq!(progress.bounds(), None, "the other end is not known");
        assert_eq!(progress.answered(1, bounds(7, 7)), Ok(()));
        progress.read_up_to(1, 7);
        assert_eq!(progress.answered(0, bounds(0, 9)), Ok(()));
        assert_eq!(progress.answered(2, bounds(0, 9)), Ok(()));
        assert_eq!(progress.bounds(), Some([(0, bounds(0, 5)), (1, bounds(7, 7))].into()));
        progress.read_up_to(0, 4);
        assert!(!progress.is_complete());
        progress.read_up_to(0, 5);
        progress.read_up_to(0, 2);
        assert!(progress.is_complete());
    }

    #[test]
    fn a_log_is_read_to_its_end_once_it_is_read_as_far_as_an_answer_told() {
        let asked = |second| LogBounds { asked: Time::from_nanos(second), ..bounds(0, 5) };
        let mut progress = Progress::new([0]);
        let mut times = Vec::new();
        assert_eq!(progress.answered(0, asked(1)), Ok(()));
        times.push(progress.read_to_end(0));
        assert_eq!(progress.answered(0, LogBounds { end: 9, ..asked(2) }), Ok(()));
        for next in [4, 5, 8, 9] {
            progress.read_up_to(0, next);
            times.push(progress.read_to_end(0));
        }
        assert_eq!(progress.answered(0, LogBounds { end: 9, ..asked(3) }), Ok(()));
        times.push(progress.read_to_end(0));
        let nanos: Vec<Option<u64>> = times.into_iter().map(|time| time.map(Time::as_nanos)).collect();
        assert_eq!(nanos, [None, None, Some(1), Some(1), Some(1), Some(3)]);
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
