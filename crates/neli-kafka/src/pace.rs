//! How often a member of the group is polled.

use std::time::Duration;

use crate::access::MemberTimings;

/// The longest time between two polls of a member. Polling wakes librdkafka's main thread, which then sends the heartbeat that is due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Pace {
    /// For a member that waits for a partition: a heartbeat's answer reports a rebalance, and a successor waits for that.
    pub(super) waiting: Duration,
    /// For a member that holds the partition, or whose process leads. It only has to keep its session, and takes half the processor time.
    pub(super) leading_or_holding: Duration,
}

impl Pace {
    pub(super) fn of(member: MemberTimings) -> Self {
        let waiting = member.heartbeat_interval;
        Self { waiting, leading_or_holding: Duration::from_millis(500).min(member.session_timeout / 3).max(waiting) }
    }

    /// The time between two polls, by whether the member holds a partition and whether its process leads. A process may lead without an
    /// assigned partition; a rebalance changes nothing for it.
    pub(super) const fn pause(self, holds: bool, leads: bool) -> Duration {
        if holds || leads { self.leading_or_holding } else { self.waiting }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{HEARTBEAT_INTERVAL, SESSION_TIMEOUT};
    use crate::election::Properties;

    fn pace(heartbeat: &str, session: &str) -> [u128; 2] {
        let properties = [(HEARTBEAT_INTERVAL, heartbeat), (SESSION_TIMEOUT, session)];
        let properties = properties.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let pace = Pace::of(MemberTimings::of(&Properties(properties.to_vec())));
        assert_eq!([pace.pause(true, false), pace.pause(true, true)], [pace.pause(false, true); 2]);
        [pace.pause(false, false), pace.pause(false, true)].map(|pause| pause.as_millis())
    }

    #[test]
    fn a_leader_or_holder_heartbeats_only_as_often_as_its_session_needs() {
        assert_eq!(pace("100", "6000"), [100, 500]);
        assert_eq!(pace("100", "900"), [100, 300]);
        assert_eq!(pace("2000", "6000"), [2000, 2000]);
    }
}
