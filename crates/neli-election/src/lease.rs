//! The lease of one term, as a task sees it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use neli_kafka::clock;

use crate::error::Lost;
use crate::reason::Reason;

pub(crate) use tenure::{NoTask, Task, Tenure};

mod tenure;

/// The right to act as the leader, for as long as it is valid. Cheap to clone, and may be sent to other tasks and threads.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli_election::EmbeddedBroker::start()?;
/// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
/// let mut lead = election.lead().await?;
/// lead.run(|lease| async move {
///     if lease.is_valid() {
///         println!("writing with the fencing token {}", lease.token());
///     }
/// })
/// .await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Lease {
    tenure: Arc<Tenure>,
}

impl Lease {
    pub(crate) const fn new(tenure: Arc<Tenure>) -> Self {
        Self { tenure }
    }

    /// Whether this process may act as the leader now: one load and one read of the clock, no lock.
    ///
    /// It is false from the deadline on, whatever threads and runtimes do, also after the process was stopped or the machine slept. Ask it
    /// before each effect. An effect that is in flight at the deadline has the margin ([`Builder::margin`](crate::Builder::margin)) to
    /// arrive before another candidate leads; if that is not enough, let the store refuse a [token](Self::token) below the highest that it
    /// has seen.
    #[must_use]
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.tenure.is_valid()
    }

    /// The fencing token: the term's number, which grows from leader to leader and is never used twice. It fits a `BIGINT`.
    #[must_use]
    pub fn token(&self) -> i64 {
        self.tenure.term()
    }

    /// The role that is led, as [`Roles::get`](crate::Roles::get) knows it; `None` in an election of its own.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// # let roles = neli_election::Election::builder("billing").embedded(&broker).roles(2).join().await?;
    /// # let election = roles.get("1").ok_or("no such role")?;
    /// let lead = election.lead().await?;
    /// assert_eq!(lead.lease().role(), Some("1"));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn role(&self) -> Option<&str> {
        self.tenure.role.as_deref()
    }

    /// When the lease ends if no heartbeat extends it; `None` once it is over.
    ///
    /// While the machine sleeps, [`Instant`] stands still and the lease does not; only [`is_valid`](Self::is_valid) is right then.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
    /// let lead = election.lead().await?;
    /// let lease = lead.lease();
    /// if let Some(deadline) = lease.deadline() {
    ///     // What takes longer is not begun, or is given up.
    ///     let answer = tokio::time::timeout_at(deadline.into(), async { "an answer" }).await;
    ///     assert_eq!(answer, Ok("an answer"));
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.is_valid().then(|| clock::instant_in(self.remaining()))
    }

    /// How long the lease is valid if no heartbeat extends it; zero once it is over.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
    /// let lead = election.lead().await?;
    /// let lease = lead.lease();
    /// if lease.remaining() > std::time::Duration::from_secs(5) {
    ///     println!("time for a larger batch");
    /// }
    /// # assert!(lease.remaining() > std::time::Duration::from_secs(5));
    /// lead.resign().await;
    /// assert_eq!(lease.remaining(), std::time::Duration::ZERO);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.tenure.deadline().since(clock::now())
    }

    /// Waits until the lead must be given up or is over, and returns why. A task that can stop in order waits for this beside its work: it
    /// then has the stop timeout ([`Builder::stop_timeout`](crate::Builder::stop_timeout)) to end, and the lease is still extended
    /// meanwhile.
    ///
    /// # Cancel safety
    ///
    /// Safe in `select!`: it may be dropped and called again, and then returns the same reason.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
    /// let mut lead = election.lead().await?;
    /// # tokio::spawn(election.leave());
    /// lead.run(|lease| async move {
    ///     let mut times = tokio::time::interval(std::time::Duration::from_millis(10));
    ///     loop {
    ///         tokio::select! {
    ///             reason = lease.ending() => return println!("ending in order: {reason}"),
    ///             _ = times.tick() => println!("one row"),
    ///         }
    ///     }
    /// })
    /// .await?;
    /// # Ok(()) }
    /// ```
    pub async fn ending(&self) -> Reason {
        self.tenure.ending().await
    }

    /// Runs a task as the leader, as [`Lead::run`](crate::Lead::run) does, beside other tasks: the lead is released only when all of them
    /// have ended or were dropped. It is for code that does not hold the [`Lead`](crate::Lead), such as a spawned task, or one of many
    /// requests that a server answers. The returned future must be polled until it ends, or dropped, as that of `Lead::run`.
    ///
    /// # Errors
    ///
    /// The lead was over, or was being given up, before the task began; or the task was dropped before its end.
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
    /// let lead = election.lead().await?;
    /// let lease = lead.lease();
    /// let write = tokio::spawn(async move {
    ///     lease.run(async |lease| println!("one write, with the fencing token {}", lease.token())).await
    /// });
    /// write.await??;
    /// # Ok(()) }
    /// ```
    pub async fn run<T, F: Future<Output = T>>(&self, task: impl FnOnce(Self) -> F) -> Result<T, Lost> {
        self.run_until(task, Tenure::dropping_tasks).await
    }

    /// As [`run`](Self::run), but drops the task as soon as the lead must be given up.
    pub(crate) async fn run_while_leading<T, F: Future<Output = T>>(
        &self,
        task: impl FnOnce(Self) -> F,
    ) -> Result<T, Lost> {
        self.run_until(task, Tenure::ending).await
    }

    /// Runs the callback before the release, which counts as a task already. `None` if the lease has run out before its end: it is not polled
    /// after that, as a task is not, even if the thread that drops it gets no processor.
    pub(crate) async fn run_last(&self, callback: impl Future<Output = ()>) -> Option<()> {
        let mut callback = pin!(callback);
        poll_fn(|context| if self.is_valid() { callback.as_mut().poll(context).map(Some) } else { Poll::Ready(None) })
            .await
    }

    async fn run_until<'a, T, F, E>(
        &'a self,
        task: impl FnOnce(Self) -> F,
        end: impl FnOnce(&'a Tenure) -> E,
    ) -> Result<T, Lost>
    where
        F: Future<Output = T>,
        E: Future<Output = Reason>,
    {
        // Dropped after the task, whatever ends this function.
        let _running = self.tenure.begin()?;
        let mut ended = pin!(end(&self.tenure));
        let mut task = pin!(task(self.clone()));
        poll_fn(|context| {
            if let Poll::Ready(reason) = ended.as_mut().poll(context) {
                return Poll::Ready(Err(self.tenure.lost(reason)));
            }
            // The thread that ends the lead may get no processor. The reason is the same that it would give.
            if !self.tenure.is_valid() {
                return Poll::Ready(Err(self.tenure.lost(self.tenure.ends().unwrap_or(Reason::Expired))));
            }
            task.as_mut().poll(context).map(Ok)
        })
        .await
    }

    /// Asks that the lead is given up, so that another candidate leads first, and returns at once. [`ending`](Self::ending) returns when
    /// that begins, and tasks under the lead are awaited until the stop timeout. If no other candidate leads within two leases, this one
    /// may lead again.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli_election::EmbeddedBroker::start()?;
    /// # let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
    /// let mut lead = election.lead().await?;
    /// let reason = lead.run(async |lease| {
    ///     // The database is out of reach from this machine: let another try.
    ///     lease.resign();
    ///     lease.ending().await
    /// });
    /// assert_eq!(reason.await?, neli_election::Reason::Resigned);
    /// # Ok(()) }
    /// ```
    pub fn resign(&self) {
        self.tenure.resign();
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("token", &self.token()).field("remaining", &self.remaining()).finish()
    }
}

#[cfg(test)]
mod tests;
