//! Partitions that have no leader for long are reported: what stands there waits until a broker leads it again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use neli_proto::time::Time;
use rdkafka::error::RDKafkaErrorCode;

use super::Asker;
use crate::kafka::error_class::ErrorClass;
use crate::kafka::event::KafkaEvent;

/// A partition whose leader changes has none for less than this.
const CHANGE_TAKES: Duration = Duration::from_secs(1);

/// The partitions that have no leader.
#[derive(Default)]
pub(super) struct Leaderless {
    /// Each with the question since which it has none.
    since: BTreeMap<i32, Time>,
    /// Those that were warned of.
    warned_of: BTreeSet<i32>,
}

impl Asker {
    /// These partitions were asked for; those that had no answer are given with the reason. Where none had one, nobody answers; where only
    /// some had none, that is a warning, once.
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
