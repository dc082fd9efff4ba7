//! What a machine reads of the log.

use neli_proto::candidate;
use neli_proto::record::{Body, Offset, Record};
use neli_proto::time::Time;

use super::{Actions, Machine};
use crate::kafka::{Log, Slot};
use crate::setup::Setup;

/// Where the reading is.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Reader {
    /// R1's question is under way since then.
    pub(crate) asked: Option<Time>,
    /// The broker has answered it, and the answer is late.
    pub(crate) answer: Option<(Offset, Offset)>,
    /// What is read next.
    pub(crate) next: Option<Offset>,
    /// What is there is read late.
    pub(crate) lags: bool,
    /// The topic was made again: until it has grown as far, there is nothing to be read, and no error.
    pub(crate) waits: bool,
}

/// What a reader finds.
pub(crate) enum Reading<'a> {
    /// Nothing more up to the end, but markers.
    End(Offset),
    /// Its place is no longer in the log.
    OutOfRange,
    /// A record.
    Record(Offset, &'a Slot),
}

impl Machine {
    /// What is to be handed over next: a record, or that there is no more.
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

    /// Reads what is next.
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
                    Slot::Nonsense | Slot::Record(_) => candidate::Event::Read { offset, record },
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

    /// The broker has died: its successor is found under another address, and holds nothing of what was read.
    pub(crate) fn lose_broker(&mut self) {
        self.reader.answer = None;
        self.late_answer = None;
        self.reader.next = self.reader.next.map(|_| -1);
        self.cut_off = self.reader.next.is_some();
    }
}
