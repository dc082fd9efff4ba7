//! The main loop's part in signals and the terminal, for the supervisor and the candidate.

use std::io;
use std::time::Duration;

use neli_kafka::{Host, clock};
use neli_proto::node;
use neli_proto::supervisor::Event;
use neli_proto::time::Time;
use nix::libc::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGXCPU};
use nix::sys::signalfd::siginfo;
use nix::unistd::{self, Pid};
use tokio::io::Interest;

use crate::guard::Answer;
use crate::process::procfs::Procfs;
use crate::process::ready::Ready;
use crate::process::signals;
use crate::process::terminal::{self, Terminal};
use crate::report::events;
use crate::supervise::MainLoop;
use crate::supervise::role::Role;

const PROCESSOR_TIME: &str = "neli-run itself has used up its processor time (ulimit -t, LimitCPU=): at the hard limit the kernel kills it, the job is \
                              killed too, and another candidate leads; raise the limit, and set one for the job alone (prlimit --cpu=)";

/// How many signals are handled before other events are. It is more than there are signals of which only one can wait, and the kernel hands
/// out those before the real-time ones, of which any number can: so a stop never waits for these.
const SIGNALS_TOGETHER: usize = 64;

impl MainLoop {
    /// Handles the signals that have come, up to [`SIGNALS_TOGETHER`]. If there are more during the exit, they are real-time signals of the job's
    /// or of a stranger's.
    pub(super) fn handle_signals(&mut self) {
        for _ in 0..SIGNALS_TOGETHER {
            let Ok(Some(received)) = self.signals.read_signal() else { return };
            if number_of(&received) == SIGCHLD && self.ending.is_some() {
                self.reap_children();
            } else if number_of(&received) == SIGCHLD {
                self.handle_children();
            } else if number_of(&received) == SIGPIPE && received.ssi_pid == std::process::id() {
                // It is SIGPIPE: a pipe of this process is closed (the log's, for example), and the write itself has failed too.
            } else {
                self.handle_signal(&received);
                self.perform();
            }
        }
        self.is_unfinished = true;
    }

    /// Handles the hang-up of the terminal. The kernel signals only the foreground group, which is the job's after `neli-run` has handed it
    /// over.
    pub(super) fn handle_hangup(&mut self) {
        self.shell.hangup = None;
        if self.shell.terminal.was_handed_on() {
            self.logger.event(&events::signal(SIGHUP, None));
            self.nodes.tell_all(&node::Event::JobsTerminalGone);
        }
    }

    /// Passes on a signal, with the state that is needed to interpret it.
    fn handle_signal(&mut self, received: &siginfo) {
        // A positive code means the kernel.
        let typed = received.ssi_code > 0;
        let signal = number_of(received);
        if matches!(signal, SIGHUP | SIGINT | SIGQUIT | SIGTERM) || self.config.job.stop.signal == Some(signal) {
            let pid = Pid::from_raw(received.ssi_pid.cast_signed());
            let sender = (!typed).then(|| (Procfs::mounted().named(pid), received.ssi_uid));
            self.logger.event(&events::signal(signal, sender));
        }
        let by_terminal = match signal {
            SIGHUP => self.shell.had_terminal && !terminal::is_there(),
            SIGINT | SIGQUIT => typed,
            // The kernel sends these to the whole group: another process in it uses the terminal from the background.
            SIGTTIN | SIGTTOU if typed => return,
            // The kernel sends it for the processor time of this process, and again each second. The job has a limit of its own.
            SIGXCPU if typed => return self.warn_once(PROCESSOR_TIME),
            SIGTSTP => {
                let event = Event::SuspendSignal { continuable: terminal::is_continuable() };
                return self.nodes.tell_all(&node::Event::Job(event));
            }
            _ => false,
        };
        if !by_terminal {
            self.shell.passed_on = Some((signal, clock::now()));
        }
        let event = node::Event::Signal { signal, by_terminal };
        // It stops a process without a job. Beside a job it does not stop a role that has none.
        let is_for_jobs = signal == SIGQUIT && self.config.job.stop.signal != Some(SIGQUIT);
        if !is_for_jobs || !self.nodes.tell_some(&event, |_, role| role.node.supervisor().takes_signals()) {
            self.nodes.tell_all(&event);
        }
    }

