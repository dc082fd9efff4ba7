//! The terms of an election, one after the other, and what the law finds odd about them.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Change, Leader, Observer, ReadAt, Release, millis};
use crate::journal::{Journal, Verdict};
use crate::record::{Body, MemberId, Offset, Record};
use crate::time::Time;

/// A term, as it was.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PastTerm {
    /// The offset of its claim.
    pub term: Offset,
    /// Who led.
    pub member: Option<MemberId>,
    /// How the leader was called.
    pub name: Option<Box<str>>,
    /// The longest lease that its records tell of.
    pub lease: Duration,
    /// When its claim was appended, in milliseconds since 1970; none where it was not read.
    pub from_ms: Option<u64>,
    /// When its leader's last effective word was appended.
    pub last_word_ms: Option<u64>,
    /// How it ended.
    pub end: TermEnd,
}

/// How a term ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TermEnd {
    /// It has not, as far as the records tell.
    Open,
    /// `--overlap`: another claimed while its job ran on.
    Overlapped {
        /// When, in milliseconds since 1970.
        claimed_ms: Option<u64>,
    },
    /// It was released.
    Released(Release),
    /// Another claimed after the silence of its leader.
    Silent,
    /// Records are missing.
    Unknown,
}

/// Something that is odd.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Finding {
    /// By the broker's timestamps a term was claimed before the lease of the term before was over, which was not released: two jobs may
    /// have run at once.
    Overlap {
        /// The later term.
        term: Offset,
        /// The earlier one.
        before: Offset,
        /// By how much, at most.
        by: Duration,
    },
    /// Something of a term's job may have been alive after the lease's end.
    LateFence {
        /// Which term's.
        term: Offset,
        /// For how long.
        late: Duration,
        /// Another led by then, so that two jobs may have run at once.
        overlaps: bool,
    },
    /// Nobody led.
    Gap {
        /// After this term.
        after: Offset,
        /// For how long.
        gap: Duration,
    },
    /// Records of leaders that led no more, claims that came too late, and records that make no sense.
    NotEffective {
        /// How many claims were void.
        claims: u64,
        /// How many beats and releases were void.
        words: u64,
        /// How many records made no sense.
        nonsense: u64,
    },
    /// Records were missing so many times, so that a reader could not tell who led.
    Missing {
        /// So many times.
        times: u64,
    },
}

impl Finding {
    /// Whether two jobs may have run at once.
    #[must_use]
    pub const fn is_violation(&self) -> bool {
        matches!(self, Self::Overlap { .. } | Self::LateFence { overlaps: true, .. })
    }
}

/// A journal, as it is read from its beginning.
#[derive(Clone, Debug)]
pub struct History {
    observer: Observer,
    terms: Vec<PastTerm>,
    late: Vec<Finding>,
    void_claims: u64,
    void_words: u64,
    nonsense: u64,
    missing: u64,
}

/// A shorter time without a leader is none to speak of.
const SHORT_GAP: Duration = Duration::from_secs(1);

impl History {
    /// Of a reading that has just begun.
    #[must_use]
    pub const fn new(journal: Journal) -> Self {
        let observer = Observer::new(journal);
        Self { observer, terms: Vec::new(), late: Vec::new(), void_claims: 0, void_words: 0, nonsense: 0, missing: 0 }
    }

    /// What is seen at its end.
    #[must_use]
    pub const fn observer(&self) -> &Observer {
        &self.observer
    }

    /// The log ended at `end` when that was `asked`.
    pub fn answered(&mut self, now: Time, asked: Time, end: Offset) {
        self.observer.answered(now, asked, end);
    }

    /// A record of no interest stands at `offset`.
    pub fn read_other(&mut self, now: Time, offset: Offset) {
        self.observer.read_other(now, offset);
    }

    /// A record of the election stands at `offset`; `None` is one that does not parse.
    pub fn read(&mut self, at: ReadAt, offset: Offset, record: Option<&Record>, written_ms: Option<u64>) {
        if offset < self.observer.journal().next() {
            return;
        }
        let (verdict, changes) = self.observer.read(at, offset, record, written_ms);
        let mut is_last_word = false;
        for change in changes {
            match change {
                // The release that tells so is void, and as it should be.
                Change::EarlierJobGone { .. } => is_last_word = !is_late(record),
                Change::Led => self.led(),
                Change::Missing => {
                    self.missing += 1;
                    self.close(TermEnd::Unknown);
                }
                Change::Overlapped(job) => self.overlapped(job.term, written_ms),
                Change::Released(release) => {
                    if let Some(late) = release.late {
                        self.late.push(Finding::LateFence { term: release.term, late, overlaps: false });
                    }
                    self.close(TermEnd::Released(release));
                }
                Change::HeardAgain { .. } | Change::Job(_) | Change::Requested { .. } | Change::Yields => {}
            }
        }
        match verdict {
            Verdict::Effective => self.word(),
            Verdict::Nonsense => self.nonsense += 1,
            Verdict::Undecided => {}
            Verdict::Void if is_last_word => {}
            Verdict::Void => self.void(record),
        }
    }

