//! Threads, and what they share.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, mem, thread};

use neli_proto::time::Time;

/// The time until what lacked a thread is tried again.
pub(crate) const STARTED_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Starts a thread of this name.
///
/// # Errors
///
/// It can't be started.
pub(crate) fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

/// Notes whether something could be started, and if not, when it is tried again. Returns why not, if that is new.
pub(crate) fn note_started(again_at: &mut Option<Time>, now: Time, started: io::Result<()>) -> Option<io::Error> {
    let lack = started.err();
    let is_known = mem::replace(again_at, lack.as_ref().map(|_| now + STARTED_AGAIN_AFTER)).is_some();
    lack.filter(|_| !is_known)
}

/// The value behind its lock. A thread that has panicked with it does not stop the others.
pub fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
