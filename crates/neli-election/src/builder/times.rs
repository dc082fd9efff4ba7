//! The durations of the protocol: their defaults and their bounds.

use std::time::Duration;

use neli_kafka::shown_duration as shown;
use neli_proto::timings::{
    Durations, Elector, LONGEST_LEASE, SHORTEST_LEASE, Timings, default_fence_warning, default_heartbeat_interval,
    heartbeat_intervals, kill_margin, longest_fence_warning,
};

use crate::error::Error;

/// The durations that were given.
#[derive(Clone, Debug)]
pub(super) struct TimeOptions {
    pub(super) lease: Duration,
    pub(super) heartbeat_interval: Option<Duration>,
    pub(super) margin: Option<Duration>,
    pub(super) fence_warning: Option<Duration>,
}

impl Default for TimeOptions {
    fn default() -> Self {
        Self { lease: Duration::from_secs(20), heartbeat_interval: None, margin: None, fence_warning: None }
    }
}

impl TimeOptions {
    pub(super) fn validate(&self, elector: Elector) -> Result<Timings, Error> {
        let lease = self.lease;
        let wrong = |option, value, expected| Err(Error::option(option, shown(value), expected));
        if !(SHORTEST_LEASE..=LONGEST_LEASE).contains(&lease) {
            return wrong("lease", lease, format!("must be {} to {}", shown(SHORTEST_LEASE), shown(LONGEST_LEASE)));
        }
        if !lease.subsec_nanos().is_multiple_of(1_000_000) {
            return Err(Error::option("lease", format!("{lease:?}"), "must be whole milliseconds"));
        }
        let heartbeat_interval = self.heartbeat_interval.unwrap_or_else(|| default_heartbeat_interval(lease));
        let allowed = heartbeat_intervals(lease);
        if !allowed.contains(&heartbeat_interval) {
            let (shortest, longest) = (shown(*allowed.start()), shown(*allowed.end()));
            let expected = format!("must be {shortest} to {longest}, a third of the lease {}", shown(lease));
            return wrong("heartbeat_interval", heartbeat_interval, expected);
        }
        let fence_warning = self.fence_warning.unwrap_or_else(|| default_fence_warning(lease));
        let longest = longest_fence_warning(lease);
        if fence_warning > longest {
            let expected = format!("must be 0 to {}, half of the lease {}", shown(longest), shown(lease));
            return wrong("fence_warning", fence_warning, expected);
        }
        let timings = |kill_margin| {
            let durations = Durations {
                lease,
                heartbeat_interval,
                kill_margin,
                fence_warning,
                claim_delay: Duration::ZERO,
                preempt_after: None,
                overlap: None,
            };
            Timings::new(durations, elector)
        };
        match self.margin {
            Some(margin) => timings(margin).map_err(|error| Error::option("margin", shown(margin), error.to_string())),
            // As far as the others leave it.
            None => timings(kill_margin(lease))
                .map(|timings| timings.with_kill_margin_of(lease / 10))
                .map_err(|error| Error::option("lease", shown(lease), error.to_string())),
        }
    }
}
