//! Signals for the job that can't be delivered yet.

use alloc::collections::VecDeque;

use crate::guard::message::Target;

/// The kernel's first real-time signal. Real-time signals are queued, and lower ones are merged.
const FIRST_REAL_TIME: i32 = 32;

/// Waiting signals, merged as the kernel merges a process's pending signals. A standard signal is pending once, even if it was sent several
/// times; each real-time signal counts. So memory is limited, and the job gets the same signals as it would get directly.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Forwarded {
    /// Each signal and target once, in the order of their last sending, with the number of times.
    waiting: VecDeque<(i32, Target, u64)>,
}

impl Forwarded {
    /// Adds a signal. A standard signal that is pending moves to the end, because the later one of a stop and a SIGCONT decides.
    pub(super) fn put(&mut self, signal: i32, to: Target) {
        let same = self.waiting.iter().position(|(waiting, target, _)| (*waiting, *target) == (signal, to));
        if let Some((.., count)) = same.and_then(|at| self.waiting.get_mut(at)).filter(|_| signal >= FIRST_REAL_TIME) {
            *count += 1;
            return;
        }
        if let Some(at) = same {
            self.waiting.remove(at);
        }
        self.waiting.push_back((signal, to, 1));
    }

    /// The signal that is sent next.
    pub(super) fn first(&self) -> Option<(i32, Target)> {
        self.waiting.front().map(|(signal, to, _)| (*signal, *to))
    }

    /// Removes the signal that is sent next.
    pub(super) fn take_first(&mut self) -> Option<(i32, Target)> {
        let first = self.first();
        match self.waiting.front_mut() {
            Some((.., count @ 2..)) => *count -= 1,
            Some(_) | None => drop(self.waiting.pop_front()),
        }
        first
    }

    /// Removes all.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Whether no signal waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    const SIGUSR1: i32 = 10;
    const SIGCONT: i32 = 18;
    const SIGTTIN: i32 = 21;

    fn taken(mut forwarded: Forwarded) -> Vec<(i32, Target)> {
        core::iter::from_fn(|| forwarded.take_first()).collect()
    }

    #[test]
    fn a_standard_signal_waits_once_and_a_real_time_one_as_often_as_it_was_sent() {
        let mut forwarded = Forwarded::default();
        for _ in 0..1_000 {
            forwarded.put(SIGUSR1, Target::Main);
        }
        for _ in 0..3 {
            forwarded.put(40, Target::Main);
        }
        forwarded.put(SIGUSR1, Target::Group);
        for signal in [31, 31, FIRST_REAL_TIME, FIRST_REAL_TIME] {
            forwarded.put(signal, Target::Main);
        }
        let expected = [(SIGUSR1, 1, Target::Main), (40, 3, Target::Main), (SIGUSR1, 1, Target::Group)];
        let expected = expected.into_iter().chain([(31, 1, Target::Main), (32, 2, Target::Main)]);
        let expected: Vec<_> = expected.flat_map(|(signal, times, to)| vec![(signal, to); times]).collect();
        assert_eq!(taken(forwarded), expected);
    }

    #[test]
    fn of_a_stop_and_a_continuation_the_later_one_decides() {
        let mut forwarded = Forwarded::default();
        for signal in [SIGTTIN, SIGCONT, SIGTTIN] {
            forwarded.put(signal, Target::Group);
        }
        assert_eq!(taken(forwarded).last(), Some(&(SIGTTIN, Target::Group)));
    }
}
