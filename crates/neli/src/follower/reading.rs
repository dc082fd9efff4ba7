//! The follower's thread: it reads the journals of all roles that are followed, and publishes who leads each.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io;
use std::time::Instant;

use neli_proto::journal::{Verdict, View};
use neli_proto::listener::{FIRST_SPAN, Listener, LogBounds};
use neli_proto::record::{Offset, Record};
use neli_proto::time::Time;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::sync::{broadcast, watch};

use super::{Leadership, State};
use crate::clock;
use crate::election::Elections;
use crate::error::Error;
use crate::event::{Event, Leader};
use crate::kafka::event::{KafkaEvent, Key, ReadRecord, ReadingEvent};
use crate::kafka::reader::{Reader, Source};
use crate::text::reason;
use crate::waiter::Waiter;
use crate::wording;

/// The journals, as they are read.
pub(super) struct Reading {
    source: Source,
    reader: Option<Reader>,
    /// How many readings there have been: events of an earlier one are dropped.
    number: u32,
    event_sender: Sender<KafkaEvent>,
    /// How many partitions the topic has, once that is known.
    partitions: Option<i32>,
    /// How far each partition is read.
    progress: BTreeMap<i32, Progress>,
    roles: Vec<Role>,
    /// Why no broker answers, or what else keeps the reading from going on.
    trouble: Option<String>,
    /// What stops nothing.
    warnings: broadcast::Sender<Event>,
}

/// One partition.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// Everything below was handed over.
    position: Offset,
    known_end: Offset,
}

/// One election that is followed.
struct Role {
    listener: Listener,
    /// The listener has been given everything below this offset.
    handled_to: Offset,
    /// When the leader's last effective record was read.
    last_effective: Time,
    /// The last term that was known, and since when.
    known: Option<(Offset, Instant)>,
    state: watch::Sender<State>,
}

impl Reading {
    pub(super) fn new(
        source: Source,
        event_sender: Sender<KafkaEvent>,
        states: Vec<watch::Sender<State>>,
        warnings: broadcast::Sender<Event>,
    ) -> Self {
        let now = clock::now();
        let role = |state| {
            let listener = Listener::asking(now, FIRST_SPAN);
            Role { listener, handled_to: 0, last_effective: now, known: None, state }
        };
        Self {
            // A single role 0 is always in the first partition.
            partitions: (source.elections.roles.end == 1).then_some(1),
            source,
            reader: None,
            number: 0,
            event_sender,
            progress: BTreeMap::new(),
            roles: states.into_iter().map(role).collect(),
            trouble: None,
            warnings,
        }
    }

    pub(super) fn read_anew(&mut self) -> io::Result<()> {
        self.number += 1;
        // Of the reader before.
        self.trouble = None;
        self.reader = None;
        self.reader = Some(Reader::start(self.source.clone(), self.number, self.event_sender.clone())?);
        Ok(())
    }

    /// Until the last follower is dropped, or Kafka refuses.
    pub(super) fn run(
        mut self,
        mut waiter: Waiter,
        mut events: Receiver<KafkaEvent>,
        mut followers: Receiver<Infallible>,
    ) {
        loop {
            let due = self.publish(clock::now());
            let event = waiter.wait(due, async {
                tokio::select! {
                    biased;
                    _ = followers.recv() => None,
                    event = events.recv() => event,
                }
            });
            let refused = match event {
                // A leader has been silent for its lease.
                None => None,
                Some(None) => return,
                Some(Some(event)) => self.handle(event).err(),
            };
            if let Some(error) = refused {
                for role in &self.roles {
                    let leadership = Leadership::Unknown { trouble: Some(error.to_string()) };
                    role.state.send_replace(State { leadership, ended: Some(error.clone()) });
                }
                return;
            }
        }
    }

