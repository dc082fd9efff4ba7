//! The terms of an election, one after the other, and what the law finds odd about them.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Change, Leader, Leadership, Observer, ReadAt, Release, millis};
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
    pub last_record_ms: Option<u64>,
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
        /// Nobody leads yet.
        is_open: bool,
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

/// A finding, and where and when it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Found {
    /// What was found.
    pub finding: Finding,
    /// When the record was appended that shows it, in milliseconds since 1970; the last one where there are several. Of a gap the claim
    /// that ends it.
    pub at_ms: Option<u64>,
}

impl Finding {
    /// The term that it is about; none where it is about several.
    #[must_use]
    pub const fn term(&self) -> Option<Offset> {
        match self {
            Self::Overlap { term, .. } | Self::LateFence { term, .. } | Self::Gap { after: term, .. } => Some(*term),
            Self::Missing { .. } | Self::NotEffective { .. } => None,
        }
    }

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
    late: Vec<Found>,
    void_claims: u64,
    void_records: u64,
    nonsense: u64,
    /// When the last record was appended that did not count.
    not_effective_ms: Option<u64>,
    missing: u64,
    missing_ms: Option<u64>,
    /// What was appended before, in milliseconds since 1970, is no finding.
    from_ms: u64,
}

/// A shorter time without a leader is none to speak of.
const SHORT_GAP: Duration = Duration::from_secs(1);

impl History {
    /// Of a reading that has just begun.
    #[must_use]
    pub const fn new(journal: Journal) -> Self {
        let observer = Observer::new(journal);
        Self {
            observer,
            terms: Vec::new(),
            late: Vec::new(),
            void_claims: 0,
            void_records: 0,
            nonsense: 0,
            not_effective_ms: None,
            missing: 0,
            missing_ms: None,
            from_ms: 0,
        }
    }

    /// The same, in which what was appended before `from_ms`, in milliseconds since 1970, is no finding.
    #[must_use]
    pub fn since(self, from_ms: u64) -> Self {
        Self { from_ms, ..self }
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
        let mut is_last_record = false;
        for change in changes {
            match change {
                // The release that tells so is void, and as it should be.
                Change::EarlierJobGone { .. } => is_last_record = !is_late(record),
                Change::Led => self.led(),
                Change::Missing => {
                    if self.is_looked_at(written_ms) {
                        self.missing += 1;
                        self.missing_ms = written_ms.or(self.missing_ms);
                    }
                    self.close(TermEnd::Unknown);
                }
                Change::Overlapped(job) => self.overlapped(job.term, written_ms),
                Change::Released(release) => {
                    if let Some(late) = release.late {
                        self.late(Finding::LateFence { term: release.term, late, overlaps: false }, written_ms);
                    }
                    self.close(TermEnd::Released(release));
                }
                Change::FellSilent(_)
                | Change::SilenceEnded { .. }
                | Change::Job(_)
                | Change::Requested { .. }
                | Change::Yields => {}
            }
        }
        match verdict {
            Verdict::Effective => return self.leader_record(),
            Verdict::Undecided => return,
            Verdict::Void if is_last_record => return,
            Verdict::Nonsense | Verdict::Void if !self.is_looked_at(written_ms) => return,
            Verdict::Nonsense => self.nonsense += 1,
            Verdict::Void => self.void(record, written_ms),
        }
        self.not_effective_ms = written_ms.or(self.not_effective_ms);
    }

    /// Whether what is odd about a record is a finding.
    fn is_looked_at(&self, written_ms: Option<u64>) -> bool {
        written_ms.is_none_or(|written_ms| written_ms >= self.from_ms)
    }

