//! Many roles in one process: an election for each, on one session with Kafka.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use neli_kafka::names;

use crate::builder::Builder;
use crate::driver;
use crate::error::Error;
use crate::event::{Event, Events};
use crate::follower::{self, Follower};
use crate::handle::{Election, Lead};
use crate::lease::Command;

impl Builder {
    /// Stands in `count` elections in place of one, on one session with Kafka: 1 to 10,000 roles, whose names are their numbers from 0 on.
    /// [`join_roles`](Self::join_roles) joins them, [`follow_roles`](Self::follow_roles) follows them.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// let builder = neli_election::Election::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
    /// # let builder = neli_election::Election::builder("billing").embedded(&broker);
    /// let roles = builder.roles(16).join_roles().await?;
    /// assert_eq!(roles.iter().count(), 16);
    /// # Ok(()) }
    /// ```
    pub fn roles(mut self, count: u32) -> Self {
        self.roles = Some((count, Arc::default()));
        self
    }

    /// As [`roles`](Self::roles), with names for the roles. Every candidate must give the same names in the same order.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// let builder = neli_election::Election::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
    /// # let builder = neli_election::Election::builder("billing").embedded(&broker);
    /// let roles = builder.named_roles(["ingest", "bill"]).join_roles().await?;
    /// let lead = roles.get("bill").ok_or("no such role")?.lead().await?;
    /// assert_eq!(lead.lease().role(), Some("bill"));
    /// # Ok(()) }
    /// ```
    pub fn named_roles<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        let names: Arc<[String]> = names.into_iter().map(Into::into).collect();
        self.roles = Some((u32::try_from(names.len()).unwrap_or(u32::MAX), names));
        self
    }

    /// Joins the elections of all roles (of one, called `0`, if none were given), and waits until this process has read their journals and
    /// stands in all: the other candidates had half a second to answer its first hello. While Kafka does not answer, it waits.
    ///
    /// If an earlier candidate of the group had other roles and may have gone, it waits for 75 s at most, until it is known that the
    /// earlier candidate has gone.
    ///
    /// # Errors
    ///
    /// As for [`join`](Self::join). Or another candidate of the group looks for a role in another partition than this one would: it has other
    /// roles, or the topic had another number of partitions when it started. Only if that candidate takes longer than half a second to
    /// answer does this return before: then [`Roles::lead`] and [`Election::lead`] return the error once the answer is read.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it has ended, the process stands for no role, and leaves the elections in the background.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// let builder = neli_election::Election::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
    /// # let builder = neli_election::Election::builder("billing").embedded(&broker);
    /// let roles = builder.named_roles(["ingest", "bill", "report"]).max_roles(2).join_roles().await?;
    /// # roles.leave().await;
    /// # Ok(()) }
    /// ```
    pub async fn join_roles(self) -> Result<Roles, Error> {
        if let Some(most) = self.max_roles.filter(|most| !(1..=names::MOST_ROLES).contains(most)) {
            return Err(Error::option("max_roles", most.to_string(), format!("must be 1 to {}", names::MOST_ROLES)));
        }
        let settings = driver::Settings { has_roles: true, ..self.settings()? };
        let labels = settings.source.elections.labels();
        let joining = driver::start(settings)?.into_iter().map(Election::joining);
        let roles = Roles { elections: labels.into_iter().zip(joining).collect() };
        for (_, election) in roles.iter() {
            election.stands().await?;
        }
        Ok(roles)
    }

    /// Follows the elections of all roles in one thread and by one reader, to route requests to a shard's leader for example: a [`Follower`] for
    /// each, by its role's name or number.
    ///
    /// It looks for each role in the partition that the candidates' hellos say, so it finds the leaders although partitions were added to the
    /// topic since those started. If the candidates stand for other roles, or for the same names in another order, its
    /// [events](Follower::events) contain a warning.
    ///
    /// # Errors
    ///
    /// As for [`follow`](Self::follow).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// # let builder = neli_election::Election::builder("billing").embedded(&broker).name("10.0.0.7:8080");
    /// # let candidate = builder.roles(4).join_roles().await?;
    /// # let lead = candidate.get("3").ok_or("no such role")?.lead().await?;
    /// let builder = neli_election::Election::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
    /// # let builder = neli_election::Election::builder("billing").embedded(&broker);
    /// let mut shards = builder.roles(4).follow_roles()?;
    /// let mut shard = shards.remove("3").ok_or("no such role")?;
    /// while shard.leader().is_none() {
    ///     shard.changed().await?;
    /// }
    /// assert_eq!(shard.leader().and_then(|leader| leader.name).as_deref(), Some("10.0.0.7:8080"));
    /// for (role, follower) in &shards {
    ///     println!("{role}: {:?}", follower.leadership());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn follow_roles(self) -> Result<BTreeMap<String, Follower>, Error> {
        let (access, elections) = self.place()?;
        let labels = elections.labels();
        let followers = follower::start(access, elections, self.on_warning)?;
        Ok(labels.into_iter().zip(followers).collect())
    }
}

