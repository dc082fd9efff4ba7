//! Whether a lease outlives the unclean death of a broker.
//!
//! A record can be read only when every replica in sync has it. A dead broker counts as in sync until the controller removes it,
//! `broker.session.timeout.ms` after the broker's last heartbeat. So no beat of a leader is read back for that long.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::time::Duration;

use crate::timings::{LONGEST_LEASE, Timings};

/// The additional time if the active controller has died with the broker: 4.9 s were measured.
const ANOTHER_CONTROLLER: Duration = Duration::from_secs(5);
/// The fence warning of a lease that is long enough, unless one is given.
const FENCE_WARNING: Duration = Duration::from_millis(2500);
/// The heartbeat interval of such a lease, unless one is given.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// The warning about a lease that certainly does not outlive the death of a broker, if brokers have this `session` with the controller.
#[must_use]
pub fn warning(timings: &Timings, session: Duration) -> Option<String> {
    // The last heartbeat that came back may have been sent an interval before the death.
    let before_the_end = timings.kill_margin() + timings.fence_warning() + timings.heartbeat_interval();
    let asked_to_stop_after = timings.lease().saturating_sub(before_the_end);
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
    let quiet = session + ANOTHER_CONTROLLER + timings.fence_warning().max(FENCE_WARNING) + HEARTBEAT_INTERVAL;
    let lease = quiet * 50 / 49;
    Duration::from_secs(lease.as_secs() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timings::{Durations, Elector, kill_margin};

    fn timings(lease_ms: u64) -> Timings {
        let lease = Duration::from_millis(lease_ms);
        let durations = Durations {
            lease,
            heartbeat_interval: (lease / 5).min(Duration::from_secs(1)),
            kill_margin: kill_margin(lease),
            fence_warning: (lease / 4).min(FENCE_WARNING),
            claim_delay: Duration::ZERO,
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
            let before_the_end = kill_margin(lease) + used.fence_warning() + used.heartbeat_interval();
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
