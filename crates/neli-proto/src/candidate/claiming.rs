//! A claim in flight (R2), and its outcome (R3, R5).

use core::time::Duration;

use super::action::Action;
use super::awaiting_judgement::AwaitingJudgement;
use super::leading::Leading;
use super::reading::OwnClaim;
use super::releasing::Releasing;
use super::standing_by::StandingBy;
use super::state::{Input, State};
use super::{Common, Judgement};
use crate::note::Note;
use crate::precedence::RANDOM_DELAY;
use crate::record::{Body, Why};
use crate::time::Time;

/// After a void claim the next one is spread over at least this many round trips.
const ROUND_TRIPS: u32 = 4;

/// The longest random delay. It does not depend on the lease: with many standbys on a slow link, claims that are spread over one lease would
/// follow each other within less than a round trip, and void each other without end. A later claim only costs time.
const LONGEST_RANDOM_DELAY: Duration = Duration::from_secs(60);

/// A claim in flight.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Claiming {
    seq: u64,
    sent: Time,
    /// The reason, if the candidate was asked to stand down meanwhile: then it releases the term if the claim takes effect (R7).
    stood_down: Option<Why>,
    /// A release that was read after the claim was sent names this candidate as the successor.
    is_named: bool,
}

impl Claiming {
    /// Sends the claim.
    pub(super) fn begin(common: &mut Common, now: Time) -> State {
        let after = common.listener.last();
        let seq = common.next_seq();
        let lease_ms = common.lease_ms();
        let overlap = common.overlap_of_claim();
        common.send(seq, Body::Claim { after, lease_ms, overlap });
        if let Judgement::Awaited { claimed } = &mut common.judgement {
            *claimed = true;
        }
        // If Kafka does not answer, that was reported, and there is a new attempt each lease.
        if !common.claim_unanswered {
            common.standing_by = None;
            common.actions.push_back(Action::Note(Note::Claiming { after }));
        }
        State::Claiming(Self { seq, sent: now, stood_down: None, is_named: false })
    }

    /// When the claim was sent.
    pub(super) const fn sent(&self) -> Time {
        self.sent
    }

    /// Until when the candidate waits for the claim.
    pub(super) fn expires_at(&self, common: &Common) -> Time {
        self.sent + common.timings.lease()
    }

    pub(super) fn step(mut self, common: &mut Common, now: Time, input: Input) -> State {
        match input {
            Input::ClaimEffective(claim) if claim.seq() == Some(self.seq) => {
                return self.took_effect(common, now, claim);
            }
            Input::ClaimEffective(claim) => return Releasing::of_expired_claim(common, now, claim),
            Input::ClaimVoid { seq } if seq == Some(self.seq) => return self.was_void(common, now),
            Input::GivenUp => return self.was_void(common, now),
            Input::HistoryCut => return StandingBy::from(now),
            Input::NamedSuccessor => self.is_named = true,
            Input::Revoked => {
                self.stood_down.get_or_insert(Why::Revoked);
            }
            Input::StandDown { why } => {
                if why != Why::Suspended || self.stood_down.is_none() {
                    self.stood_down = Some(why);
                }
            }
            Input::TimedOut => {
                if now >= self.expires_at(common) {
                    common.claim_went_unanswered(now, self.sent);
                    return self.was_void(common, now);
                }
            }
            Input::BeatEffective { .. }
            | Input::ClaimVoid { .. }
            | Input::Continued
            | Input::Delivered { .. }
            | Input::GuardFenced { .. }
            | Input::Job(_)
            | Input::MoveOn
            | Input::NothingLeft(_)
            | Input::ReleaseRead { .. }
            | Input::TimePassed
            | Input::TopicJudged { .. }
            | Input::Undelivered { .. }
            | Input::ViewChanged => {}
        }
        State::Claiming(self)
    }

    /// R3: the lease runs from the claim's sending. R5: a claim that is read back too late is released.
    fn took_effect(self, common: &mut Common, now: Time, claim: OwnClaim) -> State {
        let lease_end = self.sent + common.timings.lease();
        if self.stood_down.is_some_and(Why::lets_another_lead) {
            common.cool_off(now);
        }
        if let Some(why) = common.leaving.or(self.stood_down) {
            return Releasing::of_claim(common, now, claim, why, lease_end);
        }
        let is_late = now >= common.claim_expires_at(self.sent);
        if is_late || claim.term() <= common.highest_term {
            return Releasing::of_claim(common, now, claim, Why::ClaimExpired, lease_end);
        }
        if common.judgement != Judgement::Fit {
            return AwaitingJudgement::begin(claim, self.sent);
        }
        Leading::begin(common, now, claim, self.sent)
    }

    /// R2: a fresh random delay after a void claim, so that candidates that retry at the same pace do not void each other for ever. Another
    /// claim voids this one if it is appended while this one is in flight; the longer that takes, the longer the delay must be. The named
    /// successor of a release needs no delay after a claim that it sent before it read the release, since the other candidates leave the
    /// vacancy to it.
    fn was_void(self, common: &mut Common, now: Time) -> State {
        let longest = self.random_delay_after_void(common, now);
        let is_left_to_it = self.is_named && common.precedence.is_named_successor();
        let not_before = if is_left_to_it { now } else { now + common.random.up_to(longest) };
        if self.stood_down.is_some_and(Why::lets_another_lead) {
            common.cool_off(now);
        }
        common.draw = None;
        StandingBy::from(not_before)
    }

    /// The maximum of that delay. Two claims within one round trip void each other, so many candidates need about one round trip for each of
    /// them. A claim that was never read back does not show how long a round trip is.
    fn random_delay_after_void(&self, common: &Common, now: Time) -> Duration {
        let round_trip = now.since(self.sent);
        if round_trip >= common.timings.lease() {
            RANDOM_DELAY
        } else {
            let ways = common.precedence.standbys(now).max(ROUND_TRIPS);
            RANDOM_DELAY.max(round_trip.saturating_mul(ways)).min(LONGEST_RANDOM_DELAY)
        }
    }
}
