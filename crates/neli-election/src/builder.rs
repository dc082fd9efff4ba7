//! The description of a candidate before it joins its election.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use neli_kafka::embedded::Connection;
use neli_kafka::{
    Access, Elections, IfMissing, MemberTimings, Properties, Source, bootstrap_servers, clock, hello, names,
    random_bytes, reason, shown_duration,
};
use neli_proto::listener::FIRST_SPAN;
use neli_proto::node;
use neli_proto::record::MemberId;
use neli_proto::supervisor::{Policy, StopPolicy};
use neli_proto::timings::{self, Durations, Timings, default_fence_warning, default_heartbeat_interval, kill_margin};
use tokio::runtime::Handle;

use crate::driver::{self, Callback};
use crate::error::{Error, Reason};
use crate::follower::{self, Follower};
use crate::handle::Election;
use crate::lease::Lease;
use crate::task_guard::STOP;
use crate::warnings::OnWarning;
use crate::wording;

/// Which candidate claims a vacant lead first. This is about precedence only: the journal decides which candidate leads.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli_election::EmbeddedBroker::start()?;
/// let builder = neli_election::Election::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
/// # let builder = neli_election::Election::builder("billing").embedded(&broker);
/// let election = builder.elector(neli_election::Elector::Log).join().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Elector {
    /// The candidate that Kafka's consumer group has chosen is first. Each candidate needs the right READ on the group.
    Group,
    /// The candidate whose claim is appended first. It is faster at a start and after a death, and needs no right on a group.
    Log,
}

/// A candidate before it joins its election, or a follower before it starts: see [`Election::builder`](crate::Election::builder).
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli_election::EmbeddedBroker::start()?;
/// let builder = neli_election::Election::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
/// # let builder = neli_election::Election::builder("billing").embedded(&broker);
/// let builder = builder
///     .topic("elections")
///     .create_topic(true)
///     .property("client.id", "billing")
///     .name("10.0.0.7:8080")
///     .elector(neli_election::Elector::Group)
///     .patience(Some(Duration::from_secs(1)))
///     .lease(Duration::from_secs(10))
///     .heartbeat_interval(Duration::from_secs(1))
///     .margin(Duration::from_secs(1))
///     .fence_warning(Duration::from_secs(2))
///     .stop_timeout(Duration::from_secs(5))
///     .named_roles(["ingest", "bill", "report"])
///     .spread(true)
///     .max_roles(2)
///     .before_release(Duration::from_secs(2), |lease, reason| async move {
///         println!("about to release term {}: {reason}", lease.token());
///     });
/// let roles = builder.join_roles().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "it does nothing before it joins or follows"]
pub struct Builder {
    group: String,
    brokers: Option<String>,
    embedded: Option<EmbeddedBroker>,
    topic: Option<String>,
    properties: Vec<(String, String)>,
    lease: Duration,
    heartbeat_interval: Option<Duration>,
    margin: Option<Duration>,
    fence_warning: Option<Duration>,
    create_topic: bool,
    elector: Elector,
    /// Precedence by the group, with the patience that was given.
    by_group: Option<timings::Elector>,
    name: Option<String>,
    stop_timeout: Duration,
    before_release: Option<(Duration, Callback)>,
    pub(crate) on_warning: Option<OnWarning>,
    /// How many roles there are in place of one election, and their names; no names if they have numbers alone.
    pub(crate) roles: Option<(u32, Arc<[String]>)>,
    are_spread: Option<bool>,
    pub(crate) max_roles: Option<u32>,
}

impl Election {
    /// A candidate for the election of this name, the same on every machine.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// let builder = neli_election::Election::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
    /// # let builder = neli_election::Election::builder("billing").embedded(&broker);
    /// let election = builder.join().await?;
    /// let mut lead = election.lead().await?;
    /// lead.run(|lease| async move { println!("leading in term {}", lease.token()) }).await?;
    /// # Ok(()) }
    /// ```
    pub fn builder(group: impl Into<String>) -> Builder {
        Builder {
            group: group.into(),
            brokers: None,
            embedded: None,
            topic: None,
            properties: Vec::new(),
            lease: Duration::from_secs(20),
            heartbeat_interval: None,
            margin: None,
            fence_warning: None,
            create_topic: true,
            elector: Elector::Group,
            by_group: None,
            name: None,
            stop_timeout: Duration::from_secs(8),
            before_release: None,
            on_warning: None,
            roles: None,
            are_spread: None,
            max_roles: None,
        }
    }
}

