//! What a consumer group can't do with the number of the topic's partitions.

/// The topic has more partitions than the group uses.
pub(crate) const UNUSED_PARTITIONS: &str = "the topic has more partitions than this group uses, and Kafka moves them between members when one joins: the \
     candidate that the group chooses claims first when nobody leads, and a leader that loses the partition keeps the \
     lead; to let the group end a lead, use a --topic with one partition";

/// The topic has another number of partitions than there are roles.
pub(crate) fn of_roles_without_group(topic: &str, partitions: u32, roles: u32) -> String {
    format!(
        "topic {topic:?} has {partitions} partitions for {roles} roles: the group could not assign each candidate a fair \
         share, so the roles are spread as with --elect log"
    )
}
