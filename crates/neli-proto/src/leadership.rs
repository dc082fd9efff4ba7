//! Who leads an election, or why nobody does, or that this is unknown: the one model of it. Candidates, followers and commands read the same
//! records, keep the last term here, and ask here what it shows, so that two places can't disagree.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;

use crate::journal::{Term, Verdict, View};
use crate::late_beat::{self, LateBeat};
use crate::listener::{Listener, silence};
use crate::record::{Body, Job, KeyedRun, MemberId, Offset, Record, What, Why};
use crate::time::{Time, millis};

/// Who leads, or why nobody does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum Leadership<'a> {
    /// There is a leader, with the age of its last record, and the rest of its lease. For another than this process that is an upper limit, since
    /// the lease runs from the record's sending.
    Led { leader: &'a Leader, age: Duration, left: Duration },
    /// The leader has missed three heartbeats: it may be dead, and its lease may still run, for the time that is `left`. No standby will claim
    /// for `claimable_in`.
    Overdue { leader: &'a Leader, age: Duration, left: Duration, claimable_in: Duration },
    /// The log's head was deleted, and the rest contains no record of the election.
    Forgotten,
    /// There has never been a leader: the log was read from its beginning.
    NeverLed,
    /// The last term was released.
    Released { release: &'a Release, age: Duration },
    /// The leader has been silent for longer than its lease, so it no longer leads. The age is that of its last record that was appended within
    /// its lease. A standby could have claimed for `claimable_since`, or will not claim for `claimable_in`, because a late heartbeat came.
    Silent { leader: &'a Leader, age: Duration, claimable_since: Duration, claimable_in: Duration },
    /// It is unknown who leads.
    Unknown(Unknown<'a>),
}

/// Why it is unknown who leads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum Unknown<'a> {
    /// The topic was made anew, or its records were deleted, and a candidate waits, since the job of an earlier leader may run on.
    Cut,
    /// The process has left the election, and does not read it any more.
    Left,
    /// The lease of this process, which led, is over. Whether Kafka answers.
    LeaseOver { is_answered: bool },
    /// The record that names the leader is missing.
    Missing,
    /// Kafka does not answer, and has not given the journal.
    NoAnswer,
    /// Kafka does not answer. Nobody led when it last did.
    NobodyAnswers,
    /// Kafka does not answer. This leader was heard last, so long ago.
    NotHeard { leader: &'a Leader, age: Duration },
    /// The lease of this leader, which was heard last so long ago, is over, and Kafka has not told yet whether a record of it came since.
    NotAnswered { leader: &'a Leader, age: Duration },
    /// The journal is being read.
    Reading,
    /// Kafka answers, but the topic or its partition can't be read now.
    Unreadable,
    /// This leader's last record lies in the future by this machine's clock, so that its age is unknown, and for two heartbeats none has come.
    Unheard { leader: &'a Leader },
}

/// What the law says of the last term.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TermState {
    /// The topic was made anew, or its records were deleted: those of a leader may be gone, and a candidate waits for that.
    Cut,
    /// The log's head was deleted, and the rest contains no record of the election.
    Forgotten,
    /// It is led.
    Led,
    /// There was none.
    NeverLed,
    /// It was released.
    Released,
    /// The records that were read so far don't decide it.
    Undecided,
    /// The journal is being read.
    #[default]
    Unread,
}

/// The leader, or the last leader.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Leader {
    /// Its member id; `None` if no record that was read contains it.
    pub member: Option<MemberId>,
    /// Its name.
    pub name: Option<Box<str>>,
    /// The term: its fencing token.
    pub term: Offset,
    /// The longest lease in its records.
    pub lease: Duration,
    /// Whether it is the candidate that reads.
    pub is_self: bool,
    /// When one of its records was first read; it may have led before.
    pub since: Time,
    /// When its claim was appended, in milliseconds since 1970; `None` if the claim was not read.
    pub claimed_ms: Option<u64>,
    /// Its last record: a claim or a beat.
    pub last_record: Receipt,
    /// The late heartbeat, if its last ones came after its lease was over, by whichever clock.
    pub late_beat: Option<LateBeat>,
    /// The time before its last heartbeat that reported no change of the job. (One that reports a change comes earlier.)
    pub interval: Option<Duration>,
    /// The state of its job by its last beat.
    pub job: Option<Job>,
    /// `--overlap`: whether it is to stop, and lets its job run on until another candidate has claimed.
    pub yields: bool,
    /// A request to it to stand down.
    pub resign: Option<Request>,
}

/// A request to a leader to stand down, or to all candidates to end the election.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Request {
    /// The name of the operator.
    pub by: Option<Box<str>>,
    /// The reason that the operator gave.
    pub reason: Option<Box<str>>,
}

/// The release of a term.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Release {
    /// The term.
    pub term: Offset,
    /// The name of the candidate that released it.
    pub name: Option<Box<str>>,
    /// The member that released it.
    pub member: Option<MemberId>,
    /// Why, and how the job ended.
    pub how: Arc<HowReleased>,
    /// When the release was read and written.
    pub received: Receipt,
}

/// Why a term was released, and how its job ended: mostly the same for many terms of an election, which then share it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HowReleased {
    /// The reason in the release.
    pub why: Option<Box<str>>,
    /// The operator's request because of which it was released.
    pub request: Option<Request>,
    /// The job's exit status.
    pub exit: Option<u8>,
    /// How long after the lease's end a process of the job may have been alive.
    pub late: Option<Duration>,
    /// `--once`, `--window` or `--schedule`: the key or window whose run ended, or that needed none.
    pub once: Option<KeyedRun>,
}

/// The last term, as far as its records were read.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LastTerm {
    /// Its leader.
    pub leader: Option<Leader>,
    /// Its release, if it was released.
    pub release: Option<Release>,
    /// The last request to end the election, and when it was read and written, if no term has begun since.
    pub ended: Option<(Request, Receipt)>,
}