impl Builder {
    /// Kafka's bootstrap servers: `HOST:PORT,..`. Required, unless there is an [embedded](Self::embedded) broker. Not the address of the
    /// broker that `neli-run --embedded` shares: if it ends, the next one begins with an empty journal, and two may lead for up to a lease.
    pub fn brokers(mut self, brokers: impl Into<String>) -> Self {
        self.brokers = Some(brokers.into());
        self
    }

    /// A broker in this process, for tests and trials, in place of Kafka.
    pub fn embedded(mut self, broker: &EmbeddedBroker) -> Self {
        self.embedded = Some(broker.clone());
        self
    }

    /// The topic that holds the election's journal; `<group>.neli` unless it is given. Several elections may share one.
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.topic = Some(topic.into());
        self
    }

    /// Whether [`join`](Self::join) creates the topic if it is missing; true unless it is given.
    pub const fn create_topic(mut self, create: bool) -> Self {
        self.create_topic = create;
        self
    }

    /// A property of librdkafka, for TLS and logins for example. If a property is given twice, the last value counts. [`join`](Self::join)
    /// refuses properties that the protocol sets itself.
    pub fn property(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push((key.into(), value.into()));
        self
    }

    /// The name of this candidate, up to 255 bytes; `<host>:<process id>` unless it is given. Other processes read it in the journal: if it
    /// is an address, they can route requests to it.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Which candidate claims a vacant lead first; [`Elector::Group`] unless it is given.
    pub const fn elector(mut self, elector: Elector) -> Self {
        self.elector = elector;
        self
    }

    /// With [`Elector::Group`], how long a candidate waits for the candidate that the group has chosen before it claims itself: 500 ms
    /// unless it is given; `None` means for ever.
    pub const fn patience(mut self, patience: Option<Duration>) -> Self {
        self.by_group = Some(timings::Elector::Group(patience));
        self
    }

    /// How long a leader may act while Kafka does not acknowledge its heartbeats, and how long the other candidates wait after a leader has
    /// died: 300 ms to 60 s, in whole milliseconds; 20 s unless it is given.
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// The time from one heartbeat to the next: 10 ms to a third of the lease; a fifth of it, and at most 1 s, unless it is given.
    pub const fn heartbeat_interval(mut self, interval: Duration) -> Self {
        self.heartbeat_interval = Some(interval);
        self
    }

    /// How long before its end the lease is over for this process: an effect that is in flight then has this time to arrive before another
    /// candidate leads, and so has one of a task that is dropped at the stop timeout, or of a callback before the release at its limit. At least
    /// 20 ms; a tenth of the lease unless it is given.
    pub const fn margin(mut self, margin: Duration) -> Self {
        self.margin = Some(margin);
        self
    }

    /// How long before its deadline a leader gives up the lead if its heartbeats don't come back: up to half of the lease; with zero it
    /// does not give it up before the deadline. A quarter of the lease, and at most 2.5 s, unless it is given.
    pub const fn fence_warning(mut self, warning: Duration) -> Self {
        self.fence_warning = Some(warning);
        self
    }

    /// How long a task may continue when its lead must be given up, before it is dropped: 0 to 365 days; 8 s unless it is given. With zero
    /// it is dropped at once.
    /// [`before_release`](Self::before_release) has its own time after that.
    pub const fn stop_timeout(mut self, timeout: Duration) -> Self {
        self.stop_timeout = timeout;
        self
    }

    /// A callback that is awaited before each release: after the last task under the lead has ended or was dropped, while the lease is
    /// still valid, and for `limit` at most, however much of the stop timeout the tasks took. When the limit or the lease is over, its
    /// future is dropped. If the lease was lost, the callback is not called.
    ///
    /// The callback is called in a task of its own, in the runtime that [`join`](Self::join) was called in. If that has ended, or if a task
    /// under the lead blocks beyond the stop timeout and `limit`, it is not called. The lead is released nevertheless then (once that task
    /// has ended; if that takes a lease longer, nothing is released: [`Error::Blocked`]), and also if the callback panics or is dropped. An
    /// [`Event::Warning`](crate::Event::Warning) reports each of these.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// let builder = neli_election::Election::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
    /// # let builder = neli_election::Election::builder("billing").embedded(&broker);
    /// let builder = builder.before_release(Duration::from_secs(2), |lease, reason| async move {
    ///     println!("flushing what term {} has written: {reason}", lease.token());
    /// });
    /// let election = builder.join().await?;
    /// # Ok(()) }
    /// ```
    pub fn before_release<F>(
        mut self,
        limit: Duration,
        callback: impl Fn(Lease, Reason) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let callback: Callback = Arc::new(move |lease, reason| Box::pin(callback(lease, reason)));
        self.before_release = Some((limit, callback));
        self
    }

    /// A callback for each [`Event::Warning`](crate::Event::Warning), from the call of [`join`](Self::join) on: also while `join` waits because
    /// no broker answers, for example, when there is no candidate yet whose [`events`](crate::Election::events) could be read. A warning about
    /// all [roles](Self::roles) of the process is passed once, and one about a single role of many begins with its name.
    ///
    /// The callback is called in a thread of its own, in which the runtime that `join` was called in is the current one. Without a callback each
    /// warning is a line on stderr, unless a call returns it as an error; so is one at which the callback panics.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// let builder = neli_election::Election::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
    /// # let builder = neli_election::Election::builder("billing").embedded(&broker);
    /// let election = builder.on_warning(|message| eprintln!("billing: {message}")).join().await?;
    /// # Ok(()) }
    /// ```
    pub fn on_warning(mut self, callback: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_warning = Some(Arc::new(callback));
        self
    }

    /// With [`roles`](Self::roles): whether processes hand over roles until each leads its fair share; true unless it is given.
    pub const fn spread(mut self, spread: bool) -> Self {
        self.are_spread = Some(spread);
        self
    }

    /// With [`roles`](Self::roles): the most roles that this process leads; all roles unless it is given.
    pub const fn max_roles(mut self, most: u32) -> Self {
        self.max_roles = Some(most);
        self
    }

    /// Joins the election, and waits until this candidate has read the journal and stands for election. While Kafka does not answer, it
    /// waits, and passes the reason to [`on_warning`](Self::on_warning), or writes it to stderr.
    ///
    /// # Errors
    ///
    /// An option is missing or wrong, or Kafka refuses this candidate: the error says what would be right. Or there is no tokio runtime. That
    /// candidates of the group stand for [roles](Self::roles), and this one does not, may be known only later: then
    /// [`Election::lead`](crate::Election::lead) returns the error.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it has ended, the candidate does not stand for election, and leaves it in the background.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// let builder = neli_election::Election::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
    /// # let builder = neli_election::Election::builder("billing").embedded(&broker);
    /// let election = builder.join().await?;
    /// election.leave().await;
    /// # Ok(()) }
    /// ```
    pub async fn join(self) -> Result<Election, Error> {
        self.refuse_roles("join stands in one election, join_roles for these roles")?;
        let mut shared = driver::start(self.settings()?)?;
        let only = shared.pop().ok_or_else(|| Error::System("an election without a role".to_owned()))?;
        let election = Election::joining(only);
        election.stands().await?;
        Ok(election)
    }

    /// Follows the election, in a thread of its own, and stands in none: who leads is learnt, to route requests to the leader for example. Only
    /// the options that say where the election is count, and [`on_warning`](Self::on_warning), whose callback that thread calls: while it blocks,
    /// what is known about the leader stands still.
    ///
    /// # Errors
    ///
    /// An option is missing or wrong: the error says what would be right. Or the machine has no thread to spare.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// let builder = neli_election::Election::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
    /// # let builder = neli_election::Election::builder("billing").embedded(&broker);
    /// let follower = builder.topic("elections").property("client.id", "billing-web").follow()?;
    /// assert_eq!(follower.leader(), None);
    /// # Ok(()) }
    /// ```
    pub fn follow(self) -> Result<Follower, Error> {
        self.refuse_roles("follow follows one election, follow_roles those of these roles")?;
        let (access, elections) = self.place()?;
        let mut followers = follower::start(access, elections, self.on_warning)?;
        followers.pop().ok_or_else(|| Error::System("an election without a role".to_owned()))
    }

    fn refuse_roles(&self, expected: &str) -> Result<(), Error> {
        let Some((count, names)) = &self.roles else { return Ok(()) };
        let roles = if names.is_empty() { count.to_string() } else { names.join(",") };
        Err(Error::option("roles", roles, expected))
    }

    /// Refuses what would have no effect.
    fn refuse_idle(&self) -> Result<(), Error> {
        let spread = self.are_spread.map(|spread| ("spread", spread.to_string()));
        let idle = spread.or_else(|| self.max_roles.map(|most| ("max_roles", most.to_string())));
        match idle.filter(|_| self.roles.is_none()) {
            Some((option, value)) => Err(Error::option(option, value, "has no meaning without roles")),
            None => Ok(()),
        }
    }

    /// The settings with which it joins.
    pub(crate) fn settings(self) -> Result<driver::Settings, Error> {
        let runtime = Handle::try_current()
            .map_err(|_| Error::System("join must be called within a tokio runtime".to_owned()))?;
        let elector = self.precedence()?;
        let timings = self.timings(elector)?;
        let (access, elections) = self.place()?;
        self.refuse_idle()?;
        if self.stop_timeout > LONGEST {
            return Err(Error::option("stop_timeout", shown_duration(self.stop_timeout), "must be 0 to 365d"));
        }
        let release_takes = self.before_release.as_ref().map_or(Duration::ZERO, |(limit, _)| *limit);
        if self.before_release.is_some() && !(Duration::from_millis(1)..=LONGEST).contains(&release_takes) {
            let limit = shown_duration(release_takes);
            return Err(Error::option("before_release", limit, "its limit must be 1ms to 365d"));
        }
        let no_randomness = |error| Error::System(format!("no randomness: {}", reason(&error)));
        let member = MemberId::from_random(u128::from_le_bytes(random_bytes().map_err(no_randomness)?));
        let if_missing = if self.create_topic { IfMissing::Create } else { IfMissing::Refuse };
        let stop = StopPolicy { signal: Some(STOP), timeout: self.stop_timeout + release_takes };
        Ok(driver::Settings {
            source: Source::new(access, elections, if_missing),
            node: node::Settings {
                hello: hello((member, &self.candidates_name()?), VERSION, elector, 0, None),
                timings,
                job: Policy { stop, ..Policy::default() },
                hooks: Vec::new(),
                accepts_remade_topic: self.create_topic,
                once: None,
                started: clock::now(),
                wait: None,
                first_span: FIRST_SPAN,
            },
            max_roles: self.max_roles,
            are_spread: self.are_spread.unwrap_or(true),
            has_roles: false,
            stop_timeout: self.stop_timeout,
            before_release: self.before_release,
            on_warning: self.on_warning,
            runtime,
        })
    }

    fn precedence(&self) -> Result<timings::Elector, Error> {
        match (self.elector, self.by_group) {
            (Elector::Group, Some(timings::Elector::Group(Some(patience)))) if patience > LONGEST => {
                Err(Error::option("patience", shown_duration(patience), "must be 0 to 365d, or none"))
            }
            (Elector::Group, by_group) => Ok(by_group.unwrap_or(BY_GROUP)),
            (Elector::Log, None) => Ok(timings::Elector::Log),
            (Elector::Log, Some(_)) => Err(Error::option("patience", "", "has no meaning with the elector Log")),
        }
    }

    fn candidates_name(&self) -> Result<String, Error> {
        let Some(name) = &self.name else { return Ok(names::of_process()) };
        names::validate(name, names::LONGEST_NAME).map_err(|error| Error::option("name", name, error))?;
        Ok(name.clone())
    }
}