    fn late(&mut self, finding: Finding, at_ms: Option<u64>) {
        if self.is_looked_at(at_ms) {
            self.late.push(Found { finding, at_ms });
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

    /// For how long nobody has led since the last term, where nobody does.
    #[must_use]
    pub fn open_gap(&self, at: ReadAt) -> Option<Duration> {
        let last = self.terms.last()?;
        let over_ms = match self.observer.leadership(at) {
            Leadership::Silent { .. } => last.silent_ms()?,
            Leadership::Released { .. } => last.over_ms()?,
            Leadership::Forgotten | Leadership::Led { .. } | Leadership::NeverLed | Leadership::Unknown => return None,
        };
        Some(Duration::from_millis(at.wall_ms.saturating_sub(over_ms)))
    }

    /// What is odd, as it is seen now.
    #[must_use]
    pub fn findings(&self, at: ReadAt) -> Vec<Found> {
        let mut findings = self.between_terms();
        let open = self.open_gap(at).filter(|gap| *gap >= SHORT_GAP);
        if let (Some(gap), Some(last)) = (open, self.terms.last()) {
            let finding = Finding::Gap { after: last.term, gap, is_open: true };
            findings.push(Found { finding, at_ms: Some(at.wall_ms) });
        }
        findings.retain(|found| self.is_looked_at(found.at_ms));
        findings.extend(self.late.iter().cloned());
        if self.missing > 0 {
            findings.push(Found { finding: Finding::Missing { times: self.missing }, at_ms: self.missing_ms });
        }
        let (claims, words, nonsense) = (self.void_claims, self.void_records, self.nonsense);
        if claims + words + nonsense > 0 {
            let finding = Finding::NotEffective { claims, words, nonsense };
            findings.push(Found { finding, at_ms: self.not_effective_ms });
        }
        findings
    }

    /// What is odd between a term and the next.
    fn between_terms(&self) -> Vec<Found> {
        let mut findings = Vec::new();
        for (at, pair) in self.terms.windows(2).enumerate() {
            let [before, next] = pair else { continue };
            let claimed = next.from_ms.zip(before.over_ms()).filter(|_| before.end == TermEnd::Silent);
            if let Some((claimed_ms, over_ms)) = claimed.filter(|(claimed_ms, over_ms)| claimed_ms < over_ms) {
                let by = Duration::from_millis(over_ms - claimed_ms);
                let finding = Finding::Overlap { term: next.term, before: before.term, by };
                findings.push(Found { finding, at_ms: next.from_ms });
            }
            if let Some(gap) = self.gap_after(at).filter(|gap| *gap >= SHORT_GAP) {
                let finding = Finding::Gap { after: before.term, gap, is_open: false };
                findings.push(Found { finding, at_ms: next.from_ms });
            }
        }
        findings
    }

    fn led(&mut self) {
        let Some(leader) = self.observer.leader() else { return };
        let Leader { member, name, term, lease, claimed_ms, last_record, .. } = leader.clone();
        // It goes on, behind what is missing.
        if let Some(last) = self.terms.last_mut().filter(|last| last.term == term) {
            last.end = TermEnd::Open;
            return;
        }
        self.close(TermEnd::Silent);
        let (from_ms, last_record_ms) = (claimed_ms, last_record.written_ms);
        self.terms.push(PastTerm { term, member, name, lease, from_ms, last_record_ms, end: TermEnd::Open });
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
    fn leader_record(&mut self) {
        let (Some(leader), Some(term)) = (self.observer.leader(), self.terms.last_mut()) else { return };
        if leader.term == term.term {
            term.last_record_ms = leader.last_record.written_ms;
            term.lease = leader.lease;
        }
    }

    fn void(&mut self, record: Option<&Record>, written_ms: Option<u64>) {
        match record.map(|record| &record.body) {
            Some(Body::Claim { .. }) => self.void_claims += 1,
            Some(Body::Release { term, late_ms: Some(late_ms), .. }) => {
                self.void_records += 1;
                let late = Duration::from_millis(*late_ms);
                self.late(Finding::LateFence { term: *term, late, overlaps: true }, written_ms);
            }
            Some(Body::Beat { .. } | Body::Release { .. }) => self.void_records += 1,
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
            TermEnd::Released(release) => release.received.written_ms,
            TermEnd::Silent => self.silent_ms(),
        }
    }

    /// When its lease is over, at the latest, unless its leader says something more.
    #[must_use]
    pub fn silent_ms(&self) -> Option<u64> {
        Some(self.last_record_ms?.saturating_add(millis(self.lease)))
    }

    /// How the leader was called, or its member id where it had no name.
    #[must_use]
    pub fn shown(&self) -> &str {
        super::known::shown(self.name.as_deref(), self.member.as_ref())
    }
}

#[cfg(test)]
mod tests;
