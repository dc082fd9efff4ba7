//! The world: machines, the partition between them, what is under way, the time, and all that may go wrong.
//!
//! Whatever is not late happens before the time goes on, in any order. The time goes from one thing that is due to the
//! next; a process that is stopped, a reader that lags and an append that is delayed (each a [fault](Faults)) let it pass.

use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

use crate::candidate;
use crate::fingerprint;
use crate::flaw::{Flaw, broken};
use crate::flaws::{WorldFlaw, is_flawed};
use crate::guard::Life;
use crate::kafka::{Log, Sealed, Slot};
use crate::machine::{Deeds, Machine, Reading};
use crate::record::{Body, Offset, Record, What, Why};
use crate::setup::{Faults, NAMES, Setup, Who};
use crate::time::Time;

/// When the story begins: long after the boot.
const BEGIN: Time = Time::from_nanos(1_000_000_000_000);

/// Everything there is.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) setup: Rc<Setup>,
    pub(crate) now: Time,
    machines: Vec<Option<Rc<Known<Machine>>>>,
    log: Rc<Known<Log>>,
    flying: Vec<Flight>,
    faults: Faults,
    /// The broker that held the first log has died: a new one's beginning proves nothing.
    remade: bool,
    /// The search ends then.
    end: Time,
    /// The highest term under which a job was started.
    highest_started: Offset,
    /// How many candidates have begun.
    births: usize,
    breach: Option<Breach>,
    /// One line for each thing that happened, when somebody wants to read it.
    pub(crate) story: Option<Vec<String>>,
}

/// A part whose fingerprint is taken once.
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
    /// Whose producer hears what became of it.
    from: Option<Who>,
    record: Sealed,
    delayed: bool,
}

/// What must never happen.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Breach {
    /// A timeout stays due after it was handled.
    BusyLoop,
    /// R6: a release was handed over while the job was alive.
    ReleasedAlive,
    /// A job was started under a term that is not above all before.
    TokenFell,
    /// Two jobs are alive.
    TwoJobs,
}

/// What can happen next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// The broker's answer to the first question arrives.
    Answer(Who),
    /// A late answer arrives.
    AnswerLate(Who),
    /// An append reaches the log.
    Append(usize),
    /// A delayed append reaches the log.
    AppendLate(usize),
    /// The question of every 20 s is asked and answered; the answer is under way.
    Ask(Who),
    /// A candidate begins.
    Begin(Who),
    /// The broker answers the first question; the answer takes its time.
    Capture(Who),
    /// What a job's main process left ends.
    ChildEnds(Who),
    /// A record is deleted.
    Compact(Offset),
    /// A supervisor is sent SIGKILL.
    Crash(Who),
    /// The log's head is cut.
    Cut,
    /// An append takes its time.
    Delay(usize),
    /// A machine dies.
    Die(Who),
    /// An append reaches the log, and will again.
    Double(usize),
    /// An operator ends the election.
    End,
    /// A supervisor does what is due.
    Fire(Who),
    /// A guard does what is due, or outlives its supervisor.
    GuardActs(Who),
    /// A guard reads an order.
    GuardReads(Who),
    /// A dead guard has been waited for.
    GuardWaited(Who),
    /// A supervisor hears its guard, or its producer.
    Hear(Who),
    /// A guard is sent SIGKILL.
    KillGuard(Who),
    /// A reader takes its time.
    Lag(Who),
    /// An append is lost.
    Lose(usize),
    /// A job's main process ends.
    MainEnds(Who),
    /// A transaction's marker is appended.
    Marker,
    /// Somebody writes nonsense under the election's key.
    Nonsense,
    /// Somebody writes under another key.
    Other,
    /// A supervisor is stopped.
    Pause(Who),
    /// A guard is stopped.
    PauseGuard(Who),
    /// A reader hands over what is next.
    Read(Who),
    /// A reader that takes its time hands over what is next.
    ReadLate(Who),
    /// The broker dies, and a new one begins with an empty log.
    Remake,
    /// An operator asks the leader of this machine to resign.
    Resign(Who),
    /// A supervisor goes on.
    Resume(Who),
    /// A guard goes on.
    ResumeGuard(Who),
    /// TERM to `neli-run`.
    Stop(Who),
    /// The time goes on to what is due next.
    Tick,
}

