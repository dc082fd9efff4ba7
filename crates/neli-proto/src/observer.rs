//! What an operator sees of an election: who leads, or why nobody does and until when; and who stands by.
//!
//! Every command that shows an election draws from this one object, so that no two of them disagree. It is told what was read and
//! when, by two clocks: what is decided by time goes by [`Time`], as for a candidate; the wall clock and the broker's timestamps
//! serve only to tell the age of what was written before the reading began.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use crate::journal::{Journal, Verdict, View};
use crate::listener::silence;
use crate::precedence::HELLO_HOLDS;
use crate::process_hello::ProcessHello;
use crate::record::{Body, MemberId, Offset, Record, What};
use crate::time::Time;
use lost::Lost;
use receipt::millis;
use side_by_side::SideBySide;

pub use history::{Finding, Found, History, PastTerm, TermEnd};
pub use known::{
    Change, Job, KnownCandidate, Leader, Leadership, Release, ResignRequest, Silence, Standby, VoidClaims,
};
pub use receipt::{AgeBy, ReadAt, Receipt};
pub use room::NoRoom;
pub use side_by_side::OverlappedJob;

mod history;
mod known;
mod lost;
mod receipt;
mod room;
mod side_by_side;
mod waits;

/// What tells its age by a timestamp may be as much younger than the clock says before the clocks are taken to differ.
const CLOCKS_DIFFER: Duration = Duration::from_secs(1);

/// An election, as it is read.
#[derive(Clone, Debug)]
pub struct Observer {
    journal: Journal,
    /// Everything that was there when the reading began has been read.
    is_live: bool,
    /// What the broker's clock said of the last record that was read as it was written, and when that was.
    broker_clock: Option<(Time, u64)>,
    /// Who leads, or led last, as far as that was read.
    leader: Option<Leader>,
    /// How the last term ended, where it was released.
    release: Option<Release>,
    /// Claims that were void since the leader's last word.
    void_claims: Option<VoidClaims>,
    /// The candidates that have said hello.
    candidates: BTreeMap<MemberId, KnownCandidate>,
    /// How often in a row the runs of a candidate have failed, as its releases tell.
    failed_runs: BTreeMap<MemberId, u32>,
    /// The leaders over whose silence another has claimed.
    lost: Lost,
}

impl Observer {
    /// Of a reading that has just begun.
    #[must_use]
    pub const fn new(journal: Journal) -> Self {
        Self {
            journal,
            is_live: false,
            broker_clock: None,
            leader: None,
            release: None,
            void_claims: None,
            candidates: BTreeMap::new(),
            failed_runs: BTreeMap::new(),
            lost: Lost::new(),
        }
    }

    /// The law's view.
    #[must_use]
    pub const fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Who leads, or led last.
    #[must_use]
    pub const fn leader(&self) -> Option<&Leader> {
        self.leader.as_ref()
    }

    /// The log ended at `end` when that was `asked`.
    pub fn answered(&mut self, now: Time, asked: Time, end: Offset) {
        self.journal.answered(now, asked, end);
    }

    /// Everything that was there when the reading began has been read: what comes now is as old as its reading.
    pub const fn caught_up(&mut self) {
        self.is_live = true;
    }

    /// A record of no interest stands at `offset`.
    pub fn read_other(&mut self, now: Time, offset: Offset) {
        if offset >= self.journal.next() {
            self.journal.read_other(now, offset);
        }
    }

    /// Whatever stands before `offset` and was not handed over are records of no interest.
    pub fn read_others_up_to(&mut self, now: Time, offset: Offset) {
        let next = self.journal.next();
        if offset > next {
            self.journal.read_others(now, next, offset - 1);
        }
    }

    /// A hello stands at `offset`; `None` is one that does not parse.
    pub fn read_hello(&mut self, at: ReadAt, offset: Offset, record: Option<Record>, written_ms: Option<u64>) {
        self.read_other(at.now, offset);
        if let Some(record) = record {
            self.record_received(at, record, written_ms);
        }
    }

