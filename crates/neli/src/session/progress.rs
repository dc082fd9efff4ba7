//! How far a reading is, and what an election that follows it has been given.

use std::time::Duration;

use neli_proto::time::Time;

/// librdkafka may need this long to notice a dead connection and go on reading.
pub(super) const READER_RECOVERS: Duration = Duration::from_secs(5);

/// Where an election is.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadingPlace {
    /// The reading that it follows.
    pub(super) reading: Option<u32>,
    /// It has named the offset from which it reads.
    pub(super) has_begun: bool,
    /// It was given everything below this offset.
    pub(super) passed_below: i64,
}

/// What a reading of a partition does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    /// It has not named an offset yet.
    Asking,
    /// Its history is cut: nothing more is read.
    Over,
    /// Records come.
    Reading,
}

/// How far a reading of a partition is.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) stage: Stage,
    /// Where the log begins and ends has been answered.
    pub(super) is_answered: bool,
    /// Everything below was handed over.
    pub(super) position: i64,
    /// The end of the log by the last answer.
    pub(super) known_end: i64,
    /// When something was handed over last.
    pub(super) handed_over_at: Time,
}

impl Progress {
    /// None yet.
    pub(super) const fn asking(now: Time) -> Self {
        Self { stage: Stage::Asking, is_answered: false, position: 0, known_end: 0, handed_over_at: now }
    }

    /// Whether nothing has been handed over for long, although the log is known to go on.
    pub(super) fn is_stuck(&self, now: Time) -> bool {
        self.stage == Stage::Reading
            && self.known_end > self.position
            && now.since(self.handed_over_at) >= READER_RECOVERS
    }
}
