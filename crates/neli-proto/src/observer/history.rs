//! The terms of an election in order, and the findings about them.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Change, Election};
use crate::journal::Verdict;
use crate::leadership::{HowReleased, Leader, Leadership, ReadAt, shown};
use crate::record::{Body, MemberId, Offset, Record};
use crate::time::millis;

/// A past or current term.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PastTerm {
    /// The offset of its claim.
    pub term: Offset,
    /// Its leader. Terms of one leader share it.
    pub leader: Arc<PastLeader>,
    /// The longest lease in the leader's records.
    pub lease: Duration,
    /// When its claim was appended, in milliseconds since 1970; `None` if the claim was not read.
    pub from_ms: Option<u64>,
    /// When its leader's last effective record within its lease was appended.
    pub last_record_ms: Option<u64>,
    /// How the term ended.
    pub end: TermEnd,
}

/// The leader of a past or current term.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PastLeader {
    /// Its member id; `None` if no record that was read contains it.
    pub member: Option<MemberId>,
    /// Its name.
    pub name: Option<Box<str>>,
}

/// How a term ended.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum TermEnd {
    /// It has not ended, as far as the records show it.
    Open,
    /// `--overlap`: another candidate claimed while the job continued, at this time in milliseconds since 1970; and how the job ended later, if its
    /// leader has said so.
    Overlapped { claimed_ms: Option<u64>, how: Option<Arc<HowReleased>> },
    /// It was released, at this time in milliseconds since 1970. Terms that ended alike share how.
    Released { released_ms: Option<u64>, how: Arc<HowReleased> },
    /// Another candidate claimed after the leader's silence.
    Silent,
    /// Records are missing.
    Unknown,
}

/// An irregularity.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum Finding {
    /// According to the broker's timestamps, a term was claimed before the lease of the previous term was over, which was not released. So two
    /// jobs may have run at once, for the overlap of both leases at most.
    Overlap { term: Offset, before: Offset, by: Duration },
    /// A process of a term's job may have been alive for so long after the lease's end. `overlaps`: another candidate led by then, so that two
    /// jobs may have run at once.
    LateFence { term: Offset, late: Duration, overlaps: bool },
    /// There was, or is (`is_open`), no leader after this term, for longer than a tenth of the lease.
    Gap { after: Offset, gap: Gap, is_open: bool },
    /// Records without effect, each with their number: claims that came too late, beats and releases of leaders whose term was over, and records
    /// that can't be parsed.
    NotEffective { claims: u64, words: u64, nonsense: u64 },
    /// So many times records were missing, so that a reader could not know the leader.
    Missing { times: u64 },
}

/// The length of a time without a leader. If a leader fell silent, its records do not show when it ceased to lead: between its last record and
/// the end of its lease.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Gap {
    /// From its last record or its release on.
    pub most: Duration,
    /// From the end of its lease or its release on.
    pub least: Duration,
}

impl Gap {
    /// The time from the end of `term` to `until_ms`.
    fn after(term: &PastTerm, until_ms: u64) -> Option<Self> {
        let since = |ms: u64| Duration::from_millis(until_ms.saturating_sub(ms));
        Some(Self { most: since(term.led_until_ms()?), least: since(term.lease_over_ms()?) })
    }

    /// Whether it is worth a finding after a term with this lease.
    fn is_long(self, lease: Duration) -> bool {
        self.most > lease / 10
    }
}

impl Finding {
    /// The term that it is about; `None` if it is about several.
    pub const fn term(&self) -> Option<Offset> {
        match self {
            Self::Overlap { term, .. } | Self::LateFence { term, .. } | Self::Gap { after: term, .. } => Some(*term),
            Self::Missing { .. } | Self::NotEffective { .. } => None,
        }
    }

    /// Whether two jobs may have run at once.
    pub const fn is_violation(&self) -> bool {
        matches!(self, Self::Overlap { .. } | Self::LateFence { overlaps: true, .. })
    }
}

/// What is odd about a record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Odd {
    LateClaim,
    /// It is of a leader whose term was over.
    Late,
    /// Records before it are missing.
    Missing,
    Nonsense,
}

