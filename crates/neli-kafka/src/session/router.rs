//! Distributes readings that many elections share.
//!
//! One reading is in progress in every partition, the *live* one. An election that follows it gets its own records as
//! they arrive; records of other elections are counted for the whole partition, and reported to an election before
//! its next own record, before it acts, and where an offset is missing, so that it sees the log as if it had read all
//! of it alone. An election that is not caught up gets the count as soon as the log's end is reached.
//!
//! An election that reads anew while others follow the live reading of its partition gets an *extra* reading, which
//! ends as soon as it has come as far as the live one. There are only a few extra readings at a time: a later
//! election shares the next one.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::time::Duration;
use std::{io, mem};

use neli_proto::kafka::Event;
use neli_proto::listener::CutSigns;
use neli_proto::time::Time;
use tokio::sync::mpsc::Sender;

use crate::clock;
use crate::election::Elections;
use crate::event::{KafkaEvent, SessionEvent};
use crate::reader::Reader;
use crate::reading::{Order, Source};
use crate::text::{reason, without_thread};
use crate::threads::note_started;

/// The readings, and the elections that follow each. Which are in progress is a state; what each is to do further is an order.
#[derive(Default)]
pub struct Router {
    roles: Range<u32>,
    places: Vec<ReadingPlace>,
    /// The number of the topic's partitions, once it is known.
    partitions: Option<i32>,
    live: Option<u32>,
    /// Whether a log was cut that the client of the live reading has read.
    live_is_outdated: bool,
    /// The progress of each reading in each of its partitions.
    progress: BTreeMap<(u32, i32), PartitionProgress>,
    /// The number of readings so far, which is the number of the last one.
    readings: u32,
    /// The extra readings, with the time at which each began; none while it waits until fewer are in progress.
    extra: BTreeMap<u32, Option<Time>>,
    /// The elections that are not caught up.
    eager: BTreeSet<u32>,
    events: VecDeque<SessionEvent>,
    /// What the readers are to do, by the numbers of their readings.
    orders: VecDeque<(u32, Order)>,
}

impl Router {
    /// A router of these roles' readings, none of which has begun. The roles begin with 0.
    pub fn new(roles: Range<u32>) -> Self {
        Self {
            places: roles.clone().map(|_| ReadingPlace::default()).collect(),
            // A single role 0 is always in partition 0, however many there are.
            partitions: (roles.end == 1).then_some(1),
            roles,
            ..Self::default()
        }
    }

    /// The next event, of an election or of the process. The readers are to [follow](KafkaReaders::follow) the router before.
    pub fn poll(&mut self) -> Option<SessionEvent> {
        self.events.pop_front()
    }

    fn order(&mut self, reading: u32, order: Order) {
        // One question answers all that ask for it at once.
        if order != Order::Ask || !self.orders.contains(&(reading, Order::Ask)) {
            self.orders.push_back((reading, order));
        }
    }

    /// The numbers of the readings in progress.
    fn readings(&self) -> impl Iterator<Item = u32> {
        self.live.into_iter().chain(self.extra.iter().filter_map(|(reading, begun)| begun.map(|_| *reading)))
    }

    /// The numbers of the extra readings that wait.
    fn waiting(&self) -> impl Iterator<Item = u32> {
        self.extra.iter().filter(|(_, begun)| begun.is_none()).map(|(reading, _)| *reading)
    }

    /// The partitions that this reading reads; `None` if it reads all that are in use.
    fn only(&self, reading: u32) -> Option<BTreeSet<i32>> {
        (self.live != Some(reading)).then(|| self.partitions_of(reading).map(|(partition, _)| partition).collect())
    }

    /// The partitions of a reading, and its progress in each.
    fn partitions_of(&self, reading: u32) -> impl Iterator<Item = (i32, &PartitionProgress)> {
        let range = self.progress.range((reading, i32::MIN)..=(reading, i32::MAX));
        range.map(|((_, partition), progress)| (*partition, progress))
    }

    /// Whether this reading is in progress.
    pub fn has(&self, reading: u32) -> bool {
        self.readings().any(|known| known == reading)
    }

