//! The durations of the protocol, and the order of the candidates' claims.

use core::fmt;
use core::ops::Deref;
use core::time::Duration;

use crate::record::{LEASE_MS, Why};

/// The shortest lease.
pub const SHORTEST_LEASE: Duration = Duration::from_millis(*LEASE_MS.start());
/// The longest lease.
pub const LONGEST_LEASE: Duration = Duration::from_millis(*LEASE_MS.end());
/// How much longer a process waits before it claims a role that is intended for another one. If that one is alive, it claims first.
pub const PATIENCE: Duration = Duration::from_millis(500);
/// A role that no candidate has claimed for this long may have no candidate that can lead it, except for the one that has handed it over.
pub(crate) const TAKEN_WITHIN: Duration = Duration::from_secs(10);

/// R7: how long a candidate that stood down for this reason claims nothing, unless another one has led before; `None` if it need not wait.
pub(crate) fn cool_off(why: Why, lease: Duration) -> Option<Duration> {
    let longest = if why == Why::Spread { TAKEN_WITHIN } else { Duration::MAX };
    why.lets_another_lead().then(|| (lease * 2).min(longest))
}

/// The shortest heartbeat interval: reading back a record takes a few milliseconds, and a shorter interval would fill a log that is kept
/// for a day.
const SHORTEST_HEARTBEAT_INTERVAL: Duration = Duration::from_millis(10);
/// The shortest overlap: a successor's claim takes a few milliseconds to be read, and its job about one to start.
const SHORTEST_OVERLAP: Duration = Duration::from_millis(10);
/// The shortest kill margin.
const SHORTEST_KILL_MARGIN: Duration = Duration::from_millis(20);

/// Every duration of the protocol (docs/protocol.md, Timing), checked against each other: they can be read, and not changed.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Timings {
    durations: Durations,
    elector: Elector,
}

/// The durations from which [`Timings`] is made.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Durations {
    /// How long a leader may act after it sent a record that was read back as effective; whole milliseconds, 300 to 60,000.
    pub lease: Duration,
    /// The time between two beats; 10 ms to a third of the lease.
    pub heartbeat_interval: Duration,
    /// How long before the lease's end the guard kills the job; at least 20 ms.
    pub kill_margin: Duration,
    /// How long before the deadline the stop signal is sent if beats are not read back; at most half the lease. With zero none is sent.
    pub fence_warning: Duration,
    /// `--preempt`: how long a candidate stands by under a leader of lower priority before it asks that leader to resign; `None`
    /// without `--preempt`.
    pub preempt_after: Option<Duration>,
    /// `--overlap`: how long the job may run beside its successor's after the successor's claim was read; at most half the lease.
    /// `None` without it.
    pub overlap: Option<Duration>,
}

/// A duration that does not fit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TimingsError {
    /// Its name, with `_` between words.
    pub name: &'static str,
    /// Its value.
    pub value: Duration,
    must_be: &'static str,
}

impl fmt::Display for TimingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.must_be)
    }
}

impl core::error::Error for TimingsError {}

/// The longest heartbeat interval that a lease allows: after a lost beat, the leader can send two more within the lease.
pub(crate) fn longest_heartbeat_interval(lease: Duration) -> Duration {
    lease / 3
}

/// The longest default heartbeat interval: a beat a second makes 20 MB of journal a day, and keeps the silence of a leader short even
/// with a long lease.
pub(crate) const LONGEST_DEFAULT_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// The longest default fence warning: with a longer one, jobs would be stopped while Kafka may still answer in time.
pub(crate) const LONGEST_DEFAULT_FENCE_WARNING: Duration = Duration::from_millis(2500);

/// The default heartbeat interval of a lease.
pub fn default_heartbeat_interval(lease: Duration) -> Duration {
    (lease / 5).min(LONGEST_DEFAULT_HEARTBEAT_INTERVAL)
}

/// The default fence warning of a lease.
pub fn default_fence_warning(lease: Duration) -> Duration {
    (lease / 4).min(LONGEST_DEFAULT_FENCE_WARNING)
}

