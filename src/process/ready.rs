//! Waits until a descriptor is readable, or hung up, in the main loop.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::task::{Context, Poll};

use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};

use crate::process::system;

/// The readiness of one descriptor.
pub(crate) struct Ready {
    descriptor: AsyncFd<OwnedFd>,
    interest: Interest,
}

impl Ready {
    /// That of `source`, through a duplicate of its descriptor: drop both together.
    ///
    /// # Errors
    ///
    /// The kernel has no descriptor to spare, or can't poll this one.
    pub(crate) fn of(source: &impl AsFd) -> io::Result<Self> {
        Self::with(source, Interest::READABLE)
    }

    /// The same of a socket, and whether it has room for more.
    ///
    /// # Errors
    ///
    /// As for [`of`](Self::of).
    pub(crate) fn of_socket(source: &impl AsFd) -> io::Result<Self> {
        let ready = Self::with(source, Interest::READABLE.add(Interest::WRITABLE))?;
        Ok(Self { interest: Interest::READABLE, ..ready })
    }

    /// The same of its other side's end alone: what there is to be read is not for this process.
    ///
    /// # Errors
    ///
    /// As for [`of`](Self::of).
    pub(crate) fn of_hangup(source: &impl AsFd) -> io::Result<Self> {
        Self::with(source, Interest::PRIORITY)
    }

    fn with(source: &impl AsFd, interest: Interest) -> io::Result<Self> {
        let descriptor = system::await_descriptor(source.as_fd().try_clone_to_owned()?, interest)?;
        Ok(Self { descriptor, interest })
    }

    /// Waits until it is readable, or hung up. To be read then until it would block.
    pub(crate) async fn wait(&self) {
        self.wait_for(self.interest).await;
    }

    /// The same for a task that waits for many descriptors: of all tasks that wait for this one, the last is woken.
    pub(crate) fn poll_wait(&self, context: &mut Context<'_>) -> Poll<()> {
        self.descriptor.poll_read_ready(context).map(acknowledge)
    }

    /// Waits until a [socket](Self::of_socket) has room. To be written to then until it would block.
    pub(crate) fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        self.descriptor.poll_write_ready(context).map(acknowledge)
    }

    async fn wait_for(&self, interest: Interest) {
        acknowledge(self.descriptor.ready(interest).await);
    }
}

/// The state as it was seen: any later change wakes the task.
fn acknowledge(ready: io::Result<AsyncFdReadyGuard<'_, OwnedFd>>) {
    // Only a runtime that ends answers with an error.
    if let Ok(mut ready) = ready {
        ready.clear_ready();
    }
}
