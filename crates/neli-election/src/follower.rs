//! A follower: it learns who leads, and does not stand for election.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::thread;

use neli_kafka::{Access, Elections, IfMissing, Source, reason};
use tokio::sync::mpsc::{self, Sender};
use tokio::sync::{broadcast, watch};

use crate::builder::place::{Place, PlaceOptions};
use crate::embedded_broker::EmbeddedBroker;
use crate::error::Error;
use crate::event::{Event, Events, Leader};
use crate::leadership::Leadership;
use crate::roles::RoleNames;
use crate::waiter::Waiter;
use reading::Reading;

mod reading;

/// How many warnings are kept for each subscriber.
const WARNINGS_KEPT: usize = 32;

/// How many events may wait for the thread; those that send them wait beyond that.
const EVENTS_WAITING: usize = 1024;

/// Learns who leads an election, to route requests to the leader for example. It needs READ on the topic alone, joins no group, and
/// writes nothing. Where the topic does not exist yet, it waits for it. A clone is the same follower.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli_election::EmbeddedBroker::start()?;
/// # let builder = neli_election::Election::builder("billing").embedded(&broker).name("10.0.0.7:8080");
/// # let election = builder.join().await?;
/// # let lead = election.lead().await?;
/// let builder = neli_election::Follower::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
/// # let builder = neli_election::Follower::builder("billing").embedded(&broker);
/// let mut follower = builder.start()?;
/// while follower.leader().is_none() {
///     follower.changed().await?;
/// }
/// assert_eq!(follower.leader().and_then(|leader| leader.name).as_deref(), Some("10.0.0.7:8080"));
/// assert!(matches!(follower.leadership(), neli_election::Leadership::Led(_)));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Follower {
    state: watch::Receiver<FollowerState>,
    /// Where the warnings come from, once for all roles.
    events: Arc<broadcast::Receiver<Event>>,
    /// The thread ends with the last one.
    _follows: Arc<Sender<Infallible>>,
}

/// What a follower knows.
#[derive(Clone, Debug)]
struct FollowerState {
    leadership: Leadership,
    /// It follows no more, and why.
    ended: Option<Error>,
}

impl Follower {
    /// A follower of the election of this name.
    pub fn builder(group: impl Into<String>) -> FollowerBuilder {
        FollowerBuilder { place: PlaceOptions::new(group.into()) }
    }

    /// The leader, as far as it is known; [`leadership`](Self::leadership) also says why there is none.
    #[must_use]
    pub fn leader(&self) -> Option<Leader> {
        self.state.borrow().leadership.leader().cloned()
    }

    /// The leader, also while it is silent within its lease; or that nobody leads; or that the leader is unknown, and why.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.state.borrow().leadership.clone()
    }

    /// The warnings from now on: [`Event::Warning`] and [`Event::Missed`] alone. One says that nothing can be read, and another that this is
    /// over. The followers of many roles share one reader, so each returns the same warnings. While nobody has asked for events, warnings go to
    /// stderr.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// # let follower = neli_election::Follower::builder("billing").embedded(&broker).start()?;
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
/// # let broker = neli_election::EmbeddedBroker::start()?;
/// let builder = neli_election::Follower::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
/// # let builder = neli_election::Follower::builder("billing").embedded(&broker);
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

    /// In place of one election those of so many roles, which are called by their numbers: as
    /// [`Builder::roles`](crate::Builder::roles).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// let builder = neli_election::Follower::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
    /// # let builder = neli_election::Follower::builder("billing").embedded(&broker);
    /// let roles = builder.roles(16).start()?;
    /// assert!(roles.get("15").is_some());
    /// # Ok(()) }
    /// ```
    pub const fn roles(self, count: u32) -> RolesFollowerBuilder {
        RolesFollowerBuilder { follower: self, roles: RoleNames::counted(count) }
    }

    /// The same by names: as [`Builder::named_roles`](crate::Builder::named_roles), the same ones in the same order.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// let builder = neli_election::Follower::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
    /// # let builder = neli_election::Follower::builder("billing").embedded(&broker);
    /// let roles = builder.named_roles(["ingest", "bill"]).start()?;
    /// assert!(roles.get("bill").is_some());
    /// # Ok(()) }
    /// ```
    pub fn named_roles<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> RolesFollowerBuilder {
        RolesFollowerBuilder { follower: self, roles: RoleNames::named(names.into_iter().map(Into::into).collect()) }
    }

    /// Starts to follow, in a thread of its own.
    ///
    /// # Errors
    ///
    /// An option is missing or wrong: the error says what would be right. Or the machine has no thread to spare.
    pub fn start(self) -> Result<Follower, Error> {
        let Place { access, election } = self.place.validate()?;
        let mut followers = start(access, Elections::from(&election))?;
        followers.pop().ok_or_else(|| Error::System("an election without a role".to_owned()))
    }
}

