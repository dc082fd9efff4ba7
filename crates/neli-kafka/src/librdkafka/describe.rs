//! A broker's description of a topic or of a group, and this user's rights to it.

use std::ffi::CString;
use std::slice;
use std::time::Duration;

use neli_proto::topic::{TopicId, TopicIdentity};
use rdkafka::bindings::{
    rd_kafka_AclOperation_t, rd_kafka_ConsumerGroupDescription_authorized_operations,
    rd_kafka_ConsumerGroupDescription_error, rd_kafka_ConsumerGroupDescription_member_count,
    rd_kafka_ConsumerGroupDescription_partition_assignor, rd_kafka_DescribeConsumerGroups,
    rd_kafka_DescribeConsumerGroups_result_groups, rd_kafka_DescribeTopics, rd_kafka_DescribeTopics_result_topics,
    rd_kafka_TopicCollection_destroy, rd_kafka_TopicCollection_of_topic_names,
    rd_kafka_TopicDescription_authorized_operations, rd_kafka_TopicDescription_error,
    rd_kafka_TopicDescription_partitions, rd_kafka_TopicDescription_t, rd_kafka_TopicDescription_topic_id,
    rd_kafka_Uuid_least_significant_bits, rd_kafka_Uuid_most_significant_bits, rd_kafka_error_code,
    rd_kafka_event_DescribeConsumerGroups_result, rd_kafka_event_DescribeTopics_result,
};
use rdkafka::client::{Client, ClientContext};
use rdkafka::error::{IsError, RDKafkaErrorCode};
use rdkafka::types::RDKafkaAdminOp;

use super::{AdminCall, Owned, Variation, all_parts, ask, first_part, parts, succeeded, text};
use crate::error_class::ErrorClass;

/// A user's rights to a topic or a group, as a broker with ACLs reports them. Only these operations matter here.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(missing_docs, reason = "Kafka's own names")]
pub struct Rights {
    pub describe_configs: bool,
    pub read: bool,
    pub write: bool,
}

/// A consumer group, as its coordinator describes it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GroupDescription {
    /// This user's rights to it; none if the broker does not report them.
    pub rights: Option<Rights>,
    /// The number of its members.
    pub members: usize,
    /// The name of its partition assignor; empty if it has none.
    pub assignor: String,
}

/// A topic, as one broker describes it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TopicDescription {
    /// The topic that exists under the name.
    pub identity: TopicIdentity,
    /// The number of its partitions; 0 if it is missing.
    pub partitions: i32,
    /// This user's rights to it; none if it is missing, or the broker does not report them.
    pub rights: Option<Rights>,
}

impl TopicDescription {
    const MISSING: Self = Self { identity: TopicIdentity::Missing, partitions: 0, rights: None };
}

/// The id of the topic that has this name now (`DescribeTopics`), as the broker with this id answers. Waits `timeout` for the answer.
///
/// The caller should name a broker: otherwise librdkafka asks the broker that it takes for the controller. With `KRaft` that is
/// any broker, perhaps one that has just died.
///
/// # Errors
///
/// librdkafka's code: no answer in time, or an error in the answer.
pub fn topic_identity(
    client: &Client<impl ClientContext>,
    topic: &str,
    broker: Option<i32>,
    timeout: Duration,
) -> Result<TopicIdentity, RDKafkaErrorCode> {
    describe_topic(client, topic, broker, timeout, Variation::None).map(|description| description.identity)
}

/// The topic's description, of which [`topic_identity`] returns a part.
///
/// # Errors
///
/// As for [`topic_identity`].
pub(crate) fn describe_topic(
    client: &Client<impl ClientContext>,
    topic: &str,
    broker: Option<i32>,
    timeout: Duration,
    variation: Variation,
) -> Result<TopicDescription, RDKafkaErrorCode> {
    let described = describe_topics(client, &[topic], broker, timeout, variation)?;
    described.into_iter().next().unwrap_or(Err(RDKafkaErrorCode::Fail))
}

/// The descriptions of several topics, in their order, by one question.
///
/// # Errors
///
/// As for [`topic_identity`].
pub(crate) fn describe_topics(
    client: &Client<impl ClientContext>,
    topics: &[&str],
    broker: Option<i32>,
    timeout: Duration,
    variation: Variation,
) -> Result<Vec<Result<TopicDescription, RDKafkaErrorCode>>, RDKafkaErrorCode> {
    let names = topics.iter().map(|topic| CString::new(*topic)).collect::<Result<Vec<CString>, _>>();
    let names = names.map_err(|_| RDKafkaErrorCode::InvalidTopic)?;
    let mut pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
    // SAFETY: `pointers` contains as many strings as its length, and they end in a zero byte; librdkafka copies them.
    let topics = unsafe { rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len()) };
    let topics = Owned::new(topics, rd_kafka_TopicCollection_destroy)?;
    let operation = RDKafkaAdminOp::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS;
    let call = AdminCall { operation, broker, variation, timeout };
    let event = ask(client, call, |handle, options, queue| {
        // SAFETY: all four arguments are alive throughout the call, and librdkafka copies what it needs of them.
        unsafe { rd_kafka_DescribeTopics(handle, topics.as_ptr(), options, queue) };
    })?;
    // SAFETY: both functions are for an answer to this call.
    let descriptions =
        unsafe { all_parts(&event, rd_kafka_event_DescribeTopics_result, rd_kafka_DescribeTopics_result_topics) }?;
    // SAFETY: the descriptions belong to the event, which is alive.
    Ok(descriptions.iter().map(|description| described(unsafe { description.as_ref() })).collect())
}

