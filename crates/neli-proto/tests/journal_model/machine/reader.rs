//! The reader of a machine.

use neli_proto::candidate;
use neli_proto::node;
use neli_proto::record::Offset;
use neli_proto::time::Time;

use super::{Actions, Bounds, Machine};
use crate::kafka::{Log, Slot};
use crate::setup::Setup;

/// The reader's position.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Reader {
    /// The time of R1's query, if its answer is outstanding.
    pub(crate) asked: Option<Time>,
    /// The broker's answer to that query, if it is delayed.
    pub(crate) answer: Option<Bounds>,
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

    /// Handles an answer to a query for the log's bounds: of the delayed one, or with these bounds.
    pub(super) fn answer(&mut self, now: Time, bounds: Bounds, setup: &Setup, actions: &mut Actions) {
        let (asked, (start, end)) = match self.reader.asked.take() {
            Some(asked) => (asked, self.reader.answer.take().unwrap_or(bounds)),
            None => match self.late_answer.take() {
                Some(answer) => answer,
                None => return,
            },
        };
        self.tell(now, candidate::Event::Answered { asked, start, end }, setup, actions);
    }

    /// Reads the next entry.
    pub(crate) fn read(&mut self, now: Time, log: &Log, setup: &Setup, actions: &mut Actions) {
        let event = match self.to_read(log) {
            None => return,
            Some(Reading::End(next)) => {
                self.reader.next = Some(next);
                candidate::Event::ReachedEnd { next }
            }
            Some(Reading::OutOfRange) if self.cut_off => return self.learn_that_broker_ended(now, setup, actions),
            // A reader of several partitions is not told which one it is: the bounds of the log show it.
            Some(Reading::OutOfRange) if self.reader.next < Some(log.start()) => {
                candidate::Event::Answered { asked: now, start: log.start(), end: log.end() }
            }
            Some(Reading::OutOfRange) => candidate::Event::HistoryCut,
            Some(Reading::Record(offset, slot)) => {
                (self.reader.next, self.reader.waits) = (Some(offset + 1), false);
                match slot {
                    Slot::Record(sealed) => sealed.written().clone().read_at(offset),
                    Slot::Nonsense => candidate::Event::Read { offset, record: None, written_ms: None },
                    Slot::Absent | Slot::Other => candidate::Event::Passed { first: offset, last: offset },
                }
            }
        };
        self.hear_of_election(now, event);
        self.perform(now, setup, actions);
        if self.to_read(log).is_none() {
            self.reader.lags = false;
        }
    }

    /// Handles the end of the embedded broker, which the supervisor learns of by its next reading.
    pub(crate) fn lose_broker(&mut self) {
        self.reader = Reader { next: Some(-1), lags: self.reader.lags, ..Reader::default() };
        (self.late_answer, self.identity_asked) = (None, None);
        self.cut_off = true;
    }

    /// Lets the supervisor learn that the broker has ended: the process ends too. A job that runs is stopped in order.
    fn learn_that_broker_ended(&mut self, now: Time, setup: &Setup, actions: &mut Actions) {
        self.reader = Reader::default();
        self.node.handle(now, node::Event::Refused("the broker has ended".into()));
        if self.node.leads().is_none() {
            self.hear_of_election(now, candidate::Event::HistoryCut);
        }
        self.perform(now, setup, actions);
    }

    /// Whether the supervisor knows that the broker has ended.
    pub(super) fn knows_that_broker_ended(&self) -> bool {
        self.cut_off && self.reader.next.is_none()
    }
}
