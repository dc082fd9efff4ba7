//! Runs of their own: what the mixture of faults can't show, since it needs candidates that live long, that are limited, or that
//! are many.

use std::time::Duration;

use clap::ValueEnum;
use harness::network::{Flow, Weather};

use crate::fault::Fault;

/// A run with faults, candidates and a judgement of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Named {
    /// Three brokers with Kafka's own session, one killed every half minute; candidates with the default lease, none of whose jobs
    /// may be sent a signal.
    BrokerDeaths,
    /// Each candidate may use half a processor, its job wants two, and it has no right to real-time scheduling: no job may be late.
    CpuQuota,
    /// Each candidate is at its memory limit by what its job leaks: no job may be late.
    MemoryLimit,
    /// The topic is deleted and made anew so fast that its leader does not notice, while candidates live long: at most two leases of
    /// two jobs.
    Remakes,
    /// Forty standbys, 100 ms from the broker and back, and a stranger's records among their claims.
    SlowCrowd,
}

/// What each candidate may have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    /// Bytes of memory.
    pub(crate) memory: Option<u64>,
    /// Of one processor's time, without the right to real-time scheduling.
    pub(crate) processor: Option<f64>,
}

impl Named {
    /// Its faults, unless others are asked for.
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

    /// How many candidates it takes, where it is not as many as are asked for.
    pub(crate) fn candidates(self) -> Option<usize> {
        match self {
            Self::SlowCrowd => Some(41),
            Self::BrokerDeaths | Self::CpuQuota | Self::MemoryLimit | Self::Remakes => None,
        }
    }

    /// How many brokers it takes, where it is not as many as are asked for.
    pub(crate) fn brokers(self) -> Option<usize> {
        (self == Self::BrokerDeaths).then_some(3)
    }

    /// The lease of all candidates.
    pub(crate) fn lease(self) -> Duration {
        match self {
            Self::BrokerDeaths => Duration::from_secs(20),
            Self::CpuQuota | Self::SlowCrowd => Duration::from_secs(3),
            Self::MemoryLimit => Duration::from_secs(1),
            // Its leader is not to be fenced before another leads.
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

    /// No job ends by itself, and no candidate is struck for its own sake: they lead for long.
    pub(crate) fn lives_long(self) -> bool {
        self.pause().is_some()
    }

    /// A job that is told to stop is a violation.
    pub(crate) fn is_undisturbed(self) -> bool {
        self == Self::BrokerDeaths
    }

    /// From the guard's deadline to the lease's end: a job that speaks later than that is a violation.
    pub(crate) fn kill_margin(self) -> Option<Duration> {
        match self {
            // What the protocol says of a guard that may be throttled.
            Self::CpuQuota => Some(Duration::from_millis(300)),
            Self::MemoryLimit => Some(Duration::from_millis(20)),
            Self::BrokerDeaths | Self::Remakes | Self::SlowCrowd => None,
        }
    }

    /// How long a fault lasts at least: where the guard's kill is what is looked at, the lease is to run out each time.
    pub(crate) fn lasts(self) -> Duration {
        self.kill_margin().map_or(Duration::ZERO, |_| self.lease() * 3 / 2)
    }

    /// What each candidate may have.
    pub(crate) fn limits(self) -> Limits {
        match self {
            Self::CpuQuota => Limits { processor: Some(0.5), ..Limits::default() },
            Self::MemoryLimit => Limits { memory: Some(100 << 20), ..Limits::default() },
            Self::BrokerDeaths | Self::Remakes | Self::SlowCrowd => Limits::default(),
        }
    }

    /// What runs beside each job's main process, as a shell's commands.
    pub(crate) fn beside_the_job(self) -> &'static str {
        match self {
            Self::CpuQuota => "for i in 1 2; do sh -c 'while :; do :; done' & done;",
            Self::BrokerDeaths | Self::MemoryLimit | Self::Remakes | Self::SlowCrowd => "",
        }
    }

    /// So many processes of the job, each in a session of its own, take memory until they are killed for it, and begin again.
    pub(crate) fn leakers(self) -> usize {
        if self == Self::MemoryLimit { 3 } else { 0 }
    }

    /// What all candidates share, instead of a way of its own for each: this weather.
    pub(crate) fn shared_weather(self) -> Option<Weather> {
        let late = Flow::Late(Duration::from_millis(50));
        (self == Self::SlowCrowd).then_some(Weather { there: late, back: late, ..Weather::default() })
    }
}