    /// A hello was read, wherever it stands.
    pub fn record_received(&mut self, at: ReadAt, record: Record, written_ms: Option<u64>) {
        let received = self.receipt(at, written_ms);
        let Record { member: Some(member), name, body, .. } = record else { return };
        let Body::Hello { host, pid, version, elector, priority, overlap_ms, leaves, .. } = body else { return };
        if leaves {
            self.candidates.remove(&member);
            return;
        }
        let (overlaps, has_many_roles, max_roles) = (overlap_ms.is_some(), false, None);
        let candidate = KnownCandidate {
            member,
            name,
            host,
            pid,
            version,
            elector,
            priority,
            has_many_roles,
            max_roles,
            overlaps,
            received,
        };
        self.is_there(at, candidate);
    }

    /// The hello of a process with many roles, this one among them, was read, wherever it stands.
    pub fn process_hello_received(&mut self, at: ReadAt, hello: ProcessHello, written_ms: Option<u64>) {
        let received = self.receipt(at, written_ms);
        if hello.leaves {
            self.candidates.remove(&hello.member);
        } else {
            self.is_there(at, KnownCandidate::of_process(hello, received));
        }
    }

    fn is_there(&mut self, at: ReadAt, candidate: KnownCandidate) {
        if self.lost.is_dead(&candidate.member, candidate.received) {
            return;
        }
        let broker_now = self.broker_now(at);
        self.candidates.retain(|_, candidate| candidate.received.age(at.now, broker_now) < HELLO_HOLDS);
        self.candidates.insert(candidate.member.clone(), candidate);
    }

    /// A record of the election stands at `offset`, not below the journal's [`next`](Journal::next); `None` is one that does not
    /// parse. Gives the law's verdict, and what it changes.
    pub fn read(
        &mut self,
        at: ReadAt,
        offset: Offset,
        record: Option<&Record>,
        written_ms: Option<u64>,
    ) -> (Verdict, Vec<Change>) {
        let before = core::mem::discriminant(self.journal.view());
        let term_before = self.journal.term();
        let jobs_before = SideBySide::of(&self.journal);
        let led_before = lost::leads(&self.journal, self.leader.as_ref()).cloned();
        // By the clock as it was known before: what was told of the leader until now was told by that.
        let silent = self.leader.as_ref().map(|leader| self.age(leader.last_record, at)).unwrap_or_default();
        let verdict = self.journal.read(at.now, offset, record);
        let received = self.receipt(at, written_ms);
        let past = led_before.as_ref().filter(|_| verdict == Verdict::Effective);
        let past = past.and_then(|leader| lost::past_silence(leader, received));
        let silent = past.as_ref().map_or(silent, |past| past.silent);
        let mut changes: Vec<Change> = past.map(Change::FellSilent).into_iter().collect();
        match self.journal.view() {
            View::Led(term) if term_before != Some(term.offset) => {
                let claimed_ms = written_ms.filter(|_| term.offset == offset);
                self.leader = Some(Leader::of(term, received, claimed_ms));
                (self.release, self.void_claims) = (None, None);
                changes.push(Change::Led);
            }
            View::Released { term, why } if self.release.as_ref().is_none_or(|release| release.term != *term) => {
                let release =
                    Release::of(*term, why.clone(), record.filter(|_| verdict == Verdict::Effective), received);
                self.release = Some(release.clone());
                changes.push(Change::Released(release));
            }
            View::Undecided(_) if before != core::mem::discriminant(self.journal.view()) => {
                self.release = None;
                changes.push(Change::Missing);
            }
            View::Led(_) | View::NeverLed | View::Released { .. } | View::Undecided(_) => {}
        }
        changes.extend(jobs_before.change_to(&self.journal));
        if let Some(leader) = led_before.filter(|leader| lost::is_lost(leader, &self.journal, &changes)) {
            self.lost.insert(&leader, received);
            self.candidates.retain(|member, known| !self.lost.is_dead(member, known.received));
        }
        match (verdict, record) {
            (Verdict::Effective, Some(record)) => self.effective(record, received, silent, &mut changes),
            (Verdict::Void, Some(Record { body: Body::Claim { .. }, name, member, .. })) => {
                let count = self.void_claims.as_ref().map_or(0, |claims| claims.count) + 1;
                let by = name.clone().or_else(|| member.as_ref().map(|member| member.as_str().into()));
                self.void_claims = Some(VoidClaims { count, by, received });
            }
            _ => {}
        }
        (verdict, changes)
    }

