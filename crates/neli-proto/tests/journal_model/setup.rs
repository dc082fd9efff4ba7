//! The parameters of a world, and the limits of its faults.

use std::time::Duration;

use neli_proto::candidate::{Durations, Elector, Timings};
use neli_proto::fact::{Fact, Outcome};
use neli_proto::health::HealthPolicy;
use neli_proto::hooks::Hook;
use neli_proto::once::Policy;
use neli_proto::record::Offset;
use neli_proto::restart::{Restart, RestartPolicy};
use neli_proto::schedule::CatchUp;
use neli_proto::supervisor::OnLoss;
use neli_proto::time::{Span, Window};
use neli_proto::timings::kill_margin;

use crate::step::Step;
use crate::world::World;

/// The candidates' names.
pub(crate) const NAMES: [&str; 3] = ["a", "b", "c"];

/// A candidate's index.
pub(crate) type Who = usize;
pub(crate) const A: Who = 0;
pub(crate) const B: Who = 1;
pub(crate) const C: Who = 2;

/// A world before its first step.
#[expect(clippy::struct_excessive_bools, reason = "properties of a world that nothing ties to each other")]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    pub(crate) candidates: Vec<CandidateSetup>,
    /// The number of records under other keys with which the log begins.
    pub(crate) others: Offset,
    /// The distance from the end at which a reading begins.
    pub(crate) span: Offset,
    /// Whether the topic has a size limit, so that a leader's records may be deleted.
    pub(crate) size_retention: bool,
    /// Whether the topic only deletes whole segments, and candidates know that.
    pub(crate) gaps_are_markers: bool,
    /// Whether R0 is judged some time after a reading has begun.
    pub(crate) judged_late: bool,
    /// Whether the broker has topic ids.
    pub(crate) topic_ids: bool,
    /// How long each generation of a topic may have a job after a remake that was not noticed.
    pub(crate) remade_for: Duration,
    /// Whether each job leaves a daemon behind.
    pub(crate) jobs_have_children: bool,
    /// Whether another process than the guard is the parent of that daemon.
    pub(crate) children_are_elsewhere: bool,
    /// Whether each job has a command that would outlive it.
    pub(crate) jobs_have_commands: bool,
    /// The health policy, if there is one.
    pub(crate) health: Option<HealthPolicy>,
    /// The hooks.
    pub(crate) hooks: &'static [Hook],
    /// Whether messages between guard and supervisor are delayed.
    pub(crate) slow_pipe: bool,
    /// Whether the sender of a claim gets a delivery report.
    pub(crate) claims_are_acknowledged: bool,
    /// Whether a guard starts some time after it was needed, as in a process with many roles.
    pub(crate) guards_start_late: bool,
    /// The guard's largest scheduling delay.
    pub(crate) guard_late: Duration,
    /// The key or window for which the job runs once.
    pub(crate) once: Option<Occasion>,
    /// The member that each request to resign names, rightly or wrongly.
    pub(crate) successor: Option<&'static str>,
    /// Whether a new candidate may begin when a machine has died or its candidate has left.
    pub(crate) reborn: bool,
    /// The faults that may happen.
    pub(crate) faults: Faults,
    /// The steps before the search begins.
    pub(crate) before: fn(&mut World),
    /// Which steps the search may take.
    pub(crate) may: fn(&World, Step) -> bool,
    /// The simulated time after which the search ends.
    pub(crate) limit: Duration,
    /// The largest number of steps.
    pub(crate) depth: usize,
    /// The largest number of states. With more, the world is wrong, because it should be small.
    pub(crate) most_states: usize,
}

/// The key or window for which the job runs once.
#[derive(Clone, Copy)]
pub(crate) enum Occasion {
    /// One key.
    Key,
    /// One key, whose runs all fail and are retried this many times.
    Retries(u32),
    /// The window with this number on each machine. The real time is in the newest of them.
    Windows([u64; 3]),
    /// One window after another; each machine's clock is in the window with this number, and the previous one is done.
    Schedule(u64, CatchUp),
}

impl Occasion {
    /// The window that the clock shows.
    pub(crate) fn shown(self) -> Option<Window> {
        match self {
            Self::Key | Self::Retries(_) => None,
            Self::Windows(numbers) => numbers.into_iter().max().map(window),
            Self::Schedule(number, _) => Some(window(number)),
        }
    }

