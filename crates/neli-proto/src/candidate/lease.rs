//! R3, R4, R6: the arithmetic of a leader's lease, and its beats.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::overlapping::Overlapped;
use super::{Action, Election};
use crate::guard::Grant;
use crate::note::Note;
use crate::record::{Body, Job, JobState, Offset, Why};
use crate::supervisor::{JobReport, Wanted, WantedState};
use crate::time::{Time, millis};

/// A stop that ends sooner than this is not announced by a beat. The release would wait for that beat, since a broker handles the appends
/// of a connection one after another; that would cost 2 ms of a handover's 8.
const QUICK_STOP: Duration = Duration::from_millis(10);

/// The least time between two beats that report a new state. Without it, a job that ends at once and is restarted would flood the journal
/// (1,020 records a second, measured).
const STATE_BEAT_INTERVAL: Duration = Duration::from_millis(100);

/// The number of moments in a heartbeat interval at which the roles of one process send beats. For each answer a broker checks every
/// partition that a reader fetches, so beats that are sent together share answers. But if all were sent at one moment, they would wait for
/// each other.
const BEAT_MOMENTS: u32 = 16;

/// A lease that is held, and a job that may be alive.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Leading {
    pub(super) term: Offset,
    pub(super) lease_end: Time,
    /// When the last effective record was sent.
    pub(super) last_effective_sent: Time,
    next_beat: Time,
    /// The next beat reports a new state of the job.
    state_is_new: bool,
    /// Before this time no beat is sent only to report a new state.
    state_beats_from: Time,
    /// The beats that were not read back yet: their sequence numbers, and when they were sent.
    in_flight: VecDeque<(u64, Time)>,
    /// For how long no broker had confirmed the topic's id when the last beat was read back, if the beat did not extend the lease for that
    /// reason.
    unconfirmed: Option<Duration>,
    /// Whether the guard got a grant since the last beat.
    extended: bool,
    /// The last grant for the guard.
    grant: Grant,
    /// How often it was given again since.
    again: u32,
    /// Why it stands down, if it does.
    pub(super) stands_down: Option<Why>,
    /// Whether the job was asked to stop for that.
    pub(super) is_stopping: bool,
    /// `--overlap`: before that the job continues until another candidate has claimed, until this time at most.
    pub(super) yields_until: Option<Time>,
    pub(super) job: JobReport,
}

impl Leading {
    /// The lease of a claim that was sent at `sent`, and a job that may start.
    pub(super) fn begin(election: &Election, now: Time, term: Offset, sent: Time) -> Self {
        let lease_end = sent + election.timings.lease;
        Self {
            term,
            lease_end,
            last_effective_sent: sent,
            next_beat: election.beat_after(sent),
            state_is_new: false,
            state_beats_from: sent,
            in_flight: VecDeque::new(),
            unconfirmed: None,
            extended: true,
            grant: election.grant(term, lease_end),
            again: 0,
            stands_down: None,
            is_stopping: false,
            yields_until: None,
            job: JobReport { state: JobState::Starting, pid: None, attempt: 1, since: now },
        }
    }

    pub(super) fn wants(&self) -> Wanted {
        let stopping = self.stands_down.filter(|_| self.is_stopping);
        let state = stopping.map_or(WantedState::Run, |why| WantedState::Stop { why, by: None });
        Wanted { grant: self.grant, again: self.again, state }
    }

    pub(super) fn due(&self, election: &Election) -> Option<Time> {
        let deadline = election.deadline(self.lease_end);
        let yields_until = self.yields_until.filter(|_| !self.is_stopping);
        let due = [Some(deadline), Some(self.next_beat), self.warning_due(election), yields_until];
        due.into_iter().flatten().min()
    }

    /// Stops the job if no candidate has claimed for long enough, warns of a fence, and sends the beat that is due.
    pub(super) fn handle_timeout(&mut self, election: &mut Election, now: Time) {
        self.is_stopping |= self.yields_until.is_some_and(|until| now >= until);
        if self.warning_due(election).is_some_and(|due| now >= due) {
            self.warn_of_fence(election, now);
        }
        self.beat_if_due(election, now);
    }

    /// R3: the beat `seq` was read back and is effective. The lease runs from its sending.
    pub(super) fn extend_by(&mut self, election: &mut Election, now: Time, seq: Option<u64>) {
        let echo = self.in_flight.iter().position(|(sent, _)| Some(*sent) == seq);
        let Some((_, sent)) = echo.and_then(|index| self.in_flight.remove(index)) else { return };
        let since = election.topic.confirmed.unwrap_or(self.last_effective_sent);
        // The topic must be the one in which the term was claimed.
        let is_confirmed = election.topic.is_confirmed_since(now - election.timings.lease);
        self.unconfirmed = (!is_confirmed).then(|| now.since(since));
        if self.unconfirmed.is_none() && sent > self.last_effective_sent {
            self.last_effective_sent = sent;
            self.lease_end = self.lease_end.max(sent + election.timings.lease);
            self.extend(election);
        }
    }

    fn extend(&mut self, election: &Election) {
        // R6: `term` and `seen` go to the guard together, and only while the term is current in this candidate's view. If the view is
        // undecided, the guard gets its last grant again, because its answer shows that it is alive.
        let before = self.grant;
        if election.is_current(self.term) {
            self.grant = election.grant(self.term, self.lease_end);
        }
        self.again = if self.grant == before { self.again + 1 } else { 0 };
        self.extended = true;
    }

