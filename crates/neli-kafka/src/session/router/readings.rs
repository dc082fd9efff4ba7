//! The live reading, and the extra readings beside it.

use std::collections::BTreeSet;
use std::time::Duration;

use neli_proto::time::Time;

use super::{Progress, Readers, ReadingPlace, Router, Stage};

/// How many extra readings are in progress at once. Each is a client of its own, with threads and connections: hundreds of elections that lose their
/// leases at once, and read anew, would start hundreds of clients on a machine that is already too busy.
const MOST_EXTRA: usize = 4;

/// An extra reading that takes longer does not count for that limit: its partition may have no leader.
const EXTRA_TAKES: Duration = Duration::from_secs(10);

impl<R: Readers> Router<R> {
    fn start(&mut self, reading: u32, only: Option<BTreeSet<i32>>) {
        if let Err(error) = self.readers.start(reading, only, self.partitions) {
            self.not_started = Some(error);
        }
    }

    pub(super) fn begin_live(&mut self, now: Time, role: u32) {
        if let Some(before) = self.live.take() {
            self.progress.retain(|(reading, _), _| *reading != before);
            self.readers.close(before);
        }
        self.readings += 1;
        self.live = Some(self.readings);
        self.start(self.readings, None);
        if let Some(partition) = self.partition_of(role) {
            self.progress.insert((self.readings, partition), Progress::asking(now));
        }
        self.follow(role, self.readings);
    }

    pub(super) fn begin_extra(&mut self, now: Time, partition: i32) -> u32 {
        let live = self.live.and_then(|live| self.progress.get(&(live, partition)));
        let known_end = live.map_or(0, |live| live.known_end);
        let mut waiting = self.waiting.iter().copied();
        let reading =
            waiting.find(|reading| !self.progress.contains_key(&(*reading, partition))).unwrap_or_else(|| {
                self.readings += 1;
                self.waiting.push_back(self.readings);
                self.readings
            });
        self.progress.insert((reading, partition), Progress { known_end, ..Progress::asking(now) });
        reading
    }

    /// Begins waiting extra readings, as far as the limit allows. Each reads all partitions that were added to it while it waited.
    pub(super) fn start_extra(&mut self, now: Time) {
        while !self.waiting.is_empty()
            && self.extra.values().filter(|begun| now.since(**begun) < EXTRA_TAKES).count() < MOST_EXTRA
            && let Some(reading) = self.waiting.pop_front()
        {
            let partitions: Vec<(i32, Stage, i64)> = self
                .progress
                .range((reading, i32::MIN)..=(reading, i32::MAX))
                .map(|((_, partition), progress)| (*partition, progress.stage, progress.position))
                .collect();
            self.extra.insert(reading, now);
            let only: BTreeSet<i32> = partitions.iter().map(|(partition, ..)| *partition).collect();
            self.start(reading, Some(only));
            for (partition, _, offset) in partitions.into_iter().filter(|(_, stage, _)| *stage == Stage::Reading) {
                self.readers.read_from(reading, partition, offset);
            }
        }
    }

    /// Replaces the client of the live reading, which is stuck, by another one that continues at the same offsets. The elections that follow it
    /// notice nothing. The new client gets as much time as the old one before it counts as stuck too.
    pub(super) fn replace_live(&mut self, now: Time, before: u32) {
        self.readings += 1;
        let live = self.readings;
        self.live = Some(live);
        self.readers.close(before);
        self.start(live, None);
        let partitions: Vec<i32> =
            self.progress.keys().filter(|(reading, _)| *reading == before).map(|(_, partition)| *partition).collect();
        for partition in partitions {
            let Some(mut progress) = self.progress.remove(&(before, partition)) else { continue };
            progress.handed_over_at = now;
            if progress.stage == Stage::Reading {
                self.readers.read_from(live, partition, progress.position);
            }
            self.progress.insert((live, partition), progress);
        }
        self.places
            .iter_mut()
            .filter(|place| place.reading == Some(before))
            .for_each(|place| place.reading = Some(live));
    }

    /// If an extra reading has come as far as the live one, the elections that follow it follow the live one from now on.
    pub(super) fn join_live(&mut self, reading: u32, partition: i32) {
        let Some(live) = self.live.filter(|live| *live != reading) else { return };
        let position = |reading| {
            let progress = self.progress.get(&(reading, partition))?;
            (progress.stage == Stage::Reading).then_some(progress.position)
        };
        if !matches!((position(reading), position(live)), (Some(extra), Some(live)) if extra >= live) {
            return;
        }
        for role in self.all_followers(reading, partition) {
            self.tell_passed(role);
            self.place_mut(role).reading = Some(live);
        }
        self.close(reading, partition);
    }

    fn close(&mut self, reading: u32, partition: i32) {
        self.progress.remove(&(reading, partition));
        if self.progress.range((reading, i32::MIN)..=(reading, i32::MAX)).next().is_some() {
            return;
        }
        if self.extra.remove(&reading).is_some() {
            self.readers.close(reading);
        } else {
            self.waiting.retain(|waiting| *waiting != reading);
        }
    }

    pub(super) fn follow(&mut self, role: u32, reading: u32) {
        self.following += 1;
        *self.place_mut(role) = ReadingPlace { reading: Some(reading), ..ReadingPlace::default() };
    }

    pub(super) fn unfollow(&mut self, role: u32) {
        let Some(reading) = std::mem::take(self.place_mut(role)).reading else { return };
        self.following -= 1;
        self.eager.remove(&role);
        let Some(partition) = self.partition_of(role).filter(|of| self.all_followers(reading, *of).is_empty()) else {
            return;
        };
        if self.live != Some(reading) {
            self.close(reading, partition);
        } else if let Some(progress) = self.progress.get_mut(&(reading, partition))
            && progress.stage == Stage::Reading
        {
            // The log may be another one when the next election has read it to its end.
            progress.stage = Stage::Over;
        }
    }
}
