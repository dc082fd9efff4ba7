//! An election as an operator sees it: its leader, or why there is none and until when; and its standbys. Every command that shows an
//! election uses this one object, so that two commands never disagree. It receives each record with the time of its reading, by two clocks.
//! [`Time`] decides, as in a candidate. The wall clock and the broker's timestamps only show the age of records that were written before
//! the reading began.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crate::hello::Hello;
use crate::journal::{EarlierJob, Journal, Verdict, View};
use crate::late_beat::{DELIVERY, longest_interval};
use crate::leadership::{LastTerm, Leader, Leadership, ReadAt, Receipt, Release, Request, TermState, Unknown, shown};
use crate::listener::silence;
use crate::precedence::HELLO_HOLDS;
use crate::record::{Body, Job, JobState, MemberId, Offset, Record, What, Why};
use crate::restart::{self, SOUND_RUN};
use crate::time::{Time, millis};
use crate::timings::{LONGEST_LEASE, cool_off};

pub use election::Election;
pub use history::{Finding, Gap, PastLeader, PastTerm, TermEnd};
pub use roles::{GroupHellos, LastHello, NoRoom};
pub use topic::{Place, Topic};
pub use topics::{JudgedRecord, ReadTopic, Topics};

use progress::Progress;

mod election;
mod history;
mod lost;
mod progress;
mod roles;
mod topic;
mod topics;

/// After so long without a record an election is dead.
const DEAD_AFTER: Duration = Duration::from_secs(7 * 24 * 3_600);

/// With more candidates than this whose runs have failed, those that are gone are forgotten: a process that is started again and again has a new
/// member id each time.
const MOST_FAILED: usize = 1_000;

/// An election, as far as it was read.
#[derive(Clone, Debug)]
pub struct Observer {
    journal: Journal,
    /// Whether the reading has reached the end that the log had when the reading began.
    is_live: bool,
    /// The broker's timestamp of the last record that was read live, and the time of its reading.
    broker_clock: Option<(Time, u64)>,
    /// The latest timestamp in the partition that came from a broker.
    latest_timestamp: Option<u64>,
    /// The newest record of the election, or hello.
    newest: Option<Receipt>,
    /// Whether the timestamps are by the broker's clock.
    is_brokers_time: bool,
    last_term: LastTerm,
    /// The number of void claims since the leader's last record.
    void_claims: u32,
    /// The candidates whose hellos were read. Boxed, since a map keeps room for eleven values, and most elections have three.
    candidates: BTreeMap<MemberId, Box<KnownCandidate>>,
    /// The number of failed runs in a row of each candidate, from its releases.
    failed_runs: BTreeMap<MemberId, u32>,
    /// The leaders whose silence ended with another candidate's claim, and candidates that have left, while an earlier hello could count: the last
    /// record of each, and for how long after it a hello shows nothing.
    lost: BTreeMap<MemberId, (Receipt, Duration)>,
    /// The last record before the past silence that was reported last.
    reported_silence: Option<Receipt>,
}

impl Observer {
    /// An observer whose reading has just begun.
    pub fn new(journal: Journal) -> Self {
        Self {
            journal,
            is_live: false,
            broker_clock: None,
            latest_timestamp: None,
            newest: None,
            is_brokers_time: true,
            last_term: LastTerm::default(),
            void_claims: 0,
            candidates: BTreeMap::new(),
            failed_runs: BTreeMap::new(),
            lost: BTreeMap::new(),
            reported_silence: None,
        }
    }

    /// The journal's view.
    pub const fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The leader, or the last leader.
    pub const fn leader(&self) -> Option<&Leader> {
        self.last_term.leader.as_ref()
    }

    /// Notes that the reading has reached the end that the log had when the reading began. A record that comes now is as old as its
    /// reading.
    pub(crate) const fn caught_up(&mut self) {
        self.is_live = true;
    }

    /// Handles the record at `offset`, which is not of this election.
    pub(crate) fn read_other(&mut self, now: Time, offset: Offset) {
        if offset >= self.journal.next() {
            self.journal.read_other(now, offset);
        }
    }

