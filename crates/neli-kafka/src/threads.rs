//! Threads, and what they share.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use std::{io, mem, thread};

use neli_proto::time::Time;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
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

/// The stack of a thread that a library starts, in bytes. glibc gives the memory of an ended thread's stack to the next thread of that size.
fn stack_of_others() -> usize {
    const WITHOUT_LIMIT: u64 = 2 << 20;
    let limit = getrlimit(Resource::RLIMIT_STACK).map_or(WITHOUT_LIMIT, |(soft, _)| soft);
    usize::try_from(if limit == RLIM_INFINITY { WITHOUT_LIMIT } else { limit }).unwrap_or(usize::MAX)
}

/// Checks that a library can start so many threads at once: starts them, and waits until they have ended and no limit counts them any more, for a
/// second at most. Another process may take what is free then.
///
/// # Errors
///
/// One of them can't be started.
pub(crate) fn check_room_for(count: usize) -> io::Result<()> {
    // None of them ends before all have been started.
    let all_started = Arc::new(Mutex::new(()));
    let not_yet = locked(&all_started);
    let (mut started, stack) = (Vec::new(), stack_of_others());
    let result = (0..count).try_for_each(|_| {
        let all_started = Arc::clone(&all_started);
        let wait = move || {
            drop(locked(&all_started));
            gettid()
        };
        started.push(Builder::new().stack_size(stack).spawn(wait)?);
        Ok(())
    });
    drop(not_yet);
    let gone_by = clock::now() + STARTED_AGAIN_AFTER;
    for id in started.into_iter().filter_map(|thread| thread.join().ok()) {
        let task = PathBuf::from(format!("/proc/self/task/{id}"));
        while task.exists() && clock::now() < gone_by {
            thread::yield_now();
        }
    }
    result
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