    /// The reading that a role follows, and the role's partition.
    pub fn reading_of(&self, role: u32) -> Option<(u32, i32)> {
        self.place(role).reading.zip(self.partition_of(role))
    }

    /// The number of the topic's partitions, once it is known.
    pub const fn partitions(&self) -> Option<i32> {
        self.partitions
    }

    /// Sets the number of the topic's partitions.
    pub const fn found(&mut self, partitions: i32) {
        self.partitions = Some(partitions);
    }

    /// The roles on this partition.
    fn roles_on(&self, partition: i32) -> impl Iterator<Item = u32> + use<> {
        let partitions = self.partitions.unwrap_or(1);
        self.roles.clone().filter(move |role| Elections::partition_of(*role, partitions) == partition)
    }

    // ---- requests of an election --------------------------------------------------------------------------------------

    /// The election reads anew: it gets the bounds of its log, and then names the offset from which it reads.
    pub fn read_anew(&mut self, now: Time, role: u32) {
        self.follow_anew(now, role);
        self.start_extra(now);
    }

    fn follow_anew(&mut self, now: Time, role: u32) {
        self.unfollow(role);
        let is_followed = self.places.iter().any(|place| place.reading.is_some());
        let Some(live) = self.live.filter(|_| is_followed) else { return self.begin_live(role) };
        let Some(partition) = self.partition_of(role) else { return self.join(role, live) };
        match self.progress.get(&(live, partition)).filter(|progress| progress.stage != Stage::Asking) {
            None => self.join(role, live),
            Some(progress) => {
                if progress.is_stuck(now) {
                    self.renew(now, live);
                }
                let asking = self.progress.iter().find(|((reading, of), progress)| {
                    *of == partition && Some(*reading) != self.live && !progress.is_answered
                });
                if let Some(((extra, _), _)) = asking {
                    self.join(role, *extra);
                } else {
                    let extra = self.begin_extra(now, partition);
                    self.follow(role, extra);
                }
            }
        }
    }

    /// The election follows a reading whose question may have been asked before: only the answer to a later one tells it the bounds of its log.
    fn join(&mut self, role: u32, reading: u32) {
        self.order(reading, Order::Ask);
        self.follow(role, reading);
    }

    /// The election reads from this offset on.
    pub fn read_from(&mut self, now: Time, role: u32, offset: i64) {
        let (Some(mut reading), Some(partition)) = (self.place(role).reading, self.partition_of(role)) else { return };
        let progress = self.progress.entry((reading, partition)).or_insert(PartitionProgress::asking(now));
        if progress.stage == Stage::Reading && offset < progress.position {
            self.unfollow(role);
            reading = self.begin_extra(now, partition);
            self.follow(role, reading);
        }
        let progress = self.progress.entry((reading, partition)).or_insert(PartitionProgress::asking(now));
        if progress.stage != Stage::Reading {
            progress.is_answered = true;
            (progress.stage, progress.position, progress.handed_over_at) = (Stage::Reading, offset, now);
            if self.has(reading) {
                self.order(reading, Order::ReadFrom { partition, offset });
            }
        }
        self.place_mut(role).passed_below = Some(offset);
        self.eager.insert(role);
        self.join_live(reading, partition);
        self.start_extra(now);
    }

    /// The election has read its log up to the end: from now on it gets the count of others' records only before it acts.
    pub fn note_caught_up(&mut self, role: u32) {
        self.eager.remove(&role);
    }

    /// The records of other elections since this one last got them: to be passed on before it gets a timeout or another event.
    pub fn take_passed(&mut self, role: u32) -> Option<Event> {
        let ReadingPlace { reading: Some(reading), passed_below: Some(passed_below) } = *self.place(role) else {
            return None;
        };
        let position = self.progress.get(&(reading, self.partition_of(role)?))?.position;
        (passed_below < position).then(|| {
            self.place_mut(role).passed_below = Some(position);
            Event::Passed { first: passed_below, last: position - 1 }
        })
    }