    /// Sends a beat if one is due and the term is current in this candidate's view (R6).
    fn beat_if_due(&mut self, election: &mut Election, now: Time) {
        if now < self.next_beat {
            return;
        }
        let lease = election.timings.lease;
        self.next_beat = election.beat_after(now);
        self.in_flight.retain(|(_, sent)| *sent + lease > now);
        let was_extended = core::mem::replace(&mut self.extended, false);
        if election.is_current(self.term) {
            self.beat(election, now);
        }
        if !was_extended {
            // There is no new grant, but the guard's answer shows that it is alive.
            self.extend(election);
        }
    }

    fn beat(&mut self, election: &mut Election, now: Time) {
        if core::mem::take(&mut self.state_is_new) {
            self.state_beats_from = now + STATE_BEAT_INTERVAL;
        }
        let seq = election.next_seq();
        self.in_flight.push_back((seq, now));
        let JobReport { state, pid, attempt, since } = self.job;
        let beat = Body::Beat {
            term: self.term,
            seen: election.listener.last(),
            lease_ms: election.lease_ms(),
            job: Some(Job { state, pid, attempt: Some(attempt), since_ms: Some(millis(now.since(since))) }),
            overlap: election.overlap_of_beat(now, self.yields_until.is_some()),
        };
        election.send(seq, beat);
    }

    pub(super) fn job_changed(&mut self, now: Time, job: JobReport) {
        let changed = self.job.state != job.state || self.job.attempt != job.attempt;
        self.job = job;
        if changed {
            let quick = if job.state == JobState::Stopping { QUICK_STOP } else { Duration::ZERO };
            self.state_is_new = true;
            self.next_beat = self.next_beat.min((now + quick).max(self.state_beats_from));
        }
    }

    /// When the fence warning is due, because no beat has been read back for long enough.
    fn warning_due(&self, election: &Election) -> Option<Time> {
        let wanted = !election.timings.fence_warning.is_zero() && !self.is_stopping;
        wanted.then(|| election.deadline(self.lease_end) - election.timings.fence_warning)
    }

    fn warn_of_fence(&mut self, election: &mut Election, now: Time) {
        let (term, left, silent) = (self.term, self.lease_end.since(now), now.since(self.last_effective_sent));
        let unconfirmed = self.unconfirmed;
        election.actions.push_back(Action::Note(Note::FenceWarning { term, left, silent, unconfirmed }));
        self.is_stopping = true;
        self.stands_down_for(Why::Fenced);
    }

    /// Notes that no broker has confirmed the topic's id, unless a fence warning has reported it before.
    pub(super) fn note_unconfirmed(&self, election: &mut Election) {
        let term = self.term;
        let unsaid = self.unconfirmed.filter(|_| self.stands_down != Some(Why::Fenced));
        let note = |unconfirmed| Action::Note(Note::LeaseUnconfirmed { term, unconfirmed });
        election.actions.extend(unsaid.map(note));
    }

    /// R7: begins a barrier. With `--overlap` the barrier waits until another candidate has claimed, if one stands by.
    pub(super) fn stand_down(&mut self, election: &mut Election, now: Time, why: Why) {
        let runs_on = self.job.state == JobState::Running && why.lets_job_run_on();
        if self.stands_down.is_none() && runs_on && election.may_yield(now) {
            let (term, patience) = (self.term, election.timings.lease);
            self.yields_until = Some(now + patience);
            // The other candidates must learn of it at once.
            self.next_beat = now;
            election.actions.push_back(Action::Note(Note::Yielding { term, why, patience }));
        } else if self.yields_until.is_none() || !why.lets_job_run_on() {
            self.is_stopping = true;
        }
        self.stands_down_for(why);
    }

    /// `--overlap`: this job, once the claim of `by_term` took effect over its term. If it was not asked to stop, it continues until the next
    /// leader's job runs, but at most for half of the time.
    pub(super) fn overlapped(&self, election: &mut Election, now: Time, by_term: Offset) -> Overlapped {
        let within = election.timings.overlap.unwrap_or_default();
        let by = election.current_term().and_then(|current| current.name.clone());
        election.actions.push_back(Action::Note(Note::Overlapped { term: self.term, by_term, by, within }));
        let runs_on = !self.is_stopping && self.job.state == JobState::Running;
        Overlapped {
            wanted: self.wants(),
            by_term,
            why: self.stands_down.unwrap_or(Why::Fenced),
            lease_end: self.lease_end,
            asks_at: runs_on.then(|| now + within / 2),
            kill_at: now + within,
        }
    }

    /// Notes why it stands down, unless it does so for a reason of the same rank or a higher one.
    fn stands_down_for(&mut self, why: Why) {
        if self.stands_down.is_none_or(|before| why.rank() > before.rank()) {
            self.stands_down = Some(why);
        }
    }
}

impl Election {
    /// R4: when the guard kills all that is left of a job with this end of its lease.
    pub(super) fn deadline(&self, lease_end: Time) -> Time {
        lease_end - self.timings.kill_margin
    }

    /// When the next beat is due after a record sent at `sent`: one interval later, or at the last common moment of the process's roles
    /// before that. It is never later, so that no lease gets shorter.
    fn beat_after(&self, sent: Time) -> Time {
        let interval = self.timings.heartbeat_interval;
        let due = sent + interval;
        if self.precedence.is_one_of_many { due.floor_to(interval / BEAT_MOMENTS) } else { due }
    }

    /// The grant for the guard: the term, which is current as of the last record read.
    fn grant(&self, term: Offset, lease_end: Time) -> Grant {
        Grant { term, seen: self.listener.last(), next_seq: self.seq + 1, until: self.deadline(lease_end) }
    }
}
