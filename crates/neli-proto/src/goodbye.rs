//! The last hello of a process that goes: without it others take the process for there for longer, so that its end waits for it, and not
//! for long.

use core::time::Duration;

use crate::time::Time;

/// How long the end waits for it.
const TAKES: Duration = Duration::from_millis(200);

/// Whether the last hello is on its way, and until when the process's end waits for it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Goodbye {
    until: Option<Time>,
}

impl Goodbye {
    /// It was handed over.
    pub fn said(&mut self, now: Time) {
        self.until = Some(now + TAKES);
    }

    /// A hello of this process is in the log.
    pub fn hello_delivered(&mut self) {
        self.until = None;
    }

    /// Until when the end waits for it, if it does.
    #[must_use]
    pub fn awaited_until(&self, now: Time) -> Option<Time> {
        self.until.filter(|until| now < *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_nanos(1_000);

    #[test]
    fn one_that_was_said_is_awaited_until_it_is_in_the_log_and_not_for_long() {
        let mut goodbye = Goodbye::default();
        assert_eq!(goodbye.awaited_until(START), None);
        goodbye.said(START);
        let until = START + TAKES;
        assert_eq!(goodbye.awaited_until(START), Some(until));
        assert_eq!(goodbye.awaited_until(until), None);
        goodbye.hello_delivered();
        assert_eq!(goodbye.awaited_until(START), None);
    }

    #[test]
    fn a_hello_before_it_is_not_taken_for_it() {
        let mut goodbye = Goodbye::default();
        goodbye.hello_delivered();
        goodbye.said(START);
        assert!(goodbye.awaited_until(START).is_some());
    }
}
