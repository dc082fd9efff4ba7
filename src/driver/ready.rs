//! Waits until a descriptor is readable, in the main loop.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use tokio::io::unix::AsyncFd;

use crate::driver::process;

/// The readiness of one descriptor.
pub struct Ready(AsyncFd<OwnedFd>);

impl Ready {
    /// That of `source`, through a duplicate of its descriptor: drop both together.
    ///
    /// # Errors
    ///
    /// The kernel has no descriptor to spare, or can't poll this one.
    pub fn of(source: &impl AsFd) -> io::Result<Self> {
        Ok(Self(process::await_descriptor(source.as_fd().try_clone_to_owned()?)?))
    }

    /// Waits until it is readable. To be read then until it would block.
    pub async fn wait(&self) {
        // Only a runtime that ends answers with an error.
        if let Ok(mut ready) = self.0.readable().await {
            ready.clear_ready();
        }
    }
}
