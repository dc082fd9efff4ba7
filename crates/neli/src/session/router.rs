//! Distributes readings that many elections share.
//!
//! One reading is in progress in every partition, the *live* one. An election that follows it gets its own records as
//! they arrive; records of other elections are counted for the whole partition, and reported to an election before
//! its next own record, before it acts, and where an offset is missing, so that it sees the log as if it had read all
//! of it alone. An election that is not caught up gets the count as soon as the log's end is reached.
//!
//! An election that reads anew while others follow the live reading of its partition gets an *extra* reading, which
//! ends as soon as it has come as far as the live one. There are only a few extra readings at a time: a later
//! election shares the next one. Nothing here has effects: actions and reports are returned.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use neli_proto::time::Time;

use super::event::RoleEvent;
use super::progress::{Progress, ReadingPlace, Stage};
use crate::election::Elections;
use crate::kafka::event::{Key, ReadRecord, ReadingEvent};

mod followers;
mod readings;

/// Actions and reports, in this order.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Output {
    /// End this reading.
    Close { reading: u32 },
    /// Report a hello to the process.
    Hello { offset: i64, value: Box<[u8]> },
    /// Ask soon where the logs end.
    LookForEnd { reading: u32 },
    /// Read a partition from this offset on.
    ReadFrom { reading: u32, partition: i32, offset: i64 },
    /// Begin a reading with this number: of these partitions, or of all that are in use.
    Start { reading: u32, only: Option<BTreeSet<i32>> },
    /// Report an event to an election.
    Tell { role: u32, event: RoleEvent },
}

/// The readings, and the elections that follow each.
pub(super) struct Router {
    roles: Range<u32>,
    places: Vec<ReadingPlace>,
    /// The number of the topic's partitions, once it is known.
    partitions: Option<i32>,
    live: Option<u32>,
    /// The progress of each reading in each of its partitions.
    progress: BTreeMap<(u32, i32), Progress>,
    /// The number of readings so far, which is the number of the last one.
    readings: u32,
    /// The extra readings in progress, with the time at which each began; and those that wait until fewer are in progress.
    extra: BTreeMap<u32, Time>,
    waiting: VecDeque<u32>,
    /// How many elections follow a reading.
    following: usize,
    /// The elections that are not caught up.
    eager: BTreeSet<u32>,
    /// The hellos of partition 0 below this offset were reported.
    hellos_passed_below: i64,
    outputs: VecDeque<Output>,
}

impl Router {
    pub(super) fn new(roles: Range<u32>) -> Self {
        Self {
            places: roles.clone().map(|_| ReadingPlace::default()).collect(),
            // A single role 0 is always in partition 0, however many there are.
            partitions: (roles.end == 1).then_some(1),
            roles,
            live: None,
            progress: BTreeMap::new(),
            readings: 0,
            extra: BTreeMap::new(),
            waiting: VecDeque::new(),
            following: 0,
            eager: BTreeSet::new(),
            hellos_passed_below: 0,
            outputs: VecDeque::new(),
        }
    }

    /// The next output.
    pub(super) fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The number of the topic's partitions, once it is known.
    pub(super) const fn partitions(&self) -> Option<i32> {
        self.partitions
    }

    /// Sets the number of the topic's partitions.
    pub(super) const fn found(&mut self, partitions: i32) {
        self.partitions = Some(partitions);
    }

    /// The roles on this partition.
    pub(super) fn roles_on(&self, partition: i32) -> impl Iterator<Item = u32> + use<> {
        let partitions = self.partitions.unwrap_or(1);
        self.roles.clone().filter(move |role| Elections::partition_of(*role, partitions) == partition)
    }

    // ---- requests of an election --------------------------------------------------------------------------------------

    /// The election reads anew: it gets the bounds of its log, and then names the offset from which it reads.
    pub(super) fn read_anew(&mut self, now: Time, role: u32) {
        self.follow_anew(now, role);
        self.start_extra(now);
    }

