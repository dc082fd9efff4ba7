//! Elections on Kafka: how records are read and appended, what the consumer group says, which topic stands under a name.
//!
//! The crate `neli-proto` decides what to do; here it is done, and what happened is told. Nothing here decides.

#![deny(missing_docs)]

pub mod clock;
pub mod election;
pub mod sealed_memfd;
pub mod text;

/// Kafka's clients, by librdkafka.
pub mod kafka {
    pub mod access;
    mod answer_limit;
    pub mod embedded;
    pub mod error_class;
    pub mod event;
    pub mod group;
    mod identity;
    pub mod librdkafka;
    mod poll_thread;
    pub mod producer;
    pub mod reader;
    pub mod topic;
}
