//! The lease of one term, as a task sees it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use neli_kafka::clock;
use neli_proto::record::Offset;
use neli_proto::time::Time;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use crate::error::{Lost, Reason};

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

    /// The fencing token: the term's number, which grows from leader to leader as long as the topic is not made anew. It fits a
    /// `BIGINT`.
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
    /// # let roles = neli_election::Election::builder("billing").embedded(&broker).roles(2).join_roles().await?;
    /// # let election = roles.get("1").ok_or("no such role")?;
    /// let lead = election.lead().await?;
    /// assert_eq!(lead.lease().role(), Some("1"));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn role(&self) -> Option<&str> {
        self.tenure.role.as_deref()
    }

    /// When the lease ends if no heartbeat extends it, and the lead is not given up before; `None` once it is over.
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
        // Read first: a thread that is stopped in between gets a time before the end of the lease, and never one after it.
        let present = clock::instant_in(Duration::ZERO);
        Some(self.remaining()).filter(|left| !left.is_zero()).map(|left| present + left)
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
        self.tenure.wait_for(Phase::ends).await
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
        self.run_until(task, Phase::drops_tasks).await
    }

    /// Runs the callback before the release, which counts as a task already. `None` if the lease has run out before its end: it is not polled
    /// after that, as a task is not, even if the thread that drops it gets no processor.
    pub(crate) async fn run_last(&self, callback: impl Future<Output = ()>) -> Option<()> {
        let mut callback = pin!(callback);
        poll_fn(|context| if self.is_valid() { callback.as_mut().poll(context).map(Some) } else { Poll::Ready(None) })
            .await
    }

    /// As [`run`](Self::run), but drops the task as soon as there is a reason for `end`.
    pub(crate) async fn run_until<T, F: Future<Output = T>>(
        &self,
        task: impl FnOnce(Self) -> F,
        end: fn(Phase) -> Option<Reason>,
    ) -> Result<T, Lost> {
        // Dropped after the task, whatever ends this function.
        let _running = self.tenure.begin()?;
        let mut ended = pin!(self.tenure.wait_for(end));
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

// ---- the state of one term, which the election's thread and the tasks under the lead share -------------------------

/// The tasks under a lead, and how far its end has come.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Phase {
    /// Whether the program has taken the lead.
    is_taken: bool,
    /// The number of tasks that run under it.
    tasks: u32,
    /// Set once the barrier has begun: no task is begun any more, and the running ones should end.
    stops: Option<Reason>,
    /// Set once the stop timeout is over: the tasks must be dropped. The lease goes on, for the callback before the release.
    dropped: Option<Reason>,
    /// Set once the lease is over: the tasks and the callback must be dropped.
    over: Option<Reason>,
}

impl Phase {
    /// Why the barrier has begun, or the lease is over.
    pub(crate) fn ends(self) -> Option<Reason> {
        self.over.or(self.stops)
    }

    /// Why the tasks must be dropped.
    fn drops_tasks(self) -> Option<Reason> {
        self.over.or(self.dropped)
    }
}

/// One term. Only the election's thread extends its lease.
#[derive(Debug)]
pub(crate) struct Tenure {
    term: Offset,
    /// When the lease ends, in nanoseconds of `CLOCK_BOOTTIME`; 0 once it is over.
    deadline: AtomicU64,
    phase: watch::Sender<Phase>,
    role: Option<Arc<str>>,
    commands: Commands,
}

/// The proof that no task runs under a lead, and that none will be begun.
#[derive(Debug)]
pub(crate) struct NoTask(());

impl Tenure {
    /// `role`: its name or number; none in an election without roles.
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

    /// Sets the end of the lease. A lease that is over is not extended any more.
    pub(crate) fn extend(&self, until: Time) {
        if self.phase.borrow().over.is_none() {
            self.deadline.store(until.as_nanos(), Ordering::Release);
        }
    }

    /// Begins the barrier: no task is begun any more.
    pub(crate) fn stop(&self, reason: Reason) {
        self.phase.send_modify(|phase| _ = phase.stops.get_or_insert(reason));
    }

