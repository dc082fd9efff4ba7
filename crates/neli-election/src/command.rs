//! The commands of handles, leads and tasks to the election's thread.

use neli_proto::record::Offset;
use tokio::sync::mpsc::UnboundedSender;

/// A command to the thread.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Command {
    /// The callback before a release was called, or should have been, and is not finished.
    CallbackUnfinished(Unfinished),
    /// The last task under a lead that ends has ended.
    Idle { term: Offset },
    /// Leave the election.
    Leave,
    /// Leave the election, as all other elections of the process.
    LeaveWithAll,
    /// Give this lead up.
    Resign { term: Offset },
}

/// Why the callback before a release is not finished.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unfinished {
    /// It was dropped: its time or the lease is over, or the runtime has ended.
    Dropped,
    /// The runtime has not begun it in its time, or has ended.
    NotBegun,
    /// It has panicked.
    Panicked,
}

/// Sends commands to the thread for one of its elections.
#[derive(Clone, Debug)]
pub(crate) struct Commands {
    role: usize,
    sender: UnboundedSender<(usize, Command)>,
}

impl Commands {
    pub(crate) const fn new(role: usize, sender: UnboundedSender<(usize, Command)>) -> Self {
        Self { role, sender }
    }

    /// Sends a command, unless the thread has ended.
    pub(crate) fn send(&self, command: Command) {
        let _ = self.sender.send((self.role, command));
    }
}
