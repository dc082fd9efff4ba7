//! What several tests write to a log.

#![allow(dead_code, reason = "each test uses some of it")]

use neli_proto::hello::Hello;
use neli_proto::kafka::{Event, Request};
use neli_proto::record::{Offset, Record};

/// A hello of a candidate with this priority and no other properties.
pub(crate) fn hello(member: &str, priority: u16) -> Hello {
    Hello { priority, ..Hello::new(member.into(), Some(format!("{member}-name").into())) }
}

/// A hello, or a record of the election.
#[derive(Clone, Debug, Hash)]
pub(crate) enum Written {
    Hello(Hello),
    Record(Record),
}

impl Written {
    /// What is written for a request, if anything is.
    pub(crate) fn of(request: &Request) -> Option<Self> {
        if let Request::SayHello(hello) = request {
            Some(Self::Hello((**hello).clone()))
        } else if let Request::Send { record } = request {
            Some(Self::Record(record.clone()))
        } else {
            None
        }
    }

    /// The event of a candidate that reads it.
    pub(crate) fn read_at(self, offset: Offset) -> Event {
        match self {
            Self::Hello(hello) => Event::ReadHello { offset, hello: Box::new(hello) },
            Self::Record(record) => Event::Read { offset, record: Some(record), written_ms: None },
        }
    }

    pub(crate) const fn seq(&self) -> Option<u64> {
        match self {
            Self::Hello(hello) => hello.seq,
            Self::Record(record) => record.seq,
        }
    }

    pub(crate) const fn record(&self) -> Option<&Record> {
        match self {
            Self::Hello(_) => None,
            Self::Record(record) => Some(record),
        }
    }
}

impl From<Hello> for Written {
    fn from(hello: Hello) -> Self {
        Self::Hello(hello)
    }
}

impl From<Record> for Written {
    fn from(record: Record) -> Self {
        Self::Record(record)
    }
}