    /// When the claim of the current term was appended, read by itself.
    pub fn learn_claim(&mut self, offset: Offset, written_ms: Option<u64>) {
        if let Some(leader) = self.leader.as_mut().filter(|leader| leader.term == offset) {
            leader.claimed_ms = leader.claimed_ms.or(written_ms);
        }
    }

    /// What an effective record tells beyond who leads.
    fn effective(&mut self, record: &Record, received: Receipt, silent: Duration, changes: &mut Vec<Change>) {
        match &record.body {
            Body::Beat { state, pid, attempt, since_ms, .. } => {
                let job = state.map(|state| Job { state, pid: *pid, attempt: *attempt, since_ms: *since_ms });
                self.beat(job, received, silent, changes);
            }
            Body::Release { exit, why, .. } => {
                let Some(member) = &record.member else { return };
                // Whoever stays says hello again; but one with many roles, which says when it goes.
                if self.candidates.get(member).is_some_and(|candidate| !candidate.has_many_roles) {
                    self.candidates.remove(member);
                }
                match (why.as_deref(), exit) {
                    (Some("exited" | "failed"), Some(0)) => {
                        self.failed_runs.remove(member);
                    }
                    (Some("exited" | "failed"), _) => {
                        *self.failed_runs.entry(member.clone()).or_default() += 1;
                    }
                    _ => {}
                }
            }
            Body::Request { what, by, reason, .. } => {
                let by = by.clone().or_else(|| record.name.clone());
                if let (What::Resign, Some(leader)) = (what, &mut self.leader) {
                    leader.resign = Some(ResignRequest { by: by.clone(), reason: reason.clone() });
                }
                changes.push(Change::Requested { what: *what, by, reason: reason.clone() });
            }
            Body::Claim { .. } | Body::Hello { .. } => {}
        }
    }

    /// The leader is alive, and was `silent` for so long.
    fn beat(&mut self, job: Option<Job>, received: Receipt, silent: Duration, changes: &mut Vec<Change>) {
        let (View::Led(term), Some(leader)) = (self.journal.view(), &mut self.leader) else { return };
        self.void_claims = None;
        if leader.last_record != received {
            let is_past = changes.iter().any(|change| matches!(change, Change::FellSilent(_)));
            if is_past || (self.is_live && silent >= silence(leader.lease)) {
                changes.push(Change::SilenceEnded { silent });
            }
            leader.interval = leader.last_record.written_before(received);
            leader.last_record = received;
        }
        leader.lease = term.lease;
        if let Some(job) = job {
            let before = leader.job.replace(job);
            if before.map(Job::without_time) != Some(job.without_time()) {
                changes.push(Change::Job(job));
            }
        }
    }

