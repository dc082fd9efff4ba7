//! A follower: it learns who leads, and does not stand for election.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use std::{io, mem, thread};

use neli_kafka::{
    Access, Elections, IfMissing, KafkaEvent, KafkaReaders, Router, SessionEvent, Source, Timeouts, clock, reason,
    shown_duration,
};
use neli_proto::candidate;
use neli_proto::followed_mapping::FollowedMapping;
use neli_proto::hello::Hello;
use neli_proto::leadership::{LastTerm, Leadership as Current, Receipt};
use neli_proto::listener::{FIRST_SPAN, Listener, LogBounds};
use neli_proto::record::{Offset, Record};
use neli_proto::time::Time;
use neli_proto::topic::TopicIdentity;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::{broadcast, watch};

use crate::error::Error;
use crate::event::{Event, Events, Leader};
use crate::leadership::{self, Leadership};
use crate::waiter::Waiter;
use crate::warnings::{OnWarning, pass};

/// How many warnings are kept for each subscriber.
const WARNINGS_KEPT: usize = 32;

/// How many events may wait for the thread; those that send them wait beyond that.
const EVENTS_WAITING: usize = 1024;

/// Learns who leads an election, to route requests to the leader for example. It needs READ on the topic alone, joins no group, and
/// writes nothing. Where the topic does not exist yet, it waits for it. A clone is the same follower. [`Builder::follow`](crate::Builder::follow)
/// starts one.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli_election::EmbeddedBroker::start()?;
/// # let builder = neli_election::Election::builder("billing").embedded(&broker).name("10.0.0.7:8080");
/// # let election = builder.join().await?;
/// # let lead = election.lead().await?;
/// let builder = neli_election::Election::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
/// # let builder = neli_election::Election::builder("billing").embedded(&broker);
/// let mut follower = builder.follow()?;
/// while follower.leader().is_none() {
///     follower.changed().await?;
/// }
/// assert_eq!(follower.leader().and_then(|leader| leader.name).as_deref(), Some("10.0.0.7:8080"));
/// assert!(matches!(follower.leadership(), neli_election::Leadership::Led(_)));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Follower {
    /// What it knows, or why it follows no more. The thread ends when the last receiver is dropped.
    state: watch::Receiver<Result<Leadership, Error>>,
    /// Where the warnings come from, once for all roles.
    events: Arc<broadcast::Receiver<Event>>,
}

impl Follower {
    /// The leader, as far as it is known; [`leadership`](Self::leadership) also says why there is none.
    #[must_use]
    pub fn leader(&self) -> Option<Leader> {
        self.state.borrow().as_ref().ok()?.leader().cloned()
    }

    /// The leader, also while it is silent within its lease; or that nobody leads; or that the leader is unknown, and why.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        let known = self.state.borrow().clone();
        known.unwrap_or_else(|ended| Leadership::Unknown { trouble: Some(ended.to_string()) })
    }

    /// The warnings from now on: [`Event::Warning`] and [`Event::Missed`] alone. One says that nothing can be read, and another that this is
    /// over. If the follower ends, the last one says why. The followers of many roles share one reader, so each returns the same warnings. While
    /// nobody has asked for events, warnings go to stderr, unless [`Builder::on_warning`](crate::Builder::on_warning) was given.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// # let follower = neli_election::Election::builder("billing").embedded(&broker).follow()?;
    /// let mut events = follower.events();
    /// tokio::spawn(async move {
    ///     while let Some(event) = events.next().await {
    ///         eprintln!("{event:?}");
    ///     }
    /// });
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn events(&self) -> Events {
        Events::new(self.events.resubscribe())
    }

    /// Waits until [`leadership`](Self::leadership) is another than it was at the last call.
    ///
    /// # Errors
    ///
    /// Kafka refuses to be read, and the follower has ended.
    ///
    /// # Cancel safety
    ///
    /// Safe in `select!`: if the future is dropped, the next call returns for the same change.
    pub async fn changed(&mut self) -> Result<(), Error> {
        let changed = self.state.changed().await;
        self.state.borrow().as_ref().map_err(Error::clone)?;
        changed.map_err(|_| Error::System("the follower's thread has panicked".to_owned()))
    }
}

