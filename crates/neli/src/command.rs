//! What the election's thread is told by handles, leads and tasks.

use neli_proto::record::Offset;
use tokio::sync::mpsc::UnboundedSender;

/// What handles, leads and tasks want of the thread.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Command {
    /// The last task under a lead that ends has ended.
    Idle { term: Offset },
    /// Leave the election.
    Leave,
    /// Give this lead up.
    Resign { term: Offset },
}

/// The way to the thread for one of its elections.
#[derive(Clone, Debug)]
pub(crate) struct Commands {
    role: usize,
    sender: UnboundedSender<(usize, Command)>,
}

impl Commands {
    pub(crate) const fn new(role: usize, sender: UnboundedSender<(usize, Command)>) -> Self {
        Self { role, sender }
    }

    /// Hands it over, unless the thread has gone.
    pub(crate) fn send(&self, command: Command) {
        let _ = self.sender.send((self.role, command));
    }
}
