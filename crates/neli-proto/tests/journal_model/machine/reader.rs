//! The reader of a machine.

use neli_proto::candidate;
use neli_proto::record::{Body, Offset, Record};
use neli_proto::time::Time;

use super::{Actions, Machine};
use crate::kafka::{Log, Slot};
use crate::setup::Setup;

/// The reader's position.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Reader {
    /// The time of R1's query, if its answer is outstanding.
    pub(crate) asked: Option<Time>,
    /// The broker's answer to that query, if it is delayed.
    pub(crate) answer: Option<(Offset, Offset)>,
    /// The next offset to read.
    pub(crate) next: Option<Offset>,
    /// Whether records are delivered late.
    pub(crate) lags: bool,
    /// Whether the topic was created again: then no record and no error is delivered until the topic is as long as the position.
    pub(crate) waits: bool,
}

/// The result of a read.
pub(crate) enum Reading<'a> {
    /// There are no more records before the end, only markers.
    End(Offset),
    /// The position is no longer in the log.
    OutOfRange,
    /// A record.
    Record(Offset, &'a Slot),
}

impl Machine {
    /// The next result: a record, or that there is none.
    pub(crate) fn to_read<'a>(&self, log: &'a Log) -> Option<Reading<'a>> {
        let next = self.reader.next?;
        if self.reader.waits && next > log.end() {
            return None;
        }
        if next < log.start() || next > log.end() {
            return Some(Reading::OutOfRange);
        }
        match log.next_from(next) {
            Some((offset, slot)) => Some(Reading::Record(offset, slot)),
            None => (next < log.end()).then_some(Reading::End(log.end())),
        }
    }

    /// Reads the next entry.
    pub(crate) fn read(&mut self, now: Time, log: &Log, setup: &Setup, actions: &mut Actions) {
        let event = match self.to_read(log) {
            None => return,
            Some(Reading::End(next)) => {
                self.reader.next = Some(next);
                candidate::Event::ReachedEnd { next }
            }
            Some(Reading::OutOfRange) => {
                self.cut_off = false;
                candidate::Event::HistoryCut
            }
            Some(Reading::Record(offset, slot)) => {
                (self.reader.next, self.reader.waits) = (Some(offset + 1), false);
                let record = match slot {
                    Slot::Record(sealed) => Some(sealed.record().clone()),
                    Slot::Absent | Slot::Nonsense | Slot::Other => None,
                };
                let hello = record.clone().filter(|record| matches!(record.body, Body::Hello { .. }));
                match slot {
                    Slot::Record(_) if hello.is_some() => {
                        candidate::Event::ReadOther { offset, hello: hello.and_then(Record::into_hello) }
                    }
                    Slot::Nonsense | Slot::Record(_) => candidate::Event::Read { offset, record, written_ms: None },
                    Slot::Absent | Slot::Other => candidate::Event::ReadOther { offset, hello: None },
                }
            }
        };
        self.hear_of_election(now, event);
        self.perform(now, setup, actions);
        if self.to_read(log).is_none() {
            self.reader.lags = false;
        }
    }

    /// Handles the broker's death. Its successor has another address, and none of the records.
    pub(crate) fn lose_broker(&mut self) {
        self.reader.answer = None;
        self.late_answer = None;
        self.reader.next = self.reader.next.map(|_| -1);
        self.cut_off = self.reader.next.is_some();
    }
}
