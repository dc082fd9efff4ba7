//! R3 to R6: the lease of a leader, its beats, and its end.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::Common;
use super::action::Action;
use super::fenced::Fenced;
use super::overlapped::Overlapped;
use super::reading::OwnClaim;
use super::reasons::{lets_job_run_on, rank};
use super::releasing::{JobTerm, Releasing};
use super::state::{Input, State};
use crate::guard::Grant;
use crate::note::Note;
use crate::record::{Body, JobState, Offset, Why};
use crate::supervisor::{Does, JobEnd, JobReport, Loss, Wanted};
use crate::time::{Time, millis};

/// A stop that ends sooner than this is not announced by a beat. The release would wait for that beat, since a broker handles the appends
/// of a connection one after another; that would cost 2 ms of a handover's 8.
const QUICK_STOP: Duration = Duration::from_millis(10);

/// The least time between two beats that report a new state. Without it, a job that ends at once and is restarted would flood the journal
/// (1,020 records a second, measured).
const STATE_BEAT_INTERVAL: Duration = Duration::from_millis(100);

/// A lease that is held, and a job that may be alive.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Leading {
    term: Offset,
    lease_end: Time,
    /// When the last effective record was sent.
    last_effective_sent: Time,
    next_beat: Time,
    /// The next beat reports a new state of the job.
    state_is_new: bool,
    /// Before this time no beat is sent only to report a new state.
    state_beats_from: Time,
    /// Beats that were sent and not read back yet.
    in_flight: VecDeque<SentBeat>,
    /// Whether the last beat that was read back did not extend the lease, because the topic's id was not confirmed.
    is_unconfirmed: bool,
    /// Whether the guard got a grant since the last beat.
    extended: bool,
    /// The last grant for the guard.
    grant: Grant,
    /// How often it was given again since.
    again: u32,
    /// The reason for which the job was asked to stop.
    stopping: Option<Why>,
    /// `--overlap`: it stands down, and the job continues until another candidate has claimed.
    yielding: Option<Yielding>,
    job: JobReport,
}

/// `--overlap`: a leader that stands down while its job continues.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Yielding {
    why: Why,
    /// If no candidate has claimed by then, the job is stopped.
    until: Time,
}

/// A beat that was sent.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct SentBeat {
    seq: u64,
    at: Time,
}

impl Leading {
    /// Takes up the term of a claim that was sent at `sent`: from then on its lease runs (R3).
    pub(super) fn begin(common: &mut Common, now: Time, claim: OwnClaim, sent: Time) -> State {
        let term = claim.into_term();
        common.wait_until = None;
        common.successor = None;
        common.highest_term = common.highest_term.max(term);
        let lease_end = sent + common.timings.lease();
        let grant = common.grant(term, lease_end);
        common.actions.push_back(Action::Note(Note::Leading { term, until: lease_end }));
        State::Leading(Self {
            term,
            lease_end,
            last_effective_sent: sent,
            next_beat: common.beat_after(sent),
            state_is_new: false,
            state_beats_from: sent,
            in_flight: VecDeque::new(),
            is_unconfirmed: false,
            extended: true,
            grant,
            again: 0,
            stopping: None,
            yielding: None,
            job: JobReport { state: JobState::Starting, pid: None, attempt: 1, since: now },
        })
    }

    pub(super) const fn term(&self) -> Offset {
        self.term
    }

    pub(super) const fn lease_end(&self) -> Time {
        self.lease_end
    }

    /// Why it stands down, if it does.
    pub(super) fn stopping(&self) -> Option<Why> {
        self.stopping.or(self.yielding.map(|yielding| yielding.why))
    }

    pub(super) fn wants(&self) -> Wanted {
        let does = self.stopping.map_or(Does::Run, |why| Does::Stop { why, by: None });
        Wanted { grant: self.grant, again: self.again, does }
    }

    pub(super) const fn job(&self) -> JobReport {
        self.job
    }

    pub(super) fn due(&self, common: &Common) -> Option<Time> {
        let due = [Some(self.deadline(common)), Some(self.next_beat), self.warning_due(common), self.yields_until()];
        due.into_iter().flatten().min()
    }

    fn deadline(&self, common: &Common) -> Time {
        self.lease_end - common.timings.kill_margin()
    }