/// Starts the thread. Returns a follower of each role.
pub(crate) fn start(
    access: Access,
    elections: Elections,
    on_warning: Option<OnWarning>,
) -> Result<Vec<Follower>, Error> {
    let cannot = |error: io::Error| Error::System(format!("the follower can't be started: {}", reason(&error)));
    let (states, receivers): (Vec<_>, Vec<_>) =
        elections.roles.clone().map(|_| watch::channel(Ok(Leadership::Unknown { trouble: None }))).unzip();
    let source = Source::new(access, elections, IfMissing::Await);
    let (event_sender, events) = mpsc::channel(EVENTS_WAITING);
    let (warnings, warned) = broadcast::channel(WARNINGS_KEPT);
    let warned = Arc::new(warned);
    let mut reading = Reading::new(source, event_sender, states, warnings, on_warning);
    reading.begin(clock::now());
    let waiter = Waiter::new().map_err(cannot)?;
    let thread = thread::Builder::new().name("neli-follower".to_owned());
    thread.spawn(move || reading.run(waiter, events)).map_err(cannot)?;
    Ok(receivers.into_iter().map(|state| Follower { state, events: Arc::clone(&warned) }).collect())
}

// ---- the thread, which reads the journals of all roles that are followed, and publishes who leads each --------------

/// A reader that has handed over nothing for this long, although the log has more records, is replaced. Candidates wait as long with the
/// default lease.
const STUCK_AFTER: Duration = Duration::from_secs(20);

/// If Kafka has not answered for so long where a role's log ends, it is not known to be vacant any more: that is asked every 20 s.
const UNANSWERED_AFTER: Duration = Duration::from_secs(60);

/// The journals, as they are read.
struct Reading {
    /// Their number of partitions is that in the candidates' hellos, by which this follower maps roles to partitions; `None` if it uses the number
    /// that each reader finds.
    readers: KafkaReaders,
    router: Router,
    /// By how many partitions the candidates map roles to partitions. A single role is always in partition 0.
    mapping: FollowedMapping,
    /// In the order of their numbers.
    roles: Vec<Role>,
    /// The roles, by their indices, whose leader may be another than was published: only these are looked at, since there may be thousands
    /// of roles, and as many heartbeats a second.
    touched: BTreeSet<usize>,
    /// When each role must be looked at again if nothing of it is read before: its leader is no longer known then, or its reader is stuck.
    timeouts: Timeouts,
    /// Why nothing can be read: no broker answers, for example (`None`). Or why one reading can't go on in one partition, where it has stopped at a
    /// batch that can't be decoded; those of other partitions go on.
    troubles: BTreeMap<Option<(u32, i32)>, String>,
    /// Whether no broker answers.
    is_down: bool,
    /// Since when something can't be read, if the followers were warned of it.
    warned_since: Option<Time>,
    /// For the followers' warnings; the reading goes on after each.
    warnings: broadcast::Sender<Event>,
    on_warning: Option<OnWarning>,
}

/// One election that is followed.
struct Role {
    listener: Listener,
    last_term: LastTerm,
    /// When Kafka last said where its log ends.
    answered_at: Option<Time>,
    state: watch::Sender<Result<Leadership, Error>>,
}

impl Reading {
    fn new(
        source: Source,
        event_sender: Sender<KafkaEvent>,
        states: Vec<watch::Sender<Result<Leadership, Error>>>,
        warnings: broadcast::Sender<Event>,
        on_warning: Option<OnWarning>,
    ) -> Self {
        let now = clock::now();
        let elections = &source.elections;
        let roles = elections.roles.clone();
        Self {
            mapping: FollowedMapping::new(&elections.typed()),
            // A topic that was created again may have another number of partitions, so each reader finds it by itself.
            readers: KafkaReaders::new(source, event_sender),
            router: Router::new(roles),
            touched: (0..states.len()).collect(),
            timeouts: Timeouts::default(),
            roles: states.into_iter().map(|state| Role::asking(now, state)).collect(),
            troubles: BTreeMap::new(),
            is_down: false,
            warned_since: None,
            warnings,
            on_warning,
        }
    }

