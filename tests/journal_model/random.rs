//! Stands in for `logic/random.rs`: whoever throws the dice always gets the same share, its seed in hundredths, so that
//! the search has no states that differ in luck alone. What luck does, the search does by pauses and delays.

use std::time::Duration;

/// A share that never changes.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Random(u64);

impl Random {
    /// That of `seed` hundredths.
    pub(crate) const fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// This share of `most`.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "as in logic/random.rs")]
    pub(crate) fn up_to(&mut self, most: Duration) -> Duration {
        most * u32::try_from(self.0).unwrap_or(0) / 100
    }
}
