//! A world in counted time: the roles' journals, the processes that read them with delays of their own, and what happens to them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use neli_proto::random::Random;
use neli_proto::record::MemberId;
use neli_proto::spread::Action;
use neli_proto::time::Time;

use super::process::{Own, Process};

const LEASE: Duration = Duration::from_secs(20);
const HELLO_INTERVAL: Duration = Duration::from_secs(30);

/// How the world treats its processes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// A record is read so long after it was appended, at most.
    pub(crate) latency: Duration,
    /// A job takes so long to stop, at most.
    pub(crate) stop: Duration,
    /// So many of a hundred hellos are lost, but never two of a process in a row.
    pub(crate) hellos_lost: u32,
    /// A hello is read so late, at most.
    pub(crate) hello_latency: Duration,
}

/// Quick and without loss.
pub(crate) const FAIR_WEATHER: Weather = Weather {
    latency: Duration::from_millis(3),
    stop: Duration::from_millis(20),
    hellos_lost: 0,
    hello_latency: Duration::from_millis(3),
};

/// An entry of a role's journal, with the law's verdict.
#[derive(Clone, Debug)]
enum Entry {
    Claim { by: MemberId, is_effective: bool },
    Release { by: MemberId, why: &'static str, successor: Option<MemberId> },
}

#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Event {
    ClaimDue { process: usize, role: usize },
    CoolOffOver { process: usize, role: usize },
    GuardReleases { member: MemberId, role: usize },
    HelloArrives { from: MemberId, max_roles: Option<u32>, to: usize },
    HelloDue { process: usize },
    JobStopped { process: usize, role: usize },
    Read { process: usize, role: usize },
    Silence { process: usize, role: usize, read: usize },
    TimedOut { process: usize },
}

pub(crate) struct World {
    pub(crate) now: Time,
    weather: Weather,
    random: Random,
    journals: Vec<Vec<Entry>>,
    /// Who really leads each role.
    leaders: Vec<Option<MemberId>>,
    pub(crate) processes: Vec<Option<Process>>,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    count: u64,
    /// How many roles were handed over.
    pub(crate) hand_overs: usize,
    /// How many claims took effect.
    pub(crate) wins: usize,
}

impl World {
    pub(crate) fn new(seed: u64, roles: usize, weather: Weather) -> Self {
        Self {
            now: Time::from_nanos(1_000_000_000_000),
            weather,
            random: Random::from_seed(seed),
            journals: vec![Vec::new(); roles],
            leaders: vec![None; roles],
            processes: Vec::new(),
            events: BinaryHeap::new(),
            count: 0,
            hand_overs: 0,
            wins: 0,
        }
    }

    pub(crate) fn up_to(&mut self, most: Duration) -> Duration {
        self.random.up_to(most)
    }

    // ---- what is done to it -------------------------------------------------------------------------------------------

    /// A process starts, with all journals read.
    pub(crate) fn join(&mut self, max_roles: Option<u32>) -> usize {
        let process = self.processes.len();
        let member = MemberId::from_random((u128::from(self.count) << 64) + process as u128);
        // The order of the ids tells nothing of the order of the starts.
        let bits = self.up_to(Duration::from_secs(1)).as_nanos() << 64;
        let member = if bits == 0 { member } else { MemberId::from_random(bits + process as u128) };
        let mut new = Process::new(self.now, member, self.journals.len(), max_roles);
        for (seat, (journal, leader)) in new.seats.iter_mut().zip(self.journals.iter().zip(&self.leaders)) {
            seat.read = journal.len();
            seat.leader.clone_from(leader);
            seat.open_since = leader.is_none().then_some(self.now);
        }
        self.processes.push(Some(new));
        self.at(self.now, Event::HelloDue { process });
        for role in 0..self.journals.len() {
            self.after_input(process, role);
        }
        process
    }

    /// A process is told to stop.
    pub(crate) fn leave(&mut self, process: usize) {
        let Some(it) = self.processes[process].as_mut() else { return };
        it.is_leaving = true;
        for role in 0..self.journals.len() {
            let seat = &mut self.processes[process].as_mut().unwrap().seats[role];
            if seat.own == Own::Leading {
                seat.own = Own::Ending;
                let stop = self.up_to(self.weather.stop);
                self.at(self.now + stop, Event::JobStopped { process, role });
            }
        }
        self.go_if_done(process);
    }

