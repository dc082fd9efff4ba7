//! Elections on Kafka: how records are read and appended, what the consumer group reports, which topic stands under a name.
//!
//! The crate `neli-proto` decides what to do; here it is done, and what happened is reported. Nothing here decides.
//!
//! A [`Reader`] reads the journal of an [`Election`], a [`Producer`] appends to it, and a [`Member`] stands in its consumer group; each
//! is a client of librdkafka, made for an [`Access`]. What happens comes in two channels: [`KafkaEvent`] and [`GroupReport`].

#![deny(missing_docs)]

pub mod clock;
mod election;
pub mod sealed_memfd;
mod text;

/// Kafka's clients, by librdkafka.
mod kafka {
    pub(crate) mod access;
    mod answer_limit;
    mod context;
    pub mod embedded;
    mod error_class;
    pub(crate) mod event;
    pub(crate) mod group;
    mod identity;
    pub(crate) mod librdkafka;
    mod partition_consumer;
    mod poll_thread;
    pub(crate) mod producer;
    pub(crate) mod reader;
    mod reading;
    mod topic;
}

pub use election::{Brokers, Client, Election, Properties, is_secret};
pub use kafka::access::{Access, HEARTBEAT_INTERVAL, LogCallback, MemberTimings, NoAddress, SESSION_TIMEOUT};
pub use kafka::embedded;
pub use kafka::event::{KafkaEvent, Key, ReadRecord, ReadingEvent};
pub use kafka::group::{GroupEvent, GroupReport, Member};
pub use kafka::librdkafka::topic_identity;
pub use kafka::producer::Producer;
pub use kafka::reader::{Reader, Source};
pub use text::{ClientError, reason};
