//! Random delays without a source of randomness: the seed comes from outside, so that a story can be told twice.

use std::time::Duration;

/// A splitmix64 generator (Steele, Lea, Flood 2014): enough to keep two candidates out of step.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Random(u64);

impl Random {
    /// The sequence that belongs to `seed`.
    #[must_use]
    pub const fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// A duration from zero to `most`.
    pub fn up_to(&mut self, most: Duration) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        // 53 bits fill a double's mantissa: the quotient is in 0..1.
        #[expect(clippy::cast_precision_loss, reason = "53 bits are exact in a double")]
        let fraction = (bits >> 11) as f64 / (1_u64 << 53) as f64;
        most.mul_f64(fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_spread_over_the_whole_span() {
        let mut random = Random::from_seed(1);
        let span = Duration::from_millis(50);
        let delays: Vec<_> = (0..1000).map(|_| random.up_to(span)).collect();
        assert!(delays.iter().all(|delay| *delay < span));
        assert!(delays.iter().any(|delay| *delay < span / 20));
        assert!(delays.iter().any(|delay| *delay > span * 19 / 20));
    }
}