    /// The facts that are recorded before the first candidate begins.
    pub(crate) fn recorded(self) -> Option<Fact> {
        let Self::Schedule(number, _) = self else { return None };
        let Window { key, span } = window(number - 1);
        Some(Fact { window: Some(span), exit: Some(0), ..Fact::new(key, Outcome::Done, -1) })
    }

    /// The policy of a machine's candidate.
    pub(crate) fn policy(self, who: Who) -> Policy {
        let (key, window, schedule) = match self {
            Self::Key | Self::Retries(_) => ("key".into(), None, None),
            Self::Windows(numbers) => {
                let Window { key, span } = window(numbers[who]);
                (key, Some(span), None)
            }
            Self::Schedule(_, catch_up) => ("".into(), None, Some(catch_up)),
        };
        Policy { key, window, schedule, retries: self.retries(), done_status: 0 }
    }

    /// How many failed runs are retried.
    pub(crate) const fn retries(self) -> u32 {
        if let Self::Retries(retries) = self { retries } else { 0 }
    }

    /// The exit status of each job.
    pub(crate) const fn status(self) -> u8 {
        if matches!(self, Self::Retries(_)) { 3 } else { 0 }
    }
}

/// The window with this number.
fn window(number: u64) -> Window {
    Window { key: format!("window {number}").into(), span: Span { from_ms: number * 10, until_ms: (number + 1) * 10 } }
}

/// One candidate's settings.
#[derive(Clone, Copy)]
pub(crate) struct CandidateSetup {
    pub(crate) lease: Duration,
    pub(crate) stop_timeout: Duration,
    pub(crate) claim_delay: Duration,
    pub(crate) settle: Duration,
    pub(crate) overlap: Option<Duration>,
    pub(crate) restart: RestartPolicy,
    pub(crate) on_loss: OnLoss,
}

/// How often each fault may happen.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Faults {
    /// A candidate begins.
    pub(crate) begins: u8,
    /// The embedded broker ends, and its log with it.
    pub(crate) broker_ends: u8,
    /// A record is deleted from the middle of the log.
    pub(crate) compactions: u8,
    /// A supervisor gets SIGKILL.
    pub(crate) crashes: u8,
    /// The beginning of the log is deleted.
    pub(crate) cuts: u8,
    /// A machine dies.
    pub(crate) deaths: u8,
    /// An append is delayed, and others may overtake it.
    pub(crate) delays: u8,
    /// An append happens twice.
    pub(crate) doubles: u8,
    /// An operator ends the election.
    pub(crate) ends: u8,
    /// A job ends by itself.
    pub(crate) exits: u8,
    /// The recording of a fact is delayed.
    pub(crate) fact_delays: u8,
    /// An operator forgets the key.
    pub(crate) forgets: u8,
    /// A guard gets SIGKILL.
    pub(crate) guard_deaths: u8,
    /// A guard is stopped.
    pub(crate) guard_pauses: u8,
    /// A health command fails.
    pub(crate) failed_health_checks: u8,
    /// A reader takes time to catch up.
    pub(crate) lags: u8,
    /// An append is lost.
    pub(crate) losses: u8,
    /// A transaction's marker is appended.
    pub(crate) markers: u8,
    /// From then on no broker reports the topic's id to a machine.
    pub(crate) mutes: u8,
    /// An undecodable record is written under the election's key.
    pub(crate) nonsense: u8,
    /// The facts are read from a broker that lacks the last one.
    pub(crate) old_facts: u8,
    /// A record is written under another key.
    pub(crate) others: u8,
    /// A supervisor is stopped.
    pub(crate) pauses: u8,
    /// The periodic query for the log's end is sent, and its answer is delayed.
    pub(crate) questions: u8,
    /// The topic is deleted and created again, and readers keep their positions.
    pub(crate) unnoticed_remakes: u8,
    /// An operator asks the leader to resign.
    pub(crate) resigns: u8,
    /// The answer to the first query is delayed.
    pub(crate) slow_answers: u8,
    /// SIGTERM to `neli-run`.
    pub(crate) stops: u8,
    /// SIGTSTP to `neli-run`.
    pub(crate) suspensions: u8,
}