const BY_GROUP: timings::Elector = timings::Elector::Group(Some(Duration::from_millis(500)));

/// What hellos say of the program's version.
const VERSION: &str = concat!("neli-election ", env!("CARGO_PKG_VERSION"));

/// The longest value of durations that the protocol does not limit: a year, so that no sum of them overflows.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

// ---- the durations of the protocol: their defaults and their bounds ------------------------------------------------

impl Builder {
    fn timings(&self, elector: timings::Elector) -> Result<Timings, Error> {
        let lease = self.lease;
        let durations = Durations {
            lease,
            heartbeat_interval: self.heartbeat_interval.unwrap_or_else(|| default_heartbeat_interval(lease)),
            kill_margin: self.margin.unwrap_or_else(|| kill_margin(lease)),
            fence_warning: self.fence_warning.unwrap_or_else(|| default_fence_warning(lease)),
            preempt_after: None,
            overlap: None,
        };
        let timings = Timings::new(durations, elector)
            .map_err(|error| Error::option(error.name, format!("{:?}", error.value), error.to_string()))?;
        // Unless a margin was given it is a tenth of the lease, as far as the others leave that.
        Ok(if self.margin.is_none() { timings.with_kill_margin_of(lease / 10) } else { timings })
    }
}

// ---- the election, and the connection to Kafka: the options that candidates and followers have in common ------------

