//! The law (L1 to L4): a fold over the records of one election, the same for every reader.
//!
//! It depends only on the records that were read, and not on the reader: leases, silence and claims are the candidate's.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use crate::record::{Body, JobState, MemberId, Offset, Record, What};
use crate::time::Time;
use crate::timings::LONGEST_LEASE;

/// How long an answer about the log's end distinguishes markers from missing records (L4): records that were appended after the question
/// are younger than that, and too young to be deleted.
const ANSWER_HOLDS: Duration = Duration::from_secs(60);

/// The start of a reading, and the meaning of an empty log from there on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Origin {
    /// At offset 0, without earlier records. The law applies from the first record.
    Beginning,
    /// At the start of a log whose head was cut.
    CutHead,
    /// Somewhere in the middle.
    Middle,
}

impl Origin {
    /// That of a reading from this offset on, where the log begins at `start`.
    pub(crate) const fn of(from: Offset, start: Offset) -> Self {
        if from > start {
            Self::Middle
        } else if from > 0 {
            Self::CutHead
        } else {
            Self::Beginning
        }
    }
}

/// The law's verdict on a record.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Verdict {
    /// It is effective.
    Effective,
    /// It is meaningless at its place in the log, and counts in L1 only.
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
    /// The leader: the member of the claim. If the claim was not read: the member of the term's first beat or release that counted.
    pub member: Option<MemberId>,
    /// The leader's name.
    pub name: Option<Box<str>>,
    /// `--overlap`: whether the leader yields, so that another candidate may claim while its job continues.
    pub yields: bool,
    /// Whether a beat of the term has shown that its job is alive.
    pub has_run: bool,
}

/// A reader's view of the election.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum View {
    /// The records name a leader, which may have been silent since.
    Led(Term),
    /// The partition was read from offset 0 and contains no effective claim.
    NeverLed,
    /// The current term was released.
    Released {
        /// The released term.
        term: Offset,
        /// The release's reason.
        why: Option<Box<str>>,
    },
    /// L4: the records read so far don't decide the view.
    Undecided(Undecided),
}

/// The data that are kept while the view is undecided.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Undecided {
    /// The log begins here, its head was cut, and no record of the election has been read since.
    pub empty_since_cut_head: bool,
    /// The last claim that could not be judged.
    unjudged: Option<Offset>,
    /// The terms that releases named.
    released: BTreeSet<Offset>,
}

/// One reading of the journal.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Journal {
    /// L4's `w`: the offset where this reading began, or the one after the last missing one.
    window: Offset,
    /// The next offset.
    next: Offset,
    /// The offset of the last record with any key that was handed over.
    last: Option<Offset>,
    /// The last record of the election.
    last_of_election: Option<Offset>,
    view: View,
    earlier_job: EarlierJob,
    /// The answers to the question for the log's end: when it was asked, and the end.
    answers: Vec<(Time, Offset)>,
    /// R0: whether the topic deletes only whole segments from its head, so that a missing offset in between is a marker.
    gaps_are_markers: bool,
    /// Whether a gap between two records was taken for missing records.
    has_gap: bool,
    /// The first offset from `w` on, after the last effective claim, that was taken for a marker.
    first_marker: Option<Offset>,
}

impl Journal {
    /// A reading that begins at `from`.
    pub fn read_from(from: Offset, origin: Origin) -> Self {
        let view = match origin {
            Origin::Beginning => View::NeverLed,
            Origin::CutHead => View::Undecided(Undecided { empty_since_cut_head: true, ..Undecided::default() }),
            Origin::Middle => View::Undecided(Undecided::default()),
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
            first_marker: None,
        }
    }

    /// A second reading that begins at `from`. The answers about the log's end stay valid.
    pub(crate) fn read_again_from(&self, from: Offset, origin: Origin) -> Self {
        let (answers, gaps_are_markers) = (self.answers.clone(), self.gaps_are_markers);
        Self { answers, gaps_are_markers, ..Self::read_from(from, origin) }
    }

    /// Handles the judgement of R0 (L4). Returns whether gaps that were taken for missing records were markers, so that the log must be
    /// read again.
    pub(crate) fn topic_judged(&mut self, gaps_are_markers: bool) -> bool {
        self.gaps_are_markers = gaps_are_markers;
        gaps_are_markers && self.has_gap
    }

    /// Handles the answer to a question asked at `asked`: the log ends before `end`. `now` is when the answer arrived.
    pub fn answered(&mut self, now: Time, asked: Time, end: Offset) {
        self.answers.retain(|(asked, _)| now.since(*asked) <= ANSWER_HOLDS);
        self.answers.push((asked, end));
    }

