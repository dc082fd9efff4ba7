//! A follower: it learns who leads, and does not stand for election.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use neli_kafka::names::MOST_ROLES;
use neli_kafka::{Access, Elections, Timeouts, TopicsEvent, TopicsReader, clock, reason, shown_duration};
use neli_proto::hello::Hello;
use neli_proto::leadership::{Leadership as Current, ReadAt, Unknown};
use neli_proto::listener::FIRST_SPAN;
use neli_proto::mapping::Mapping;
use neli_proto::observer::{Election, Place, ReadTopic, Topics};
use neli_proto::record::{LogRecord, is_hello_of};
use neli_proto::time::Time;
use tokio::sync::mpsc::{self, Receiver};
use tokio::sync::{broadcast, watch};

use crate::error::Error;
use crate::event::{Event, Events, Leader};
use crate::leadership::{self, Leadership};
use crate::waiter::Waiter;
use crate::warnings::{OnWarning, pass};

/// How many warnings are kept for each subscriber.
const WARNINGS_KEPT: usize = 32;

/// How many candidates' roles that are not followed are warned of.
const MOST_OTHERS: usize = 16;

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
    access: &Access,
    elections: Elections,
    on_warning: Option<OnWarning>,
) -> Result<Vec<Follower>, Error> {
    let cannot = |error: io::Error| Error::System(format!("the follower can't be started: {}", reason(&error)));
    let (states, receivers): (Vec<_>, Vec<_>) =
        elections.roles.clone().map(|_| watch::channel(Ok(Leadership::Unknown { trouble: None }))).unzip();
    let (event_sender, events) = mpsc::channel(EVENTS_WAITING);
    let (warnings, warned) = broadcast::channel(WARNINGS_KEPT);
    let warned = Arc::new(warned);
    let waiter = Waiter::new().map_err(cannot)?;
    let reader = TopicsReader::of_one(access, &elections.topic, event_sender)?;
    let reading = Reading::new(elections, states, warnings, on_warning);
    let thread = thread::Builder::new().name("neli-follower".to_owned());
    thread.spawn(move || reading.run(&reader, waiter, events)).map_err(cannot)?;
    Ok(receivers.into_iter().map(|state| Follower { state, events: Arc::clone(&warned) }).collect())
}

// ---- the thread, which reads the topic, and publishes who leads each role that is followed --------------------------

/// The topic, as it is read.
struct Reading {
    elections: Elections,
    topics: Topics,
    /// In the order of their numbers.
    roles: Vec<Role>,
    numbers: BTreeMap<Box<str>, usize>,
    /// The roles, by their indices, whose leader may be another than was published: only these are looked at, since there may be thousands
    /// of roles, and as many heartbeats a second.
    touched: BTreeSet<usize>,
    /// When each role must be looked at again if nothing of it is read before: its leader is no longer known then.
    timeouts: Timeouts,
    /// The roles of candidates of the group that stand for none that is followed, as far as they were warned of.
    others: BTreeSet<String>,
    /// Since when something can't be read, if the followers were warned of it.
    warned_since: Option<Time>,
    /// For the followers' warnings; the reading goes on after each.
    warnings: broadcast::Sender<Event>,
    on_warning: Option<OnWarning>,
}

/// One election that is followed.
struct Role {
    label: Box<str>,
    /// Where its last record was read.
    place: Option<Place>,
    /// Why records can't be read that may be its own, until the next one is.
    unread: Option<String>,
    state: watch::Sender<Result<Leadership, Error>>,
}

impl Reading {
    fn new(
        elections: Elections,
        states: Vec<watch::Sender<Result<Leadership, Error>>>,
        warnings: broadcast::Sender<Event>,
        on_warning: Option<OnWarning>,
    ) -> Self {
        let labels: Vec<Box<str>> = elections.labels().into_iter().map(Box::from).collect();
        let roles = labels.iter().zip(states).map(|(label, state)| Role {
            label: label.clone(),
            place: None,
            unread: None,
            state,
        });
        Self {
            topics: Topics::new(FIRST_SPAN, MOST_ROLES).of_group(&elections.group),
            roles: roles.collect(),
            touched: (0..labels.len()).collect(),
            numbers: labels.into_iter().zip(0..).collect(),
            timeouts: Timeouts::default(),
            others: BTreeSet::new(),
            warned_since: None,
            elections,
            warnings,
            on_warning,
        }
    }

