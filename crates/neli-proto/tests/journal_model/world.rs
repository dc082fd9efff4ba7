//! The world: machines, the partition between them, records under way, the time, and the faults.
//!
//! All events that are not delayed happen before the time advances, in any order. The time advances to the next due event. Only stopped
//! processes, lagging readers and delayed appends (each a [fault](Faults)) let it pass without acting.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

use neli_proto::job::CommandEnd;
use neli_proto::record::{Offset, What};
use neli_proto::time::Time;

use crate::fingerprint;
use crate::kafka::{Log, Sealed, Slot};
use crate::machine::{Actions, Input, Machine};
use crate::setup::{Faults, NAMES, Setup, Who};
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

/// One in this many uses of a known transition computes it again, and the result must be the same.
const CHECKED_ONE_IN: u128 = 256;

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
    /// Shared by all worlds of a search; a walk has none, since it seldom comes to the same state again.
    transitions: Option<Rc<RefCell<Transitions>>>,
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
pub(crate) struct Known<T> {
    pub(crate) part: T,
    print: u128,
}

/// What a machine does with an input.
struct Transition {
    machine: Rc<Known<Machine>>,
    actions: Actions,
}

/// What the machines of all worlds of a search did, by fingerprints. Most steps of a search are steps of another world too.
#[derive(Default)]
struct Transitions {
    /// By the fingerprint of the machine, the time and the input.
    known: HashMap<u128, Rc<Transition>, fingerprint::ItsOwnHash>,
    /// One of each, since many transitions end in the same machine.
    machines: HashMap<u128, Rc<Known<Machine>>, fingerprint::ItsOwnHash>,
}

impl Transitions {
    fn keep(&mut self, key: u128, machine: Machine, actions: Actions) -> Rc<Transition> {
        let machine = Known::new(machine);
        let machine = Rc::clone(self.machines.entry(machine.print).or_insert(machine));
        let transition = Rc::new(Transition { machine, actions });
        self.known.insert(key, Rc::clone(&transition));
        transition
    }
}

