//! Random delays. The caller gives the seed, so that a run can be repeated.

use core::time::Duration;

/// The source of random delays.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Random {
    /// The state of a splitmix64 generator (Steele, Lea, Flood 2014). That is sufficient to prevent two candidates from acting at the same
    /// pace.
    SplitMix64(u64),
    /// The same share of every span, in hundredths.
    Fixed(u32),
}

impl Random {
    /// The sequence for this `seed`.
    pub const fn from_seed(seed: u64) -> Self {
        Self::SplitMix64(seed)
    }

    /// No randomness: always this number of hundredths of the span. A search over all orders of events uses it, so that no two states
    /// differ only in the generator's state.
    pub const fn fixed(hundredths: u32) -> Self {
        Self::Fixed(hundredths)
    }

    /// A duration from zero to `most`.
    pub fn up_to(&mut self, most: Duration) -> Duration {
        let state = match self {
            Self::SplitMix64(state) => state,
            Self::Fixed(hundredths) => return most * *hundredths / 100,
        };
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = *state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        // A double's mantissa has 53 bits, so the quotient is in 0..1.
        #[expect(clippy::cast_precision_loss, reason = "53 bits are exact in a double")]
        let fraction = (bits >> 11) as f64 / (1_u64 << 53) as f64;
        most.mul_f64(fraction)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

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

    /// The generator's first outputs for this seed, according to its authors' program, are multiplied by the span and divided by 2^64.
    #[test]
    fn a_seed_gives_the_sequence_of_splitmix64() {
        const OUTPUTS: [u64; 3] = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        let span = Duration::from_secs(1 << 20);
        let mut random = Random::from_seed(1_234_567);
        for output in OUTPUTS {
            let nanos = (u128::from(output) * span.as_nanos()) >> 64;
            assert!(random.up_to(span).as_nanos().abs_diff(nanos) < 1_000);
        }
    }

    #[test]
    fn without_randomness_it_is_the_same_share_of_every_span() {
        let mut random = Random::fixed(25);
        let shares = [4, 200].map(|millis| random.up_to(Duration::from_millis(millis)).as_millis());
        assert_eq!(shares, [1, 50]);
    }
}
