//! Reads the last records of a partition, of all elections.

use std::sync::Arc;
use std::time::Duration;

use neli::program::{Access, Elections, ReadRecord, clock};
use neli_proto::journal::Origin;
use neli_proto::observer::ReadAt;
use neli_proto::record::Offset;

use super::{Input, Reading, no_answer, read_at};
use crate::exit::{ExitStatus, StartupError};

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
    pub(in crate::command) fn of_all(access: &Access, topic: &str, partition: i32) -> Result<Self, StartupError> {
        let elections = Elections { group: String::new(), topic: topic.to_owned(), roles: 0..1, names: Arc::default() };
        Self::start(access, &elections, partition)
    }
}

/// Passes on the last `span` records up to the log's end. `timeout` is the limit for each of Kafka's answers.
///
/// # Errors
/// As for [`Reading::next`]; or the log was cut meanwhile, or an answer did not come in time.
pub(in crate::command) async fn read_last(
    reading: &mut Reading,
    span: Offset,
    timeout: Duration,
    mut take_in: impl FnMut(ReadAt, ReadRecord, Begin),
) -> Result<Begin, StartupError> {
    let mut bounds = None;
    let mut next = 0;
    let mut trouble = None;
    loop {
        let at = read_at();
        match reading.next(Some(clock::now() + timeout)).await? {
            Input::Ends { start, end, .. } if bounds.is_none() => {
                let from = start.max(end - span);
                bounds = Some((Begin { from, origin: reading.origin(from, start) }, end));
                next = from;
                reading.read_from(from);
            }
            Input::Record(record) => {
                next = record.offset + 1;
                if let Some((begin, _)) = bounds {
                    take_in(at, record, begin);
                }
            }
            Input::CaughtUp(caught_up) => next = caught_up,
            Input::Cut => return Err(reading.history_cut()),
            Input::Down(error) => trouble = Some(error),
            Input::Timeout => {
                return Err(StartupError::with(UNKNOWN, no_answer(timeout, trouble)));
            }
            Input::Ends { .. } | Input::Hello(_) | Input::Up | Input::Warning(_) => {}
        }
        if let Some((begin, _)) = bounds.filter(|(_, end)| next >= *end) {
            return Ok(begin);
        }
    }
}
