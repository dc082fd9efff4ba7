//! One run of the job, from the fork until nothing is left of it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use neli_proto::flaw::{Flaw, broken};
use neli_proto::time::Time;
use nix::errno::Errno;
use nix::libc::{SIGCONT, SIGKILL, SIGTSTP};
use nix::unistd::Pid;

use crate::driver::guard::forwarded::Forwarded;
use crate::driver::guard::message::{Answer, Step, Target};
use crate::driver::guard::outbox::Outbox;
use crate::driver::killing::Killing;
use crate::driver::process::{self, Change, Fate, Newborn, Progress, Reaped};
use crate::driver::terminal::Terminal;
use crate::driver::tree::{Named, Tree};

/// How many numbers fit into an answer.
const MOST_STUCK: usize = 200;
/// How many processes are told by name; an answer holds more, and a line of the log is to be read.
const MOST_NAMED: usize = 20;

/// A job, and all that descends from it.
#[derive(Debug)]
pub(super) struct Run {
    /// The main process, until it was waited for.
    main: Option<Pid>,
    /// The same, until it has executed.
    newborn: Option<Newborn>,
    /// Signals for when it has.
    held_back: Forwarded,
    /// Why it could not.
    failure: Option<Answer>,
    /// The process group that was asked to stop: that of the main process, whose number nobody else gets while it has members.
    asked: Option<Pid>,
    /// When the barrier ends.
    kill_at: Option<Time>,
    /// Once SIGKILL was sent.
    killing: Option<Killing>,
    /// What is still there this long after SIGKILL is stuck.
    patience: Duration,
    is_stuck: bool,
}

impl Run {
    /// The run of a job that was just forked.
    pub(super) fn new(newborn: Newborn, patience: Duration) -> Self {
        Self {
            main: Some(newborn.pid),
            newborn: Some(newborn),
            held_back: Forwarded::default(),
            failure: None,
            asked: None,
            kill_at: None,
            killing: None,
            patience,
            is_stuck: false,
        }
    }

