//! Which connections are kept, and how fast new ones are accepted, so that a crowd of slow clients keeps nobody else from an answer.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

/// The most connections at once.
const CONNECTIONS: usize = 64;
/// So many connections are accepted without a pause, more than a crowd can make the kernel queue in the pauses.
const BURST: usize = 32;
/// The pause after that. With it a flood of connections costs a bounded part of a processor.
pub(super) const PAUSE: Duration = Duration::from_millis(10);

/// The open connections, the oldest first, each with its client's address.
#[derive(Debug)]
pub(super) struct Admission<C> {
    open: VecDeque<(IpAddr, C)>,
    /// How many were accepted since the last pause.
    accepted: usize,
}

impl<C> Admission<C> {
    pub(super) const fn new() -> Self {
        Self { open: VecDeque::new(), accepted: 0 }
    }

    /// Forgets the connections that have ended.
    pub(super) fn retain(&mut self, is_open: impl Fn(&C) -> bool) {
        self.open.retain(|(_, connection)| is_open(connection));
    }

    /// The connection that must be closed for one more: the oldest of the address that has the most. So a client that has few keeps them,
    /// whatever others do, and of those behind one address the newest, which has not been answered yet, is kept.
    pub(super) fn make_room(&mut self) -> Option<C> {
        if self.open.len() < CONNECTIONS {
            return None;
        }
        let of = |address: IpAddr| self.open.iter().filter(|(other, _)| *other == address).count();
        // Of several the last one counts, so the oldest comes last.
        let oldest_of_most = (0..self.open.len()).rev().max_by_key(|at| of(self.open[*at].0))?;
        self.open.remove(oldest_of_most).map(|(_, connection)| connection)
    }

    /// Notes a new connection; returns true if a pause must follow.
    pub(super) fn admit(&mut self, address: IpAddr, connection: C) -> bool {
        self.open.push_back((address, connection));
        self.accepted = (self.accepted + 1) % BURST;
        self.accepted == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CROWD: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const PROBE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    #[test]
    fn a_crowd_takes_the_place_of_its_own_connections_only() {
        let mut admission = Admission::new();
        admission.admit(PROBE, 0);
        let closed: Vec<i32> = (1..=1_000)
            .filter_map(|number| {
                let closed = admission.make_room();
                admission.admit(CROWD, number);
                closed
            })
            .collect();
        // The probe's own is the oldest.
        assert_eq!(closed, (1..=937).collect::<Vec<_>>());
        admission.retain(|number| *number != 1_000);
        assert_eq!(admission.make_room(), None);
    }

    #[test]
    fn of_one_address_the_oldest_makes_room() {
        let mut admission = Admission::new();
        for number in 0..64 {
            admission.admit(CROWD, number);
        }
        assert_eq!(admission.make_room(), Some(0));
        admission.admit(PROBE, 64);
        assert_eq!(admission.make_room(), Some(1));
    }

    #[test]
    fn a_thousand_waiting_connections_are_accepted_with_thirty_one_pauses() {
        let mut admission = Admission::new();
        let pauses = (0..1_000).filter(|number| admission.admit(CROWD, *number)).count();
        assert_eq!(pauses, 31);
    }
}
