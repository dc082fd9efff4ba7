//! What the loop does with the guard and with signals, for the supervisor: orders and answers, its death, its orphans.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use neli::clock;
use neli_proto::node;
use neli_proto::supervisor::Event;
use nix::libc::{SIGCHLD, SIGKILL, SIGPIPE};
use nix::unistd::{self, Pid};

use super::commands::RunningHook;
use super::{PROGRAM, Run, translate};
use crate::guard::{Answer, GuardHandle, Order, Received};
use crate::process::procfs;
use crate::process::ready::Ready;
use crate::process::reap::{self, Change, WaitStatus};
use crate::process::signals::Signals;
use crate::process::system;
use crate::report::notes;
use crate::supervise::orphans::{Left, Orphans};
use crate::text::reason;

impl Run {
    pub(super) fn order(&mut self, order: &Order) {
        match order {
            Order::Spawn { .. } => {
                self.session.terminal.forget_job();
                if self.guard_config.foreground {
                    self.session.terminal.about_to_hand_on();
                }
            }
            Order::HandOn => drop(self.session.terminal.about_to_hand_on()),
            Order::Command { .. }
            | Order::Kill
            | Order::Lease(_)
            | Order::Over { .. }
            | Order::Released { .. }
            | Order::Signal { .. }
            | Order::Stop { .. }
            | Order::TakeBack => {}
        }
        // What it has no room for waits. That it takes nothing more the supervisor's watch sees: no answers come either.
        let _ = self.guard.send(order);
    }

    pub(super) fn hear_guard(&mut self) {
        loop {
            // What comes with the news of a start must not be lost for want of a number.
            self.reserve.give_up();
            let heard = self.guard.receive();
            self.reserve.fill();
            match heard {
                Ok(Some(Received { answer, descriptor, is_descriptor_lost })) => {
                    self.note_terminal(&answer);
                    if let Answer::Started { pid } = answer {
                        self.main = descriptor;
                        if is_descriptor_lost {
                            self.started_unseen(pid);
                            continue;
                        }
                    }
                    if let Answer::LeftBehind { processes, count, killed } = &answer {
                        self.logger.event(&notes::of_left_behind(processes, *count, *killed));
                    }
                    if let Answer::CommandEnded { kind, id, end } = answer {
                        self.command_ended(kind, id, end);
                        self.perform();
                    } else if let Some(event) = translate::answer(answer, self.node.term(), &self.config) {
                        self.hear_of_job(event);
                        self.perform();
                    }
                }
                // Its end is told by SIGCHLD: end of file is reason to kill, never to release.
                Ok(None) => return self.guard_fell_silent(),
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
                Err(_) => return,
            }
        }
    }

    /// Without its descriptor a job can't be killed once its guard is dead: that is no run.
    fn started_unseen(&mut self, pid: i32) {
        let error =
            "a job was started, and is killed again: no descriptor was left to watch it by (ulimit -n); that counts \
                     as a failed run"
                .to_owned();
        let event = Event::StartedUnseen { pid: u32::try_from(pid).unwrap_or_default(), error };
        self.hear_of_job(event);
        self.perform();
    }

    /// Something has happened to the job.
    pub(super) fn hear_of_job(&mut self, event: Event) {
        self.node.handle(clock::now(), node::Event::Job(event));
    }

    /// The guard's socket is closed: whatever it is, it guards no more.
    pub(super) fn guard_fell_silent(&mut self) {
        self.guard_is_silent = true;
        // It is dead, or about to be.
        let _ = self.guard.kill();
        if let Some(main) = &self.main {
            // It may have ended by itself.
            let _ = system::signal_pidfd(main.as_fd(), SIGKILL);
        }
        self.cgroup.iter().for_each(|cgroup| cgroup.kill());
    }

    /// The guard does not answer. It may take long to die (in state D, frozen), and its job must not wait for that.
    pub(super) fn kill_hung_guard(&mut self) {
        // It may be dead already, which SIGCHLD tells.
        let _ = self.guard.kill();
        // Who can't read /proc finds nothing to kill.
        self.reserve.give_up();
        let main = self.main.as_ref().and_then(|main| main.try_clone().ok());
        let lease = self.config.timings.lease;
        if !self.guard.was_waited_for() {
            let orphans = Orphans::beside(self.guard.pid(), clock::now(), main, self.cgroup.clone(), lease);
            self.orphans = Some(orphans);
            self.kill_orphans();
        }
    }

    pub(super) fn take_signals(&mut self, signals: &Signals) {
        while let Ok(Some(received)) = signals.read() {
            if received.signal == SIGCHLD {
                self.reap();
            } else if received.signal == SIGPIPE && received.sender == unistd::getpid().as_raw() {
                // A pipe of our own is closed (the log's, say), and the write has told us.
            } else {
                self.take_signal(received);
                self.perform();
            }
        }
    }

