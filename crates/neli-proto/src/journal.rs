//! The law (L1 to L4): a fold over the records of one election, the same for every reader.
//!
//! It knows what it has read and no more. It does not know who reads it: leases, silence and claims are the
//! candidate's.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use crate::record::{Body, JobState, MemberId, Offset, Record, What};
use crate::time::Time;

pub use earlier_job::EarlierJob;

mod earlier_job;

/// For how long an answer about the log's end tells markers from missing records (L4): what was appended after the
/// asking is then too young to be deleted.
const ANSWER_HOLDS: Duration = Duration::from_secs(60);

/// Where a reading begins, and what an empty log there would mean.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Origin {
    /// At offset 0, with nothing before it: the law applies from the first record.
    Beginning,
    /// At the start of a log whose head was cut.
    CutHead,
    /// Somewhere in the middle.
    Middle,
}

/// The law's verdict on a record.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Verdict {
    /// It is effective.
    Effective,
    /// It makes no sense where it stands; it counts in L1 alone.
    Nonsense,
    /// This reader can't judge it yet.
    Undecided,
    /// It came too late, or its writer does not lead.
    Void,
}

/// A term, as far as its records were read.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Term {
    /// The offset of its claim: the fencing token.
    pub offset: Offset,
    /// The longest lease among its effective records.
    pub lease: Duration,
    /// The leader: the member of the claim; if the claim was not read, of the first beat or release of the term that
    /// counted.
    pub member: Option<MemberId>,
    /// The leader's name.
    pub name: Option<Box<str>>,
    /// `--overlap`: the leader yields, so that another may claim while its job runs on.
    pub yields: bool,
    /// A beat of the term has shown its job alive.
    pub has_run: bool,
}

/// What a reader knows of the election.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum View {
    /// The records name a leader, which may have fallen silent.
    Led(Term),
    /// The partition was read from offset 0 and holds no effective claim.
    NeverLed,
    /// The current term was released.
    Released {
        /// The released term.
        term: Offset,
        /// The release's reason.
        why: Option<Box<str>>,
    },
    /// L4: the records read so far decide nothing.
    Undecided(Undecided),
}

/// What is remembered while the view is undecided.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Undecided {
    /// The log begins here, its head is cut, and no record of the election has been read since.
    pub empty_since_cut_head: bool,
    /// The last claim that couldn't be judged.
    unjudged: Option<Offset>,
    /// The terms that releases named.
    released: BTreeSet<Offset>,
}

/// An answer to "where does the log end?".
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct EndAnswer {
    asked: Time,
    end: Offset,
}

/// One reading of the journal.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Journal {
    /// L4's `w`: where this reading began, or the offset after the last missing one.
    window: Offset,
    /// The offset that comes next.
    next: Offset,
    /// The offset of the last record handed over, whatever its key.
    last: Option<Offset>,
    /// The last record of the election.
    last_of_election: Option<Offset>,
    view: View,
    earlier_job: EarlierJob,
    answers: Vec<EndAnswer>,
    /// R0: the topic deletes whole segments from its head and nothing else, so what is missing in between is a marker.
    gaps_are_markers: bool,
    /// A gap between two records was taken for missing records.
    has_gap: bool,
}

impl Journal {
    /// A reading that begins at `from`.
    #[must_use]
    pub fn read_from(from: Offset, origin: Origin) -> Self {
        let view = match origin {
            Origin::Beginning => View::NeverLed,
            Origin::CutHead => View::Undecided(Undecided { empty_since_cut_head: true, ..Undecided::new() }),
            Origin::Middle => View::Undecided(Undecided::new()),
        };
        let earlier_job = match origin {
            Origin::Beginning => EarlierJob::Gone,
            Origin::CutHead | Origin::Middle => EarlierJob::Unknown,
        };
        Self {
            window: from,
            next: from,
            last: None,
            last_of_election: None,
            view,
            earlier_job,
            answers: Vec::new(),
            gaps_are_markers: false,
            has_gap: false,
        }
    }

