//! The law (L1 to L4): a fold over the records of one election, the same for every reader.
//!
//! It knows what it has read and no more. It does not know who reads it: leases, silence and claims are the
//! candidate's.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use crate::record::{Body, MemberId, Offset, Record, What};
use crate::time::Time;

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

/// What the law says of a record.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Verdict {
    /// It counts.
    Effective,
    /// It makes no sense where it stands; it counts in L1 alone.
    Nonsense,
    /// This reader can't tell yet.
    Undecided,
    /// It came too late, or from somebody who does not lead.
    Void,
}

/// A term, as far as it was read.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Term {
    /// The offset of its claim: the fencing token.
    pub offset: Offset,
    /// The longest lease among its effective records.
    pub lease: Duration,
    /// Who leads: the member of its claim; where that was not read, of the first beat or release of it that counted.
    pub member: Option<MemberId>,
    /// How the leader is called.
    pub name: Option<Box<str>>,
}

/// What a reader knows of the election.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum View {
    /// Somebody leads, as far as the records say; or did, and is silent.
    Led(Term),
    /// The partition was read from offset 0 and holds no effective claim.
    NeverLed,
    /// The last word on the current term is its release.
    Released {
        /// The term that is over.
        term: Offset,
        /// Why, as its release says.
        why: Option<Box<str>>,
    },
    /// L4: what was read decides nothing.
    Undecided(Undecided),
}

