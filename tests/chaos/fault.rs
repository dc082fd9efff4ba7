//! What can be broken, and the plan that a seed makes of it.

use std::time::Duration;

use clap::ValueEnum;
use neli_proto::random::Random;

/// What is broken on purpose.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, ValueEnum)]
pub(crate) enum Fault {
    /// Supervisor and guard are killed at once, the job left behind (outside the guarantee: assumption 3).
    AbandonJob,
    /// Bytes don't come through, in one direction or both: they are held, or lost with their connection.
    Cut,
    /// Nothing gets through to the broker that coordinates the group; the others can be reached.
    CutCoordinator,
    /// Records older than two minutes are deleted.
    CutHead,
    /// Nothing gets through to the broker that leads the partition; the others can be reached.
    CutLeader,
    /// Each byte comes late.
    Delay,
    /// Answers come late, and then nothing gets through.
    Fade,
    /// A broker's disk is full, and has room again.
    FillDisk,
    /// A broker is stopped, and goes on.
    FreezeBroker,
    /// A stranger writes what makes no sense.
    Garbage,
    /// Every processor is busy.
    Hog,
    /// A broker is killed, and comes back.
    KillBroker,
    /// SIGKILL to the guard.
    KillGuard,
    /// SIGKILL to the job's main process.
    KillJob,
    /// SIGKILL to supervisor, guard and job at once.
    KillMachine,
    /// SIGKILL to the supervisor.
    KillSupervisor,
    /// A stranger writes what makes sense and is not so.
    Lie,
    /// Another broker leads the partition.
    MoveLeader,
    /// Connections are refused, and those that are there are reset.
    Refuse,
    /// The topic is deleted and made anew (outside the guarantee: assumption 4).
    RemakeTopic,
    /// The topic is deleted and made anew, and is longer than it was when its leader, which heard nothing meanwhile, reads on
    /// (outside the guarantee for two leases: assumption 4).
    RemakeUnnoticed,
    /// Connections are reset.
    Reset,
    /// A stranger asks the leader to resign; where candidates have many roles, the program's `resign` asks the leader of one.
    Resign,
    /// Every candidate is ended by TERM and started again, one after another.
    Roll,
    /// A broker is shut down in order, and comes back.
    ShutDownBroker,
    /// The wall clock of one candidate leaps, forwards or back.
    StepClock,
    /// SIGSTOP to the guard.
    StopGuard,
    /// SIGSTOP to the supervisor, and SIGCONT after a while.
    StopSupervisor,
    /// SIGTERM to the leader, and a stranger's records under the election's key among the claims that follow.
    Strays,
    /// SIGTERM to a candidate.
    Term,
    /// SIGTERM to whoever leads next, at once.
    TermAtLead,
    /// Bytes come slowly.
    Trickle,
}

impl Fault {
    /// How often it comes, beside the others; what is outside the guarantee, or lasts long, comes seldom.
    fn weight(self, conditions: Conditions) -> u32 {
        let Conditions { brokers, long, shared, fills_disk, changes, pause: _, roles } = conditions;
        let is_shared = [Self::FillDisk, Self::FreezeBroker, Self::Hog, Self::KillBroker, Self::ShutDownBroker];
        if is_shared.contains(&self) && !shared {
            return 0;
        }
        // Where leaders are to change often, what makes them do so at once comes many times as often as the rest.
        let often = if !changes {
            // What moves one role of many is what shares become fair after.
            if self == Self::Resign && roles > 1 { 6 } else { 1 }
        } else if self == Self::Resign {
            // No process has to be started for it.
            60
        } else if [Self::KillSupervisor, Self::Term].contains(&self) {
            7
        } else if [Self::KillGuard, Self::KillJob, Self::TermAtLead].contains(&self) {
            4
        } else if [Self::KillMachine, Self::StopSupervisor].contains(&self) {
            2
        } else {
            1
        };
        often * self.usual_weight(long, brokers, fills_disk)
    }

    fn usual_weight(self, long: bool, brokers: usize, fills_disk: bool) -> u32 {
        match self {
            Self::StopSupervisor | Self::Term => 12,
            Self::Cut | Self::Delay | Self::KillMachine | Self::KillSupervisor => 9,
            Self::KillGuard => 7,
            Self::Fade
            | Self::Garbage
            | Self::KillJob
            | Self::Lie
            | Self::Reset
            | Self::StopGuard
            | Self::TermAtLead => 4,
            Self::Refuse | Self::Trickle => 3,
            Self::AbandonJob
            | Self::FreezeBroker
            | Self::Hog
            | Self::KillBroker
            | Self::Resign
            | Self::Roll
            | Self::StepClock => 2,
            Self::CutCoordinator | Self::CutLeader | Self::MoveLeader | Self::ShutDownBroker => {
                if brokers > 1 {
                    3
                } else {
                    0
                }
            }
            Self::FillDisk => {
                if fills_disk {
                    2
                } else {
                    0
                }
            }
            Self::CutHead => u32::from(long),
            Self::RemakeTopic | Self::RemakeUnnoticed | Self::Strays => 0,
        }
    }
}