impl Election {
    /// Handles the record at `offset`, which is of this election; the record is `None` if it can't be parsed. Returns the verdict and the
    /// changes, or `None` if the record was read before.
    pub fn judge(
        &mut self,
        at: ReadAt,
        offset: Offset,
        record: Option<&Record>,
        written_ms: Option<u64>,
    ) -> Option<(Verdict, Vec<Change>)> {
        if offset < self.observer.journal().next() {
            return None;
        }
        let (verdict, mut changes) = self.observer.read(at, offset, record, written_ms);
        let is_last_record = self.changed(&changes, record, written_ms);
        match verdict {
            Verdict::Effective => self.leader_record(),
            Verdict::Nonsense => self.odd.push((Odd::Nonsense, written_ms)),
            Verdict::Void if !is_last_record => changes.extend(self.void(record, written_ms)),
            Verdict::Undecided | Verdict::Void => {}
        }
        Some((verdict, changes))
    }

    /// Notes the changes by a record. Returns whether it is the release that reports the end of an earlier job, which is void and correct.
    fn changed(&mut self, changes: &[Change], record: Option<&Record>, written_ms: Option<u64>) -> bool {
        let mut is_last_record = false;
        for change in changes {
            match change {
                Change::EarlierJobGone { term } => {
                    is_last_record = !is_late(record);
                    self.overlapped_gone(*term, record);
                }
                Change::Led => self.led(),
                Change::Missing => {
                    self.odd.push((Odd::Missing, written_ms));
                    self.close(TermEnd::Unknown);
                }
                Change::Overlapped { term, .. } => self.overlapped(*term, written_ms),
                Change::Released(release) => {
                    if let Some(late) = release.how.late {
                        let finding = Finding::LateFence { term: release.term, late, overlaps: false };
                        self.late.push((finding, written_ms));
                    }
                    self.reopen(release.term);
                    let how = self.known_how(&release.how);
                    self.close(TermEnd::Released { released_ms: release.received.written_ms, how });
                }
                Change::FellSilent(_)
                | Change::LateBeat { .. }
                | Change::SilenceEnded { .. }
                | Change::Job(_)
                | Change::LateFence { .. }
                | Change::Requested { .. }
                | Change::Yields => {}
            }
        }
        is_last_record
    }

    /// The terms; the oldest one comes first.
    pub fn terms(&self) -> &[PastTerm] {
        &self.terms
    }

    /// Forgets the oldest terms beyond so many, and what is only for the [`findings`](Self::findings).
    pub(crate) fn keep_terms(&mut self, most: usize) {
        let surplus = self.terms.len().saturating_sub(most);
        self.terms.drain(..surplus);
        self.late.clear();
        self.odd.clear();
    }

    /// Takes over the terms of a reading of the same records, and of those before them.
    pub(super) fn learn_past(&mut self, past: Self) {
        self.terms = past.terms;
        // They hold a day, and few are added: room for twice as many would be half of the memory of all.
        self.terms.shrink_to_fit();
        if let Some(last) = self.terms.last() {
            self.observer.learn_claim(last.term, last.from_ms);
        }
    }

    /// For how long after the lease of that term its job may have been alive, if another candidate led by then.
    pub fn late_beside(&self, term: Offset) -> Option<Duration> {
        self.late.iter().find_map(|(finding, _)| {
            let Finding::LateFence { term: of, late, overlaps: true } = finding else { return None };
            (*of == term).then_some(*late)
        })
    }

    /// The time without a leader after the term at this index, by the broker's timestamps; `None` after the last
    /// term.
    pub fn gap_after(&self, at: usize) -> Option<Gap> {
        let term = self.terms.get(at).filter(|term| term.end != TermEnd::Open)?;
        Gap::after(term, self.terms.get(at + 1)?.from_ms?)
    }

    /// The time without a leader since the last term, if there is no leader now.
    pub fn open_gap(&self, at: ReadAt) -> Option<Gap> {
        let current = self.observer.leadership(at);
        let is_unled = current.silent_for().is_some() || matches!(current, Leadership::Released { .. });
        Gap::after(self.terms.last()?, self.observer.broker_now(at)).filter(|_| is_unled)
    }

