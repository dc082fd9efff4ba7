//! Reads the topic of facts for subcommands.

use anyhow::Result;
use neli_kafka::{Access, ElectionId, Elections, ReadRecord};
use neli_proto::fact::TOPIC_SUFFIX;
use neli_proto::record::Offset;
use neli_proto::time::Time;

use crate::command::reading::{Input, Reading};

/// The end of a reading.
pub(super) enum ReadEnd {
    /// Everything up to the requested end was read.
    Complete,
    /// The topic's history was cut meanwhile; the error explains it.
    Cut(anyhow::Error),
    /// The time limit was reached.
    Timeout,
}

/// The election's topic of facts as an election. No election has this group, so records of all keys are delivered.
pub(super) fn topic_of(election: &ElectionId) -> ElectionId {
    let topic = format!("{}{TOPIC_SUFFIX}", election.topic);
    ElectionId { group: String::new(), topic, partition: 0, role: 0, role_name: None }
}

/// Reads the topic from the offset that `from` chooses (its arguments are the log's start and end) up to its present end.
///
/// # Errors
///
/// Kafka refuses permanently.
pub(super) async fn read_to_end(
    access: &Access,
    topic: &ElectionId,
    until: Time,
    from: impl Fn(Offset, Offset) -> Offset,
    mut take: impl FnMut(ReadRecord),
) -> Result<ReadEnd> {
    let mut reading = Reading::start(access, &Elections::from(topic), [0], None)?;
    let mut is_begun = false;
    while !reading.is_at_end() {
        match reading.next(Some(until)).await? {
            Input::Ends { partition, start, end, .. } if !std::mem::replace(&mut is_begun, true) => {
                reading.read_from(partition, from(start, end));
            }
            Input::Record { record, .. } => take(record),
            Input::Cut => return Ok(ReadEnd::Cut(reading.history_cut())),
            Input::Timeout => return Ok(ReadEnd::Timeout),
            Input::CaughtUp | Input::Down(_) | Input::Ends { .. } | Input::Up | Input::Warning(_) => {}
        }
    }
    Ok(ReadEnd::Complete)
}