    /// Notes the signal of which this process dies at its end. A key that was typed for one job of many ends the whole command.
    pub(super) fn dies_of(&mut self, role: usize, signal: i32, to_group: bool) {
        let to_group = to_group || self.shell.dies_of.is_some_and(|(_, to_group)| to_group);
        self.shell.dies_of = Some((signal, to_group));
        if to_group {
            let event = node::Event::Signal { signal, by_terminal: true };
            let goes_on = |role: &Role| role.ending.is_none() && !role.node.is_leaving();
            self.nodes.tell_some(&event, |other, of_other| other != role && goes_on(of_other));
        }
    }

    /// Handles the effect of a guard's answer on the terminal.
    pub(super) fn note_terminal(&mut self, role: usize, answer: &Answer) {
        if let Answer::Started { pid } | Answer::StartedUnseen { pid } = *answer {
            self.shell.terminal.belongs_to_job(Pid::from_raw(pid));
        } else if let Answer::Stopped { signal } = *answer {
            // Without a terminal no Ctrl-Z has stopped it, and the process group may be that of a script.
            let continuable = terminal::is_there() && terminal::is_continuable();
            let foreground = self.shell.terminal.foreground();
            self.job_event(role, Event::JobStopped { signal, foreground, continuable });
            self.perform();
        } else if let Answer::Exited { .. } = *answer
            && self.shell.hangup.is_some()
            && !terminal::is_there()
        {
            // The first process of the session has died. The kernel has hung up its terminal, and has woken nobody who waits for that.
            self.handle_hangup();
        }
    }

    /// Stops the process, whose roles are all suspended, and its whole group until SIGCONT; unless it exits, or is still leaving the group.
    pub(super) fn suspend_if_possible(&mut self) {
        // It leaves the group first, because the group would wait for a whole session for a member that only stops. The end of leaving
        // wakes the loop again.
        if self.ending.is_some() || self.nodes.session.is_leaving_group() {
            return;
        }
        self.logger.flush();
        // The shell may have ended meanwhile.
        if terminal::is_continuable() {
            let _ = terminal::stop_group();
        }
        // It goes on, also if it could not be stopped. The SIGCONT itself, which is read later, changes nothing more.
        self.nodes.tell_all(&node::Event::Signal { signal: SIGCONT, by_terminal: false });
        self.perform();
    }
}

fn number_of(received: &siginfo) -> i32 {
    received.ssi_signo.cast_signed()
}

/// The time that container engines give a container to stop, if nobody has set another.
const STOP_OF_CONTAINER: Duration = Duration::from_secs(10);

/// The main loop's state about its terminal and its shell.
pub(super) struct ShellState {
    pub(super) terminal: Terminal,
    /// Whether there was a terminal at the start.
    pub(super) had_terminal: bool,
    /// The hang-up of the terminal, if the kernel signals it only to the job, which has the foreground.
    pub(super) hangup: Option<Ready>,
    /// The signal of which the process must die at the end, and whether its whole group must.
    pub(super) dies_of: Option<(i32, bool)>,
    /// The last signal that was passed on to the jobs, and when.
    pub(super) passed_on: Option<(i32, Time)>,
}

impl ShellState {
    /// The state of this process. Must be called within a runtime.
    pub(super) fn new() -> Self {
        let is_signaled = terminal::may_be_handed_on() && !signals::ignored_at_start().contains(SIGHUP);
        Self {
            terminal: Terminal::of(unistd::getpgrp()),
            had_terminal: terminal::is_there(),
            hangup: if is_signaled { Ready::with(&io::stdin(), Interest::PRIORITY).ok() } else { None },
            dies_of: None,
            passed_on: None,
        }
    }

    /// The last signal that was passed on, if this is process 1 of a container, and it was passed on so recently that the job may have
    /// ended of it, and the container may be about to be killed.
    pub(super) fn take_container_signal(&mut self) -> Option<i32> {
        let is_recent = |(_, at): &(i32, Time)| clock::now().since(*at) < STOP_OF_CONTAINER;
        self.passed_on.take().filter(is_recent).filter(|_| unistd::getpid().as_raw() == 1).map(|(signal, _)| signal)
    }

    /// Dies of the terminal's signal, so that a script that called it ends too. Process 1 survives it, and so does a process under a
    /// debugger.
    pub(super) fn die_of_signal(&self) {
        if let Some((signal, to_group)) = self.dies_of {
            let _ = terminal::die_of(signal, to_group);
        }
    }
}
