//! The partition of each followed role.

use std::io;

use neli_kafka::clock;
use neli_proto::followed_mapping::FollowedMapping;
use neli_proto::leadership::LastTerm;
use neli_proto::listener::{FIRST_SPAN, Listener};
use neli_proto::process_hello::ProcessHello;
use neli_proto::record::Offset;
use neli_proto::time::Time;

use super::Reading;

impl Reading {
    /// Notes the number of the topic's partitions. If it has changed, roles have moved to other partitions, and all journals are read again.
    pub(super) fn found(&mut self, partitions: i32) -> io::Result<()> {
        if self.counted.is_some() {
            // It was found before a candidate's hello said by which number roles are mapped.
            return Ok(());
        }
        let known = self.router.partitions();
        self.router.found(partitions);
        if known.is_none_or(|known| known == partitions) {
            return Ok(());
        }
        let now = clock::now();
        self.router.stop();
        for role in self.elections.roles.clone() {
            self.read_anew(now, role);
        }
        self.follow_router(now)
    }

    pub(super) fn handle_hello(&mut self, now: Time, offset: Offset, hello: &[u8]) {
        let Some((mapping, hello)) = self.mapping.as_mut().zip(ProcessHello::parse(hello)) else { return };
        let known_from = mapping.known_from();
        let warning = mapping.received(now, offset, &hello);
        if known_from.is_none_or(|from| now < from) {
            self.touched.extend(0..self.roles.len());
        }
        if let Some(warning) = warning {
            self.warn(&warning);
        }
    }

    /// Maps roles to partitions by the number in the last hello. Returns whether roles have moved, so that all journals are read anew.
    pub(super) fn follow_mapping(&mut self, now: Time) -> bool {
        let counted = self.mapping.as_ref().and_then(FollowedMapping::counted);
        let counted = counted.and_then(|counted| i32::try_from(counted).ok());
        if counted == self.counted {
            return false;
        }
        let before = self.router.partitions();
        self.counted = counted;
        self.router.readers.source.partitions = counted;
        if let Some(counted) = counted {
            self.router.found(counted);
        }
        if counted.is_some() && counted == before {
            return false;
        }
        self.router.stop();
        self.touched.extend(0..self.roles.len());
        for (number, role) in self.elections.roles.clone().zip(&mut self.roles) {
            if counted.is_some() {
                // The journal is another one.
                (role.listener, role.last_term) = (Listener::asking(now, FIRST_SPAN), LastTerm::none());
            } else {
                role.listener.history_cut(now);
            }
            self.router.read_anew(now, number);
        }
        true
    }

    /// Whether it is known by how many partitions roles are mapped, so that a role without records has no leader.
    pub(super) fn is_mapping_known(&self, now: Time) -> bool {
        let is_known_by_hello = |mapping: &FollowedMapping| mapping.known_from().is_some_and(|from| now >= from);
        self.mapping.as_ref().is_none_or(is_known_by_hello) || self.router.partitions() == Some(1)
    }

    /// Notes that a role's journal has been read up to its end.
    pub(super) fn note_caught_up(&mut self, now: Time, at: usize) {
        let Some(mapping) = self.mapping.as_mut().filter(|_| at == 0) else { return };
        let known_from = mapping.known_from();
        mapping.caught_up(now, self.roles[at].listener.has_read_whole_log());
        if mapping.known_from() != known_from {
            self.touched.extend(0..self.roles.len());
        }
    }
}