    fn follow_anew(&mut self, now: Time, role: u32) {
        self.unfollow(role);
        let Some(live) = self.live.filter(|_| self.following > 0) else {
            self.begin_live(now, role);
            return;
        };
        let Some(partition) = self.partition_of(role) else { return self.follow(role, live) };
        match self.progress.get(&(live, partition)) {
            None => self.follow(role, live),
            Some(progress) if progress.stage == Stage::Asking => {
                if progress.is_answered {
                    self.outputs.push_back(Output::LookForEnd { reading: live });
                }
                self.follow(role, live);
            }
            Some(progress) => {
                if progress.is_stuck(now) {
                    self.replace_live(now, live);
                }
                let asking = self.progress.iter().find(|((reading, of), progress)| {
                    *of == partition && Some(*reading) != self.live && !progress.is_answered
                });
                let extra = asking.map(|((reading, _), _)| *reading);
                let extra = extra.unwrap_or_else(|| self.begin_extra(now, partition));
                self.follow(role, extra);
            }
        }
    }

    /// The election reads from this offset on.
    pub(super) fn read_from(&mut self, now: Time, role: u32, offset: i64) {
        let (Some(mut reading), Some(partition)) = (self.place(role).reading, self.partition_of(role)) else { return };
        let progress = self.progress.entry((reading, partition)).or_insert(Progress::asking(now));
        if progress.stage == Stage::Reading && offset < progress.position {
            self.unfollow(role);
            reading = self.begin_extra(now, partition);
            self.follow(role, reading);
        }
        let progress = self.progress.entry((reading, partition)).or_insert(Progress::asking(now));
        if progress.stage != Stage::Reading {
            progress.is_answered = true;
            (progress.stage, progress.position, progress.handed_over_at) = (Stage::Reading, offset, now);
            if !self.waiting.contains(&reading) {
                self.outputs.push_back(Output::ReadFrom { reading, partition, offset });
            }
        }
        let place = self.place_mut(role);
        (place.has_begun, place.passed_below) = (true, offset);
        self.eager.insert(role);
        self.join_live(reading, partition);
        self.start_extra(now);
    }

    /// The election has read its log up to the end: from now on it gets the count of others' records only before it acts.
    pub(super) fn note_caught_up(&mut self, role: u32) {
        self.eager.remove(&role);
    }

    /// The records of others that the election must get before it acts.
    pub(super) fn take_passed(&mut self, role: u32) -> Option<RoleEvent> {
        let place = self.place(role);
        let reading = place.reading.filter(|_| place.has_begun)?;
        let position = self.progress.get(&(reading, self.partition_of(role)?))?.position;
        let passed_below = place.passed_below;
        (passed_below < position).then(|| {
            self.place_mut(role).passed_below = position;
            RoleEvent::Passed { first: passed_below, last: position - 1 }
        })
    }

    /// Makes the reading that the election follows ask soon where the log ends.
    pub(super) fn look_for_end(&mut self, role: u32) {
        if let Some(reading) = self.place(role).reading {
            self.outputs.push_back(Output::LookForEnd { reading });
        }
    }

    /// Ends all readings.
    pub(super) fn stop(&mut self) {
        let readings: BTreeSet<u32> = self.progress.keys().map(|(reading, _)| *reading).chain(self.live).collect();
        self.outputs.extend(readings.into_iter().map(|reading| Output::Close { reading }));
        self.places.fill(ReadingPlace::default());
        (self.live, self.following) = (None, 0);
        self.progress.clear();
        self.extra.clear();
        self.waiting.clear();
        self.eager.clear();
        self.hellos_passed_below = 0;
    }

    // ---- events of the readings ---------------------------------------------------------------------------------------

    /// Handles an event of a reading of a partition.
    pub(super) fn handle(&mut self, now: Time, reading: u32, partition: i32, event: ReadingEvent) {
        self.take_in(now, reading, partition, event);
        self.start_extra(now);
    }

    fn take_in(&mut self, now: Time, reading: u32, partition: i32, event: ReadingEvent) {
        let is_live = self.live == Some(reading);
        if is_live {
            self.progress.entry((reading, partition)).or_insert(Progress::asking(now));
        }
        let Some(progress) = self.progress.get_mut(&(reading, partition)) else { return };
        match event {
            ReadingEvent::Ends { asked, start, end } => {
                (progress.is_answered, progress.known_end) = (true, end);
                self.tell_all(reading, partition, &RoleEvent::Ends { asked, start, end });
            }
            ReadingEvent::Cut => self.cut(reading, partition),
            _ if progress.stage != Stage::Reading => {}
            ReadingEvent::Record(record) if record.offset < progress.position => self.cut(reading, partition),
            ReadingEvent::Record(record) => self.read(now, reading, partition, record),
            ReadingEvent::CaughtUp { next } => self.caught_up(now, reading, partition, next),
            ReadingEvent::Undecodable { offset, error } => {
                self.tell_all(reading, partition, &RoleEvent::Undecodable { offset, error });
            }
        }
    }