    /// Reads until the last follower is dropped, or Kafka refuses to be read.
    fn run(mut self, mut waiter: Waiter, mut events: Receiver<KafkaEvent>) {
        loop {
            let due = self.publish(clock::now()).into_iter().chain(self.readers.poll_timeout()).min();
            let dropped = async {
                for role in &self.roles {
                    role.state.closed().await;
                }
            };
            let event = waiter.wait(due, async {
                tokio::select! {
                    biased;
                    () = dropped => None,
                    event = events.recv() => event,
                }
            });
            let handled = match event {
                // The wait has timed out.
                None => Ok(()),
                Some(None) => return,
                Some(Some(event)) => self.handle(event),
            };
            if let Err(error) = handled {
                return self.end(&error);
            }
            self.replace_stuck_readers(clock::now());
        }
    }

    /// Tells the followers why nothing is read any more. A program that never waits for a change learns it from the warning.
    fn end(&self, error: &Error) {
        for role in &self.roles {
            drop(role.state.send_replace(Err(error.clone())));
        }
        self.warn(&format!("it is unknown who leads: this follower has ended: {error}"));
    }

    /// Publishes who leads each role. Returns when that changes if nothing is read until then.
    fn publish(&mut self, now: Time) -> Option<Time> {
        self.touched.extend(self.timeouts.due(now));
        while let Some(at) = self.touched.pop_first() {
            let role = &self.roles[at];
            let (current, trouble) = (role.current(now), self.trouble_of(at).cloned());
            let current = if trouble.is_none() { current } else { current.unanswered() };
            let changes_at = leadership::lasts_for(current).map(|left| now + left);
            let is_partition_known = at == 0 || self.is_mapping_known(now);
            let known_at = self.mapping.known_from().filter(|_| !is_partition_known);
            let known = role.state.borrow().as_ref().ok().and_then(Leadership::leader).cloned();
            let mut leadership = Leadership::of(current, now, known.as_ref(), trouble);
            let mut vacant_until = None;
            if leadership == Leadership::Vacant {
                vacant_until = role.answered_at.map(|at| at + UNANSWERED_AFTER).filter(|at| now < *at);
                if !is_partition_known || vacant_until.is_none() {
                    leadership = Leadership::Unknown { trouble: None };
                }
            }
            self.timeouts.set(at, [changes_at, role.stuck_at(), known_at, vacant_until].into_iter().flatten().min());
            role.state.send_if_modified(|state| {
                // The times of a silence by Rust's clock differ a little at each look.
                let is_silent_still =
                    |of: &Leader| matches!(&leadership, Leadership::Silent { leader, .. } if leader == of);
                let has_changed = match &*state {
                    Ok(Leadership::Silent { leader, .. }) => !is_silent_still(leader),
                    Ok(known) => *known != leadership,
                    Err(_) => true,
                };
                if has_changed {
                    *state = Ok(leadership);
                }
                has_changed
            });
        }
        self.timeouts.first()
    }

    /// Reads the journals anew whose readers are stuck.
    fn replace_stuck_readers(&mut self, now: Time) {
        for at in self.timeouts.due(now) {
            let Some(number) = self.roles().nth(at) else { continue };
            // The reader may have handed over records of other elections, of which the role was not told yet.
            if let Some(passed) = self.router.take_passed(number) {
                self.handle_role_event(now, number, passed);
            }
            if self.roles[at].stuck_at().is_some_and(|due| now >= due) {
                self.roles[at].listener.ask_anew(now);
                self.router.read_anew(now, number);
            }
        }
        self.follow_router(now);
    }

