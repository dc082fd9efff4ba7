//! What is not handed over at once to the one that the group has chosen: it may be dead, or could not lead the role, or was asked not to.

use core::time::Duration;

use crate::record::Why;
use crate::time::Time;

/// The group knows by then that a member is dead, and has chosen another: its session is over, which takes 6 s unless it is set longer.
const DEATH_IS_KNOWN: Duration = Duration::from_secs(20);

/// What the one that was to have it did not take is offered again after so long, twice as long each time in a row.
const NOT_TAKEN: Duration = Duration::from_secs(30);

/// What another was asked to give up is kept for so long at least.
const GIVEN_UP: Duration = Duration::from_secs(30);

/// What another gave up is kept for so long, and nothing longer.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// For how long a role is kept from the group's choice, should this process lead it and not be that choice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// It is not handed over before.
    until: Time,
    /// From `until` to then it is handed over only where shares are not fair as they are.
    while_fair_until: Time,
    /// Its last leader handed it over.
    is_offered: bool,
    /// How often in a row it was not taken, and when last.
    refusals: u32,
    refused_at: Time,
}

impl Kept {
    pub(super) const fn not(now: Time) -> Self {
        Self { until: now, while_fair_until: now, is_offered: false, refusals: 0, refused_at: now }
    }

    /// Another has released it for this reason.
    pub(super) fn released(&mut self, now: Time, why: Option<Why>) {
        self.is_offered = why == Some(Why::Spread);
        let (least, while_fair) = match why {
            Some(Why::Resigned) => (GIVEN_UP, LONGEST),
            Some(Why::FactsUnavailable | Why::RestartLimit | Why::Unhealthy) => (LONGEST, LONGEST),
            Some(Why::SupervisorDied) => (DEATH_IS_KNOWN, DEATH_IS_KNOWN),
            Some(_) | None => (Duration::ZERO, Duration::ZERO),
        };
        (self.until, self.while_fair_until) = (now + least, now + while_fair);
    }

    /// This process hands it over.
    pub(super) const fn offered(&mut self) {
        self.is_offered = true;
    }

    /// This process, which is not the group's choice, leads it now; `is_after_silence`: since its leader was silent for a lease.
    pub(super) fn taken(&mut self, now: Time, is_after_silence: bool) {
        if core::mem::take(&mut self.is_offered) {
            // After longer than it is ever kept for, somebody has taken it meanwhile.
            let is_in_a_row = now < self.refused_at + LONGEST * 2;
            self.refusals = if is_in_a_row { self.refusals } else { 0 };
            self.until = now + NOT_TAKEN.saturating_mul(1 << self.refusals.min(5)).min(LONGEST);
            self.while_fair_until = self.until;
            (self.refusals, self.refused_at) = (self.refusals + 1, now);
        } else if is_after_silence {
            (self.until, self.while_fair_until) = (now + DEATH_IS_KNOWN, now + DEATH_IS_KNOWN);
        }
    }

    /// Whether it is to be handed over.
    pub(super) fn is_over(&self, now: Time, are_fair: bool) -> bool {
        now >= if are_fair { self.while_fair_until } else { self.until }
    }

    /// When it may be handed over that may not be yet.
    pub(super) const fn ends(&self) -> [Time; 2] {
        [self.until, self.while_fair_until]
    }
}