    /// A process dies; its guard releases, or its machine dies with it.
    pub(crate) fn die(&mut self, process: usize, with_machine: bool) {
        let Some(dead) = self.processes[process].take() else { return };
        for role in 0..self.journals.len() {
            if self.leaders[role].as_ref() != Some(&dead.member) {
                continue;
            }
            if with_machine {
                let silence = LEASE.mul_f64(1.01) + self.up_to(Duration::from_millis(200));
                for reader in 0..self.processes.len() {
                    let later = silence + self.up_to(self.weather.latency);
                    if let Some(it) = &self.processes[reader] {
                        let read = it.seats[role].read;
                        self.at(self.now + later, Event::Silence { process: reader, role, read });
                    }
                }
            } else {
                let late = self.up_to(Duration::from_millis(500));
                self.at(self.now + late, Event::GuardReleases { member: dead.member.clone(), role });
            }
        }
    }

    /// Lets time pass.
    pub(crate) fn run_for(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some(Reverse((at, _, _))) = self.events.peek()
            && *at <= until
        {
            let Some(Reverse((at, _, event))) = self.events.pop() else { return };
            self.now = at;
            self.happens(event);
        }
        self.now = until;
    }

    // ---- what is seen of it -------------------------------------------------------------------------------------------

    /// How many roles each process that is not leaving holds.
    pub(crate) fn held(&self) -> Vec<usize> {
        let staying = self.processes.iter().flatten().filter(|process| !process.is_leaving);
        staying
            .map(|process| self.leaders.iter().flatten().filter(|leader| **leader == process.member).count())
            .collect()
    }

    /// Who leads each role.
    pub(crate) fn leaders(&self) -> &[Option<MemberId>] {
        &self.leaders
    }

    // ---- how it goes on -----------------------------------------------------------------------------------------------

