//! What the loop does with signals and the terminal, for the supervisor and the candidate.

use std::future;
use std::io;
use std::mem;

use neli_proto::node;
use neli_proto::supervisor::Event;
use nix::libc::{SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU};
use nix::unistd::{self, Pid};

use super::MainLoop;
use super::role::Role;
use crate::guard::Answer;
use crate::process::ready::Ready;
use crate::process::signals::{self, ReceivedSignal, Signals};
use crate::process::terminal::{self, Terminal};

/// What the loop keeps of its session: the terminal, and the shell behind it.
pub(super) struct Session {
    pub(super) terminal: Terminal,
    /// There was a terminal at the start.
    had_terminal: bool,
    /// Its end, where the kernel signals that only to the job, which has the foreground.
    hangup: Option<Ready>,
    /// What is to be died of at the end: a signal, and whether all of the group is.
    pub(super) dies_of: Option<(i32, bool)>,
    /// The process is to be stopped, once the group is left.
    pub(super) suspending: bool,
}

impl Session {
    /// That of this process, within a runtime.
    pub(super) fn new(had_terminal: bool) -> Self {
        let is_signaled = terminal::may_be_handed_on() && !signals::ignored_at_start().contains(SIGHUP);
        Self {
            terminal: Terminal::of(unistd::getpgrp()),
            had_terminal,
            hangup: if is_signaled { Ready::of_hangup(&io::stdin()).ok() } else { None },
            dies_of: None,
            suspending: false,
        }
    }

    /// Waits for the terminal's end; for ever, where that is not watched.
    pub(super) async fn hung_up(&self) {
        match &self.hangup {
            Some(hangup) => hangup.wait().await,
            None => future::pending().await,
        }
    }

    /// Dies of the terminal's signal, so that a script around it ends too. Process 1 survives it, and so does one under a debugger.
    pub(super) fn die_of_signal(&self) {
        if let Some((signal, to_group)) = self.dies_of {
            let _ = terminal::die_of(signal, to_group);
        }
    }
}

impl MainLoop {
    pub(super) fn handle_signals(&mut self, signals: &Signals) {
        while let Ok(Some(received)) = signals.read() {
            if received.signal == SIGCHLD {
                self.handle_children();
            } else if received.signal == SIGPIPE && received.sender == unistd::getpid().as_raw() {
                // A pipe of our own is closed (the log's, for example), and the write has failed for it.
            } else {
                self.handle_signal(received);
                self.perform();
            }
        }
    }

    /// The same when nothing is left but to go.
    pub(super) fn handle_last_signals(&mut self, signals: &Signals) {
        while let Ok(Some(received)) = signals.read() {
            if received.signal == SIGCHLD {
                self.reap_children();
            } else {
                self.handle_signal(received);
            }
        }
    }

    /// The kernel signals only the foreground group, into which `neli-run` has put the job in its own place.
    pub(super) fn handle_hangup(&mut self) {
        self.session.hangup = None;
        if self.session.terminal.was_handed_on() {
            self.nodes.tell_all(&node::Event::JobsTerminalGone);
        }
    }

    /// A signal, with what has to be looked at to know its meaning.
    fn handle_signal(&mut self, received: ReceivedSignal) {
        let typed = received.code > 0;
        let event = match received.signal {
            SIGHUP if self.session.had_terminal && !terminal::is_there() => Event::TerminalGone,
            signal @ (SIGINT | SIGQUIT) if typed => Event::Typed { signal },
            // The kernel's are sent to the whole group: another process in it wants the terminal from the background.
            SIGTTIN | SIGTTOU if typed => return,
            SIGTSTP => Event::SuspendSignal { continuable: terminal::is_continuable() },
            signal => return self.nodes.tell_all(&node::Event::Signal { signal }),
        };
        self.nodes.tell_all(&node::Event::Job(event));
    }

    /// What an answer of the guard means for the terminal.
    pub(super) fn note_terminal(&mut self, at: usize, answer: &Answer) {
        match *answer {
            Answer::Started { pid } | Answer::StartedUnseen { pid } => {
                self.session.terminal.belongs_to_job(Pid::from_raw(pid));
            }
            Answer::Stopped { signal } => {
                let (foreground, continuable) = (self.session.terminal.foreground(), terminal::is_continuable());
                let event = Event::JobStopped { signal, foreground, continuable };
                self.job_event(at, event);
                self.perform();
            }
            Answer::Accepted { .. }
            | Answer::CommandEnded { .. }
            | Answer::Exited { .. }
            | Answer::Extended { .. }
            | Answer::Fenced { .. }
            | Answer::Gone
            | Answer::Killed
            | Answer::LeftBehind { .. }
            | Answer::NoRun { .. }
            | Answer::NotStarted { .. }
            | Answer::StillKilling
            | Answer::Stuck { .. } => {}
        }
    }

    /// Stops the process and its whole group until SIGCONT.
    pub(super) fn suspend_if_due(&mut self) {
        // A member that just stops would hold up the others for a session. Its end turns the loop again.
        if self.nodes.session.is_leaving_group()
            || !mem::take(&mut self.session.suspending)
            || !self.nodes.roles.iter().all(Role::is_suspended)
        {
            return;
        }
        self.logger.flush();
        // The shell may have gone meanwhile.
        if !terminal::is_continuable() || terminal::stop_group().is_err() {
            self.nodes.tell_all(&node::Event::Continued);
            self.perform();
        }
    }
}