impl LastTerm {
    /// Handles the record at `offset`, after the law has judged it, and with the view that the law has then.
    pub fn read(&mut self, view: &View, offset: Offset, record: Option<&Record>, verdict: Verdict, received: Receipt) {
        let effective = record.filter(|_| verdict == Verdict::Effective);
        match view {
            View::Led(term) if self.leader.as_ref().is_none_or(|leader| leader.term != term.offset) => {
                let claimed_ms = received.written_ms.filter(|_| term.offset == offset);
                *self = Self { leader: Some(Leader::of(term, received, claimed_ms)), ..Self::default() };
            }
            View::Released { term, why } if self.release.as_ref().is_none_or(|release| release.term != *term) => {
                let request = self.request_behind(*term, why.as_deref().and_then(Why::parse));
                self.release = Some(Release::of(*term, (why.clone(), request), effective, received));
            }
            View::Undecided(_) => (self.leader, self.release) = (None, None),
            View::Led(_) | View::NeverLed | View::Released { .. } => {}
        }
        let Some(record) = effective else { return };
        match &record.body {
            Body::Beat { .. } | Body::Claim { .. } => self.heard(view, record, received),
            Body::Request { what, by, reason, .. } => {
                let request = Request { by: by.clone().or_else(|| record.name.clone()), reason: reason.clone() };
                match (what, &mut self.leader) {
                    // Each binds the candidates that have started before it.
                    (What::End, _) => self.ended = Some((request, received)),
                    // The first is obeyed.
                    (What::Resign, Some(leader)) => drop(leader.resign.get_or_insert(request)),
                    (What::Resign, None) => {}
                }
            }
            Body::Release { .. } => {}
        }
    }

    fn heard(&mut self, view: &View, record: &Record, received: Receipt) {
        let (View::Led(term), Some(leader)) = (view, &mut self.leader) else { return };
        if let Body::Beat { job, .. } = record.body {
            let gap = leader.last_record.written_before(received);
            if job.is_some() && job.map(Job::without_time) == leader.job.map(Job::without_time) {
                leader.interval = gap;
            }
            leader.job = job.or(leader.job);
            let before = leader.late_beat.filter(|late| !late.is_refuted_by(received.written_ms));
            leader.late_beat = LateBeat::of(gap, leader.lease, received.written_ms).or(before);
        }
        (leader.last_record, leader.lease, leader.yields) = (received, term.lease, term.yields);
    }

