//! The lease of one term, as a task sees it, and the state that the task and the election's thread share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use neli_proto::record::Offset;
use neli_proto::time::Time;
use tokio::sync::watch;

use crate::clock;
use crate::driver::{Command, Commands};
use crate::error::Lost;
use crate::reason::Reason;

/// The right to act as the leader, for as long as it is valid. Cheap to clone, and may be sent to other tasks and threads.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = neli::EmbeddedBroker::start()?;
/// # let election = neli::Election::builder("billing").embedded(&broker).join().await?;
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

    /// Whether this process may act as the leader now: one load and one read of the clock, no lock, some tens of nanoseconds.
    ///
    /// It is false from the deadline on, whatever threads and runtimes do: after the process was stopped, or the machine slept, too.
    /// To be asked before each effect. An effect that is under way at the deadline has the margin
    /// ([`Builder::margin`](crate::Builder::margin)) to arrive before another leads; where that is not enough, let the store refuse
    /// a [token](Self::token) below the highest that it has seen.
    #[must_use]
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.tenure.is_valid()
    }

    /// The fencing token: the term's number, which grows from leader to leader and is never used twice. It fits a `BIGINT`.
    #[must_use]
    pub fn token(&self) -> i64 {
        self.tenure.term
    }

    /// The role that is led, as [`Roles::get`](crate::Roles::get) knows it; `None` in an election of its own.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli::EmbeddedBroker::start()?;
    /// # let roles = neli::Election::builder("billing").embedded(&broker).roles(2).join().await?;
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
    /// Where the machine sleeps, [`Instant`] stands still and the lease does not: [`is_valid`](Self::is_valid) is what counts.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli::EmbeddedBroker::start()?;
    /// # let election = neli::Election::builder("billing").embedded(&broker).join().await?;
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
    /// # let broker = neli::EmbeddedBroker::start()?;
    /// # let election = neli::Election::builder("billing").embedded(&broker).join().await?;
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

    /// Waits until the lead is to be given up, or is over, and says why. A task that can stop in order waits for this beside its work:
    /// from then on it has the stop timeout ([`Builder::stop_timeout`](crate::Builder::stop_timeout)) to end, and the lease is extended
    /// meanwhile.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = neli::EmbeddedBroker::start()?;
    /// # let election = neli::Election::builder("billing").embedded(&broker).join().await?;
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
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("token", &self.token()).field("remaining", &self.remaining()).finish()
    }
}

/// How far the end of a lead is, and what still runs under it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Phase {
    /// Somebody holds it.
    is_taken: bool,
    /// Tasks that run under it.
    tasks: u32,
    /// The barrier has begun: nothing is begun any more, and what runs is to end.
    stops: Option<Reason>,
    /// Its tasks are to be dropped; the lease goes on for what is done before the release.
    dropped: Option<Reason>,
    /// Whatever runs is to be dropped.
    over: Option<Reason>,
}

impl Phase {
    fn ends(self) -> Option<Reason> {
        self.over.or(self.stops)
    }

    fn drops_tasks(self) -> Option<Reason> {
        self.over.or(self.dropped)
    }
}

/// One term: what the election's thread and the tasks know of it together. The thread alone extends it.
#[derive(Debug)]
pub(crate) struct Tenure {
    term: Offset,
    /// In nanoseconds of `CLOCK_BOOTTIME`; 0 once it is over.
    deadline: AtomicU64,
    phase: watch::Sender<Phase>,
    role: Option<Arc<str>>,
    commands: Commands,
}

/// Shows that no task runs under a lead, and that none will.
#[derive(Debug)]
pub(crate) struct NoTask(());

impl Tenure {
    /// `role`: how it is called, where there are many.
    pub(crate) fn new(term: Offset, until: Time, role: Option<Arc<str>>, commands: Commands) -> Self {
        Self { term, deadline: AtomicU64::new(until.as_nanos()), phase: watch::Sender::default(), role, commands }
    }

    pub(crate) const fn term(&self) -> Offset {
        self.term
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        clock::now() < self.deadline()
    }

    fn deadline(&self) -> Time {
        Time::from_nanos(self.deadline.load(Ordering::Acquire))
    }

    // ---- by the election's thread -----------------------------------------------------------------------------------

    /// The lease runs until then. Once it is over it stays so.
    pub(crate) fn extend(&self, until: Time) {
        if self.phase.borrow().over.is_none() {
            self.deadline.store(until.as_nanos(), Ordering::Release);
        }
    }