    /// Makes the reading that the election follows ask soon where the log ends.
    pub(crate) fn look_for_end(&mut self, role: u32) {
        if let Some(reading) = self.place(role).reading {
            self.order(reading, Order::Ask);
        }
    }

    /// Ends all readings.
    pub fn stop(&mut self) {
        self.places.fill(ReadingPlace::default());
        self.live = None;
        self.progress.clear();
        self.extra.clear();
        self.eager.clear();
    }

    // ---- events of the readings ---------------------------------------------------------------------------------------

    /// Handles an event of a reading that concerns each election of a partition.
    pub fn handle(&mut self, now: Time, reading: u32, partition: i32, event: &Event) {
        let Some(progress) = self.progress_of(now, reading, partition) else { return };
        let reads = progress.stage == Stage::Reading;
        if let Event::Answered { asked, start, end } = event {
            (progress.is_answered, progress.known_end) = (true, *end);
            let is_cut = reads && progress.signs.answered(*asked, *start..*end, progress.position).is_err();
            let was_cut = mem::replace(&mut progress.is_cut, is_cut);
            self.tell_all(reading, partition, event);
            if is_cut && (was_cut || self.all_followers(reading, partition).is_empty()) {
                // All have found that by themselves, but those that stand no longer, which follow still. The client waits at an offset of the old
                // log.
                self.cut(reading, partition);
            }
        } else if *event == Event::HistoryCut {
            self.cut(reading, partition);
        } else if let Event::ReachedEnd { next } = event {
            if reads {
                self.reached_end(now, reading, partition, *next);
            }
        } else {
            self.tell_all(reading, partition, event);
        }
        self.start_extra(now);
    }

    /// Handles a record.
    pub fn read(&mut self, now: Time, reading: u32, partition: i32, offset: i64, record: Option<SessionEvent>) {
        let Some(progress) = self.progress_of(now, reading, partition) else { return };
        if progress.stage == Stage::Reading && offset < progress.position {
            self.cut(reading, partition);
        } else if progress.stage == Stage::Reading {
            self.receive(now, reading, partition, offset, record);
        }
        self.start_extra(now);
    }

    fn progress_of(&mut self, now: Time, reading: u32, partition: i32) -> Option<&mut PartitionProgress> {
        if self.live == Some(reading) {
            self.progress.entry((reading, partition)).or_insert(PartitionProgress::asking(now));
        }
        self.progress.get_mut(&(reading, partition))
    }

    fn receive(&mut self, now: Time, reading: u32, partition: i32, offset: i64, record: Option<SessionEvent>) {
        let is_gap = self.pass_gap(reading, partition, offset);
        if let Some(SessionEvent::Election { role, event }) = record {
            if self.follows(role, reading, partition) && self.place(role).passed_below <= Some(offset) {
                self.tell_passed(role);
                self.place_mut(role).passed_below = Some(offset + 1);
                self.tell(role, event);
            }
        } else {
            self.events.extend(record);
        }
        let Some(progress) = self.progress.get_mut(&(reading, partition)) else { return };
        (progress.position, progress.handed_over_at) = (offset + 1, now);
        let followers = if is_gap {
            // Missing offsets are judged at the time at which the record behind them was read (L4).
            self.followers(reading, partition)
        } else if progress.position >= progress.known_end {
            self.eager_followers(reading, partition)
        } else {
            Vec::new()
        };
        for role in followers {
            self.tell_passed(role);
        }
        self.join_live(reading, partition);
    }