impl Builder {
    /// How Kafka is reached, and the elections: of one role, called by its number, if no roles were given.
    pub(crate) fn place(&self) -> Result<(Access, Elections), Error> {
        let (count, names) = self.roles.clone().unwrap_or((1, Arc::default()));
        if !(1..=names::MOST_ROLES).contains(&count) {
            return Err(Error::option("roles", count.to_string(), format!("must be 1 to {}", names::MOST_ROLES)));
        }
        names::validate_roles(&names).map_err(|error| Error::option("named_roles", names.join(","), error))?;
        let group = &self.group;
        names::validate_group(group).map_err(|error| Error::option("group", group, error))?;
        let topic = self.topic.clone().unwrap_or_else(|| format!("{group}.neli"));
        if !names::is_topic(&topic) {
            return Err(match &self.topic {
                Some(topic) => Error::option("topic", topic, format!("must be {}", names::TOPIC)),
                None => Error::option(
                    "group",
                    group,
                    format!("the topic '{topic}' would not be {}; give another by topic", names::TOPIC),
                ),
            });
        }
        Ok((self.access()?, Elections { group: group.clone(), topic, roles: 0..count, names }))
    }

    fn access(&self) -> Result<Access, Error> {
        // As librdkafka begins to use it, OpenSSL would have an exit of the process free what librdkafka's threads still use (SIGSEGV).
        // `neli-run` ends without such an exit, and this takes time that a start and a release for the dead don't have.
        #[cfg(feature = "ssl")]
        openssl_sys::init();
        let properties = self.checked_properties()?;
        let access = match (&self.brokers, &self.embedded) {
            (None, None) => {
                return Err(Error::option("brokers", "", "is required: HOST:PORT,.. of Kafka's bootstrap servers"));
            }
            (Some(brokers), Some(_)) => {
                return Err(Error::option("brokers", brokers, "can't be combined with embedded"));
            }
            (None, Some(broker)) => Access::embedded(&broker.connection, &properties),
            (Some(brokers), None) => {
                let list = bootstrap_servers::validate(brokers, &properties);
                let list = list.map_err(|error| Error::option("brokers", brokers, error))?;
                Access::at(&list, &properties)
            }
        };
        Ok(Access { words: &wording::WORDS, ..access })
    }

