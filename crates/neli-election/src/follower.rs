//! A follower: it learns who leads, and does not stand for election.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::thread;

use neli_kafka::{Access, Elections, IfMissing, Source, reason};
use tokio::sync::mpsc::{self, Sender};
use tokio::sync::{broadcast, watch};

use crate::error::Error;
use crate::event::{Event, Events, Leader};
use crate::leadership::Leadership;
use crate::waiter::Waiter;
use crate::warnings::OnWarning;
use reading::Reading;

mod reading;

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
    /// What it knows, or why it follows no more.
    state: watch::Receiver<Result<Leadership, Error>>,
    /// Where the warnings come from, once for all roles.
    events: Arc<broadcast::Receiver<Event>>,
    /// The thread ends with the last one.
    _follows: Arc<Sender<Infallible>>,
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
    /// over. The followers of many roles share one reader, so each returns the same warnings. While nobody has asked for events, warnings go to
    /// stderr, unless [`Builder::on_warning`](crate::Builder::on_warning) was given.
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
    let source =
        Source { access, elections, partitions: None, only: None, if_missing: IfMissing::Await, is_for_display: false };
    let (event_sender, events) = mpsc::channel(EVENTS_WAITING);
    // Nothing is sent: the thread sees that the last sender is dropped.
    let (follows, followers) = mpsc::channel(1);
    let (warnings, warned) = broadcast::channel(WARNINGS_KEPT);
    let warned = Arc::new(warned);
    let mut reading = Reading::new(source, event_sender, states, warnings, on_warning);
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
