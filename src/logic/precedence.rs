//! Precedence: the delay before a candidate claims a vacancy. It decides who leads *first*, never who leads.

use std::collections::BTreeMap;
use std::time::Duration;

use super::candidate::{Elector, Patience};
use super::record::MemberId;
use super::time::Time;

/// Where nothing better is known, claims are spread over this span.
pub const SPREAD: Duration = Duration::from_millis(50);

/// Each candidate says hello this often.
pub const HELLO_INTERVAL: Duration = Duration::from_secs(30);

/// A candidate that has not been heard for this long has gone: two hellos missed.
const HELLO_HOLDS: Duration = Duration::from_secs(75);

/// The jitter for each standby known. A claim takes a millisecond or two until the others have read it, so some fifteen claim a
/// vacancy, however many stand by; the first of them does so within about this long, however wide the span.
const JITTER_PER_STANDBY: Duration = Duration::from_micros(100);

/// With this many standbys the jitter is at its most, 100 ms; more need not be remembered.
const STANDBYS_COUNTED: usize = 1_000;

/// What the group says of this member.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Standing {
    /// The role's partition is assigned to it.
    Assigned,
    /// The partition is another's.
    Elsewhere,
    /// No assignment is known: joining, lost, or the coordinator is out of reach.
    Unknown,
}

/// Who claims a vacancy first, as far as this member knows.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Precedence {
    elector: Elector,
    /// Added to every claim delay.
    claim_delay: Duration,
    standing: Standing,
    /// The others, by their last hello.
    heard: BTreeMap<MemberId, Time>,
}

impl Precedence {
    /// That of a member of which nothing is known yet.
    #[must_use]
    pub const fn new(elector: Elector, claim_delay: Duration) -> Self {
        Self { elector, claim_delay, standing: Standing::Unknown, heard: BTreeMap::new() }
    }

    /// The group has spoken.
    pub fn stand(&mut self, standing: Standing) {
        self.standing = standing;
    }

    /// What the group said last.
    #[must_use]
    pub const fn standing(&self) -> Standing {
        self.standing
    }

    /// Another candidate said hello.
    pub fn heard(&mut self, now: Time, member: MemberId) {
        self.heard.retain(|_, at| now.since(*at) < HELLO_HOLDS);
        if self.heard.len() < STANDBYS_COUNTED || self.heard.contains_key(&member) {
            self.heard.insert(member, now);
        }
    }

    /// Another candidate released a term: most do so because they go, and whoever stays says hello again.
    pub fn released(&mut self, member: &MemberId) {
        self.heard.remove(member);
    }

    /// How many others are known by their hellos, up to a thousand.
    #[must_use]
    pub fn standbys(&self, now: Time) -> u32 {
        let standbys = self.heard.values().filter(|at| now.since(**at) < HELLO_HOLDS).count();
        u32::try_from(standbys).unwrap_or(u32::MAX)
    }

    /// The most that a random draw may add, and the delay below it; none when this member never claims.
    ///
    /// `after_death`: the last release was written for a dead supervisor, so whoever has the partition is likely dead.
    #[must_use]
    pub fn delay(&self, now: Time, after_death: bool) -> Option<Delay> {
        let (fixed, spread) = match (self.elector, self.standing) {
            (Elector::Log, _) | (Elector::Group(_), Standing::Assigned) => (Duration::ZERO, Duration::ZERO),
            (Elector::Group(Patience::Never), Standing::Elsewhere | Standing::Unknown) => return None,
            (Elector::Group(Patience::For(_)), Standing::Unknown) => (Duration::ZERO, SPREAD),
            (Elector::Group(Patience::For(_)), Standing::Elsewhere) if after_death => (Duration::ZERO, SPREAD),
            (Elector::Group(Patience::For(patience)), Standing::Elsewhere) => (patience, Duration::ZERO),
        };
        let jitter = JITTER_PER_STANDBY * self.standbys(now);
        Some(Delay { fixed: fixed + self.claim_delay, random: spread + jitter })
    }
}

/// A claim delay before the dice are thrown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Delay {
    /// This much in any case.
    pub fixed: Duration,
    /// Up to this much more.
    pub random: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_nanos(0);

    fn delay(elector: Elector, standing: Standing, after_death: bool) -> Option<(u64, u64)> {
        let mut precedence = Precedence::new(elector, Duration::from_millis(7));
        precedence.stand(standing);
        let delay = precedence.delay(NOW, after_death)?;
        Some((delay.fixed.as_millis().try_into().unwrap(), delay.random.as_millis().try_into().unwrap()))
    }

    #[test]
    fn the_groups_choice_claims_first() {
        let group = Elector::Group(Patience::For(Duration::from_millis(500)));
        assert_eq!(delay(group, Standing::Assigned, false), Some((7, 0)));
        assert_eq!(delay(group, Standing::Unknown, false), Some((7, 50)));
        assert_eq!(delay(group, Standing::Elsewhere, false), Some((507, 0)));
        assert_eq!(delay(group, Standing::Elsewhere, true), Some((7, 50)));
    }

    #[test]
    fn without_patience_only_the_groups_choice_claims() {
        let never = Elector::Group(Patience::Never);
        assert_eq!(delay(never, Standing::Assigned, false), Some((7, 0)));
        assert_eq!(delay(never, Standing::Unknown, true), None);
        assert_eq!(delay(never, Standing::Elsewhere, true), None);
    }

    #[test]
    fn in_the_log_nobody_has_precedence() {
        for standing in [Standing::Assigned, Standing::Elsewhere, Standing::Unknown] {
            assert_eq!(delay(Elector::Log, standing, false), Some((7, 0)));
        }
    }

    #[test]
    fn the_jitter_grows_with_the_standbys_and_is_bounded() {
        let mut precedence = Precedence::new(Elector::Log, Duration::ZERO);
        for index in 0..1_200_u128 {
            precedence.heard(NOW, MemberId::from_random(index));
            precedence.heard(NOW, MemberId::from_random(0));
            let random = precedence.delay(NOW, false).unwrap().random;
            assert_eq!(random, Duration::from_micros(100 * u64::try_from(index + 1).unwrap().min(1_000)));
        }
        precedence.released(&MemberId::from_random(0));
        assert_eq!(precedence.delay(NOW, false).unwrap().random, Duration::from_micros(100 * 999));
        let later = NOW + HELLO_HOLDS;
        assert_eq!(precedence.delay(later, false).unwrap().random, Duration::ZERO);
    }
}
