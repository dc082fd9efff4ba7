//! Runs for cases that the mixture of faults can't show, since they need candidates that live long, that have limits, or that are many.

use std::time::Duration;

use clap::ValueEnum;
use harness::network::{Flow, LinkConditions};

use crate::fault::Fault;

/// A run with its own faults, candidates and checks.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum SpecialRun {
    /// Three brokers with Kafka's default session, one of which is killed every half minute. The candidates have the default lease, and
    /// none of their jobs may get a signal.
    BrokerDeaths,
    /// Each candidate may use half a processor, its job wants two, and it may not use real-time scheduling: no job may be late.
    CpuQuota,
    /// The job's leaks keep each candidate at its memory limit: no job may be late.
    MemoryLimit,
    /// The topic is deleted and created again so fast that its leader does not notice, while candidates live long: two jobs may run for
    /// at most two leases.
    Remakes,
    /// Forty standbys with a round trip of 100 ms, and other programs' records among their claims.
    SlowCrowd,
}

/// The limits of each candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    /// Bytes of memory.
    pub(crate) memory: Option<u64>,
    /// The share of one processor, without the right to real-time scheduling.
    pub(crate) processor: Option<f64>,
}

impl SpecialRun {
    /// Its faults, unless others are given.
    pub(crate) fn faults(self) -> &'static [Fault] {
        match self {
            Self::BrokerDeaths => &[Fault::KillBroker],
            Self::CpuQuota | Self::MemoryLimit => {
                &[Fault::Cut, Fault::Fade, Fault::KillGuard, Fault::KillSupervisor, Fault::StopSupervisor]
            }
            Self::Remakes => &[Fault::RemakeUnnoticed],
            Self::SlowCrowd => &[Fault::Strays],
        }
    }

    /// The number of candidates, if the run sets it.
    pub(crate) fn candidates(self) -> Option<usize> {
        match self {
            Self::SlowCrowd => Some(41),
            Self::BrokerDeaths | Self::CpuQuota | Self::MemoryLimit | Self::Remakes => None,
        }
    }

    /// The number of brokers, if the run sets it.
    pub(crate) fn brokers(self) -> Option<usize> {
        (self == Self::BrokerDeaths).then_some(3)
    }

    /// The lease of all candidates.
    pub(crate) fn lease(self) -> Duration {
        match self {
            Self::BrokerDeaths => Duration::from_secs(20),
            Self::CpuQuota | Self::SlowCrowd => Duration::from_secs(3),
            Self::MemoryLimit => Duration::from_secs(1),
            // The leader must not be fenced before another candidate leads.
            Self::Remakes => Duration::from_secs(5),
        }
    }

    /// The shortest and the longest pause between two faults.
    pub(crate) fn pause(self) -> Option<(Duration, Duration)> {
        let seconds = |least, most| Some((Duration::from_secs(least), Duration::from_secs(most)));
        match self {
            Self::BrokerDeaths => seconds(25, 35),
            Self::Remakes | Self::SlowCrowd => seconds(12, 18),
            Self::CpuQuota | Self::MemoryLimit => None,
        }
    }

    /// Whether no job ends by itself, and no candidate is stopped without another reason, so that candidates lead for long.
    pub(crate) fn lives_long(self) -> bool {
        self.pause().is_some()
    }

    /// Whether a stop signal to a job is a violation.
    pub(crate) fn is_undisturbed(self) -> bool {
        self == Self::BrokerDeaths
    }

    /// The time from the guard's deadline to the lease's end. A line of a job after that is a violation.
    pub(crate) fn kill_margin(self) -> Option<Duration> {
        match self {
            // This is the protocol's kill margin for a guard that may be throttled.
            Self::CpuQuota => Some(Duration::from_millis(300)),
            Self::MemoryLimit => Some(Duration::from_millis(20)),
            Self::BrokerDeaths | Self::Remakes | Self::SlowCrowd => None,
        }
    }

    /// The shortest duration of a fault. When the guard's kill is tested, the lease must run out each time.
    pub(crate) fn lasts(self) -> Duration {
        self.kill_margin().map_or(Duration::ZERO, |_| self.lease() * 3 / 2)
    }

    /// The limits of each candidate.
    pub(crate) fn limits(self) -> Limits {
        match self {
            Self::CpuQuota => Limits { processor: Some(0.5), ..Limits::default() },
            Self::MemoryLimit => Limits { memory: Some(100 << 20), ..Limits::default() },
            Self::BrokerDeaths | Self::Remakes | Self::SlowCrowd => Limits::default(),
        }
    }

    /// Shell commands that run beside each job's main process.
    pub(crate) fn beside_the_job(self) -> &'static str {
        match self {
            Self::CpuQuota => "for i in 1 2; do sh -c 'while :; do :; done' & done;",
            Self::BrokerDeaths | Self::MemoryLimit | Self::Remakes | Self::SlowCrowd => "",
        }
    }

    /// More options of each candidate, with their values.
    pub(crate) fn options(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // A guard that begins a process at its limit needs memory.
            Self::MemoryLimit => {
                &[("--health-cmd", "true"), ("--health-interval", "100ms"), ("--health-failures", "1000000")]
            }
            Self::BrokerDeaths | Self::CpuQuota | Self::Remakes | Self::SlowCrowd => &[],
        }
    }

    /// The number of the job's processes that allocate memory until they are killed, and start again; each has its own session.
    pub(crate) fn leakers(self) -> usize {
        if self == Self::MemoryLimit { 3 } else { 0 }
    }

    /// The state of one network that all candidates share, instead of one for each.
    pub(crate) fn shared_conditions(self) -> Option<LinkConditions> {
        let late = Flow::Late(Duration::from_millis(50));
        (self == Self::SlowCrowd).then_some(LinkConditions { there: late, back: late, ..LinkConditions::default() })
    }
}