    /// The same reader begins again at `from`; the answers about the log's end stay valid.
    #[must_use]
    pub(crate) fn read_again_from(&self, from: Offset, origin: Origin) -> Self {
        let (answers, gaps_are_markers) = (self.answers.clone(), self.gaps_are_markers);
        Self { answers, gaps_are_markers, ..Self::read_from(from, origin) }
    }

    /// R0 was judged (L4). Returns whether gaps that were taken for missing records were markers, so that the log
    /// must be read again.
    pub(crate) fn topic_judged(&mut self, gaps_are_markers: bool) -> bool {
        self.gaps_are_markers = gaps_are_markers;
        gaps_are_markers && self.has_gap
    }

    /// The answer to a question asked at `asked`: the log ends before `end`. `now` is when it arrived.
    pub fn answered(&mut self, now: Time, asked: Time, end: Offset) {
        self.answers.retain(|answer| now.since(answer.asked) <= ANSWER_HOLDS);
        self.answers.push(EndAnswer { asked, end });
    }

    /// Everything below `offset` that was not handed over is missing, and none of it was a marker (L4).
    pub fn miss_below(&mut self, offset: Offset) {
        if offset <= self.next {
            return;
        }
        self.next = offset;
        self.window = offset;
        self.earlier_job = EarlierJob::Unknown;
        if !matches!(self.view, View::Undecided(_)) {
            self.view = View::Undecided(Undecided::new());
        }
    }

    /// A record of another key stands at `offset`.
    pub fn read_other(&mut self, now: Time, offset: Offset) {
        self.read_others(now, offset, offset);
    }

    /// Records of other keys stand at each offset from `first` to `last`.
    pub fn read_others(&mut self, now: Time, first: Offset, last: Offset) {
        self.move_to(now, first);
        self.last = Some(last);
        self.next = last + 1;
    }

    /// A record of the election stands at `offset`; `None` is one that does not parse. `offset` is not below
    /// [`next`](Self::next).
    pub fn read(&mut self, now: Time, offset: Offset, record: Option<&Record>) -> Verdict {
        self.move_to(now, offset);
        let verdict = self.judge(offset, record);
        if let View::Undecided(undecided) = &mut self.view {
            undecided.empty_since_cut_head = false;
        }
        self.last = Some(offset);
        self.last_of_election = Some(offset);
        verdict
    }

    /// Everything below `next` has been handed over. A gap after the last record is either markers, or is judged when
    /// the next record shows it.
    #[must_use]
    pub const fn next(&self) -> Offset {
        self.next
    }

    /// The last record handed over, whatever its key: a claim's `after`, a beat's `seen`.
    #[must_use]
    pub fn last(&self) -> Offset {
        self.last.unwrap_or(self.window - 1).max(self.window - 1)
    }

    /// What is known of the election.
    #[must_use]
    pub const fn view(&self) -> &View {
        &self.view
    }

    /// `--overlap`: what may be left of the previous term's job, in a decided view.
    #[must_use]
    pub const fn earlier_job(&self) -> &EarlierJob {
        &self.earlier_job
    }

    /// The current term (L2), in a decided view.
    #[must_use]
    pub fn term(&self) -> Option<Offset> {
        match &self.view {
            View::Led(term) => Some(term.offset),
            View::NeverLed | View::Released { .. } | View::Undecided(_) => None,
        }
    }

    /// L4: records missing below `offset` move the window, unless only markers can be missing.
    fn move_to(&mut self, now: Time, offset: Offset) {
        let holds = |answer: &&EndAnswer| now.since(answer.asked) <= ANSWER_HOLDS;
        let markers_from = self.answers.iter().filter(holds);
        let markers_from = markers_from.map(|answer| answer.end).min().unwrap_or(Offset::MAX);
        let missing_to = markers_from.min(offset);
        let is_between = self.last.is_some();
        if !(is_between && self.gaps_are_markers) {
            self.has_gap |= is_between && missing_to > self.next;
            self.miss_below(missing_to);
        }
        self.next = offset + 1;
    }

