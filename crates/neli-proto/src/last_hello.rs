//! The last hello of a process that exits. Without it the other candidates count the process as alive for up to 75 s longer. So the exit
//! waits for its delivery, but only briefly.

use core::time::Duration;

use crate::time::Time;

/// The longest time that the exit waits for the last hello.
const TAKES: Duration = Duration::from_millis(200);

/// Whether the last hello is in flight, and until when the exit waits for its delivery.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LastHello {
    until: Option<Time>,
}

impl LastHello {
    /// Notes that the last hello was handed to the producer.
    pub fn said(&mut self, now: Time) {
        self.until = Some(now + TAKES);
    }

    /// Notes that a hello of this process is in the log.
    pub fn hello_delivered(&mut self) {
        self.until = None;
    }

    /// Until when the exit waits, if it does.
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
    fn a_last_hello_is_awaited_until_it_is_in_the_log_but_only_briefly() {
        let mut last_hello = LastHello::default();
        assert_eq!(last_hello.awaited_until(START), None);
        last_hello.said(START);
        let until = START + TAKES;
        assert_eq!(last_hello.awaited_until(START), Some(until));
        assert_eq!(last_hello.awaited_until(until), None);
        last_hello.hello_delivered();
        assert_eq!(last_hello.awaited_until(START), None);
    }

    #[test]
    fn the_delivery_of_an_earlier_hello_does_not_count() {
        let mut last_hello = LastHello::default();
        last_hello.hello_delivered();
        last_hello.said(START);
        assert!(last_hello.awaited_until(START).is_some());
    }
}
