//! When the start is over, and what it alone needed is given back.

use std::time::Duration;

use neli_proto::time::Time;

use crate::process::memory;

/// So long after a role has read its journal the process has joined its group, too.
const SETTLES_WITHIN: Duration = Duration::from_secs(1);

/// How far the start has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Settling {
    /// No role stands by or leads yet.
    Starting,
    /// One does; the start is over at this time.
    Until(Time),
    /// It is over.
    Settled,
}

impl Settling {
    /// A role has read its journal.
    pub(super) fn begin(&mut self, now: Time) {
        if *self == Self::Starting {
            *self = Self::Until(now + SETTLES_WITHIN);
        }
    }

    /// When it is over, while it is not.
    pub(super) const fn poll_timeout(self) -> Option<Time> {
        match self {
            Self::Until(time) => Some(time),
            Self::Settled | Self::Starting => None,
        }
    }

    /// Gives back what is not needed any more, once.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        if self.poll_timeout().is_some_and(|time| now >= time) {
            *self = Self::Settled;
            memory::give_back_libraries();
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
