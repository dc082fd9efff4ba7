//! The law in its written form (L1 to L4): each question is answered from all records that were read.

use std::time::Duration;

use neli_proto::journal::{Origin, Verdict};
use neli_proto::record::{Body, MemberId, Offset, Record, What};
use neli_proto::time::Time;

/// The largest age of an answer about the log's end: a record that is missing there was appended less than this ago.
const TOO_YOUNG_TO_BE_DELETED: Duration = Duration::from_secs(60);

/// The knowledge about the election.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum State {
    Led { term: Offset, lease: Duration },
    NeverLed,
    Released { term: Offset },
    Undecided,
}

/// All inputs of one reader, in order.
#[derive(Clone, Debug)]
pub(crate) struct Law {
    from: Offset,
    origin: Origin,
    shown: Vec<Shown>,
}

#[derive(Clone, Debug)]
enum Shown {
    Answer {
        asked: Time,
        end: Offset,
    },
    MissingBelow(Offset),
    /// The next record, at this offset, shows that an offset before it was no marker.
    Misread(Offset),
    Other {
        at: Time,
        offset: Offset,
    },
    Record {
        at: Time,
        offset: Offset,
        record: Option<Box<Record>>,
        verdict: Verdict,
    },
}

/// An event that changes the knowledge about the election.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Turn {
    Led(Offset),
    NeverLed,
    Released(Offset),
    Undecided,
}

impl Law {
    pub(crate) fn read_from(from: Offset, origin: Origin) -> Self {
        Self { from, origin, shown: Vec::new() }
    }

    pub(crate) fn answered(&mut self, asked: Time, end: Offset) {
        self.shown.push(Shown::Answer { asked, end });
    }

    pub(crate) fn miss_below(&mut self, offset: Offset) {
        self.shown.push(Shown::MissingBelow(offset));
    }

    pub(crate) fn read_other(&mut self, at: Time, offset: Offset) {
        self.shown.push(Shown::Other { at, offset });
    }

    pub(crate) fn read(&mut self, at: Time, offset: Offset, record: Option<&Record>) -> Verdict {
        // The gap before a record comes first, and then the record itself.
        self.shown.push(Shown::Record {
            at,
            offset,
            record: record.cloned().map(Box::new),
            verdict: Verdict::Nonsense,
        });
        let judged = record.map_or(Verdict::Nonsense, |record| self.judge(offset, record));
        if let Some(Shown::Record { verdict, .. }) = self.shown.last_mut() {
            *verdict = judged;
        }
        judged
    }

    /// The present knowledge about the election.
    pub(crate) fn state(&self) -> State {
        match self.turns(self.shown.len()).last() {
            Some((_, Turn::Led(term))) => State::Led { term: *term, lease: self.lease_of(*term) },
            Some((_, Turn::NeverLed)) => State::NeverLed,
            Some((_, Turn::Released(term))) => State::Released { term: *term },
            Some((_, Turn::Undecided)) | None => State::Undecided,
        }
    }

    /// The offset of the last record that was delivered, whatever its key; `w - 1` before the first.
    pub(crate) fn last(&self) -> Offset {
        let handed = self.shown.iter().filter_map(|shown| match shown {
            Shown::Other { offset, .. } | Shown::Record { offset, .. } => Some(*offset),
            Shown::Answer { .. } | Shown::MissingBelow(_) | Shown::Misread(_) => None,
        });
        handed.max().unwrap_or(-1).max(self.window() - 1)
    }

    // ---- verdicts -----------------------------------------------------------------------------------------------------

    /// The verdict on the last record.
    fn judge(&mut self, offset: Offset, record: &Record) -> Verdict {
        let a_lease = |ms: u64| (300..=60_000).contains(&ms);
        match record.body {
            Body::Claim { after, lease_ms, .. } if -1 <= after && after < offset && a_lease(lease_ms) => {
                self.judge_claim(offset, after)
            }
            Body::Beat { term, seen, lease_ms, .. }
                if 0 <= term && term <= seen && seen < offset && a_lease(lease_ms) =>
            {
                self.judge_record_of_leader(offset, term, seen, record.member.as_ref())
            }
            Body::Release { term, seen, .. } if 0 <= term && term <= seen && seen < offset => {
                self.judge_record_of_leader(offset, term, seen, record.member.as_ref())
            }
            Body::Request { what: What::End, .. } => match self.known() {
                Turn::Undecided => Verdict::Undecided,
                Turn::Led(_) | Turn::NeverLed | Turn::Released(_) => Verdict::Effective,
            },
            Body::Request { what: What::Resign, term: Some(term), .. } if 0 <= term && term < offset => {
                match self.known() {
                    Turn::Undecided => Verdict::Undecided,
                    known if known == Turn::Led(term) => Verdict::Effective,
                    Turn::Led(_) | Turn::NeverLed | Turn::Released(_) => Verdict::Void,
                }
            }
            Body::Beat { .. } | Body::Claim { .. } | Body::Release { .. } | Body::Request { .. } => Verdict::Nonsense,
        }
    }