    /// The request because of which that term was released.
    fn request_behind(&self, term: Offset, why: Option<Why>) -> Option<Request> {
        let of_end = self.ended.as_ref().filter(|_| why == Some(Why::Ended)).map(|(request, _)| request);
        let leader = self.leader.as_ref().filter(|leader| leader.term == term && why == Some(Why::Resigned));
        of_end.or(leader.and_then(|leader| leader.resign.as_ref())).cloned()
    }

    /// Who leads, by the records that this listener has read.
    pub fn leadership_by(&self, listener: &Listener, now: Time) -> Leadership<'_> {
        self.leadership(TermState::by(listener), |_| now.since(listener.last_effective()))
    }

    /// Who leads, by the records alone; `age` gives the age of a record.
    pub fn leadership(&self, state: TermState, age: impl Fn(Receipt) -> Duration) -> Leadership<'_> {
        match (state, &self.leader, &self.release) {
            (TermState::Led, Some(leader), _) => leader.leadership(age(leader.last_record)),
            (TermState::Released, _, Some(release)) => Leadership::Released { release, age: age(release.received) },
            (TermState::Cut, ..) => Leadership::Unknown(Unknown::Cut),
            (TermState::Forgotten, ..) => Leadership::Forgotten,
            (TermState::NeverLed, ..) => Leadership::NeverLed,
            (TermState::Unread, ..) => Leadership::Unknown(Unknown::Reading),
            (TermState::Led | TermState::Released | TermState::Undecided, ..) => Leadership::Unknown(Unknown::Missing),
        }
    }
}

impl TermState {
    /// What this listener's view says, once it has read the log.
    pub(crate) fn by(listener: &Listener) -> Self {
        let state = Self::of(listener.journal().view());
        if !listener.is_caught_up() {
            Self::Unread
        } else if state == Self::Undecided && listener.history_cut {
            Self::Cut
        } else {
            state
        }
    }

    /// The same if a candidate `waits` although the records show no leader: those that did may be gone.
    #[must_use]
    pub(crate) fn while_waited(self, waits: impl FnOnce() -> bool) -> Self {
        if matches!(self, Self::Forgotten | Self::NeverLed) && waits() { Self::Cut } else { self }
    }

    /// What this view says.
    pub const fn of(view: &View) -> Self {
        match view {
            View::Led(_) => Self::Led,
            View::NeverLed => Self::NeverLed,
            View::Released { .. } => Self::Released,
            View::Undecided(undecided) if undecided.empty_since_cut_head => Self::Forgotten,
            View::Undecided(_) => Self::Undecided,
        }
    }
}

