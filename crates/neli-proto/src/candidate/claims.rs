//! When a standby claims (R2), or gives up waiting: the arithmetic of claims and their delays.

use alloc::format;
use core::time::Duration;

use super::{Action, Election};
use crate::journal::View;
use crate::kafka::Request;
use crate::listener::Predecessor;
use crate::note::{Note, StandbyReason, Waiting};
use crate::precedence::{Delay, RANDOM_DELAY};
use crate::record::{Body, Offset, What};
use crate::time::Time;

/// After a void claim the next one is spread over at least this many round trips.
const ROUND_TRIPS: u32 = 4;

/// The longest random delay. It does not depend on the lease: with many standbys on a slow link, claims that are spread over one lease would
/// follow each other within less than a round trip, and void each other without end. A later claim only costs time.
const LONGEST_RANDOM_DELAY: Duration = Duration::from_secs(60);

/// The time that `--wait 0` allows for Kafka's first answer.
const WAIT_FOR_KAFKA: Duration = Duration::from_secs(5);

/// librdkafka may need this time to notice a dead connection and continue reading.
const READER_RECOVERS: Duration = Duration::from_secs(5);

/// What delays or forbids the next claim.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct NextClaim {
    /// The vacancy or silence for which the random part of its delay was drawn, and the drawn share of the span, in parts of a second: a later
    /// assignment may widen the span.
    pub(super) draw: Option<(Time, Duration)>,
    /// When there is a new attempt, if Kafka has refused the last one.
    pub(super) refused_until: Option<Time>,
    /// Since when claims have not been read back within their lease, nor any other record since (Kafka does not answer), or when the producer
    /// was renewed for that reason.
    pub(super) unanswered_since: Option<Time>,
    /// Whether the node forbids it for now.
    pub(super) is_held: bool,
    /// Whether no job could run under it, because this machine lacks a guard.
    pub(super) lacks_guard: bool,
}

impl Election {
    /// When a standby has something to do.
    pub(super) fn standby_due(&self, not_before: Time) -> Option<Time> {
        let due = [
            self.claim_due(not_before),
            self.wait_due(),
            self.cooling_off,
            self.blind_due(),
            self.stuck_due(),
            self.preemption.map(|(_, asks_at)| asks_at),
        ];
        due.into_iter().flatten().min()
    }

    /// Reads again or from further back if that is needed, and keeps what precedes a claim up to date.
    pub(super) fn prepare_claim(&mut self, now: Time) {
        self.replace_reader_if_stuck(now);
        if self.listener.ask_further_back(now) {
            self.actions.push_back(Action::Kafka(Request::ReadAnew));
        }
        self.keep_membership(now);
        self.draw_delay(now);
        self.preempt_if_due(now);
    }

    /// When the claim is due (R2); `None` if that is unknown, or if it is never due.
    pub(super) fn claim_due(&self, not_before: Time) -> Option<Time> {
        if self.may_not_claim() || self.cooling_off.is_some() || self.leaving.is_some() {
            return None;
        }
        let claim_window = self.listener.claim_window()?;
        if claim_window.confirmed_from.is_some_and(|from| !self.topic.is_confirmed_since(from)) {
            return None;
        }
        let delay = self.claim_delay(claim_window.since, claim_window.predecessor)?;
        let (_, share) = self.next_claim.draw?;
        let due = claim_window.since + delay.fixed + delay.random.mul_f64(share.as_secs_f64());
        // The other candidates leave the vacancy to a named successor, so that one needs no delay after a void claim either (R2).
        let is_left_to_it = self.precedence.is_named_successor() && self.next_claim.refused_until.is_none();
        self.after_answers(if is_left_to_it { due } else { due.max(not_before) })
    }

