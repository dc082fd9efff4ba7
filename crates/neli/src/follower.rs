//! A follower: it learns who leads, and stands for nothing.

use std::io;
use std::thread;

use neli_proto::journal::{Verdict, View};
use neli_proto::listener::{FIRST_SPAN, Listener, LogBounds};
use neli_proto::record::Record;
use neli_proto::time::Time;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::watch;

use crate::builder::place::{Place, PlaceOptions};
use crate::clock;
use crate::election::Elections;
use crate::error::Error;
use crate::event::Leader;
use crate::kafka::embedded::in_process::EmbeddedBroker;
use crate::kafka::event::{KafkaEvent, Key, ReadRecord, ReadingEvent};
use crate::kafka::reader::{Reader, Source};
use crate::text::reason;
use crate::waiter::Waiter;

/// The partition of role 0, which is the only one here.
const PARTITION: i32 = 0;
/// How many events may wait for the thread; those that send them wait beyond that.
const EVENTS_WAITING: usize = 1024;

/// Learns who leads an election, to route requests to the leader for example. It needs READ on the topic alone, joins no group, and
/// writes nothing. A clone is the same follower.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli::EmbeddedBroker::start()?;
/// # let builder = neli::Election::builder("billing").embedded(&broker).name("10.0.0.7:8080");
/// # let election = builder.join().await?;
/// # let lead = election.lead().await?;
/// let builder = neli::Follower::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
/// # let builder = neli::Follower::builder("billing").embedded(&broker);
/// let mut follower = builder.start()?;
/// while follower.leader().is_none() {
///     follower.changed().await?;
/// }
/// assert_eq!(follower.leader().and_then(|leader| leader.name).as_deref(), Some("10.0.0.7:8080"));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Follower {
    state: watch::Receiver<State>,
}

/// What a follower knows.
#[derive(Clone, Debug, Default)]
struct State {
    leader: Option<Leader>,
    /// It follows no more, and why.
    ended: Option<Error>,
}

impl Follower {
    /// A follower of the election of this name.
    pub fn builder(group: impl Into<String>) -> FollowerBuilder {
        FollowerBuilder { place: PlaceOptions::new(group.into()) }
    }

    /// Who leads, as far as is known: `None` before the journal is read, where nobody leads, and where the leader has been silent
    /// for its whole lease. What was the leader a moment ago may not be now: the leader itself checks its lease.
    #[must_use]
    pub fn leader(&self) -> Option<Leader> {
        self.state.borrow().leader.clone()
    }

    /// Waits until [`leader`](Self::leader) is another than it was at the last call.
    ///
    /// # Errors
    ///
    /// Kafka refuses to be read: nothing more will be learnt.
    pub async fn changed(&mut self) -> Result<(), Error> {
        let changed = self.state.changed().await;
        match &self.state.borrow().ended {
            Some(error) => Err(error.clone()),
            None => changed.map_err(|_| Error::System("the follower's thread has panicked".to_owned())),
        }
    }
}

/// A follower, before it starts: see [`Follower::builder`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli::EmbeddedBroker::start()?;
/// let builder = neli::Follower::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
/// # let builder = neli::Follower::builder("billing").embedded(&broker);
/// let follower = builder.topic("elections").property("client.id", "billing-web").start()?;
/// assert_eq!(follower.leader(), None);
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "it follows nothing before start"]
pub struct FollowerBuilder {
    place: PlaceOptions,
}

impl FollowerBuilder {
    /// As [`Builder::brokers`](crate::Builder::brokers).
    pub fn brokers(mut self, brokers: impl Into<String>) -> Self {
        self.place.brokers = Some(brokers.into());
        self
    }

    /// As [`Builder::embedded`](crate::Builder::embedded).
    pub fn embedded(mut self, broker: &EmbeddedBroker) -> Self {
        self.place.embedded = Some(broker.clone());
        self
    }

    /// As [`Builder::topic`](crate::Builder::topic).
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.place.topic = Some(topic.into());
        self
    }

    /// As [`Builder::property`](crate::Builder::property).
    pub fn property(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.place.properties.push((key.into(), value.into()));
        self
    }

    /// Starts to follow, in a thread of its own.
    ///
    /// # Errors
    ///
    /// An option is missing or wrong: the error says what would be right. Or the machine has no thread to spare.
    pub fn start(self) -> Result<Follower, Error> {
        let cannot = |error: io::Error| Error::System(format!("the follower can't be started: {}", reason(&error)));
        let Place { access, election } = self.place.validate()?;
        let (state, states) = watch::channel(State::default());
        let source = Source {
            access,
            elections: Elections::from(&election),
            partitions: None,
            only: None,
            create_topic: false,
            joins_group: false,
            is_looked_at: false,
        };
        let (event_sender, events) = mpsc::channel(EVENTS_WAITING);
        let now = clock::now();
        let mut reading = Reading {
            source,
            reader: None,
            number: 0,
            event_sender,
            listener: Listener::asking(now, FIRST_SPAN),
            last_word: now,
        };
        reading.read_anew().map_err(cannot)?;
        let waiter = Waiter::new().map_err(cannot)?;
        let thread = thread::Builder::new().name("neli-follower".to_owned());
        thread.spawn(move || reading.run(waiter, events, &state)).map_err(cannot)?;
        Ok(Follower { state: states })
    }
}

