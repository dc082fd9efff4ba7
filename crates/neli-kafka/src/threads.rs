//! Threads, and what they share.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

/// The time until what lacked a thread is tried again.
pub const STARTED_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Starts a thread of this name.
///
/// # Errors
///
/// It can't be started.
pub(crate) fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

/// The value behind its lock. A thread that has panicked with it does not stop the others.
pub fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