    fn reached_end(&mut self, now: Time, reading: u32, partition: i32, next: i64) {
        let Some(progress) = self.progress.get_mut(&(reading, partition)) else { return };
        if next > progress.position {
            // Behind the last record there are only markers. Each election must get the end, since no record follows that would show it.
            progress.handed_over_at = now;
            self.pass_gap(reading, partition, next);
            self.tell_all(reading, partition, &Event::ReachedEnd { next });
        } else {
            for role in self.eager_followers(reading, partition) {
                self.tell(role, Event::ReachedEnd { next });
            }
        }
        if let Some(live) = self.live.filter(|live| *live != reading) {
            let position = self.progress.get(&(reading, partition)).map_or(next, |progress| progress.position);
            let progress = self.progress.entry((live, partition)).or_insert(PartitionProgress::asking(now));
            if progress.stage != Stage::Reading {
                // The live reading's log was cut: it continues from here. If the topic was made anew, a client that has read the old one may never
                // reach the partitions' new leaders (librdkafka's issue 4898), so one new client takes over all partitions.
                let known_end = progress.known_end;
                *progress =
                    PartitionProgress { stage: Stage::Reading, position, known_end, ..PartitionProgress::asking(now) };
                if self.live_is_outdated {
                    self.renew(now, live);
                } else {
                    self.order(live, Order::ReadFrom { partition, offset: position });
                }
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
            place.passed_below = place.passed_below.max(Some(offset));
        }
        if let Some(progress) = self.progress.get_mut(&(reading, partition)) {
            progress.position = offset;
        }
        true
    }

    fn cut(&mut self, reading: u32, partition: i32) {
        self.live_is_outdated |= self.live == Some(reading);
        if let Some(progress) = self.progress.get_mut(&(reading, partition)) {
            progress.stage = Stage::Over;
        }
        for role in self.all_followers(reading, partition) {
            self.tell(role, Event::HistoryCut);
            self.unfollow(role);
        }
    }

    // ---- the elections that follow each reading --------------------------------------------------------------------

    fn tell(&mut self, role: u32, event: Event) {
        self.events.push_back(SessionEvent::Election { role, event });
    }

    fn tell_passed(&mut self, role: u32) {
        if let Some(event) = self.take_passed(role) {
            self.tell(role, event);
        }
    }

    fn tell_all(&mut self, reading: u32, partition: i32, event: &Event) {
        for role in self.all_followers(reading, partition) {
            self.tell_passed(role);
            self.tell(role, event.clone());
        }
    }

    /// The elections that follow this reading, also those that have not named an offset yet.
    fn all_followers(&self, reading: u32, partition: i32) -> Vec<u32> {
        self.roles_on(partition).filter(|role| self.place(*role).reading == Some(reading)).collect()
    }

    fn followers(&self, reading: u32, partition: i32) -> Vec<u32> {
        self.roles_on(partition).filter(|role| self.follows(*role, reading, partition)).collect()
    }

    fn eager_followers(&self, reading: u32, partition: i32) -> Vec<u32> {
        self.eager.iter().copied().filter(|role| self.follows(*role, reading, partition)).collect()
    }

    fn follows(&self, role: u32, reading: u32, partition: i32) -> bool {
        let place = self.place(role);
        place.passed_below.is_some() && place.reading == Some(reading) && self.partition_of(role) == Some(partition)
    }

    fn partition_of(&self, role: u32) -> Option<i32> {
        self.partitions.map(|partitions| Elections::partition_of(role, partitions))
    }

    fn place(&self, role: u32) -> &ReadingPlace {
        &self.places[role as usize]
    }

    fn place_mut(&mut self, role: u32) -> &mut ReadingPlace {
        &mut self.places[role as usize]
    }
}

// ---- the progress of a reading, and of an election that follows it -------------------------------------------------

/// librdkafka may need this long to notice a dead connection and to continue reading.
const READER_RECOVERS: Duration = Duration::from_secs(5);

/// The place of an election in a reading.
#[derive(Clone, Debug, Default)]
struct ReadingPlace {
    /// The reading that the election follows.
    reading: Option<u32>,
    /// The election has got every record below this offset; `None` before it has named the one from which it reads.
    passed_below: Option<i64>,
}

/// The stage of a reading of a partition.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// No election has named an offset yet.
    Asking,
    /// The log was cut: nothing more is read.
    Over,
    /// It reads records.
    Reading,
}

/// The progress of a reading of a partition.
#[derive(Debug)]
struct PartitionProgress {
    stage: Stage,
    /// The question where the log begins and ends was answered.
    is_answered: bool,
    /// Every record below this offset was handed over.
    position: i64,
    /// The end of the log by the last answer.
    known_end: i64,
    /// The answers that may show that the history was cut, and whether the last one did.
    signs: CutSigns,
    is_cut: bool,
    /// When a record was last handed over, or the client that reads was replaced.
    handed_over_at: Time,
}