    fn read(&mut self, now: Time, reading: u32, partition: i32, record: ReadRecord) {
        let ReadRecord { offset, key, value, written_ms, .. } = record;
        let is_gap = self.pass_gap(reading, partition, offset);
        if key == Key::AnyHello {
            self.read_hello(offset, value.clone());
        }
        let owner = match key {
            Key::Election(role) => Some((role, false)),
            Key::Hello(role) => Some((role, true)),
            Key::AnyHello | Key::Other => None,
        };
        if let Some((role, is_hello)) = owner.filter(|(role, _)| self.follows(*role, reading, partition))
            && offset >= self.place(role).passed_below
        {
            self.tell_passed(role);
            self.place_mut(role).passed_below = offset + 1;
            self.tell(role, RoleEvent::Read { offset, is_hello, value, written_ms });
        }
        let Some(progress) = self.progress.get_mut(&(reading, partition)) else { return };
        (progress.position, progress.handed_over_at) = (offset + 1, now);
        let followers = match () {
            // Missing offsets are judged at the time at which the record behind them was read (L4).
            () if is_gap => self.followers(reading, partition),
            () if progress.position >= progress.known_end => self.eager_followers(reading, partition),
            () => Vec::new(),
        };
        for role in followers {
            self.tell_passed(role);
        }
        self.join_live(reading, partition);
    }

    /// Each hello is reported once, by the reading that gets to it first.
    fn read_hello(&mut self, offset: i64, value: Option<Box<[u8]>>) {
        if let Some(value) = value.filter(|_| offset >= self.hellos_passed_below) {
            self.hellos_passed_below = offset + 1;
            self.outputs.push_back(Output::Hello { offset, value });
        }
    }

    fn caught_up(&mut self, now: Time, reading: u32, partition: i32, next: i64) {
        let Some(progress) = self.progress.get_mut(&(reading, partition)) else { return };
        if next > progress.position {
            // Behind the last record there are only markers. Each election must get the end, since no record follows that would show it.
            progress.handed_over_at = now;
            self.pass_gap(reading, partition, next);
            self.tell_all(reading, partition, &RoleEvent::CaughtUp { next });
        } else {
            for role in self.eager_followers(reading, partition) {
                self.tell(role, RoleEvent::CaughtUp { next });
            }
        }
        if let Some(live) = self.live.filter(|live| *live != reading) {
            let position = self.progress.get(&(reading, partition)).map_or(next, |progress| progress.position);
            let progress = self.progress.entry((live, partition)).or_insert(Progress::asking(now));
            if progress.stage != Stage::Reading {
                // The live reading's log was cut: it continues from here.
                (progress.stage, progress.position, progress.handed_over_at) = (Stage::Reading, position, now);
                self.outputs.push_back(Output::ReadFrom { reading: live, partition, offset: position });
            }
            self.join_live(reading, partition);
        }
    }

    /// The reading is now at this offset. Returns whether offsets before it are missing; if so, each election has got everything before those.
    fn pass_gap(&mut self, reading: u32, partition: i32, offset: i64) -> bool {
        let is_gap = self.progress.get(&(reading, partition)).is_some_and(|progress| offset > progress.position);
        if !is_gap {
            return false;
        }
        for role in self.followers(reading, partition) {
            self.tell_passed(role);
            let place = self.place_mut(role);
            place.passed_below = place.passed_below.max(offset);
        }
        if let Some(progress) = self.progress.get_mut(&(reading, partition)) {
            progress.position = offset;
        }
        true
    }

    fn cut(&mut self, reading: u32, partition: i32) {
        if partition == 0 {
            self.hellos_passed_below = 0;
        }
        if let Some(progress) = self.progress.get_mut(&(reading, partition)) {
            progress.stage = Stage::Over;
        }
        for role in self.all_followers(reading, partition) {
            self.tell(role, RoleEvent::Cut);
            self.unfollow(role);
        }
    }
}

#[cfg(test)]
mod tests;
