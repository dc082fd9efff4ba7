//! The rate of this machine's clock. Leases assume that the rates of two machines' clocks are within 1 % of each other, but a time service
//! may make a clock faster or slower by up to 10 % (chrony's default: 8.3 %).

/// The allowed error of a rate, in parts per million: R2 waits this much longer than the lease.
pub(crate) const ALLOWED_PPM: u64 = 10_000;

/// At half of the allowed error or more, another machine with the opposite error violates the assumption together with this one.
const NEAR_PPM: u64 = ALLOWED_PPM / 2;

/// If the rate's error is larger than this, in parts per million, the rate is not reported.
const EXACT_ENOUGH_PPM: u64 = 1_000;

/// One reading of the leases' clock and of the hardware clock, which no service corrects; in nanoseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClockReading {
    /// The hardware clock just before.
    pub before: u64,
    /// The clock that leases use.
    pub corrected: u64,
    /// The hardware clock just after.
    pub after: u64,
}

/// How far the clock's rate is from the hardware clock's, in parts per million; positive if it is faster.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Rate {
    /// The difference is small, as it should be.
    Near(i64),
    /// The difference is acceptable, unless another machine's clock errs in the opposite direction.
    Off(i64),
    /// The difference is larger than allowed.
    Beyond(i64),
    /// The two readings were too close to each other, or took too long.
    Unknown,
}

impl ClockReading {
    /// How long the reading took, which limits its error.
    #[must_use]
    pub const fn width(&self) -> u64 {
        self.after.saturating_sub(self.before)
    }

    /// The rate from this reading to the later one.
    #[must_use]
    pub fn rate_until(&self, later: &Self) -> Rate {
        let hardware = i128::from(later.before) - i128::from(self.before);
        let corrected = i128::from(later.corrected) - i128::from(self.corrected);
        let uncertain = i128::from(self.width()) + i128::from(later.width());
        if hardware <= 0 || uncertain * 1_000_000 > i128::from(EXACT_ENOUGH_PPM) * hardware {
            return Rate::Unknown;
        }
        let Ok(ppm) = i64::try_from((corrected - hardware) * 1_000_000 / hardware) else { return Rate::Unknown };
        match ppm.unsigned_abs() {
            off if off <= NEAR_PPM => Rate::Near(ppm),
            off if off <= ALLOWED_PPM => Rate::Off(ppm),
            _ => Rate::Beyond(ppm),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listener::silence;
    use core::time::Duration;

    const SECOND: u64 = 1_000_000_000;

    /// The rate between two readings that are one second of the hardware clock apart and took this long.
    fn rate(corrected: u64, width: u64) -> Rate {
        let reading = |hardware, corrected| ClockReading { before: hardware, corrected, after: hardware + width };
        reading(7 * SECOND, 5 * SECOND).rate_until(&reading(8 * SECOND, 5 * SECOND + corrected))
    }

    #[test]
    fn a_rate_is_judged_by_what_r2_allows() {
        assert_eq!(rate(SECOND, 100), Rate::Near(0));
        assert_eq!(rate(SECOND + 500_000, 100), Rate::Near(500), "as far as NTP alone corrects");
        assert_eq!(rate(SECOND - 5_000_000, 100), Rate::Near(-5_000));
        assert_eq!(rate(SECOND + 5_001_000, 100), Rate::Off(5_001));
        assert_eq!(rate(SECOND - 10_000_000, 100), Rate::Off(-10_000));
        assert_eq!(rate(SECOND + 10_001_000, 100), Rate::Beyond(10_001));
        assert_eq!(rate(SECOND - 83_333_000, 100), Rate::Beyond(-83_333), "as chrony may");
        assert_eq!(rate(0, 100), Rate::Beyond(-1_000_000), "one that stands still");
    }

    #[test]
    fn an_inexact_rate_is_not_reported() {
        assert_eq!(rate(SECOND, 500_000), Rate::Near(0));
        assert_eq!(rate(SECOND, 500_001), Rate::Unknown);
        let reading = ClockReading { before: 1, corrected: 1, after: 1 };
        assert_eq!(reading.rate_until(&reading), Rate::Unknown);
        assert_eq!(
            ClockReading { before: 2, ..reading }.rate_until(&reading),
            Rate::Unknown,
            "a clock that runs backwards"
        );
        let last = ClockReading { before: u64::MAX, corrected: u64::MAX, after: u64::MAX };
        assert_eq!(ClockReading { before: 0, corrected: 0, after: 0 }.rate_until(&last), Rate::Near(0));
    }

    #[test]
    fn the_allowed_rate_is_the_slack_of_the_silence() {
        let (long, longer) = (silence(Duration::from_secs(10)), silence(Duration::from_secs(20)));
        let lease = Duration::from_secs(10);
        assert_eq!(longer, long + lease + Duration::from_micros(10 * ALLOWED_PPM));
    }
}
