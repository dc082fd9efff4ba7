//! Passes a process's warnings to the program's callback, also while it joins.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, UnboundedSender};

/// What a program does with a warning.
pub(crate) type OnWarning = Arc<dyn Fn(&str) + Send + Sync>;

/// The sender of warnings to the callback, if there is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings(Option<UnboundedSender<String>>);

impl Warnings {
    /// Calls `callback` for each warning, in their order, in a task of the runtime: the callback may block, and the election's thread sends the
    /// heartbeats. The task ends when the last sender is dropped.
    pub(crate) fn start(runtime: &Handle, callback: OnWarning) -> Self {
        let (sender, mut warnings) = mpsc::unbounded_channel::<String>();
        drop(runtime.spawn(async move {
            while let Some(warning) = warnings.recv().await {
                callback(&warning);
            }
        }));
        Self(Some(sender))
    }

    /// Sends a warning. If the runtime has ended, it is lost.
    pub(crate) fn send(&self, message: &str) {
        let _ = self.0.as_ref().map(|sender| sender.send(message.to_owned()));
    }
}
