//! The call of the user's callback before a release, in the user's runtime.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::lease::Task;

/// A call that was begun, or waits for the runtime.
pub(super) struct LastCall {
    call: JoinHandle<()>,
    waiting: Waiting,
}

/// The task under the lead as which the call counts, until the runtime begins it. A runtime that is busy, or that nobody runs, begins nothing
/// and drops nothing: what it has not begun must not count as a task that can't be ended.
#[derive(Clone)]
struct Waiting(Arc<Mutex<Option<Task>>>);

impl LastCall {
    /// Makes the runtime run `call`, which counts as `task`.
    pub(super) fn spawn(runtime: &Handle, task: Task, call: impl Future<Output = ()> + Send + 'static) -> Self {
        let waiting = Waiting(Arc::new(Mutex::new(Some(task))));
        let begun = DroppedUnbegun(waiting.clone());
        let call = runtime.spawn(async move {
            // Dropped after the call. There is none if the call has come too late.
            let Some(_task) = begun.0.end() else { return };
            call.await;
        });
        Self { call, waiting }
    }

    /// Drops the call.
    pub(super) fn abort(&self) {
        self.call.abort();
        drop(self.waiting.end());
    }
}

impl Waiting {
    /// The task, unless the wait has ended before.
    fn end(&self) -> Option<Task> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Ends the wait of a call that a runtime drops when it shuts down.
struct DroppedUnbegun(Waiting);

impl Drop for DroppedUnbegun {
    fn drop(&mut self) {
        drop(self.0.end());
    }
}
