//! Kafka's clients for elections, by librdkafka: one [`Session`] for all elections of a process. Parts of which
//! `neli-run` and the library `neli-election` are built; they may change at any time.
//!
//! [`Nodes`] performs what `neli-proto` asks of Kafka, and reports what happened. Nothing is decided here.

mod access;
mod answer_limit;
pub mod bootstrap;
mod bootstrap_servers;
mod by_broker;
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
mod log_bounds;
pub mod names;
mod nodes;
mod partition_consumer;
mod poll_thread;
mod producer;
pub mod properties;
pub mod random;
mod reader;
mod reading;
mod rebootstrap;
mod same_machine;
mod session;
mod text;
mod topic;
mod topics_reader;

pub use access::{Access, HEARTBEAT_INTERVAL, MemberTimings, SESSION_TIMEOUT};
pub use election::{Brokers, Client, ElectionId, Elections, Properties, is_secret};
pub use error_class::Layer;
pub use event::{JournalRecord, KafkaEvent, SessionEvent};
pub use examination::{
    Examination, NotAnswered, PartitionSeen, TopicExamination, TopicSeen, Unreachable, facts_to_create,
    journal_to_create,
};
pub use facts::{FactsReading, FactsSettings, FactsTopic, WantedFacts};
pub use librdkafka::{NewTopic, Rights, topic_identity};
pub use nodes::{EVENTS_TOGETHER, HasNode, Host, Nodes, Timeouts, new_node};
pub use producer::Producer;
pub use reader::Reader;
pub use reading::{IfMissing, Source};
pub use same_machine::runs_on_this_machine;
pub use session::{KafkaReaders, Router, Session, SessionSettings};
pub use text::{ClientError, Words, reason, shown_duration, undecodable};
pub use topic::topics;
pub use topics_reader::{TopicsEvent, TopicsReader};