    /// L1 and L4: a claim can be judged if nothing can be missing after its `after`.
    fn judge_claim(&self, offset: Offset, after: Offset) -> Verdict {
        if self.records().any(|(between, ..)| after < between && between < offset) {
            Verdict::Void
        } else if after >= self.window() - 1 {
            Verdict::Effective
        } else {
            Verdict::Undecided
        }
    }

    /// L3, and in an undecided view whether the record decides.
    fn judge_record_of_leader(
        &mut self,
        offset: Offset,
        term: Offset,
        seen: Offset,
        member: Option<&MemberId>,
    ) -> Verdict {
        if self.began_at_a_marker(term) {
            self.shown.insert(self.shown.len() - 1, Shown::Misread(offset));
        }
        match self.known() {
            Turn::Led(current) if current == term && self.leader() == member => Verdict::Effective,
            Turn::Led(_) | Turn::NeverLed | Turn::Released(_) => Verdict::Void,
            Turn::Undecided if !self.decides(seen) => Verdict::Undecided,
            Turn::Undecided if self.is_remembered_as_released(term) => Verdict::Void,
            Turn::Undecided => Verdict::Effective,
        }
    }

    /// L4: whether a term later than the current one began where, or behind where, an offset was taken for a marker.
    fn began_at_a_marker(&self, term: Offset) -> bool {
        let current = match self.known() {
            Turn::Led(current) | Turn::Released(current) => current,
            Turn::NeverLed => -1,
            Turn::Undecided => return false,
        };
        let claims = self.records().filter(|(_, record, verdict)| {
            *verdict == Verdict::Effective && matches!(record.map(|record| &record.body), Some(Body::Claim { .. }))
        });
        let after_claim = claims.map(|(offset, ..)| offset + 1).max().unwrap_or(0);
        term > current && (self.window().max(after_claim)..=term).any(|offset| !self.was_delivered(offset))
    }

    fn was_delivered(&self, at: Offset) -> bool {
        self.shown
            .iter()
            .any(|shown| matches!(shown, Shown::Other { offset, .. } | Shown::Record { offset, .. } if *offset == at))
    }

    /// Whether a leader's record whose writer had read everything up to `seen` decides: all claims after `seen` must be judged.
    fn decides(&self, seen: Offset) -> bool {
        let unjudged = self.records().any(|(offset, record, verdict)| {
            offset > seen
                && verdict == Verdict::Undecided
                && matches!(record.map(|record| &record.body), Some(Body::Claim { .. }))
        });
        seen >= self.window() - 1 && !unjudged
    }

    /// Whether a release of this term was read since the view became undecided.
    fn is_remembered_as_released(&self, term: Offset) -> bool {
        let turns = self.turns(self.shown.len() - 1);
        let decided = turns.iter().rev().find(|(_, turn)| *turn != Turn::Undecided).map_or(0, |(index, _)| *index);
        let meanwhile = self.shown[..self.shown.len() - 1].iter().skip(decided);
        let mut named = meanwhile.filter_map(|shown| match shown {
            Shown::Record { record: Some(record), verdict: Verdict::Undecided, .. } => match record.body {
                Body::Release { term, .. } => Some(term),
                Body::Beat { .. } | Body::Claim { .. } | Body::Request { .. } => None,
            },
            Shown::Answer { .. }
            | Shown::MissingBelow(_)
            | Shown::Misread(_)
            | Shown::Other { .. }
            | Shown::Record { .. } => None,
        });
        named.any(|named| named == term)
    }

    // ---- knowledge ----------------------------------------------------------------------------------------------------

    /// The knowledge before the last record, including the gap in front of it.
    fn known(&self) -> Turn {
        let before = self.shown.len() - 1;
        if self.window_of(before + 1) > self.window_of(before) {
            return Turn::Undecided;
        }
        self.turns(before).last().map_or(Turn::Undecided, |(_, turn)| *turn)
    }