    /// The barrier begins: no task is begun any more.
    pub(crate) fn stop(&self, reason: Reason) {
        self.phase.send_modify(|phase| _ = phase.stops.get_or_insert(reason));
    }

    /// The stop timeout is over: tasks are to be dropped, and the lease goes on.
    pub(crate) fn drop_tasks(&self) {
        self.phase.send_modify(|phase| phase.dropped = phase.stops);
    }

    /// The lease is over: tasks are to be dropped. `reason`: unless the barrier's counts.
    pub(crate) fn end(&self, reason: Reason) {
        self.deadline.store(0, Ordering::Release);
        self.phase.send_if_modified(|phase| {
            let has_changed = phase.over.is_none();
            phase.over = phase.over.or(phase.stops).or(Some(reason));
            has_changed
        });
    }

    /// Why it ends, if it does.
    pub(crate) fn ends(&self) -> Option<Reason> {
        self.phase.borrow().ends()
    }

    /// That no task is left, when the end has begun and that is so.
    pub(crate) fn no_task(&self) -> Option<NoTask> {
        let phase = *self.phase.borrow();
        (phase.ends().is_some() && phase.tasks == 0).then_some(NoTask(()))
    }

    // ---- by tasks -----------------------------------------------------------------------------------------------------

    /// Takes it, unless it was taken, or ends already.
    pub(crate) fn take(&self) -> bool {
        self.phase.send_if_modified(|phase| {
            let may_be_taken = !phase.is_taken && phase.ends().is_none();
            phase.is_taken |= may_be_taken;
            may_be_taken
        })
    }

    pub(crate) fn is_taken(&self) -> bool {
        self.phase.borrow().is_taken
    }

    /// Begins a task.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<Task, Lost> {
        self.begin_unless(Phase::ends)
    }

    /// Begins what runs at the end, before the release.
    pub(crate) fn begin_last(self: &Arc<Self>) -> Result<Task, Lost> {
        self.begin_unless(|phase| phase.over)
    }

    fn begin_unless(self: &Arc<Self>, ends: impl FnOnce(Phase) -> Option<Reason>) -> Result<Task, Lost> {
        let mut end = None;
        self.phase.send_if_modified(|phase| {
            end = ends(*phase);
            phase.tasks += u32::from(end.is_none());
            false
        });
        if let Some(reason) = end {
            return Err(self.lost(reason));
        }
        let task = Task { tenure: Arc::clone(self) };
        // The election's thread may not have seen it yet.
        if self.is_valid() { Ok(task) } else { Err(self.lost(Reason::Expired)) }
    }

    /// Waits until the barrier begins, or the lease is over; why.
    pub(crate) async fn ending(&self) -> Reason {
        self.wait_for(Phase::ends).await
    }

    /// Waits until tasks are to be dropped; why.
    pub(crate) async fn dropping_tasks(&self) -> Reason {
        self.wait_for(Phase::drops_tasks).await
    }

    /// Waits until the lease is over; why.
    pub(crate) async fn over(&self) -> Reason {
        self.wait_for(|phase| phase.over).await
    }

    pub(crate) const fn lost(&self, reason: Reason) -> Lost {
        Lost { term: self.term, reason }
    }

    /// Asks the election's thread to give it up.
    pub(crate) fn resign(&self) {
        self.commands.send(Command::Resign { term: self.term });
    }

    async fn wait_for(&self, mut what: impl FnMut(Phase) -> Option<Reason>) -> Reason {
        let mut phases = self.phase.subscribe();
        loop {
            let phase = *phases.borrow_and_update();
            if let Some(reason) = what(phase) {
                return reason;
            }
            // Its sender is this object.
            let _ = phases.changed().await;
        }
    }
}

/// One task under a lead. When it is dropped, the task has been.
#[derive(Debug)]
pub(crate) struct Task {
    tenure: Arc<Tenure>,
}

impl Drop for Task {
    fn drop(&mut self) {
        let mut is_awaited = false;
        self.tenure.phase.send_if_modified(|phase| {
            phase.tasks -= 1;
            is_awaited = phase.tasks == 0 && phase.ends().is_some();
            false
        });
        if is_awaited {
            self.tenure.commands.send(Command::Idle { term: self.tenure.term });
        }
    }
}

#[cfg(test)]
mod tests;
