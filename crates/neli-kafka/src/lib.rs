//! Kafka's clients for elections, by librdkafka: one [`Session`] for all elections of a process. Parts of which
//! `neli-run` and the library `neli-election` are built; they may change at any time.
//!
//! [`Nodes`] performs what `neli-proto` asks of Kafka, and reports what happened. Nothing is decided here.

#![allow(
    clippy::must_use_candidate,
    reason = "a getter whose value is dropped does nothing; what must be used says so"
)]

mod access;
pub mod bootstrap_servers;
pub mod clock;
mod cluster;
mod context;
mod election;
pub mod embedded;
mod error_class;
mod event;
mod examination;
mod facts;
mod group;
mod identity;
mod librdkafka;
pub mod names;
mod nodes;
mod partition_consumer;
mod producer;
mod properties;
mod questions;
mod reader;
mod reading;
mod rebootstrap;
mod session;
mod text;
mod threads;
mod topic;
mod topics_reader;

pub use access::{Access, HEARTBEAT_INTERVAL, MemberTimings, SESSION_TIMEOUT};
pub use election::{Client, ElectionId, Elections, Properties, is_secret};
pub use error_class::Layer;
pub use event::{KafkaEvent, SessionEvent};
pub use examination::{Examination, NotAnswered, PartitionSeen, TopicSeen};
pub use facts::{FactsSettings, FactsTopic, facts_to_create};
pub use librdkafka::{NewTopic, Rights, librdkafka_version, topic_identity};
pub use nodes::{EVENTS_TOGETHER, HasNode, Host, Nodes, Timeouts, hello, many_roles, new_node, random_bytes};
pub use producer::Producer;
pub use reader::Reader;
pub use reading::{IfMissing, Source};
pub use session::{KafkaReaders, Router, Session};
pub use text::{ClientError, Words, escaped, is_shortage, one_line, reason, shown_duration};
pub use threads::locked;
pub use topic::journal_to_create;
pub use topics_reader::{TopicsEvent, TopicsReader};
