//! A heartbeat that was appended after its leader's lease was over, as one that a broker finds in its socket when it runs again. It restarts the
//! silence for the candidates (R2), and extends no lease (R3): its leader was fenced, and leads no more.

use core::time::Duration;

use super::{Leader, Receipt, lost};
use crate::listener::silence;

/// At most the interval between a leader's heartbeats, unless it was configured otherwise.
const LONGEST_INTERVAL: Duration = Duration::from_secs(1);

/// Such a heartbeat.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LateBeat {
    /// The time between it and the record before, by the broker's timestamps.
    pub gap: Duration,
    /// When it was read and written.
    first: Receipt,
}

impl LateBeat {
    /// Whether a heartbeat of `leader` is late.
    pub(super) fn of(leader: &Leader, received: Receipt) -> Option<Self> {
        let gap = leader.last_record.written_before(received)?;
        (gap >= silence(leader.lease)).then_some(Self { gap, first: received })
    }

    /// Whether `received` shows that the leader leads on, and that the broker's clock was set forward. Heartbeats that waited together are appended
    /// together, and a leader that was fenced sends no other.
    pub(super) fn is_refuted_by(self, lease: Duration, received: Receipt) -> bool {
        lost::is_later(received, self.first, LONGEST_INTERVAL.min(lease / 3) / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{beat, claim, later, observer, read};
    use super::super::{Change, Leadership, Observer};

    /// A leader with a lease of 5 s, whose next heartbeat is appended after 18 s.
    fn heard_late() -> (Observer, alloc::vec::Vec<Change>) {
        let mut observer = observer();
        observer.caught_up();
        read(&mut observer, 0, 0, &claim("m", -1));
        let changes = read(&mut observer, 1, 18_000, &beat("m", 0, "running"));
        (observer, changes)
    }

    #[test]
    fn a_heartbeat_after_the_lease_s_end_makes_no_leader() {
        let (mut observer, changes) = heard_late();
        assert!(matches!(changes[0], Change::LateBeat { gap } if gap.as_secs() == 18), "{changes:?}");
        read(&mut observer, 2, 18_400, &beat("m", 0, "running"));
        let Leadership::Silent { age, claimable_since, claimable_in, .. } = observer.leadership(later(19_400)) else {
            panic!("led")
        };
        // The candidates wait for another silence.
        assert_eq!((age.as_secs(), claimable_since.as_secs(), claimable_in.as_millis()), (19, 0, 4_060));
        let Leadership::Silent { claimable_since, claimable_in, .. } = observer.leadership(later(24_460)) else {
            panic!("led")
        };
        assert_eq!((claimable_since.as_millis(), claimable_in.as_millis()), (1_000, 0));
    }

    #[test]
    fn a_leader_that_goes_on_leads_and_the_brokers_clock_was_set_forward() {
        let (mut observer, _) = heard_late();
        let changes = read(&mut observer, 2, 19_000, &beat("m", 0, "running"));
        assert!(matches!(changes[..], [Change::SilenceEnded { silent }] if silent.as_secs() == 18), "{changes:?}");
        assert!(matches!(observer.leadership(later(19_500)), Leadership::Led { .. }));
    }

    #[test]
    fn another_claim_is_another_leader() {
        let (mut observer, _) = heard_late();
        read(&mut observer, 2, 24_000, &claim("n", 1));
        assert!(matches!(observer.leadership(later(24_000)), Leadership::Led { .. }));
    }
}