    /// Handles all records before `offset` that were not passed on; they are not of this election.
    pub(crate) fn read_others_up_to(&mut self, now: Time, offset: Offset) {
        let next = self.journal.next();
        if offset > next {
            self.journal.read_others(now, next, offset - 1);
        }
    }

    /// Handles a hello from any partition. This role is one of the writer's, which has left it if it `leaves`.
    pub fn hello_received(&mut self, at: ReadAt, hello: &Arc<Hello>, leaves: bool, written_ms: Option<u64>) {
        let received = self.receipt(at, written_ms);
        if leaves {
            self.candidates.remove(&hello.member);
        } else if !lost::is_dead(&self.lost, &hello.member, received) {
            let broker_now = self.broker_now(at);
            self.candidates.retain(|_, candidate| candidate.received.age(at.now, broker_now) < HELLO_HOLDS);
            let before = self.candidates.get(&hello.member).map(|known| known.first);
            // A later hello names the first one.
            let first = before.unwrap_or_else(|| hello.joined.is_none().then_some(received));
            let known = KnownCandidate { hello: Arc::clone(hello), received, first };
            self.candidates.insert(hello.member.clone(), Box::new(known));
        }
    }

    /// Handles the record at `offset`, not below the journal's [`next`](Journal::next), which is of this election; `None` if it can't be
    /// parsed. Returns the verdict and the changes.
    pub fn read(
        &mut self,
        at: ReadAt,
        offset: Offset,
        record: Option<&Record>,
        written_ms: Option<u64>,
    ) -> (Verdict, Vec<Change>) {
        let before = core::mem::discriminant(self.journal.view());
        let jobs_before = lost::side_by_side(&self.journal);
        let led_before = lost::leads(&self.journal, self.leader()).cloned();
        let released_before = self.last_term.release.as_ref().map(|release| release.term);
        // This uses the clock as it was known before this record, because the leader was reported by that clock until now.
        let silent = self.leader().map(|leader| self.age(leader.last_record, at)).unwrap_or_default();
        let verdict = self.journal.read(at.now, offset, record);
        let received = self.receipt(at, written_ms);
        self.last_term.read(self.journal.view(), offset, record, verdict, received);
        // By its own clock, which may be set forward, a leader that writes on was not silent.
        let writes_on = |leader: &Leader| self.journal.led().is_some_and(|term| term.offset == leader.term);
        let past = led_before
            .as_ref()
            .filter(|leader| verdict == Verdict::Effective && (self.is_brokers_time || !writes_on(leader)));
        let past = past.and_then(|leader| self.past_silence(leader, received));
        let silent = past.as_ref().map_or(silent, |past| past.silent);
        let mut changes: Vec<Change> = past.map(Change::FellSilent).into_iter().collect();
        match self.journal.view() {
            View::Led(term) if led_before.as_ref().is_none_or(|before| before.term != term.offset) => {
                self.void_claims = 0;
                changes.push(Change::Led);
            }
            View::Released { .. } => {
                let release = self.last_term.release.clone();
                changes.extend(release.filter(|release| released_before != Some(release.term)).map(Change::Released));
            }
            View::Undecided(_) if before != core::mem::discriminant(self.journal.view()) => {
                changes.push(Change::Missing);
            }
            View::Led(_) | View::NeverLed | View::Undecided(_) => {}
        }
        changes.extend(lost::changes_since(jobs_before, &self.journal));
        if let Some(leader) = led_before.as_ref().filter(|_| received.is_live)
            && lost::is_succeeded(leader, &self.journal, &changes)
        {
            // The claim may be read late.
            let silent = leader.last_record.written_before(received).filter(|_| self.is_brokers_time).unwrap_or(silent);
            // The partition may have moved to a broker whose clock is behind.
            let silent = silent.max(silence(leader.lease));
            changes.insert(0, Change::FellSilent(Silence::of(leader, silent, received.at_ms(at))));
        }
        if let Some(leader) = led_before.as_ref().filter(|leader| lost::is_lost(leader, &self.journal)) {
            // With `--overlap` it is alive, and may be about to leave.
            let is_overlapped = !lost::is_succeeded(leader, &self.journal, &changes);
            let last = if is_overlapped { (received, Duration::ZERO) } else { (leader.last_record, leader.lease) };
            if let Some(member) = &leader.member {
                self.lose(member, last, received);
            }
            self.candidates.retain(|member, known| !lost::is_dead(&self.lost, member, known.received));
        }
        match (verdict, record) {
            (Verdict::Effective, Some(record)) => {
                self.effective(record, received, (led_before.as_ref(), silent), &mut changes);
            }
            (Verdict::Void, Some(Record { body: Body::Claim { .. }, .. })) => self.void_claims += 1,
            // `--overlap`: the earlier leader reports that its job is gone. If it leaves, it sends no last hello.
            (Verdict::Void, Some(Record { body: Body::Release { term, why, .. }, member: Some(member), .. }))
                if changes.contains(&Change::EarlierJobGone { term: *term }) =>
            {
                self.has_released(member, why.as_deref().and_then(Why::parse), received);
            }
            _ => {}
        }
        (verdict, changes)
    }

