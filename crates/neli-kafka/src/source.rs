//! The input of a reader: what to read, and from which cluster.

use std::collections::BTreeSet;

use crate::access::Access;
use crate::election::Elections;

/// What to read, and from which cluster.
#[derive(Clone)]
pub struct Source {
    /// The access to Kafka.
    pub access: Access,
    /// The elections whose records are read.
    pub elections: Elections,
    /// The topic's number of partitions, if an earlier reading has found it: it determines which election a record belongs to.
    pub partitions: Option<i32>,
    /// The partitions to read; `None` means all that have a role.
    pub only: Option<BTreeSet<i32>>,
    /// What to do if the topic is missing.
    pub if_missing: IfMissing,
    /// Whether an observer reads. Then each record of the topic is delivered with its key and value, and the refusal of a missing topic names
    /// the topics that exist.
    pub is_for_display: bool,
}

/// What to do if a topic is missing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IfMissing {
    /// Waits for it. Meanwhile the missing topic is reported as the reason why Kafka is down.
    Await,
    /// Creates it.
    Create,
    /// Refuses.
    Refuse,
}
