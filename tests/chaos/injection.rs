//! The injection of each fault.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use harness::judge::nanos;
use harness::network::{Flow, LinkConditions, Wire};
use harness::process::Process;
use harness::wait;
use nix::sys::signal::Signal;

use crate::false_records;
use crate::fault::{Fault, Strike};
use crate::link_faults::{both, cut, delay, trickle};
use crate::run::{Run, Task};
use crate::slot::{Half, SLOT_WITH_A_CLOCK};
use crate::special_runs::SpecialRun;
use crate::stranger::Action;

impl Run<'_> {
    pub(crate) fn strike(&mut self, strike: Strike) {
        let lasts = strike.lasts.max(self.parameters.special_run.map_or(Duration::ZERO, SpecialRun::lasts));
        let strike = Strike { lasts, ..strike };
        let Strike { fault, at_leader, degree, role, .. } = strike;
        let leader = self.histories[role].current();
        let at_leader = at_leader || [Fault::Fade, Fault::Strays].contains(&fault);
        let index =
            leader.filter(|_| at_leader).map_or(strike.slot, |job_run| self.histories[role].job_runs[job_run].slot);
        if let Some(half) = half_of(fault) {
            if !self.slots[index].can_lose(half) {
                return;
            }
            self.slots[index].was_struck(half);
        }
        *self.strikes.entry(fault).or_default() += 1;
        let (name, of, broker) = (self.slots[index].name(), self.called(role), strike.broker);
        self.axis
            .note("chaos", format!("{of}{fault:?} at {name}, broker {broker:?}, for {lasts:?}, degree {degree:.2}"));
        self.bring_about(&strike, index, leader);
    }

    /// Injects the fault at this slot. `leader` is the run of the role's leader.
    fn bring_about(&mut self, strike: &Strike, index: usize, leader: Option<usize>) {
        let Strike { fault, lasts, broker, degree, role, .. } = *strike;
        let main = leader.map(|job_run| self.histories[role].job_runs[job_run].main);
        let slot = &self.slots[index];
        match fault {
            Fault::AbandonJob => self.abandon_job(index),
            Fault::Cut => self.change_conditions(index, broker, cut(degree), lasts),
            Fault::CutCoordinator => {
                let coordinator = self.environment.coordinator_of(&self.group);
                self.cut_off(index, coordinator, strike);
            }
            Fault::CutHead => self.stranger.ask(Action::CutHead),
            Fault::CutLeader => {
                let leading = self.environment.leader_of(&self.group, role);
                self.cut_off(index, leading, strike);
            }
            Fault::Delay => self.change_conditions(index, broker, delay(degree), lasts),
            Fault::Fade => self.fade(index, strike),
            Fault::FillDisk => self.fill_disk(strike),
            Fault::FreezeBroker => self.freeze_broker(strike),
            Fault::Garbage => {
                self.stranger
                    .ask(Action::Write(role, false_records::garbage(&self.group, role, degree, &mut self.dice)));
            }
            Fault::Hog => self.hog(strike),
            Fault::KillBroker => self.kill_broker(strike),
            Fault::KillGuard => send(slot.guard(main), Signal::SIGKILL),
            Fault::KillJob => {
                let main = main.and_then(Process::find);
                send(main.filter(|main| main.name().as_deref() == Some("witness")), Signal::SIGKILL);
            }
            Fault::KillMachine => self.kill_machine(index),
            Fault::KillSupervisor => send(slot.supervisor(), Signal::SIGKILL),
            Fault::Lie => self.lie(strike),
            Fault::MoveLeader => broker.into_iter().for_each(|broker| self.stranger.ask(Action::MoveLeader(broker))),
            Fault::Refuse => self.change_conditions(
                index,
                broker,
                LinkConditions { refuses: true, ..LinkConditions::default() },
                lasts,
            ),
            Fault::RemakeTopic => self.remake_topic(),
            // With many roles all partitions would need their old length.
            Fault::RemakeUnnoticed if self.has_many_roles() => self.remake_topic(),
            Fault::RemakeUnnoticed => self.remake_unnoticed(),
            Fault::Reset => self.wires(broker).into_iter().for_each(|broker| {
                self.environment.wire(self.parameters, index, broker, Wire::reset);
            }),
            Fault::Resign => leader.into_iter().for_each(|leader| self.ask_to_resign(role, leader)),
            Fault::Roll => {
                for (slot, pause) in (0..self.slots.len()).zip(0_u32..) {
                    self.after(Duration::from_millis(400) * pause, Task::Term(slot));
                }
            }
            Fault::ShutDownBroker => self.shut_down_broker(strike),
            Fault::StepClock => self.step_clock(degree),
            Fault::Strays => self.stray(role, index),
            // The guard's supervisor continues it at once.
            Fault::StopGuard => send(slot.guard(main), Signal::SIGSTOP),
            Fault::StopSupervisor => {
                if let Some(supervisor) = slot.supervisor() {
                    supervisor.signal(Signal::SIGSTOP);
                    self.slots[index].is_stopped = true;
                    self.after(lasts, Task::Continue(index, supervisor));
                }
            }
            Fault::Term => self.perform(Task::Term(index)),
            Fault::TermAtLead => {
                for slot in &mut self.slots {
                    // This resets the counter, so that only new leads count.
                    let _ = slot.leads_anew();
                }
                self.term_at_lead = true;
                self.perform(Task::Term(index));
            }
            Fault::Trickle => self.change_conditions(index, broker, trickle(degree), lasts),
        }
    }

    /// Kills a whole candidate. If the job continued for a moment without supervisor and guard, the run counts as abandoned.
    fn kill_machine(&mut self, index: usize) {
        self.slots[index].kill_machine();
        let life = self.slots[index].lives.saturating_sub(1);
        let prefixes: Vec<_> = self.histories.iter().map(|history| history.prefix(index, life)).collect();
        let mut all_at_once = true;
        loop {
            let left: Vec<Process> = prefixes.iter().flat_map(|prefix| Process::with_word(prefix)).collect();
            if left.is_empty() {
                break;
            }
            all_at_once = false;
            for process in left {
                process.signal(Signal::SIGKILL);
            }
        }
        if !all_at_once {
            self.histories.iter_mut().for_each(|history| history.abandon(index, life));
        }
    }

    /// Kills supervisor and guards at once; the job's processes except the main process are then outside the guarantee.
    fn abandon_job(&mut self, index: usize) {
        let slot = &self.slots[index];
        let Some(supervisor) = slot.supervisor().filter(|_| !slot.guards().is_empty()) else { return };
        let life = slot.lives.saturating_sub(1);
        self.histories.iter_mut().for_each(|history| history.abandon(index, life));
        // The supervisor is stopped first, because it would continue the guards. So none of them notices the other's death.
        supervisor.signal(Signal::SIGSTOP);
        let guards = slot.guards();
        for guard in &guards {
            guard.signal(Signal::SIGSTOP);
        }
        for half in [supervisor].into_iter().chain(guards) {
            half.signal(Signal::SIGKILL);
        }
        for role in 0..self.histories.len() {
            let history = &mut self.histories[role];
            history.read();
            let is_abandoned =
                |job_run: &usize| history.job_runs[*job_run].abandoned && history.job_runs[*job_run].slot == index;
            for job_run in history.open().iter().copied().filter(is_abandoned).collect::<Vec<_>>() {
                self.after(Duration::from_millis(1500), Task::KillAbandoned(role, job_run));
            }
        }
    }

    // ---- network --------------------------------------------------------------------------------------------------

    /// Changes the state of a slot's wires. A direction that this fault does not affect keeps its state.
    pub(crate) fn change_conditions(
        &mut self,
        slot: usize,
        broker: Option<usize>,
        conditions: LinkConditions,
        lasts: Duration,
    ) {
        let worse = |flow, before| if flow == Flow::Open { before } else { flow };
        for broker in self.wires(broker) {
            self.environment.wire(self.parameters, slot, broker, |wire| {
                let before = wire.conditions();
                wire.set(LinkConditions {
                    there: worse(conditions.there, before.there),
                    back: worse(conditions.back, before.back),
                    refuses: conditions.refuses || before.refuses,
                    ..before
                });
            });
        }
        self.disturb_for(lasts);
        self.after(lasts, Task::Clear(slot, broker, conditions));
    }

    /// Cuts the slot off from one broker.
    fn cut_off(&mut self, slot: usize, broker: Option<usize>, strike: &Strike) {
        if let Some(broker) = broker.filter(|broker| *broker < self.parameters.brokers) {
            self.change_conditions(slot, Some(broker), cut(strike.degree), strike.lasts);
        }
    }

    /// Delays answers within the lease, and then cuts the connection. This reveals a lease that is counted from the answer.
    fn fade(&mut self, slot: usize, strike: &Strike) {
        // An answer may wait for the previous one. Even twice this delay plus half a heartbeat interval is less than a lease.
        let late = Flow::Late(Duration::from_millis(250) + Duration::from_millis(150).mul_f64(strike.degree));
        let (before, lasts) = (Duration::from_secs(1), strike.lasts.max(Duration::from_millis(2500)));
        self.change_conditions(slot, None, LinkConditions { back: late, ..LinkConditions::default() }, before + lasts);
        self.after(before, Task::Lose(slot, lasts));
    }

    pub(crate) fn wires(&self, broker: Option<usize>) -> Vec<usize> {
        broker.map_or_else(|| (0..self.parameters.brokers).collect(), |broker| vec![broker])
    }

    // ---- brokers --------------------------------------------------------------------------------------------------

    /// The broker to strike, unless it or another one is broken. Two at a time are rare, since the cluster must be able to continue most of
    /// the time.
    fn broker_to_break(&mut self, strike: &Strike) -> Option<usize> {
        let index = strike.broker.unwrap_or(strike.slot % self.parameters.brokers);
        let spared = self.broken.contains_key(&index) || (!self.broken.is_empty() && strike.degree < 0.9);
        if spared || !self.environment.cluster().brokers()[index].lives() {
            return None;
        }
        self.broken.insert(index, None);
        Some(index)
    }

    fn fill_disk(&mut self, strike: &Strike) {
        let last = self.parameters.brokers - 1;
        if let Some(index) = self.broker_to_break(&Strike { broker: Some(last), ..*strike }) {
            self.environment.cluster().brokers()[index].fill_disk();
            self.disturb_all_for(strike.lasts);
            self.after(strike.lasts, Task::EmptyDisk(index));
        }
    }

    fn freeze_broker(&mut self, strike: &Strike) {
        if let Some(index) = self.broker_to_break(strike) {
            self.environment.cluster_to_change().broker(index).freeze();
            self.disturb_all_for(strike.lasts);
            self.after(strike.lasts, Task::Thaw(index));
        }
    }

    fn kill_broker(&mut self, strike: &Strike) {
        if self.parameters.special_run.is_some_and(SpecialRun::is_undisturbed) {
            if !self.environment.is_whole(&self.group) {
                return self.axis.note("chaos", "no broker is killed: not every replica is in sync");
            }
            // This is longer than the other brokers wait for it.
            let strike = Strike { lasts: Duration::from_secs(16), ..*strike };
            return self.kill_broker_for(&strike);
        }
        self.kill_broker_for(strike);
    }

    fn kill_broker_for(&mut self, strike: &Strike) {
        if let Some(index) = self.broker_to_break(strike) {
            self.environment.cluster_to_change().broker(index).end();
            // Without a second broker, the whole Kafka is down.
            let alone = self.parameters.brokers == 1;
            let pause = if alone { strike.lasts / 10 } else { strike.lasts };
            self.disturb_all_for(pause);
            self.after(pause, Task::BeginBroker(index));
        }
    }

    fn shut_down_broker(&mut self, strike: &Strike) {
        if let Some(index) = self.broker_to_break(strike) {
            self.environment.cluster().brokers()[index].ask_to_shut_down();
            self.after(Duration::from_millis(100), Task::Undertake(index));
        }
    }

    // ---- other clients ----------------------------------------------------------------------------------------------

    fn lie(&mut self, strike: &Strike) {
        // A record about the current term would be a forged beat or release, which is outside the guarantee.
        let role = strike.role;
        let earlier = self.histories[role].job_runs.iter().rev().nth(3).map(|job_run| job_run.term);
        let lie = false_records::lie(
            (&self.group, self.parameters.overlap),
            role,
            strike.degree,
            self.stranger.end(role),
            earlier,
        );
        // A forged claim that takes effect blocks the election for its lease (assumption 5).
        self.disturb_for(Duration::from_millis(false_records::LEASE_MS));
        self.stranger.ask(Action::Write(role, lie));
    }

    fn remake_topic(&mut self) {
        // All candidates wait for the longest possible lease.
        self.disturb_for(Duration::from_secs(66));
        self.histories.iter_mut().for_each(|history| history.topic_was_remade(wait::now()));
        self.stranger.ask(Action::RemakeTopic);
    }

    /// Cuts the leader off until a new candidate, which never knew the old topic, leads in the new topic, and the new one is longer than
    /// the old one was. Then the leader's offsets seem to continue.
    fn remake_unnoticed(&mut self) {
        let Some(job_run) = self.histories[0].current() else { return };
        let leader = self.histories[0].job_runs[job_run].slot;
        // If a candidate notices it nevertheless, all candidates wait for the longest possible lease.
        self.disturb_for(Duration::from_secs(66));
        for broker in 0..self.parameters.brokers {
            self.environment.wire(self.parameters, leader, broker, |wire| wire.set(both(Flow::Held)));
        }
        let newcomer = (leader + 1) % self.slots.len();
        self.kill_machine(newcomer);
        self.histories[0].topic_was_remade(wait::now());
        if let Some(longer) = self.stranger.remake_shorter() {
            self.histories[0].topic_is_remade(wait::now());
            let end = wait::after(self.parameters.longest_lease() / 2);
            // The loop might start it too late.
            while self.slots[newcomer].running.is_some() && wait::now() < end {
                self.look();
            }
            self.start(newcomer);
            let slot = &mut self.slots[newcomer];
            let left = Duration::from_nanos(end.saturating_sub(wait::now()));
            let leads = wait::poll_for(left, || slot.leads_anew().then_some(()));
            self.axis.note("chaos", format!("{} leads in the new topic: {}", slot.name(), leads.is_some()));
            self.stranger.fill(longer);
        }
        for broker in 0..self.parameters.brokers {
            self.environment.wire(self.parameters, leader, broker, |wire| wire.set(LinkConditions::default()));
        }
        self.axis.note("chaos", format!("slot {leader} hears again"));
    }

    fn stray(&mut self, role: usize, leader: usize) {
        const RECORDS: u32 = 12;
        const EVERY: Duration = Duration::from_millis(100);
        self.perform(Task::Term(leader));
        self.disturb_for(RECORDS * EVERY);
        self.perform(Task::Stray(role, RECORDS));
    }

    // ---- machine ----------------------------------------------------------------------------------------------------

    fn hog(&mut self, strike: &Strike) {
        self.disturb_all_for(strike.lasts);
        self.after(strike.lasts, Task::EndHog((0..4).map(|_| burn()).collect()));
    }

    /// Sets the clock days forward or back, and sometimes to the right time.
    fn step_clock(&mut self, degree: f64) {
        const SECONDS: [i64; 6] = [3_600, -3_600, 864_000, -86_400, 7, 0];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "one of six")]
        let by = SECONDS[((degree * 6.0) as usize).min(5)];
        let by = self.parameters.windows.map_or(by, |windows| windows.step(degree));
        fs::write(&self.clock, by.to_string()).expect("the file can be written");
        self.axis.note("chaos", format!("the wall clock of slot {SLOT_WITH_A_CLOCK} is {by:+} s"));
    }

    /// Like [`Self::disturb_for`], for all elections.
    fn disturb_all_for(&mut self, span: Duration) {
        let now = wait::now();
        self.environment.disturb(now, now + nanos(span));
    }

    pub(crate) fn disturb_for(&mut self, span: Duration) {
        let now = wait::now();
        self.axis.disturb(now, now + nanos(span));
    }
}

/// The process of a candidate that a fault puts out of action while it spares the other one.
fn half_of(fault: Fault) -> Option<Half> {
    if [Fault::KillGuard, Fault::StopGuard].contains(&fault) {
        Some(Half::Guard)
    } else {
        [Fault::KillSupervisor, Fault::StopSupervisor].contains(&fault).then_some(Half::Supervisor)
    }
}

fn send(process: Option<Process>, signal: Signal) {
    if let Some(process) = process {
        process.signal(signal);
    }
}

/// A process that keeps a processor busy until it is killed.
fn burn() -> Child {
    let mut hog = Command::new("setpriv");
    hog.args(["--pdeathsig", "KILL", "--", "sh", "-c", "while :; do :; done"]);
    hog.stdin(Stdio::null()).spawn().expect("setpriv is part of util-linux")
}
