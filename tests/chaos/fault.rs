//! The faults, and the plan that is computed from a seed.

use std::time::Duration;

use clap::ValueEnum;
use neli_proto::random::Random;

/// A fault.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, ValueEnum)]
pub(crate) enum Fault {
    /// Supervisor and guard are killed at once, and the job is left behind (outside the guarantee: assumption 3).
    AbandonJob,
    /// Bytes are held, or lost with their connection, in one direction or both.
    Cut,
    /// The broker that coordinates the group can't be reached, but the others can.
    CutCoordinator,
    /// Records older than two minutes are deleted.
    CutHead,
    /// The broker that leads the partition can't be reached, but the others can.
    CutLeader,
    /// Each byte is delayed.
    Delay,
    /// Answers are delayed, and then nothing is delivered.
    Fade,
    /// A broker's disk becomes full, and later has space again.
    FillDisk,
    /// A broker is stopped (SIGSTOP) and continued.
    FreezeBroker,
    /// Undecodable records are written.
    Garbage,
    /// All processors are busy.
    Hog,
    /// A broker is killed and restarted.
    KillBroker,
    /// SIGKILL to the guard.
    KillGuard,
    /// SIGKILL to the job's main process.
    KillJob,
    /// SIGKILL to supervisor, guard and job at once.
    KillMachine,
    /// SIGKILL to the supervisor.
    KillSupervisor,
    /// Decodable records with false content are written.
    Lie,
    /// The partition's leadership moves to another broker.
    MoveLeader,
    /// Connections are refused, and existing ones are reset.
    Refuse,
    /// The topic is deleted and created again (outside the guarantee: assumption 4).
    RemakeTopic,
    /// The topic is deleted and created again while its leader is cut off, and has become longer than before when the leader continues to
    /// read (outside the guarantee for two leases: assumption 4).
    RemakeUnnoticed,
    /// Connections are reset.
    Reset,
    /// A request to resign is written; with many roles the program's `resign` asks the leader of one.
    Resign,
    /// Every candidate is stopped by SIGTERM and started again, one after another.
    Roll,
    /// A broker is shut down in order and restarted.
    ShutDownBroker,
    /// The wall clock of one candidate is set forward or back.
    StepClock,
    /// SIGSTOP to the guard.
    StopGuard,
    /// SIGSTOP to the supervisor, and SIGCONT later.
    StopSupervisor,
    /// SIGTERM is sent to the leader, and other programs' records are written under the election's key among the claims that follow.
    Strays,
    /// SIGTERM to a candidate.
    Term,
    /// SIGTERM to the next leader as soon as it leads.
    TermAtLead,
    /// Bytes are delivered slowly.
    Trickle,
}

impl Fault {
    /// How often the fault is chosen, relative to the others. Faults that are outside the guarantee or take long are rare.
    fn weight(self, conditions: Conditions) -> u32 {
        let Conditions { brokers, long, shared, fills_disk, changes, pause: _, roles } = conditions;
        let is_shared = [Self::FillDisk, Self::FreezeBroker, Self::Hog, Self::KillBroker, Self::ShutDownBroker];
        if is_shared.contains(&self) && !shared {
            return 0;
        }
        // If leaders must change often, the faults that change them at once are many times as frequent as the others.
        let often = if !changes {
            // Shares of roles become unfair when a single role moves.
            if self == Self::Resign && roles > 1 { 6 } else { 1 }
        } else if self == Self::Resign {
            // These faults need no new process.
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

/// The inputs of a plan, besides its seed.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that nothing ties to each other")]
pub(crate) struct Conditions {
    pub(crate) brokers: usize,
    /// Whether the run is long enough for faults that take minutes.
    pub(crate) long: bool,
    /// Whether faults may affect the brokers and the machine, which all elections share.
    pub(crate) shared: bool,
    /// Whether a broker has a small disk.
    pub(crate) fills_disk: bool,
    /// Whether to use mostly faults that change the leader, at a higher rate.
    pub(crate) changes: bool,
    /// The shortest and the longest pause between two faults, if the run sets them.
    pub(crate) pause: Option<(Duration, Duration)>,
    /// The number of roles of each candidate.
    pub(crate) roles: usize,
}

/// One fault with all its random parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strike {
    pub(crate) fault: Fault,
    /// The time since the previous strike.
    pub(crate) after: Duration,
    /// The role that is affected, or whose leader is.
    pub(crate) role: usize,
    /// Whether the leader is affected if there is one; otherwise that slot is.
    pub(crate) at_leader: bool,
    pub(crate) slot: usize,
    /// The broker; `None` means all of a candidate's wires.
    pub(crate) broker: Option<usize>,
    /// The duration.
    pub(crate) lasts: Duration,
    /// From 0 to 1: the severity or the variant of the fault.
    pub(crate) degree: f64,
}

/// An endless series of strikes, determined by the seed.
pub(crate) struct Plan {
    dice: Dice,
    faults: Vec<(Fault, u32)>,
    slots: usize,
    brokers: usize,
    roles: usize,
    count: u32,
    /// The shortest and the longest pause between two strikes.
    pause: (Duration, Duration),
    /// After this number of strikes there is a time without faults.
    peace_every: u32,
    next_remake: u32,
    remakes_every: u32,
    remakes: bool,
}

/// A random number generator.
pub(crate) struct Dice(Random);

impl Dice {
    pub(crate) fn of(seed: u64) -> Self {
        Self(Random::from_seed(seed))
    }

    /// A number from 0 to 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        self.0.up_to(Duration::from_secs(1)).as_secs_f64()
    }

    pub(crate) fn between(&mut self, least: Duration, most: Duration) -> Duration {
        least + self.0.up_to(most.saturating_sub(least))
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let drawn = self.0.up_to(Duration::from_nanos(u64::try_from(bound).expect("a small number") * 1_000_000));
        usize::try_from(drawn.as_nanos() / 1_000_000).expect("less than the bound").min(bound - 1)
    }

    pub(crate) fn chance(&mut self, of: f64) -> bool {
        self.fraction() < of
    }
}

impl Plan {
    /// A plan of all faults, or only of these.
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

    /// The next fault, if there is one.
    pub(crate) fn strike(&mut self) -> Option<Strike> {
        let (dice, faults) = (&mut self.dice, &self.faults);
        self.count += 1;
        let total: u32 = faults.iter().map(|(_, weight)| weight).sum();
        if total == 0 {
            return None;
        }
        let mut drawn =
            u32::try_from(dice.below(usize::try_from(total).expect("a small number"))).expect("a small number");
        let chosen = faults.iter().find(|(_, weight)| {
            let found = drawn < *weight;
            drawn = drawn.saturating_sub(*weight);
            found
        });
        let mut fault = chosen.expect("less than the total").0;
        if self.remakes && self.count >= self.next_remake {
            // Every other one is of the unnoticed kind.
            let unnoticed = (self.count / self.remakes_every).is_multiple_of(2);
            fault = if unnoticed { Fault::RemakeUnnoticed } else { Fault::RemakeTopic };
            self.next_remake = self.count + self.remakes_every;
        }
        // Sometimes nothing is broken for long enough to see that there is a leader.
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
            // This number is drawn last and only with many roles, so that plans with one role do not change.
            role: if self.roles > 1 { dice.below(self.roles) } else { 0 },
        })
    }
}
