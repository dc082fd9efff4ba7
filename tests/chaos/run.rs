//! One run: candidates, faults at random times, and the checks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use harness::judge::shares::Shares;
use harness::judge::{Axis, History, Law, nanos};
use harness::network::LinkConditions;
use harness::process::Process;
use harness::{install, wait};
use nix::sys::signal::Signal;

use crate::environment::Environment;
use crate::fault::{Conditions, Dice, Fault, Plan, Strike};
use crate::keys::{self, Keys};
pub(crate) use crate::parameters::Parameters;
use crate::report::{Outcome, judge, shows_void_claim};
use crate::slot::{Slot, Terms, lease_ms};
use crate::special_runs::SpecialRun;
use crate::stranger::Stranger;
use crate::windows::Windows;

/// The number of entries of the timeline that are kept.
const MOST_ENTRIES: usize = 50_000;

/// How often a run with a mutant looks for jobs in the terms of void claims, which every run is judged by at its end. It need not go on to its end if
/// it has one.
const CLAIMS_JUDGED_EVERY: Duration = Duration::from_secs(10);

/// A task that is due later.
#[derive(Debug)]
pub(crate) enum Task {
    /// Restarts a broker that was killed.
    BeginBroker(usize),
    /// Removes this state from a slot's wires, unless another fault has changed it since.
    Clear(usize, Option<usize>, LinkConditions),
    Continue(usize, Process),
    EmptyDisk(usize),
    EndHog(Vec<Child>),
    /// Kills the processes that an abandoned job of a role had started.
    KillAbandoned(usize, usize),
    /// Cuts a slot off from all brokers.
    Lose(usize, Duration),
    Start(usize),
    /// Writes the remaining number of undecodable records of a role, one after another.
    Stray(usize, u32),
    Strike(Strike),
    Term(usize),
    Thaw(usize),
    /// Checks whether a broker that was asked to shut down has ended.
    Undertake(usize),
}

/// A run in progress.
pub(crate) struct Run<'a> {
    pub(crate) parameters: &'a Parameters,
    pub(crate) environment: &'a Environment,
    pub(crate) group: String,
    pub(crate) slots: Vec<Slot>,
    /// One history per role.
    pub(crate) histories: Vec<History>,
    pub(crate) axis: Axis,
    pub(crate) stranger: Stranger,
    /// Random decisions, besides those of the plan.
    pub(crate) dice: Dice,
    pub(crate) agenda: BinaryHeap<(Reverse<u64>, u64)>,
    pub(crate) tasks: BTreeMap<u64, Task>,
    pub(crate) count: u64,
    pub(crate) strikes: BTreeMap<Fault, u32>,
    /// Brokers that were struck, and since when they work again.
    pub(crate) broken: BTreeMap<usize, Option<u64>>,
    /// Processes of the program that ask a role's leader to resign.
    pub(crate) askers: Vec<(usize, Child)>,
    /// The key of each slot's candidate, with `--keys`.
    pub(crate) keys: Option<Keys>,
    /// The result of the check for fair shares, with many roles.
    pub(crate) shares: Option<Shares>,
    /// Whether the next leader is stopped as soon as it leads.
    pub(crate) term_at_lead: bool,
    pub(crate) violations: Vec<String>,
    pub(crate) began: u64,
    pub(crate) over: bool,
    /// By how much the longest pause of this loop was too long. It shows the load of the machine.
    pub(crate) overslept: u64,
    pub(crate) lonely_since: Option<u64>,
    /// The file that sets the wall clock of one slot.
    pub(crate) clock: PathBuf,
    /// The directory of the witnesses' files.
    runs: PathBuf,
    _directory: tempfile::TempDir,
}