    /// Tells who leads each role. Gives when that changes if nothing is read until then.
    fn publish(&self, now: Time) -> Option<Time> {
        let publish = |role: &Role| {
            let leader = role.leader(now);
            let due = leader.as_ref().map(|(_, until)| *until);
            let leadership = match leader {
                Some((leader, _)) => Leadership::Led(leader),
                None if self.trouble.is_none() && role.is_vacant() => Leadership::Vacant,
                None => Leadership::Unknown { trouble: self.trouble.clone() },
            };
            role.state.send_if_modified(|state| {
                let has_changed = state.leadership != leadership;
                state.leadership = leadership;
                has_changed
            });
            due
        };
        self.roles.iter().filter_map(publish).min()
    }

    fn handle(&mut self, event: KafkaEvent) -> Result<(), Error> {
        match event {
            KafkaEvent::Reading { reading, partition, event } if reading == self.number => {
                self.handle_reading(partition, event).map_err(|error| Error::System(reason(&error)))?;
            }
            KafkaEvent::Refused { error } => return Err(Error::refused(&error)),
            KafkaEvent::Down { error } => self.trouble = Some(wording::of_library(&error)),
            KafkaEvent::Up => self.trouble = None,
            KafkaEvent::Partitions(partitions) => self.partitions = Some(partitions),
            KafkaEvent::AppendRefused { .. }
            | KafkaEvent::BrokerSession(_)
            | KafkaEvent::Created { .. }
            | KafkaEvent::Debug(_)
            | KafkaEvent::Delivered { .. }
            | KafkaEvent::Facts { .. }
            | KafkaEvent::HelloDelivered
            | KafkaEvent::Identified { .. }
            | KafkaEvent::Moved(_)
            | KafkaEvent::NotDelivered { .. }
            | KafkaEvent::Reading { .. }
            | KafkaEvent::Topic { .. } => {}
            // Nobody may be listening.
            KafkaEvent::Warning(message) => drop(self.warnings.send(Event::warning(&message))),
        }
        Ok(())
    }

    fn handle_reading(&mut self, partition: i32, event: ReadingEvent) -> io::Result<()> {
        let now = clock::now();
        match event {
            ReadingEvent::CaughtUp { next } => {
                // What is read goes on, so that nothing keeps it from that.
                self.trouble = None;
                self.pass_gap(now, partition, next);
                for role in self.on(partition) {
                    self.roles[role].pass(now, next);
                    self.roles[role].listener.reached(now, next);
                }
            }
            ReadingEvent::Cut => return self.begin_anew(now),
            ReadingEvent::Ends { asked, start, end } => return self.ends(now, partition, asked, (start, end)),
            ReadingEvent::Record(record) => {
                self.trouble = None;
                self.read(now, partition, record);
            }
            ReadingEvent::Undecodable { offset, error } => {
                let topic = &self.source.elections.topic;
                self.trouble =
                    Some(format!("topic \"{topic}\": the batch at offset {offset} can't be decoded: {error}"));
                for role in self.on(partition) {
                    self.roles[role].listener.undecodable(now);
                }
            }
        }
        Ok(())
    }

    fn ends(&mut self, now: Time, partition: i32, asked: Time, (start, end): (Offset, Offset)) -> io::Result<()> {
        let embedded = self.source.access.embedded.as_ref();
        let trusted = embedded.is_none_or(|broker| now >= broker.trusted_from());
        self.progress.entry(partition).or_default().known_end = end;
        let mut froms = BTreeSet::new();
        for role in self.on(partition) {
            let role = &mut self.roles[role];
            match role.listener.answered(now, LogBounds { asked, start, end, trusted }) {
                Ok(Some(from)) => {
                    // What is read is older.
                    (role.last_effective, role.handled_to) = (now, from);
                    froms.insert(from);
                }
                Ok(None) => {}
                Err(_) => return self.begin_anew(now),
            }
        }
        // Each has been asking since the same reading began, and is answered the same.
        if let Some(from) = froms.first() {
            self.progress.entry(partition).or_default().position = *from;
            self.reader.iter().for_each(|reader| reader.read_from(partition, *from));
        }
        Ok(())
    }

