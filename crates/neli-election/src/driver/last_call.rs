//! The call of the user's callback before a release, in the user's runtime.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::command::{Command, Commands, Unfinished};
use crate::lease::Task;

/// A call that was begun, or waits for the runtime.
pub(super) struct LastCall {
    call: JoinHandle<()>,
    waiting: Waiting,
}

/// The task under the lead as which the call counts, until the runtime begins it. A runtime that is busy, or that nobody runs, begins nothing
/// and drops nothing: what it has not begun must not count as a task that can't be ended.
#[derive(Clone)]
struct Waiting {
    task: Arc<Mutex<Option<Task>>>,
    commands: Commands,
}

impl LastCall {
    /// Makes the runtime run `call`, which counts as `task`, and returns `None` if it ends unfinished. The election's thread is told if it is
    /// not finished, before it is told that the task has ended.
    pub(super) fn spawn(
        runtime: &Handle,
        task: Task,
        commands: Commands,
        call: impl Future<Output = Option<()>> + Send + 'static,
    ) -> Self {
        let waiting = Waiting { task: Arc::new(Mutex::new(Some(task))), commands: commands.clone() };
        let begun = DroppedUnbegun(waiting.clone());
        let call = runtime.spawn(async move {
            // Dropped after the call. There is none if the call has come too late.
            let Some(_task) = begun.0.end() else { return };
            let mut report = Report { commands, is_finished: false };
            report.is_finished = call.await.is_some();
        });
        Self { call, waiting }
    }

    /// Drops the call.
    pub(super) fn abort(&self) {
        self.call.abort();
        self.waiting.give_up();
    }
}

impl Waiting {
    /// The task, unless the wait has ended before.
    fn end(&self) -> Option<Task> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends the wait: the call will not be begun.
    fn give_up(&self) {
        if let Some(_task) = self.end() {
            self.commands.send(Command::CallbackUnfinished(Unfinished::NotBegun));
        }
    }
}

/// Ends the wait of a call that a runtime drops when it shuts down.
struct DroppedUnbegun(Waiting);

impl Drop for DroppedUnbegun {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

/// Reports a call that was begun, if it is dropped before its end. It does not hold the sender of the events: these end with the election,
/// however long a call blocks.
struct Report {
    commands: Commands,
    is_finished: bool,
}

impl Drop for Report {
    fn drop(&mut self) {
        if !self.is_finished {
            let why = if thread::panicking() { Unfinished::Panicked } else { Unfinished::Dropped };
            self.commands.send(Command::CallbackUnfinished(why));
        }
    }
}