    /// The terms, oldest first.
    #[must_use]
    pub fn terms(&self) -> &[PastTerm] {
        &self.terms
    }

    /// For how long nobody led after the term at this place, by the broker's timestamps; none after the last one.
    #[must_use]
    pub fn gap_after(&self, at: usize) -> Option<Duration> {
        let over_ms = self.terms.get(at)?.over_ms()?;
        let next_ms = self.terms.get(at + 1)?.from_ms?;
        Some(Duration::from_millis(next_ms.saturating_sub(over_ms)))
    }

    /// What is odd.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (at, pair) in self.terms.windows(2).enumerate() {
            let [before, next] = pair else { continue };
            let claimed = next.from_ms.zip(before.over_ms()).filter(|_| before.end == TermEnd::Silent);
            if let Some((claimed_ms, over_ms)) = claimed.filter(|(claimed_ms, over_ms)| claimed_ms < over_ms) {
                let by = Duration::from_millis(over_ms - claimed_ms);
                findings.push(Finding::Overlap { term: next.term, before: before.term, by });
            }
            if let Some(gap) = self.gap_after(at).filter(|gap| *gap >= SHORT_GAP) {
                findings.push(Finding::Gap { after: before.term, gap });
            }
        }
        findings.extend(self.late.iter().cloned());
        if self.missing > 0 {
            findings.push(Finding::Missing { times: self.missing });
        }
        let (claims, words, nonsense) = (self.void_claims, self.void_words, self.nonsense);
        if claims + words + nonsense > 0 {
            findings.push(Finding::NotEffective { claims, words, nonsense });
        }
        findings
    }

    fn led(&mut self) {
        let Some(leader) = self.observer.leader() else { return };
        let Leader { member, name, term, lease, claimed_ms, word, .. } = leader.clone();
        // It goes on, behind what is missing.
        if let Some(last) = self.terms.last_mut().filter(|last| last.term == term) {
            last.end = TermEnd::Open;
            return;
        }
        self.close(TermEnd::Silent);
        let (from_ms, last_word_ms) = (claimed_ms, word.written_ms);
        self.terms.push(PastTerm { term, member, name, lease, from_ms, last_word_ms, end: TermEnd::Open });
    }

    /// The claim that was read has ended that term, and not for its leader's silence.
    fn overlapped(&mut self, over: Offset, claimed_ms: Option<u64>) {
        if let Some(term) = self.terms.iter_mut().rev().find(|term| term.term == over) {
            term.end = TermEnd::Overlapped { claimed_ms };
        }
    }

    /// The term that was open is over.
    fn close(&mut self, end: TermEnd) {
        if let Some(term) = self.terms.last_mut().filter(|term| term.end == TermEnd::Open) {
            term.end = end;
        }
    }

    /// The leader has said something, perhaps.
    fn word(&mut self) {
        let (Some(leader), Some(term)) = (self.observer.leader(), self.terms.last_mut()) else { return };
        if leader.term == term.term {
            term.last_word_ms = leader.word.written_ms;
            term.lease = leader.lease;
        }
    }

    fn void(&mut self, record: Option<&Record>) {
        match record.map(|record| &record.body) {
            Some(Body::Claim { .. }) => self.void_claims += 1,
            Some(Body::Release { term, late_ms: Some(late_ms), .. }) => {
                self.void_words += 1;
                let late = Duration::from_millis(*late_ms);
                self.late.push(Finding::LateFence { term: *term, late, overlaps: true });
            }
            Some(Body::Beat { .. } | Body::Release { .. }) => self.void_words += 1,
            Some(Body::Hello { .. } | Body::Request { .. }) | None => {}
        }
    }
}

/// Whether it tells that something of a job was alive after its lease's end.
fn is_late(record: Option<&Record>) -> bool {
    matches!(record.map(|record| &record.body), Some(Body::Release { late_ms: Some(_), .. }))
}

impl PastTerm {
    /// When its leader's right was over, at the latest, in milliseconds since 1970; none where it is not, or that is not known.
    #[must_use]
    pub fn over_ms(&self) -> Option<u64> {
        match &self.end {
            TermEnd::Open | TermEnd::Unknown => None,
            TermEnd::Overlapped { claimed_ms } => *claimed_ms,
            TermEnd::Released(release) => release.heard.written_ms,
            TermEnd::Silent => self.silent_ms(),
        }
    }

    /// When its lease is over, at the latest, unless its leader says something more.
    #[must_use]
    pub fn silent_ms(&self) -> Option<u64> {
        Some(self.last_word_ms?.saturating_add(millis(self.lease)))
    }