    /// Becomes readable when the job has executed or failed to; `None` when it has.
    pub(super) fn progress_fd(&self) -> Option<BorrowedFd<'_>> {
        self.newborn.as_ref().map(AsFd::as_fd)
    }

    /// When there is something to do.
    pub(super) fn due(&self) -> Option<Time> {
        self.killing.as_ref().map_or(self.kill_at, |killing| Some(killing.again_at()))
    }

    /// Whether its main process was not waited for.
    pub(super) fn has_main(&self) -> bool {
        self.main.is_some()
    }

    /// Whether SIGKILL was sent.
    pub(super) fn is_being_killed(&self) -> bool {
        self.killing.is_some()
    }

    /// Gives it the terminal's foreground, if that is to be had, and lets it go on.
    pub(super) fn hand_on(&mut self, terminal: &mut Terminal) {
        if self.main.is_some() {
            terminal.hand_on();
            self.signal(SIGCONT, Target::Group);
        }
    }

    /// Whether it was said that something of it can't be killed.
    pub(super) fn is_stuck(&self) -> bool {
        self.is_stuck
    }

    /// Passes a signal on, as soon as the job has executed.
    pub(super) fn signal(&mut self, signal: i32, to: Target) {
        let Some(main) = self.main else { return };
        if self.newborn.is_some() {
            return self.held_back.put(signal, to);
        }
        // It may have ended, and may have become another user's: how it goes on is told by its end alone.
        let _ = match to {
            Target::Main => process::signal(main, signal),
            // It may have left its own group.
            Target::Group => process::signal_group(main, signal).or_else(|_| process::signal(main, signal)),
        };
    }

    /// Begins the barrier: asks it to stop, and notes when SIGKILL comes.
    pub(super) fn stop(&mut self, signal: Option<i32>, kill_at: Time, tree: &Tree, outbox: &mut Outbox) {
        self.kill_at = Some(kill_at);
        let Some(signal) = signal else { return };
        if self.main.is_some() {
            self.asked = self.main;
            self.signal(signal, Target::Group);
            self.signal(SIGCONT, Target::Group);
        } else {
            // Many a program ends at once when it is asked twice.
            tell_left_behind(tree.signal_but(self.asked, &[signal, SIGCONT]), false, outbox);
        }
    }

    /// SIGKILL to all of it, now and until nothing is left.
    pub(super) fn kill(&mut self, now: Time, tree: &Tree) {
        if let Some(main) = self.main {
            // The group first: one call, and for most jobs it is all of it. The rest is the tree's.
            let _ = process::signal_group(main, SIGKILL);
        }
        let killing = self.killing.get_or_insert_with(|| Killing::new(now, self.patience));
        if !broken(Flaw::GuardForgetsTree) {
            killing.kill(now, tree);
        }
    }

    /// Does what is due at `now`. `look_until`: how long it may take to name what is killed, where there is time for that.
    pub(super) fn handle_timeout(&mut self, now: Time, tree: &Tree, look_until: Option<Time>, outbox: &mut Outbox) {
        if self.due().is_none_or(|due| due > now) {
            if let Some(killing) = self.killing.as_mut().filter(|_| !broken(Flaw::GuardForgetsTree)) {
                // Who has died may have left children, which are ours now.
                killing.kill(now, tree);
            }
            return;
        }
        if self.killing.is_none() {
            outbox.put(Answer::Killed, None);
            if let Some(end) = look_until.filter(|_| self.main.is_none()) {
                tell_left_behind(tree.named_members(end), true, outbox);
            }
        }
        self.kill(now, tree);
        if let Some(pids) = self.killing.as_mut().and_then(|killing| killing.stuck(now, tree)) {
            let pids = pids.into_iter().take(MOST_STUCK).map(Pid::as_raw).collect();
            outbox.put(Answer::Stuck { pids }, None);
            self.is_stuck = true;
        }
    }

    /// Looks whether the job has executed.
    pub(super) fn observe_start(&mut self, outbox: &mut Outbox) {
        let Some(newborn) = &self.newborn else { return };
        let not_started = |errno: Errno, at| Some(Answer::NotStarted { errno: errno as i32, at });
        match newborn.progress() {
            Progress::Pending => return,
            Progress::Executed => outbox.put(Answer::Started { pid: newborn.pid.as_raw() }, pidfd_of(newborn.pid)),
            Progress::Failed(errno) => self.failure = not_started(errno, Step::Exec),
            Progress::Late => self.failure = not_started(Errno::ETIME, Step::InTime),
        }
        self.newborn = None;
        while let Some((signal, to)) = self.held_back.take_first() {
            self.signal(signal, to);
        }
    }

    /// Takes note of what happened to children; `left` says whether something is left of the job.
    pub(super) fn observe_children(
        &mut self,
        reaped: &Reaped,
        left: impl Fn() -> bool,
        terminal: &Terminal,
        outbox: &mut Outbox,
    ) {
        let Some(main) = self.main else { return };
        for Change { fate, .. } in reaped.changes.iter().filter(|change| change.pid == main) {
            let (code, signal) = match *fate {
                Fate::Exited(code) => (Some(code), None),
                Fate::Killed(signal) => (None, Some(signal)),
                Fate::Stopped(signal) => {
                    if self.newborn.is_some() && signal == SIGTSTP {
                        // What is to become of it waits for it to execute.
                        let _ = process::signal(main, SIGCONT);
                    }
                    if self.killing.is_none() {
                        outbox.put(Answer::Stopped { signal }, None);
                    }
                    continue;
                }
            };
            // Whether it had executed is certain only now.
            self.observe_start(outbox);
            self.main = None;
            // As a shell does, whatever the job has left behind.
            let foreground = terminal.take_back();
            if self.failure.is_none() {
                outbox.put(Answer::Exited { code, signal, left: left(), foreground }, None);
            }
        }
    }

    /// Why the job could not be started.
    pub(super) fn into_failure(self) -> Option<Answer> {
        self.failure
    }
}

fn tell_left_behind(mut processes: Vec<Named>, killed: bool, outbox: &mut Outbox) {
    let count = processes.len();
    if count > 0 {
        processes.truncate(MOST_NAMED);
        outbox.put(Answer::LeftBehind { processes, count, killed }, None);
    }
}

fn pidfd_of(pid: Pid) -> Option<OwnedFd> {
    process::open_pidfd(pid).ok()
}
