//! R3 to R6: the lease that a leader holds, its beats, and its end.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::{Candidate, Lead, Role};
use crate::candidate::{Action, JobReport, Loss, Milestone, Note, Right};
use crate::record::{Body, JobState, Offset, Why};
use crate::time::Time;

/// That a job is stopping is said when it has taken this long. The release of one that ends as soon as it is asked to would
/// wait for the beat: a broker takes one append of a connection at a time, which costs a handover 2 ms of its 8.
pub(super) const QUICK_STOP: Duration = Duration::from_millis(10);

/// Between two beats that tell a new state. A job that is restarted as fast as it ends would fill the journal otherwise
/// (1,020 records a second, measured).
const STATE_BEAT_INTERVAL: Duration = Duration::from_millis(100);

impl Candidate {
    pub(super) fn lead(&mut self, now: Time, term: Offset, sent: Time) {
        self.wait_until = None;
        self.highest_term = self.highest_term.max(term);
        let lease_end = sent + self.timings.lease;
        let right = self.right(term, lease_end);
        let lead = Lead {
            term,
            lease_end,
            last_effective_sent: sent,
            next_beat: sent + self.timings.heartbeat_interval,
            state_is_new: false,
            state_beats_from: sent,
            in_flight: VecDeque::new(),
            extended: true,
            right,
            stopping: None,
            job: JobReport { state: JobState::Starting, pid: None, attempt: 1, since: now },
        };
        self.actions.push_back(Action::Lead(right));
        self.actions.push_back(Action::Reached(Milestone::Leading { term, until: lease_end }));
        self.role = Role::Leading(lead);
    }

    pub(super) fn deadline(&self, lead: &Lead) -> Time {
        lead.lease_end - self.timings.kill_margin
    }

    pub(super) fn right(&self, term: Offset, lease_end: Time) -> Right {
        let until = lease_end - self.timings.kill_margin;
        Right { term, seen: self.listener.last(), next_seq: self.seq + 1, until }
    }

    /// R3: the beat `seq` came back effective. The lease runs from its sending.
    pub(super) fn extend_by(&mut self, now: Time, seq: u64) {
        let Role::Leading(lead) = &mut self.role else { return };
        let echo = lead.in_flight.iter().position(|(sent, _)| *sent == seq);
        let Some((_, sent)) = echo.and_then(|index| lead.in_flight.remove(index)) else { return };
        let is_confirmed = self.is_topic_confirmed_for_lease(now);
        let Role::Leading(lead) = &mut self.role else { return };
        if is_confirmed && sent > lead.last_effective_sent {
            lead.last_effective_sent = sent;
            lead.lease_end = lead.lease_end.max(sent + self.timings.lease);
            self.extend();
        }
    }

    pub(super) fn extend(&mut self) {
        let Role::Leading(lead) = &self.role else { return };
        // R6: `term` and `seen` go to the guard together, and only while the view says that the term is current. In a
        // view that says nothing the guard is told again what it knows: its answer shows that it is alive.
        let is_current = self.listener.journal().term() == Some(lead.term);
        let right = if is_current { self.right(lead.term, lead.lease_end) } else { lead.right };
        let Role::Leading(lead) = &mut self.role else { return };
        (lead.extended, lead.right) = (true, right);
        self.actions.push_back(Action::Extend(right));
    }

    /// Sends a beat when one is due, if the term is current in our own view (R6).
    pub(super) fn beat_if_due(&mut self, now: Time) {
        let current = self.listener.journal().term();
        let Role::Leading(lead) = &self.role else { return };
        if now < lead.next_beat {
            return;
        }
        let (term, job, is_current) = (lead.term, lead.job, current == Some(lead.term));
        let (seen, lease_ms) = (self.listener.last(), self.lease_ms());
        let seq = is_current.then(|| self.next_seq());
        let (interval, lease) = (self.timings.heartbeat_interval, self.timings.lease);
        let Role::Leading(lead) = &mut self.role else { return };
        lead.next_beat = now + interval;
        lead.in_flight.retain(|(_, sent)| *sent + lease > now);
        let was_extended = core::mem::replace(&mut lead.extended, false);
        if let Some(seq) = seq {
            if core::mem::take(&mut lead.state_is_new) {
                lead.state_beats_from = now + STATE_BEAT_INTERVAL;
            }
            lead.in_flight.push_back((seq, now));
            let since_ms = u64::try_from(now.since(job.since).as_millis()).ok();
            self.send(
                seq,
                Body::Beat {
                    term,
                    seen,
                    lease_ms,
                    state: Some(job.state),
                    pid: job.pid,
                    attempt: Some(job.attempt),
                    since_ms,
                },
            );
        }
        if !was_extended {
            // Nothing new to say: the guard's answer shows that it is alive all the same.
            self.extend();
        }
    }

    /// When the fence warning is due: the beats of a whole warning are not coming back.
    pub(super) fn warning_due(&self, lead: &Lead) -> Option<Time> {
        let wanted = !self.timings.fence_warning.is_zero() && lead.stopping.is_none();
        wanted.then(|| self.deadline(lead) - self.timings.fence_warning)
    }

    pub(super) fn warn_of_fence(&mut self, now: Time) {
        let Role::Leading(lead) = &self.role else { return };
        let (term, left, silent) = (lead.term, lead.lease_end.since(now), now.since(lead.last_effective_sent));
        self.actions.push_back(Action::Note(Note::FenceWarning { term, left, silent }));
        self.stop_job(Why::Fenced);
    }

    pub(super) fn end_lease_if_due(&mut self, now: Time) {
        if let Role::Leading(lead) = &self.role
            && now >= self.deadline(lead)
        {
            self.lose_lease(Why::Fenced, Loss::LeaseOver);
        }
    }

    /// R5: a lease that ended is not taken up again.
    pub(super) fn lose_lease(&mut self, why: Why, loss: Loss) {
        let Role::Leading(lead) = &self.role else { return };
        let (term, stood_down, lease_end) = (lead.term, lead.stopping, lead.lease_end);
        self.role = Role::Fenced { term, why, stood_down, lease_end, loss };
        self.actions.push_back(Action::Kill(loss));
    }
}
