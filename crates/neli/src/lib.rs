//! Elections on Kafka: how records are read and appended, what the consumer group reports, which topic stands under a name.
//!
//! The crate `neli-proto` decides what to do; here it is done, and what happened is reported. Nothing here decides.
//!
//! A [`Session`](program::Session) is what a process needs of Kafka, however many elections it stands in. It has a
//! [`Reader`](program::Reader), which reads their journals, a [`Producer`](program::Producer), which appends to them, and a
//! [`Member`](program::Member) of the consumer group; each is a client of librdkafka, made for an [`Access`](program::Access).

#![deny(missing_docs)]

mod alarm;
mod bootstrap;
mod clock;
mod election;
mod names;
mod properties;
mod random;
mod sealed_memfd;
mod session;
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

/// What `neli-run` is built of besides: no part of the library's interface, and changed without notice.
#[doc(hidden)]
pub mod program {
    pub use crate::election::{Brokers, Client, Election, Elections, Properties, is_secret};
    pub use crate::kafka::access::{
        Access, HEARTBEAT_INTERVAL, LogCallback, MemberTimings, NoAddress, SESSION_TIMEOUT,
    };
    pub use crate::kafka::embedded;
    pub use crate::kafka::event::{KafkaEvent, Key, ReadRecord, ReadingEvent};
    pub use crate::kafka::group::{GroupEvent, GroupReport, Member};
    pub use crate::kafka::librdkafka::topic_identity;
    pub use crate::kafka::producer::Producer;
    pub use crate::kafka::reader::{Reader, Source};
    pub use crate::session::event::{RoleEvent, SessionEvent};
    pub use crate::session::{Session, SessionSettings};
    pub use crate::text::{ClientError, reason, shown_duration};

    pub mod alarm {
        //! A timer on `CLOCK_BOOTTIME`.
        pub use crate::alarm::Alarm;
    }
    pub mod bootstrap {
        //! Bootstrap servers.
        pub use crate::bootstrap::{ListError, validate};
    }
    pub mod clock {
        //! The clock.
        pub use crate::clock::{now, wall_ms};
    }
    pub mod names {
        //! Names of elections, topics and candidates.
        pub use crate::names::{LONGEST_GROUP, LONGEST_NAME, TOPIC, is_topic, validate};
    }
    pub mod properties {
        //! librdkafka's properties.
        pub use crate::properties::{Fault, canonical, validate};
    }
    pub mod random {
        //! Randomness.
        pub use crate::random::bytes;
    }
    pub mod sealed_memfd {
        //! Files in memory that nobody can change.
        pub use crate::sealed_memfd::{seals, write};
    }
}
