//! The terminal of this process, and the shell that started it.

use std::future;
use std::io;
use std::time::Duration;

use neli_kafka::clock;
use neli_proto::time::Time;
use nix::libc::SIGHUP;
use nix::unistd;

use crate::process::ready::Ready;
use crate::process::signals;
use crate::process::terminal::{self, Terminal};

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
    /// Whether the process must be stopped after it has left the group.
    pub(super) suspending: bool,
    /// The last signal that was passed on to the jobs, and when.
    pub(super) passed_on: Option<(i32, Time)>,
}

impl ShellState {
    /// The state of this process. Must be called within a runtime.
    pub(super) fn new(had_terminal: bool) -> Self {
        let is_signaled = terminal::may_be_handed_on() && !signals::ignored_at_start().contains(SIGHUP);
        Self {
            terminal: Terminal::of(unistd::getpgrp()),
            had_terminal,
            hangup: if is_signaled { Ready::of_hangup(&io::stdin()).ok() } else { None },
            dies_of: None,
            suspending: false,
            passed_on: None,
        }
    }

    /// The last signal that was passed on, if this is process 1 of a container, and it was passed on so recently that the job may have
    /// ended of it, and the container may be about to be killed.
    pub(super) fn take_container_signal(&mut self) -> Option<i32> {
        let is_recent = |(_, at): &(i32, Time)| clock::now().since(*at) < STOP_OF_CONTAINER;
        self.passed_on.take().filter(is_recent).filter(|_| unistd::getpid().as_raw() == 1).map(|(signal, _)| signal)
    }

    /// Waits for the terminal's hang-up. If that is not watched, waits for ever.
    pub(super) async fn hung_up(&self) {
        match &self.hangup {
            Some(hangup) => hangup.wait().await,
            None => future::pending().await,
        }
    }

    /// Dies of the terminal's signal, so that a script that called it ends too. Process 1 survives it, and so does a process under a
    /// debugger.
    pub(super) fn die_of_signal(&self) {
        if let Some((signal, to_group)) = self.dies_of {
            let _ = terminal::die_of(signal, to_group);
        }
    }
}