    /// The same when nothing is left but to go.
    pub(super) fn take_last_signals(&mut self, signals: &Signals) {
        while let Ok(Some(received)) = signals.read() {
            if received.signal == SIGCHLD {
                self.reap_children();
            } else {
                self.take_signal(received);
            }
        }
    }

    pub(super) fn reap(&mut self) {
        let changes = self.reap_children();
        let guard = self.guard.pid();
        let mut guard_died = false;
        for change in changes.iter().filter(|change| change.pid == guard) {
            match change.status {
                WaitStatus::Exited(_) | WaitStatus::Killed(_) => guard_died = true,
                // Somebody stopped it: it must go on.
                WaitStatus::Stopped(_) => {
                    let _ = self.guard.cont();
                }
            }
        }
        if guard_died {
            // What it said before it died is still to be heard.
            self.hear_guard();
            self.hear_of_job(Event::GuardDied);
            self.perform();
        } else {
            self.kill_orphans();
        }
    }

    /// Waits for every child that has ended; what was ours alone is no longer taken for it.
    pub(super) fn reap_children(&mut self) -> Vec<Change> {
        let brokers = self.brokers_started.clone();
        // One that ends at once is on the list before it is waited for.
        let mut brokers = brokers.lock();
        let changes = reap::reap_after(|ended| self.end_hook_group(ended)).changes;
        for change in &changes {
            self.observe_hook(change);
            match change.status {
                WaitStatus::Exited(_) | WaitStatus::Killed(_) => {
                    brokers.retain(|child| *child != change.pid);
                    if change.pid == self.guard.pid() {
                        self.guard.note_waited_for();
                    }
                }
                WaitStatus::Stopped(_) => {}
            }
        }
        // Another thread's, as those that follow one that was gone are, and nobody else waits for them.
        brokers.retain(|child| !reap::reap_one(*child));
        changes
    }

    /// The guard is dead: what it left is ours, by the subreaper's right.
    pub(super) fn inherit_orphans(&mut self) {
        // Who can't read /proc finds nothing to kill.
        self.reserve.give_up();
        let (main, cgroup) = (self.main.take(), self.cgroup.clone());
        self.orphans = Some(Orphans::new(clock::now(), main, cgroup, self.config.timings.lease));
        self.kill_orphans();
    }

    /// Called again at each child's end, and when it is time.
    pub(super) fn kill_orphans(&mut self) {
        let Some(mut orphans) = self.orphans.take() else { return };
        match self.kill_what_is_left(&mut orphans) {
            Left::Nothing => {
                self.reserve.fill();
                self.session.terminal.take_back();
                self.hear_of_job(Event::Gone);
            }
            Left::Something => self.orphans = Some(orphans),
            Left::Stuck(pids) => {
                self.orphans = Some(orphans);
                let pids = pids.into_iter().filter_map(translate::number_of).collect();
                self.hear_of_job(Event::Stuck { pids });
            }
        }
    }

    fn kill_what_is_left(&mut self, orphans: &mut Orphans) -> Left {
        {
            // None is started between the look at the list and the look at what there is to be killed.
            let brokers = self.brokers_started.lock();
            orphans.spare(self.strangers_to_the_job(&brokers));
            orphans.kill(clock::now());
        }
        // The guard's death must be told where it is waited for.
        if !orphans.have_guard() {
            self.reap_children();
        }
        // The number of one that was waited for may be an orphan's by now.
        let brokers = self.brokers_started.lock();
        orphans.spare(self.strangers_to_the_job(&brokers));
        orphans.left(clock::now())
    }

    /// Our children that are no part of a job, and were not waited for.
    fn strangers_to_the_job(&self, brokers: &[Pid]) -> Vec<Pid> {
        let hooks = self.running_hooks.iter().map(RunningHook::pid);
        brokers.iter().copied().chain(hooks).chain(procfs::children_of_other_threads()).collect()
    }

    /// A new guard remembers no term, and knows the address that the embedded broker has now.
    pub(super) fn renew_guard(&mut self) {
        // The old one ends with its socket.
        self.guard_config.release = super::means_of_release(&self.config, &self.access);
        self.start_guard();
    }

    pub(super) fn start_guard(&mut self) {
        self.reserve.give_up();
        let started = GuardHandle::start(Path::new(PROGRAM), &self.guard_config);
        let started = started.and_then(|guard| Ok((Ready::of_socket(&guard)?, guard)));
        self.reserve.fill();
        match started {
            Ok((ready, guard)) => (self.guard_ready, self.guard, self.guard_is_silent) = (ready, guard, false),
            Err(error) => {
                self.refuse(format!("the guard can't be started again: {}", reason(&error)));
            }
        }
    }
}