impl<T> Hash for Known<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(self.print);
    }
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
            transitions: None,
            trace: with_trace.then(Vec::new),
            setup: Rc::clone(setup),
        };
        (setup.before)(&mut world);
        world.say("-- from here on anything may happen --");
        world.faults = setup.faults;
        world.end = world.now + setup.limit;
        world
    }

    /// From now on this world and its clones share what their machines do.
    pub(crate) fn remembering_transitions(self) -> Self {
        Self { transitions: Some(Rc::default()), ..self }
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

    /// A hash of 128 bits that identifies this state. A world without transitions does not keep its machines' fingerprints.
    pub(crate) fn fingerprint(&self) -> u128 {
        assert!(self.transitions.is_some(), "the fingerprints of the machines are not known");
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
            Step::Answer(who) | Step::AnswerLate(who) => self.tell(who, Input::Answer(self.bounds())),
            Step::Append(flight) | Step::AppendLate(flight) => self.arrive(flight),
            Step::AppendFact(flight) | Step::AppendFactLate(flight) => self.append_fact(flight),
            Step::Ask(who) => self.tell(who, Input::Ask(self.bounds())),
            Step::Begin(who) => self.begin_machine(who),
            Step::BrokerBegins => self.broker = Broker::Second,
            Step::BrokerEnds => self.end_broker(),
            Step::Capture(who) => self.tell(who, Input::Capture(self.bounds())),
            Step::ChildEnds(who) => self.tell(who, Input::ChildEnds),
            Step::Compact(offset) => self.change_log(|log| log.delete(offset)),
            Step::Crash(who) => self.tell(who, Input::Crash(Rc::clone(&self.log))),
            Step::Cut => self.cut(),
            Step::DelayFact(flight) => self.facts.flying[flight].delayed = true,
            Step::Delay(flight) => self.flying[flight].delayed = true,
            Step::Die(who) => self.tell(who, Input::Die),
            Step::Double(flight) => self.append(&self.flying[flight].clone()),
            Step::End => self.request(What::End, None),
            Step::Fire(who) => self.tell(who, Input::Fire),
            Step::GuardActs(who) => self.tell(who, Input::GuardActs),
            Step::GuardReads(who) => self.tell(who, Input::GuardReads),
            Step::GuardWaited(who) => self.tell(who, Input::GuardWaited),
            Step::Forget => self.forget(),
            Step::HealthEnds(who) => self.tell(who, Input::HealthEnds(CommandEnd::Exited(0))),
            Step::HealthFails(who) => self.tell(who, Input::HealthEnds(CommandEnd::Exited(1))),
            Step::HookEnds(who) => self.tell(who, Input::HookEnds),
            Step::Receive(who) => self.tell(who, Input::Receive),
            Step::Identify(who) => self.identify(who),
            Step::Judge(who) => self.tell(who, Input::Judge),
            Step::KillGuard(who) => self.tell(who, Input::KillGuard),
            Step::Lag(who) => self.tell(who, Input::Lag),
            Step::Lose(flight) => self.lose(flight),
            Step::MainEnds(who) => self.tell(who, Input::MainEnds),
            Step::Marker => self.append_slot(Slot::Absent),
            Step::Mute(who) => self.tell(who, Input::Mute),
            Step::Nonsense => self.append_slot(Slot::Nonsense),
            Step::Other => self.append_slot(Slot::Other),
            Step::Pause(who) => self.tell(who, Input::Pause),
            Step::PauseGuard(who) => self.tell(who, Input::PauseGuard),
            Step::Read(who) | Step::ReadLate(who) => self.tell(who, Input::Read(Rc::clone(&self.log))),
            Step::ReadFacts(who) => self.hand_facts(who, 0),
            Step::ReadOldFacts(who) => self.hand_facts(who, 1),
            Step::RemakeUnnoticed => self.remake_unnoticed(),
            Step::Resign(who) => self.ask_to_resign(who),
            Step::Resume(who) => self.tell(who, Input::Resume),
            Step::ResumeGuard(who) => self.tell(who, Input::ResumeGuard),
            Step::StartGuard(who) => self.tell(who, Input::StartGuard),
            Step::Stop(who) => self.tell(who, Input::Stop),
            Step::Suspend(who) => self.tell(who, Input::Suspend),
            Step::Tick => self.now = self.next_time().unwrap_or(self.now),
        }
    }

    fn begin_machine(&mut self, who: Who) {
        let mut actions = Actions::default();
        self.births += 1;
        let mut machine = Machine::begin(self.now, (who, self.births), &self.setup, &mut actions);
        machine.forgets_at_begin = self.facts.forgets();
        self.machines[who] = Some(Known::new(machine));
        self.done(who, &actions);
    }

    // ---- helpers ----------------------------------------------------------------------------------------------------

    fn machine(&self, who: Who) -> Option<&Machine> {
        self.machines[who].as_ref().map(|known| &known.part)
    }

    /// Passes an input to a machine, and performs the effects on the world.
    fn tell(&mut self, who: Who, input: Input) {
        let Some(mut machine) = self.machines[who].take() else { return };
        let Some(transitions) = &self.transitions else {
            let actions = self.handle(&mut Rc::make_mut(&mut machine).part, input);
            self.machines[who] = Some(machine);
            return self.done(who, &actions);
        };
        let key = fingerprint::of(&(machine.print, self.now, self.remakes, &input));
        let act = |input| {
            let mut machine = machine.part.clone();
            let actions = self.handle(&mut machine, input);
            (machine, actions)
        };
        let known = transitions.borrow().known.get(&key).cloned();
        let transition = if let Some(transition) = known {
            if key.is_multiple_of(CHECKED_ONE_IN) {
                let (machine, actions) = act(input);
                let is_same = fingerprint::of(&machine) == transition.machine.print && actions == transition.actions;
                assert!(is_same, "what a machine does depends on more than the key of a transition");
            }
            transition
        } else {
            let (machine, actions) = act(input);
            transitions.borrow_mut().keep(key, machine, actions)
        };
        self.machines[who] = Some(Rc::clone(&transition.machine));
        self.done(who, &transition.actions);
    }

    fn handle(&self, machine: &mut Machine, input: Input) -> Actions {
        let mut actions = Actions::default();
        machine.handle(self.now, input, &self.setup, &mut actions);
        machine.note_topic(self.remakes);
        actions
    }

    fn done(&mut self, who: Who, actions: &Actions) {
        if self.trace.is_some() {
            for line in &actions.logged {
                self.say(&format!("           {}: {line}", NAMES[who]));
            }
        }
        let reaches_broker = self.machine(who).is_some_and(|machine| !machine.cut_off);
        self.send_facts(who, &actions.facts);
        for record in actions.sent.iter().filter(|_| reaches_broker) {
            if let Some(sent) = record.record() {
                self.excuse_the_fenced(who, sent);
            }
            if self.trace.is_some() {
                self.say(&format!("           {}: sends {record}", NAMES[who]));
            }
            self.flying.push(Flight { from: Some(who), record: record.clone(), delayed: false });
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