    pub(super) fn step(mut self, common: &mut Common, now: Time, input: Input) -> State {
        match input {
            Input::BeatEffective { seq } => self.extend_by(common, now, seq),
            Input::GuardFenced { why } => return self.lose(why, Loss::LeaseOver),
            Input::HistoryCut => return self.lose(Why::Fenced, Loss::HistoryCut),
            Input::Job(job) => self.job_changed(now, job),
            Input::NothingLeft(end) if end.proof.term() == self.term => return self.nothing_left(common, now, *end),
            Input::Revoked => self.stand_down(common, now, Why::Revoked),
            Input::StandDown { why } => self.stand_down(common, now, why),
            Input::TimedOut => {
                if let Some(yielding) = self.yielding.filter(|_| self.yields_until().is_some_and(|until| now >= until))
                {
                    self.stop(yielding.why);
                }
                if self.warning_due(common).is_some_and(|due| now >= due) {
                    self.warn_of_fence(common, now);
                }
                self.beat_if_due(common, now);
            }
            Input::TimePassed => {
                if now >= self.deadline(common) {
                    self.note_unconfirmed(common, now);
                    return self.lose(Why::Fenced, Loss::LeaseOver);
                }
            }
            Input::ViewChanged => {
                if let Some(by_term) = common.overlapping_claim(self.term) {
                    return self.overlapped(common, now, by_term);
                }
                if let Some(by) = common.superseded(self.term) {
                    let (term, by_term, by) = (self.term, by.term, by.name);
                    common.actions.push_back(Action::Note(Note::Superseded { term, by_term, by }));
                    // Another candidate leads, so there is no reason to stand down any more.
                    (self.stopping, self.yielding) = (None, None);
                    return self.lose(Why::Fenced, Loss::Superseded);
                }
                // The last standby has gone, so nobody would claim.
                if let Some(yielding) = self.yielding.filter(|_| !common.may_yield(now)) {
                    self.stop(yielding.why);
                }
            }
            Input::ClaimEffective(_)
            | Input::ClaimVoid { .. }
            | Input::Continued
            | Input::Delivered { .. }
            | Input::GivenUp
            | Input::MoveOn
            | Input::NamedSuccessor
            | Input::NothingLeft(_)
            | Input::ReleaseRead { .. }
            | Input::TopicJudged { .. }
            | Input::Undelivered { .. } => {}
        }
        State::Leading(self)
    }

    /// R3: the beat `seq` was read back and is effective. The lease runs from its sending.
    fn extend_by(&mut self, common: &mut Common, now: Time, seq: Option<u64>) {
        let echo = self.in_flight.iter().position(|beat| Some(beat.seq) == seq);
        let Some(SentBeat { at: sent, .. }) = echo.and_then(|index| self.in_flight.remove(index)) else { return };
        self.is_unconfirmed = !common.is_topic_confirmed_for_lease(now);
        if !self.is_unconfirmed && sent > self.last_effective_sent {
            self.last_effective_sent = sent;
            self.lease_end = self.lease_end.max(sent + common.timings.lease());
            self.extend(common);
        }
    }

    fn extend(&mut self, common: &Common) {
        // R6: `term` and `seen` go to the guard together, and only while the term is current in this candidate's view. If the view is
        // undecided, the guard gets its last grant again, because its answer shows that it is alive.
        let before = self.grant;
        if common.is_current(self.term) {
            self.grant = common.grant(self.term, self.lease_end);
        }
        self.again = if self.grant == before { self.again + 1 } else { 0 };
        self.extended = true;
    }

    /// Sends a beat if one is due and the term is current in this candidate's view (R6).
    fn beat_if_due(&mut self, common: &mut Common, now: Time) {
        if now < self.next_beat {
            return;
        }
        let lease = common.timings.lease();
        self.next_beat = common.beat_after(now);
        self.in_flight.retain(|beat| beat.at + lease > now);
        let was_extended = core::mem::replace(&mut self.extended, false);
        if common.is_current(self.term) {
            self.beat(common, now);
        }
        if !was_extended {
            // There is no new grant, but the guard's answer shows that it is alive.
            self.extend(common);
        }
    }

    fn beat(&mut self, common: &mut Common, now: Time) {
        if core::mem::take(&mut self.state_is_new) {
            self.state_beats_from = now + STATE_BEAT_INTERVAL;
        }
        let seq = common.next_seq();
        self.in_flight.push_back(SentBeat { seq, at: now });
        let JobReport { state, pid, attempt, since } = self.job;
        let beat = Body::Beat {
            term: self.term,
            seen: common.listener.last(),
            lease_ms: common.lease_ms(),
            state: Some(state),
            pid,
            attempt: Some(attempt),
            since_ms: Some(millis(now.since(since))),
            overlap: common.overlap_of_beat(now, self.yielding.is_some()),
        };
        common.send(seq, beat);
    }