impl Faults {
    /// No faults.
    pub(crate) const fn none() -> Self {
        Self {
            begins: 0,
            broker_ends: 0,
            compactions: 0,
            crashes: 0,
            cuts: 0,
            deaths: 0,
            delays: 0,
            doubles: 0,
            ends: 0,
            exits: 0,
            fact_delays: 0,
            forgets: 0,
            guard_deaths: 0,
            guard_pauses: 0,
            failed_health_checks: 0,
            lags: 0,
            losses: 0,
            markers: 0,
            mutes: 0,
            nonsense: 0,
            old_facts: 0,
            others: 0,
            pauses: 0,
            questions: 0,
            unnoticed_remakes: 0,
            resigns: 0,
            slow_answers: 0,
            stops: 0,
            suspensions: 0,
        }
    }

    /// Every fault may happen several times, but no broker is replaced by an empty one, and the election is not ended.
    pub(crate) const fn plenty() -> Self {
        Self {
            begins: 255,
            broker_ends: 0,
            compactions: 255,
            crashes: 255,
            cuts: 255,
            deaths: 255,
            delays: 255,
            doubles: 255,
            ends: 0,
            exits: 255,
            fact_delays: 255,
            forgets: 0,
            guard_deaths: 255,
            guard_pauses: 255,
            failed_health_checks: 255,
            lags: 255,
            losses: 255,
            markers: 255,
            mutes: 0,
            nonsense: 255,
            old_facts: 255,
            others: 255,
            pauses: 255,
            questions: 255,
            unnoticed_remakes: 0,
            resigns: 255,
            slow_answers: 255,
            stops: 255,
            suspensions: 255,
        }
    }
}

impl CandidateSetup {
    /// A lease in milliseconds.
    pub(crate) const fn lease(millis: u64) -> Self {
        Self {
            lease: Duration::from_millis(millis),
            stop_timeout: Duration::from_millis(150),
            claim_delay: Duration::ZERO,
            settle: Duration::ZERO,
            overlap: None,
            restart: RestartPolicy { restart: Restart::No, delay: Duration::ZERO, limit: None },
            on_loss: OnLoss::Standby,
        }
    }

    /// Runs its job again this many milliseconds after every end.
    pub(crate) const fn restarting(self, millis: u64) -> Self {
        let restart = RestartPolicy { restart: Restart::Always, delay: Duration::from_millis(millis), limit: None };
        Self { restart, ..self }
    }

    /// Has this claim delay in milliseconds.
    pub(crate) const fn after(self, millis: u64) -> Self {
        Self { claim_delay: Duration::from_millis(millis), ..self }
    }

    /// Starts its job this many milliseconds after it has won the lead.
    pub(crate) const fn settling(self, millis: u64) -> Self {
        Self { settle: Duration::from_millis(millis), ..self }
    }

    /// Lets its job run at the same time as its successor's for this many milliseconds.
    pub(crate) const fn overlapping(self, millis: u64) -> Self {
        Self { overlap: Some(Duration::from_millis(millis)), ..self }
    }

    /// Exits when it loses the lead.
    pub(crate) const fn exiting(self) -> Self {
        Self { on_loss: OnLoss::Exit, ..self }
    }

    pub(crate) fn timings(&self) -> Timings {
        let durations = Durations {
            lease: self.lease,
            heartbeat_interval: self.lease / 3,
            kill_margin: kill_margin(self.lease),
            fence_warning: Duration::ZERO,
            preempt_after: None,
            overlap: self.overlap,
        };
        Timings::new(durations, Elector::Log).unwrap_or_else(|error| panic!("{}: {error}", self.lease.as_millis()))
    }
}

impl Setup {
    /// Whether a job may run at the same time as its successor's. Then candidates read each other's hellos.
    pub(crate) fn overlaps(&self) -> bool {
        self.candidates.iter().any(|candidate| candidate.overlap.is_some())
    }

    /// Two candidates with short leases, an empty log that proves a vacancy, and no faults.
    pub(crate) fn named(name: &'static str) -> Self {
        Self {
            name,
            candidates: vec![CandidateSetup::lease(300); 2],
            others: 0,
            span: 10_000,
            size_retention: false,
            gaps_are_markers: false,
            judged_late: false,
            topic_ids: false,
            remade_for: Duration::ZERO,
            jobs_have_children: false,
            children_are_elsewhere: false,
            jobs_have_commands: false,
            health: None,
            hooks: &[],
            slow_pipe: false,
            claims_are_acknowledged: false,
            guards_start_late: false,
            guard_late: Duration::ZERO,
            once: None,
            successor: None,
            reborn: false,
            faults: Faults::none(),
            before: |_| {},
            may: |_, _| true,
            limit: Duration::from_secs(1),
            depth: 200,
            most_states: 400_000,
        }
    }
}
