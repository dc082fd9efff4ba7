//! Finds out which topics exist, as far as this user may see them.

use std::time::Duration;

use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::metadata::MetadataTopic;

use super::may_not_describe;
use crate::access::Access;
use crate::context::{KafkaContext, explain};
use crate::error_class::{ErrorClass, code_of, plain};
use crate::text::ClientError;

/// The topics that this user may see, by name, with their partitions. Waits `timeout` for an answer.
///
/// # Errors
///
/// One line: there is no answer, or librdkafka refuses the client's configuration.
pub fn topics(access: &Access, timeout: Duration) -> Result<Vec<(String, i32)>, ClientError> {
    described(access, None, timeout, |topic| {
        (topic.name().to_owned(), i32::try_from(topic.partitions().len()).unwrap_or(i32::MAX))
    })
}

/// A broker's answer about a topic's existence.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum TopicExistence {
    /// It exists.
    Exists,
    /// This user may not see whether it exists: one line that explains it.
    Forbidden(String),
    /// It does not exist.
    Missing,
}

/// Whether this topic exists. Waits `timeout` for an answer.
///
/// # Errors
///
/// As for [`topics`].
pub fn has_topic(access: &Access, topic: &str, timeout: Duration) -> Result<TopicExistence, ClientError> {
    let found = described(access, Some(topic), timeout, |found| {
        let class = found.error().map(|error| ErrorClass::from(RDKafkaErrorCode::from(error)));
        match class {
            Some(ErrorClass::TopicForbidden) => TopicExistence::Forbidden(may_not_describe(topic)),
            _ if found.partitions().is_empty() => TopicExistence::Missing,
            _ => TopicExistence::Exists,
        }
    })?;
    Ok(found.into_iter().next().unwrap_or(TopicExistence::Missing))
}

/// The time limit of a poll for events; a poll with a limit of zero returns none.
const A_MOMENT: Duration = Duration::from_millis(1);

/// The results of `of` for this topic, or for each topic, in order.
fn described<T: Ord>(
    access: &Access,
    topic: Option<&str>,
    timeout: Duration,
    of: impl Fn(&MetadataTopic) -> T,
) -> Result<Vec<T>, ClientError> {
    let context = KafkaContext::new(access);
    let consumer: BaseConsumer<KafkaContext> = BaseConsumer::from_config_and_context(&access.reader(), context.clone())
        .map_err(|error| ClientError(explain(&error)))?;
    let metadata = consumer.fetch_metadata(topic, timeout).map_err(|error| {
        // The reason for a failed connection is in the client's events.
        while consumer.poll(A_MOMENT).is_some() {}
        let plain = || plain(code_of(&error));
        ClientError(context.first_trouble().unwrap_or_else(|| format!("{}: {}", access.bootstrap, plain())))
    })?;
    access.admit(consumer.client()).map_err(ClientError)?;
    let mut described: Vec<T> = metadata.topics().iter().map(of).collect();
    described.sort();
    Ok(described)
}
