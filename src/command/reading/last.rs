//! Reads the last records of a partition, of all elections.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use neli_kafka::{Access, Elections, ReadRecord, clock};
use neli_proto::journal::Origin;
use neli_proto::leadership::ReadAt;
use neli_proto::record::Offset;

use super::{Input, Reading, no_answer, origin, read_at};
use crate::exit::{ExitStatus, with_status};

/// Kafka does not answer in time.
const UNKNOWN: ExitStatus = ExitStatus::Answer(4);

/// The start of a reading.
#[derive(Clone, Copy)]
pub(in crate::command) struct Begin {
    pub(in crate::command) from: Offset,
    /// The meaning of an empty log from that offset on.
    pub(in crate::command) origin: Origin,
}

impl Reading {
    /// Begins to read this partition for all elections: no election has this group's name.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start).
    pub(in crate::command) fn of_all(access: &Access, topic: &str, partition: i32) -> Result<Self> {
        Self::start(access, &of_nobody(topic, 0..1), [partition], None)
    }

    /// Like [`of_all`](Self::of_all), for partition 0, which has the hellos; also counts the topic's [`partitions`](Self::partitions).
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start).
    pub(in crate::command) fn of_all_roles(access: &Access, topic: &str) -> Result<Self> {
        Self::start(access, &of_nobody(topic, 0..2), [Elections::PARTITION_OF_HELLOS], None)
    }

    /// The number of the topic's partitions, if several roles are read; otherwise 1.
    pub(in crate::command) fn partitions(&self) -> u32 {
        self.partitions.map_or(1, i32::unsigned_abs)
    }
}

/// Elections whose group has no name, so that no record is theirs.
fn of_nobody(topic: &str, roles: Range<u32>) -> Elections {
    Elections { group: String::new(), topic: topic.to_owned(), roles, names: Arc::default() }
}

/// Passes on the last `span` records up to the end of the log of the one partition that is read. `timeout` is the limit for each of Kafka's answers.
///
/// # Errors
/// As for [`Reading::next`]; or the log was cut meanwhile, or an answer did not come in time.
pub(in crate::command) async fn read_last(
    reading: &mut Reading,
    span: Offset,
    timeout: Duration,
    mut take_in: impl FnMut(ReadAt, ReadRecord, Begin),
) -> Result<Begin> {
    let (mut begin, mut trouble) = (None, None);
    loop {
        let at = read_at();
        match reading.next(Some(clock::now() + timeout)).await? {
            Input::Ends { partition, start, end, .. } if begin.is_none() => {
                let from = start.max(end - span);
                begin = Some(Begin { from, origin: origin(from, start) });
                reading.read_from(partition, from);
            }
            Input::Record { record, .. } => {
                if let Some(begin) = begin {
                    take_in(at, record, begin);
                }
            }
            Input::Cut => return Err(reading.history_cut()),
            Input::Down(error) => trouble = Some(error),
            Input::Timeout => {
                return Err(with_status(UNKNOWN, no_answer(timeout, trouble)));
            }
            Input::CaughtUp | Input::Ends { .. } | Input::Up | Input::Warning(_) => {}
        }
        if let Some(begin) = begin.filter(|_| reading.is_at_end()) {
            return Ok(begin);
        }
    }
}