/// What is remembered while nothing is decided.
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
struct Answer {
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
    /// The last record handed over, whatever its key.
    last: Option<Offset>,
    /// The last record of the election.
    last_of_election: Option<Offset>,
    view: View,
    answers: Vec<Answer>,
    /// R0: the topic deletes whole segments from its head and nothing else, so what is missing in between is a marker.
    gaps_are_markers: bool,
    /// Something between two records was taken for missing.
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
        Self {
            window: from,
            next: from,
            last: None,
            last_of_election: None,
            view,
            answers: Vec::new(),
            gaps_are_markers: false,
            has_gap: false,
        }
    }

    /// The same reader begins again at `from`: what it asked about the log's end stays answered.
    #[must_use]
    pub fn read_again_from(&self, from: Offset, origin: Origin) -> Self {
        let (answers, gaps_are_markers) = (self.answers.clone(), self.gaps_are_markers);
        Self { answers, gaps_are_markers, ..Self::read_from(from, origin) }
    }

    /// R0 has been judged (L4). Whether something that was taken for missing were markers: it has to be read again.
    pub fn topic_judged(&mut self, gaps_are_markers: bool) -> bool {
        self.gaps_are_markers = gaps_are_markers;
        gaps_are_markers && self.has_gap
    }

    /// The answer to a question asked at `asked`: the log ends before `end`. `now` is when it arrived.
    pub fn answered(&mut self, now: Time, asked: Time, end: Offset) {
        self.answers.retain(|answer| now.since(answer.asked) <= ANSWER_HOLDS);
        self.answers.push(Answer { asked, end });
    }

    /// Whatever stands below `offset` and was not handed over is missing, and was no marker (L4).
    pub fn miss_below(&mut self, offset: Offset) {
        if offset <= self.next {
            return;
        }
        self.next = offset;
        self.window = offset;
        if !matches!(self.view, View::Undecided(_)) {
            self.view = View::Undecided(Undecided::new());
        }
    }

    /// A record of another key stands at `offset`.
    pub fn read_other(&mut self, now: Time, offset: Offset) {
        self.move_to(now, offset);
        self.last = Some(offset);
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

    /// Everything below `next` has been handed over: what stood behind the last record were markers, or is judged
    /// when the next record shows the gap.
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

    /// The current term (L2), in a decided view.
    #[must_use]
    pub fn term(&self) -> Option<Offset> {
        match &self.view {
            View::Led(term) => Some(term.offset),
            View::NeverLed | View::Released { .. } | View::Undecided(_) => None,
        }
    }

    /// L4: whatever is missing below `offset` moves the window, unless it can only be markers.
    fn move_to(&mut self, now: Time, offset: Offset) {
        let holds = |answer: &&Answer| now.since(answer.asked) <= ANSWER_HOLDS;
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
        match &record.body {
            Body::Beat { term, seen, .. } => self.judge_word_of_leader(*term, *seen, record, false),
            Body::Claim { after, .. } => self.judge_claim(offset, *after, record),
            Body::Release { term, seen, .. } => self.judge_word_of_leader(*term, *seen, record, true),
            Body::Request { what, term, .. } => match (&self.view, what) {
                (View::Undecided(_), _) => Verdict::Undecided,
                (_, What::End) => Verdict::Effective,
                (_, What::Resign) if term.is_some() && self.term() == *term => Verdict::Effective,
                (_, What::Resign) => Verdict::Void,
            },
            Body::Hello { .. } => Verdict::Nonsense,
        }
    }

    /// L1 and L2, as far as L4 lets this reader judge.
    fn judge_claim(&mut self, offset: Offset, after: Offset, record: &Record) -> Verdict {
        if self.last_of_election.is_some_and(|last| last > after) {
            return Verdict::Void;
        }
        if after >= self.window - 1 {
            self.view = View::Led(Term::of(offset, record));
            return Verdict::Effective;
        }
        match &mut self.view {
            View::Undecided(undecided) => undecided.unjudged = Some(offset),
            View::Led(_) | View::NeverLed | View::Released { .. } => {
                self.view = View::Undecided(Undecided { unjudged: Some(offset), ..Undecided::new() });
            }
        }
        Verdict::Undecided
    }

    /// L3 for a beat or a release; in an undecided view, whether it decides (L4).
    fn judge_word_of_leader(&mut self, term: Offset, seen: Offset, record: &Record, is_release: bool) -> Verdict {
        let window = self.window;
        match &mut self.view {
            View::Led(current) if current.offset == term && current.member == record.member => {
                current.lease = current.lease.max(record.body.lease().unwrap_or_default());
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
        Self {
            offset,
            lease: record.body.lease().unwrap_or_default(),
            member: record.member.clone(),
            name: record.name.clone(),
        }
    }
}

impl Undecided {
    const fn new() -> Self {
        Self { empty_since_cut_head: false, unjudged: None, released: BTreeSet::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_nanos(1_000_000_000_000);

    fn record(body: Body) -> Record {
        Record { member: Some(MemberId::from("m")), name: None, seq: Some(1), body }
    }

    fn claim(after: Offset) -> Record {
        record(Body::Claim { after, lease_ms: 1000 })
    }

    fn beat(term: Offset, seen: Offset) -> Record {
        record(Body::Beat { term, seen, lease_ms: 1000, state: None, pid: None, attempt: None, since_ms: None })
    }

    fn release(term: Offset, seen: Offset) -> Record {
        record(Body::Release {
            term,
            seen,
            why: Some("exited".into()),
            exit: Some(0),
            late_ms: None,
            group_member: None,
        })
    }

    /// A reading, and what it says of records at growing offsets.
    struct Reading(Journal);

    impl Reading {
        fn of(from: Offset, origin: Origin) -> Self {
            Self(Journal::read_from(from, origin))
        }

        fn says(&mut self, offset: Offset, record: &Record, verdict: Verdict) -> &mut Self {
            assert_eq!(self.0.read(NOW, offset, Some(record)), verdict, "offset {offset}");
            self
        }
    }

    #[test]
    fn l1_the_first_claim_wins_and_its_double_is_void() {
        Reading::of(0, Origin::Beginning)
            .says(0, &claim(-1), Verdict::Effective)
            .says(1, &claim(-1), Verdict::Void)
            .says(2, &beat(0, 1), Verdict::Effective)
            .says(3, &claim(1), Verdict::Void)
            .says(4, &claim(3), Verdict::Effective)
            .says(5, &beat(0, 3), Verdict::Void);
    }

    #[test]
    fn l1_nonsense_of_this_election_counts_and_other_keys_do_not() {
        let mut reading = Reading::of(0, Origin::Beginning);
        assert_eq!(reading.0.read(NOW, 0, None), Verdict::Nonsense);
        reading.says(1, &claim(-1), Verdict::Void);
        reading.0.read_other(NOW, 2);
        reading.0.read_other(NOW, 3);
        reading.says(4, &claim(1), Verdict::Effective);
    }

    #[test]
    fn l2_a_release_ends_the_term_once() {
        let mut reading = Reading::of(0, Origin::Beginning);
        reading
            .says(0, &claim(-1), Verdict::Effective)
            .says(1, &release(0, 0), Verdict::Effective)
            .says(2, &release(0, 0), Verdict::Void)
            .says(3, &beat(0, 0), Verdict::Void);
        assert_eq!(reading.0.view(), &View::Released { term: 0, why: Some("exited".into()) });
    }

    #[test]
    fn l3_the_longest_lease_of_the_term_is_kept() {
        let mut reading = Reading::of(0, Origin::Beginning);
        reading.says(0, &claim(-1), Verdict::Effective);
        let mut long = beat(0, 0);
        if let Body::Beat { lease_ms, .. } = &mut long.body {
            *lease_ms = 9000;
        }
        reading.says(1, &long, Verdict::Effective).says(2, &beat(0, 1), Verdict::Effective);
        let View::Led(term) = reading.0.view() else { panic!("not led") };
        assert_eq!(term.lease, Duration::from_secs(9));
    }

    #[test]
    fn l3_another_member_speaks_for_no_term() {
        let by = |member: &str, body: Body| Record { member: Some(MemberId::from(member)), ..record(body) };
        Reading::of(0, Origin::Beginning)
            .says(0, &by("a", claim(-1).body), Verdict::Effective)
            .says(1, &by("b", release(0, 0).body), Verdict::Void)
            .says(2, &by("b", beat(0, 1).body), Verdict::Void)
            .says(3, &Record { member: None, ..beat(0, 2) }, Verdict::Void)
            .says(4, &by("a", beat(0, 3).body), Verdict::Effective);
        // Where the claim was not read, the first that counted is the leader.
        Reading::of(100, Origin::Middle)
            .says(100, &by("a", beat(7, 99).body), Verdict::Effective)
            .says(101, &by("b", release(7, 100).body), Verdict::Void)
            .says(102, &by("a", release(7, 101).body), Verdict::Effective);
    }

    #[test]
    fn l4_a_start_in_the_middle_waits_for_a_word_that_reaches_into_it() {
        Reading::of(100, Origin::Middle)
            .says(100, &beat(7, 98), Verdict::Undecided)
            .says(101, &release(6, 98), Verdict::Undecided)
            .says(102, &beat(7, 99), Verdict::Effective)
            .says(103, &claim(102), Verdict::Effective);
    }

    #[test]
    fn l4_a_claim_that_cannot_be_judged_undoes_a_decision() {
        Reading::of(100, Origin::Middle)
            .says(100, &claim(90), Verdict::Undecided)
            .says(101, &beat(7, 99), Verdict::Undecided)
            .says(102, &claim(90), Verdict::Void)
            .says(103, &beat(100, 100), Verdict::Effective)
            .says(104, &claim(103), Verdict::Effective);
    }

    #[test]
    fn l4_a_release_read_meanwhile_is_remembered() {
        let mut reading = Reading::of(100, Origin::Middle);
        reading
            .says(100, &release(7, 98), Verdict::Undecided)
            // The leader's word as of 99, overtaken by its own guard's release.
            .says(101, &beat(7, 99), Verdict::Void);
        assert_eq!(reading.0.view(), &View::Released { term: 7, why: None });
    }

    #[test]
    fn l4_a_missing_offset_moves_the_window_whatever_the_view_was() {
        let mut reading = Reading::of(0, Origin::Beginning);
        reading
            .says(0, &claim(-1), Verdict::Effective)
            .says(2, &beat(0, 0), Verdict::Undecided)
            .says(3, &beat(0, 2), Verdict::Effective)
            .says(5, &beat(0, 3), Verdict::Undecided);
        assert_eq!(reading.0.last(), 5);
        reading.says(6, &beat(0, 4), Verdict::Effective);
    }

    #[test]
    fn l4_what_an_answer_excludes_is_a_marker_for_a_minute_after_the_asking() {
        let mut journal = Journal::read_from(0, Origin::Beginning);
        journal.read(NOW, 0, Some(&claim(-1)));
        journal.answered(NOW, NOW, 1);
        let later = NOW + Duration::from_secs(60);
        assert_eq!(journal.read(later, 2, Some(&beat(0, 0))), Verdict::Effective);
        let too_late = later + Duration::from_millis(1);
        assert_eq!(journal.read(too_late, 4, Some(&beat(0, 2))), Verdict::Undecided);
    }

    #[test]
    fn l4_part_of_a_gap_may_be_markers() {
        let mut journal = Journal::read_from(0, Origin::Beginning);
        journal.read(NOW, 0, Some(&claim(-1)));
        journal.answered(NOW, NOW, 3);
        assert_eq!(journal.read(NOW, 6, Some(&beat(0, 2))), Verdict::Effective, "1 and 2 are missing: w is 3");
        let mut journal = Journal::read_from(0, Origin::Beginning);
        journal.read(NOW, 0, Some(&claim(-1)));
        journal.answered(NOW, NOW, 3);
        assert_eq!(journal.read(NOW, 6, Some(&beat(0, 1))), Verdict::Undecided, "1 and 2 are missing: w is 3");
    }

    #[test]
    fn l4_where_whole_segments_are_deleted_a_gap_between_two_records_holds_markers() {
        let mut reading = Reading::of(0, Origin::Beginning);
        assert!(!reading.0.topic_judged(true), "nothing was misread");
        reading.says(0, &claim(-1), Verdict::Effective).says(9, &beat(0, 0), Verdict::Effective);
        let mut again = reading.0.read_again_from(3, Origin::Middle);
        assert_eq!(
            again.read(NOW, 5, Some(&beat(0, 3))),
            Verdict::Undecided,
            "what is missing at the start may be a record"
        );

        let mut early = Reading::of(0, Origin::Beginning);
        early.says(0, &claim(-1), Verdict::Effective).says(2, &beat(0, 0), Verdict::Undecided);
        assert!(early.0.topic_judged(true), "what was taken for missing is to be read again");
    }

    #[test]
    fn before_the_first_record_the_last_is_the_one_before_the_window() {
        assert_eq!(Journal::read_from(0, Origin::Beginning).last(), -1);
        assert_eq!(Journal::read_from(100, Origin::Middle).last(), 99);
    }

    #[test]
    fn a_cut_head_is_empty_until_a_record_of_the_election_is_read() {
        let mut journal = Journal::read_from(100, Origin::CutHead);
        let is_empty = |journal: &Journal| matches!(journal.view(), View::Undecided(u) if u.empty_since_cut_head);
        journal.read_other(NOW, 100);
        assert!(is_empty(&journal));
        journal.read(NOW, 101, None);
        assert!(!is_empty(&journal));
    }
}