    /// The time at which the current term's claim was appended, if it was read by a separate request.
    pub(crate) fn learn_claim(&mut self, offset: Offset, written_ms: Option<u64>) {
        if let Some(leader) = self.last_term.leader.as_mut().filter(|leader| leader.term == offset) {
            leader.claimed_ms = leader.claimed_ms.or(written_ms);
        }
    }

    /// Notes what an effective record changes besides the term. `before`: the leader before it, and for how long it was silent.
    fn effective(
        &mut self,
        record: &Record,
        received: Receipt,
        before: (Option<&Leader>, Duration),
        changes: &mut Vec<Change>,
    ) {
        match &record.body {
            Body::Beat { .. } => {
                self.void_claims = 0;
                record.member.iter().for_each(|member| self.note_attempt(member, before.0));
                changes.extend(self.changes_by_beat(before));
            }
            Body::Release { exit, why, .. } => {
                let Some(member) = &record.member else { return };
                let why = why.as_deref().and_then(Why::parse);
                self.has_released(member, why, received);
                if let Some(Why::Exited | Why::FactsUnavailable | Why::Failed | Why::Unhealthy) = why {
                    let has_succeeded = why != Some(Why::Unhealthy) && *exit == Some(0);
                    self.count_failed_runs(member, (!has_succeeded).then_some(1));
                }
            }
            Body::Request { what, by, reason, successor, .. } => {
                let by = by.clone().or_else(|| record.name.clone());
                let named = |id| self.candidates.get(id).map_or(MemberId::as_str(id), |known| known.shown()).into();
                let successor = successor.as_ref().map(named);
                changes.push(Change::Requested { what: *what, by, reason: reason.clone(), successor });
            }
            Body::Claim { .. } => {}
        }
    }

    /// Counts these failed runs of a candidate: those that ended by themselves, were unhealthy, or could not begin for want of the facts, since
    /// the last one that succeeded. `None`: one has succeeded.
    fn count_failed_runs(&mut self, member: &MemberId, more: Option<u32>) {
        let Some(more) = more else {
            self.failed_runs.remove(member);
            return;
        };
        let known = self.failed_runs.entry(member.clone()).or_default();
        *known = known.saturating_add(more);
        if self.failed_runs.len() > MOST_FAILED {
            self.failed_runs.retain(|known, _| known == member || self.candidates.contains_key(known));
        }
    }

    /// Counts the failed runs that another one follows in the same lead (`--restart`): its attempt shows them. That of a key or a window counts those
    /// of all machines. `before`: the leader before this record.
    fn note_attempt(&mut self, member: &MemberId, before: Option<&Leader>) {
        let is_of_key = self.candidates.get(member).is_some_and(|known| known.hello.once.is_some());
        let leader = self.leader().filter(|_| !is_of_key);
        let Some((term, job)) = leader.and_then(|leader| Some((leader.term, leader.job?))) else { return };
        let before = before.filter(|leader| leader.term == term).and_then(|leader| leader.job);
        let (attempt, earlier) = (job.attempt.unwrap_or(1), before.and_then(|job| job.attempt).unwrap_or(1));
        let ran = job.since_ms.filter(|_| job.state == JobState::Running).map(Duration::from_millis);
        if attempt < earlier || ran >= Some(SOUND_RUN) {
            self.count_failed_runs(member, None);
        } else if attempt > earlier {
            self.count_failed_runs(member, Some(attempt - earlier));
        }
    }