/// The journal, as it is read.
struct Reading {
    source: Source,
    reader: Option<Reader>,
    /// How many readings there have been: events of an earlier one are dropped.
    number: u32,
    event_sender: Sender<KafkaEvent>,
    listener: Listener,
    /// When a record of the leader's came last.
    last_word: Time,
}

impl Reading {
    /// Until the last follower is dropped, or Kafka refuses.
    fn run(mut self, mut waiter: Waiter, mut events: Receiver<KafkaEvent>, state: &watch::Sender<State>) {
        loop {
            let now = clock::now();
            let leader = self.leader(now);
            let due = leader.as_ref().map(|(_, until)| *until);
            let leader = leader.map(|(leader, _)| leader);
            state.send_if_modified(|state| std::mem::replace(&mut state.leader, leader.clone()) != leader);
            let event = waiter.wait(due, async {
                tokio::select! {
                    biased;
                    () = state.closed() => None,
                    event = events.recv() => event,
                }
            });
            let refused = match event {
                // The leader has been silent for its lease.
                None => None,
                Some(None) => return,
                Some(Some(event)) => self.handle(event).err(),
            };
            if let Some(error) = refused {
                state.send_replace(State { leader: None, ended: Some(error) });
                return;
            }
        }
    }

    /// Who leads, and until when that is taken for known.
    fn leader(&self, now: Time) -> Option<(Leader, Time)> {
        let View::Led(term) = self.listener.journal().view() else { return None };
        let until = self.last_word + term.lease;
        let is_known = self.listener.is_caught_up() && now < until;
        let name = term.name.as_deref().map(Into::into);
        is_known.then_some((Leader { name, term: term.offset, is_self: false }, until))
    }

    fn handle(&mut self, event: KafkaEvent) -> Result<(), Error> {
        match event {
            KafkaEvent::Reading { reading, event, .. } if reading == self.number => {
                self.handle_reading(event).map_err(|error| Error::System(reason(&error)))
            }
            KafkaEvent::Refused { error } => Err(Error::Refused(error)),
            KafkaEvent::AppendRefused { .. }
            | KafkaEvent::BrokerSession(_)
            | KafkaEvent::Created { .. }
            | KafkaEvent::Debug(_)
            | KafkaEvent::Delivered { .. }
            | KafkaEvent::Down { .. }
            | KafkaEvent::Facts { .. }
            | KafkaEvent::HelloDelivered
            | KafkaEvent::Identified { .. }
            | KafkaEvent::Moved(_)
            | KafkaEvent::NotDelivered { .. }
            | KafkaEvent::Partitions(_)
            | KafkaEvent::Reading { .. }
            | KafkaEvent::Topic { .. }
            | KafkaEvent::Up
            | KafkaEvent::Warning(_) => Ok(()),
        }
    }

    fn handle_reading(&mut self, event: ReadingEvent) -> io::Result<()> {
        let now = clock::now();
        match event {
            ReadingEvent::CaughtUp { next } => self.listener.reached(now, next),
            ReadingEvent::Cut => return self.begin_anew(now),
            ReadingEvent::Ends { asked, start, end } => {
                let embedded = self.source.access.embedded.as_ref();
                let trusted = embedded.is_none_or(|broker| now >= broker.trusted_from());
                match self.listener.answered(now, LogBounds { asked, start, end, trusted }) {
                    Ok(Some(from)) => {
                        // What is read is older.
                        self.last_word = now;
                        self.reader.iter().for_each(|reader| reader.read_from(PARTITION, from));
                    }
                    Ok(None) => {}
                    Err(_) => return self.begin_anew(now),
                }
            }
            ReadingEvent::Record(ReadRecord { offset, key: Key::Election(_), value, .. }) => {
                let record = value.as_deref().and_then(Record::parse);
                if self.listener.read(now, offset, record.as_ref(), false).verdict == Verdict::Effective {
                    self.last_word = now;
                }
            }
            ReadingEvent::Record(ReadRecord { offset, .. }) => self.listener.read_others(now, offset, offset),
            ReadingEvent::Undecodable { .. } => self.listener.undecodable(now),
        }
        Ok(())
    }

    /// The history is cut or made anew.
    fn begin_anew(&mut self, now: Time) -> io::Result<()> {
        self.listener.history_cut(now);
        self.read_anew()
    }

    fn read_anew(&mut self) -> io::Result<()> {
        self.number += 1;
        self.reader = None;
        self.reader = Some(Reader::start(self.source.clone(), self.number, self.event_sender.clone())?);
        Ok(())
    }
}