    fn checked_properties(&self) -> Result<Properties, Error> {
        let mut properties = Properties::default();
        for (key, value) in &self.properties {
            // The value may be a secret.
            let refused = |why| Error::option("property", key, why);
            properties.set(key, value, &wording::WORDS).map_err(refused)?;
        }
        let MemberTimings { heartbeat_interval, session_timeout } = MemberTimings::of(&properties);
        if heartbeat_interval > session_timeout / 3 {
            let expected = "must be at least three times heartbeat.interval.ms";
            return Err(Error::option("property", "session.timeout.ms", expected));
        }
        Ok(properties)
    }
}

// ---- a broker in this process, for tests and trials -----------------------------------------------------------------

/// A small broker in this process, for tests and trials: librdkafka's mock of Kafka, on a port of the loopback interface. It stores nothing
/// on disk. It lives until the last clone of this value, and the last candidate and follower that use it, are dropped.
///
/// Only candidates of this process can use it; candidates of several processes need a real Kafka. `neli-run --embedded` has a broker of its
/// own, in a separate process.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let broker = neli_election::EmbeddedBroker::start()?;
/// let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
/// assert!(election.lead().await?.lease().is_valid());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct EmbeddedBroker {
    pub(crate) connection: Arc<Connection>,
}

impl EmbeddedBroker {
    /// Starts a broker.
    ///
    /// # Errors
    ///
    /// The machine has no thread, port or descriptor to spare.
    pub fn start() -> Result<Self, Error> {
        let connection = Connection::to_own_broker()
            .map_err(|error| Error::System(format!("the embedded broker can't be started: {}", reason(&error))))?;
        Ok(Self { connection: Arc::new(connection) })
    }
}

#[cfg(test)]
mod tests;