    /// The findings so far, but for those about records that were appended before `from_ms`, in milliseconds since 1970. Each has the time at
    /// which the record that shows it was appended: for several records that of the last one, for a time without a leader that of the claim that
    /// ends it.
    pub fn findings(&self, at: ReadAt, from_ms: u64) -> Vec<(Finding, Option<u64>)> {
        let is_meant = |at_ms: Option<u64>| at_ms.is_none_or(|at_ms| at_ms >= from_ms);
        let mut findings: Vec<(Finding, Option<u64>)> = self.between_terms().collect();
        if let (Some(gap), Some(last)) = (self.open_gap(at), self.terms.last())
            && gap.is_long(last.lease)
        {
            let finding = Finding::Gap { after: last.term, gap, is_open: true };
            findings.push((finding, Some(at.wall_ms)));
        }
        findings.extend(self.late.iter().cloned());
        findings.retain(|(_, at_ms)| is_meant(*at_ms));
        let odd: Vec<(Odd, Option<u64>)> = self.odd.iter().filter(|(_, at_ms)| is_meant(*at_ms)).copied().collect();
        let count = |what: Odd| odd.iter().filter(|(odd, _)| *odd == what).count() as u64;
        let last_ms = |is_missing: bool| {
            odd.iter().rev().filter(|(odd, _)| (*odd == Odd::Missing) == is_missing).find_map(|(_, at_ms)| *at_ms)
        };
        let times = count(Odd::Missing);
        if times > 0 {
            findings.push((Finding::Missing { times }, last_ms(true)));
        }
        let (claims, words, nonsense) = (count(Odd::LateClaim), count(Odd::Late), count(Odd::Nonsense));
        if claims + words + nonsense > 0 {
            findings.push((Finding::NotEffective { claims, words, nonsense }, last_ms(false)));
        }
        findings
    }

    /// The findings between each term and the next one.
    fn between_terms(&self) -> impl Iterator<Item = (Finding, Option<u64>)> {
        let pairs = self.terms.iter().zip(self.terms.iter().skip(1)).enumerate();
        pairs.filter_map(|(at, (before, next))| {
            let claimed = next.from_ms.zip(before.lease_over_ms()).filter(|_| before.end == TermEnd::Silent);
            let finding =
                if let Some((claimed_ms, over_ms)) = claimed.filter(|(claimed_ms, over_ms)| claimed_ms < over_ms) {
                    let by = Duration::from_millis(over_ms - claimed_ms);
                    Finding::Overlap { term: next.term, before: before.term, by }
                } else {
                    let gap = self.gap_after(at).filter(|gap| gap.is_long(before.lease))?;
                    Finding::Gap { after: before.term, gap, is_open: false }
                };
            Some((finding, next.from_ms))
        })
    }

    fn led(&mut self) {
        let Some(leader) = self.observer.leader() else { return };
        let Leader { member, name, term, lease, claimed_ms, last_record, .. } = leader.clone();
        if self.reopen(term) {
            return;
        }
        self.close(TermEnd::Silent);
        let (from_ms, last_record_ms) = (claimed_ms, last_record.written_ms);
        let leader = self.known_leader(PastLeader { member, name });
        if self.terms.len() == self.terms.capacity() {
            // There may be many elections with many terms: twice the room would be wasted on most of them.
            self.terms.reserve_exact(self.terms.len() / 8 + 1);
        }
        self.terms.push(PastTerm { term, leader, lease, from_ms, last_record_ms, end: TermEnd::Open });
    }

    /// The same leader as that of an earlier term, if it led before.
    fn known_leader(&self, leader: PastLeader) -> Arc<PastLeader> {
        let known = self.terms.iter().rev().map(|term| &term.leader).find(|known| ***known == leader);
        known.map_or_else(|| Arc::new(leader), Arc::clone)
    }

    /// The same end as that of an earlier term, if one ended so before.
    fn known_how(&self, how: &Arc<HowReleased>) -> Arc<HowReleased> {
        let ends = self.terms.iter().rev();
        let mut known =
            ends.filter_map(|term| if let TermEnd::Released { how, .. } = &term.end { Some(how) } else { None });
        Arc::clone(known.find(|known| *known == how).unwrap_or(how))
    }

    /// Handles that a claim ended the term `over`, but not because of silence. It may name another term than the one before its own.
    fn overlapped(&mut self, over: Offset, claimed_ms: Option<u64>) {
        if let [.., before, _] = &mut *self.terms
            && before.term == over
            && !matches!(before.end, TermEnd::Released { .. })
        {
            before.end = TermEnd::Overlapped { claimed_ms, how: None };
        }
    }