    /// What a beat has changed, which its leader wrote after a silence of `silent`.
    fn changes_by_beat(&self, (before, silent): (Option<&Leader>, Duration)) -> Vec<Change> {
        let (View::Led(_), Some(leader)) = (self.journal.view(), self.leader()) else { return Vec::new() };
        let before = before.filter(|before| before.term == leader.term);
        let of_silence = before.and_then(|before| match (before.late(), leader.late()) {
            (late, Some(now)) if late != Some(now) => Some(Change::LateBeat { gap: now.gap }),
            (Some(late), None) => Some(Change::SilenceEnded { silent: late.gap }),
            (None, None) if self.is_live && silent >= before.overdue_after() => Some(Change::SilenceEnded { silent }),
            (Some(_) | None, Some(_)) | (None, None) => None,
        });
        let job = before.and_then(|before| before.job).map(Job::without_time);
        let of_job = leader.job.filter(|now| job != Some(now.without_time())).map(Change::Job);
        of_silence.into_iter().chain(of_job).collect()
    }

    /// The leader, or why there is none.
    pub fn leadership(&self, at: ReadAt) -> Leadership<'_> {
        let waits = |known: &KnownCandidate| known.undecided_for() > self.age(known.received, at);
        let state = TermState::of(self.journal.view());
        let state = state.while_waited(|| self.candidates.values().any(|known| waits(known)));
        let by_age = self.last_term.leadership(state, |received| self.age(received, at));
        let unheard = by_age.may_lead().filter(|leader| self.is_unheard(leader, at));
        unheard.map_or(by_age, |leader| Leadership::Unknown(Unknown::Unheard { leader }))
    }

    /// The age of a record.
    pub fn age(&self, received: Receipt, at: ReadAt) -> Duration {
        received.age(at.now, self.broker_now(at))
    }

    /// When the leader will have missed three heartbeats, or when its silence will exceed its lease if it has, unless a record comes before;
    /// `None` if there is no leader.
    pub(crate) fn silent_at(&self, at: ReadAt) -> Option<Time> {
        self.leadership(at).changes_in().map(|left| at.now + left)
    }

    /// The standbys by the hellos of the last 75 s, sorted by name. The leader is left out, and so is a leader that stopped writing, unless
    /// it sent a hello after its lease was over.
    pub fn standbys(&self, at: ReadAt) -> Vec<Standby<'_>> {
        let leader = lost::leads(&self.journal, self.leader()).and_then(|leader| leader.member.as_ref());
        let others = self.candidates.values().filter(|candidate| Some(&candidate.hello.member) != leader);
        let standbys = others.map(|candidate| Standby {
            candidate,
            age: self.age(candidate.received, at),
            listens: candidate.first.map(|first| self.age(first, at)),
            failed_runs: self.failed_runs.get(&candidate.hello.member).copied().unwrap_or_default(),
        });
        let mut standbys: Vec<Standby<'_>> = standbys.filter(|standby| standby.age < HELLO_HOLDS).collect();
        standbys.sort_by(|one, other| {
            let [one, other] = [one, other].map(|standby| &standby.candidate.hello);
            (&one.name, &one.member).cmp(&(&other.name, &other.member))
        });
        standbys
    }

    /// The own hello of the leader, also if it is silent. After its release it stands by.
    pub fn leaders_hello(&self) -> Option<&KnownCandidate> {
        let leader = lost::leads(&self.journal, self.leader())?;
        self.candidates.get(leader.member.as_ref()?).map(|known| &**known)
    }

    /// The last request to end the election, if no term has begun since.
    pub const fn ended(&self) -> Option<&(Request, Receipt)> {
        self.last_term.ended.as_ref()
    }

    /// Whether nobody has to lead, if nobody does: the last run of a key has succeeded, or that of a window, after which the job had ended by itself
    /// (a leader of `--schedule` that stops leaves windows to come); or nobody stands by, and the last job has ended by itself with success, or an
    /// operator has ended the election.
    pub fn is_done(&self, at: ReadAt) -> bool {
        let success = self.last_term.release.as_ref().filter(|release| release.how.exit == Some(0));
        let has_exited =
            success.is_some_and(|release| release.how.why.as_deref().and_then(Why::parse) == Some(Why::Exited));
        let run = success.and_then(|release| release.how.once.as_ref());
        let is_over = self.ended().is_some() || has_exited;
        run.is_some_and(|run| has_exited || run.is_window != Some(true)) || (is_over && self.standbys(at).is_empty())
    }

    /// The number of void claims since the leader's last record.
    pub const fn void_claims(&self) -> u32 {
        self.void_claims
    }

    /// Whether a record of the election or a candidate's hello was read.
    pub fn has_read_anything(&self) -> bool {
        self.leader().is_some() || !self.candidates.is_empty() || !matches!(self.journal.view(), View::NeverLed)
    }

    /// Whether the election is dead: no record of it and no candidate's hello is younger than a week, which is longer than any lease. What
    /// shows many elections leaves it out unless it is asked for.
    pub fn is_dead(&self, at: ReadAt) -> bool {
        self.newest.is_some_and(|newest| self.age(newest, at) > DEAD_AFTER)
    }

    /// The broker's clock now, in milliseconds since 1970, as far as it is known. Before a record was read live it is this machine's clock,
    /// or the latest timestamp of a broker if that is later. If candidates stamp the records, it is no later than this machine's clock: theirs, or
    /// this one, may be ahead.
    pub fn broker_now(&self, at: ReadAt) -> u64 {
        match self.broker_clock {
            Some((read, written_ms)) => {
                let clock = written_ms.saturating_add(millis(at.now.since(read)));
                if self.is_brokers_time { clock } else { clock.min(at.wall_ms) }
            }
            None => at.wall_ms.max(self.latest_timestamp.unwrap_or_default()),
        }
    }

    fn receipt(&mut self, at: ReadAt, written_ms: Option<u64>) -> Receipt {
        if let (true, Some(written_ms)) = (self.is_live, written_ms) {
            self.broker_clock = Some((at.now, written_ms));
        }
        let received =
            Receipt { read: at.now, written_ms, is_brokers_time: self.is_brokers_time, is_live: self.is_live };
        if self.is_live || self.newest.is_none_or(|newest| newest.written_ms <= written_ms) {
            self.newest = Some(received);
        }
        received
    }
}

