//! The C library's conditions as librdkafka uses them, but by a clock that nobody sets.
//!
//! librdkafka waits by `cnd_timedwait` until times of the wall clock. If that is set back, each wait that has begun lasts as much longer, so its
//! threads neither connect nor answer for hours (its issue 2145). It is linked statically, so the linker takes these two functions for it and not
//! the C library's. Both C libraries of Linux make a `cnd_t` what a `pthread_cond_t` is, and a `mtx_t` what a `pthread_mutex_t` is.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;

use nix::libc::{
    CLOCK_MONOTONIC, ETIMEDOUT, pthread_cond_init, pthread_cond_t, pthread_cond_timedwait, pthread_condattr_destroy,
    pthread_condattr_init, pthread_condattr_setclock, pthread_mutex_t, timespec,
};
use nix::sys::time::TimeSpec;

use crate::clock;

/// C11's results of both functions (`<threads.h>`, the same in glibc and musl).
const SUCCESS: c_int = 0;
const ERROR: c_int = 2;
const TIMED_OUT: c_int = 4;

/// C11's function, for waits by `CLOCK_MONOTONIC`.
///
/// # Safety
///
/// The pointer is to memory for a condition.
#[unsafe(no_mangle)]
unsafe extern "C" fn cnd_init(condition: *mut pthread_cond_t) -> c_int {
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: the attributes are initialized before they are used, and the caller promises the rest.
    let is_done = unsafe {
        pthread_condattr_init(attributes.as_mut_ptr()) == 0
            && pthread_condattr_setclock(attributes.as_mut_ptr(), CLOCK_MONOTONIC) == 0
            && pthread_cond_init(condition, attributes.as_ptr()) == 0
            && pthread_condattr_destroy(attributes.as_mut_ptr()) == 0
    };
    if is_done { SUCCESS } else { ERROR }
}

/// C11's function: waits until a time of the wall clock, as it is set when this is called.
///
/// # Safety
///
/// The condition is one of [`cnd_init`]; this thread holds the mutex; the time may be read.
#[unsafe(no_mangle)]
unsafe extern "C" fn cnd_timedwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: the caller promises it.
    let until = clock::monotonic_of_wall(TimeSpec::from_timespec(unsafe { *until }));
    // SAFETY: the caller promises it.
    match unsafe { pthread_cond_timedwait(condition, mutex, ptr::from_ref(until.as_ref())) } {
        0 => SUCCESS,
        ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nix::libc::{PTHREAD_MUTEX_INITIALIZER, pthread_mutex_lock};

    use super::*;

    /// By the wall clock, which shows more, the first time would be over for long.
    #[test]
    fn a_wait_ends_at_its_time_by_a_clock_that_nobody_sets() {
        const WAIT: Duration = Duration::from_millis(50);
        let (mut condition, mut mutex) = (MaybeUninit::uninit(), PTHREAD_MUTEX_INITIALIZER);
        let (condition, mutex) = (condition.as_mut_ptr(), &raw mut mutex);
        // SAFETY: the condition has memory, and no other thread has the mutex.
        assert_eq!(unsafe { (cnd_init(condition), pthread_mutex_lock(mutex)) }, (SUCCESS, 0));
        for by_own_clock in [true, false] {
            let begun = clock::now();
            let wall = TimeSpec::from_duration(Duration::from_millis(clock::wall_ms()) + WAIT);
            let until = clock::monotonic_of_wall(wall);
            // SAFETY: the condition is one of `cnd_init`, and this thread has the mutex.
            let is_over = unsafe {
                if by_own_clock {
                    pthread_cond_timedwait(condition, mutex, until.as_ref()) == ETIMEDOUT
                } else {
                    cnd_timedwait(condition, mutex, wall.as_ref()) == TIMED_OUT
                }
            };
            assert!(is_over && clock::now().since(begun) > WAIT / 2);
        }
    }
}