    /// Reports why it stands by, if that has changed.
    pub(super) fn report_standby(&mut self, now: Time, not_before: Time) {
        if !self.listener.is_caught_up() || !self.is_judged {
            return;
        }
        let why = match self.listener.journal().view() {
            // Our own release is in flight, or our own silence is waited for: there is no leader.
            View::Led(term) if term.member.as_ref() == Some(&self.hello.member) => return,
            View::Led(_) => Waiting::Led,
            _ if self.cooling_off.is_some() => Waiting::CoolingOff,
            View::Undecided(_) if self.listener.history_cut => Waiting::Cut,
            View::Undecided(_) => Waiting::Undecided,
            View::NeverLed | View::Released { .. } if self.next_claim.lacks_guard => Waiting::NoGuard,
            View::NeverLed | View::Released { .. } if self.next_claim.is_held => Waiting::Facts,
            View::NeverLed | View::Released { .. } if self.precedence.is_full() => Waiting::Full,
            View::NeverLed | View::Released { .. } => {
                // A claim that is almost due is not worth a log line.
                if self.claim_due(not_before).is_some_and(|due| due < now + RANDOM_DELAY) {
                    return;
                }
                if self.next_claim.refused_until.is_some_and(|until| until > now) {
                    Waiting::Refused
                } else if self.precedence.is_backing_off() {
                    Waiting::BackingOff
                } else if self.after_answers(now) != Some(now) {
                    Waiting::Answer
                } else if self.precedence.awaits_assignment() {
                    Waiting::Unassigned
                } else {
                    Waiting::Precedence
                }
            }
        };
        let (leader, term) = self.current_term().map(|term| (term.name.clone(), term.offset)).unzip();
        let standby = StandbyReason { leader: leader.flatten(), term, why: Some(why) };
        if self.standing_by.as_ref() != Some(&standby) {
            self.standing_by = Some(standby.clone());
            self.actions.push_back(Action::Note(Note::Standby(standby)));
        }
    }

    pub(super) fn claim_delay(&self, at: Time, predecessor: Predecessor) -> Option<Delay> {
        // If there are more partitions than roles, the group's next assignment can't be predicted.
        let is_foreseeable = predecessor != Predecessor::Silent || !self.group.unused_partitions;
        self.precedence.delay(at, if is_foreseeable { predecessor } else { Predecessor::Gone })
    }

    /// Draws a delay once for each vacancy or silence, and again after a void claim.
    fn draw_delay(&mut self, now: Time) {
        let Some(claim_window) = self.listener.claim_window() else {
            self.next_claim.draw = None;
            return;
        };
        if self.next_claim.draw.is_none_or(|(since, _)| since != claim_window.since) {
            let may_claim = self.claim_delay(now, claim_window.predecessor).is_some();
            let share = self.random.up_to(Duration::from_secs(1));
            self.next_claim.draw = may_claim.then_some((claim_window.since, share));
        }
    }

    /// When `--wait` is over; `None` if that would cut short the wait for the silence of a leader whose records have not been read, or a claim.
    pub(super) fn wait_due(&self) -> Option<Time> {
        let until = self.wait_until?;
        let after_first_answer = if until == self.started { self.started + WAIT_FOR_KAFKA } else { until };
        if self.may_not_claim() {
            // An answer that is still missing may be a reason to exit with another status.
            Some(after_first_answer)
        } else if self.listener.has_read_other_leader()
            || self.next_claim.unanswered_since.is_some()
            || self.highest_term >= 0
        {
            Some(until)
        } else if !self.listener.is_answered() {
            Some(after_first_answer)
        } else if self.claim_due(Time::ZERO).is_some() {
            None
        } else {
            // The group may have given the partition to another candidate, or Kafka may not deliver the log, or say whether it is still there.
            let window = self.listener.claim_window().map(|window| window.since);
            let since = window.or_else(|| self.listener.stalled_since())?;
            Some(until.max(since + WAIT_FOR_KAFKA))
        }
    }

    /// The time after which a reader that has delivered no record is replaced, if the log grows.
    fn patience_with_reader(&self) -> Duration {
        self.timings.lease.max(READER_RECOVERS)
    }

    /// When a standby's reader is replaced. A leader's reader is replaced when its lease ends.
    fn stuck_due(&self) -> Option<Time> {
        self.listener.stuck_since().map(|since| since + self.patience_with_reader())
    }

    fn replace_reader_if_stuck(&mut self, now: Time) {
        if self.stuck_due().is_some_and(|due| now >= due) {
            let silent = self.patience_with_reader();
            self.actions.push_back(Action::Note(Note::ReaderStuck { end: self.listener.known_end(), silent }));
            self.ask_anew(now);
        }
    }