/// What a plan depends on besides its seed.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that nothing ties to each other")]
pub(crate) struct Conditions {
    pub(crate) brokers: usize,
    /// Whether there is time for what takes minutes.
    pub(crate) long: bool,
    /// Whether what all elections have may be struck, too.
    pub(crate) shared: bool,
    /// Whether a broker has a small disk of its own.
    pub(crate) fills_disk: bool,
    /// Mostly what changes the leader, and at a higher pace.
    pub(crate) changes: bool,
    /// The shortest and the longest pause between two faults, where the run has one of its own.
    pub(crate) pause: Option<(Duration, Duration)>,
    /// How many roles each candidate stands for.
    pub(crate) roles: usize,
}

/// One fault: all that chance decides of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strike {
    pub(crate) fault: Fault,
    /// From the strike before.
    pub(crate) after: Duration,
    /// The role that is struck, or whose leader is.
    pub(crate) role: usize,
    /// Whoever leads is struck, if anybody does; else that slot.
    pub(crate) at_leader: bool,
    pub(crate) slot: usize,
    /// The broker; or all of a candidate's wires.
    pub(crate) broker: Option<usize>,
    /// How long it lasts.
    pub(crate) lasts: Duration,
    /// From 0 to 1: how bad it is, or which kind of it.
    pub(crate) degree: f64,
}

/// Strikes without end; the same for the same seed.
pub(crate) struct Plan {
    dice: Dice,
    faults: Vec<(Fault, u32)>,
    slots: usize,
    brokers: usize,
    roles: usize,
    count: u32,
    /// The shortest and the longest pause between two strikes.
    pause: (Duration, Duration),
    /// There is peace after so many strikes.
    peace_every: u32,
    next_remake: u32,
    remakes_every: u32,
    remakes: bool,
}

/// Chance.
pub(crate) struct Dice(Random);

impl Dice {
    pub(crate) fn of(seed: u64) -> Self {
        Self(Random::from_seed(seed))
    }

    /// From 0 to 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        self.0.up_to(Duration::from_secs(1)).as_secs_f64()
    }

    pub(crate) fn between(&mut self, least: Duration, most: Duration) -> Duration {
        least + self.0.up_to(most.saturating_sub(least))
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let drawn = self.0.up_to(Duration::from_nanos(u64::try_from(bound).expect("a few") * 1_000_000));
        usize::try_from(drawn.as_nanos() / 1_000_000).expect("less than the bound").min(bound - 1)
    }

    pub(crate) fn chance(&mut self, of: f64) -> bool {
        self.fraction() < of
    }
}

impl Plan {
    /// Of all faults, or of these alone.
    pub(crate) fn new(seed: u64, only: &[Fault], slots: usize, conditions: Conditions) -> Self {
        let all = Fault::value_variants().iter().copied();
        let weighed = |fault: Fault| match only {
            [] => fault.weight(conditions),
            _ if !conditions.shared => u32::from(only.contains(&fault)) * fault.weight(conditions),
            _ => u32::from(only.contains(&fault)) * fault.weight(conditions).max(1),
        };
        let faults = all.map(|fault| (fault, weighed(fault))).filter(|(_, weight)| *weight > 0).collect();
        Self {
            dice: Dice::of(seed),
            faults,
            slots,
            brokers: conditions.brokers,
            roles: conditions.roles,
            count: 0,
            pause: conditions.pause.unwrap_or_else(|| {
                (Duration::from_millis(50), Duration::from_millis(if conditions.changes { 700 } else { 1200 }))
            }),
            peace_every: if conditions.changes { 60 } else { 10 },
            next_remake: if conditions.changes { 1500 } else { 300 },
            remakes_every: if conditions.changes { 1500 } else { 300 },
            remakes: conditions.long && only.is_empty(),
        }
    }

    /// The next fault, where there is any.
    pub(crate) fn strike(&mut self) -> Option<Strike> {
        let (dice, faults) = (&mut self.dice, &self.faults);
        self.count += 1;
        let total: u32 = faults.iter().map(|(_, weight)| weight).sum();
        if total == 0 {
            return None;
        }
        let mut drawn = u32::try_from(dice.below(usize::try_from(total).expect("a few"))).expect("a few");
        let chosen = faults.iter().find(|(_, weight)| {
            let found = drawn < *weight;
            drawn = drawn.saturating_sub(*weight);
            found
        });
        let mut fault = chosen.expect("less than the total").0;
        if self.remakes && self.count >= self.next_remake {
            // By turns, noticed and not.
            let unnoticed = (self.count / self.remakes_every).is_multiple_of(2);
            fault = if unnoticed { Fault::RemakeUnnoticed } else { Fault::RemakeTopic };
            self.next_remake = self.count + self.remakes_every;
        }
        // Now and then there is peace for long enough to see that somebody leads.
        let peace =
            if self.count.is_multiple_of(self.peace_every) { Duration::from_millis(5500) } else { Duration::ZERO };
        Some(Strike {
            fault,
            after: dice.between(self.pause.0, self.pause.1) + peace,
            at_leader: dice.chance(0.75),
            slot: dice.below(self.slots),
            broker: Some(dice.below(2 * self.brokers)).filter(|broker| *broker < self.brokers),
            lasts: dice.between(Duration::from_millis(200), Duration::from_millis(3500)),
            degree: dice.fraction(),
            // Drawn last, and only where there are many: the plans of one role stay as they are.
            role: if self.roles > 1 { dice.below(self.roles) } else { 0 },
        })
    }
}
