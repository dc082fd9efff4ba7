//! The end of the start phase, after which resources that only the start needed are released.

use std::time::Duration;

use neli_proto::time::Time;

use crate::process::system;

/// Within this time after a role has read its journal, the process has joined its group.
const SETTLES_WITHIN: Duration = Duration::from_secs(1);

/// The progress of the start.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Settling {
    /// No role stands by or leads yet.
    Starting,
    /// A role stands by or leads; the start is over at this time.
    Until(Time),
    /// The start is over.
    Settled,
}

impl Settling {
    /// Notes that a role has read its journal.
    pub(super) fn begin(&mut self, now: Time) {
        if *self == Self::Starting {
            *self = Self::Until(now + SETTLES_WITHIN);
        }
    }

    /// When the start is over; `None` if it is over already.
    pub(super) const fn poll_timeout(self) -> Option<Time> {
        match self {
            Self::Until(time) => Some(time),
            Self::Settled | Self::Starting => None,
        }
    }

    /// Releases the resources that only the start needed, once.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        if self.poll_timeout().is_some_and(|time| now >= time) {
            *self = Self::Settled;
            system::give_back_libraries();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_over_once() {
        let (begun, mut settling) = (Time::ZERO, Settling::Starting);
        settling.handle_timeout(begun);
        assert_eq!(settling.poll_timeout(), None);
        settling.begin(begun);
        let over = begun + SETTLES_WITHIN;
        settling.begin(over);
        settling.handle_timeout(begun);
        assert_eq!(settling.poll_timeout(), Some(over));
        settling.handle_timeout(over);
        settling.begin(over);
        assert_eq!(settling, Settling::Settled);
    }
}
