//! What the loop does with the guard and with signals, for the supervisor: orders and answers, its death, its orphans.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use nix::libc::{SIGCHLD, SIGKILL, SIGPIPE};
use nix::unistd;

use super::{PROGRAM, Run, translate};
use crate::driver::clock;
use crate::driver::guard::{Guard, Order};
use crate::driver::orphans::{Left, Orphans};
use crate::driver::process::{self, Fate};
use crate::driver::ready::Ready;
use crate::driver::signals::Signals;
use crate::logic::supervisor::Event;
use crate::text::reason;

impl Run {
    pub(super) fn order(&mut self, order: &Order) {
        // A guard that takes no more orders gives no more answers: the supervisor's watch sees that.
        let _ = self.guard.send(order);
    }

    pub(super) fn hear_guard(&mut self) {
        loop {
            match self.guard.receive() {
                Ok(Some((answer, descriptor))) => {
                    if descriptor.is_some() {
                        self.main = descriptor;
                    }
                    if let Some(event) = translate::answer(answer, self.supervisor.term(), &self.config) {
                        self.supervisor.handle(clock::now(), event);
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

    /// The guard's socket is closed: whatever it is, it guards no more.
    pub(super) fn guard_fell_silent(&mut self) {
        self.guard_is_silent = true;
        // It is dead, or about to be.
        let _ = self.guard.kill();
        if let Some(main) = &self.main {
            // It may have ended by itself.
            let _ = process::signal_pidfd(main.as_fd(), SIGKILL);
        }
        self.cgroup.iter().for_each(|cgroup| cgroup.kill());
    }

    pub(super) fn take_signals(&mut self, signals: &Signals) {
        while let Ok(Some(received)) = signals.read() {
            if received.signal == SIGCHLD {
                self.reap();
            } else if received.signal == SIGPIPE && received.sender == unistd::getpid().as_raw() {
                // A pipe of our own is closed (the log's, say), and the write has told us.
            } else {
                self.supervisor.handle_signal(clock::now(), received.signal);
                self.perform();
            }
        }
    }

    pub(super) fn reap(&mut self) {
        let reaped = process::reap();
        let guard = self.guard.pid();
        let mut guard_died = false;
        for change in &reaped.changes {
            if change.pid == guard {
                match change.fate {
                    Fate::Exited(_) | Fate::Killed(_) => guard_died = true,
                    // Somebody stopped it: it must go on.
                    Fate::Stopped(_) => {
                        let _ = self.guard.cont();
                    }
                }
            }
        }
        if guard_died {
            // What it said before it died is still to be heard.
            self.hear_guard();
            self.supervisor.handle(clock::now(), Event::GuardDied);
            self.perform();
        } else {
            self.kill_orphans();
        }
    }

    /// The guard is dead: what it left is ours, by the subreaper's right.
    pub(super) fn inherit_orphans(&mut self) {
        let spared = self.own_children.clone();
        let (main, cgroup) = (self.main.take(), self.cgroup.clone());
        self.orphans = Some(Orphans::new(clock::now(), spared, main, cgroup, self.config.timings.lease));
        self.kill_orphans();
    }

    /// Called again at each child's end, and when it is time.
    pub(super) fn kill_orphans(&mut self) {
        let Some(orphans) = &mut self.orphans else { return };
        let now = clock::now();
        let event = match orphans.kill(now) {
            Left::Nothing => Event::Gone,
            Left::Something => return,
            Left::Stuck(pids) => Event::Stuck { pids: pids.into_iter().filter_map(translate::number_of).collect() },
        };
        if event == Event::Gone {
            self.orphans = None;
        }
        self.supervisor.handle(now, event);
    }

    /// A new guard remembers no term, and knows the address that the embedded broker has now.
    pub(super) fn renew_guard(&mut self) {
        self.guard_is_outdated = false;
        // Nothing of that history is to be released any more; the old one ends with its socket.
        self.order(&Order::Released { term: self.supervisor.term() });
        self.charge.release = super::means_of_release(&self.config, &self.access);
        self.start_guard();
    }

    pub(super) fn start_guard(&mut self) {
        let started = Guard::start(Path::new(PROGRAM), &self.charge);
        match started.and_then(|guard| Ok((Ready::of(&guard)?, guard))) {
            Ok((ready, guard)) => (self.guard_ready, self.guard, self.guard_is_silent) = (ready, guard, false),
            Err(error) => {
                self.refuse(format!("the guard can't be started again: {}", reason(&error)));
            }
        }
    }
}