/// The kill margin of a guard that may schedule in real time.
pub fn kill_margin(lease: Duration) -> Duration {
    (lease / 50).max(SHORTEST_KILL_MARGIN)
}

impl Timings {
    /// Checks the relations between the durations.
    ///
    /// # Errors
    ///
    /// One of the durations does not fit to the lease.
    pub fn new(durations: Durations, elector: Elector) -> Result<Self, TimingsError> {
        let Durations { lease, heartbeat_interval, kill_margin, fence_warning, overlap, .. } = durations;
        let timings = Self { durations, elector };
        // At least half of the lease is left when the successor's claim is read, unless Kafka was slow for that long.
        let longest = lease / 2;
        let wrong = |name, value, must_be| Err(TimingsError { name, value, must_be });
        if !(SHORTEST_LEASE..=LONGEST_LEASE).contains(&lease) || !is_whole(lease) {
            wrong("lease", lease, "must be 300ms to 60s, in whole milliseconds")
        } else if let Some(overlap) =
            overlap.filter(|overlap| !(SHORTEST_OVERLAP..=longest).contains(overlap) || !is_whole(*overlap))
        {
            wrong("overlap", overlap, "must be 10ms to half of the lease, in whole milliseconds")
        } else if !(SHORTEST_HEARTBEAT_INTERVAL..=longest_heartbeat_interval(lease)).contains(&heartbeat_interval) {
            wrong("heartbeat_interval", heartbeat_interval, "must be 10ms to a third of the lease")
        } else if fence_warning > longest {
            wrong("fence_warning", fence_warning, "must be 0 to half of the lease")
        } else if !(SHORTEST_KILL_MARGIN..=timings.widest_kill_margin()).contains(&kill_margin) {
            wrong(
                "margin",
                kill_margin,
                "must be at least 20ms, and leave a tenth of the lease besides itself, the heartbeat interval and the fence warning",
            )
        } else {
            Ok(timings)
        }
    }

    /// The same timings with a kill margin of at least `margin`, as far as the heartbeat interval and the fence warning permit.
    #[must_use]
    pub fn with_kill_margin_of(self, margin: Duration) -> Self {
        let kill_margin = self.kill_margin.max(margin.min(self.widest_kill_margin()));
        Self { durations: Durations { kill_margin, ..self.durations }, ..self }
    }

    /// The widest kill margin. A tenth of the lease must be left for the start of a job, after the heartbeat interval and the fence warning
    /// are subtracted (R3).
    fn widest_kill_margin(&self) -> Duration {
        (self.lease * 9 / 10).saturating_sub(self.heartbeat_interval + self.fence_warning)
    }

    /// A process that wakes this much later than it was due did not run, which a busy machine alone seldom does.
    pub fn stall(&self) -> Duration {
        (self.lease / 4).max(Duration::from_secs(1))
    }

    /// The rule by which candidates order their claims.
    pub const fn elector(&self) -> Elector {
        self.elector
    }
}

impl Deref for Timings {
    type Target = Durations;

    fn deref(&self) -> &Durations {
        &self.durations
    }
}

/// Whether the duration is in whole milliseconds, so that a record can contain it.
const fn is_whole(duration: Duration) -> bool {
    duration.subsec_nanos().is_multiple_of(1_000_000)
}

/// The rule by which candidates order their claims (docs/protocol.md, The group elector).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Elector {
    /// The member of the consumer group to which the role's partition is assigned claims first, and another after this time; `None`: never (NELI as
    /// published).
    Group(Option<Duration>),
    /// No order: the first claim wins.
    #[default]
    Log,
}

impl Elector {
    /// Its name in log, hellos and `--elect`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Group(_) => "group",
            Self::Log => "log",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn after_a_handover_another_candidate_is_waited_for_for_ten_seconds_at_most() {
        let after = |why, lease| cool_off(why, ms(lease)).map(|span| span.as_secs());
        assert_eq!([4_000, 20_000].map(|lease| after(Why::Spread, lease)), [Some(8), Some(10)]);
        assert_eq!(after(Why::Resigned, 20_000), Some(40));
        assert_eq!(after(Why::Stopped, 20_000), None);
    }