    /// Marks all offsets below `offset` that were not handed over as missing; none of them was a marker (L4).
    pub fn miss_below(&mut self, offset: Offset) {
        if offset > self.next {
            self.next = offset;
            self.begin_window_at(offset);
        }
    }

    /// L4: records below `offset` are missing.
    fn begin_window_at(&mut self, offset: Offset) {
        self.window = offset;
        self.first_marker = None;
        self.earlier_job = EarlierJob::Unknown;
        if !matches!(self.view, View::Undecided(_)) {
            self.view = View::Undecided(Undecided::default());
        }
        // The missing records may have been the leader's.
        self.note_not_empty();
    }

    /// Notes that the log whose head was cut has, or may have had, a record of the election.
    fn note_not_empty(&mut self) {
        if let View::Undecided(undecided) = &mut self.view {
            undecided.empty_since_cut_head = false;
        }
    }

    /// Handles a record of another key at `offset`.
    pub fn read_other(&mut self, now: Time, offset: Offset) {
        self.read_others(now, offset, offset);
    }

    /// Handles records of other keys at the offsets from `first` to `last`.
    pub fn read_others(&mut self, now: Time, first: Offset, last: Offset) {
        self.move_to(now, first);
        self.last = Some(last);
        self.next = last + 1;
    }

    /// Handles a record of the election at `offset`; `None` if it can't be parsed. `offset` is not below [`next`](Self::next).
    pub fn read(&mut self, now: Time, offset: Offset, record: Option<&Record>) -> Verdict {
        self.move_to(now, offset);
        let verdict = self.judge(offset, record);
        self.note_not_empty();
        self.last = Some(offset);
        self.last_of_election = Some(offset);
        verdict
    }

    /// The offset below which all records have been handed over. A gap after the last record consists of markers, or is judged when the
    /// next record shows it.
    pub const fn next(&self) -> Offset {
        self.next
    }

    /// The offset of the last record with any key that was handed over: a claim's `after`, a beat's `seen`.
    pub fn last(&self) -> Offset {
        self.last.unwrap_or(self.window - 1).max(self.window - 1)
    }

    /// The view of the election.
    pub const fn view(&self) -> &View {
        &self.view
    }

    /// `--overlap`: the state of the previous term's job, if the view is decided.
    pub const fn earlier_job(&self) -> &EarlierJob {
        &self.earlier_job
    }

    /// The current term (L2), if the view is decided.
    pub fn term(&self) -> Option<Offset> {
        self.led().map(|term| term.offset)
    }

    /// The current term, or the last one if it was released; `None` too if there was none.
    pub(crate) const fn last_term(&self) -> Option<Offset> {
        match &self.view {
            View::Led(term) => Some(term.offset),
            View::Released { term, .. } => Some(*term),
            View::NeverLed | View::Undecided(_) => None,
        }
    }

    /// The same with its known properties.
    pub(crate) const fn led(&self) -> Option<&Term> {
        if let View::Led(term) = &self.view { Some(term) } else { None }
    }

    fn move_to(&mut self, now: Time, offset: Offset) {
        self.come_to(now, offset);
        self.next = offset + 1;
    }

    /// Handles that the next record is at `offset`. L4: records that are missing before it move the window, unless only markers can be missing.
    /// Returns whether some are.
    pub(crate) fn come_to(&mut self, now: Time, offset: Offset) -> bool {
        let window = self.window;
        let holding = self.answers.iter().filter(|(asked, _)| now.since(*asked) <= ANSWER_HOLDS);
        let markers_from = holding.map(|(_, end)| *end).min().unwrap_or(Offset::MAX);
        let missing_to = markers_from.min(offset);
        let is_between = self.last.is_some();
        if !(is_between && self.gaps_are_markers) {
            self.has_gap |= is_between && missing_to > self.next;
            self.miss_below(missing_to);
        }
        if offset > self.next {
            self.first_marker.get_or_insert(self.next);
        }
        self.next = offset;
        self.window > window
    }

    fn judge(&mut self, offset: Offset, record: Option<&Record>) -> Verdict {
        let Some(record) = record.filter(|record| record.makes_sense_at(offset)) else {
            return Verdict::Nonsense;
        };
        let verdict = match &record.body {
            Body::Beat { term, seen, .. } | Body::Release { term, seen, .. } => {
                self.judge_leader_record(offset, *term, *seen, record)
            }
            Body::Claim { after, .. } => self.judge_claim(offset, *after, record),
            Body::Request { what, term, .. } => match (&self.view, what) {
                (View::Undecided(_), _) => Verdict::Undecided,
                (_, What::End) => Verdict::Effective,
                (_, What::Resign) if term.is_some() && self.term() == *term => Verdict::Effective,
                (_, What::Resign) => Verdict::Void,
            },
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
            self.first_marker = None;
            return Verdict::Effective;
        }
        self.earlier_job = EarlierJob::Unknown;
        match &mut self.view {
            View::Undecided(undecided) => undecided.unjudged = Some(offset),
            View::Led(_) | View::NeverLed | View::Released { .. } => {
                self.view = View::Undecided(Undecided { unjudged: Some(offset), ..Undecided::default() });
            }
        }
        Verdict::Undecided
    }