    /// Why the journal of a role can't be read, if so.
    fn trouble_of(&self, at: usize) -> Option<&String> {
        let stopped = || self.troubles.get(&Some(self.router.reading_of(self.roles().nth(at)?)?));
        self.troubles.get(&None).or_else(stopped)
    }

    /// Notes why all journals, or that of one partition, can't be read. The followers are warned once until all can be read again.
    fn stops(&mut self, of: Option<(u32, i32)>, trouble: String) {
        if self.warned_since.is_none() {
            self.warned_since = Some(clock::now());
            self.warn(&format!("it is unknown who leads: {trouble}"));
        }
        if self.troubles.get(&of) != Some(&trouble) {
            self.troubles.insert(of, trouble);
            self.touched.extend(0..self.roles.len());
        }
    }

    /// Kafka answers. If it is `of` a reading of a partition, that one goes on as well.
    fn goes_on(&mut self, of: Option<(u32, i32)>) {
        let before = self.troubles.len();
        let router = &self.router;
        self.troubles.retain(|known, _| *known != of && known.is_some_and(|(reading, _)| router.has(reading)));
        if self.troubles.len() < before {
            self.touched.extend(0..self.roles.len());
        }
        if let Some(since) = self.warned_since.take_if(|_| self.troubles.is_empty()) {
            let lasted = Duration::from_secs(clock::now().since(since).as_secs());
            self.warn(&format!("the journal is read again, after {}", shown_duration(lasted)));
        }
    }

    /// Warns the followers, and the callback. If there is none, and nobody has asked for events, the warning goes to stderr.
    fn warn(&self, message: &str) {
        // One receiver is kept for those that ask later.
        if self.on_warning.is_some() || self.warnings.receiver_count() <= 1 {
            pass(self.on_warning.as_ref(), &self.readers.source.elections.group, message);
        }
        drop(self.warnings.send(Event::warning(message)));
    }

    fn handle(&mut self, event: KafkaEvent) -> Result<(), Error> {
        // A follower sends nothing, joins no group, and does not ask for the topic's id or settings.
        if let KafkaEvent::Partitions(partitions) = event {
            self.found(partitions);
            return Ok(());
        } else if let KafkaEvent::Process(event) = event {
            return self.handle_process_event(event);
        }
        let now = clock::now();
        if let KafkaEvent::Read { reading, partition, offset, record } = event {
            if self.router.has(reading) {
                self.goes_on(Some((reading, partition)));
            }
            self.router.read(now, reading, partition, offset, record);
        } else if let KafkaEvent::Reading { reading, partition, event } = event {
            let of = Some((reading, partition)).filter(|_| self.router.has(reading));
            if let (candidate::Event::ReachedEnd { .. }, Some(_)) = (&event, of) {
                self.goes_on(of);
            } else if let (candidate::Event::Undecodable { offset, error: Some(error) }, Some(_)) = (&event, of) {
                // It tries that again every half a second.
                let topic = &self.readers.source.elections.topic;
                self.stops(of, format!("topic \"{topic}\": the batch at offset {offset} can't be decoded: {error}"));
            }
            self.router.handle(now, reading, partition, &event);
        }
        self.follow_router(now);
        Ok(())
    }

    /// Readers alone report no other events.
    fn handle_process_event(&mut self, event: SessionEvent) -> Result<(), Error> {
        if let SessionEvent::Refused { error, .. } = event {
            return Err(Error::Refused(error));
        } else if let SessionEvent::Outage { error: None } = event {
            self.goes_on(None);
            // Before a first answer there is nothing to begin anew: a new client may be as slow.
            if mem::take(&mut self.is_down) && self.roles.iter().any(|role| role.answered_at.is_some()) {
                self.begin(clock::now());
            }
        } else if let SessionEvent::Outage { error: Some(error) } = event {
            self.is_down = true;
            self.stops(None, error);
        } else if let SessionEvent::Warning(message) = event {
            self.warn(&message);
        }
        Ok(())
    }