/// A broker's description of a topic.
fn described(description: Option<&rd_kafka_TopicDescription_t>) -> Result<TopicDescription, RDKafkaErrorCode> {
    let description = description.ok_or(RDKafkaErrorCode::Fail)?;
    // SAFETY: the description is alive; its error and its id are parts of it.
    let (error, id) = unsafe {
        (
            rd_kafka_error_code(rd_kafka_TopicDescription_error(description)),
            rd_kafka_TopicDescription_topic_id(description),
        )
    };
    if error.is_error() {
        let code = RDKafkaErrorCode::from(error);
        let is_missing = ErrorClass::from(code) == ErrorClass::UnknownTopic;
        return if is_missing { Ok(TopicDescription::MISSING) } else { Err(code) };
    }
    // SAFETY: the function is for a topic's description, which owns the operations.
    let rights = unsafe { rights(description, rd_kafka_TopicDescription_authorized_operations) };
    // SAFETY: the function is for a topic's description, which owns the partitions.
    let partitions = unsafe { parts(description, rd_kafka_TopicDescription_partitions) }.len();
    // SAFETY: the id is part of the description.
    let (high, low) = unsafe { (rd_kafka_Uuid_most_significant_bits(id), rd_kafka_Uuid_least_significant_bits(id)) };
    // A broker before 2.8 has no ids; librdkafka reports zero then.
    let identity =
        if (high, low) == (0, 0) { TopicIdentity::Unnamed } else { TopicIdentity::Id(TopicId { high, low }) };
    Ok(TopicDescription { identity, partitions: i32::try_from(partitions).unwrap_or(i32::MAX), rights })
}

/// A consumer group, as its coordinator describes it (`DescribeConsumerGroups`); the group need not exist. Waits `timeout` for the answer.
/// If there was none, the client must be dropped within an hour.
///
/// # Errors
///
/// librdkafka's code: no answer in time, no right to it, or an error in the answer.
pub(crate) fn describe_group(
    client: &Client<impl ClientContext>,
    group: &str,
    timeout: Duration,
) -> Result<GroupDescription, RDKafkaErrorCode> {
    let name = CString::new(group).map_err(|_| RDKafkaErrorCode::InvalidGroupId)?;
    let operation = RDKafkaAdminOp::RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS;
    let call = AdminCall { operation, broker: None, variation: Variation::IncludeRights, timeout };
    let event = ask(client, call, |handle, options, queue| {
        let mut names = [name.as_ptr()];
        // SAFETY: all arguments are alive throughout the call, and librdkafka copies what it needs of them.
        unsafe { rd_kafka_DescribeConsumerGroups(handle, names.as_mut_ptr(), names.len(), options, queue) };
    })?;
    // SAFETY: both functions are for an answer to this call; the description is alive, and the values that are taken from it are parts of
    // it.
    unsafe {
        let groups = rd_kafka_DescribeConsumerGroups_result_groups;
        let description = first_part(&event, rd_kafka_event_DescribeConsumerGroups_result, groups)?;
        succeeded(rd_kafka_error_code(rd_kafka_ConsumerGroupDescription_error(description)))?;
        Ok(GroupDescription {
            rights: rights(description, rd_kafka_ConsumerGroupDescription_authorized_operations),
            members: rd_kafka_ConsumerGroupDescription_member_count(description),
            assignor: text(rd_kafka_ConsumerGroupDescription_partition_assignor(description)).unwrap_or_default(),
        })
    }
}

/// This user's rights to the described object.
///
/// # Safety
///
/// `operations_of` returns null, or an array with as many operations as the count that it writes. The array lives as long as the
/// description.
unsafe fn rights<T>(
    description: &T,
    operations_of: unsafe extern "C" fn(*const T, *mut usize) -> *const rd_kafka_AclOperation_t,
) -> Option<Rights> {
    use rd_kafka_AclOperation_t::{
        RD_KAFKA_ACL_OPERATION_DESCRIBE, RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS, RD_KAFKA_ACL_OPERATION_READ,
        RD_KAFKA_ACL_OPERATION_WRITE,
    };
    let mut count = 0;
    // SAFETY: both pointers are valid, and the caller promises the rest about the array.
    let operations = unsafe {
        let operations = operations_of(description, &raw mut count);
        if operations.is_null() {
            return None;
        }
        slice::from_raw_parts(operations, count)
    };
    // A list without the right that the answer itself needs is no list of rights: some servers that are not Kafka leave it empty.
    operations.contains(&RD_KAFKA_ACL_OPERATION_DESCRIBE).then(|| Rights {
        describe_configs: operations.contains(&RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS),
        read: operations.contains(&RD_KAFKA_ACL_OPERATION_READ),
        write: operations.contains(&RD_KAFKA_ACL_OPERATION_WRITE),
    })
}
