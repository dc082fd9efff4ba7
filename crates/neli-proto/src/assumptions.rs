//! Whether a lease outlives the unclean death of a broker.
//!
//! A record can be read only when every replica in sync has it. A dead broker counts as in sync until the controller removes it,
//! `broker.session.timeout.ms` after the broker's last heartbeat. So no beat of a leader is read back for that long.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::time::Duration;

use crate::timings::{LONGEST_DEFAULT_FENCE_WARNING, LONGEST_DEFAULT_HEARTBEAT_INTERVAL, LONGEST_LEASE, Timings};

/// The additional time if the active controller has died with the broker: 4.9 s were measured.
const ANOTHER_CONTROLLER: Duration = Duration::from_secs(5);
/// The warning about a lease that certainly does not outlive the death of a broker, if brokers have this `session` with the controller.
pub fn warning(timings: &Timings, session: Duration) -> Option<String> {
    // The last heartbeat that came back may have been sent an interval before the death.
    let before_the_end = timings.kill_margin + timings.fence_warning + timings.heartbeat_interval;
    let asked_to_stop_after = timings.lease.saturating_sub(before_the_end);
    if asked_to_stop_after > session {
        return None;
    }
    let advice = match long_enough(timings, session) {
        lease if lease <= LONGEST_LEASE => format!("{}s is long enough", lease.as_secs()),
        _ => "no lease is long enough for that; shorten it in the configuration of brokers and controllers".to_owned(),
    };
    Some(format!(
        "too short for the unclean death of a broker: records written after it can't be read for {} ms \
         (broker.session.timeout.ms), and a leader's job may be asked to stop after {} ms; {advice}",
        session.as_millis(),
        asked_to_stop_after.as_millis()
    ))
}

/// The lease that is long enough, in whole seconds. Its kill margin is a fiftieth of it, and a heartbeat is sent each second.
fn long_enough(timings: &Timings, session: Duration) -> Duration {
    let fence_warning = timings.fence_warning.max(LONGEST_DEFAULT_FENCE_WARNING);
    let quiet = session + ANOTHER_CONTROLLER + fence_warning + LONGEST_DEFAULT_HEARTBEAT_INTERVAL;
    let lease = quiet * 50 / 49;
    Duration::from_secs(lease.as_secs() + 1)
}

// ---- the rate of this machine's clock ------------------------------------------------------------------------------

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
    pub const fn width(&self) -> u64 {
        self.after.saturating_sub(self.before)
    }

    /// The rate from this reading to the later one.
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
    use crate::timings::{Durations, Elector, default_fence_warning, default_heartbeat_interval, kill_margin};

    fn timings(lease_ms: u64) -> Timings {
        let lease = Duration::from_millis(lease_ms);
        let durations = Durations {
            lease,
            heartbeat_interval: default_heartbeat_interval(lease),
            kill_margin: kill_margin(lease),
            fence_warning: default_fence_warning(lease),
            preempt_after: None,
            overlap: None,
        };
        Timings::new(durations, Elector::Log).unwrap()
    }

    fn warned(lease_ms: u64, session_ms: u64) -> Option<String> {
        warning(&timings(lease_ms), Duration::from_millis(session_ms))
    }

    #[test]
    fn the_default_outlives_it_and_a_lease_with_an_earlier_fence_warning_does_not() {
        assert_eq!(warned(20_000, 9_000), None);
        // 9.8 s less 2.5 s and the second of a heartbeat are not 9 s.
        let line = warned(10_000, 9_000).unwrap();
        let said = "for 9000 ms (broker.session.timeout.ms), and a leader's job may be asked to stop after 6300 ms; 18s is long enough";
        assert!(line.ends_with(said), "{line}");
        // 11.76 s less 2.5 s are more than 9 s; less a heartbeat's second they are not.
        assert!(warned(12_000, 9_000).is_some());
        assert_eq!(warned(5_000, 2_500), None);
        assert!(warned(5_000, 2_650).is_some());
    }

    #[test]
    fn the_lease_that_is_recommended_is_long_enough() {
        for session in (500..50_000).step_by(100).map(Duration::from_millis) {
            let lease = long_enough(&timings(300), session);
            // A lease that is too long for the protocol is not used.
            let used = timings(u64::try_from(lease.min(LONGEST_LEASE).as_millis()).unwrap());
            let before_the_end = kill_margin(lease) + used.fence_warning + used.heartbeat_interval;
            assert!(lease > session + ANOTHER_CONTROLLER + before_the_end, "{session:?}: {lease:?}");
        }
        let longest = Duration::from_secs(60);
        assert_eq!(LONGEST_LEASE, longest);
        let session =
            (0..60_000).rfind(|session| long_enough(&timings(5_000), Duration::from_millis(*session)) == longest);
        let line = warned(5_000, session.unwrap()).unwrap();
        assert!(line.ends_with("60s is long enough"), "{line}");
        let line = warned(60_000, 120_000).unwrap();
        assert!(line.contains("no lease is long enough"), "{line}");
    }
}

#[cfg(test)]
mod tests_of_clock_rate {
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