    /// Passes the router's events to the roles' listeners.
    fn follow_router(&mut self, now: Time) {
        loop {
            self.readers.follow(&mut self.router);
            let event = self.router.poll();
            // No event of the former readings may reach a role that is read in another partition.
            if event.is_none() && !self.follow_mapping(now) {
                return;
            }
            if let Some(SessionEvent::Election { role, event }) = event {
                self.handle_role_event(now, role, event);
            } else if let Some(SessionEvent::Hello { offset, value }) = event
                && let Some(hello) = Hello::parse(&value)
            {
                self.read_hello(now, offset, &hello);
            }
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "it joins no group and sends nothing")]
    fn handle_role_event(&mut self, now: Time, number: u32, event: candidate::Event) {
        let at = number as usize;
        self.touched.insert(at);
        let role = &mut self.roles[at];
        match event {
            candidate::Event::Answered { asked, start, end } => {
                role.answered_at = Some(now);
                match role.listener.answered(now, LogBounds { asked, start, end }) {
                    Ok(Some(from)) => self.router.read_from(now, number, from),
                    Ok(None) => {}
                    Err(_) => self.read_anew(now, number),
                }
            }
            candidate::Event::HelloAsked { offset } => {
                role.listener.read_others(now, offset, offset);
            }
            candidate::Event::ReadHello { offset, hello } => {
                role.listener.read_others(now, offset, offset);
                // Those of other partitions have offsets of their own.
                if at == 0 {
                    self.read_hello(now, offset, &hello);
                }
            }
            candidate::Event::HistoryCut => self.read_anew(now, number),
            candidate::Event::Passed { first, last } => {
                role.listener.read_others(now, first, last);
            }
            candidate::Event::ReachedEnd { next } => role.listener.reached(now, next),
            candidate::Event::Read { offset, record, written_ms } => {
                role.read(now, offset, record.as_ref(), written_ms);
            }
            candidate::Event::TopicIdentified { asked, identity: TopicIdentity::Missing }
                if role.listener.topic_missing(asked).is_err() =>
            {
                self.read_anew(now, number);
                // The reader of all roles' partitions says this of a topic that it has never found.
                let topic = &self.readers.source.elections.topic;
                let trouble = format!("topic \"{topic}\": it does not exist yet; waiting until a candidate creates it");
                self.stops(None, trouble);
            }
            candidate::Event::Undecodable { .. } => role.listener.undecodable(now),
            _ => {}
        }
        let listener = &mut self.roles[at].listener;
        // In a topic with many records of other elections, the last record of this one may be further back.
        if listener.ask_further_back(now) {
            self.router.read_anew(now, number);
        } else if listener.is_caught_up() {
            self.router.note_caught_up(number);
            self.note_caught_up(now, at);
        }
    }

    /// Begins to read the journal of each role, by how many partitions roles are mapped, too. After an outage nothing of before counts: meanwhile the
    /// topic may have been made again, and have become longer than what was read of the old one.
    fn begin(&mut self, now: Time) {
        self.mapping.history_cut();
        self.readers.source.partitions = None;
        self.read_all_anew(now, Role::ask_from_start);
        self.follow_router(now);
    }

    /// Reads all journals anew. Of each is forgotten what was read, or what is gone.
    fn read_all_anew(&mut self, now: Time, forget: fn(&mut Role, Time)) {
        self.router.stop();
        for (number, role) in self.roles().zip(&mut self.roles) {
            forget(role, now);
            self.router.read_anew(now, number);
        }
        self.touched.extend(0..self.roles.len());
    }

    /// Reads a role's journal anew: its history was cut, or the topic was created again.
    fn read_anew(&mut self, now: Time, number: u32) {
        let at = number as usize;
        self.touched.insert(at);
        if at == 0 {
            self.mapping.history_cut();
        }
        self.roles[at].history_cut(now);
        self.router.read_anew(now, number);
    }

    /// The numbers of the roles, which begin with 0.
    fn roles(&self) -> Range<u32> {
        self.readers.source.elections.roles.clone()
    }
}

