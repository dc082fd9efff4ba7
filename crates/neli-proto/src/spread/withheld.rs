//! Roles that are withheld for a while from the member that the group has chosen: the member may be dead, may be unable to lead the role,
//! or was asked to give it up.

use core::time::Duration;

use crate::record::Why;
use crate::time::Time;

/// Within this time the group has noticed a member's death and chosen another one: the session (6 s by default) is over.
const DEATH_IS_KNOWN: Duration = Duration::from_secs(20);

/// A role that the chosen member did not take is offered to it again after this time. Doubled for each time in a row.
const NOT_TAKEN: Duration = Duration::from_secs(30);

/// A role that its leader was asked to give up (`resign`) is withheld for at least this long.
const GIVEN_UP: Duration = Duration::from_secs(30);

/// A role that its leader gave up is withheld for at most this long.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// How long this process, if it leads the role, withholds it from the group's choice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Withheld {
    /// The role is not handed over before this time.
    until: Time,
    /// Between `until` and this time the role is handed over only if the shares are unfair otherwise.
    while_fair_until: Time,
    /// Whether the last leader handed the role over.
    is_offered: bool,
    /// How often in a row the role was not taken, and when that last happened.
    refusals: u32,
    refused_at: Time,
}

impl Withheld {
    pub(super) const fn not(now: Time) -> Self {
        Self { until: now, while_fair_until: now, is_offered: false, refusals: 0, refused_at: now }
    }

    /// Handles that another candidate released the role for this reason. `is_named`: it named a successor, so the role was not offered to the
    /// group's choice.
    pub(super) fn released(&mut self, now: Time, why: Option<Why>, is_named: bool) {
        self.is_offered = why == Some(Why::Spread) && !is_named;
        let (least, while_fair) = match why {
            Some(Why::Resigned) => (GIVEN_UP, LONGEST),
            Some(Why::FactsUnavailable | Why::RestartLimit | Why::Unhealthy) => (LONGEST, LONGEST),
            Some(Why::SupervisorDied) => (DEATH_IS_KNOWN, DEATH_IS_KNOWN),
            Some(_) | None => (Duration::ZERO, Duration::ZERO),
        };
        (self.until, self.while_fair_until) = (now + least, now + while_fair);
    }

    /// Notes that this process hands the role over.
    pub(super) const fn offered(&mut self) {
        self.is_offered = true;
    }

    /// Notes that this process leads the role now, although the group has chosen another member. `is_after_silence`: the previous leader
    /// had been silent for its lease.
    pub(super) fn taken(&mut self, now: Time, is_after_silence: bool) {
        if core::mem::take(&mut self.is_offered) {
            // If more time has passed than a role is ever withheld, another candidate must have led it in between.
            let is_in_a_row = now < self.refused_at + LONGEST * 2;
            self.refusals = if is_in_a_row { self.refusals } else { 0 };
            self.until = now + NOT_TAKEN.saturating_mul(1 << self.refusals.min(5)).min(LONGEST);
            self.while_fair_until = self.until;
            (self.refusals, self.refused_at) = (self.refusals + 1, now);
        } else if is_after_silence {
            (self.until, self.while_fair_until) = (now + DEATH_IS_KNOWN, now + DEATH_IS_KNOWN);
        }
    }

    /// Whether the role may be handed over now.
    pub(super) fn is_over(&self, now: Time, are_fair: bool) -> bool {
        now >= if are_fair { self.while_fair_until } else { self.until }
    }

    /// When a role that may not be handed over yet may be handed over.
    pub(super) const fn ends(&self) -> [Time; 2] {
        [self.until, self.while_fair_until]
    }
}