    /// When the next claim may be sent after a void one (R2): after a fresh random delay, so that candidates that retry at the same pace do not
    /// void each other for ever. Another claim voids this one if it is appended while this one is in flight; the longer that takes, the longer
    /// the delay must be. Two claims within one round trip void each other, so many candidates need about one round trip for each of them.
    pub(super) fn claims_again_from(&mut self, now: Time, sent: Time) -> Time {
        let round_trip = now.since(sent);
        // A claim that was never read back does not show how long a round trip is.
        let longest = if round_trip >= self.timings.lease {
            RANDOM_DELAY
        } else {
            let ways = self.precedence.standbys(now).max(ROUND_TRIPS);
            RANDOM_DELAY.max(round_trip.saturating_mul(ways)).min(LONGEST_RANDOM_DELAY)
        };
        now + self.random.up_to(longest)
    }

    /// Whether nothing may be claimed for now, whatever the election's state is.
    pub(super) fn may_not_claim(&self) -> bool {
        self.next_claim.is_held || self.next_claim.lacks_guard || !self.is_judged
    }

    /// The time from which a claim that was sent at `sent` is too late: the job would get the fence warning before a beat had an interval's
    /// time to be read back. If beats are always that slow, no job could run for long.
    pub(super) fn claim_expires_at(&self, sent: Time) -> Time {
        let timings = &self.timings;
        let late = timings.heartbeat_interval + timings.kill_margin + timings.fence_warning;
        sent + timings.lease.saturating_sub(late)
    }

    /// Handles a claim that was not read back within its lease: either the producer or the reader has failed. The log's end shows whether
    /// there are more records to read. A producer that has failed for two leases is renewed.
    pub(super) fn claim_went_unanswered(&mut self, now: Time, sent: Time) {
        self.actions.push_back(Action::Kafka(Request::LookForEnd));
        let since = *self.next_claim.unanswered_since.get_or_insert(sent);
        if now >= since + self.timings.lease * 2 {
            self.next_claim.unanswered_since = Some(now);
            self.actions.push_back(Action::Kafka(Request::RenewProducer));
            self.ask_identity_again();
        }
    }

    /// Notes that a record was read, so Kafka answers.
    pub(super) const fn kafka_answers(&mut self) {
        self.next_claim.unanswered_since = None;
    }
}

// ---- --preempt: a candidate that has stood by for long enough under a leader of lower priority asks it to resign ---

/// A candidate that has lost its own last lead waits this many times as long, since it may lose the next one too.
const AFTER_LOSS: u32 = 10;

impl Election {
    /// Notes a leader of lower priority, and asks it to resign when the time of `--preempt` has passed. Asks again after each further such time,
    /// since a request may be lost.
    pub(super) fn preempt_if_due(&mut self, now: Time) {
        let after = self.timings.preempt_after.map(|after| if self.has_lost_lead { after * AFTER_LOSS } else { after });
        let (Some(after), Some((term, priority))) = (after, self.lower_leader(now)) else {
            self.preemption = None;
            return;
        };
        let asks_at = self.preemption.filter(|(known, _)| *known == term).map(|(_, asks_at)| asks_at);
        if asks_at.is_none_or(|asks_at| now >= asks_at) {
            self.preemption = Some((term, now + after));
        }
        if asks_at.is_some_and(|asks_at| now >= asks_at) {
            self.ask_to_resign(term, priority);
        }
    }

    /// The term and the priority of the leader, if its priority is known and lower, and if this candidate could claim before that leader has cooled off (R7).
    /// Otherwise the leader's job would be stopped in vain, and nobody might lead for that long.
    fn lower_leader(&self, now: Time) -> Option<(Offset, u16)> {
        let claim_delay = self.precedence.delay(now, Predecessor::Gone)?.fixed;
        let is_ready = self.listener.claim_window().is_some()
            && !self.may_not_claim()
            && self.leaving.is_none()
            && self.cooling_off.is_none()
            && !self.precedence.is_backing_off();
        let term = self.current_term().filter(|term| is_ready && claim_delay < term.lease * 2)?;
        let member = term.member.as_ref().filter(|member| **member != self.hello.member)?;
        let priority = self.precedence.priority_of(now, member)?;
        (priority < self.precedence.priority).then_some((term.offset, priority))
    }

    fn ask_to_resign(&mut self, term: Offset, priority: u16) {
        let own = self.precedence.priority;
        self.actions.push_back(Action::Note(Note::Preempting { term, priority, own }));
        let seq = self.next_seq();
        // The record contains this candidate's name already; a long name would not fit twice.
        let reason = Some(format!("its priority is {own}, and the leader's {priority} (--preempt)").into());
        self.send(seq, Body::Request { what: What::Resign, term: Some(term), by: None, reason, successor: None });
    }
}
