//! Passes a process's warnings to the program's callback, also while it joins.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread;

use neli_kafka::one_line;
use tokio::runtime::Handle;

/// What a program does with a warning.
pub(crate) type OnWarning = Arc<dyn Fn(&str) + Send + Sync>;

/// Calls the program's callback. If there is none, the warning goes to stderr: nobody would learn why a candidate waits for ever. So it does if the
/// callback panics, and the next one goes to the callback again: otherwise nobody would learn of those that follow, and the caller would end with it.
pub(crate) fn pass(callback: Option<&OnWarning>, group: &str, message: &str) {
    let message = one_line(message);
    let is_passed = callback.is_some_and(|callback| catch_unwind(AssertUnwindSafe(|| callback(&message))).is_ok());
    if !is_passed {
        // If stderr is closed, the line is lost.
        let _ = writeln!(io::stderr(), "neli-election: {group}: {message}");
    }
}

/// Calls `callback` for each warning that is sent, in their order, in a thread: it may block, the election's thread sends the heartbeats, and a
/// runtime whose task blocks would report nothing of that. Within the callback the runtime is the current one. The thread ends when the last sender
/// is dropped. Without a callback warnings go to stderr, with the group. A warning that is about all roles, and that each of them reports, is sent
/// with the role, and passed on once.
///
/// # Errors
///
/// There is no thread to spare.
pub(crate) fn start(
    runtime: &Handle,
    callback: Option<OnWarning>,
    group: &str,
) -> io::Result<mpsc::Sender<(String, Option<u32>)>> {
    let (group, runtime) = (group.to_owned(), runtime.clone());
    let (sender, warnings) = mpsc::channel::<(String, Option<u32>)>();
    thread::Builder::new().name("neli-warnings".to_owned()).spawn(move || {
        let _entered = runtime.enter();
        // The last warning that roles report, and which of them have reported it.
        let (mut last, mut reported_by) = (String::new(), BTreeSet::new());
        for (message, role) in warnings {
            if role.is_some_and(|role| message == last && reported_by.insert(role)) {
                continue;
            }
            if let Some(role) = role {
                reported_by = BTreeSet::from([role]);
                last.clone_from(&message);
            }
            pass(callback.as_ref(), &group, &message);
        }
    })?;
    Ok(sender)
}
