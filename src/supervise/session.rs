//! The terminal of this process, and the shell behind it.

use std::future;
use std::io;

use nix::libc::SIGHUP;
use nix::unistd;

use crate::process::ready::Ready;
use crate::process::signals;
use crate::process::terminal::{self, Terminal};

/// What the loop keeps of its session: the terminal, and the shell behind it.
pub(super) struct Session {
    pub(super) terminal: Terminal,
    /// There was a terminal at the start.
    pub(super) had_terminal: bool,
    /// Its end, where the kernel signals that only to the job, which has the foreground.
    pub(super) hangup: Option<Ready>,
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
