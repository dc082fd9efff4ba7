//! The progress of a reading, and of an election that follows it.

use std::time::Duration;

use neli_proto::time::Time;

/// librdkafka may need this long to notice a dead connection and to continue reading.
pub(super) const READER_RECOVERS: Duration = Duration::from_secs(5);

/// The place of an election in a reading.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadingPlace {
    /// The reading that the election follows.
    pub(super) reading: Option<u32>,
    /// The election has named the offset from which it reads.
    pub(super) has_begun: bool,
    /// The election has got every record below this offset.
    pub(super) passed_below: i64,
}

/// The stage of a reading of a partition.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    /// No election has named an offset yet.
    Asking,
    /// The log was cut, or nobody follows the reading here any more: nothing more is read.
    Over,
    /// It reads records.
    Reading,
}

/// The progress of a reading of a partition.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) stage: Stage,
    /// The question where the log begins and ends was answered.
    pub(super) is_answered: bool,
    /// Every record below this offset was handed over.
    pub(super) position: i64,
    /// The end of the log by the last answer.
    pub(super) known_end: i64,
    /// When a record was last handed over, or the client that reads was replaced.
    pub(super) handed_over_at: Time,
}

impl Progress {
    /// The progress of a reading that has not begun.
    pub(super) const fn asking(now: Time) -> Self {
        Self { stage: Stage::Asking, is_answered: false, position: 0, known_end: 0, handed_over_at: now }
    }

    /// Whether no record was handed over for a long time, although the log is known to have more.
    pub(super) fn is_stuck(&self, now: Time) -> bool {
        self.stage == Stage::Reading
            && self.known_end > self.position
            && now.since(self.handed_over_at) >= READER_RECOVERS
    }
}