/// A process that stands for many roles: an [`Election`] for each, with a lead of its own. Several processes share the roles fairly.
///
/// A process that gives up a role's lead, because its task has returned for example, is handed no role by the others for a minute: they take
/// it for a process that can't do the work.
///
/// When the last clone of a role's [`Election`] and its last lead are dropped, the process no longer stands for that role; it still stands
/// for the others.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli_election::EmbeddedBroker::start()?;
/// # let (ran, mut runs) = tokio::sync::mpsc::unbounded_channel();
/// let builder = neli_election::Election::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
/// # let builder = neli_election::Election::builder("billing").embedded(&broker);
/// let roles = builder.named_roles(["ingest", "bill"]).join_roles().await?;
/// for (role, election) in roles.iter() {
///     let (role, election) = (role.to_owned(), election.clone());
///     # let ran = ran.clone();
///     tokio::spawn(async move {
///         election
///             .background(async |lease| {
///                 println!("{role}: one batch, with the fencing token {}", lease.token());
///                 # let _ = ran.send(());
///             })
///             .await
///     });
/// }
/// # runs.recv().await;
/// if let Some(leader) = roles.get("bill").and_then(|election| election.leader()) {
///     println!("bill is led in term {}", leader.term);
/// }
/// roles.leave().await;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Roles {
    /// In the order of their numbers.
    elections: Vec<(String, Election)>,
}

impl Roles {
    /// The election of a role, by its name or number.
    #[must_use]
    pub fn get(&self, role: &str) -> Option<&Election> {
        self.elections.iter().find(|(name, _)| name == role).map(|(_, election)| election)
    }

    /// Every role with its election, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Election)> {
        self.elections.iter().map(|(name, election)| (name.as_str(), election))
    }

    /// Waits until this process leads one of the roles, whichever comes first; [`Lease::role`](crate::Lease::role) tells which. Called
    /// again it gives the next lead.
    ///
    /// It does not return for a role for which the process no longer stands, while it stands for others: the last of that role's
    /// [events](Self::events), and [`Election::lead`] of that role, tell why.
    ///
    /// # Errors
    ///
    /// The process no longer stands for any role: the error of the last role that was left to it.
    ///
    /// # Cancel safety
    ///
    /// Safe in `select!`: a lead is taken only when the future is ready. If the future is dropped before, the process still stands for all
    /// roles, and a later call gets the lead.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// let builder = neli_election::Election::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
    /// # let builder = neli_election::Election::builder("billing").embedded(&broker);
    /// let roles = builder.roles(4).join_roles().await?;
    /// for _ in 0..4 {
    ///     let mut lead = roles.lead().await?;
    ///     tokio::spawn(async move {
    ///         lead.run(async |lease| println!("shard {}", lease.role().unwrap_or_default())).await
    ///     });
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn lead(&self) -> Result<Lead, Error> {
        let mut leads: FuturesUnordered<_> = self.elections.iter().map(|(_, election)| election.lead()).collect();
        while let Some(lead) = leads.next().await {
            if lead.is_ok() || leads.is_empty() {
                return lead;
            }
        }
        // Without a role.
        Err(Error::Left)
    }

    /// The events of this process in each of its roles from now on.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// # let roles = neli_election::Election::builder("billing").embedded(&broker).roles(2).join_roles().await?;
    /// let mut events = roles.events();
    /// if let Some((role, event)) = events.next().await {
    ///     println!("{role}: {event:?}");
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn events(&self) -> Events<(String, Event)> {
        Events::of_roles(self.iter().map(|(role, election)| (role.to_owned(), election.events())))
    }

    /// Leaves all elections, and waits until that is done: see [`Election::leave`].
    ///
    /// # Cancel safety
    ///
    /// The leave begins at the first poll, in all elections. If the future is dropped after that, the process leaves in the background.
    pub async fn leave(self) {
        self.begin_to_leave();
        let mut roles = self;
        for (_, election) in mem::take(&mut roles.elections) {
            election.leave().await;
        }
    }

    /// Begins to leave all elections. The release of each tells the other processes that this one leaves all, so that they hand it no role
    /// while it leaves.
    fn begin_to_leave(&self) {
        for (_, election) in &self.elections {
            election.shared.commands.send(Command::Leave { all: true });
        }
    }
}

impl Drop for Roles {
    fn drop(&mut self) {
        // Otherwise there is a clone of an election, or a lead: a role is still in use, and the process may stay.
        if self.elections.iter().all(|(_, election)| Arc::strong_count(&election.shared) == 1) {
            self.begin_to_leave();
        }
    }
}
