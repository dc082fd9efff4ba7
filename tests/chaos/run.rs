//! One run: candidates, faults at random times, and the judgement.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use harness::candidate::Elector;
use harness::cluster::Cluster;
use harness::network::{Flow, Weather};
use harness::process::Process;
use harness::{install, wait};
use nix::sys::signal::Signal;

use crate::axis::{Axis, nanos};
use crate::fault::{Conditions, Dice, Fault, Plan, Strike};
use crate::ledger::Ledger;
use crate::lies;
use crate::report::{Outcome, judge};
use crate::seat::{LEASES_MS, SEAT_WITH_A_CLOCK, Seat, Terms, faketime};
use crate::stranger::{Deed, Stranger};

/// What a run is to be.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) program: PathBuf,
    pub(crate) seed: u64,
    pub(crate) duration: Duration,
    pub(crate) candidates: usize,
    pub(crate) brokers: usize,
    pub(crate) elector: Elector,
    /// These faults alone; all of them when there is none.
    pub(crate) only: Vec<Fault>,
    /// A rule that the program breaks.
    pub(crate) flaw: Option<String>,
}

/// A candidate that came so long ago can be expected to lead.
const GROWN_UP: Duration = Duration::from_millis(1500);

/// How many of the last entries of the axis are kept.
const MOST_ENTRIES: usize = 50_000;

/// What was begun and is to be ended, or is to be looked at again.
#[derive(Debug)]
enum Task {
    /// A broker that was killed comes back.
    BeginBroker(usize),
    /// The bytes of a seat's wires come through again.
    Clear(usize, Option<usize>),
    Continue(usize, Process),
    EmptyDisk(usize),
    EndHog(Vec<Child>),
    /// What an abandoned job had started is ours to kill.
    KillAbandoned(usize),
    Start(usize),
    Strike(Strike),
    Term(usize),
    Thaw(usize),
    /// A broker that was asked to go: whether it has.
    Undertake(usize),
}

/// A run under way.
pub(crate) struct Run<'a> {
    pub(crate) orders: &'a Orders,
    pub(crate) cluster: &'a mut Cluster,
    pub(crate) group: String,
    pub(crate) seats: Vec<Seat>,
    pub(crate) ledger: Ledger,
    pub(crate) axis: Axis,
    pub(crate) stranger: Stranger,
    /// What chance decides while it runs, apart from the plan.
    dice: Dice,
    agenda: BinaryHeap<(Reverse<u64>, u64)>,
    tasks: BTreeMap<u64, Task>,
    count: u64,
    pub(crate) strikes: BTreeMap<Fault, u32>,
    /// Brokers that were struck, and since when they are in order again.
    broken: BTreeMap<usize, Option<u64>>,
    /// Whoever leads next is ended at once.
    term_at_lead: bool,
    pub(crate) violations: Vec<String>,
    pub(crate) began: u64,
    over: bool,
    /// How much longer than it was to be the longest pause of this loop was: what the machine's load costs.
    pub(crate) overslept: u64,
    lonely_since: Option<u64>,
    /// What the wall clock of [`SEAT_WITH_A_CLOCK`] is set by.
    clock: PathBuf,
    _directory: tempfile::TempDir,
}

/// Breaks things for as long as `orders` say, and judges what became of it.
pub(crate) fn run(orders: &Orders, cluster: &mut Cluster) -> Outcome {
    let directory = install::scratch();
    let runs = directory.path().join("runs");
    fs::create_dir(&runs).expect("ours");
    let clock = directory.path().join("clock");
    fs::write(&clock, "+0").expect("ours");
    let group = format!("chaos{:x}-{:x}", orders.seed, wait::now());
    let mut run = Run {
        orders,
        seats: (0..orders.candidates).map(Seat::new).collect(),
        ledger: Ledger::new(&runs),
        axis: Axis::default(),
        stranger: Stranger::start(&cluster.kafka(), cluster.addresses(), &format!("{group}.neli")),
        cluster,
        group,
        dice: Dice::of(!orders.seed),
        agenda: BinaryHeap::new(),
        tasks: BTreeMap::new(),
        count: 0,
        strikes: BTreeMap::new(),
        broken: BTreeMap::new(),
        term_at_lead: false,
        violations: Vec::new(),
        began: wait::now(),
        over: false,
        overslept: 0,
        lonely_since: None,
        clock,
        _directory: directory,
    };
    run.all();
    judge(run)
}