impl Role {
    /// One of which nothing is known.
    fn asking(now: Time, state: watch::Sender<Result<Leadership, Error>>) -> Self {
        Self { listener: Listener::asking(now, FIRST_SPAN), last_term: LastTerm::default(), answered_at: None, state }
    }

    /// Forgets what was read of its journal. What its followers were told stays.
    fn ask_from_start(&mut self, now: Time) {
        (self.listener, self.last_term, self.answered_at) =
            (Listener::asking(now, FIRST_SPAN), LastTerm::default(), None);
    }

    /// Forgets the records that are gone.
    fn history_cut(&mut self, now: Time) {
        self.listener.history_cut(now);
        // A term of the new history may have the number of one of the old.
        self.last_term = LastTerm::default();
    }

    /// Who leads, by the records that were read.
    fn current(&self, now: Time) -> Current<'_> {
        self.last_term.leadership_by(&self.listener, now)
    }

    /// When its reader counts as stuck, unless it hands over a record before.
    fn stuck_at(&self) -> Option<Time> {
        self.listener.stuck_since().map(|since| since + STUCK_AFTER)
    }

    fn read(&mut self, now: Time, offset: Offset, record: Option<&Record>, written_ms: Option<u64>) {
        let is_live = self.listener.is_caught_up();
        let verdict = self.listener.read(now, offset, record, false);
        let received = Receipt { read: now, written_ms, is_brokers_time: true, is_live };
        self.last_term.read(self.listener.journal().view(), offset, record, verdict, received);
    }
}

// ---- the partition of each followed role ---------------------------------------------------------------------------

impl Reading {
    /// Notes the number of the topic's partitions. If it has changed, roles have moved to other partitions, and all journals are read again.
    fn found(&mut self, partitions: i32) {
        if self.readers.source.partitions.is_some() {
            // It was found before a candidate's hello said by which number roles are mapped.
            return;
        }
        let known = self.router.partitions();
        self.router.found(partitions);
        if known.is_some_and(|known| known != partitions) {
            let now = clock::now();
            self.mapping.history_cut();
            self.read_all_anew(now, Role::history_cut);
            self.follow_router(now);
        }
    }

    fn read_hello(&mut self, now: Time, offset: Offset, hello: &Hello) {
        let known_from = self.mapping.known_from();
        let warning = self.mapping.received(now, offset, hello);
        if known_from.is_none_or(|from| now < from) {
            self.touched.extend(0..self.roles.len());
        }
        if let Some(warning) = warning {
            self.warn(&warning);
        }
    }

    /// Maps roles to partitions by the number in the last hello. Returns whether roles have moved, so that all journals are read anew.
    fn follow_mapping(&mut self, now: Time) -> bool {
        if !self.readers.source.elections.are_many() {
            return false;
        }
        let counted = self.mapping.counted().and_then(|counted| i32::try_from(counted).ok());
        if counted == self.readers.source.partitions {
            return false;
        }
        let before = self.router.partitions();
        self.readers.source.partitions = counted;
        if let Some(counted) = counted {
            self.router.found(counted);
        }
        if counted.is_some() && counted == before {
            return false;
        }
        // By another number the journal of a role is another one.
        self.read_all_anew(now, if counted.is_some() { Role::ask_from_start } else { Role::history_cut });
        true
    }

    /// Whether it is known by how many partitions roles are mapped, so that a role without records has no leader.
    fn is_mapping_known(&self, now: Time) -> bool {
        self.mapping.known_from().is_some_and(|from| now >= from) || self.router.partitions() == Some(1)
    }

    /// Notes that a role's journal has been read up to its end.
    fn note_caught_up(&mut self, now: Time, at: usize) {
        if at != 0 {
            return;
        }
        let known_from = self.mapping.known_from();
        self.mapping.caught_up(now, self.roles[at].listener.has_read_whole_log());
        if self.mapping.known_from() != known_from {
            self.touched.extend(0..self.roles.len());
        }
    }
}

#[cfg(test)]
mod tests;