impl<'a> Leadership<'a> {
    /// The leader, also if it is silent.
    pub const fn leader(self) -> Option<&'a Leader> {
        match self {
            Self::Led { leader, .. } | Self::Overdue { leader, .. } | Self::Silent { leader, .. } => Some(leader),
            Self::Forgotten | Self::NeverLed | Self::Released { .. } | Self::Unknown(_) => None,
        }
    }

    /// The leader whose lease may still run, and what is left of that.
    pub const fn lease(self) -> Option<(&'a Leader, Duration)> {
        if let Self::Led { leader, left, .. } | Self::Overdue { leader, left, .. } = self {
            Some((leader, left))
        } else {
            None
        }
    }

    /// The leader, if its lease may still run.
    pub fn may_lead(self) -> Option<&'a Leader> {
        self.lease().map(|(leader, _)| leader)
    }

    /// Whether it is known that there is a leader, which has missed no three heartbeats.
    pub const fn is_led(self) -> bool {
        matches!(self, Self::Led { .. })
    }

    /// The age of the last record of a leader that has missed three heartbeats.
    pub const fn silent_for(self) -> Option<Duration> {
        if let Self::Overdue { age, .. } | Self::Silent { age, .. } = self { Some(age) } else { None }
    }

    /// Whether a leader leads on as usual.
    pub fn is_usual(self) -> bool {
        self.is_led() && self.leader().is_some_and(|leader| !leader.yields)
    }

    /// Whether nothing is known.
    pub const fn is_unknown(self) -> bool {
        matches!(self, Self::Unknown(_))
    }

    /// Whether it is known that nobody leads.
    pub const fn is_vacant(self) -> bool {
        matches!(self, Self::Forgotten | Self::NeverLed | Self::Released { .. } | Self::Silent { .. })
    }

    /// After which time it is another, if no record comes before; `None` if only a record changes it.
    pub fn changes_in(self) -> Option<Duration> {
        match self {
            Self::Led { leader, age, .. } => Some(leader.overdue_after().saturating_sub(age)),
            Self::Overdue { claimable_in, .. } => Some(claimable_in),
            Self::Forgotten | Self::NeverLed | Self::Released { .. } | Self::Silent { .. } | Self::Unknown(_) => None,
        }
    }

    /// The same with the age of the leader's last record that `later` has, when less of the silence was known. Nothing shows that a leader leads
    /// on whose lease is over.
    pub(crate) const fn aged_as(self, later: Self) -> Self {
        let (age, left) = match later {
            Self::Led { age, left, .. } | Self::Overdue { age, left, .. } => (age, left),
            Self::Silent { age, .. } => (age, Duration::ZERO),
            Self::Forgotten | Self::NeverLed | Self::Released { .. } | Self::Unknown(_) => return self,
        };
        match self {
            Self::Led { leader, .. } if left.is_zero() => Self::Unknown(Unknown::NotAnswered { leader, age }),
            Self::Led { leader, .. } => Self::Led { leader, age, left },
            Self::Overdue { leader, .. } => Self::Overdue { leader, age, left, claimable_in: Duration::ZERO },
            Self::Forgotten | Self::NeverLed | Self::Released { .. } | Self::Silent { .. } | Self::Unknown(_) => self,
        }
    }

    /// The same while Kafka does not answer: nothing shows who leads, but for a leader whose last record is too young for a missed heartbeat.
    #[must_use]
    pub const fn unanswered(self) -> Self {
        match self {
            Self::Unknown(Unknown::Reading) => Self::Unknown(Unknown::NoAnswer),
            Self::Led { .. } | Self::Unknown(_) => self,
            Self::Overdue { leader, age, .. } | Self::Silent { leader, age, .. } => {
                Self::Unknown(Unknown::NotHeard { leader, age })
            }
            Self::Forgotten | Self::NeverLed | Self::Released { .. } => Self::Unknown(Unknown::NobodyAnswers),
        }
    }
}

impl Leader {
    pub(crate) fn of(term: &Term, received: Receipt, claimed_ms: Option<u64>) -> Self {
        Self {
            member: term.member.clone(),
            name: term.name.clone(),
            term: term.offset,
            lease: term.lease,
            is_self: false,
            since: received.read,
            claimed_ms,
            last_record: received,
            late_beat: None,
            interval: None,
            job: None,
            yields: term.yields,
            resign: None,
        }
    }

    /// Whether it leads, if its last record is this old.
    fn leadership(&self, age: Duration) -> Leadership<'_> {
        let (leader, over) = (self, silence(self.lease));
        let (left, claimable_in) = (self.lease.saturating_sub(age), over.saturating_sub(age));
        match self.late() {
            None if age < self.overdue_after() => Leadership::Led { leader, age, left },
            None if age < over => Leadership::Overdue { leader, age, left, claimable_in },
            _ => self.silent(age),
        }
    }

    /// That it leads no longer, if its last record is this old.
    pub(crate) fn silent(&self, age: Duration) -> Leadership<'_> {
        let (leader, over) = (self, silence(self.lease));
        let (claimable_since, claimable_in) = (age.saturating_sub(over), over.saturating_sub(age));
        let age = age + self.late().map_or(Duration::ZERO, |late| late.gap);
        Leadership::Silent { leader, age, claimable_since, claimable_in }
    }

    /// The late heartbeat, if its last record was appended after its lease was over, by the broker's clock. (A candidate's may be set forward.)
    pub fn late(&self) -> Option<LateBeat> {
        self.late_beat.filter(|_| self.last_record.is_brokers_time)
    }

    /// Whether its last record is older than its lease, by the clocks that are only displayed.
    pub fn is_silent(&self, at: ReadAt) -> bool {
        self.last_record.age(at.now, at.wall_ms) >= silence(self.lease)
    }

    /// For how long it writes nothing until it has missed three heartbeats.
    pub(crate) fn overdue_after(&self) -> Duration {
        late_beat::overdue_after(self.lease, self.interval)
    }

    /// Its name, or its member id if it has no name.
    pub fn shown(&self) -> &str {
        shown(self.name.as_deref(), self.member.as_ref())
    }
}