    const FITTING: Durations = Durations {
        lease: ms(1_000),
        heartbeat_interval: ms(200),
        kill_margin: ms(20),
        fence_warning: ms(250),
        preempt_after: None,
        overlap: None,
    };

    /// Whether they fit, or the name of one that does not.
    fn made(durations: Durations) -> Result<(), &'static str> {
        Timings::new(durations, Elector::Log).map(|_| ()).map_err(|error| error.name)
    }

    #[test]
    fn an_elector_has_the_name_that_is_typed() {
        assert_eq!([Elector::Log, Elector::Group(None)].map(Elector::name), ["log", "group"]);
    }

    #[test]
    fn each_bound_is_allowed_and_nothing_beyond_it() {
        let nano = Duration::from_nanos(1);
        let lease =
            |lease| made(Durations { lease, heartbeat_interval: lease / 5, fence_warning: lease / 4, ..FITTING });
        assert_eq!(lease(ms(300)), Ok(()));
        assert_eq!(lease(ms(299)), Err("lease"));
        assert_eq!(made(Durations { lease: ms(60_000), ..FITTING }), Ok(()));
        assert_eq!(lease(ms(60_001)), Err("lease"));
        assert_eq!(lease(ms(1_000) + nano), Err("lease"));
        let heartbeat = |heartbeat_interval| made(Durations { heartbeat_interval, ..FITTING });
        assert_eq!([heartbeat(ms(10)), heartbeat(ms(1_000) / 3)], [Ok(()); 2]);
        assert_eq!([heartbeat(ms(9)), heartbeat(ms(1_000) / 3 + nano)], [Err("heartbeat_interval"); 2]);
        let warning = |fence_warning| made(Durations { fence_warning, ..FITTING });
        assert_eq!([warning(Duration::ZERO), warning(ms(500))], [Ok(()); 2]);
        assert_eq!(warning(ms(500) + nano), Err("fence_warning"));
        let overlap = |overlap| made(Durations { overlap: Some(overlap), ..FITTING });
        assert_eq!([overlap(ms(10)), overlap(ms(500))], [Ok(()); 2]);
        let wrong = [Duration::ZERO, ms(9), ms(501), ms(100) + nano];
        assert_eq!(wrong.map(overlap), [Err("overlap"); 4]);
        let margin = |kill_margin| made(Durations { kill_margin, ..FITTING });
        assert_eq!([margin(ms(20)), margin(ms(450))], [Ok(()); 2]);
        assert_eq!([margin(ms(19)), margin(ms(450) + nano)], [Err("margin"); 2]);
    }

    #[test]
    fn the_default_follows_the_lease_up_to_a_bound() {
        let chosen = |lease| (default_heartbeat_interval(lease), default_fence_warning(lease));
        assert_eq!(chosen(ms(4_000)), (ms(800), ms(1_000)));
        assert_eq!(chosen(ms(20_000)), (ms(1_000), ms(2_500)));
    }

    /// The kill margin fits beside every heartbeat interval and fence warning that a lease allows.
    #[test]
    fn the_kill_margin_of_each_lease_fits_beside_the_longest_of_the_others() {
        for lease in (300..=60_000).step_by(7).map(ms) {
            let (heartbeat_interval, fence_warning) = (longest_heartbeat_interval(lease), lease / 2);
            let kill_margin = kill_margin(lease);
            assert_eq!(made(Durations { lease, heartbeat_interval, kill_margin, fence_warning, ..FITTING }), Ok(()));
        }
    }

    #[test]
    fn a_kill_margin_is_widened_as_far_as_the_others_leave_it() {
        let widened =
            |to| Timings::new(FITTING, Elector::Log).map(|timings| timings.with_kill_margin_of(to).kill_margin);
        assert_eq!([widened(ms(10)), widened(ms(300)), widened(ms(500))], [20, 300, 450].map(|millis| Ok(ms(millis))));
    }
}
