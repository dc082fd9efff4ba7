//! What costs too much for each test that needs it, and only one test may have at a time.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard};
use std::thread;

/// A value that the tests of a run have one after the other. A static is never dropped, so brokers in it end when their pipes close, at the end of the process.
#[derive(Debug)]
pub struct InTurn<T>(Mutex<Option<T>>);

/// The value, lent to one test until this is dropped; and what is done with it then, if the test did not fail.
#[derive(Debug)]
pub struct Turn<T: 'static>(MutexGuard<'static, Option<T>>, fn(&mut T));

impl<T> InTurn<T> {
    /// Nothing is made yet.
    #[expect(clippy::new_without_default, reason = "a static needs a function that is const")]
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Waits for a test's turn. `make` makes it, for the first test and after one that failed, of which nobody knows what it
    /// left behind; `restore` makes good what the test before did to it, and `leave` at the end of a turn what can't wait for the next one.
    pub fn take(&'static self, make: impl FnOnce() -> T, restore: impl FnOnce(&mut T), leave: fn(&mut T)) -> Turn<T> {
        let mut turn = self.0.lock().unwrap_or_else(|failed| {
            self.0.clear_poison();
            let mut left = failed.into_inner();
            *left = None;
            left
        });
        match turn.as_mut() {
            Some(used) => restore(used),
            None => *turn = Some(make()),
        }
        Turn(turn, leave)
    }
}

impl<T> Drop for Turn<T> {
    fn drop(&mut self) {
        if let Some(left) = self.0.as_mut().filter(|_| !thread::panicking()) {
            self.1(left);
        }
    }
}

impl<T> Deref for Turn<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("made before the turn began")
    }
}

impl<T> DerefMut for Turn<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("made before the turn began")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_failed_leaves_nothing_behind() {
        static NUMBER: InTurn<u32> = InTurn::new();
        let take = || NUMBER.take(|| 1, |number| *number += 1, |number| *number += 10);
        assert_eq!(*take(), 1);
        assert_eq!(*take(), 12);
        let failed = thread::spawn(move || {
            let _turn = take();
            panic!("as a test does that fails");
        });
        failed.join().expect_err("it panics");
        assert_eq!(*take(), 1);
    }
}