    fn judge(&mut self, offset: Offset, record: Option<&Record>) -> Verdict {
        let Some(record) = record.filter(|record| record.makes_sense_at(offset)) else {
            return Verdict::Nonsense;
        };
        let verdict = match &record.body {
            Body::Beat { term, seen, .. } => self.judge_leader_record(*term, *seen, record, false),
            Body::Claim { after, .. } => self.judge_claim(offset, *after, record),
            Body::Release { term, seen, .. } => self.judge_leader_record(*term, *seen, record, true),
            Body::Request { what, term, .. } => match (&self.view, what) {
                (View::Undecided(_), _) => Verdict::Undecided,
                (_, What::End) => Verdict::Effective,
                (_, What::Resign) if term.is_some() && self.term() == *term => Verdict::Effective,
                (_, What::Resign) => Verdict::Void,
            },
            Body::Hello { .. } => Verdict::Nonsense,
        };
        self.earlier_job.received(verdict, record);
        verdict
    }

    /// L1 and L2, as far as L4 lets this reader judge.
    fn judge_claim(&mut self, offset: Offset, after: Offset, record: &Record) -> Verdict {
        if self.last_of_election.is_some_and(|last| last > after) {
            return Verdict::Void;
        }
        if after >= self.window - 1 {
            self.earlier_job.claimed(&self.view, record);
            self.view = View::Led(Term::of(offset, record));
            return Verdict::Effective;
        }
        self.earlier_job = EarlierJob::Unknown;
        match &mut self.view {
            View::Undecided(undecided) => undecided.unjudged = Some(offset),
            View::Led(_) | View::NeverLed | View::Released { .. } => {
                self.view = View::Undecided(Undecided { unjudged: Some(offset), ..Undecided::new() });
            }
        }
        Verdict::Undecided
    }

    /// L3 for a beat or a release; in an undecided view, whether it decides (L4).
    fn judge_leader_record(&mut self, term: Offset, seen: Offset, record: &Record, is_release: bool) -> Verdict {
        let window = self.window;
        match &mut self.view {
            View::Led(current) if current.offset == term && current.member == record.member => {
                current.lease = current.lease.max(record.body.lease().unwrap_or_default());
                current.hear(&record.body);
            }
            View::Led(_) | View::NeverLed | View::Released { .. } => return Verdict::Void,
            View::Undecided(undecided) => {
                let decides = seen >= window - 1 && undecided.unjudged.is_none_or(|claim| claim <= seen);
                if !decides {
                    if is_release {
                        undecided.released.insert(term);
                    }
                    return Verdict::Undecided;
                }
                if undecided.released.contains(&term) {
                    self.view = View::Released { term, why: None };
                    return Verdict::Void;
                }
                self.view = View::Led(Term::of(term, record));
            }
        }
        if let Body::Release { why, .. } = &record.body {
            self.view = View::Released { term, why: why.clone() };
        }
        Verdict::Effective
    }
}

impl Term {
    fn of(offset: Offset, record: &Record) -> Self {
        let mut term = Self {
            offset,
            lease: record.body.lease().unwrap_or_default(),
            member: record.member.clone(),
            name: record.name.clone(),
            yields: false,
            has_run: false,
        };
        term.hear(&record.body);
        term
    }

    /// Records what a beat says about its job.
    fn hear(&mut self, body: &Body) {
        if let Body::Beat { state, overlap, .. } = body {
            self.yields |= overlap.is_some_and(|overlap| overlap.yields);
            self.has_run |= *state == Some(JobState::Running);
        }
    }
}

impl Undecided {
    const fn new() -> Self {
        Self { empty_since_cut_head: false, unjudged: None, released: BTreeSet::new() }
    }
}

#[cfg(test)]
mod tests;