    /// L4: whether the claim of this term, later than the current one, may be among the offsets that were taken for markers. Then somebody has
    /// compacted the topic.
    fn claim_is_missing(&self, term: Offset) -> bool {
        let is_later = !matches!(self.view, View::Undecided(_)) && self.last_term().is_none_or(|last| last < term);
        is_later && self.first_marker.is_some_and(|first| first <= term)
    }

    /// L3 for a beat or a release; in an undecided view, whether it decides (L4).
    fn judge_leader_record(&mut self, offset: Offset, term: Offset, seen: Offset, record: &Record) -> Verdict {
        if self.claim_is_missing(term) {
            self.begin_window_at(offset);
        }
        let window = self.window;
        match &mut self.view {
            View::Led(current) if current.offset == term && current.member == record.member => {
                current.lease = current.lease.max(record.body.lease().unwrap_or_default());
                current.note_job(&record.body);
            }
            View::Led(_) | View::NeverLed | View::Released { .. } => return Verdict::Void,
            View::Undecided(undecided) => {
                let decides = seen >= window - 1 && undecided.unjudged.is_none_or(|claim| claim <= seen);
                if !decides {
                    if matches!(record.body, Body::Release { .. }) {
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
        term.note_job(&record.body);
        term
    }

    /// Notes the data of a beat about its job.
    fn note_job(&mut self, body: &Body) {
        if let Body::Beat { job, overlap, .. } = body {
            self.yields |= overlap.is_some_and(|overlap| overlap.yields);
            self.has_run |= job.is_some_and(|job| job.state == JobState::Running);
        }
    }
}

// ---- the state of the job from which a claim with --overlap took the lead -------------------------------------------

/// The job of the term before the current one, or before the last released one, as far as the records show it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum EarlierJob {
    /// No process of it is left.
    Gone,
    /// It may run until its lease is over, which began before the claim that overlaps it.
    Overlapped {
        /// Its term.
        term: Offset,
        /// The leader of that term, if its records were read.
        member: Option<MemberId>,
        /// That leader's name.
        name: Option<Box<str>>,
        /// The longest lease that it may hold.
        lease: Duration,
    },
    /// Too few records were read.
    Unknown,
}

impl EarlierJob {
    /// The term whose job may be alive, if one is known.
    pub(crate) const fn term(&self) -> Option<Offset> {
        match self {
            Self::Overlapped { term, .. } => Some(*term),
            Self::Gone | Self::Unknown => None,
        }
    }

    /// Applies a claim that took effect in this view. If the claim names no term, no job was left when it was sent.
    fn claimed(&mut self, view: &View, claim: &Record) {
        *self = match (claim.body.overlap().and_then(|overlap| overlap.over), view) {
            (None, _) => Self::Gone,
            (Some(over), View::Led(term)) if term.offset == over => {
                Self::Overlapped { term: over, member: term.member.clone(), name: term.name.clone(), lease: term.lease }
            }
            (Some(over), _) => Self::overlapped_unread(over),
        };
    }

    /// Applies a leader's record. The current leader's record shows whether the job before its own is gone, and the previous leader's is
    /// final about its own job.
    fn received(&mut self, verdict: Verdict, record: &Record) {
        match &record.body {
            Body::Beat { overlap, .. } if verdict == Verdict::Effective => {
                match overlap.and_then(|overlap| overlap.over) {
                    None => *self = Self::Gone,
                    Some(over) if *self == Self::Unknown => *self = Self::overlapped_unread(over),
                    Some(_) => {}
                }
            }
            Body::Release { term: released, .. } => {
                if let Self::Overlapped { term, member: Some(member), .. } = self
                    && term == released
                    && Some(&*member) == record.member.as_ref()
                {
                    *self = Self::Gone;
                }
            }
            Body::Beat { .. } | Body::Claim { .. } | Body::Request { .. } => {}
        }
    }

    const fn overlapped_unread(term: Offset) -> Self {
        Self::Overlapped { term, member: None, name: None, lease: LONGEST_LEASE }
    }
}

#[cfg(test)]
mod tests;
