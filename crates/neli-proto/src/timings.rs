//! The durations of the protocol, and who claims a vacancy first.

use core::time::Duration;

/// Every duration of the protocol (docs/protocol.md, Timing).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Timings {
    /// How long a leader may act after it sent a record that came back effective; whole milliseconds, 300 to 60,000.
    pub lease: Duration,
    /// Between two beats; at most a third of the lease.
    pub heartbeat_interval: Duration,
    /// The guard kills this much before the lease ends.
    pub kill_margin: Duration,
    /// The stop signal this long before the deadline, when beats are not coming back; zero is none.
    pub fence_warning: Duration,
    /// `--claim-delay`: added to every claim delay.
    pub claim_delay: Duration,
    /// Who claims a vacancy first.
    pub elector: Elector,
}

/// Who should lead first (docs/protocol.md, Precedence).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Elector {
    /// The member of the consumer group to which the role's partition is assigned.
    Group(Patience),
    /// Nobody: the first claim wins.
    Log,
}

/// How long a member waits for the one to which the partition is assigned.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Patience {
    /// This long.
    For(Duration),
    /// For ever: only the assigned member claims (NELI as published).
    Never,
}
