//! The handle of a candidate that stands for election.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use neli_kafka::clock;
use neli_proto::candidate::Position;
use neli_proto::leadership::ReadAt;
use neli_proto::note::Waiting;
use neli_proto::time::Time;
use tokio::time;

use crate::driver::{Shared, State};
use crate::error::{Error, Lost};
use crate::event::{Events, Leader};
use crate::leadership::Leadership;
use crate::lease::{Command, Lease, Phase, Tenure};

/// A candidate that stands for election. A clone is the same candidate; when the last clone and the last [`Lead`] are dropped it
/// leaves the election, in the background.
///
/// A thread of its own sends its heartbeats, so tasks that keep the runtime busy don't cost it the lead.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli_election::EmbeddedBroker::start()?;
/// let builder = neli_election::Election::builder("billing").brokers("kafka-1:9092,kafka-2:9092");
/// # let builder = neli_election::Election::builder("billing").embedded(&broker);
/// let election = builder.join().await?;
/// let mut events = election.events();
/// tokio::spawn(async move {
///     while let Some(event) = events.next().await {
///         println!("{event:?}");
///     }
/// });
/// let mut lead = election.lead().await?;
/// lead.run(async |lease| println!("the only one, in term {}", lease.token())).await?;
/// election.leave().await;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Election {
    pub(crate) shared: Arc<Shared>,
}

impl Election {
    /// The handle of a candidate that has not read its journal yet.
    pub(crate) fn joining(shared: Shared) -> Self {
        Self { shared: Arc::new(shared) }
    }

    /// Waits until the candidate stands for election.
    pub(crate) async fn stands(&self) -> Result<(), Error> {
        self.shared.wait_for(|state| state.stands.then_some(())).await
    }

    /// Waits until this candidate leads.
    ///
    /// A candidate that has won the lead holds it for one lease's length until a caller takes it by this function. Then it gives the lead
    /// up, so that a program that takes no lead does not keep others from leading.
    ///
    /// # Errors
    ///
    /// The candidate no longer stands for election: it has left, the election was ended, or Kafka refuses it.
    ///
    /// # Cancel safety
    ///
    /// Safe in `select!`: a lead is taken only when the future is ready. If the future is dropped before, the candidate still stands for
    /// election, and a later call gets the lead.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
    /// let lead = election.lead().await?;
    /// assert!(lead.lease().is_valid());
    /// # Ok(()) }
    /// ```
    pub async fn lead(&self) -> Result<Lead, Error> {
        let take = |state: &State| state.tenure.clone().filter(|tenure| tenure.take());
        let tenure = self.shared.wait_for(take).await?;
        Ok(Lead { tenure, shared: Arc::clone(&self.shared) })
    }

    /// As [`lead`](Self::lead), but waits `limit` at most; `None` if this candidate does not lead by then. A loop that calls it misses no
    /// lead: the candidate also stands for election between two calls.
    ///
    /// # Errors
    ///
    /// As for [`lead`](Self::lead).
    ///
    /// # Panics
    ///
    /// If the runtime's timers are not enabled.
    ///
    /// # Cancel safety
    ///
    /// As for [`lead`](Self::lead).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
    /// match election.lead_within(Duration::from_secs(10)).await? {
    ///     Some(mut lead) => lead.run(|lease| async move { println!("term {}", lease.token()) }).await?,
    ///     None => println!("another leads"),
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn lead_within(&self, limit: Duration) -> Result<Option<Lead>, Error> {
        time::timeout(limit, self.lead()).await.map_or(Ok(None), |lead| lead.map(Some))
    }

    /// Leads whenever it can, until this candidate has left: waits for the lead, runs `task` under it as [`Lead::run`] does, and stands by
    /// again. When the lead must be given up, the task learns of it by [`Lease::ending`] and is awaited until the stop timeout; when the
    /// lease is over, the task is dropped. All of this runs within the caller's own task.
    ///
    /// As with [`Lead::run`], the future must be polled until it ends, or dropped. So to leave in order at a signal, call
    /// [`leave`](Self::leave) in another task, as below, and not in a branch of a `select!` beside this future: that drops the future, and with
    /// it the task, in the middle of its work; and where the future is pinned outside, the task could not end, and the candidate would end
    /// with [`Error::Blocked`], without a release.
    ///
    /// A task that returns by itself, after an error for example, gives up the lead, so that another machine has its turn. If there is no
    /// other candidate, this one leads again after two leases. Work that should continue must not return. Work that fails should wait for a
    /// second or more before it returns: if it fails on each machine, because a database is down for example, the lead otherwise moves between
    /// them many times a second.
    ///
    /// # Errors
    ///
    /// The election was ended, Kafka refuses this candidate, or it can't go on.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the task is dropped at the await where it is, and the lead is given up at once: what the task has sent may
    /// arrive after another candidate leads. The candidate still stands for election: call `serve` again, or [`leave`](Self::leave).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
    /// # let (ran, mut runs) = tokio::sync::mpsc::unbounded_channel();
    /// let leaving = election.clone();
    /// tokio::spawn(async move {
    ///     // Until SIGTERM, say.
    ///     # runs.recv().await;
    ///     leaving.leave().await;
    /// });
    /// election
    ///     .serve(async |lease| {
    ///         let mut times = tokio::time::interval(std::time::Duration::from_millis(10));
    ///         loop {
    ///             tokio::select! {
    ///                 reason = lease.ending() => return println!("ending in order: {reason}"),
    ///                 _ = times.tick() => {
    ///                     if lease.is_valid() {
    ///                         println!("one batch, with the fencing token {}", lease.token());
    ///                         # let _ = ran.send(());
    ///                     }
    ///                 }
    ///             }
    ///         }
    ///     })
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub async fn serve<F: Future<Output = ()>>(&self, mut task: impl FnMut(Lease) -> F) -> Result<(), Error> {
        while let Some(mut lead) = self.lead_unless_left().await? {
            // It has its end whether it came by itself or was dropped: the next lead is another.
            let _ = lead.run(&mut task).await;
        }
        Ok(())
    }

