//! Reports partitions that have had no leader for long: the elections in these partitions wait until a broker leads them again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use neli_proto::time::Time;
use rdkafka::error::RDKafkaErrorCode;

use super::Asker;
use crate::kafka::error_class::ErrorClass;
use crate::kafka::event::KafkaEvent;

/// While a partition's leader changes, the partition has no leader for less than this.
const CHANGE_TAKES: Duration = Duration::from_secs(1);

/// The partitions that have no leader.
#[derive(Default)]
pub(super) struct Leaderless {
    /// Each partition, with the time of the first question that found no leader.
    since: BTreeMap<i32, Time>,
    /// The partitions that a warning was sent about.
    warned_of: BTreeSet<i32>,
}

impl Asker {
    /// Handles the answers to a question for the partitions `asked_for`. `unanswered` are the partitions without an answer, with the
    /// reason. If all of them lack a leader, Kafka counts as down. If only some lack one, a warning is sent once.
    pub(super) fn report_leaderless(
        &mut self,
        asked_for: &BTreeSet<i32>,
        asked: Time,
        unanswered: &[(RDKafkaErrorCode, BTreeSet<i32>)],
    ) {
        let is_moving = |code: &RDKafkaErrorCode| ErrorClass::from(*code) == ErrorClass::Moving;
        let moving: BTreeSet<i32> = unanswered
            .iter()
            .filter(|(code, _)| is_moving(code))
            .flat_map(|(_, partitions)| partitions)
            .copied()
            .collect();
        let Leaderless { since, warned_of } = &mut self.leaderless;
        since.retain(|partition, _| moving.contains(partition));
        warned_of.retain(|partition| moving.contains(partition));
        for partition in &moving {
            since.entry(*partition).or_insert(asked);
        }
        let lasts = |since: &Time| asked.since(*since) >= CHANGE_TAKES;
        let lasting: BTreeSet<i32> = since.iter().filter(|(_, since)| lasts(since)).map(|(it, _)| *it).collect();
        if lasting.is_empty() {
            return;
        }
        let numbers = lasting.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
        let (plural, has) = if lasting.len() == 1 { ("", "has") } else { ("s", "have") };
        let topic = &self.reading.source.elections.topic;
        let what =
            format!("topic \"{topic}\": partition{plural} {numbers} {has} no leader; start the brokers that hold it");
        if lasting == *asked_for {
            self.reading.down(what);
        } else if !lasting.is_subset(warned_of) {
            warned_of.extend(lasting);
            self.reading.send(KafkaEvent::Warning(format!("{what} Their elections wait until there is one")));
        }
    }
}