/// Injects faults according to `parameters`, and judges the result.
pub(crate) fn run(parameters: &Parameters, environment: &Environment) -> Outcome {
    let directory = install::scratch();
    let runs = directory.path().join("runs");
    let law = Law {
        leases: (0..parameters.candidates)
            .map(|slot| lease_ms(parameters.special_run, slot))
            .map(Duration::from_millis)
            .collect(),
        kill_margin: parameters.special_run.and_then(SpecialRun::kill_margin),
        undisturbed: parameters.special_run.is_some_and(SpecialRun::is_undisturbed),
        overlap: parameters.overlap,
        runs_again: parameters.roles > 1,
        lines_may_break: parameters.special_run.is_some_and(|special_run| special_run.limits().memory.is_some()),
    };
    let history = |role: usize| {
        let runs = runs.join(role.to_string());
        fs::create_dir_all(&runs).expect("the directory can be created");
        History::new(&runs, law.clone())
    };
    let clock = directory.path().join("clock");
    fs::write(&clock, "0").expect("the file can be written");
    let group = format!("chaos{:x}-{:x}-{}", parameters.seed, wait::now(), parameters.election);
    let (kafka, addresses) = (environment.cluster().kafka(), environment.cluster().addresses());
    let mut run = Run {
        parameters,
        slots: (0..parameters.candidates).map(|slot| Slot::new(slot, parameters.roles)).collect(),
        histories: (0..parameters.roles).map(history).collect(),
        axis: Axis::default(),
        stranger: Stranger::start(&kafka, addresses, &format!("{group}.neli"), parameters.roles),
        environment,
        group,
        dice: Dice::of(!parameters.seed),
        agenda: BinaryHeap::new(),
        tasks: BTreeMap::new(),
        count: 0,
        strikes: BTreeMap::new(),
        broken: BTreeMap::new(),
        askers: Vec::new(),
        keys: parameters.keys.then(|| Keys::new(parameters.candidates)),
        shares: None,
        term_at_lead: false,
        violations: Vec::new(),
        began: wait::now(),
        over: false,
        overslept: 0,
        lonely_since: None,
        clock,
        runs,
        _directory: directory,
    };
    run.all();
    judge(run)
}