    fn job_changed(&mut self, now: Time, job: JobReport) {
        let changed = self.job.state != job.state || self.job.attempt != job.attempt;
        self.job = job;
        if changed {
            let quick = if job.state == JobState::Stopping { QUICK_STOP } else { Duration::ZERO };
            self.state_is_new = true;
            self.next_beat = self.next_beat.min((now + quick).max(self.state_beats_from));
        }
    }

    /// When the fence warning is due, because no beat has been read back for long enough.
    fn warning_due(&self, common: &Common) -> Option<Time> {
        let wanted = !common.timings.fence_warning().is_zero() && self.stopping.is_none();
        wanted.then(|| self.deadline(common) - common.timings.fence_warning())
    }

    fn warn_of_fence(&mut self, common: &mut Common, now: Time) {
        let (term, left, silent) = (self.term, self.lease_end.since(now), now.since(self.last_effective_sent));
        let unconfirmed = self.unconfirmed_for(common, now);
        common.actions.push_back(Action::Note(Note::FenceWarning { term, left, silent, unconfirmed }));
        self.stop(Why::Fenced);
    }

    /// For how long no broker has confirmed the topic's id, if a beat did not extend the lease for that reason.
    fn unconfirmed_for(&self, common: &Common, now: Time) -> Option<Duration> {
        let since = common.topic_confirmed_at().unwrap_or(self.last_effective_sent);
        self.is_unconfirmed.then(|| now.since(since))
    }

    /// Notes that no broker has confirmed the topic's id, unless a fence warning has reported it before.
    fn note_unconfirmed(&self, common: &mut Common, now: Time) {
        let term = self.term;
        let unsaid = self.unconfirmed_for(common, now).filter(|_| self.stopping != Some(Why::Fenced));
        let note = |unconfirmed| Action::Note(Note::LeaseUnconfirmed { term, unconfirmed });
        common.actions.extend(unsaid.map(note));
    }

    /// R7: begins a barrier. With `--overlap` the barrier waits until another candidate has claimed, if one stands by.
    fn stand_down(&mut self, common: &mut Common, now: Time, why: Why) {
        if self.stopping.is_some() || !lets_job_run_on(why) {
            return self.stop(why);
        }
        match &mut self.yielding {
            Some(yielding) if rank(why) > rank(yielding.why) => yielding.why = why,
            Some(_) => {}
            None if self.job.state == JobState::Running && common.may_yield(now) => {
                let (term, patience) = (self.term, common.timings.lease());
                self.yielding = Some(Yielding { why, until: now + patience });
                // The other candidates must learn of it at once.
                self.next_beat = now;
                common.actions.push_back(Action::Note(Note::Yielding { term, why, patience }));
            }
            None => self.stop(why),
        }
    }

    /// Until when its job continues, so that another candidate can claim.
    fn yields_until(&self) -> Option<Time> {
        self.yielding.filter(|_| self.stopping.is_none()).map(|yielding| yielding.until)
    }

    fn overlapped(self, common: &mut Common, now: Time, by_term: Offset) -> State {
        let why = self.stopping().unwrap_or(Why::Fenced);
        let overlapped = Overlapped::begin(common, now, self.wants(), why, self.lease_end, by_term);
        let runs_on = self.stopping.is_none() && self.job.state == JobState::Running;
        if runs_on { State::Overlapped(overlapped) } else { overlapped.stop() }
    }

    /// Begins the barrier. If it has begun, only its reason may change.
    fn stop(&mut self, why: Why) {
        let why = self.yielding.map_or(why, |yielding| if rank(why) > rank(yielding.why) { why } else { yielding.why });
        match self.stopping {
            Some(before) if rank(why) <= rank(before) => {}
            Some(_) | None => self.stopping = Some(why),
        }
    }

    /// R5: a lease that has ended is not taken up again.
    fn lose(&self, why: Why, loss: Loss) -> State {
        let (stood_down, overlapped_by, wanted) = (self.stopping(), None, self.wants());
        State::Fenced(Fenced { wanted, why, stood_down, lease_end: self.lease_end, loss, overlapped_by })
    }

    fn nothing_left(self, common: &mut Common, now: Time, end: JobEnd) -> State {
        let why = self.stopping().unwrap_or(end.why);
        // R7: the term is held until one lease after the last effective record was sent.
        let held_until = self.last_effective_sent + common.timings.lease();
        let term = JobTerm { why, stood_down: None, held_until, late: None, is_cut: false, overlapped_by: None };
        Releasing::of_job(common, now, end, term)
    }
}
