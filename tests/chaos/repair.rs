//! Repairs the faults, and stops all candidates at the end.

use std::time::Duration;

use harness::judge::History;
use harness::network::{Flow, LinkConditions};
use harness::wait;
use nix::sys::signal::Signal;

use crate::false_records;
use crate::run::{Run, Task};
use crate::slot::{Half, Slot};
use crate::stranger::Action;

impl Run<'_> {
    pub(crate) fn perform(&mut self, task: Task) {
        match task {
            Task::BeginBroker(broker) => {
                self.environment.cluster_to_change().broker(broker).launch();
                self.broken.insert(broker, Some(wait::now()));
                self.axis.note("chaos", format!("broker {broker} begins again"));
            }
            Task::Clear(slot, broker, conditions) => self.clear_conditions(slot, broker, conditions),
            Task::Continue(slot, supervisor) => {
                supervisor.signal(Signal::SIGCONT);
                self.slots[slot].is_stopped = false;
                self.slots[slot].was_struck(Half::Supervisor);
                self.axis.note("chaos", format!("{} goes on", self.slots[slot].name()));
            }
            Task::EmptyDisk(index) => self.empty_disk(index),
            Task::EndHog(hogs) => {
                for mut hog in hogs {
                    // Another fault may have killed it already.
                    let _ = hog.kill().and_then(|()| hog.wait());
                }
            }
            Task::KillAbandoned(role, job_run) => self.kill_abandoned(role, job_run),
            Task::Lose(slot, lasts) => {
                self.change_conditions(
                    slot,
                    None,
                    LinkConditions { there: Flow::Lost, ..LinkConditions::default() },
                    lasts,
                );
            }
            Task::Start(slot) => self.start(slot),
            Task::Stray(role, left) => {
                self.stranger.ask(Action::Write(role, false_records::stray(&self.group, role)));
                if left > 1 {
                    self.after(Duration::from_millis(100), Task::Stray(role, left - 1));
                }
            }
            Task::Strike(_) => {}
            Task::Term(index) => {
                let slot = &self.slots[index];
                if let Some(supervisor) = slot.supervisor() {
                    supervisor.signal(Signal::SIGTERM);
                    self.axis.note("chaos", format!("TERM to {}", slot.name()));
                }
            }
            Task::Thaw(broker) => {
                self.environment.cluster_to_change().broker(broker).thaw();
                self.broken.insert(broker, Some(wait::now()));
                self.axis.note("chaos", format!("broker {broker} goes on"));
            }
            Task::Undertake(broker) => {
                if self.environment.cluster().brokers()[broker].lives() {
                    return self.after(Duration::from_millis(100), Task::Undertake(broker));
                }
                self.axis.note("chaos", format!("broker {broker} has shut down"));
                self.environment.cluster_to_change().broker(broker).end();
                self.after(Duration::from_secs(1), Task::BeginBroker(broker));
            }
        }
    }

    fn clear_conditions(&mut self, slot: usize, broker: Option<usize>, conditions: LinkConditions) {
        let better = |was: Flow, is: Flow| if was == is { Flow::Open } else { is };
        for broker in self.wires(broker) {
            self.environment.wire(self.parameters, slot, broker, |wire| {
                let present = wire.conditions();
                wire.set(LinkConditions {
                    there: better(conditions.there, present.there),
                    back: better(conditions.back, present.back),
                    refuses: present.refuses && !conditions.refuses,
                    ..present
                });
            });
        }
        self.axis.note("chaos", format!("{conditions:?} is over for slot {slot}, broker {broker:?}"));
    }

    fn empty_disk(&mut self, index: usize) {
        let mut cluster = self.environment.cluster_to_change();
        let broker = cluster.broker(index);
        broker.empty_disk();
        let lives = broker.lives();
        if !lives {
            broker.end();
            broker.launch();
        }
        drop(cluster);
        self.broken.insert(index, Some(wait::now()));
        self.axis.note("chaos", format!("broker {index} has room again; it lived: {lives}"));
    }

    /// Kills the remaining processes of a job that has neither supervisor nor guard; the main process is not one of them.
    fn kill_abandoned(&mut self, role: usize, job_run: usize) {
        let left = self.histories[role].processes_of(job_run);
        let main = self.histories[role].job_runs[job_run].main;
        if left.iter().any(|process| process.pid == main) {
            self.violations.push(format!("the main process {main} outlived supervisor and guard"));
        }
        for process in left {
            process.signal(Signal::SIGKILL);
        }
    }

    /// Restarts a broker that has ended by itself, and checks those that were broken.
    pub(crate) fn look_at_brokers(&mut self) {
        for index in 0..self.parameters.brokers {
            let has_ended = {
                let cluster = self.environment.cluster();
                cluster.brokers()[index].is_begun() && !cluster.brokers()[index].lives()
            };
            if has_ended && !self.broken.contains_key(&index) {
                let mut cluster = self.environment.cluster_to_change();
                let broker = cluster.broker(index);
                self.axis.note("chaos", format!("broker {index} has ended by itself, and is started again"));
                broker.end();
                broker.launch();
            }
        }
        // A restarted broker counts as repaired when the topic has stored a record since.
        let stranger = &self.stranger;
        self.broken.retain(|_, since| since.is_none_or(|since| !stranger.was_taken_after(since)));
    }

    /// Repairs everything that is broken, at once.
    pub(crate) fn clear_up(&mut self) {
        self.term_at_lead = false;
        let tasks = std::mem::take(&mut self.tasks);
        self.agenda.clear();
        for (_, task) in tasks {
            // Faults that were planned for later are cancelled.
            if !matches!(task, Task::Lose(..) | Task::Stray(..)) {
                self.perform(task);
            }
        }
    }

    /// Stops all candidates, and checks that no process of a job is left.
    pub(crate) fn part(&mut self) {
        self.over = true;
        self.histories.iter_mut().for_each(History::expect_signals);
        self.axis.note("chaos", "TERM to all");
        for slot in &self.slots {
            slot.supervisor().iter().for_each(|supervisor| supervisor.signal(Signal::SIGTERM));
        }
        let end = wait::after(wait::PATIENCE);
        while self.slots.iter().any(|slot| slot.running.is_some()) && self.violations.is_empty() {
            while let Some(task) = self.next_due() {
                self.perform(task);
            }
            self.look();
            if wait::now() > end {
                let left: Vec<String> =
                    self.slots.iter().filter(|slot| slot.running.is_some()).map(Slot::name).collect();
                self.violations.push(format!("{left:?} do not go when told to"));
            }
        }
        for history in &mut self.histories {
            history.read();
            for job_run in history.open() {
                let left = history.processes_of(*job_run);
                if !left.is_empty() && !history.job_runs[*job_run].abandoned {
                    self.violations.push(format!("{left:?} are left when everybody has gone"));
                }
            }
        }
    }
}
