//! The steps that are possible in a world.

use neli_proto::time::Time;

use crate::flaws::{WorldFlaw, is_flawed};
use crate::guard::Life;
use crate::machine::{GuardStart, Machine};
use crate::setup::Who;
use crate::step::Step;
use crate::world::{Broker, World};

impl World {
    /// All possible next steps.
    pub(crate) fn enabled(&self, steps: &mut Vec<Step>) {
        steps.clear();
        self.enabled_in_flight(steps);
        self.enabled_facts(steps);
        for who in 0..self.machines.len() {
            match self.machine(who) {
                Some(machine) => {
                    self.enabled_at(who, machine, steps);
                    if self.setup.reborn && machine.is_gone() {
                        steps.push(Step::Begin(who));
                    }
                }
                None if self.faults.begins > 0 && self.broker != Broker::Dead => steps.push(Step::Begin(who)),
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

    fn enabled_facts(&self, steps: &mut Vec<Step>) {
        for (index, flight) in self.facts.flying.iter().enumerate() {
            steps.push(if flight.delayed { Step::AppendFactLate(index) } else { Step::AppendFact(index) });
            if !flight.delayed && self.faults.fact_delays > 0 {
                steps.push(Step::DelayFact(index));
            }
        }
    }

    fn enabled_at(&self, who: Who, machine: &Machine, steps: &mut Vec<Step>) {
        if machine.life == Life::Awake {
            self.enabled_awake(who, machine, steps);
        }
        if machine.life == Life::Asleep {
            steps.push(Step::Resume(who));
        }
        self.enabled_at_guard(who, machine, steps);
        if self.faults.deaths > 0 && !machine.is_gone() {
            steps.push(Step::Die(who));
        }
    }

    /// Steps of a supervisor that is awake.
    fn enabled_awake(&self, who: Who, machine: &Machine, steps: &mut Vec<Step>) {
        if machine.due().is_some_and(|due| due <= self.now) {
            steps.push(Step::Fire(who));
        }
        if machine.facts_asked.is_some() {
            steps.push(Step::ReadFacts(who));
            if self.faults.old_facts > 0 && self.has_old_facts() {
                steps.push(Step::ReadOldFacts(who));
            }
        }
        if !machine.answers.is_empty() || !machine.receipts.is_empty() || !machine.facts_events.is_empty() {
            steps.push(Step::Receive(who));
        }
        self.enabled_by_kafka(who, machine, steps);
        if machine.is_checked() {
            steps.push(Step::HealthEnds(who));
            if self.faults.failed_health_checks > 0 {
                steps.push(Step::HealthFails(who));
            }
        }
        if machine.has_hook() {
            steps.push(Step::HookEnds(who));
        }
        self.enabled_faults_at(who, machine, steps);
        if machine.guard_start == GuardStart::Waits {
            steps.push(Step::StartGuard(who));
        }
        if machine.guard.life == Life::Dying {
            steps.push(Step::GuardWaited(who));
        }
    }

    /// Steps in which a supervisor that is awake receives data from Kafka.
    fn enabled_by_kafka(&self, who: Who, machine: &Machine, steps: &mut Vec<Step>) {
        if machine.reader.asked.is_some() {
            let is_late = machine.reader.answer.is_some();
            steps.push(if is_late { Step::AnswerLate(who) } else { Step::Answer(who) });
            if !is_late && self.faults.slow_answers > 0 {
                steps.push(Step::Capture(who));
            }
        }
        if !machine.is_judged && self.setup.judged_late {
            steps.push(Step::Judge(who));
        }
        if machine.identity_asked.is_some() && !machine.is_muted {
            steps.push(Step::Identify(who));
        }
        if self.faults.mutes > 0 && !machine.is_muted {
            steps.push(Step::Mute(who));
        }
        if machine.late_answer.is_some() {
            steps.push(Step::AnswerLate(who));
        }
        if machine.to_read(&self.log.part).is_some() {
            steps.push(if machine.reader.lags { Step::ReadLate(who) } else { Step::Read(who) });
            if self.faults.lags > 0 && !machine.reader.lags {
                steps.push(Step::Lag(who));
            }
        }
        if self.faults.questions > 0 && machine.late_answer.is_none() && machine.reader.next.is_some() {
            steps.push(Step::Ask(who));
        }
    }

    /// Faults that may affect a supervisor that is awake.
    fn enabled_faults_at(&self, who: Who, machine: &Machine, steps: &mut Vec<Step>) {
        // A guard that waits for its start can't do anything.
        let guard_works = machine.guard.life == Life::Awake || machine.guard_start == GuardStart::Waits;
        let alone_is_allowed = is_flawed(WorldFlaw::BothAsleep);
        if self.faults.pauses > 0 && (guard_works || alone_is_allowed) {
            steps.push(Step::Pause(who));
        }
        if self.faults.stops > 0 {
            steps.push(Step::Stop(who));
        }
        if self.faults.suspensions > 0 {
            steps.push(Step::Suspend(who));
        }
        if self.faults.resigns > 0 && machine.node.leads().is_some() {
            steps.push(Step::Resign(who));
        }
        if self.faults.crashes > 0 && guard_works {
            steps.push(Step::Crash(who));
        }
    }

    fn enabled_at_guard(&self, who: Who, machine: &Machine, steps: &mut Vec<Step>) {
        let guard = &machine.guard;
        let supervisor_works = machine.life == Life::Awake || is_flawed(WorldFlaw::BothAsleep);
        match guard.life {
            Life::Asleep => steps.push(Step::ResumeGuard(who)),
            Life::Awake => {
                let due = guard.due(self.setup.guard_late).is_some_and(|due| due <= self.now);
                if due || guard.has_news(machine.life == Life::Dead) {
                    steps.push(Step::GuardActs(who));
                }
                // With this flaw the supervisor itself starts the job, which it can only do when it is awake.
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
            if job.main && (job.is_asked || self.faults.exits > 0) {
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
        if faults.forgets > 0 {
            steps.push(Step::Forget);
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
        if faults.broker_ends > 0 {
            steps.push(Step::BrokerEnds);
        }
        if self.may_have_new_broker() {
            steps.push(Step::BrokerBegins);
        }
        if faults.unnoticed_remakes > 0 {
            steps.push(Step::RemakeUnnoticed);
        }
    }

    /// Retention by size does not depend on age.
    pub(super) fn cuts_young(&self) -> bool {
        self.setup.size_retention || is_flawed(WorldFlaw::YoungRecordsDeleted)
    }

    /// The time of the next due event.
    pub(super) fn next_time(&self) -> Option<Time> {
        let at = |who| {
            let machine: &Machine = self.machine(who)?;
            let supervisor = machine.due().filter(|_| machine.life != Life::Dead);
            let guard = machine.guard.due(self.setup.guard_late);
            [supervisor, guard].into_iter().flatten().filter(|due| *due > self.now).min()
        };
        (0..self.machines.len()).filter_map(at).min()
    }
}