impl PartitionProgress {
    /// The progress of a reading that has not begun.
    fn asking(now: Time) -> Self {
        Self {
            stage: Stage::Asking,
            is_answered: false,
            position: 0,
            known_end: 0,
            signs: CutSigns::default(),
            is_cut: false,
            handed_over_at: now,
        }
    }

    /// Whether no record was handed over for a long time, although the log is known to have more.
    fn is_stuck(&self, now: Time) -> bool {
        self.stage == Stage::Reading
            && self.known_end > self.position
            && now.since(self.handed_over_at) >= READER_RECOVERS
    }
}

// ---- the live reading, and the extra readings beside it ------------------------------------------------------------

/// How many extra readings are in progress at once. Each is a client of its own, with threads and connections: hundreds of elections that lose their
/// leases at once, and read anew, would start hundreds of clients on a machine that is already too busy.
const MOST_EXTRA: usize = 4;

/// An extra reading that takes longer does not count for that limit: its partition may have no leader.
const EXTRA_TAKES: Duration = Duration::from_secs(10);

impl Router {
    fn begin_live(&mut self, role: u32) {
        if let Some(before) = self.live.take() {
            self.progress.retain(|(reading, _), _| *reading != before);
        }
        self.readings += 1;
        (self.live, self.live_is_outdated) = (Some(self.readings), false);
        self.follow(role, self.readings);
    }

    fn begin_extra(&mut self, now: Time, partition: i32) -> u32 {
        let live = self.live.and_then(|live| self.progress.get(&(live, partition)));
        let known_end = live.map_or(0, |live| live.known_end);
        let free = self.waiting().find(|reading| !self.progress.contains_key(&(*reading, partition)));
        let reading = free.unwrap_or_else(|| {
            self.readings += 1;
            self.extra.insert(self.readings, None);
            self.readings
        });
        self.progress.insert((reading, partition), PartitionProgress { known_end, ..PartitionProgress::asking(now) });
        reading
    }

    /// Begins waiting extra readings, as far as the limit allows. Each reads all partitions that were added to it while it waited.
    fn start_extra(&mut self, now: Time) {
        let counted = self.extra.values().flatten().filter(|begun| now.since(**begun) < EXTRA_TAKES).count();
        let next: Vec<u32> = self.waiting().take(MOST_EXTRA.saturating_sub(counted)).collect();
        for reading in next {
            self.extra.insert(reading, Some(now));
            let begun = self.partitions_of(reading).filter(|(_, progress)| progress.stage == Stage::Reading);
            let orders: Vec<_> = begun
                .map(|(partition, progress)| (reading, Order::ReadFrom { partition, offset: progress.position }))
                .collect();
            self.orders.extend(orders);
        }
    }

    /// Replaces the client of each reading in progress, because no broker answers.
    pub(crate) fn renew_all(&mut self, now: Time) {
        let readings: Vec<u32> = self.readings().collect();
        for reading in readings {
            self.renew(now, reading);
        }
    }

    /// Replaces the client of a reading in progress, which is stuck or outdated, by another one that continues at the same offsets. The elections
    /// that follow it notice nothing. The new client gets as much time as the old one before it counts as stuck too.
    fn renew(&mut self, now: Time, before: u32) {
        self.readings += 1;
        let after = self.readings;
        if let Some(begun) = self.extra.remove(&before) {
            self.extra.insert(after, begun);
        } else {
            (self.live, self.live_is_outdated) = (Some(after), false);
        }
        let partitions: Vec<i32> = self.partitions_of(before).map(|(partition, _)| partition).collect();
        for partition in partitions {
            let Some(mut progress) = self.progress.remove(&(before, partition)) else { continue };
            progress.handed_over_at = now;
            if progress.stage == Stage::Reading {
                self.order(after, Order::ReadFrom { partition, offset: progress.position });
            }
            self.progress.insert((after, partition), progress);
        }
        let followers = self.places.iter_mut().filter(|place| place.reading == Some(before));
        followers.for_each(|place| place.reading = Some(after));
    }