    fn at(&mut self, at: Time, event: Event) {
        self.count += 1;
        self.events.push(Reverse((at, self.count, event)));
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::ClaimDue { process, role } => self.claim_if_due(process, role),
            Event::CoolOffOver { process, role } => {
                if let Some(it) = &mut self.processes[process] {
                    it.seats[role].cools_off = false;
                    self.await_claim(process, role);
                }
            }
            Event::GuardReleases { member, role } => self.release(role, member, "supervisor-died", None),
            Event::HelloArrives { from, max_roles, to } => {
                let now = self.now;
                if let Some(it) = &mut self.processes[to] {
                    it.spread.heard(now, &from, max_roles);
                    self.perform(to);
                }
            }
            Event::HelloDue { process } => self.say_hello(process),
            Event::JobStopped { process, role } => {
                let Some(it) = &mut self.processes[process] else { return };
                let (member, is_leaving) = (it.member.clone(), it.is_leaving);
                let successor = it.seats[role].successor.take();
                let why = if is_leaving { "stopped" } else { "spread" };
                self.release(role, member, why, successor);
            }
            Event::Read { process, role } => self.read(process, role),
            Event::Silence { process, role, read } => {
                let now = self.now;
                let Some(it) = &mut self.processes[process] else { return };
                let seat = &mut it.seats[role];
                if seat.read == read {
                    seat.open_since = Some(now);
                    self.await_claim(process, role);
                }
            }
            Event::TimedOut { process } => {
                let now = self.now;
                if let Some(it) = self.processes[process].as_mut().filter(|it| it.alarm == Some(now)) {
                    it.alarm = None;
                    it.spread.handle_timeout(now);
                    self.perform(process);
                }
            }
        }
    }

    fn say_hello(&mut self, process: usize) {
        let lost = self.up_to(Duration::from_secs(100)).as_secs() < u64::from(self.weather.hellos_lost);
        let Some(it) = &mut self.processes[process] else { return };
        let (from, max_roles) = (it.member.clone(), it.max_roles);
        it.lost_last_hello = lost && !it.lost_last_hello;
        if !it.lost_last_hello {
            for to in 0..self.processes.len() {
                let late = self.up_to(self.weather.hello_latency);
                let event = Event::HelloArrives { from: from.clone(), max_roles, to };
                self.at(self.now + late, event);
            }
        }
        self.at(self.now + HELLO_INTERVAL, Event::HelloDue { process });
    }

    fn append(&mut self, role: usize, entry: Entry) {
        self.journals[role].push(entry);
        for process in 0..self.processes.len() {
            let late = self.up_to(self.weather.latency);
            if self.processes[process].is_some() {
                self.at(self.now + late, Event::Read { process, role });
            }
        }
    }

    fn release(&mut self, role: usize, by: MemberId, why: &'static str, successor: Option<MemberId>) {
        if self.leaders[role].as_ref() == Some(&by) {
            self.leaders[role] = None;
            self.append(role, Entry::Release { by, why, successor });
        }
    }

    fn claim_if_due(&mut self, process: usize, role: usize) {
        let Some(it) = &mut self.processes[process] else { return };
        let Some((since, extra)) = it.may_claim(role) else { return };
        if self.now < since + extra {
            return;
        }
        it.seats[role].own = Own::Claiming;
        assert!(it.max_roles.is_none_or(|most| it.count() <= most as usize), "it claims more than it may hold");
        let (by, read) = (it.member.clone(), it.seats[role].read);
        // L1: it has judged everything before it. (A claim is appended as soon as it is sent.)
        let is_effective = read == self.journals[role].len();
        if is_effective {
            self.leaders[role] = Some(by.clone());
            self.wins += 1;
        }
        self.append(role, Entry::Claim { by, is_effective });
        self.after_input(process, role);
    }

    /// A process reads the next entry of a role's journal.
    fn read(&mut self, process: usize, role: usize) {
        let now = self.now;
        let Some(it) = &mut self.processes[process] else { return };
        let seat = &mut it.seats[role];
        let Some(entry) = self.journals[role].get(seat.read) else { return };
        seat.read += 1;
        match entry.clone() {
            Entry::Claim { by, is_effective: true } => {
                seat.own = if by != it.member {
                    Own::Nothing
                } else if it.is_leaving {
                    Own::Ending
                } else {
                    Own::Leading
                };
                if seat.own == Own::Ending {
                    self.at(now, Event::JobStopped { process, role });
                }
                let seat = &mut self.processes[process].as_mut().unwrap().seats[role];
                (seat.leader, seat.successor, seat.open_since, seat.cools_off) = (Some(by), None, None, false);
            }
            Entry::Claim { by, is_effective: false } => {
                if by == it.member && seat.own == Own::Claiming {
                    seat.own = Own::Nothing;
                }
            }
            Entry::Release { by, why, successor } => {
                let is_own = by == it.member;
                it.spread.released(now, role, &by, why);
                seat.own = if seat.own == Own::Claiming { Own::Claiming } else { Own::Nothing };
                (seat.leader, seat.open_since) = (None, Some(now));
                seat.cools_off = is_own && successor.is_some();
                seat.successor = successor;
                if seat.cools_off {
                    self.at(now + LEASE * 2, Event::CoolOffOver { process, role });
                }
            }
        }
        self.after_input(process, role);
        self.go_if_done(process);
    }

    fn go_if_done(&mut self, process: usize) {
        let is_done = |it: &Process| it.is_leaving && it.seats.iter().all(|seat| seat.own == Own::Nothing);
        if self.processes[process].as_ref().is_some_and(is_done) {
            self.processes[process] = None;
        }
    }

    /// What the loop does after each input of a role's node.
    fn after_input(&mut self, process: usize, role: usize) {
        let now = self.now;
        let Some(it) = &mut self.processes[process] else { return };
        let holding = it.holding(role);
        it.spread.observe(now, role, holding);
        self.perform(process);
        self.await_claim(process, role);
    }

    fn await_claim(&mut self, process: usize, role: usize) {
        let jitter = self.up_to(Duration::from_micros(100)) * u32::try_from(self.processes.len()).unwrap();
        if let Some((since, extra)) = self.processes[process].as_ref().and_then(|it| it.may_claim(role)) {
            self.at((since + extra).max(self.now) + jitter, Event::ClaimDue { process, role });
        }
    }

    fn perform(&mut self, process: usize) {
        loop {
            let Some(it) = &mut self.processes[process] else { return };
            let Some(action) = it.spread.poll_action() else { break };
            match action {
                Action::Delay { role, extra } => {
                    it.seats[role].extra = extra;
                    self.await_claim(process, role);
                }
                Action::HandOver { role, to } => {
                    assert_eq!(it.seats[role].own, Own::Leading, "what is handed over is held");
                    it.seats[role].own = Own::Ending;
                    it.seats[role].successor = to;
                    self.hand_overs += 1;
                    let stop = self.up_to(self.weather.stop);
                    self.at(self.now + stop, Event::JobStopped { process, role });
                    self.after_input(process, role);
                }
            }
        }
        let now = self.now;
        let Some(it) = &mut self.processes[process] else { return };
        let Some(due) = it.spread.poll_timeout() else { return };
        if it.alarm.is_none_or(|alarm| alarm <= now || due < alarm) {
            it.alarm = Some(due);
            self.at(due, Event::TimedOut { process });
        }
    }
}

/// How many have each count: what a failed assertion shows.
pub(crate) fn histogram(held: &[usize]) -> BTreeMap<usize, usize> {
    held.iter().fold(BTreeMap::new(), |mut counts, held| {
        *counts.entry(*held).or_default() += 1;
        counts
    })
}