impl World {
    /// The world as it is when the search begins.
    pub(crate) fn new(setup: &Rc<Setup>, told: bool) -> Self {
        crate::listener::begin_readings_before_end(setup.span);
        let mut world = Self {
            now: BEGIN,
            machines: vec![None; setup.candidates.len()],
            log: Known::new(Log::with_others(setup.others, BEGIN)),
            flying: Vec::new(),
            faults: Faults::none(),
            remade: false,
            end: Time::from_nanos(u64::MAX),
            highest_started: -1,
            births: 0,
            breach: None,
            story: told.then(Vec::new),
            setup: Rc::clone(setup),
        };
        (setup.before)(&mut world);
        world.say("-- from here on anything may happen --");
        world.faults = setup.faults;
        world.end = world.now + setup.limit;
        world
    }

    /// How long it is until something is due.
    pub(crate) fn idle(&self) -> Option<Duration> {
        self.next_time().map(|next| next.since(self.now))
    }

    /// Time passes, and nothing is due yet.
    pub(crate) fn wait(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    /// What goes wrong begins to go wrong again.
    pub(crate) fn renew(&mut self) {
        self.faults = self.setup.faults;
    }

    pub(crate) fn breach(&self) -> Option<Breach> {
        self.breach
    }

    /// 128 bits that tell this state from others.
    pub(crate) fn fingerprint(&self) -> u128 {
        fingerprint::of(self)
    }

    // ---- what has happened before the search ----------------------------------------------------------------------

    /// A candidate begins, and everything that is due now happens.
    pub(crate) fn begin(&mut self, who: Who) {
        self.faults.begins += 1;
        self.take(Step::Begin(who));
        self.settle();
    }

    /// Nothing goes wrong for so many milliseconds.
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

    /// Everything that is not late happens, in the order of the machines.
    pub(crate) fn settle(&mut self) {
        let mut steps = Vec::new();
        loop {
            self.enabled(&mut steps);
            let prompt = steps.iter().copied().find(|step| step.is_prompt());
            let Some(step) = prompt else { return };
            self.take(step);
        }
    }

    /// A fault, now.
    pub(crate) fn suffer(&mut self, step: Step) {
        let plenty = |count: &mut u8| *count = count.saturating_add(1);
        if let Some(count) = self.faults.of(step) {
            plenty(count);
        }
        self.take(step);
    }

    /// How often the log's head may still be cut.
    pub(crate) fn cuts_left(&self) -> u8 {
        self.faults.cuts
    }

    // ---- what can happen next -------------------------------------------------------------------------------------

    /// All that can happen next.
    pub(crate) fn enabled(&self, steps: &mut Vec<Step>) {
        steps.clear();
        self.enabled_in_flight(steps);
        for who in 0..self.machines.len() {
            match self.machine(who) {
                Some(machine) => {
                    self.enabled_at(who, machine, steps);
                    if self.setup.reborn && machine.is_gone() {
                        steps.push(Step::Begin(who));
                    }
                }
                None if self.faults.begins > 0 => steps.push(Step::Begin(who)),
                None => {}
            }
        }
        self.enabled_at_broker(steps);
        if !steps.iter().any(|step| step.is_prompt()) && self.next_time().is_some_and(|next| next <= self.end) {
            steps.push(Step::Tick);
        }
        steps.retain(|step| (self.setup.may)(self, *step));
    }

    fn enabled_in_flight(&self, steps: &mut Vec<Step>) {
        for (index, flight) in self.flying.iter().enumerate() {
            steps.push(if flight.delayed { Step::AppendLate(index) } else { Step::Append(index) });
            if !flight.delayed && self.faults.delays > 0 {
                steps.push(Step::Delay(index));
            }
            if self.faults.losses > 0 {
                steps.push(Step::Lose(index));
            }
            if self.faults.doubles > 0 {
                steps.push(Step::Double(index));
            }
        }
    }

    fn enabled_at(&self, who: Who, machine: &Machine, steps: &mut Vec<Step>) {
        let log = &self.log.part;
        let guard = &machine.guard;
        let alone_is_allowed = is_flawed(WorldFlaw::BothAsleep);
        if machine.life == Life::Awake {
            if machine.due().is_some_and(|due| due <= self.now) {
                steps.push(Step::Fire(who));
            }
            if !machine.words.is_empty() || !machine.receipts.is_empty() {
                steps.push(Step::Hear(who));
            }
            if machine.reader.asked.is_some() {
                let is_late = machine.reader.answer.is_some();
                steps.push(if is_late { Step::AnswerLate(who) } else { Step::Answer(who) });
                if !is_late && self.faults.slow_answers > 0 {
                    steps.push(Step::Capture(who));
                }
            }
            if machine.late_answer.is_some() {
                steps.push(Step::AnswerLate(who));
            }
            if machine.to_read(log).is_some() {
                steps.push(if machine.reader.lags { Step::ReadLate(who) } else { Step::Read(who) });
                if self.faults.lags > 0 && !machine.reader.lags {
                    steps.push(Step::Lag(who));
                }
            }
            if self.faults.questions > 0 && machine.late_answer.is_none() && machine.reader.next.is_some() {
                steps.push(Step::Ask(who));
            }
            if self.faults.pauses > 0 && (guard.life == Life::Awake || alone_is_allowed) {
                steps.push(Step::Pause(who));
            }
            if self.faults.stops > 0 {
                steps.push(Step::Stop(who));
            }
            if self.faults.resigns > 0 && machine.candidate.leads().is_some() {
                steps.push(Step::Resign(who));
            }
            if self.faults.crashes > 0 && guard.life == Life::Awake {
                steps.push(Step::Crash(who));
            }
            if guard.life == Life::Dying {
                steps.push(Step::GuardWaited(who));
            }
        }
        if machine.life == Life::Asleep {
            steps.push(Step::Resume(who));
        }
        self.enabled_at_guard(who, machine, steps);
        if self.faults.deaths > 0 && !machine.is_gone() {
            steps.push(Step::Die(who));
        }
    }

    fn enabled_at_guard(&self, who: Who, machine: &Machine, steps: &mut Vec<Step>) {
        let guard = &machine.guard;
        let supervisor_works = machine.life == Life::Awake || is_flawed(WorldFlaw::BothAsleep);
        match guard.life {
            Life::Asleep => steps.push(Step::ResumeGuard(who)),
            Life::Awake => {
                let due = guard.due(self.setup.guard_late).is_some_and(|due| due <= self.now);
                if due || machine.life == Life::Dead {
                    steps.push(Step::GuardActs(who));
                }
                // What the supervisor does by hand it does when it is awake.
                if !guard.orders.is_empty() && (machine.life == Life::Awake || !is_flawed(WorldFlaw::SupervisorSpawns))
                {
                    steps.push(Step::GuardReads(who));
                }
                if self.faults.guard_pauses > 0 && supervisor_works {
                    steps.push(Step::PauseGuard(who));
                }
            }
            Life::Dead | Life::Dying => {}
        }
        if matches!(guard.life, Life::Asleep | Life::Awake) && supervisor_works && self.faults.guard_deaths > 0 {
            steps.push(Step::KillGuard(who));
        }
        if let Some(job) = guard.job {
            let is_asked = job.kill_at.is_some();
            if job.main && (is_asked || self.faults.exits > 0) {
                steps.push(Step::MainEnds(who));
            }
            if !job.main && job.child && guard.life == Life::Awake {
                steps.push(Step::ChildEnds(who));
            }
        }
    }

    fn enabled_at_broker(&self, steps: &mut Vec<Step>) {
        let log = &self.log.part;
        let faults = &self.faults;
        let any_age = is_flawed(WorldFlaw::YoungRecordsDeleted);
        if faults.compactions > 0 {
            steps.extend(log.old_records(self.now, any_age).map(Step::Compact));
        }
        if faults.cuts > 0 && log.start_after_cut(self.now, self.cuts_young()) > log.start() {
            steps.push(Step::Cut);
        }
        if faults.ends > 0 {
            steps.push(Step::End);
        }
        if faults.markers > 0 {
            steps.push(Step::Marker);
        }
        if faults.nonsense > 0 {
            steps.push(Step::Nonsense);
        }
        if faults.others > 0 {
            steps.push(Step::Other);
        }
        if faults.remakes > 0 {
            steps.push(Step::Remake);
        }
    }

    /// Size retention asks for no age.
    fn cuts_young(&self) -> bool {
        self.setup.size_retention || is_flawed(WorldFlaw::YoungRecordsDeleted)
    }

    /// When something is due next.
    fn next_time(&self) -> Option<Time> {
        let at = |who| {
            let machine: &Machine = self.machine(who)?;
            let supervisor = machine.due().filter(|_| machine.life != Life::Dead);
            let guard = machine.guard.due(self.setup.guard_late);
            [supervisor, guard].into_iter().flatten().filter(|due| *due > self.now).min()
        };
        (0..self.machines.len()).filter_map(at).min()
    }

    // ---- what happens ---------------------------------------------------------------------------------------------

    /// Takes a step.
    pub(crate) fn take(&mut self, step: Step) {
        if let Some(count) = self.faults.of(step) {
            *count = count.saturating_sub(1);
        }
        if self.story.is_some() {
            self.say(&self.describe(step));
        }
        match step {
            Step::Answer(who) | Step::AnswerLate(who) => self.answer(who),
            Step::Append(flight) | Step::AppendLate(flight) => {
                let flight = self.flying.remove(flight);
                self.append(&flight);
            }
            Step::Ask(who) => {
                let (now, bounds) = (self.now, self.bounds());
                self.at(who, |machine, _, _| machine.late_answer = Some((now, bounds)));
            }
            Step::Begin(who) => {
                let mut deeds = Deeds::default();
                self.births += 1;
                let machine = Machine::begin(self.now, (who, self.births), &self.setup, &mut deeds);
                self.machines[who] = Some(Known::new(machine));
                self.done(who, deeds);
            }
            Step::Capture(who) => {
                let bounds = self.bounds();
                self.at(who, |machine, _, _| machine.reader.answer = Some(bounds));
            }
            Step::ChildEnds(who) => self.at(who, |machine, now, (setup, deeds)| {
                machine.guard.child_ends(&mut machine.words);
                machine.perform_if_awake(now, setup, deeds);
            }),
            Step::Compact(offset) => self.change_log(|log| log.delete(offset)),
            Step::Crash(who) => {
                let log = Rc::clone(&self.log);
                self.at(who, |machine, _, _| machine.crash(&log.part));
            }
            Step::Cut => {
                let start = self.log.part.start_after_cut(self.now, self.cuts_young());
                self.change_log(|log| log.cut_to(start));
            }
            Step::Delay(flight) => self.flying[flight].delayed = true,
            Step::Die(who) => self.at(who, |machine, _, _| machine.die()),
            Step::Double(flight) => self.append(&self.flying[flight].clone()),
            Step::End => self.request(What::End, None),
            Step::Fire(who) => self.at(who, |machine, now, (setup, deeds)| machine.fire(now, setup, deeds)),
            Step::GuardActs(who) => self.guard_acts(who),
            Step::GuardReads(who) => self.at(who, |machine, now, (setup, deeds)| {
                if let Some(order) = machine.guard.orders.pop_front() {
                    deeds.said.push(format!("its guard reads {order:?}"));
                    machine.guard.obey(now, order, setup.jobs_have_children, &mut machine.words);
                    machine.perform_if_awake(now, setup, deeds);
                }
            }),
            Step::GuardWaited(who) => {
                self.at(who, |machine, now, (setup, deeds)| machine.guard_died(now, setup, deeds));
            }
            Step::Hear(who) => self.at(who, |machine, now, (setup, deeds)| machine.hear(now, setup, deeds)),
            Step::KillGuard(who) => self.at(who, |machine, now, (setup, deeds)| {
                machine.kill_guard(now);
                machine.perform_if_awake(now, setup, deeds);
            }),
            Step::Lag(who) => self.at(who, |machine, _, _| machine.reader.lags = true),
            Step::Lose(flight) => {
                let flight = self.flying.remove(flight);
                self.receipt(&flight, false);
            }
            Step::MainEnds(who) => self.at(who, |machine, now, (setup, deeds)| {
                machine.guard.main_ends(&mut machine.words);
                machine.perform_if_awake(now, setup, deeds);
            }),
            Step::Marker => self.append_slot(Slot::Absent),
            Step::Nonsense => self.append_slot(Slot::Nonsense),
            Step::Other => self.append_slot(Slot::Other),
            Step::Pause(who) => self.at(who, |machine, _, _| machine.life = Life::Asleep),
            Step::PauseGuard(who) => self.at(who, |machine, _, _| machine.guard.life = Life::Asleep),
            Step::Read(who) | Step::ReadLate(who) => {
                let log = Rc::clone(&self.log);
                self.at(who, |machine, now, (setup, deeds)| machine.read(now, &log.part, setup, deeds));
            }
            Step::Remake => {
                self.remade = !is_flawed(WorldFlaw::NewLogTrusted);
                self.flying.clear();
                self.log = Known::new(Log::with_others(0, self.now));
                for who in 0..self.machines.len() {
                    self.at(who, |machine, _, _| machine.lose_broker());
                }
            }
            Step::Resign(who) => {
                let term = self.machine(who).and_then(|machine| machine.candidate.leads());
                self.request(What::Resign, term);
            }
            Step::Resume(who) => self.at(who, |machine, _, _| machine.life = Life::Awake),
            Step::ResumeGuard(who) => self.at(who, |machine, _, _| machine.guard.life = Life::Awake),
            Step::Stop(who) => self.at(who, |machine, now, (setup, deeds)| machine.stop(now, setup, deeds)),
            Step::Tick => {
                if let Some(next) = self.next_time() {
                    self.now = next;
                }
            }
        }
    }

    fn answer(&mut self, who: Who) {
        let (now_bounds, trusted) = (self.bounds(), !self.remade);
        self.at(who, |machine, now, (setup, deeds)| {
            let (asked, (start, end)) = match machine.reader.asked.take() {
                Some(asked) => (asked, machine.reader.answer.take().unwrap_or(now_bounds)),
                None => match machine.late_answer.take() {
                    Some(answer) => answer,
                    None => return,
                },
            };
            machine.tell(now, candidate::Event::Answered { asked, start, end, trusted }, setup, deeds);
        });
    }

    fn guard_acts(&mut self, who: Who) {
        let mut release = None;
        self.at(who, |machine, now, (setup, deeds)| {
            if machine.life == Life::Dead {
                release = machine.guard.outlive_supervisor();
            } else {
                machine.guard.handle_timeout(now, &mut machine.words);
                machine.perform_if_awake(now, setup, deeds);
            }
        });
        if let Some(right) = release {
            let body = Body::Release {
                term: right.term,
                seen: right.seen,
                why: Some(Why::SupervisorDied.as_str().into()),
                exit: None,
            };
            let member = self.machine(who).map(|machine| machine.member.clone());
            let record = Record { member, name: Some(NAMES[who].into()), seq: Some(right.next_seq), body };
            self.say(&format!("           {}'s guard sends {}", NAMES[who], Sealed::new(record.clone())));
            self.flying.push(Flight { from: None, record: Sealed::new(record), delayed: false });
        }
    }

    fn request(&mut self, what: What, term: Option<Offset>) {
        let body = Body::Request { what, term, by: None, reason: None };
        self.append_slot(Slot::Record(Sealed::new(Record { member: None, name: None, seq: None, body })));
    }

    fn append(&mut self, flight: &Flight) {
        self.append_slot(Slot::Record(flight.record.clone()));
        self.receipt(flight, true);
    }

    fn append_slot(&mut self, slot: Slot) {
        let now = self.now;
        self.change_log(|log| {
            log.append(now, slot);
        });
    }

    /// Only a release waits for what became of it.
    fn receipt(&mut self, flight: &Flight, delivered: bool) {
        let record = flight.record.record();
        let (Some(who), Some(seq)) = (flight.from, record.seq) else { return };
        if !matches!(record.body, Body::Release { .. }) && !broken(Flaw::AcknowledgedClaimTaken) {
            return;
        }
        let event = if delivered { candidate::Event::Delivered { seq } } else { candidate::Event::Undelivered { seq } };
        if self.machine(who).is_some_and(|machine| machine.life != Life::Dead) {
            self.at(who, |machine, _, _| machine.receipts.push_back(event));
        }
    }

    // ---- small things ---------------------------------------------------------------------------------------------

    fn machine(&self, who: Who) -> Option<&Machine> {
        self.machines[who].as_ref().map(|known| &known.part)
    }

    fn bounds(&self) -> (Offset, Offset) {
        (self.log.part.start(), self.log.part.end())
    }

    fn change_log(&mut self, change: impl FnOnce(&mut Log)) {
        let log = Rc::make_mut(&mut self.log);
        change(&mut log.part);
        log.print = fingerprint::of(&log.part);
    }

    /// Something happens at a machine, and has its consequences.
    fn at(&mut self, who: Who, act: impl FnOnce(&mut Machine, Time, (&Setup, &mut Deeds))) {
        let Some(known) = &mut self.machines[who] else { return };
        let known = Rc::make_mut(known);
        let mut deeds = Deeds::default();
        act(&mut known.part, self.now, (&self.setup, &mut deeds));
        known.print = fingerprint::of(&known.part);
        self.done(who, deeds);
    }

    fn done(&mut self, who: Who, deeds: Deeds) {
        if self.story.is_some() {
            for line in &deeds.said {
                self.say(&format!("           {}: {line}", NAMES[who]));
            }
        }
        let reaches_broker = self.machine(who).is_some_and(|machine| !machine.cut_off);
        for record in deeds.sent.into_iter().filter(|_| reaches_broker) {
            let record = Sealed::new(record);
            if self.story.is_some() {
                self.say(&format!("           {}: sends {record}", NAMES[who]));
            }
            self.flying.push(Flight { from: Some(who), record, delayed: false });
        }
        self.judge(who, deeds.breach);
    }

    /// What must never happen; the worst of it counts.
    fn judge(&mut self, who: Who, mut breach: Option<Breach>) {
        let alive = self.machines.iter().flatten().filter(|known| known.part.job_is_alive()).count();
        if let Some(job) = self.machine(who).and_then(|machine| machine.guard.job) {
            if job.term < self.highest_started && !self.remade {
                breach = Some(Breach::TokenFell);
            }
            self.highest_started = self.highest_started.max(job.term);
        }
        if alive > 1 {
            breach = Some(Breach::TwoJobs);
        }
        if self.breach != Some(Breach::TwoJobs) {
            self.breach = breach.or(self.breach);
        }
    }

    fn say(&mut self, line: &str) {
        let now = self.now;
        if let Some(story) = &mut self.story {
            story.push(format!("{:>9.3} s  {line}", now.since(BEGIN).as_secs_f64()));
        }
    }

    fn describe(&self, step: Step) -> String {
        let flight = |index: usize| self.flying[index].record.to_string();
        let end = self.log.part.end();
        match step {
            Step::Answer(who) => format!("{} is told that the log holds {:?}", NAMES[who], self.bounds()),
            Step::AnswerLate(who) => {
                let machine = self.machine(who);
                let first = machine.and_then(|machine| machine.reader.answer);
                let later = machine.and_then(|machine| machine.late_answer).map(|(_, bounds)| bounds);
                format!("{} is told late that the log held {:?}", NAMES[who], first.or(later))
            }
            Step::Append(index) => format!("[{end}] {}", flight(index)),
            Step::AppendLate(index) => format!("[{end}] late: {}", flight(index)),
            Step::Ask(who) => {
                format!("{} asks where the log ends; the answer {:?} is under way", NAMES[who], self.bounds())
            }
            Step::Begin(who) => format!("{} begins", NAMES[who]),
            Step::Capture(who) => format!("the answer {:?} to {} is under way", self.bounds(), NAMES[who]),
            Step::ChildEnds(who) => format!("what {}'s job left ends", NAMES[who]),
            Step::Compact(offset) => format!("[{offset}] is deleted"),
            Step::Crash(who) => format!("{}'s supervisor is SIGKILLed", NAMES[who]),
            Step::Cut => {
                format!("the log's head is cut: {:?}", self.log.part.start_after_cut(self.now, self.cuts_young()))
            }
            Step::Delay(index) => format!("delayed: {}", flight(index)),
            Step::Die(who) => format!("{}'s machine dies", NAMES[who]),
            Step::Double(index) => format!("[{end}] and not for the last time: {}", flight(index)),
            Step::End => format!("[{end}] the election is ended"),
            Step::Fire(who) => format!("{} does what is due", NAMES[who]),
            Step::GuardActs(who) => format!("{}'s guard does what is due", NAMES[who]),
            Step::GuardReads(who) => format!("{}'s guard reads an order", NAMES[who]),
            Step::GuardWaited(who) => format!("{} has waited for its dead guard", NAMES[who]),
            Step::Hear(who) => format!("{} hears of its guard or its producer", NAMES[who]),
            Step::KillGuard(who) => format!("{}'s guard is SIGKILLed", NAMES[who]),
            Step::Lag(who) => format!("{}'s reader lags from now on", NAMES[who]),
            Step::Lose(index) => format!("lost: {}", flight(index)),
            Step::MainEnds(who) => format!("{}'s job ends", NAMES[who]),
            Step::Marker => format!("[{end}] a transaction's marker"),
            Step::Nonsense => format!("[{end}] nonsense under the election's key"),
            Step::Other => format!("[{end}] a record of another key"),
            Step::Pause(who) => format!("{}'s supervisor is stopped", NAMES[who]),
            Step::PauseGuard(who) => format!("{}'s guard is stopped", NAMES[who]),
            Step::Read(who) | Step::ReadLate(who) => {
                let reading = self.machine(who).and_then(|machine| machine.to_read(&self.log.part));
                match reading {
                    Some(Reading::Record(offset, Slot::Record(record))) => {
                        format!("{} reads [{offset}] {record}", NAMES[who])
                    }
                    Some(Reading::Record(offset, _)) => format!("{} reads [{offset}]", NAMES[who]),
                    Some(Reading::End(next)) => format!("{} reads to the end, {next}", NAMES[who]),
                    Some(Reading::OutOfRange) => format!("{} finds its place cut away", NAMES[who]),
                    None => format!("{} reads nothing", NAMES[who]),
                }
            }
            Step::Remake => "the broker dies, and a new one begins with an empty log".to_owned(),
            Step::Resign(who) => format!("[{end}] {} is asked to resign", NAMES[who]),
            Step::Resume(who) => format!("{}'s supervisor goes on", NAMES[who]),
            Step::ResumeGuard(who) => format!("{}'s guard goes on", NAMES[who]),
            Step::Stop(who) => format!("TERM to {}", NAMES[who]),
            Step::Tick => "time passes".to_owned(),
        }
    }
}

impl Step {
    /// Whether it comes before the time goes on.
    pub(crate) fn is_prompt(self) -> bool {
        match self {
            Self::Answer(_)
            | Self::Append(_)
            | Self::Fire(_)
            | Self::GuardActs(_)
            | Self::GuardReads(_)
            | Self::GuardWaited(_)
            | Self::Hear(_)
            | Self::Read(_) => true,
            Self::AnswerLate(_)
            | Self::AppendLate(_)
            | Self::Ask(_)
            | Self::Begin(_)
            | Self::Capture(_)
            | Self::ChildEnds(_)
            | Self::Compact(_)
            | Self::Crash(_)
            | Self::Cut
            | Self::Delay(_)
            | Self::Die(_)
            | Self::Double(_)
            | Self::End
            | Self::KillGuard(_)
            | Self::Lag(_)
            | Self::Lose(_)
            | Self::MainEnds(_)
            | Self::Marker
            | Self::Nonsense
            | Self::Other
            | Self::Pause(_)
            | Self::PauseGuard(_)
            | Self::ReadLate(_)
            | Self::Remake
            | Self::Resign(_)
            | Self::Resume(_)
            | Self::ResumeGuard(_)
            | Self::Stop(_)
            | Self::Tick => false,
        }
    }
}

impl Faults {
    /// Which of them this step is; none that is none.
    fn of(&mut self, step: Step) -> Option<&mut u8> {
        Some(match step {
            Step::Ask(_) => &mut self.questions,
            Step::Begin(_) => &mut self.begins,
            Step::Capture(_) => &mut self.slow_answers,
            Step::Compact(_) => &mut self.compactions,
            Step::Crash(_) => &mut self.crashes,
            Step::Cut => &mut self.cuts,
            Step::Delay(_) => &mut self.delays,
            Step::Die(_) => &mut self.deaths,
            Step::Double(_) => &mut self.doubles,
            Step::End => &mut self.ends,
            Step::KillGuard(_) => &mut self.guard_deaths,
            Step::Lag(_) => &mut self.lags,
            Step::Lose(_) => &mut self.losses,
            Step::MainEnds(_) => &mut self.exits,
            Step::Marker => &mut self.markers,
            Step::Nonsense => &mut self.nonsense,
            Step::Other => &mut self.others,
            Step::Pause(_) => &mut self.pauses,
            Step::PauseGuard(_) => &mut self.guard_pauses,
            Step::Remake => &mut self.remakes,
            Step::Resign(_) => &mut self.resigns,
            Step::Stop(_) => &mut self.stops,
            Step::Answer(_)
            | Step::AnswerLate(_)
            | Step::Append(_)
            | Step::AppendLate(_)
            | Step::ChildEnds(_)
            | Step::Fire(_)
            | Step::GuardActs(_)
            | Step::GuardReads(_)
            | Step::GuardWaited(_)
            | Step::Hear(_)
            | Step::Read(_)
            | Step::ReadLate(_)
            | Step::Resume(_)
            | Step::ResumeGuard(_)
            | Step::Tick => return None,
        })
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
        self.faults.hash(state);
        self.remade.hash(state);
        self.highest_started.hash(state);
    }
}
