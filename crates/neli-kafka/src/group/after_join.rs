//! The question about the topic that a member asks after each join. A thread of its own asks it, because the thread that polls the member
//! must answer the group meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::metadata::{Metadata, MetadataPartition, MetadataTopic};

use super::{GroupContext, GroupEvent};
use crate::answer_limit::AnswerLimit;
use crate::context::explain;

/// The time limit of the first question, and the least limit of any other.
const ANSWER: Duration = Duration::from_millis(500);
/// The time between two questions while there is no answer.
const RETRY: Duration = Duration::from_millis(200);

/// Asks for the topic's metadata until there is an answer, unless the previous question is still in flight.
///
/// librdkafka joins a group at most once a second. A successor that joined just before a vacancy would wait for the rest of that second
/// (450 ms of a handover, measured). Any answer about a topic's metadata resets that clock (`rd_kafka_parse_Metadata`). The answer also
/// shows whether the topic has partitions that no role uses.
pub(super) fn ask_for_topic(consumer: &Arc<BaseConsumer<GroupContext>>) {
    let context = consumer.context();
    if context.asks_for_topic.swap(true, Ordering::Relaxed) {
        return;
    }
    let asked = Arc::clone(consumer);
    let asking = thread::Builder::new().name("neli-group-topic".to_owned()).spawn(move || {
        ask(&asked);
        asked.context().asks_for_topic.store(false, Ordering::Relaxed);
    });
    if asking.is_err() {
        // Without this question the next join only comes a little later.
        context.asks_for_topic.store(false, Ordering::Relaxed);
    }
}

fn ask(consumer: &BaseConsumer<GroupContext>) {
    let context = consumer.context();
    let mut answer_limit = AnswerLimit::new(ANSWER, ANSWER);
    while !context.is_over() {
        let limit = answer_limit.ask();
        match consumer.fetch_metadata(Some(&context.elections.topic), limit) {
            Ok(metadata) => {
                context.context.rebootstrap().answered();
                return context.note_partitions(partitions(&metadata));
            }
            Err(error) => {
                answer_limit.was_too_short();
                context.context.rebootstrap().unanswered(consumer.client());
                context.report_unless_leaving(GroupEvent::Debug(format!(
                    "the group's member knows nothing of the topic after {} ms ({}): asking again, for {} ms",
                    limit.as_millis(),
                    explain(&error),
                    answer_limit.limit().as_millis()
                )));
                thread::park_timeout(RETRY);
            }
        }
    }
}

fn partitions(metadata: &Metadata) -> impl Iterator<Item = i32> {
    metadata.topics().iter().flat_map(MetadataTopic::partitions).map(MetadataPartition::id)
}