    /// Who leads, or why nobody does.
    #[must_use]
    pub fn leadership(&self, at: ReadAt) -> Leadership<'_> {
        match (self.journal.view(), &self.leader, &self.release) {
            (View::Led(_), Some(leader), _) => {
                let age = self.age(leader.last_record, at);
                let over = silence(leader.lease);
                let left = leader.lease.saturating_sub(age);
                if age < over {
                    Leadership::Led { leader, age, left }
                } else {
                    Leadership::Silent { leader, age, claimable_since: age.saturating_sub(over) }
                }
            }
            (View::NeverLed, ..) => Leadership::NeverLed,
            (View::Undecided(undecided), ..) if undecided.empty_since_cut_head => Leadership::Forgotten,
            (View::Released { .. }, _, Some(release)) => {
                Leadership::Released { release, age: self.age(release.received, at) }
            }
            _ => Leadership::Unknown,
        }
    }

    /// How long ago something was said.
    #[must_use]
    pub fn age(&self, received: Receipt, at: ReadAt) -> Duration {
        received.age(at.now, self.broker_now(at))
    }

    /// When the leader will have been silent beyond its lease, unless it is heard before; none where nobody leads.
    #[must_use]
    pub fn silent_at(&self, at: ReadAt) -> Option<Time> {
        match self.leadership(at) {
            Leadership::Led { leader, age, .. } => Some(at.now + silence(leader.lease).saturating_sub(age)),
            Leadership::Forgotten
            | Leadership::NeverLed
            | Leadership::Released { .. }
            | Leadership::Silent { .. }
            | Leadership::Unknown => None,
        }
    }

    /// For how long to listen before what the timestamps tell of the leader is believed: two of its heartbeats, where it seems to be
    /// silent, or to have spoken in the future, and nothing was read as it was written that tells by how much the clocks differ.
    #[must_use]
    pub fn doubts_timestamps(&self, at: ReadAt) -> Option<Duration> {
        let (View::Led(_), None, Some(leader)) = (self.journal.view(), self.broker_clock, &self.leader) else {
            return None;
        };
        let is_ahead = leader.last_record.written_ms.is_some_and(|written| {
            written.saturating_sub(at.wall_ms) > u64::try_from(CLOCKS_DIFFER.as_millis()).unwrap_or(u64::MAX)
        });
        let is_silent = matches!(self.leadership(at), Leadership::Silent { .. });
        (is_ahead || is_silent).then(|| leader.two_beats())
    }

    /// Who stands by, as the hellos of the last 75 s tell, in the order of their names. The leader is not among them, nor is one that led
    /// until it fell silent, unless it has said hello since its lease was over.
    #[must_use]
    pub fn standbys(&self, at: ReadAt) -> Vec<Standby<'_>> {
        let broker_now = self.broker_now(at);
        let leader = lost::leads(&self.journal, self.leader.as_ref()).and_then(|leader| leader.member.as_ref());
        let others = self.candidates.values().filter(|candidate| Some(&candidate.member) != leader);
        let standbys = others.map(|candidate| Standby {
            candidate,
            age: candidate.received.age(at.now, broker_now),
            failed_runs: self.failed_runs.get(&candidate.member).copied().unwrap_or_default(),
        });
        let mut standbys: Vec<Standby<'_>> = standbys.filter(|standby| standby.age < HELLO_HOLDS).collect();
        standbys.sort_by(|one, other| {
            (&one.candidate.name, &one.candidate.member).cmp(&(&other.candidate.name, &other.candidate.member))
        });
        standbys
    }

    /// What the leader's own hello told of it.
    #[must_use]
    pub fn leaders_hello(&self) -> Option<&KnownCandidate> {
        self.candidates.get(self.leader.as_ref()?.member.as_ref()?)
    }

    /// Claims that were void since the leader's last word.
    #[must_use]
    pub const fn void_claims(&self) -> Option<&VoidClaims> {
        self.void_claims.as_ref()
    }

    /// Whether any record of the election, or a hello of a candidate, was read.
    #[must_use]
    pub fn has_read_anything(&self) -> bool {
        self.leader.is_some() || !self.candidates.is_empty() || !matches!(self.journal.view(), View::NeverLed)
    }

    /// What the broker's clock says now, in milliseconds since 1970, as far as that is known.
    fn broker_now(&self, at: ReadAt) -> u64 {
        self.broker_clock.map_or(at.wall_ms, |(read, written_ms)| written_ms.saturating_add(millis(at.now.since(read))))
    }

    fn receipt(&mut self, at: ReadAt, written_ms: Option<u64>) -> Receipt {
        if let (true, Some(written_ms)) = (self.is_live, written_ms) {
            self.broker_clock = Some((at.now, written_ms));
        }
        Receipt { read: at.now, written_ms, is_live: self.is_live }
    }
}

#[cfg(test)]
mod tests;