    /// Handles that the job of the overlapped term `of` is gone, which its leader's release may have said.
    fn overlapped_gone(&mut self, of: Offset, record: Option<&Record>) {
        let Some(Body::Release { why, exit, once, .. }) = record.map(|record| &record.body) else { return };
        let said = HowReleased { why: why.clone(), request: None, exit: *exit, late: None, once: once.clone() };
        let said = self.known_how(&Arc::new(said));
        let overlapped = self.terms.iter_mut().rev().find(|term| term.term == of).map(|term| &mut term.end);
        if let Some(TermEnd::Overlapped { how, .. }) = overlapped {
            *how = Some(said);
        }
    }

    /// Continues the last term behind missing records, if it is this one. Returns whether it is.
    fn reopen(&mut self, term: Offset) -> bool {
        let Some(last) = self.terms.last_mut().filter(|last| last.term == term) else { return false };
        if last.end == TermEnd::Unknown {
            last.end = TermEnd::Open;
        }
        true
    }

    /// Ends the open term.
    fn close(&mut self, end: TermEnd) {
        if let Some(term) = self.terms.last_mut().filter(|term| term.end == TermEnd::Open) {
            term.end = end;
        }
    }

    /// Handles a record that may be the leader's.
    fn leader_record(&mut self) {
        let (Some(leader), Some(term)) = (self.observer.leader(), self.terms.last_mut()) else { return };
        // A late heartbeat does not lengthen the term.
        if leader.term == term.term && leader.late().is_none() {
            term.last_record_ms = leader.last_record.written_ms;
            term.lease = leader.lease;
        }
    }

    /// Notes a void record. Returns the change by a release that reports a job that was alive when another candidate led.
    fn void(&mut self, record: Option<&Record>, written_ms: Option<u64>) -> Option<Change> {
        let (odd, late) = match &record?.body {
            Body::Claim { .. } => (Odd::LateClaim, None),
            Body::Beat { .. } => (Odd::Late, None),
            Body::Release { term, late_ms, .. } => (Odd::Late, late_ms.map(|late_ms| (*term, late_ms))),
            Body::Request { .. } => return None,
        };
        self.odd.push((odd, written_ms));
        // The first of two releases of a term shows that no other candidate led by then.
        let is_released = |past: &PastTerm| matches!(past.end, TermEnd::Released { .. });
        let (term, late_ms) =
            late.filter(|(term, _)| !self.terms.iter().any(|past| past.term == *term && is_released(past)))?;
        let late = Duration::from_millis(late_ms);
        self.late.push((Finding::LateFence { term, late, overlaps: true }, written_ms));
        Some(Change::LateFence { term, late })
    }
}

/// Whether the record reports processes of a job that were alive after its lease's end.
fn is_late(record: Option<&Record>) -> bool {
    matches!(record.map(|record| &record.body), Some(Body::Release { late_ms: Some(_), .. }))
}

impl PastTerm {
    /// When the leader's lease was over at the latest, in milliseconds since 1970. For a term that has not ended: when it will be, unless the
    /// leader writes another record. `None` if that is unknown.
    pub fn lease_over_ms(&self) -> Option<u64> {
        let silent_ms = self.last_record_ms.map(|last_ms| last_ms.saturating_add(millis(self.lease)));
        match &self.end {
            TermEnd::Unknown => None,
            TermEnd::Overlapped { claimed_ms, .. } => *claimed_ms,
            // A release that was appended later belongs to a term that was over before.
            TermEnd::Released { released_ms, .. } => Some((*released_ms)?.min(silent_ms.unwrap_or(u64::MAX))),
            TermEnd::Open | TermEnd::Silent => silent_ms,
        }
    }

    /// Until when the leader led at least, in milliseconds since 1970: up to its release, if that was in time, or up to the end of its lease,
    /// if its job was alive then; otherwise up to its last record, after which it may have died at once.
    pub fn led_until_ms(&self) -> Option<u64> {
        let over_ms = self.lease_over_ms()?;
        let is_known = match &self.end {
            TermEnd::Overlapped { .. } => true,
            TermEnd::Released { released_ms, how } => how.late.is_some() || *released_ms == Some(over_ms),
            TermEnd::Open | TermEnd::Silent | TermEnd::Unknown => false,
        };
        if is_known { Some(over_ms) } else { self.last_record_ms }
    }

    /// The leader's name, or its member id if it had no name.
    pub fn shown(&self) -> &str {
        shown(self.leader.name.as_deref(), self.leader.member.as_ref())
    }
}

#[cfg(test)]
mod tests;
