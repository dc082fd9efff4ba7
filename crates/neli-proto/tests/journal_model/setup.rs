//! What a world is made of, and how much may go wrong in it.

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
use neli_proto::timings::kill_margin;
use neli_proto::window::{Span, Window};

use crate::step::Step;
use crate::world::World;

/// What the candidates are called.
pub(crate) const NAMES: [&str; 3] = ["a", "b", "c"];

/// Which candidate.
pub(crate) type Who = usize;
pub(crate) const A: Who = 0;
pub(crate) const B: Who = 1;
pub(crate) const C: Who = 2;

/// A world, before anything has happened.
#[expect(clippy::struct_excessive_bools, reason = "properties of a world that nothing ties to each other")]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    pub(crate) candidates: Vec<CandidateSetup>,
    /// How many records of other keys the log begins with.
    pub(crate) others: Offset,
    /// How far before the end a reading begins.
    pub(crate) span: Offset,
    /// The topic has a size limit: a leader's records may be cut.
    pub(crate) size_retention: bool,
    /// The topic deletes whole segments alone, and candidates have read that it does.
    pub(crate) gaps_are_markers: bool,
    /// R0 is judged some time after a reading has begun.
    pub(crate) judged_late: bool,
    /// The broker has ids for topics.
    pub(crate) topic_ids: bool,
    /// For how long after a remake that nobody noticed there may be a job of each topic.
    pub(crate) remade_for: Duration,
    /// Each job leaves a daemon behind.
    pub(crate) jobs_have_children: bool,
    /// Each job runs with a command beside it, that would outlive it.
    pub(crate) jobs_have_commands: bool,
    /// How the job's health is looked after, if it is.
    pub(crate) health: Option<HealthPolicy>,
    /// The hooks that are given.
    pub(crate) hooks: &'static [Hook],
    /// What guard and supervisor say to each other takes its time.
    pub(crate) slow_pipe: bool,
    /// A claim's sender is told that it was appended.
    pub(crate) claims_are_acknowledged: bool,
    /// A guard is started some time after it was needed, as in a process that leads many roles.
    pub(crate) guards_start_late: bool,
    /// By how much the guard may be scheduled late.
    pub(crate) guard_late: Duration,
    /// The job runs once: for what.
    pub(crate) once: Option<Occasion>,
    /// Where a machine has died, or its candidate has gone, another begins.
    pub(crate) reborn: bool,
    /// What may happen.
    pub(crate) faults: Faults,
    /// What has happened before the search begins.
    pub(crate) before: fn(&mut World),
    /// Which steps the search may take.
    pub(crate) may: fn(&World, Step) -> bool,
    /// For how long the search goes on.
    pub(crate) limit: Duration,
    /// How many steps it may take.
    pub(crate) depth: usize,
    /// With so many states there is a mistake in the world: it is to be small.
    pub(crate) most_states: usize,
}

/// What the job runs once for.
#[derive(Clone, Copy)]
pub(crate) enum Occasion {
    /// One key.
    Key,
    /// One key, whose runs all fail, and are followed by so many others.
    Retries(u32),
    /// The window of this number, on each machine. The clock shows the newest of them.
    Windows([u64; 3]),
    /// Each window, one after the other; the clock of each machine shows the one of this number, and the one before it is done.
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

    /// What is recorded before anybody begins.
    pub(crate) fn recorded(self) -> Option<Fact> {
        let Self::Schedule(number, _) = self else { return None };
        let Window { key, span } = window(number - 1);
        Some(Fact {
            key,
            window: Some(span),
            outcome: Outcome::Done,
            term: -1,
            member: None,
            name: None,
            exit: Some(0),
            attempt: 1,
            ran_ms: None,
            at_ms: None,
            forgets: 0,
        })
    }

    /// What a machine's candidate is told.
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

    /// How many runs that fail are followed by another.
    pub(crate) const fn retries(self) -> u32 {
        if let Self::Retries(retries) = self { retries } else { 0 }
    }

    /// With what each job ends.
    pub(crate) const fn status(self) -> u8 {
        if matches!(self, Self::Retries(_)) { 3 } else { 0 }
    }
}

/// The window of this number.
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

