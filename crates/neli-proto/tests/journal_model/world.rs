//! The world: machines, the partition between them, records under way, the time, and the faults.
//!
//! All events that are not delayed happen before the time advances, in any order. The time advances to the next due event. Only stopped
//! processes, lagging readers and delayed appends (each a [fault](Faults)) let it pass without acting.

use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

use neli_proto::job::CommandEnd;
use neli_proto::record::{Offset, What};
use neli_proto::time::Time;

use crate::fingerprint;
use crate::guard::Life;
use crate::kafka::{Log, Sealed, Slot};
use crate::machine::{Actions, Machine};
use crate::setup::{Faults, NAMES, Occasion, Setup, Who};
use crate::step::Step;
pub(crate) use breach::Breach;
use facts::FactsTopic;

mod appends;
mod breach;
mod facts;
mod kafka;
mod overlaps;
mod possible;
mod trace;

/// The time at which each world begins, long after the boot.
const BEGIN: Time = Time::from_nanos(1_000_000_000_000);

/// The whole state.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) setup: Rc<Setup>,
    pub(crate) now: Time,
    machines: Vec<Option<Rc<Known<Machine>>>>,
    log: Rc<Known<Log>>,
    flying: Vec<Flight>,
    facts: FactsTopic,
    faults: Faults,
    broker: Broker,
    /// The number of times that the topic was created again without immediate notice, and the time of the last one.
    remakes: u8,
    remade_at: Time,
    /// The time at which the search ends.
    end: Time,
    /// The highest term in which a job was started.
    highest_started: Offset,
    /// How many candidates have begun.
    births: usize,
    breach: Option<Breach>,
    /// One line per step, if a trace is wanted.
    pub(crate) trace: Option<Vec<String>>,
}

/// The broker of all machines. Only an embedded one ends in a world; its successor's terms begin again.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Broker {
    First,
    Dead,
    Second,
}

/// A part of the state whose fingerprint is cached.
#[derive(Clone)]
struct Known<T> {
    part: T,
    print: u128,
}

impl<T: Hash> Known<T> {
    fn new(part: T) -> Rc<Self> {
        let print = fingerprint::of(&part);
        Rc::new(Self { part, print })
    }
}

/// An append under way.
#[derive(Clone, Hash)]
struct Flight {
    /// The machine whose producer gets the delivery report.
    from: Option<Who>,
    record: Sealed,
    delayed: bool,
}

impl World {
    /// The world at the beginning of the search.
    pub(crate) fn new(setup: &Rc<Setup>, with_trace: bool) -> Self {
        let mut world = Self {
            now: BEGIN,
            machines: vec![None; setup.candidates.len()],
            log: Known::new(Log::with_others(setup.others, BEGIN)),
            flying: Vec::new(),
            facts: FactsTopic::default(),
            faults: Faults::none(),
            broker: Broker::First,
            remakes: 0,
            remade_at: BEGIN,
            end: Time::from_nanos(u64::MAX),
            highest_started: -1,
            births: 0,
            breach: None,
            trace: with_trace.then(Vec::new),
            setup: Rc::clone(setup),
        };
        (setup.before)(&mut world);
        world.say("-- from here on anything may happen --");
        world.faults = setup.faults;
        world.end = world.now + setup.limit;
        world
    }

    /// The time until something is due.
    pub(crate) fn idle(&self) -> Option<Duration> {
        self.next_time().map(|next| next.since(self.now))
    }