impl Release {
    /// `record` is the release itself, if it was read.
    fn of(
        term: Offset,
        (why, request): (Option<Box<str>>, Option<Request>),
        record: Option<&Record>,
        received: Receipt,
    ) -> Self {
        let (name, member) = record.map_or((None, None), |record| (record.name.clone(), record.member.clone()));
        let (exit, late_ms, once) = match record.map(|record| &record.body) {
            Some(Body::Release { exit, late_ms, once, .. }) => (*exit, *late_ms, once.clone()),
            _ => (None, None, None),
        };
        let late = late_ms.map(Duration::from_millis);
        Self { term, name, member, how: Arc::new(HowReleased { why, request, exit, late, once }), received }
    }

    /// The name of the candidate that released it.
    pub fn shown(&self) -> &str {
        shown(self.name.as_deref(), self.member.as_ref())
    }
}

pub(crate) fn shown<'a>(name: Option<&'a str>, member: Option<&'a MemberId>) -> &'a str {
    name.or_else(|| member.map(MemberId::as_str)).unwrap_or("somebody")
}

// ---- when a record was read and written, and its age ---------------------------------------------------------------

/// A time at which a record was read or is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReadAt {
    /// The time by the monotonic clock, which the rules use.
    pub now: Time,
    /// The time by this machine's wall clock, in milliseconds since 1970.
    pub wall_ms: u64,
}

impl ReadAt {
    /// This moment, or `latest` if that was before.
    pub(crate) fn up_to(self, latest: Time) -> Self {
        let ago = self.now.since(latest);
        Self { now: self.now.min(latest), wall_ms: self.wall_ms.saturating_sub(millis(ago)) }
    }
}

/// When a record was read, and when it was appended by the broker's clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Receipt {
    /// When it was read.
    pub read: Time,
    /// When it was appended, in milliseconds since 1970; `None` if the record has no timestamp.
    pub written_ms: Option<u64>,
    /// Whether that may be by the broker's clock, and not by the candidate's that wrote the record.
    pub is_brokers_time: bool,
    /// Whether it was read live, as it was written. Then its age is the time since the reading.
    pub is_live: bool,
}

impl Receipt {
    /// The record's age; `broker_now` is the broker's clock now.
    pub(crate) fn age(self, now: Time, broker_now: u64) -> Duration {
        match (self.is_live, self.written_ms) {
            (false, Some(written_ms)) => {
                Duration::from_millis(broker_now.saturating_sub(written_ms)).max(now.since(self.read))
            }
            (true, _) | (false, None) => now.since(self.read),
        }
    }

    /// Whether its age is by the broker's timestamp, and not by the time of the reading.
    pub const fn is_aged_by_timestamp(self) -> bool {
        !self.is_live && self.written_ms.is_some()
    }

    /// How long before a later record it was appended, by the broker's clock.
    pub(crate) fn written_before(self, later: Self) -> Option<Duration> {
        let span = later.written_ms?.checked_sub(self.written_ms?)?;
        Some(Duration::from_millis(span))
    }

    /// When it was appended, in milliseconds since 1970: by the broker's clock, or by this machine's if the record
    /// has no timestamp.
    pub fn at_ms(self, at: ReadAt) -> u64 {
        self.written_ms.unwrap_or_else(|| at.wall_ms.saturating_sub(millis(at.now.since(self.read))))
    }
}

#[cfg(test)]
mod tests;