/// How often something may happen.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Faults {
    /// A candidate begins.
    pub(crate) begins: u8,
    /// One record is deleted from the middle of the log.
    pub(crate) compactions: u8,
    /// A supervisor is sent SIGKILL.
    pub(crate) crashes: u8,
    /// The log's head is cut.
    pub(crate) cuts: u8,
    /// A machine dies.
    pub(crate) deaths: u8,
    /// An append takes its time, and others may overtake it.
    pub(crate) delays: u8,
    /// An append happens twice.
    pub(crate) doubles: u8,
    /// Somebody ends the election.
    pub(crate) ends: u8,
    /// A job ends by itself.
    pub(crate) exits: u8,
    /// A fact that is recorded takes its time.
    pub(crate) fact_delays: u8,
    /// An operator has the key forgotten.
    pub(crate) forgets: u8,
    /// A guard is sent SIGKILL.
    pub(crate) guard_deaths: u8,
    /// A guard is stopped.
    pub(crate) guard_pauses: u8,
    /// A health command fails.
    pub(crate) failed_health_checks: u8,
    /// A reader takes its time until it has caught up.
    pub(crate) lags: u8,
    /// An append is lost.
    pub(crate) losses: u8,
    /// A transaction's marker is appended.
    pub(crate) markers: u8,
    /// From then on no broker tells a machine which topic stands under the name.
    pub(crate) mutes: u8,
    /// Somebody writes nonsense under the election's key.
    pub(crate) nonsense: u8,
    /// Somebody writes a record under another key.
    pub(crate) others: u8,
    /// A supervisor is stopped.
    pub(crate) pauses: u8,
    /// The log's end is asked for again, and the answer takes its time.
    pub(crate) questions: u8,
    /// The broker dies, and its successor begins with an empty log.
    pub(crate) remakes: u8,
    /// The topic is deleted and made again, and readers go on where they were.
    pub(crate) unnoticed_remakes: u8,
    /// An operator asks the leader to resign.
    pub(crate) resigns: u8,
    /// An answer to the first question takes its time.
    pub(crate) slow_answers: u8,
    /// TERM to `neli-run`.
    pub(crate) stops: u8,
    /// TSTP to `neli-run`.
    pub(crate) suspensions: u8,
}

impl Faults {
    /// Nothing goes wrong.
    pub(crate) const fn none() -> Self {
        Self {
            begins: 0,
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
            others: 0,
            pauses: 0,
            questions: 0,
            remakes: 0,
            unnoticed_remakes: 0,
            resigns: 0,
            slow_answers: 0,
            stops: 0,
            suspensions: 0,
        }
    }

    /// Everything goes wrong, again and again; but no broker is replaced by an empty one, and nobody ends the election.
    pub(crate) const fn plenty() -> Self {
        Self {
            begins: 255,
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
            others: 255,
            pauses: 255,
            questions: 255,
            remakes: 0,
            unnoticed_remakes: 0,
            resigns: 255,
            slow_answers: 255,
            stops: 255,
            suspensions: 255,
        }
    }
}

impl CandidateSetup {
    /// A lease of so many milliseconds.
    pub(crate) const fn lease(millis: u64) -> Self {
        Self {
            lease: Duration::from_millis(millis),
            stop_timeout: Duration::from_millis(150),
            claim_delay: Duration::ZERO,
            settle: Duration::ZERO,
            overlap: None,
            restart: RestartPolicy::NEVER,
            on_loss: OnLoss::Standby,
        }
    }

    /// Runs its job again after every end, so many milliseconds later.
    pub(crate) const fn restarting(self, millis: u64) -> Self {
        let restart = RestartPolicy { restart: Restart::Always, delay: Duration::from_millis(millis), limit: None };
        Self { restart, ..self }
    }

    /// Claims a vacancy only after so many milliseconds.
    pub(crate) const fn after(self, millis: u64) -> Self {
        Self { claim_delay: Duration::from_millis(millis), ..self }
    }

    /// Starts its job only so many milliseconds after it has won the lead.
    pub(crate) const fn settling(self, millis: u64) -> Self {
        Self { settle: Duration::from_millis(millis), ..self }
    }

    /// Lets its job run beside its successor's for so many milliseconds.
    pub(crate) const fn overlapping(self, millis: u64) -> Self {
        Self { overlap: Some(Duration::from_millis(millis)), ..self }
    }

    /// Goes for good when it loses the lead.
    pub(crate) const fn exiting(self) -> Self {
        Self { on_loss: OnLoss::Exit, ..self }
    }

    pub(crate) fn timings(&self) -> Timings {
        let durations = Durations {
            lease: self.lease,
            heartbeat_interval: self.lease / 3,
            kill_margin: kill_margin(self.lease),
            fence_warning: Duration::ZERO,
            claim_delay: self.claim_delay,
            preempt_after: None,
            overlap: self.overlap,
        };
        Timings::new(durations, Elector::Log).unwrap_or_else(|error| panic!("{}: {error}", self.lease.as_millis()))
    }
}

impl Setup {
    /// Whether a job may run beside its successor's; then candidates hear each other's hellos.
    pub(crate) fn overlaps(&self) -> bool {
        self.candidates.iter().any(|candidate| candidate.overlap.is_some())
    }

    /// Two candidates with short leases, a log that is empty and believed, and nothing that goes wrong.
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
            jobs_have_commands: false,
            health: None,
            hooks: &[],
            slow_pipe: false,
            claims_are_acknowledged: false,
            guards_start_late: false,
            guard_late: Duration::ZERO,
            once: None,
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