    /// Advances the time; nothing may be due in between.
    pub(crate) fn wait(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    /// Resets the limits of the faults.
    pub(crate) fn renew(&mut self) {
        self.faults = self.setup.faults;
    }

    pub(crate) fn breach(&self) -> Option<Breach> {
        self.breach
    }

    /// A hash of 128 bits that identifies this state.
    pub(crate) fn fingerprint(&self) -> u128 {
        fingerprint::of(self)
    }

    // ---- before the search ------------------------------------------------------------------------------------------

    /// Begins a candidate, and lets all events happen that are due now.
    pub(crate) fn begin(&mut self, who: Who) {
        self.faults.begins += 1;
        self.take(Step::Begin(who));
        self.settle();
    }

    /// Lets this many milliseconds pass without faults.
    pub(crate) fn pass(&mut self, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        loop {
            self.settle();
            if self.next_time().is_none_or(|next| next > until) {
                self.now = until;
                return;
            }
            self.take(Step::Tick);
        }
    }

    /// Lets all events happen that are not delayed, in the order of the machines.
    pub(crate) fn settle(&mut self) {
        let mut steps = Vec::new();
        loop {
            self.enabled(&mut steps);
            let prompt = steps.iter().copied().find(|step| step.is_prompt());
            let Some(step) = prompt else { return };
            self.take(step);
        }
    }

    /// Injects a fault now.
    pub(crate) fn suffer(&mut self, step: Step) {
        let plenty = |count: &mut u8| *count = count.saturating_add(1);
        if let Some(count) = self.faults.of(step) {
            plenty(count);
        }
        self.take(step);
    }

    /// How many times the beginning of the log may still be deleted.
    pub(crate) fn cuts_left(&self) -> u8 {
        self.faults.cuts
    }

    // ---- steps ------------------------------------------------------------------------------------------------------

    /// Takes a step.
    pub(crate) fn take(&mut self, step: Step) {
        if let Some(count) = self.faults.of(step) {
            *count = count.saturating_sub(1);
        }
        if self.trace.is_some() {
            self.say(&self.describe(step));
        }
        self.look_after_success(step);
        match step {
            Step::Answer(who) | Step::AnswerLate(who) => self.answer(who),
            Step::Append(flight) | Step::AppendLate(flight) => self.arrive(flight),
            Step::AppendFact(flight) | Step::AppendFactLate(flight) => self.append_fact(flight),
            Step::Ask(who) => self.ask_late(who),
            Step::Begin(who) => self.begin_machine(who),
            Step::BrokerBegins => self.broker = Broker::Second,
            Step::BrokerEnds => self.end_broker(),
            Step::Capture(who) => self.capture(who),
            Step::ChildEnds(who) => self.at(who, |machine, now, (setup, actions)| {
                machine.guard.child_ends();
                machine.job_changed(now, (setup, actions));
            }),
            Step::Compact(offset) => self.change_log(|log| log.delete(offset)),
            Step::Crash(who) => self.crash(who),
            Step::Cut => self.cut(),
            Step::DelayFact(flight) => self.facts.flying[flight].delayed = true,
            Step::Delay(flight) => self.flying[flight].delayed = true,
            Step::Die(who) => self.at(who, |machine, _, _| machine.die()),
            Step::Double(flight) => self.append(&self.flying[flight].clone()),
            Step::End => self.request(What::End, None),
            Step::Fire(who) => self.at(who, |machine, now, (setup, actions)| machine.fire(now, setup, actions)),
            Step::GuardActs(who) => self.at(who, Machine::guard_acts),
            Step::GuardReads(who) => self.at(who, Machine::guard_reads),
            Step::GuardWaited(who) => {
                self.at(who, |machine, now, (setup, actions)| machine.guard_died(now, setup, actions));
            }
            Step::Forget => self.forget(),
            Step::HealthEnds(who) => self.health_ends(who, 0),
            Step::HealthFails(who) => self.health_ends(who, 1),
            Step::HookEnds(who) => self.at(who, Machine::hook_ends),
            Step::Receive(who) => self.at(who, |machine, now, (setup, actions)| machine.receive(now, setup, actions)),
            Step::Identify(who) => self.identify(who),
            Step::Judge(who) => self.at(who, Machine::learn_judgement),
            Step::KillGuard(who) => self.at(who, |machine, now, (setup, actions)| {
                machine.kill_guard(now);
                machine.perform_if_awake(now, setup, actions);
            }),
            Step::Lag(who) => self.at(who, |machine, _, _| machine.reader.lags = true),
            Step::Lose(flight) => self.lose(flight),
            Step::MainEnds(who) => self.at(who, |machine, now, (setup, actions)| {
                machine.guard.main_ends(setup.once.map_or(0, Occasion::status));
                machine.job_changed(now, (setup, actions));
            }),
            Step::Marker => self.append_slot(Slot::Absent),
            Step::Mute(who) => self.at(who, |machine, _, _| machine.is_muted = true),
            Step::Nonsense => self.append_slot(Slot::Nonsense),
            Step::Other => self.append_slot(Slot::Other),
            Step::Pause(who) => self.at(who, |machine, _, _| machine.pause()),
            Step::PauseGuard(who) => self.at(who, |machine, _, _| machine.pause_guard()),
            Step::Read(who) | Step::ReadLate(who) => self.read(who),
            Step::ReadFacts(who) => self.read_facts(who),
            Step::RemakeUnnoticed => self.remake_unnoticed(),
            Step::Resign(who) => self.ask_to_resign(who),
            Step::Resume(who) => self.at(who, |machine, now, (setup, actions)| machine.resume(now, setup, actions)),
            Step::ResumeGuard(who) => self.at(who, |machine, _, _| machine.guard.life = Life::Awake),
            Step::StartGuard(who) => self.at(who, Machine::start_guard),
            Step::Stop(who) => self.at(who, |machine, now, (setup, actions)| machine.stop(now, setup, actions)),
            Step::Suspend(who) => self.at(who, |machine, now, (setup, actions)| machine.suspend(now, setup, actions)),
            Step::Tick => self.now = self.next_time().unwrap_or(self.now),
        }
    }

    fn begin_machine(&mut self, who: Who) {
        let mut actions = Actions::default();
        self.births += 1;
        let mut machine = Machine::begin(self.now, (who, self.births), &self.setup, &mut actions);
        machine.forgets_at_begin = self.facts.forgets();
        self.machines[who] = Some(Known::new(machine));
        self.done(who, actions);
    }

    fn health_ends(&mut self, who: Who, status: u8) {
        self.at(who, |machine, now, parts| machine.health_ends(now, CommandEnd::Exited(status), parts));
    }

    // ---- helpers ----------------------------------------------------------------------------------------------------

    fn machine(&self, who: Who) -> Option<&Machine> {
        self.machines[who].as_ref().map(|known| &known.part)
    }

    /// Performs an action on a machine, and its effects on the world.
    fn at(&mut self, who: Who, act: impl FnOnce(&mut Machine, Time, (&Setup, &mut Actions))) {
        let Some(known) = &mut self.machines[who] else { return };
        let known = Rc::make_mut(known);
        let mut actions = Actions::default();
        act(&mut known.part, self.now, (&self.setup, &mut actions));
        known.part.note_topic(self.remakes);
        known.print = fingerprint::of(&known.part);
        self.done(who, actions);
    }

    fn done(&mut self, who: Who, actions: Actions) {
        if self.trace.is_some() {
            for line in &actions.logged {
                self.say(&format!("           {}: {line}", NAMES[who]));
            }
        }
        let reaches_broker = self.machine(who).is_some_and(|machine| !machine.cut_off);
        self.send_facts(who, actions.facts);
        for record in actions.sent.into_iter().filter(|_| reaches_broker) {
            let record = Sealed::new(record);
            if let Some(record) = record.record() {
                self.excuse_the_fenced(who, record);
            }
            if self.trace.is_some() {
                self.say(&format!("           {}: sends {record}", NAMES[who]));
            }
            self.flying.push(Flight { from: Some(who), record, delayed: false });
        }
        if let Some((grant, late)) = actions.released.filter(|_| reaches_broker) {
            self.release_for_the_dead(who, grant, late);
        }
        let skip = self.skips_wrongly(who, actions.skipped);
        self.judge(who, actions.breach.or(skip));
    }

    /// Checks for breaches; the most severe one counts.
    fn judge(&mut self, who: Who, mut breach: Option<Breach>) {
        let alive: Vec<_> = self.machines.iter().flatten().filter(|known| known.part.job_is_alive()).collect();
        // While a remake is unnoticed, each generation of the topic may have a job.
        let is_excused = self.remakes > 0 && self.now <= self.remade_at + self.setup.remade_for;
        let of_one_topic = |one: usize, other: usize| alive[one].part.leads_in == alive[other].part.leads_in;
        let is_overlap = matches!(&alive[..], [one, other] if self.may_overlap(&one.part, &other.part));
        let two_jobs =
            !is_overlap && (0..alive.len()).any(|one| (0..one).any(|other| !is_excused || of_one_topic(one, other)));
        if let Some((term, released)) = self.machine(who).and_then(|it| Some((it.guard.living_term()?, it.released))) {
            if term <= released {
                breach = breach.or(Some(Breach::RunAfterRelease));
            }
            let is_overlapped = self.is_overlapped(term, self.highest_started);
            if term < self.highest_started && !is_overlapped && self.broker == Broker::First && self.remakes == 0 {
                breach = Some(Breach::TokenFell);
            }
            self.highest_started = self.highest_started.max(term);
        }
        breach = breach.or_else(|| self.runs_again(who));
        if two_jobs {
            breach = Some(Breach::TwoJobs);
        }
        if self.breach != Some(Breach::TwoJobs) {
            self.breach = breach.or(self.breach);
        }
    }

    fn say(&mut self, line: &str) {
        let now = self.now;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>9.3} s  {}", now.since(BEGIN).as_secs_f64(), trace::with_times_since(BEGIN, line)));
        }
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.now.hash(state);
        for machine in &self.machines {
            state.write_u128(machine.as_ref().map_or(0, |known| known.print));
        }
        state.write_u128(self.log.print);
        self.flying.hash(state);
        self.facts.hash(state);
        self.faults.hash(state);
        self.broker.hash(state);
        self.remakes.hash(state);
        if self.remakes > 0 {
            self.remade_at.hash(state);
        }
        self.highest_started.hash(state);
    }
}