impl Run<'_> {
    fn all(&mut self) {
        let conditions = Conditions {
            brokers: self.parameters.brokers,
            shared: self.parameters.strikes_what_is_shared(),
            fills_disk: self.environment.cluster().has_a_small_disk(),
            changes: self.parameters.changes,
            long: self.is_long(),
            pause: self.parameters.special_run.and_then(SpecialRun::pause),
            roles: self.parameters.roles,
        };
        if let Some(conditions) = self.parameters.special_run.and_then(SpecialRun::shared_conditions) {
            for broker in 0..self.parameters.brokers {
                self.environment.wire(self.parameters, 0, broker, |wire| wire.set(conditions));
            }
        }
        let seed = self.parameters.seed + u64::try_from(self.parameters.election).expect("a small number");
        let mut plan = Plan::new(seed, &self.parameters.only, self.parameters.candidates, conditions);
        for slot in 0..self.slots.len() {
            self.start(slot);
        }
        // Many elections that start at once slow each other down.
        let elections = u32::try_from(self.parameters.elections).expect("a small number");
        self.await_leader("nobody leads at the start", wait::PATIENCE * elections);
        self.began = wait::now();
        let end = wait::after(self.parameters.duration);
        self.plan_strike(&mut plan);
        let mut claims_due = wait::after(CLAIMS_JUDGED_EVERY);
        while wait::now() < end && self.violations.is_empty() && !self.environment.is_given_up() {
            while let Some(task) = self.next_due() {
                if let Task::Strike(strike) = task {
                    self.strike(strike);
                    self.plan_strike(&mut plan);
                } else {
                    self.perform(task);
                }
            }
            self.look();
            if self.parameters.mutant.is_some() && wait::now() > claims_due {
                if shows_void_claim(self) {
                    return;
                }
                claims_due = wait::after(CLAIMS_JUDGED_EVERY);
            }
        }
        if !self.violations.is_empty() || self.environment.is_given_up() {
            if self.parameters.mutant.is_none() {
                self.environment.give_up();
            }
            return;
        }
        self.axis.note("chaos", "no more faults");
        self.clear_up();
        // After a topic was created again, candidates wait for a long silence.
        let patience = Duration::from_secs(62) + wait::PATIENCE;
        if self.await_leader("nobody has found back to lead", patience) {
            if self.has_many_roles() {
                self.await_fair();
            }
            self.await_keys(patience);
            self.await_windows(patience);
            if self.violations.is_empty() && !self.environment.is_given_up() {
                self.part();
            }
        }
    }

    /// Whether faults that take minutes are allowed, by the run's length or by request.
    fn is_long(&self) -> bool {
        // Runs of a key are distinguished by their terms, so the topic is not created again.
        !self.parameters.keys
            && (self.parameters.duration >= Duration::from_secs(300) || !self.parameters.only.is_empty())
    }

    fn plan_strike(&mut self, plan: &mut Plan) {
        if let Some(strike) = plan.strike() {
            self.after(strike.after, Task::Strike(strike));
        }
    }

    pub(crate) fn after(&mut self, span: Duration, task: Task) {
        self.count += 1;
        self.agenda.push((Reverse(wait::after(span)), self.count));
        self.tasks.insert(self.count, task);
    }

    pub(crate) fn next_due(&mut self) -> Option<Task> {
        let (Reverse(at), number) = *self.agenda.peek()?;
        if at > wait::now() {
            return None;
        }
        self.agenda.pop();
        self.tasks.remove(&number)
    }

    /// Waits a moment, and handles all events.
    pub(crate) fn look(&mut self) {
        const PAUSE: Duration = Duration::from_millis(2);
        let before = wait::now();
        wait::pause(PAUSE);
        self.overslept = self.overslept.max(wait::now() - before - nanos(PAUSE));
        if self.term_at_lead {
            for slot in &mut self.slots {
                if slot.leads_anew()
                    && let Some(supervisor) = slot.supervisor()
                {
                    supervisor.signal(Signal::SIGTERM);
                    self.axis.note("chaos", format!("TERM to {}, which leads", slot.name()));
                    self.term_at_lead = false;
                }
            }
        }
        self.count += 1;
        if !self.count.is_multiple_of(10) {
            return;
        }
        for role in 0..self.histories.len() {
            let called = self.called(role);
            let history = &mut self.histories[role];
            history.read();
            history.close_what_is_over();
            self.violations.extend(history.violations().into_iter().map(|violation| called.clone() + &violation));
        }
        self.look_at_askers();
        for word in self.stranger.said() {
            self.axis.note("stranger", word);
        }
        self.look_at_slots();
        if self.parameters.strikes_what_is_shared() {
            self.look_at_brokers();
        }
        self.environment.has_come_to(self.parameters.election, self.counts());
        self.axis.forget_all_but(MOST_ENTRIES);
    }

    fn look_at_slots(&mut self) {
        let now = wait::now();
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            slot.note(&mut self.axis);
            let Some(status) = slot.ended(&mut self.axis) else { continue };
            // This is the status of a job that was about to fail when its candidate was stopped.
            let is_jobs_own = self.parameters.runs_once() && status == keys::FAILURE;
            if !matches!(status, 0 | 137 | 143) && !is_jobs_own && self.parameters.mutant.is_none() {
                self.violations.push(format!("{} ended with {status}", self.slots[index].name()));
            }
            if status == 0 {
                self.keys.iter_mut().for_each(|keys| keys.is_done(index));
            }
            if !self.over {
                let most = Duration::from_millis(if self.parameters.changes { 300 } else { 1200 });
                let most = self.parameters.windows.map_or(most, Windows::longest_pause);
                let pause = self.dice.between(Duration::from_millis(20), most);
                self.after(pause, Task::Start(index));
            }
        }
        if self.slots.iter().any(Slot::is_able) {
            if let Some(since) = self.lonely_since.take() {
                self.axis.disturb(since, now);
            }
        } else {
            self.lonely_since.get_or_insert(now);
        }
    }

    pub(crate) fn start(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if slot.running.is_some() || self.over {
            return;
        }
        let dice = &mut self.dice;
        let once = self.keys.as_mut().map(|keys| keys.next(index, slot.lives, dice));
        let terms = Terms {
            program: &self.parameters.program,
            group: &self.group,
            elector: self.parameters.elector,
            mutant: self.parameters.mutant.as_deref(),
            clock: &self.clock,
            changes: self.parameters.changes,
            stubborn: self.parameters.stubborn,
            special_run: self.parameters.special_run,
            overlap: self.parameters.overlap,
            once,
            windows: self.parameters.windows,
            runs: &self.runs,
        };
        let brokers = self.environment.kafka_of(self.parameters, index);
        slot.start(&terms, brokers.address(), &mut self.dice);
        self.axis.note(&slot.name(), "started");
    }

    /// Runs the loop until there is a leader, for each role; returns whether there is one.
    fn await_leader(&mut self, otherwise: &str, patience: Duration) -> bool {
        let end = wait::after(patience);
        while !self.is_led() && self.violations.is_empty() && !self.environment.is_given_up() {
            while let Some(task) = self.next_due() {
                self.perform(task);
            }
            self.look();
            if wait::now() > end {
                self.violations.push(otherwise.to_owned());
            }
        }
        self.violations.is_empty() && !self.environment.is_given_up()
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.over = true;
        self.clear_up();
        self.slots.clear();
        for history in &self.histories {
            for job_run in history.open() {
                // These are processes that a broken program left behind.
                history.processes_of(*job_run).iter().for_each(|process| process.signal(Signal::SIGKILL));
            }
        }
        for (_, asker) in &mut self.askers {
            // It may have ended by itself.
            let _ = asker.kill().and_then(|()| asker.wait());
        }
        for index in 0..self.parameters.brokers {
            for slot in 0..self.parameters.candidates {
                self.environment.wire(self.parameters, slot, index, |wire| wire.set(LinkConditions::default()));
            }
            if !self.parameters.strikes_what_is_shared() {
                continue;
            }
            let mut cluster = self.environment.cluster_to_change();
            let broker = cluster.broker(index);
            if !broker.lives() {
                broker.end();
                broker.launch();
            }
        }
    }
}
