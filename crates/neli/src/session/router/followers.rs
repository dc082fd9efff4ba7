//! The elections that follow each reading, and the events for them.

use super::{Output, ReadingPlace, RoleEvent, Router};
use crate::election::Elections;

impl Router {
    pub(super) fn tell(&mut self, role: u32, event: RoleEvent) {
        self.outputs.push_back(Output::Tell { role, event });
    }

    pub(super) fn tell_passed(&mut self, role: u32) {
        if let Some(event) = self.take_passed(role) {
            self.tell(role, event);
        }
    }

    pub(super) fn tell_all(&mut self, reading: u32, partition: i32, event: &RoleEvent) {
        for role in self.all_followers(reading, partition) {
            self.tell_passed(role);
            self.tell(role, event.clone());
        }
    }

    /// The elections that follow this reading, also those that have not named an offset yet.
    pub(super) fn all_followers(&self, reading: u32, partition: i32) -> Vec<u32> {
        self.roles_on(partition).filter(|role| self.place(*role).reading == Some(reading)).collect()
    }

    pub(super) fn followers(&self, reading: u32, partition: i32) -> Vec<u32> {
        self.roles_on(partition).filter(|role| self.follows(*role, reading, partition)).collect()
    }

    pub(super) fn eager_followers(&self, reading: u32, partition: i32) -> Vec<u32> {
        self.eager.iter().copied().filter(|role| self.follows(*role, reading, partition)).collect()
    }

    pub(super) fn follows(&self, role: u32, reading: u32, partition: i32) -> bool {
        let place = self.place(role);
        place.has_begun && place.reading == Some(reading) && self.partition_of(role) == Some(partition)
    }

    pub(super) fn partition_of(&self, role: u32) -> Option<i32> {
        self.partitions.map(|partitions| Elections::partition_of(role, partitions))
    }

    pub(super) fn place(&self, role: u32) -> &ReadingPlace {
        &self.places[self.index(role)]
    }

    pub(super) fn place_mut(&mut self, role: u32) -> &mut ReadingPlace {
        let index = self.index(role);
        &mut self.places[index]
    }

    /// The index of a role, which must be one of this session's.
    pub(super) fn index(&self, role: u32) -> usize {
        (role - self.roles.start) as usize
    }
}