// ---- how long a standby leaves a released term to the other candidates ---------------------------------------------

impl Observer {
    /// `--overlap`: the term whose job may be alive after its successor has claimed, and for how long yet, at most (O4). No candidate claims
    /// meanwhile (O5).
    pub fn earlier_job(&self, at: ReadAt) -> Option<(Offset, Duration)> {
        let EarlierJob::Overlapped { term, lease, .. } = self.journal.earlier_job() else { return None };
        let gone_ms = self.leader()?.claimed_ms?.saturating_add(millis(silence(*lease)));
        let left = Duration::from_millis(gone_ms.saturating_sub(self.broker_now(at)));
        Some((*term, left)).filter(|_| !left.is_zero())
    }

    /// How much longer that candidate will not claim, as far as the records show it: it stood down and waits for another candidate, for
    /// two leases at most; its last runs failed; its history was cut (a topic that was created again), so that the records don't show it who
    /// leads; or it has not listened for as long as a silent leader's lease (R2). Zero if there is a leader.
    pub fn waits(&self, standby: &Standby<'_>, at: ReadAt) -> Duration {
        let (release, age) = match self.leadership(at) {
            Leadership::Released { release, age } => (release, age),
            Leadership::Forgotten | Leadership::NeverLed | Leadership::Unknown(_) => {
                return standby.candidate.undecided_for().saturating_sub(standby.age);
            }
            Leadership::Overdue { leader, .. } | Leadership::Silent { leader, .. } => {
                return standby.listens.map_or(Duration::ZERO, |listens| silence(leader.lease).saturating_sub(listens));
            }
            Leadership::Led { .. } => return Duration::ZERO,
        };
        let is_own = release.member.as_ref() == Some(&standby.candidate.hello.member);
        let why = release.how.why.as_deref().and_then(Why::parse).filter(|_| is_own);
        let leader = self.leader().filter(|leader| leader.term == release.term);
        let cool_off = why.zip(leader).and_then(|(why, leader)| cool_off(why, leader.lease)).unwrap_or_default();
        cool_off.max(standby.back_off()).saturating_sub(age)
    }
}

