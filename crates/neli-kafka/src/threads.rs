//! Threads, and what they share.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use std::{io, mem, thread};

use neli_proto::time::Time;
use nix::unistd::gettid;

use crate::clock;

/// The time until what lacked a thread is tried again.
pub(crate) const STARTED_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Starts a thread of this name.
///
/// # Errors
///
/// It can't be started.
pub(crate) fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

/// The usual stack of a C library's thread. The C library keeps it for the next thread.
const USUAL_STACK: usize = 8 << 20;

/// Starts so many threads at once, and waits until they are gone and no limit counts them any more.
///
/// # Errors
///
/// One of them can't be started.
pub(crate) fn try_some(count: usize) -> io::Result<()> {
    let gate = Arc::new(Mutex::new(()));
    let closed = locked(&gate);
    let mut started = Vec::new();
    let all_started = (0..count).try_for_each(|_| {
        let gate = Arc::clone(&gate);
        let wait = move || {
            drop(locked(&gate));
            gettid()
        };
        started.push(Builder::new().stack_size(USUAL_STACK).spawn(wait)?);
        Ok(())
    });
    drop(closed);
    let gone_by = clock::now() + STARTED_AGAIN_AFTER;
    for id in started.into_iter().filter_map(|thread| thread.join().ok()) {
        let task = PathBuf::from(format!("/proc/self/task/{id}"));
        while task.exists() && clock::now() < gone_by {
            thread::yield_now();
        }
    }
    all_started
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