    /// The member of the current term's claim; if the claim was not read, of the first effective beat or release. All effective records
    /// since then are by the same member.
    fn leader(&self) -> Option<&MemberId> {
        let turns = self.turns(self.shown.len() - 1);
        let (index, _) = turns.iter().rev().find(|(_, turn)| matches!(turn, Turn::Led(_)))?;
        match &self.shown[*index] {
            Shown::Record { record, .. } => record.as_ref()?.member.as_ref(),
            Shown::Answer { .. } | Shown::MissingBelow(_) | Shown::Misread(_) | Shown::Other { .. } => None,
        }
    }

    /// The events that changed the knowledge, among the first `count` inputs, with their indexes.
    fn turns(&self, count: usize) -> Vec<(usize, Turn)> {
        let mut turns = vec![(0, if self.origin == Origin::Beginning { Turn::NeverLed } else { Turn::Undecided })];
        for (index, shown) in self.shown[..count].iter().enumerate() {
            if self.window_of(index + 1) > self.window_of(index) {
                turns.push((index, Turn::Undecided));
            }
            let Shown::Record { offset, record: Some(record), verdict, .. } = shown else { continue };
            let turn = match (&record.body, verdict) {
                (Body::Claim { .. }, Verdict::Effective) => Turn::Led(*offset),
                (Body::Claim { .. }, Verdict::Undecided) => Turn::Undecided,
                (Body::Beat { term, .. }, Verdict::Effective) => Turn::Led(*term),
                (Body::Release { term, .. }, Verdict::Effective) => Turn::Released(*term),
                // In an undecided view only a record of a term that was released is void.
                (Body::Beat { term, .. } | Body::Release { term, .. }, Verdict::Void)
                    if turns.last().is_some_and(|(_, known)| *known == Turn::Undecided) =>
                {
                    Turn::Released(*term)
                }
                _ => continue,
            };
            turns.push((index, turn));
        }
        turns
    }

    /// The longest lease in the effective records of the current term since the view was last undecided.
    fn lease_of(&self, term: Offset) -> Duration {
        let turns = self.turns(self.shown.len());
        let since = turns.iter().rev().find(|(_, turn)| *turn == Turn::Undecided).map_or(0, |(index, _)| *index);
        let leases = self.shown.iter().skip(since).filter_map(|shown| match shown {
            Shown::Record { offset, record: Some(record), verdict: Verdict::Effective, .. } => match record.body {
                Body::Claim { lease_ms, .. } if *offset == term => Some(lease_ms),
                Body::Beat { term: of, lease_ms, .. } if of == term => Some(lease_ms),
                Body::Beat { .. } | Body::Claim { .. } | Body::Release { .. } | Body::Request { .. } => None,
            },
            Shown::Answer { .. }
            | Shown::MissingBelow(_)
            | Shown::Misread(_)
            | Shown::Other { .. }
            | Shown::Record { .. } => None,
        });
        Duration::from_millis(leases.max().unwrap_or(0))
    }

    // ---- records ------------------------------------------------------------------------------------------------------

    /// All records of the election.
    fn records(&self) -> impl Iterator<Item = (Offset, Option<&Record>, Verdict)> {
        self.shown.iter().filter_map(|shown| match shown {
            Shown::Record { offset, record, verdict, .. } => Some((*offset, record.as_deref(), *verdict)),
            Shown::Answer { .. } | Shown::MissingBelow(_) | Shown::Misread(_) | Shown::Other { .. } => None,
        })
    }

    /// L4's `w` now.
    fn window(&self) -> Offset {
        self.window_of(self.shown.len())
    }

    /// L4's `w` after the first `count` inputs.
    fn window_of(&self, count: usize) -> Offset {
        let (mut window, mut next) = (self.from, self.from);
        for (index, shown) in self.shown[..count].iter().enumerate() {
            match shown {
                Shown::Answer { .. } => {}
                Shown::MissingBelow(offset) => {
                    if *offset > next {
                        (window, next) = (*offset, *offset);
                    }
                }
                Shown::Misread(offset) => (window, next) = (*offset, *offset),
                Shown::Other { at, offset } | Shown::Record { at, offset, .. } => {
                    let missing = (next..*offset).rev().find(|missing| !self.is_marker(index, *at, *missing));
                    window = missing.map_or(window, |missing| missing + 1);
                    next = offset + 1;
                }
            }
        }
        window
    }

    /// Whether the missing offset is a transaction marker, according to the knowledge at `at`, after `count` inputs.
    fn is_marker(&self, count: usize, at: Time, offset: Offset) -> bool {
        self.shown[..count].iter().any(|shown| {
            matches!(shown, Shown::Answer { asked, end } if at.since(*asked) <= TOO_YOUNG_TO_BE_DELETED && *end <= offset)
        })
    }
}
