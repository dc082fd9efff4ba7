//! The lead, as the program that won it holds it.

use std::future::Future;
use std::sync::Arc;

use crate::driver::Shared;
use crate::error::Lost;
use crate::lease::{Lease, Tenure};

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
pub struct Lead {
    tenure: Arc<Tenure>,
    /// The candidate stands for election for as long as its lead is held.
    shared: Arc<Shared>,
}

impl Lead {
    pub(crate) const fn new(tenure: Arc<Tenure>, shared: Arc<Shared>) -> Self {
        Self { tenure, shared }
    }

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
    /// the leave waits for the stop timeout and a lease, and the candidate ends with [`Error::Blocked`](crate::Error::Blocked), without a
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
        let term = self.tenure.term();
        let _ = self.shared.wait_for(|state| (state.unreleased != Some(term)).then_some(())).await;
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.tenure.resign();
    }
}
