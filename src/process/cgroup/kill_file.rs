//! Writes to a control group's `cgroup.kill`: directly, or from another thread if the caller must not wait.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, OnceLock};
use std::thread;

/// The thread's stack is small, because it only calls write(2).
const STACK: usize = 1 << 16;

/// The file, opened in advance.
#[derive(Debug)]
pub(super) struct KillFile {
    file: File,
    /// Whether the thread was asked to write, and has not begun.
    is_requested: AtomicBool,
}

impl KillFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::options().write(true).open(path)?, is_requested: AtomicBool::new(false) })
    }

    /// Writes, and waits for as long as the kernel needs.
    pub(super) fn write(&self) {
        // It fails if the group was removed, which is possible only if it was empty.
        let _ = (&self.file).write_all(b"1");
    }

    /// Cancels a write of the thread that has not begun.
    pub(super) fn cancel(&self) {
        self.is_requested.store(false, Ordering::Relaxed);
    }
}

/// Asks the thread to write, unless a request is pending already. Returns false if there is no thread.
///
/// One thread is enough for all groups, because all writes wait for the same lock in the kernel.
pub(super) fn write_in_background(file: &Arc<KillFile>) -> bool {
    static WRITER: OnceLock<Option<Sender<Arc<KillFile>>>> = OnceLock::new();
    let Some(writer) = WRITER.get_or_init(|| start().ok()) else { return false };
    file.is_requested.swap(true, Ordering::Relaxed) || writer.send(Arc::clone(file)).is_ok()
}

fn start() -> io::Result<Sender<Arc<KillFile>>> {
    let (sender, requests) = mpsc::channel::<Arc<KillFile>>();
    thread::Builder::new().name("neli-cgroup".to_owned()).stack_size(STACK).spawn(move || {
        for file in requests {
            // A request from now on needs another write, because a process may have joined the group meanwhile.
            if file.is_requested.swap(false, Ordering::Relaxed) {
                file.write();
            }
        }
    })?;
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use crate::process::cgroup::Cgroup;
    use crate::process::cgroup::stalled::StalledGroup;

    #[test]
    fn a_write_that_was_cancelled_before_it_began_is_not_made() {
        let stalled: [_; 3] = std::array::from_fn(|_| StalledGroup::new());
        let [first, cancelled, last] = &stalled;
        let groups = stalled.each_ref().map(StalledGroup::open);
        assert!(groups.iter().all(Cgroup::kill_in_background));
        groups[1].cancel_kill();
        assert!(first.is_killed_now() && last.is_killed_now());
        assert!(!cancelled.was_killed());
    }
}
