//! Waits in the main loop until a descriptor is readable or was hung up.

use std::future;
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
    /// The readiness of `source` to be read, through a duplicate of its descriptor: both must be dropped together.
    ///
    /// # Errors
    ///
    /// There is no free descriptor, or this one can't be polled.
    pub(crate) fn of(source: &impl AsFd) -> io::Result<Self> {
        Self::with(source, Interest::READABLE)
    }

    /// The same for another interest: `PRIORITY` only reports a hang-up, for data that this process does not read.
    ///
    /// # Errors
    ///
    /// As for [`of`](Self::of).
    pub(crate) fn with(source: &impl AsFd, interest: Interest) -> io::Result<Self> {
        let descriptor = system::await_descriptor(source.as_fd().try_clone_to_owned()?, interest)?;
        Ok(Self { descriptor, interest })
    }

    /// Waits until it is readable or hung up, or a socket has room. The caller must then read until the read would block.
    pub(crate) async fn wait(&self) {
        acknowledge(self.descriptor.ready(self.interest).await);
    }

    /// [`wait`](Self::wait) as a poll function, for a task that waits for many descriptors. If several tasks wait for this one, only the
    /// last is woken.
    pub(crate) fn poll_wait(&self, context: &mut Context<'_>) -> Poll<()> {
        self.descriptor.poll_read_ready(context).map(acknowledge)
    }

    /// Waits until it has room, if that is of interest. The caller must then write until the write would block.
    pub(crate) fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        self.descriptor.poll_write_ready(context).map(acknowledge)
    }
}

/// Waits until it is readable or hung up; for ever if there is none.
pub(crate) async fn wait_for(ready: Option<&Ready>) {
    match ready {
        Some(ready) => ready.wait().await,
        None => future::pending().await,
    }
}

/// Acknowledges the state that was seen, so that any later change wakes the task.
fn acknowledge(ready: io::Result<AsyncFdReadyGuard<'_, OwnedFd>>) {
    // Only a runtime that ends returns an error.
    if let Ok(mut ready) = ready {
        ready.clear_ready();
    }
}
