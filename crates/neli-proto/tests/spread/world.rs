//! A world in simulated time: the roles' journals, processes that read them with individual delays, and changes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use neli_proto::random::Random;
use neli_proto::record::MemberId;
use neli_proto::spread::{Action, Holding, PATIENCE};
use neli_proto::time::Time;
use neli_proto::timings::Elector;

use super::group::Group;
use super::process::{Own, Process};

pub(crate) const LOG: Elector = Elector::Log;
pub(crate) const GROUP: Elector = Elector::Group(Some(PATIENCE));
pub(crate) const GROUP_WITHOUT_PATIENCE: Elector = Elector::Group(None);

pub(crate) const LEASE: Duration = Duration::from_secs(20);
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// A process says its second hello after this time.
const FIRST_HELLO_ANSWERED: Duration = Duration::from_millis(500);
const HELLO_INTERVAL: Duration = Duration::from_secs(30);
/// A candidate that has handed a role over claims it again after this time.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(10);

/// The delays and losses of a world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delays {
    /// The longest time from the append of a record to its reading.
    pub(crate) latency: Duration,
    /// The longest time that a job takes to stop.
    pub(crate) stop: Duration,
    /// The percentage of hellos that are lost, but never two of a process in a row.
    pub(crate) hellos_lost: u32,
    /// The longest delay of a hello.
    pub(crate) hello_latency: Duration,
}

/// Short delays without losses.
pub(crate) const SHORT_DELAYS: Delays = Delays {
    latency: Duration::from_millis(3),
    stop: Duration::from_millis(20),
    hellos_lost: 0,
    hello_latency: Duration::from_millis(3),
};

/// An entry of a role's journal with its verdict.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Claim { by: MemberId, is_effective: bool },
    Release { by: MemberId, why: &'static str, successor: Option<MemberId> },
}

/// A process's hello.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Hello {
    pub(crate) name: Option<&'static str>,
    /// The number of roles in its list.
    pub(crate) roles: usize,
    pub(crate) max_roles: Option<u32>,
    pub(crate) asks: Option<MemberId>,
    pub(crate) leaves: bool,
}

#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Event {
    /// A process gets its assignment.
    Assigned {
        process: usize,
    },
    BeatArrives {
        from: MemberId,
        to: usize,
    },
    /// A process beats, if it leads a role. Only the first beat after a question is simulated.
    Beats {
        member: MemberId,
    },
    ClaimDue {
        process: usize,
        role: usize,
    },
    CoolOffOver {
        process: usize,
        role: usize,
    },
    GroupChanged,
    GuardReleases {
        member: MemberId,
        role: usize,
    },
    HelloArrives {
        from: MemberId,
        hello: Hello,
        to: usize,
    },
    HelloDue {
        process: usize,
        is_first: bool,
    },
    JobStopped {
        process: usize,
        role: usize,
    },
    Read {
        process: usize,
        role: usize,
    },
    /// A process is notified that a role's partition was revoked.
    Revoked {
        process: usize,
        role: usize,
    },
    SessionOver {
        process: usize,
    },
    Silence {
        process: usize,
        role: usize,
        read: usize,
    },
    TimedOut {
        process: usize,
    },
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) elector: Elector,
    pub(crate) delays: Delays,
    random: Random,
    pub(crate) journals: Vec<Vec<Entry>>,
    /// The actual leader of each role.
    pub(crate) leaders: Vec<Option<MemberId>>,
    pub(crate) group: Group,
    pub(crate) processes: Vec<Option<Process>>,
    /// The number of roles in the lists of processes that do not have all.
    pub(crate) lists: BTreeMap<usize, usize>,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    count: u64,
    pub(crate) hand_overs: usize,
    /// The number of claims that took effect.
    pub(crate) wins: usize,
    /// The last hello of each process.
    pub(crate) last_hellos: BTreeMap<MemberId, Hello>,
    /// When each process that died did so.
    pub(crate) deaths: BTreeMap<MemberId, Time>,
    /// The roles that were handed to processes which had died before their last record could arrive.
    pub(crate) handed_to_the_dead: usize,
}

impl World {
    pub(crate) fn new(seed: u64, elector: Elector, roles: usize, delays: Delays) -> Self {
        Self {
            now: Time::from_nanos(1_000_000_000_000),
            elector,
            delays,
            group: Group::of(roles),
            random: Random::from_seed(seed),
            journals: vec![Vec::new(); roles],
            leaders: vec![None; roles],
            processes: Vec::new(),
            lists: BTreeMap::new(),
            events: BinaryHeap::new(),
            count: 0,
            hand_overs: 0,
            wins: 0,
            last_hellos: BTreeMap::new(),
            deaths: BTreeMap::new(),
            handed_to_the_dead: 0,
        }
    }