/// Followers of many roles, before they start: see [`FollowerBuilder::roles`] and [`FollowerBuilder::named_roles`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli_election::EmbeddedBroker::start()?;
/// let builder = neli_election::Follower::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
/// # let builder = neli_election::Follower::builder("billing").embedded(&broker);
/// let roles = builder.roles(16).start()?;
/// assert_eq!(roles.iter().count(), 16);
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "it follows nothing before start"]
pub struct RolesFollowerBuilder {
    follower: FollowerBuilder,
    roles: RoleNames,
}

impl RolesFollowerBuilder {
    /// Starts to follow all roles, in one thread and by one reader.
    ///
    /// # Errors
    ///
    /// As for [`FollowerBuilder::start`].
    pub fn start(self) -> Result<RolesFollower, Error> {
        self.roles.validate()?;
        let Place { access, election } = self.follower.place.validate()?;
        let followers = start(access, self.roles.elections(&Elections::from(&election)))?;
        Ok(RolesFollower { followers: self.roles.labels().into_iter().zip(followers).collect() })
    }
}

/// Learns who leads each of many roles, to route requests to a shard's leader for example. A clone is the same.
///
/// It looks for each role in the partition that the candidates' hellos say, so it finds the leaders although partitions were added to the
/// topic since those started. If the candidates stand for other roles, or for the same names in another order, its [events](Follower::events)
/// contain a warning.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli_election::EmbeddedBroker::start()?;
/// # let builder = neli_election::Election::builder("billing").embedded(&broker).name("10.0.0.7:8080");
/// # let candidate = builder.roles(4).join().await?;
/// # let lead = candidate.get("3").ok_or("no such role")?.lead().await?;
/// let builder = neli_election::Follower::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
/// # let builder = neli_election::Follower::builder("billing").embedded(&broker);
/// let roles = builder.roles(4).start()?;
/// let mut shard = roles.get("3").ok_or("no such role")?.clone();
/// while shard.leader().is_none() {
///     shard.changed().await?;
/// }
/// assert_eq!(shard.leader().and_then(|leader| leader.name).as_deref(), Some("10.0.0.7:8080"));
/// for (role, follower) in roles.iter() {
///     println!("{role}: {:?}", follower.leadership());
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct RolesFollower {
    /// In the order of their numbers.
    followers: Vec<(String, Follower)>,
}

impl RolesFollower {
    /// The follower of a role, by its name or number.
    #[must_use]
    pub fn get(&self, role: &str) -> Option<&Follower> {
        self.followers.iter().find(|(name, _)| name == role).map(|(_, follower)| follower)
    }

    /// Every role with its follower, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Follower)> {
        self.followers.iter().map(|(name, follower)| (name.as_str(), follower))
    }
}

/// Starts the thread. Returns a follower of each role.
fn start(access: Access, elections: Elections) -> Result<Vec<Follower>, Error> {
    let cannot = |error: io::Error| Error::System(format!("the follower can't be started: {}", reason(&error)));
    let unknown = FollowerState { leadership: Leadership::Unknown { trouble: None }, ended: None };
    let (states, receivers): (Vec<_>, Vec<_>) =
        elections.roles.clone().map(|_| watch::channel(unknown.clone())).unzip();
    let source =
        Source { access, elections, partitions: None, only: None, if_missing: IfMissing::Await, is_for_display: false };
    let (event_sender, events) = mpsc::channel(EVENTS_WAITING);
    // Nothing is sent: the thread sees that the last sender is dropped.
    let (follows, followers) = mpsc::channel(1);
    let (warnings, warned) = broadcast::channel(WARNINGS_KEPT);
    let warned = Arc::new(warned);
    let mut reading = Reading::new(source, event_sender, states, warnings);
    reading.start().map_err(cannot)?;
    let waiter = Waiter::new().map_err(cannot)?;
    let thread = thread::Builder::new().name("neli-follower".to_owned());
    thread.spawn(move || reading.run(waiter, events, followers)).map_err(cannot)?;
    let follows = Arc::new(follows);
    Ok(receivers
        .into_iter()
        .map(|state| Follower { state, events: Arc::clone(&warned), _follows: Arc::clone(&follows) })
        .collect())
}