    fn read(&mut self, now: Time, partition: i32, record: ReadRecord) {
        let ReadRecord { offset, key, value, .. } = record;
        self.pass_gap(now, partition, offset);
        let first = self.source.elections.roles.start;
        if let Key::Election(role) = key
            && let Some(role) = role.checked_sub(first).and_then(|at| self.roles.get_mut(at as usize))
        {
            role.pass(now, offset);
            role.read(now, offset, value.as_deref());
        }
        let progress = self.progress.entry(partition).or_default();
        progress.position = offset + 1;
        let Progress { position, known_end } = *progress;
        if position >= known_end {
            for role in self.on(partition).filter(|role| !self.roles[*role].listener.is_caught_up()).collect::<Vec<_>>()
            {
                self.roles[role].pass(now, position);
            }
        }
    }
    /// The next offset is this one. Where something is missing before it, each role is told of all before that.
    fn pass_gap(&mut self, now: Time, partition: i32, offset: Offset) {
        let position = self.progress.entry(partition).or_default().position;
        if offset <= position {
            return;
        }
        for role in self.on(partition) {
            self.roles[role].pass(now, position);
            self.roles[role].handled_to = offset;
        }
        self.progress.entry(partition).or_default().position = offset;
    }

    /// Where the roles on a partition stand in the list.
    fn on(&self, partition: i32) -> impl Iterator<Item = usize> + use<> {
        let first = self.source.elections.roles.start;
        // One that is followed alone is in the partition that is read.
        let partitions = self.partitions.unwrap_or(1);
        let is_on = move |at: &usize| {
            let number = first + u32::try_from(*at).unwrap_or_default();
            Elections::partition_of(number, partitions) == partition
        };
        (0..self.roles.len()).filter(is_on)
    }

    /// The history is cut or made anew.
    fn begin_anew(&mut self, now: Time) -> io::Result<()> {
        self.progress.clear();
        self.roles.iter_mut().for_each(|role| role.listener.history_cut(now));
        self.read_anew()
    }
}

impl Role {
    /// Who leads, and until when that is taken for known.
    fn leader(&self, now: Time) -> Option<(Leader, Time)> {
        let View::Led(term) = self.listener.journal().view() else { return None };
        let until = self.last_effective + term.lease;
        let is_known = self.listener.is_caught_up() && now < until;
        let name = term.name.as_deref().map(Into::into);
        let since = self.known.filter(|(known, _)| *known == term.offset).map(|(_, since)| since);
        is_known.then_some((Leader { name, term: term.offset, is_self: false, since }, until))
    }

    fn is_vacant(&self) -> bool {
        self.listener.is_caught_up() && self.listener.is_vacant()
    }

    /// Others' records stand at each offset below this one that it does not know of.
    fn pass(&mut self, now: Time, next: Offset) {
        if self.handled_to < next {
            self.listener.read_others(now, self.handled_to, next - 1);
            self.handled_to = next;
        }
    }

    fn read(&mut self, now: Time, offset: Offset, value: Option<&[u8]>) {
        let record = value.and_then(Record::parse);
        if self.listener.read(now, offset, record.as_ref(), false).verdict == Verdict::Effective {
            self.last_effective = now;
        }
        self.handled_to = self.handled_to.max(offset + 1);
        if let View::Led(term) = self.listener.journal().view()
            && self.known.is_none_or(|(known, _)| known != term.offset)
        {
            self.known = Some((term.offset, clock::instant_of(now)));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::election::Properties;
    use crate::kafka::access::Access;
    use crate::kafka::reader::IfMissing;

    #[test]
    fn what_stops_nothing_is_told() {
        let source = Source {
            access: Access::at("localhost:9", &Properties::default()),
            elections: Elections { group: "g".into(), topic: "t".into(), roles: 0..1, names: [].into() },
            partitions: None,
            only: None,
            if_missing: IfMissing::Await,
            joins_group: false,
            is_looked_at: false,
        };
        let (events, _received) = mpsc::channel(1);
        let (warnings, mut told) = broadcast::channel(1);
        let mut reading = Reading::new(source, events, Vec::new(), warnings);
        let message = "odd".to_owned();
        reading.handle(KafkaEvent::Warning(message.clone())).unwrap();
        assert_eq!(told.try_recv(), Ok(Event::Warning { message }));
    }
}
