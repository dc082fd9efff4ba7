//! Changes of a world's processes.

use std::time::Duration;

use neli_proto::record::MemberId;
use neli_proto::role_set::RoleSet;
use neli_proto::timings::Elector;

use super::group::SESSION;
use super::process::{Own, Process, RoleState};
use super::world::{Entry, Event, Hello, LEASE, World};

impl World {
    /// Starts a process that has read all journals.
    pub(crate) fn join(&mut self, max_roles: Option<u32>) -> usize {
        self.join_by(self.elector, max_roles)
    }

    /// The same, with another elector than the others have.
    pub(crate) fn join_by(&mut self, elector: Elector, max_roles: Option<u32>) -> usize {
        let process = self.processes.len();
        // The order of the ids must not depend on the order of the starts.
        let bits = self.up_to(Duration::from_secs(1)).as_nanos() << 64;
        let member = MemberId::from_random(bits + process as u128 + 1);
        let list = self.lists.get(&process).copied().unwrap_or(self.journals.len());
        let mut new = Process::new(member, list, elector, max_roles);
        let lacking = RoleState { own: Own::Done, ..new.role_states[0].clone() };
        new.role_states.resize(self.journals.len(), lacking);
        for (role, journal) in self.journals.iter().enumerate() {
            let releases = journal.iter().filter_map(|entry| match entry {
                Entry::Release { by, why, .. } => Some((by, *why)),
                Entry::Claim { .. } => None,
            });
            releases.for_each(|(by, why)| new.spread.released(self.now, role, by, why));
        }
        for (state, (journal, leader)) in new.role_states.iter_mut().zip(self.journals.iter().zip(&self.leaders)) {
            state.read = journal.len();
            state.leader.clone_from(leader);
            state.open_since = leader.is_none().then_some(self.now);
        }
        self.processes.push(Some(new));
        for (writer, hello) in self.last_hellos.clone() {
            self.hello_is_read(&writer, hello, process, true);
        }
        self.at(self.now, Event::HelloDue { process, is_first: true });
        if elector != Elector::Log {
            self.join_group(process);
        }
        for role in 0..self.journals.len() {
            self.after_input(process, role);
            let is_there = |leader: &MemberId| self.processes.iter().flatten().any(|it| it.member == *leader);
            if self.leaders[role].as_ref().is_some_and(|leader| !is_there(leader)) {
                self.await_silence(process, role);
            }
        }
        process
    }

    /// Starts a process whose list lacks the roles from `count` on.
    pub(crate) fn join_with_list(&mut self, count: usize) -> usize {
        let process = self.processes.len();
        self.lists.insert(process, count);
        self.join(None)
    }

    /// Lets a process read another one's hello, or one from before its start.
    pub(crate) fn hello_is_read(&mut self, from: &MemberId, hello: Hello, to: usize, is_history: bool) {
        let (now, all) = (self.now, self.journals.len());
        let own = self.lists.get(&to).copied().unwrap_or(all);
        let Some(it) = self.processes[to].as_mut().filter(|it| it.member != *from) else { return };
        let Hello { name, roles, max_roles, asks, leaves } = hello;
        if leaves {
            it.spread.member_left(now, from);
        } else {
            if is_history {
                it.spread.received_earlier(now, from, max_roles);
            } else {
                it.spread.note_name(now, from, name);
                it.spread.hello_received(now, from, max_roles);
            }
            let mut lacking = RoleSet::new();
            (roles..own).for_each(|role| lacking.insert(u32::try_from(role).unwrap()));
            it.spread.roles_left(now, from, &lacking);
            it.spread.note_other_roles(now, from, u32::try_from(roles.saturating_sub(own)).unwrap());
        }
        match asks.filter(|_| !is_history) {
            Some(asked) if asked == it.member => self.say_hello(to, None),
            Some(asked) => it.spread.asked(now, &asked),
            None => {}
        }
        self.perform(to);
    }

    /// Appends a process's hello.
    pub(crate) fn append_hello(&mut self, from: &MemberId, hello: &Hello) {
        self.last_hellos.insert(from.clone(), hello.clone());
        for to in 0..self.processes.len() {
            let late = self.up_to(self.delays.hello_latency);
            self.at(self.now + late, Event::HelloArrives { from: from.clone(), hello: hello.clone(), to });
        }
    }

