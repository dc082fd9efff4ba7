//! The state of one term, which the election's thread and the tasks under the lead share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use neli_kafka::clock;
use neli_proto::record::Offset;
use neli_proto::time::Time;
use tokio::sync::watch;

use crate::command::{Command, Commands};
use crate::error::Lost;
use crate::reason::Reason;

/// The tasks under a lead, and how far its end has come.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Phase {
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
    fn ends(self) -> Option<Reason> {
        self.over.or(self.stops)
    }

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
    pub(super) role: Option<Arc<str>>,
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

    pub(super) fn deadline(&self) -> Time {
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

    /// Ends the lease: the tasks are dropped. If the barrier has begun, its reason counts and not `reason`.
    pub(crate) fn end(&self, reason: Reason) {
        self.deadline.store(0, Ordering::Release);
        self.phase.send_if_modified(|phase| {
            let has_changed = phase.over.is_none();
            phase.over = phase.over.or(phase.stops).or(Some(reason));
            has_changed
        });
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
        let task = Task { tenure: Arc::clone(self) };
        // The election's thread may not have seen it yet.
        if self.is_valid() { Ok(task) } else { Err(self.lost(Reason::Expired)) }
    }

    /// Waits until the barrier begins or the lease is over, and returns why.
    pub(crate) async fn ending(&self) -> Reason {
        self.wait_for(Phase::ends).await
    }

    /// Waits until the tasks must be dropped, and returns why.
    pub(crate) async fn dropping_tasks(&self) -> Reason {
        self.wait_for(Phase::drops_tasks).await
    }

    pub(crate) const fn lost(&self, reason: Reason) -> Lost {
        Lost { term: self.term, reason }
    }

    /// Asks the election's thread to give up the lead.
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
            // It can't fail: this object has the sender.
            let _ = phases.changed().await;
        }
    }
}

/// One task under a lead. It is dropped after the task, and then the task counts as ended.
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