    /// How the leader was called, or its member id where it had no name.
    #[must_use]
    pub fn shown(&self) -> &str {
        super::sight::shown(self.name.as_deref(), self.member.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;
    use crate::journal::Origin;

    const AT: ReadAt = ReadAt { now: Time::from_nanos(1_000_000_000_000), wall_ms: 1_000_000 };

    fn history(records: &[(u64, &str)]) -> History {
        let mut history = History::new(Journal::read_from(0, Origin::Beginning));
        for (offset, (ms, line)) in (0..).zip(records) {
            history.read(AT, offset, Record::parse(line.as_bytes()).as_ref(), Some(*ms));
        }
        history
    }

    fn claim(member: &str, after: Offset) -> alloc::string::String {
        format!(r#"{{"v":1,"kind":"claim","member":"{member}","seq":1,"after":{after},"lease_ms":5000}}"#)
    }

    fn beat(member: &str, term: Offset) -> alloc::string::String {
        format!(r#"{{"v":1,"kind":"beat","member":"{member}","seq":2,"term":{term},"seen":{term},"lease_ms":5000}}"#)
    }

    #[test]
    fn a_job_that_another_overlaps_is_nothing_odd() {
        let marked =
            |line: alloc::string::String, more: &str| line.replace("\"lease_ms\"", &format!("{more},\"lease_ms\""));
        let history = history(&[
            (0, &marked(claim("a", -1), "\"overlap_ms\":900")),
            (1_000, &marked(beat("a", 0), "\"overlap_ms\":900,\"yields\":true")),
            (1_100, &marked(claim("b", 1), "\"overlap_ms\":900,\"over\":0")),
            (1_500, &release("a", 0, "")),
            (2_000, &marked(beat("b", 2), "\"overlap_ms\":900")),
        ]);
        let ends: Vec<TermEnd> = history.terms().iter().map(|term| term.end.clone()).collect();
        assert_eq!(ends, [TermEnd::Overlapped { claimed_ms: Some(1_100) }, TermEnd::Open]);
        assert_eq!(history.findings(), []);
    }

    fn release(member: &str, term: Offset, late: &str) -> alloc::string::String {
        format!(
            r#"{{"v":1,"kind":"release","member":"{member}","seq":9,"term":{term},"seen":{term},"why":"exited","exit":3{late}}}"#
        )
    }

    #[test]
    fn terms_follow_each_other_with_their_ends_and_gaps() {
        let history = history(&[
            (1_000, &claim("m", -1)),
            (2_000, &beat("m", 0)),
            (3_000, &release("m", 0, "")),
            (3_040, &claim("n", 2)),
            (9_000, &beat("n", 3)),
            (16_000, &claim("m", 4)),
        ]);
        let terms: Vec<(Offset, &str, Option<u64>, Option<u64>)> =
            history.terms().iter().map(|term| (term.term, term.shown(), term.from_ms, term.over_ms())).collect();
        let expected =
            [(0, "m", Some(1_000), Some(3_000)), (3, "n", Some(3_040), Some(14_000)), (5, "m", Some(16_000), None)];
        assert_eq!(terms, expected);
        let gaps: Vec<Option<u128>> = (0..3).map(|at| history.gap_after(at).map(|gap| gap.as_millis())).collect();
        assert_eq!(gaps, [Some(40), Some(2_000), None]);
        assert_eq!(history.terms()[1].end, TermEnd::Silent);
        assert_eq!(history.findings(), [Finding::Gap { after: 3, gap: Duration::from_secs(2) }]);
    }

    #[test]
    fn a_claim_before_the_lease_s_end_is_an_overlap() {
        let history = history(&[(0, &claim("m", -1)), (4_000, &beat("m", 0)), (8_500, &claim("n", 1))]);
        let overlap = Finding::Overlap { term: 2, before: 0, by: Duration::from_millis(500) };
        assert_eq!(history.findings(), [overlap]);
        assert!(history.findings()[0].is_violation());
    }

    #[test]
    fn a_late_fence_overlaps_where_another_leads_by_then() {
        let late = r#","late_ms":70"#;
        let own = history(&[(0, &claim("m", -1)), (6_000, &release("m", 0, late))]);
        let finding = Finding::LateFence { term: 0, late: Duration::from_millis(70), overlaps: false };
        assert_eq!(own.findings(), [finding]);
        assert!(!own.findings()[0].is_violation());
        let beside = history(&[(0, &claim("m", -1)), (5_100, &claim("n", 0)), (5_200, &release("m", 0, late))]);
        assert_eq!(beside.findings().iter().filter(|finding| finding.is_violation()).count(), 1);
    }

    #[test]
    fn what_does_not_count_is_counted() {
        let history =
            history(&[(0, &claim("m", -1)), (1, &claim("n", -1)), (2, "x"), (3, &beat("o", 0)), (4, &beat("m", 0))]);
        assert_eq!(history.findings(), [Finding::NotEffective { claims: 1, words: 1, nonsense: 1 }]);
        assert_eq!(history.terms().len(), 1);
    }
}
