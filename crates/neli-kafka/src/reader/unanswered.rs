//! Reports partitions that have had no leader, or a leader that does not answer, for long: the elections in these partitions wait.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use neli_proto::time::Time;
use rdkafka::error::RDKafkaErrorCode;

use super::Asker;
use crate::error_class::ErrorClass;

/// While a partition's leader changes, the partition has no leader for less than this.
const CHANGE_TAKES: Duration = Duration::from_secs(1);

/// The partitions that had no answer to the last question.
#[derive(Default)]
pub(super) struct UnansweredPartitions {
    leaderless: Waiting,
    silent: Waiting,
}

/// Partitions that wait for the same thing.
#[derive(Default)]
struct Waiting {
    /// Each partition, with the time of the first question that found it so.
    since: BTreeMap<i32, Time>,
    /// The partitions that a warning was sent about.
    warned_of: BTreeSet<i32>,
}

impl Waiting {
    /// These partitions, and no others, were found so by a question at `asked`. Returns those for which it has lasted.
    fn lasting(&mut self, partitions: &BTreeSet<i32>, asked: Time) -> BTreeSet<i32> {
        self.since.retain(|partition, _| partitions.contains(partition));
        self.warned_of.retain(|partition| partitions.contains(partition));
        for partition in partitions {
            self.since.entry(*partition).or_insert(asked);
        }
        let lasts = |since: &Time| asked.since(*since) >= CHANGE_TAKES;
        self.since.iter().filter(|(_, since)| lasts(since)).map(|(partition, _)| *partition).collect()
    }

    /// Whether a warning about these partitions is due; then it counts as sent.
    fn is_to_be_warned_of(&mut self, partitions: BTreeSet<i32>) -> bool {
        let is_due = !partitions.is_subset(&self.warned_of);
        self.warned_of.extend(partitions);
        is_due
    }
}

impl Asker {
    /// Handles the answers to a question for the partitions `asked_for`. `unanswered` are the partitions without an answer, with the
    /// reason; `are_all` if no other has one. If all of them lack a leader, Kafka counts as down. If only some lack one, or its answer, a warning is sent once.
    pub(super) fn report_unanswered(
        &mut self,
        asked_for: &BTreeSet<i32>,
        asked: Time,
        unanswered: &[(RDKafkaErrorCode, BTreeSet<i32>)],
        are_all: bool,
    ) {
        let of = |classes: &[ErrorClass]| -> BTreeSet<i32> {
            let of_classes = unanswered.iter().filter(|(code, _)| classes.contains(&ErrorClass::from(*code)));
            of_classes.flat_map(|(_, partitions)| partitions).copied().collect()
        };
        let topic = &self.reading.source.elections.topic;
        let UnansweredPartitions { leaderless, silent } = &mut self.unanswered_partitions;
        let lasting = leaderless.lasting(&of(&[ErrorClass::Moving]), asked);
        if !lasting.is_empty() {
            let has = if lasting.len() == 1 { "has" } else { "have" };
            let what =
                format!("topic \"{topic}\": {} {has} no leader; start the brokers that hold it", numbers(&lasting));
            if lasting == *asked_for {
                self.reading.down(what);
            } else if leaderless.is_to_be_warned_of(lasting) {
                self.reading.warn(format!("{what}. The elections there wait until there is one"));
            }
        }
        let lasting = silent.lasting(&of(&[ErrorClass::Connection, ErrorClass::NoBroker]), asked);
        // If no partition has an answer, Kafka is reported as down.
        if !are_all && !lasting.is_empty() {
            let what = numbers(&lasting);
            if silent.is_to_be_warned_of(lasting) {
                let why = self.reading.no_answer(&RDKafkaErrorCode::BrokerTransportFailure.into());
                self.reading.warn(format!(
                    "topic \"{topic}\": no answer from the leader of {what} ({why}). The elections there wait until it answers, or \
                     another broker leads"
                ));
            }
        }
    }
}

/// "partition 1", "partitions 1, 2".
fn numbers(partitions: &BTreeSet<i32>) -> String {
    let plural = if partitions.len() == 1 { "" } else { "s" };
    format!("partition{plural} {}", partitions.iter().map(i32::to_string).collect::<Vec<_>>().join(", "))
}
