//! What a reader is told: what is read, and from where.

use std::collections::BTreeSet;

use crate::election::Elections;
use crate::kafka::access::Access;

/// What is read, and from where.
#[derive(Clone)]
pub struct Source {
    /// How Kafka is reached.
    pub access: Access,
    /// Whose records.
    pub elections: Elections,
    /// How many partitions the topic has, where an earlier reading has found that: records are told apart by it.
    pub partitions: Option<i32>,
    /// The partitions that are read, unless all are that have a role.
    pub only: Option<BTreeSet<i32>>,
    /// What becomes of a missing topic.
    pub if_missing: IfMissing,
    /// Whether the elections' group will be joined: then a missing right to it is reported before anything is
    /// claimed.
    pub joins_group: bool,
    /// Whether an observer reads: records of other elections are delivered whole, and the refusal of a missing topic
    /// names those that exist.
    pub is_looked_at: bool,
}

/// What becomes of a topic that is missing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IfMissing {
    /// It is waited for, and reported as a trouble meanwhile.
    Await,
    /// It is made.
    Create,
    /// It is a refusal.
    Refuse,
}