impl Run<'_> {
    fn all(&mut self) {
        let conditions = Conditions {
            brokers: self.orders.brokers,
            steps_clock: faketime().is_some(),
            fills_disk: self.cluster.has_a_small_disk(),
            long: self.orders.duration >= Duration::from_secs(300) || !self.orders.only.is_empty(),
        };
        let mut plan = Plan::new(self.orders.seed, &self.orders.only, self.orders.candidates, conditions);
        for seat in 0..self.seats.len() {
            self.start(seat);
        }
        self.await_leader("nobody leads at the start", wait::PATIENCE);
        self.began = wait::now();
        let end = wait::after(self.orders.duration);
        self.plan_strike(&mut plan);
        while wait::now() < end && self.violations.is_empty() {
            while let Some(task) = self.next_due() {
                if let Task::Strike(strike) = task {
                    self.strike(strike);
                    self.plan_strike(&mut plan);
                } else {
                    self.perform(task);
                }
            }
            self.look();
        }
        if !self.violations.is_empty() {
            return;
        }
        self.axis.note("chaos", "no more faults");
        self.clear_up();
        // A topic that was made anew is waited out in silence.
        let patience = Duration::from_secs(62) + wait::PATIENCE;
        if self.await_leader("nobody has found back to lead", patience) {
            self.part();
        }
    }

    fn plan_strike(&mut self, plan: &mut Plan) {
        let strike = plan.strike();
        self.after(strike.after, Task::Strike(strike));
    }

    fn after(&mut self, span: Duration, task: Task) {
        self.count += 1;
        self.agenda.push((Reverse(wait::after(span)), self.count));
        self.tasks.insert(self.count, task);
    }

    fn next_due(&mut self) -> Option<Task> {
        let (Reverse(at), number) = *self.agenda.peek()?;
        if at > wait::now() {
            return None;
        }
        self.agenda.pop();
        self.tasks.remove(&number)
    }

    /// Lets a little time pass, and looks around.
    fn look(&mut self) {
        const PAUSE: Duration = Duration::from_millis(2);
        let before = wait::now();
        wait::pause(PAUSE);
        self.overslept = self.overslept.max(wait::now() - before - nanos(PAUSE));
        if self.term_at_lead {
            for seat in &mut self.seats {
                if seat.leads_anew()
                    && let Some(supervisor) = seat.supervisor()
                {
                    supervisor.signal(Signal::SIGTERM);
                    self.axis.note("chaos", format!("TERM to {}, which leads", seat.name()));
                    self.term_at_lead = false;
                }
            }
        }
        self.count += 1;
        if !self.count.is_multiple_of(10) {
            return;
        }
        self.ledger.read();
        self.ledger.close_what_is_over();
        self.violations.extend(self.ledger.violations());
        for word in self.stranger.said() {
            self.axis.note("stranger", word);
        }
        self.look_at_seats();
        self.look_at_brokers();
        self.axis.forget_all_but(MOST_ENTRIES);
    }

    fn look_at_seats(&mut self) {
        let now = wait::now();
        for index in 0..self.seats.len() {
            let seat = &mut self.seats[index];
            seat.note(&mut self.axis);
            let Some(status) = seat.ended(&mut self.axis) else { continue };
            if !matches!(status, 0 | 137 | 143) && self.orders.flaw.is_none() {
                self.violations.push(format!("{} ended with {status}", self.seats[index].name()));
            }
            if !self.over {
                let pause = self.dice.between(Duration::from_millis(50), Duration::from_millis(1200));
                self.after(pause, Task::Start(index));
            }
        }
        let able = |seat: &Seat| seat.running.is_some() && !seat.is_stopped && seat.since + nanos(GROWN_UP) < now;
        if self.seats.iter().any(able) {
            if let Some(since) = self.lonely_since.take() {
                self.axis.disturb(since, now);
            }
        } else {
            self.lonely_since.get_or_insert(now);
        }
    }

    fn look_at_brokers(&mut self) {
        for index in 0..self.cluster.brokers().len() {
            let broker = self.cluster.broker(index);
            if broker.is_begun() && !broker.lives() && !self.broken.contains_key(&index) {
                self.axis.note("chaos", format!("broker {index} has ended by itself, and is started again"));
                broker.end();
                broker.launch();
            }
        }
        // One that came back is in order when the topic has taken something since.
        let stranger = &self.stranger;
        self.broken.retain(|_, since| since.is_none_or(|since| !stranger.was_taken_after(since)));
    }

    fn start(&mut self, index: usize) {
        let seat = &mut self.seats[index];
        if seat.running.is_some() || self.over {
            return;
        }
        let terms = Terms {
            program: &self.orders.program,
            group: &self.group,
            elector: self.orders.elector,
            flaw: self.orders.flaw.as_deref(),
            clock: faketime().map(|library| (library, self.clock.as_path())),
        };
        let prefix = self.ledger.prefix(index, seat.lives);
        seat.start(&terms, self.cluster.kafka_of(index).address(), &prefix, &mut self.dice);
        self.axis.note(&seat.name(), "started");
    }

    /// Looks around until somebody leads; whether somebody does.
    fn await_leader(&mut self, otherwise: &str, patience: Duration) -> bool {
        let end = wait::after(patience);
        while self.ledger.current().is_none() && self.violations.is_empty() {
            while let Some(task) = self.next_due() {
                self.perform(task);
            }
            self.look();
            if wait::now() > end {
                self.violations.push(otherwise.to_owned());
            }
        }
        self.violations.is_empty()
    }

    // ---- breaking -------------------------------------------------------------------------------------------------

    fn strike(&mut self, strike: Strike) {
        let Strike { fault, at_leader, lasts, degree, .. } = strike;
        let leader = self.ledger.current();
        let index = leader.filter(|_| at_leader).map_or(strike.seat, |stint| self.ledger.stints[stint].seat);
        let now = wait::now();
        *self.strikes.entry(fault).or_default() += 1;
        let seat = &self.seats[index];
        let (name, supervisor) = (seat.name(), seat.supervisor());
        self.axis.note(
            "chaos",
            format!("{fault:?} at {name}, broker {:?}, for {lasts:?}, degree {degree:.2}", strike.broker),
        );
        match fault {
            Fault::AbandonJob => self.abandon_job(index),
            Fault::Cut | Fault::Delay | Fault::Refuse | Fault::Trickle => {
                self.set_weather(index, strike.broker, weather(fault, degree));
                self.axis.disturb(now, now + nanos(lasts));
                self.after(lasts, Task::Clear(index, strike.broker));
            }
            Fault::CutHead => self.stranger.ask(Deed::CutHead),
            Fault::FreezeBroker | Fault::KillBroker | Fault::ShutDownBroker => self.strike_broker(&strike),
            Fault::Garbage => self.stranger.ask(Deed::Write(lies::garbage(&self.group, degree, &mut self.dice))),
            Fault::Hog => {
                let burn = || {
                    let mut hog = Command::new("setpriv");
                    hog.args(["--pdeathsig", "KILL", "--", "sh", "-c", "while :; do :; done"]);
                    hog.stdin(Stdio::null()).spawn().expect("setpriv is part of util-linux")
                };
                self.axis.disturb(now, now + nanos(lasts));
                let hogs = (0..4).map(|_| burn()).collect();
                self.after(lasts, Task::EndHog(hogs));
            }
            Fault::KillGuard => {
                if let Some(guard) = seat.guard() {
                    guard.signal(Signal::SIGKILL);
                }
            }
            Fault::KillJob => {
                let main = leader.and_then(|stint| Process::find(self.ledger.stints[stint].main));
                if let Some(main) = main.filter(|main| main.name().as_deref() == Some("witness")) {
                    main.signal(Signal::SIGKILL);
                }
            }
            Fault::KillMachine => seat.kill_machine(),
            Fault::KillSupervisor => supervisor.iter().for_each(|supervisor| supervisor.signal(Signal::SIGKILL)),
            Fault::Lie => {
                // None that could still be current: a word on that would be forged.
                let earlier = self.ledger.stints.iter().rev().nth(3).map(|stint| stint.term);
                let lie = lies::lie(&self.group, degree, self.stranger.end(), earlier);
                // A claim that takes effect stops the election for its lease, and leads to nothing (assumption 5).
                self.axis.disturb(now, now + nanos(Duration::from_millis(lies::LEASE_MS)));
                self.stranger.ask(Deed::Write(lie));
            }
            Fault::MoveLeader => {
                if let Some(broker) = strike.broker {
                    self.stranger.ask(Deed::MoveLeader(broker));
                }
            }
            Fault::RemakeTopic => {
                self.axis.disturb(now, now + nanos(Duration::from_secs(66)));
                self.ledger.topic_was_remade(now);
                self.stranger.ask(Deed::RemakeTopic);
            }
            Fault::Reset => {
                for broker in self.wires(strike.broker) {
                    self.cluster.wire(index, broker).reset();
                }
            }
            Fault::Resign => {
                if let Some(stint) = leader {
                    let term = self.ledger.stints[stint].term;
                    self.axis.disturb(now, now + nanos(Duration::from_millis(2 * LEASES_MS[1])));
                    self.stranger.ask(Deed::Write(lies::resign(&self.group, term)));
                }
            }
            Fault::Roll => {
                for (seat, pause) in (0..self.seats.len()).zip(0_u32..) {
                    self.after(Duration::from_millis(400) * pause, Task::Term(seat));
                }
            }
            Fault::StepClock => {
                // Days forwards and back, and now and then what is right.
                let seconds = [86_400, -86_400, 864_000, -3_600, 7, 0];
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "one of six")]
                let by = seconds[((degree * 6.0) as usize).min(5)];
                fs::write(&self.clock, format!("{by:+}")).expect("ours");
                self.axis.note("chaos", format!("the wall clock of seat {SEAT_WITH_A_CLOCK} is {by:+} s"));
            }
            Fault::FillDisk => {
                if self.broken.is_empty() {
                    let index = self.cluster.brokers().len() - 1;
                    self.cluster.brokers()[index].fill_disk();
                    self.broken.insert(index, None);
                    self.axis.disturb(now, now + nanos(lasts));
                    self.after(lasts, Task::EmptyDisk(index));
                }
            }
            Fault::StopGuard => {
                // Its supervisor makes it go on at once.
                if let Some(guard) = seat.guard() {
                    guard.signal(Signal::SIGSTOP);
                }
            }
            Fault::StopSupervisor => {
                if let Some(supervisor) = supervisor {
                    supervisor.signal(Signal::SIGSTOP);
                    self.seats[index].is_stopped = true;
                    self.after(lasts, Task::Continue(index, supervisor));
                }
            }
            Fault::Term => self.perform(Task::Term(index)),
            Fault::TermAtLead => {
                for seat in &mut self.seats {
                    seat.leads_anew();
                }
                self.term_at_lead = true;
                self.perform(Task::Term(index));
            }
        }
    }

    fn strike_broker(&mut self, strike: &Strike) {
        let index = strike.broker.unwrap_or(strike.seat % self.orders.brokers);
        // Two at a time only now and then: most of the time the cluster is to be able to go on.
        if self.broken.contains_key(&index) || (!self.broken.is_empty() && strike.degree < 0.9) {
            return;
        }
        let now = wait::now();
        let leads = self.cluster.brokers().len() == 1;
        let broker = self.cluster.broker(index);
        if !broker.lives() {
            return;
        }
        self.broken.insert(index, None);
        match strike.fault {
            Fault::FreezeBroker => {
                broker.freeze();
                self.axis.disturb(now, now + nanos(strike.lasts));
                self.after(strike.lasts, Task::Thaw(index));
            }
            Fault::KillBroker => {
                broker.end();
                // A single one takes the whole Kafka with it.
                let pause = if leads { strike.lasts / 10 } else { strike.lasts };
                self.axis.disturb(now, now + nanos(pause));
                self.after(pause, Task::BeginBroker(index));
            }
            _ => {
                broker.ask_to_shut_down();
                self.after(Duration::from_millis(100), Task::Undertake(index));
            }
        }
    }

    /// Supervisor and guard at once; whatever they leave is outside the guarantee, but for the main process.
    fn abandon_job(&mut self, index: usize) {
        let seat = &self.seats[index];
        let (Some(supervisor), Some(guard)) = (seat.supervisor(), seat.guard()) else { return };
        self.ledger.read();
        for process in [supervisor, guard] {
            process.signal(Signal::SIGSTOP);
        }
        for process in [supervisor, guard] {
            process.signal(Signal::SIGKILL);
        }
        for stint in self.ledger.open().to_vec() {
            if self.ledger.stints[stint].seat == index {
                self.ledger.stints[stint].abandoned = true;
                self.after(Duration::from_millis(1500), Task::KillAbandoned(stint));
            }
        }
    }

    fn wires(&self, broker: Option<usize>) -> Vec<usize> {
        broker.map_or_else(|| (0..self.cluster.brokers().len()).collect(), |broker| vec![broker])
    }

    fn set_weather(&self, seat: usize, broker: Option<usize>, weather: Weather) {
        for broker in self.wires(broker) {
            self.cluster.wire(seat, broker).set(weather);
        }
    }

    // ---- mending --------------------------------------------------------------------------------------------------

    fn perform(&mut self, task: Task) {
        match task {
            Task::BeginBroker(broker) => {
                self.cluster.broker(broker).launch();
                self.broken.insert(broker, Some(wait::now()));
                self.axis.note("chaos", format!("broker {broker} begins again"));
            }
            Task::Clear(seat, broker) => {
                self.set_weather(seat, broker, Weather::default());
                self.axis.note("chaos", format!("fair weather for seat {seat}, broker {broker:?}"));
            }
            Task::Continue(seat, supervisor) => {
                supervisor.signal(Signal::SIGCONT);
                self.seats[seat].is_stopped = false;
                self.axis.note("chaos", format!("{} goes on", self.seats[seat].name()));
            }
            Task::EmptyDisk(index) => {
                let broker = self.cluster.broker(index);
                broker.empty_disk();
                let lives = broker.lives();
                if !lives {
                    broker.end();
                    broker.launch();
                }
                self.broken.insert(index, Some(wait::now()));
                self.axis.note("chaos", format!("broker {index} has room again; it lived: {lives}"));
            }
            Task::EndHog(hogs) => {
                for mut hog in hogs {
                    // It may have been killed by somebody else.
                    let _ = hog.kill().and_then(|()| hog.wait());
                }
            }
            Task::KillAbandoned(stint) => {
                let left = self.ledger.processes_of(stint);
                let main = self.ledger.stints[stint].main;
                if left.iter().any(|process| process.pid == main) {
                    self.violations.push(format!("the main process {main} outlived supervisor and guard"));
                }
                left.iter().for_each(|process| process.signal(Signal::SIGKILL));
            }
            Task::Start(seat) => self.start(seat),
            Task::Strike(_) => {}
            Task::Term(index) => {
                let seat = &self.seats[index];
                if let Some(supervisor) = seat.supervisor() {
                    supervisor.signal(Signal::SIGTERM);
                    self.axis.note("chaos", format!("TERM to {}", seat.name()));
                }
            }
            Task::Thaw(broker) => {
                self.cluster.broker(broker).thaw();
                self.broken.insert(broker, Some(wait::now()));
                self.axis.note("chaos", format!("broker {broker} goes on"));
            }
            Task::Undertake(broker) => {
                if self.cluster.brokers()[broker].lives() {
                    return self.after(Duration::from_millis(100), Task::Undertake(broker));
                }
                self.axis.note("chaos", format!("broker {broker} has shut down"));
                self.cluster.broker(broker).end();
                self.after(Duration::from_secs(1), Task::BeginBroker(broker));
            }
        }
    }

    /// All that is broken is mended, at once.
    fn clear_up(&mut self) {
        self.term_at_lead = false;
        let tasks = std::mem::take(&mut self.tasks);
        self.agenda.clear();
        for (_, task) in tasks {
            self.perform(task);
        }
    }

    /// Everybody goes, and leaves nothing behind.
    fn part(&mut self) {
        self.over = true;
        self.axis.note("chaos", "TERM to all");
        for seat in &self.seats {
            seat.supervisor().iter().for_each(|supervisor| supervisor.signal(Signal::SIGTERM));
        }
        let end = wait::after(wait::PATIENCE);
        while self.seats.iter().any(|seat| seat.running.is_some()) && self.violations.is_empty() {
            while let Some(task) = self.next_due() {
                self.perform(task);
            }
            self.look();
            if wait::now() > end {
                let left: Vec<String> =
                    self.seats.iter().filter(|seat| seat.running.is_some()).map(Seat::name).collect();
                self.violations.push(format!("{left:?} do not go when told to"));
            }
        }
        self.ledger.read();
        for stint in self.ledger.open().to_vec() {
            let left = self.ledger.processes_of(stint);
            if !left.is_empty() && !self.ledger.stints[stint].abandoned {
                self.violations.push(format!("{left:?} are left when everybody has gone"));
            }
        }
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.over = true;
        self.clear_up();
        self.seats.clear();
        for stint in self.ledger.open() {
            // What a broken program left behind.
            self.ledger.processes_of(*stint).iter().for_each(|process| process.signal(Signal::SIGKILL));
        }
        for index in 0..self.cluster.brokers().len() {
            let broker = self.cluster.broker(index);
            if !broker.lives() {
                broker.end();
                broker.launch();
            }
        }
    }
}

/// How bad the weather is.
fn weather(fault: Fault, degree: f64) -> Weather {
    let both = |flow| Weather { there: flow, back: flow, refuses: false };
    match fault {
        Fault::Delay => {
            let flow = Flow::Late(Duration::from_millis(50) + Duration::from_millis(850).mul_f64(degree));
            if degree > 0.5 { Weather { back: flow, ..Weather::default() } } else { both(flow) }
        }
        Fault::Refuse => Weather { refuses: true, ..Weather::default() },
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few thousand")]
        Fault::Trickle => both(Flow::Trickle(200 + (degree * 5000.0) as u32)),
        _ => {
            let flow = if degree * 10.0 % 1.0 < 0.6 { Flow::Held } else { Flow::Lost };
            match degree {
                ..0.3 => Weather { there: flow, ..Weather::default() },
                ..0.6 => Weather { back: flow, ..Weather::default() },
                _ => both(flow),
            }
        }
    }
}