    /// If an extra reading has come as far as the live one, the elections that follow it follow the live one from now on.
    fn join_live(&mut self, reading: u32, partition: i32) {
        let Some(live) = self.live.filter(|live| *live != reading) else { return };
        let position = |reading| {
            let progress = self.progress.get(&(reading, partition))?;
            (progress.stage == Stage::Reading).then_some(progress.position)
        };
        if !matches!((position(reading), position(live)), (Some(extra), Some(live)) if extra >= live) {
            return;
        }
        for role in self.all_followers(reading, partition) {
            if self.place(role).passed_below.is_none() {
                self.order(live, Order::Ask);
            }
            self.tell_passed(role);
            self.place_mut(role).reading = Some(live);
        }
        self.close(reading, partition);
    }

    fn close(&mut self, reading: u32, partition: i32) {
        self.progress.remove(&(reading, partition));
        if self.partitions_of(reading).next().is_none() {
            self.extra.remove(&reading);
        }
    }

    fn follow(&mut self, role: u32, reading: u32) {
        *self.place_mut(role) = ReadingPlace { reading: Some(reading), ..ReadingPlace::default() };
    }

    fn unfollow(&mut self, role: u32) {
        let Some(reading) = mem::take(self.place_mut(role)).reading else { return };
        self.eager.remove(&role);
        if let Some(partition) = self.partition_of(role)
            && self.live != Some(reading)
            && self.all_followers(reading, partition).is_empty()
        {
            self.close(reading, partition);
        }
    }
}

// ---- the readers, by the numbers of their readings -----------------------------------------------------------------

/// Readers of elections whose records share a topic.
pub struct KafkaReaders {
    /// The source for each later reader, except which partitions it reads. Its number of partitions is `None` if each reader is to find the
    /// topic's number.
    pub source: Source,
    by_reading: BTreeMap<u32, Reader>,
    event_sender: Sender<KafkaEvent>,
    /// When a reader is started again that lacked a thread, if so.
    starts_again_at: Option<Time>,
}

impl KafkaReaders {
    /// The readers send their events to `event_sender`, which are to be passed to the router.
    pub const fn new(source: Source, event_sender: Sender<KafkaEvent>) -> Self {
        Self { source, by_reading: BTreeMap::new(), event_sender, starts_again_at: None }
    }

    /// When [`follow`](Self::follow) is to be called again, at the latest.
    pub const fn poll_timeout(&self) -> Option<Time> {
        self.starts_again_at
    }

    /// Does what the router wants of the readers. A reader that lacks a thread is started by a later call, and gets its orders then. The roles
    /// that it does not concern lead on.
    pub fn follow(&mut self, router: &mut Router) {
        self.by_reading.retain(|reading, _| router.has(*reading));
        let mut started = Ok(());
        for reading in router.readings() {
            if let Entry::Vacant(entry) = self.by_reading.entry(reading) {
                let source = Source { only: router.only(reading), ..self.source.clone() };
                match Reader::start(source, reading, self.event_sender.clone()) {
                    Ok(reader) => drop(entry.insert(reader)),
                    Err(error) => started = Err(error),
                }
            }
        }
        for (reading, order) in mem::take(&mut router.orders) {
            if let Some(reader) = self.by_reading.get(&reading) {
                reader.order(order);
            } else if router.has(reading) {
                router.orders.push_back((reading, order));
            }
            // One that has ended needs nothing any more.
        }
        self.note(started);
    }

    pub(super) fn note(&mut self, started: io::Result<()>) {
        if let Some(error) = note_started(&mut self.starts_again_at, clock::now(), started) {
            // It does not wait: the caller's thread is the one that empties the channel.
            let _ = self.event_sender.try_send(SessionEvent::Warning(without_thread(&reason(&error))).into());
        }
    }
}

#[cfg(test)]
mod tests;