    /// Stops a process.
    pub(crate) fn leave(&mut self, process: usize) {
        let Some(it) = self.processes[process].as_mut() else { return };
        it.is_leaving = true;
        self.leave_group(process);
        for role in 0..self.journals.len() {
            let state = &mut self.processes[process].as_mut().unwrap().role_states[role];
            if state.own == Own::Leading {
                state.own = Own::Ending;
                let stop = self.up_to(self.delays.stop);
                self.at(self.now + stop, Event::JobStopped { process, role });
            }
        }
        let now = self.now;
        let it = self.processes[process].as_mut().unwrap();
        (0..it.role_states.len()).for_each(|role| it.spread.observe(now, role, it.holding(role)));
        self.perform(process);
        self.go_if_done(process);
    }

    /// Kills a process. Its guard releases its roles, or its machine dies with it.
    pub(crate) fn die(&mut self, process: usize, with_machine: bool) {
        let Some(dead) = self.processes[process].take() else { return };
        self.deaths.insert(dead.member.clone(), self.now);
        self.at(self.now + SESSION, Event::SessionOver { process });
        for role in 0..self.journals.len() {
            if self.leaders[role].as_ref() != Some(&dead.member) {
                continue;
            }
            if with_machine {
                for reader in 0..self.processes.len() {
                    self.await_silence(reader, role);
                }
            } else {
                let late = self.up_to(Duration::from_millis(500));
                self.at(self.now + late, Event::GuardReleases { member: dead.member.clone(), role });
            }
        }
    }

    /// Notes that the leader of a role has died with its machine, so that the others wait for its silence.
    fn await_silence(&mut self, process: usize, role: usize) {
        let silence = LEASE.mul_f64(1.01) + self.up_to(Duration::from_millis(200)) + self.up_to(self.delays.latency);
        let read = self.journals[role].len();
        self.at(self.now + silence, Event::Silence { process, role, read });
    }

    /// Asks the leader of a role to resign.
    pub(crate) fn resign(&mut self, role: usize) {
        let Some(leader) = self.leaders[role].clone() else { return };
        let is_leader = |process: &Option<Process>| process.as_ref().is_some_and(|process| process.member == leader);
        if let Some(process) = self.processes.iter().position(is_leader) {
            self.stand_down(process, role, "resigned");
        }
    }

    /// The job of a role's leader ends with `--restart no`.
    pub(crate) fn end_job(&mut self, role: usize) {
        let leader = self.leaders[role].clone();
        let is_leader = |process: &Option<Process>| process.as_ref().map(|process| &process.member) == leader.as_ref();
        if let Some(process) = self.processes.iter().position(is_leader).filter(|_| leader.is_some()) {
            self.stand_down(process, role, "exited");
        }
    }

    /// Lets a process stand down in a role if it leads it; returns whether it does.
    pub(crate) fn stand_down(&mut self, process: usize, role: usize, why: &'static str) -> bool {
        let Some(it) = &mut self.processes[process] else { return false };
        let state = &mut it.role_states[role];
        if state.own != Own::Leading {
            return false;
        }
        (state.own, state.why) = (Own::Ending, why);
        let stop = self.up_to(self.delays.stop);
        self.at(self.now + stop, Event::JobStopped { process, role });
        self.after_input(process, role);
        true
    }

    pub(crate) fn go_if_done(&mut self, process: usize) {
        let is_done = |it: &Process| {
            let leads_none = it.role_states.iter().all(|state| matches!(state.own, Own::Done | Own::Nothing));
            it.is_leaving && leads_none
        };
        let stands_for_none = |it: &mut Process| it.role_states.iter().all(|state| state.own == Own::Done);
        if self.processes[process].as_mut().is_some_and(stands_for_none) {
            self.leave_group(process);
            self.processes[process].iter_mut().for_each(|it| it.is_leaving = true);
        }
        let Some(gone) = self.processes[process].take_if(|it| is_done(it)) else { return };
        let hello = self.hello_of(process, &gone);
        self.append_hello(&gone.member, &Hello { leaves: true, ..hello });
    }
}
