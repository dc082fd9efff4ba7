//! The lead, as the program that won it holds it.

use std::future::Future;
use std::sync::Arc;

use crate::error::Lost;
use crate::lease::{Lease, Tenure};
use crate::state::Shared;

/// This process leads, for as long as the [`Lease`] is valid. Dropped, it gives the lead up: another leads first. Where there is no other
/// candidate, nobody leads for two leases after that, and then this one may lead again: a `Lead` is kept for as long as there is work.
///
/// What is done as the leader is done within [`run`](Self::run), [`Lease::run`], [`serve`](crate::Election::serve) or
/// [`background`](crate::Election::background): only that is awaited before the lead is released, and dropped when the lease is over.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli::EmbeddedBroker::start()?;
/// # let election = neli::Election::builder("billing").embedded(&broker).join().await?;
/// let mut lead = election.lead().await?;
/// let lease = lead.lease();
/// lead.run(async |_| println!("one task as the leader, in term {}", lease.token())).await?;
/// lead.run(async |_| println!("and another")).await?;
/// drop(lead);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Lead {
    tenure: Arc<Tenure>,
    /// The election goes on for as long as its lead is held.
    _shared: Arc<Shared>,
}

impl Lead {
    pub(crate) const fn new(tenure: Arc<Tenure>, shared: Arc<Shared>) -> Self {
        Self { tenure, _shared: shared }
    }

    /// Runs a task as the leader, within the caller's own.
    ///
    /// - When the lead is to be given up, the task is awaited: until the stop timeout it may go on and write, and only then is the lead
    ///   released. It learns of it by [`Lease::ending`].
    /// - When the lease is over, or the stop timeout, it is **dropped**, which ends it at the await where it is. It is never polled
    ///   once the lease has run out.
    ///
    /// Nothing can end code that does not come to an await: a loop, or a call that blocks, runs on. So ask [`Lease::is_valid`]
    /// before each effect; or run the work under `neli-run`, which kills it. What the task has spawned is the task's to end.
    ///
    /// The lead is still held afterwards: another task may be run.
    ///
    /// What this returns is a task that runs: it must be polled until it ends, or dropped. One that is kept and polled no more, pinned beside a
    /// `select!` that has gone on to [`Election::leave`](crate::Election::leave) for example, can't see that it is to end: the leave waits for
    /// the stop timeout and a lease, and then the candidate ends with [`Error::Blocked`](crate::Error::Blocked), without a release. So have it
    /// polled beside the leave (`tokio::join!`), or have it run by itself: `tokio::spawn(async move { lease.run(task).await })`.
    ///
    /// # Errors
    ///
    /// The lead was over before the task was begun, or before it had come to its end.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the task is dropped with it, at the await where it is. The lead is still held.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli::EmbeddedBroker::start()?;
    /// # let election = neli::Election::builder("billing").embedded(&broker).join().await?;
    /// let mut lead = election.lead().await?;
    /// let rows = lead.run(|lease| async move { if lease.is_valid() { 1 } else { 0 } }).await?;
    /// assert_eq!(rows, 1);
    /// # Ok(()) }
    /// ```
    pub async fn run<T, F: Future<Output = T>>(&mut self, task: impl FnOnce(Lease) -> F) -> Result<T, Lost> {
        self.lease().run(task).await
    }

    /// The same, dropped as soon as the lead is to be given up.
    pub(crate) async fn run_while_leading<T, F>(&mut self, task: impl FnOnce(Lease) -> F) -> Result<T, Lost>
    where
        F: Future<Output = T>,
    {
        self.lease().run_while_leading(task).await
    }

    /// The lease of this lead. Work that is done without [`run`](Self::run) or [`Lease::run`] is not awaited before the lead is released.
    #[must_use]
    pub fn lease(&self) -> Lease {
        Lease::new(Arc::clone(&self.tenure))
    }

    /// Gives the lead up, so that another leads first, and waits until it is over here: nothing runs under it any more, and the
    /// release is on its way. Where no other candidate leads within two leases, this one may lead again.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the lead is given up all the same, in the background, as by the drop of a [`Lead`].
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli::EmbeddedBroker::start()?;
    /// # let election = neli::Election::builder("billing").embedded(&broker).join().await?;
    /// let lead = election.lead().await?;
    /// let lease = lead.lease();
    /// lead.resign().await;
    /// assert!(!lease.is_valid());
    /// # Ok(()) }
    /// ```
    pub async fn resign(self) {
        self.tenure.resign();
        self.tenure.over().await;
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.tenure.resign();
    }
}