    /// Runs `task` whenever this candidate leads, until this candidate has left, and **drops the task as soon as the lead must be given
    /// up**, at the await where it is. A task that returns while the lead is held is run again. This is for work that may be interrupted at
    /// any await; [`serve`](Self::serve) awaits its end. If the lead is handed over in order, the next leader does not wait for what a dropped
    /// task has sent and what is still under way: let the store refuse a lower [token](Lease::token). All of this runs within the caller's own task, and the future must be polled until it
    /// ends, or dropped: see [`serve`](Self::serve).
    ///
    /// # Errors
    ///
    /// As for [`serve`](Self::serve).
    ///
    /// # Cancel safety
    ///
    /// As for [`serve`](Self::serve).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
    /// # let (ran, mut runs) = tokio::sync::mpsc::unbounded_channel();
    /// let background = tokio::spawn({
    ///     let election = election.clone();
    ///     async move {
    ///         election
    ///             .background(async |lease| {
    ///                 if lease.is_valid() {
    ///                     // One row, or one batch.
    ///                     # let _ = ran.send(());
    ///                 }
    ///             })
    ///             .await
    ///     }
    /// });
    /// # runs.recv().await;
    /// election.leave().await;
    /// background.await??;
    /// # Ok(()) }
    /// ```
    pub async fn background<F: Future<Output = ()>>(&self, mut task: impl FnMut(Lease) -> F) -> Result<(), Error> {
        while let Some(lead) = self.lead_unless_left().await? {
            while lead.lease().run_until(&mut task, Phase::ends).await.is_ok() {
                // A task that never waits would keep its runtime from everything else.
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// The next lead; `None` once the candidate has left because the caller asked for that, which is no failure.
    async fn lead_unless_left(&self) -> Result<Option<Lead>, Error> {
        match self.lead().await {
            Err(Error::Left) => Ok(None),
            lead => lead.map(Some),
        }
    }

    /// The leader, as far as this candidate has read the journal. A leader that is silent, or whose records can't be read because Kafka
    /// can't be reached, is returned until another one leads: [`leadership`](Self::leadership) also says whether its lease may still run.
    /// `None` once this candidate no longer stands for election.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
    /// let lead = election.lead().await?;
    /// assert!(election.leader().is_some_and(|leader| leader.is_self));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn leader(&self) -> Option<Leader> {
        self.shared.state.borrow().leader.clone()
    }

    /// The leader by a record that was read within its lease; or that it is silent; or that nobody leads; or that the leader is unknown, and why. It is what a
    /// [`Follower`](crate::Follower) returns, without a follower: for routing requests.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
    /// # let lead = election.lead().await?;
    /// use neli_election::Leadership;
    ///
    /// match election.leadership() {
    ///     Leadership::Led(leader) if leader.is_self => println!("answered here"),
    ///     Leadership::Led(leader) => println!("sent to {:?}", leader.name),
    ///     Leadership::Silent { leader, .. } => println!("sent to {:?}, which may be dead", leader.name),
    ///     Leadership::Vacant => println!("refused for a moment: nobody leads"),
    ///     Leadership::Unknown { trouble } => println!("refused for a moment: {trouble:?}"),
    /// }
    /// # assert!(matches!(election.leadership(), Leadership::Led(leader) if leader.since.is_some()));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.leadership_at(clock::now())
    }

    pub(crate) fn leadership_at(&self, now: Time) -> Leadership {
        let state = self.shared.state.borrow();
        if let Some(error) = &state.ended {
            return Leadership::Unknown { trouble: Some(error.to_string()) };
        }
        let trouble = state.trouble.clone();
        let at = ReadAt { now, wall_ms: clock::wall_ms() };
        let current = state.status.leadership(at, trouble.is_none());
        let is_cut =
            matches!(&state.status.position, Position::Standby(Some(standby)) if standby.why == Some(Waiting::Cut));
        let cut = is_cut.then(|| "the topic's records were cut, or it was made anew".to_owned());
        Leadership::of(current, now, state.leader.as_ref(), trouble.or(cut))
    }

    /// The events of this candidate from now on. It may lead already: [`leader`](Self::leader), if it is called after this, tells what came
    /// before.
    #[must_use]
    pub fn events(&self) -> Events {
        Events::new(self.shared.events.resubscribe())
    }

    /// Leaves the election, and waits until that is done. Tasks that run under a lead learn of it and are awaited until the stop timeout;
    /// then the lead is released. The candidate has then left for every clone of this handle.
    ///
    /// Futures of [`serve`](Self::serve), [`background`](Self::background), [`Lead::run`] and [`Lease::run`] must be polled meanwhile, or
    /// dropped: see [`Lead::run`]. A task under the lead that awaits this waits for its own end, until the stop timeout: let it spawn the leave.
    ///
    /// # Cancel safety
    ///
    /// The leave begins at the first poll. If the future is dropped after that, the candidate leaves in the background. If it was never
    /// polled, only this clone of the handle is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
    /// election.leave().await;
    /// # Ok(()) }
    /// ```
    pub async fn leave(self) {
        self.shared.commands.send(Command::Leave { all: false });
        let _ = self.shared.wait_for(|_| None::<()>).await;
    }
}

// ---- the lead, as the program that won it holds it ------------------------------------------------------------------

/// This process leads, for as long as the [`Lease`] is valid. Dropping the `Lead` gives up the lead, so that another candidate leads first.
/// If there is no other candidate, nobody leads for two leases after that, and then this one may lead again; so keep the `Lead` for as long
/// as there is work.
///
/// Do the leader's work within [`run`](Self::run), [`Lease::run`], [`serve`](crate::Election::serve) or
/// [`background`](crate::Election::background): only tasks within them are awaited before the lead is released, and dropped when the lease
/// is over.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli_election::EmbeddedBroker::start()?;
/// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
/// let mut lead = election.lead().await?;
/// let lease = lead.lease();
/// lead.run(async |_| println!("one task as the leader, in term {}", lease.token())).await?;
/// lead.run(async |_| println!("and another")).await?;
/// drop(lead);
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "dropping it gives up the lead"]
pub struct Lead {
    tenure: Arc<Tenure>,
    /// The candidate stands for election for as long as its lead is held.
    shared: Arc<Shared>,
}