    /// Reads until the last follower is dropped, or Kafka refuses to be read.
    fn run(mut self, reader: &TopicsReader, mut waiter: Waiter, mut events: Receiver<TopicsEvent>) {
        loop {
            let due = self.publish(now());
            while let Some(action) = self.topics.poll_action() {
                reader.perform(action);
            }
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
                Some(Some(event)) => self.handle(now(), event),
            };
            if let Err(error) = handled {
                return self.end(&error);
            }
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
    fn publish(&mut self, at: ReadAt) -> Option<Time> {
        self.touched.extend(self.timeouts.due(at.now));
        while let Some(number) = self.touched.pop_first() {
            let (leadership, lasts_for) = self.leadership(at, &self.roles[number]);
            if leadership == (Leadership::Unknown { trouble: None }) && self.is_undecided(&self.roles[number]) {
                self.topics.read_whole_logs(at);
            }
            self.timeouts.set(number, lasts_for.map(|left| at.now + left));
            self.roles[number].state.send_if_modified(|state| {
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

    /// Who leads a role, and for how long that is so if nothing is read.
    fn leadership(&self, at: ReadAt, role: &Role) -> (Leadership, Option<Duration>) {
        let found = self.election(role);
        let trouble = self.trouble(found.map(|found| found.place().partition)).or_else(|| role.unread.clone());
        let Some(found) = found else {
            let is_vacant = trouble.is_none() && self.read().is_some_and(|read| read.is_live() && !read.has_past());
            return (if is_vacant { Leadership::Vacant } else { Leadership::Unknown { trouble } }, None);
        };
        let current = found.observer().leadership(at);
        let current = if trouble.is_none() { current } else { current.unanswered() };
        // By a clock that is ahead of the brokers' a leader would seem silent.
        let current =
            if found.observer().doubts_timestamps(at).is_some() { Current::Unknown(Unknown::Reading) } else { current };
        let known = role.state.borrow().as_ref().ok().and_then(Leadership::leader).cloned();
        (Leadership::of(current, at.now, known.as_ref(), trouble), leadership::lasts_for(current))
    }

    /// A role's election, once the topic was read.
    fn election(&self, role: &Role) -> Option<&Election> {
        let topic = self.read().filter(|read| read.is_live())?.topic();
        let known = role.place.as_ref().and_then(|place| topic.election(place));
        known.or_else(|| topic.elections().find(|found| found.place().role == role.label))
    }

    /// Whether the records that were read of a role decide nothing, but earlier ones may.
    fn is_undecided(&self, role: &Role) -> bool {
        let may_be_decided = self.read().is_some_and(|read| read.is_live() && read.has_past());
        may_be_decided && self.election(role).is_none_or(Election::wants_earlier_records)
    }

    fn read(&self) -> Option<&ReadTopic> {
        self.topics.topic(&self.elections.topic)
    }

    /// Why the topic, or this partition of it, can't be read.
    fn trouble(&self, partition: Option<i32>) -> Option<String> {
        let topic = &self.elections.topic;
        match (self.topics.outage(), self.read()) {
            (Some((_, why)), _) => Some(why.to_owned()),
            (None, Some(read)) => {
                let of_any = || partition.is_none().then(|| read.troubles().next()).flatten();
                read.trouble(partition).or_else(of_any).map(str::to_owned)
            }
            (None, None) => self
                .topics
                .is_complete()
                .then(|| format!("topic \"{topic}\": it does not exist yet; waiting until a candidate creates it")),
        }
    }

    fn handle(&mut self, at: ReadAt, event: TopicsEvent) -> Result<(), Error> {
        match event {
            TopicsEvent::Read { reading, topic, partition, record } => {
                self.handle_record(at, (reading, &topic), partition, &record);
                return Ok(());
            }
            TopicsEvent::Answered { asked, topics } => {
                self.topics.answered(at, asked, topics);
                if let Some(why) = self.read().and_then(|read| read.trouble(None)) {
                    return Err(Error::Refused(why.to_owned()));
                }
            }
            TopicsEvent::Down(why) => self.topics.no_answer(at.now, &why),
            TopicsEvent::PastBegins { reading, from } => self.topics.past_begins(at, reading, &from),
            TopicsEvent::Refused(error) => return Err(Error::Refused(error)),
            TopicsEvent::Warning { warning, hides_records } => {
                for role in self.roles.iter_mut().filter(|_| hides_records) {
                    role.unread = Some(warning.clone());
                }
                self.warn(&warning);
            }
        }
        self.touched.extend(0..self.roles.len());
        self.note_trouble(at.now);
        Ok(())
    }

    fn handle_record(&mut self, at: ReadAt, reading: (u32, &str), partition: i32, record: &LogRecord) {
        let progress = |of: &Self| of.read().map(|read| (read.is_live(), read.has_past()));
        let (before, is_of_past) = (progress(self), self.topics.is_of_past(reading.0));
        let judged = self.topics.read(at, reading, partition, record);
        let place = judged.filter(|_| !is_of_past).map(|judged| judged.election.place().clone());
        if let Some((number, place)) = place.and_then(|place| Some((*self.numbers.get(&place.role)?, place))) {
            let role = &mut self.roles[number];
            (role.place, role.unread) = (Some(place), None);
            self.touched.insert(number);
        }
        if progress(self) != before {
            self.touched.extend(0..self.roles.len());
        }
        let hello = record.value.as_deref().filter(|_| is_hello_of(&self.elections.group, record));
        if let (Some((true, _)), Some(hello)) = (before, hello.and_then(Hello::parse)) {
            self.note_hello(&hello);
        }
    }

    /// Warns of a candidate that stands for none of the followed roles, once for its roles. One that was read before the end of the log may have gone.
    fn note_hello(&mut self, hello: &Hello) {
        let theirs = hello.mapping();
        let own = Mapping::new(&self.elections.typed(), theirs.partitions());
        if hello.leaves || own.shares_role(&theirs) || self.others.len() >= MOST_OTHERS {
            return;
        }
        let (theirs, own) = (theirs.roles(), own.roles());
        if self.others.insert(theirs.clone()) {
            let name = hello.name.as_deref().unwrap_or(hello.member.as_str());
            self.warn(&format!(
                "{name} stands in this group for other roles ({theirs}), and for none of those that are followed ({own}); follow the roles \
                 of the candidates"
            ));
        }
    }

    /// Warns the followers once of why something can't be read, and then that all can be read again.
    fn note_trouble(&mut self, now: Time) {
        match (self.trouble(None), self.warned_since) {
            (Some(trouble), None) => {
                self.warned_since = Some(now);
                self.warn(&format!("it is unknown who leads: {trouble}"));
            }
            (None, Some(since)) => {
                self.warned_since = None;
                let lasted = Duration::from_secs(now.since(since).as_secs());
                self.warn(&format!("the journal is read again, after {}", shown_duration(lasted)));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
    }

    /// Warns the followers, and the callback. If there is none, and nobody has asked for events, the warning goes to stderr.
    fn warn(&self, message: &str) {
        // One receiver is kept for those that ask later.
        if self.on_warning.is_some() || self.warnings.receiver_count() <= 1 {
            pass(self.on_warning.as_ref(), &self.elections.group, message);
        }
        drop(self.warnings.send(Event::warning(message)));
    }
}

fn now() -> ReadAt {
    ReadAt { now: clock::now(), wall_ms: clock::wall_ms() }
}

#[cfg(test)]
mod tests;
