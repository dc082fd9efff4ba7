//! Random journals with forged and undecodable records, gaps, other keys, and late answers.

use std::fmt;
use std::time::Duration;

use neli_proto::journal::Origin;
use neli_proto::record::{Body, MemberId, Offset, Record, What};
use neli_proto::time::Time;

/// One input of a reader. Offsets and times increase.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Answered { at: Time, asked: Time, end: Offset },
    Missed { below: Offset },
    Other { at: Time, offset: Offset },
    Read { at: Time, offset: Offset, record: Option<Record> },
}

/// All inputs of one reader.
#[derive(Clone)]
pub(crate) struct Reading {
    pub(crate) from: Offset,
    pub(crate) origin: Origin,
    pub(crate) steps: Vec<Step>,
}

impl fmt::Debug for Reading {
    /// Prints a line per step, so that the smallest journal with a difference is readable.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "from {} ({:?})", self.from, self.origin)?;
        self.steps.iter().try_for_each(|step| write!(f, "\n    {step:?}"))
    }
}

impl Reading {
    /// A journal from small numbers, which refer to nearby records so that most of it is plausible.
    pub(crate) fn of_numbers(origin: Origin, from: Offset, numbers: Vec<Numbers>) -> Self {
        let from = if origin == Origin::Beginning { 0 } else { from };
        let mut writer =
            Writer { now: Time::from_nanos(1_000_000_000_000), next: from, claims: Vec::new(), last: from - 1 };
        let steps = numbers.into_iter().map(|numbers| writer.step(numbers)).collect();
        Self { from, origin, steps }
    }

    /// A journal from arbitrary bytes: the origin, the first offset, and four bytes for each step.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        let (head, steps) = bytes.split_at_checked(2).unwrap_or((&[0, 1], &[]));
        let origin = [Origin::Beginning, Origin::CutHead, Origin::Middle][usize::from(head[0] % 3)];
        let numbers = steps.chunks_exact(4).take(60).map(|step| (step[0] % 20, step[1] % 8, step[2] % 8, step[3] % 8));
        Self::of_numbers(origin, 1 + Offset::from(head[1] % 9), numbers.collect())
    }
}

/// The numbers of a step: its kind, below 20, and three below 8.
pub(crate) type Numbers = (u8, u8, u8, u8);

/// Makes steps from numbers.
struct Writer {
    now: Time,
    next: Offset,
    claims: Vec<Offset>,
    /// The last record of the election.
    last: Offset,
}

impl Writer {
    fn step(&mut self, (kind, first, second, third): Numbers) -> Step {
        let seconds = [0, 0, 0, 0, 1, 20, 40, 61][usize::from(third)];
        self.now = self.now + Duration::from_secs(seconds);
        let at = self.now;
        match kind {
            0..3 => {
                let age = [0, 0, 1, 30, 59, 60, 61, 100][usize::from(first)];
                Step::Answered { at, asked: at - Duration::from_secs(age), end: self.next + Offset::from(second) - 4 }
            }
            3 => {
                let below = self.next + Offset::from(first) - 2;
                self.next = self.next.max(below);
                Step::Missed { below }
            }
            4 => Step::Other { at, offset: self.place(first) },
            5 => {
                let offset = self.place(first);
                self.last = offset;
                Step::Read { at, offset, record: None }
            }
            _ => {
                let offset = self.place(third);
                let body = self.body(kind, offset, first, second);
                if matches!(body, Body::Claim { .. }) {
                    self.claims.push(offset);
                }
                self.last = offset;
                // Usually the leader, sometimes another member, and rarely one without a name.
                let member = match kind {
                    10 | 15 | 18 => Some(MemberId::from("b")),
                    14 => None,
                    _ => Some(MemberId::from("a")),
                };
                Step::Read { at, offset, record: Some(Record { member, name: None, seq: None, body }) }
            }
        }
    }

    /// Usually the next offset, sometimes with a gap before it.
    fn place(&mut self, number: u8) -> Offset {
        let offset = self.next + [0, 0, 0, 0, 0, 1, 2, 4][usize::from(number)];
        self.next = offset + 1;
        offset
    }

    fn body(&self, kind: u8, offset: Offset, first: u8, second: u8) -> Body {
        let seen = match second {
            0..4 => offset - 1,
            4..6 => self.last,
            _ => offset - Offset::from(second) + 4,
        };
        let lease_ms = if first == 7 { 60_001 } else { 300 + u64::from(second) };
        match kind {
            6..11 => Body::Claim { after: seen, lease_ms, overlap: None },
            11..16 => Body::Beat { term: self.term(first), seen, lease_ms, job: None, overlap: None },
            16..19 => Body::Release {
                term: self.term(first),
                seen,
                why: None,
                exit: None,
                late_ms: None,
                group_member: None,
                once: None,
                successor: None,
            },
            _ if first < 4 => Body::Request {
                what: What::Resign,
                term: Some(self.term(first)),
                by: None,
                reason: None,
                successor: None,
            },
            _ if first < 6 => Body::Request { what: What::End, term: None, by: None, reason: None, successor: None },
            // It names no term, so it is nonsense.
            _ => Body::Request { what: What::Resign, term: None, by: None, reason: None, successor: None },
        }
    }

    /// Usually the last claim's term, sometimes an earlier one or none.
    fn term(&self, number: u8) -> Offset {
        match number {
            0..5 => self.claims.last().copied().unwrap_or(0),
            5 => self.claims.iter().rev().nth(1).copied().unwrap_or(1),
            _ => self.next - Offset::from(number),
        }
    }
}