// Whether the age of a leader's last record, by the broker's timestamp and this machine's clock, may be wrong because the two clocks
// differ.

/// The tolerance between clocks: an age by a timestamp may be this much below the age by the clock before the clocks
/// count as different.
const CLOCKS_DIFFER: Duration = Duration::from_secs(1);

impl Observer {
    /// Notes a broker's timestamp of a record of the partition, of any election.
    pub(crate) fn stamped(&mut self, written_ms: u64) {
        self.latest_timestamp = self.latest_timestamp.max(Some(written_ms));
    }

    /// Notes that a record has a candidate's own timestamp.
    pub(crate) const fn stamped_by_candidates(&mut self) {
        self.is_brokers_time = false;
    }

    /// Whether all timestamps that were read are by the broker's clock.
    pub const fn is_brokers_time(&self) -> bool {
        self.is_brokers_time
    }

    /// How long to listen before the timestamps of the leader's records count. That is two of its heartbeats, if it seems silent or its
    /// record is in the future, and no record was read live that would show the difference of the clocks.
    pub fn doubts_timestamps(&self, at: ReadAt) -> Option<Duration> {
        let (View::Led(_), None, Some(leader)) = (self.journal.view(), self.broker_clock, self.leader()) else {
            return None;
        };
        let is_ahead = self.is_of_the_future(leader, at);
        let current = self.leadership(at);
        let is_doubtful = current.silent_for().is_some() && !self.was_silent_by_any_clock();
        (is_ahead || is_doubtful).then(|| leader.two_beats())
    }

    /// Whether the leader's last record lay in the future by this machine's clock when it was read, and nothing shows the broker's clock.
    fn is_of_the_future(&self, leader: &Leader, at: ReadAt) -> bool {
        let Receipt { read, written_ms, .. } = leader.last_record;
        let read_ms = at.wall_ms.saturating_sub(millis(at.now.since(read)));
        let is_ahead = written_ms.is_some_and(|written| written.saturating_sub(read_ms) > millis(CLOCKS_DIFFER));
        is_ahead && self.broker_clock.is_none()
    }

    /// Whether that is so, and nothing was heard for two heartbeats since.
    fn is_unheard(&self, leader: &Leader, at: ReadAt) -> bool {
        at.now.since(leader.last_record.read) >= leader.two_beats() && self.is_of_the_future(leader, at)
    }

    /// How far the newest record lies in the future by this machine's clock, if so: then the age of what was not read live is too short.
    pub fn is_ahead_by(&self, at: ReadAt) -> Option<Duration> {
        let newest_ms = self.newest.and_then(|newest| newest.written_ms).max(self.latest_timestamp)?;
        let ahead = Duration::from_millis(newest_ms.saturating_sub(at.wall_ms));
        (ahead > CLOCKS_DIFFER).then_some(ahead)
    }

    /// Whether another record that a broker has stamped shows that the leader has been silent, however much the brokers' clocks differ.
    fn was_silent_by_any_clock(&self) -> bool {
        /// Clocks of brokers differ by hours where a time zone was mistaken.
        const MOST_APART: Duration = Duration::from_secs(24 * 3_600);
        let last_ms = self.leader().and_then(|leader| leader.last_record.written_ms);
        let (Some(last_ms), Some(latest_ms)) = (last_ms, self.latest_timestamp) else { return false };
        latest_ms.saturating_sub(last_ms) >= millis(MOST_APART)
    }
}

// ---- the data that an observer has besides the last term: candidates, silences, and each change ---------------------