    pub(crate) fn up_to(&mut self, most: Duration) -> Duration {
        self.random.up_to(most)
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

    // ---- observation ----------------------------------------------------------------------------------------------------

    /// The number of roles that each process holds, except for processes that are leaving.
    pub(crate) fn held(&self) -> Vec<usize> {
        let staying = self.processes.iter().flatten().filter(|process| !process.is_leaving);
        staying
            .map(|process| self.leaders.iter().flatten().filter(|leader| **leader == process.member).count())
            .collect()
    }

    pub(crate) fn leaders(&self) -> &[Option<MemberId>] {
        &self.leaders
    }

    // ---- events ---------------------------------------------------------------------------------------------------------

    pub(crate) fn at(&mut self, at: Time, event: Event) {
        self.count += 1;
        self.events.push(Reverse((at, self.count, event)));
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Assigned { process } => self.assigned(process),
            Event::ClaimDue { process, role } => self.claim_if_due(process, role),
            Event::CoolOffOver { process, role } => {
                let now = self.now;
                let Some(it) = &mut self.processes[process] else { return };
                if it.role_states[role].cools_off.take_if(|until| now >= *until).is_some() {
                    // The process gets the assignment that it missed.
                    self.assigned(process);
                    self.await_claim(process, role);
                }
            }
            Event::BeatArrives { from, to } => {
                let now = self.now;
                if let Some(it) = &mut self.processes[to] {
                    it.spread.heard(now, &from);
                    self.perform(to);
                }
            }
            Event::Beats { member } => self.beat(&member),
            Event::GroupChanged => self.rebalance(),
            Event::GuardReleases { member, role } => self.release(role, member, "supervisor-died", None),
            Event::HelloArrives { from, hello, to } => self.hello_is_read(&from, hello, to, false),
            Event::HelloDue { process, is_first } => {
                self.say_hello(process, None);
                let next = if is_first { FIRST_HELLO_ANSWERED } else { HELLO_INTERVAL };
                self.at(self.now + next, Event::HelloDue { process, is_first: false });
            }
            Event::JobStopped { process, role } => {
                let Some(it) = &mut self.processes[process] else { return };
                let (member, is_leaving) = (it.member.clone(), it.is_leaving);
                let successor = it.role_states[role].successor.take();
                let why = if is_leaving { "stopped" } else { it.role_states[role].why };
                self.release(role, member, why, successor);
            }
            Event::Read { process, role } => self.read(process, role),
            Event::Revoked { process, role } => self.revoked(process, role),
            Event::SessionOver { process } => self.leave_group(process),
            Event::Silence { process, role, read } => {
                let now = self.now;
                let Some(it) = &mut self.processes[process] else { return };
                let state = &mut it.role_states[role];
                if state.read == read {
                    state.open_since = Some(now);
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

    pub(crate) fn say_hello(&mut self, process: usize, asks: Option<MemberId>) {
        let lost = self.up_to(Duration::from_secs(100)).as_secs() < u64::from(self.delays.hellos_lost);
        let Some(it) = &mut self.processes[process] else { return };
        it.lost_last_hello = lost && !it.lost_last_hello;
        if let Some(it) = self.processes[process].as_ref().filter(|it| !it.lost_last_hello) {
            let (from, hello) = (it.member.clone(), self.hello_of(process, it));
            self.append_hello(&from, &Hello { asks, ..hello });
        }
    }

    /// Lets a process's next beat arrive, if it is alive and leads a role.
    fn beat(&mut self, member: &MemberId) {
        let is_alive = self.processes.iter().flatten().any(|it| it.member == *member);
        if is_alive && self.leaders.iter().flatten().any(|leader| leader == member) {
            for to in 0..self.processes.len() {
                let late = self.up_to(self.delays.latency);
                self.at(self.now + late, Event::BeatArrives { from: member.clone(), to });
            }
        }
    }

    pub(crate) fn hello_of(&self, process: usize, it: &Process) -> Hello {
        let roles = self.lists.get(&process).copied().unwrap_or(self.journals.len());
        Hello { name: it.name, roles, max_roles: it.max_roles, asks: None, leaves: false }
    }

    fn append(&mut self, role: usize, entry: Entry) {
        self.journals[role].push(entry);
        for process in 0..self.processes.len() {
            let late = self.up_to(self.delays.latency);
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
        let Some((since, delay, _)) = it.may_claim(role) else { return };
        if self.now < since + delay {
            return;
        }
        it.role_states[role].own = Own::Claiming;
        assert!(it.max_roles.is_none_or(|most| it.count() <= most as usize), "it claims more than it may hold");
        let (by, read) = (it.member.clone(), it.role_states[role].read);
        // L1: the process has judged all records before the claim. (A claim is appended as soon as it is sent.)
        let is_effective = read == self.journals[role].len();
        if is_effective {
            self.leaders[role] = Some(by.clone());
            self.wins += 1;
        }
        self.append(role, Entry::Claim { by, is_effective });
        self.after_input(process, role);
    }

    /// Lets a process read the next entry of a role's journal.
    fn read(&mut self, process: usize, role: usize) {
        let now = self.now;
        let Some(it) = &mut self.processes[process] else { return };
        let state = &mut it.role_states[role];
        if state.own == Own::Done {
            return;
        }
        let Some(entry) = self.journals[role].get(state.read) else { return };
        state.read += 1;
        match entry.clone() {
            Entry::Claim { by, is_effective: true } => {
                it.spread.heard(now, &by);
                state.own = if by != it.member {
                    Own::Nothing
                } else if it.is_leaving {
                    Own::Ending
                } else {
                    Own::Leading
                };
                if state.own == Own::Ending {
                    self.at(now, Event::JobStopped { process, role });
                }
                let state = &mut self.processes[process].as_mut().unwrap().role_states[role];
                (state.leader, state.successor, state.open_since) = (Some(by), None, None);
                if state.cools_off.take().is_some() {
                    self.assigned(process);
                }
            }
            Entry::Claim { by, is_effective: false } => {
                if by == it.member && state.own == Own::Claiming {
                    state.own = Own::Nothing;
                }
            }
            Entry::Release { by, why, successor } => {
                let is_own = by == it.member;
                state.own = match state.own {
                    _ if is_own && why == "exited" => Own::Done,
                    Own::Claiming => Own::Claiming,
                    Own::Done | Own::Ending | Own::Leading | Own::Nothing => Own::Nothing,
                };
                (state.leader, state.open_since) = (None, Some(now));
                let cools_off = is_own && ["resigned", "spread"].contains(&why);
                let span = if why == "spread" { HANDED_OVER_WITHIN } else { LEASE * 2 };
                state.cools_off = cools_off.then(|| now + span);
                (state.successor, state.leader_died) = (successor.clone(), why == "supervisor-died");
                it.spread.observe(now, role, Holding::Vacant { successor });
                it.spread.released(now, role, &by, why);
                if cools_off {
                    self.at(now + span, Event::CoolOffOver { process, role });
                }
            }
        }
        self.after_input(process, role);
        self.go_if_done(process);
    }

    /// The steps of the loop after each input of a role's node.
    pub(crate) fn after_input(&mut self, process: usize, role: usize) {
        let now = self.now;
        let Some(it) = &mut self.processes[process] else { return };
        let holding = it.holding(role);
        it.spread.observe(now, role, holding);
        self.perform(process);
        self.await_claim(process, role);
    }

    pub(crate) fn await_claim(&mut self, process: usize, role: usize) {
        let jitter = self.up_to(Duration::from_micros(100)) * u32::try_from(self.processes.len()).unwrap();
        if let Some((since, delay, random)) = self.processes[process].as_ref().and_then(|it| it.may_claim(role)) {
            let random = self.up_to(random);
            self.at((since + delay + random).max(self.now) + jitter, Event::ClaimDue { process, role });
        }
    }

    pub(crate) fn perform(&mut self, process: usize) {
        loop {
            let Some(it) = &mut self.processes[process] else { return };
            let Some(action) = it.spread.poll_action() else {
                let Some((now, member)) = it.spread.poll_question() else { break };
                assert_eq!(now, self.now, "it is asked at once");
                self.say_hello(process, Some(member.clone()));
                let late = self.up_to(HEARTBEAT_INTERVAL);
                self.at(self.now + late, Event::Beats { member });
                continue;
            };
            match action {
                Action::Delay { role, extra } => {
                    it.role_states[role].extra = extra;
                    self.await_claim(process, role);
                }
                Action::HandOver { role, to } => {
                    assert_eq!(it.role_states[role].own, Own::Leading, "what is handed over is held");
                    it.role_states[role].successor = Some(to.clone());
                    let stands_for_it = |other: &Process| other.role_states[role].own != Own::Done;
                    let mut others = self.processes.iter().flatten();
                    let given = others.find(|other| other.member == to);
                    assert!(given.is_none_or(stands_for_it), "what is handed over is given to a candidate of the role");
                    self.hand_overs += 1;
                    let latency = self.delays.latency.max(self.delays.hello_latency);
                    let died = self.deaths.get(&to);
                    self.handed_to_the_dead += usize::from(died.is_some_and(|at| *at + latency < self.now));
                    self.stand_down(process, role, "spread");
                }
                Action::Hello(_) | Action::Note(_) | Action::Refuse(_) => {}
            }
        }
        let now = self.now;
        let Some(it) = &mut self.processes[process] else { return };
        let Some(due) = it.spread.poll_timeout() else { return };
        assert!(due > now, "it would be called again without an end");
        if it.alarm.is_none_or(|alarm| alarm <= now || due < alarm) {
            it.alarm = Some(due);
            self.at(due, Event::TimedOut { process });
        }
    }
}