impl Lead {
    /// Runs a task as the leader, within the caller's own task.
    ///
    /// - When the lead must be given up, the task is awaited: it may continue, and write, until the stop timeout, and only then is the lead
    ///   released. It learns of it by [`Lease::ending`].
    /// - When the lease is over, or the stop timeout, it is **dropped**, which ends it at the await where it is. It is never polled
    ///   once the lease has run out.
    ///
    /// Nothing can end code that does not reach an await: a loop, or a call that blocks, continues. So ask [`Lease::is_valid`] before each
    /// effect, or run the work under `neli-run`, which kills it. Tasks that the task has spawned are not ended with it.
    ///
    /// The lead is still held afterwards, and another task may be run.
    ///
    /// The returned future must be polled until it ends, or dropped. A future that is kept and no longer polled can't notice that it must
    /// end; an example is one that is pinned beside a `select!` whose other branch calls [`Election::leave`](crate::Election::leave). Then
    /// the leave waits for the stop timeout and a lease, and the candidate ends with [`Error::Blocked`], without a
    /// release. So poll it beside the leave (`tokio::join!`), or spawn it: `tokio::spawn(async move { lease.run(task).await })`.
    ///
    /// # Errors
    ///
    /// The lead was over before the task began, or before it ended.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the task is dropped with it, at the await where it is. The lead is still held.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
    /// let mut lead = election.lead().await?;
    /// let rows = lead.run(|lease| async move { if lease.is_valid() { 1 } else { 0 } }).await?;
    /// assert_eq!(rows, 1);
    /// # Ok(()) }
    /// ```
    pub async fn run<T, F: Future<Output = T>>(&mut self, task: impl FnOnce(Lease) -> F) -> Result<T, Lost> {
        self.lease().run(task).await
    }

    /// The lease of this lead. Work that is done without [`run`](Self::run) or [`Lease::run`] is not awaited before the lead is released.
    #[must_use]
    pub fn lease(&self) -> Lease {
        Lease::new(Arc::clone(&self.tenure))
    }

    /// Gives up the lead, so that another candidate leads first, and waits until no task runs under it any more and the release was sent.
    /// If no other candidate leads within two leases, this one may lead again. A process that ends after this should also await
    /// [`Election::leave`](crate::Election::leave), which waits until Kafka has the release.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the lead is given up nevertheless, in the background, as when a [`Lead`] is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
    /// let lead = election.lead().await?;
    /// let lease = lead.lease();
    /// lead.resign().await;
    /// assert!(!lease.is_valid());
    /// # Ok(()) }
    /// ```
    pub async fn resign(self) {
        self.tenure.resign();
        let is_released = |state: &State| state.tenure.as_ref().is_none_or(|held| !Arc::ptr_eq(held, &self.tenure));
        let _ = self.shared.wait_for(|state| is_released(state).then_some(())).await;
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.tenure.resign();
    }
}