/// A candidate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KnownCandidate {
    /// Its last hello. The elections in which a process stands share it.
    pub hello: Arc<Hello>,
    /// When the hello was read and written.
    pub received: Receipt,
    /// The same of its first hello; `None` if that was not read.
    pub first: Option<Receipt>,
}

/// A standby.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Standby<'a> {
    /// The candidate.
    pub candidate: &'a KnownCandidate,
    /// The age of its last hello.
    pub age: Duration,
    /// For how long it has listened, if its first hello was read.
    pub listens: Option<Duration>,
    /// The number of its failed runs in a row.
    pub failed_runs: u32,
}

/// A change by a record.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum Change {
    /// `--overlap`: no process is left of the job of this term, which ran beside the leader's.
    EarlierJobGone { term: Offset },
    /// A leader that had missed heartbeats has written a record after this time, and still leads.
    SilenceEnded { silent: Duration },
    /// The leader's job.
    Job(Job),
    /// A heartbeat was appended so late after the previous record, by this gap, that the leader's lease was over: the leader no longer leads.
    LateBeat { gap: Duration },
    /// Before this record the leader had been silent for longer than its lease: by the broker's timestamps if the record was read late. If it
    /// is read live, only another's claim shows it, and `Observer::silent_at` came before.
    FellSilent(Silence),
    /// A process of the job of this term may have been alive for so long after the lease's end, when another candidate led: its release is void.
    LateFence { term: Offset, late: Duration },
    /// A new term; [`Observer::leader`](Observer::leader) is its leader.
    Led,
    /// Records are missing, so the leader is unknown.
    Missing,
    /// `--overlap`: the job of this term may run beside the leader's from now on, for the lease at most. The name is its leader's, if it was read.
    Overlapped { term: Offset, name: Option<Box<str>>, lease: Duration },
    /// The term is over.
    Released(Release),
    /// A request of the operator `by`. It may name a candidate that is to lead next.
    Requested { what: What, by: Option<Box<str>>, reason: Option<Box<str>>, successor: Option<Box<str>> },
    /// `--overlap`: the leader must stop; its job continues until another candidate has claimed.
    Yields,
}

impl Standby<'_> {
    /// The rest of its wait before it claims, because its last runs failed.
    pub fn back_off(&self) -> Duration {
        restart::back_off(self.failed_runs)
    }
}

/// A leader that was silent for longer than its lease, or has missed heartbeats.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Silence {
    /// The leader's term.
    pub term: Offset,
    /// The leader's name.
    pub name: Box<str>,
    /// Its lease.
    pub lease: Duration,
    /// The length of the silence, until now or until the next record.
    pub silent: Duration,
    /// Since when, or from when on, other candidates may claim, in milliseconds since 1970.
    pub since_ms: u64,
}

impl Silence {
    /// The silence of this leader of length `silent` up to a time in milliseconds since 1970.
    pub fn of(leader: &Leader, silent: Duration, until_ms: u64) -> Self {
        let since_ms = until_ms.saturating_sub(millis(silent)).saturating_add(millis(silence(leader.lease)));
        Self { term: leader.term, name: leader.shown().into(), lease: leader.lease, silent, since_ms }
    }
}

impl Leader {
    /// The time in which two of the leader's beats are read, if it is alive.
    pub fn two_beats(&self) -> Duration {
        longest_interval(self.lease, self.interval) * 2 + DELIVERY
    }
}

impl KnownCandidate {
    /// `--max-roles`: the most roles that it leads; `None` without a limit. A limit of as many roles as there are is none.
    pub fn max_roles(&self) -> Option<u32> {
        self.hello.max_roles.filter(|most| *most < self.hello.mapping().count())
    }

    /// How long after its hello it claims nothing, because the records don't show it who leads; zero if they show it. No candidate waits
    /// longer than for the longest lease: more is a mistake of the writer's.
    pub fn undecided_for(&self) -> Duration {
        Duration::from_millis(self.hello.waits_ms.unwrap_or_default()).min(silence(LONGEST_LEASE))
    }

    /// Its name, or its member id if it has no name.
    pub fn shown(&self) -> &str {
        shown(self.hello.name.as_deref(), Some(&self.hello.member))
    }
}

#[cfg(test)]
mod tests;