    /// Makes the tasks be dropped, at the stop timeout. The lease goes on.
    pub(crate) fn drop_tasks(&self) {
        self.phase.send_modify(|phase| phase.dropped = phase.stops);
    }

    /// Whether the lease is over.
    pub(crate) fn is_over(&self) -> bool {
        self.phase.borrow().over.is_some()
    }

    /// Ends the lease: the tasks are dropped. If the barrier has begun, its reason counts and not `reason`. Returns false if it was over before.
    pub(crate) fn end(&self, reason: Reason) -> bool {
        self.deadline.store(0, Ordering::Release);
        self.phase.send_if_modified(|phase| {
            let has_changed = phase.over.is_none();
            phase.over = phase.over.or(phase.stops).or(Some(reason));
            has_changed
        })
    }

    /// Why the lead ends, if its end has begun.
    pub(crate) fn ends(&self) -> Option<Reason> {
        self.phase.borrow().ends()
    }

    /// The proof that no task is left; `None` while one runs, or before the end of the lead has begun.
    pub(crate) fn no_task(&self) -> Option<NoTask> {
        let phase = *self.phase.borrow();
        (phase.ends().is_some() && phase.tasks == 0).then_some(NoTask(()))
    }

    // ---- by tasks -----------------------------------------------------------------------------------------------------

    /// Takes the lead, and returns whether that was possible: nobody has taken it, and its end has not begun.
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

    /// Begins the callback before the release, which may begin although the barrier has begun.
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
        let task = Task { tenure: Arc::clone(self), unfinished: None };
        // The election's thread may not have seen it yet.
        if self.is_valid() { Ok(task) } else { Err(self.lost(Reason::Expired)) }
    }

    pub(crate) const fn lost(&self, reason: Reason) -> Lost {
        Lost { term: self.term, reason }
    }

    /// Asks the election's thread to give up the lead. If its end has begun there is nothing to give up, and in a topic that was made anew a later
    /// lead may have this term's number.
    pub(crate) fn resign(&self) {
        if self.ends().is_none() {
            self.commands.send(Command::Resign { term: self.term });
        }
    }

    async fn wait_for(&self, what: impl Fn(Phase) -> Option<Reason>) -> Reason {
        let (mut phases, mut reason) = (self.phase.subscribe(), None);
        let has_reason = |phase: &Phase| {
            reason = what(*phase);
            reason.is_some()
        };
        // It can't fail: this object has the sender.
        drop(phases.wait_for(has_reason).await);
        reason.unwrap_or(Reason::Expired)
    }
}

/// One task under a lead. It is dropped after the task, and then the task counts as ended.
#[derive(Debug)]
pub(crate) struct Task {
    tenure: Arc<Tenure>,
    /// For the callback before the release: of what the election's thread warns before the task ends; nothing once the callback is finished.
    pub(crate) unfinished: Option<&'static str>,
}

impl Drop for Task {
    fn drop(&mut self) {
        let panicked =
            "the callback of before_release has panicked: the lead is released although the callback is not finished";
        if let Some(why) = self.unfinished {
            self.tenure.commands.send(Command::Warn(if thread::panicking() { panicked } else { why }));
        }
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

// ---- what handles, leads and tasks tell the election's thread ------------------------------------------------------

/// A command to the thread.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Command {
    /// The last task under a lead that ends has ended.
    Idle { term: Offset },
    /// Leave the election; as `all` other elections of the process, or this one alone.
    Leave { all: bool },
    /// Give this lead up.
    Resign { term: Offset },
    /// Warn of this: the callback before a release is not finished.
    Warn(&'static str),
}

/// Sends commands to the thread for one of its elections.
#[derive(Clone, Debug)]
pub(crate) struct Commands {
    role: usize,
    sender: UnboundedSender<(usize, Command)>,
}

impl Commands {
    pub(crate) const fn new(role: usize, sender: UnboundedSender<(usize, Command)>) -> Self {
        Self { role, sender }
    }

    /// Sends a command, unless the thread has ended.
    pub(crate) fn send(&self, command: Command) {
        let _ = self.sender.send((self.role, command));
    }
}

#[cfg(test)]
mod tests;
