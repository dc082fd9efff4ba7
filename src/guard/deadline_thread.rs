//! A thread of the guard that kills the job if the first one stalls.
//!
//! At a memory limit that guard and job share, the first thread may stall for seconds when it opens a file, forks or sends a message: the
//! kernel charges the memory to the group, and looks for processes to kill while the job allocates what each has left. This thread does
//! nothing of the kind, not even for a page of its stack. It can't search the tree, but a process that ends leaves its children to the guard, where
//! the next round finds them.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{LazyLock, Mutex, MutexGuard};

use neli_kafka::clock::Alarm;
use neli_proto::time::Time;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::process::attributes::Scheduling;
use crate::process::reap::keep_children;
use crate::process::spin_watch::spawn_above;
use crate::process::system::Shared;
use crate::process::tree::{Tree, in_rounds};
use crate::process::{locked, system};

/// Is held during a round that kills the control group.
static KILLING_GROUP: LazyLock<Shared<Mutex<()>>> = LazyLock::new(|| Shared::new(Mutex::new(())));

/// No round that kills the control group runs while the result is held.
fn keep_group() -> MutexGuard<'static, ()> {
    locked(&**KILLING_GROUP)
}

/// Starts the thread, which ends with the process, with a priority above that of the calling thread if that one is real-time; and one more for the
/// control group, since that kill may wait for a lock that all groups of the machine share. Returns the alarm from whose time on they kill.
///
/// # Errors
///
/// No thread can be started, or there is no free descriptor.
pub(super) fn start(tree: &Tree) -> io::Result<Alarm> {
    let alarm = Alarm::new()?;
    let due = || alarm.as_fd().try_clone_to_owned();
    // A sandbox may hide it.
    let scheduling = Scheduling::current().unwrap_or(Scheduling::ordinary());
    let (known, due_now) = (tree.known()?, due()?);
    let prepare = move || {
        system::keep_stack_from_children();
        drop(keep_children());
        known.note_living();
        known
    };
    spawn_above("neli-deadline", scheduling, prepare, move |known| {
        kill_when(&due_now, keep_children, |waited_for| {
            known.note_living();
            known.kill_all_but(*waited_for);
        })
    })?;
    if let Some(cgroup) = tree.cgroup.clone() {
        let due_now = due()?;
        let prepare = system::keep_stack_from_children;
        spawn_above("neli-group-kill", scheduling, prepare, move |()| {
            kill_when(&due_now, keep_group, |()| cgroup.kill())
        })?;
    }
    Ok(alarm)
}

/// From this time on they kill again and again; with `None` never.
pub(super) fn kill_from(alarm: &mut Alarm, time: Option<Time>) {
    // It can't fail for a descriptor of our own. No lock is held meanwhile: whatever holds this thread up must not hold up the others.
    let _ = alarm.set(time);
    // A round that has begun ends before a new run can start. Not both at once: the kill of the group may last, and the known processes' must not.
    drop(keep_children());
    drop(keep_group());
}

fn kill_when<T>(due: &OwnedFd, one_round: fn() -> MutexGuard<'static, T>, kill: impl Fn(&T)) -> Infallible {
    let kill_if_due = || {
        let round = one_round();
        let is_due = system::is_readable(due.as_fd());
        if is_due {
            kill(&round);
        }
        is_due
    };
    loop {
        let _ = poll(&mut [PollFd::new(due.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE);
        in_rounds(kill_if_due);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc::{self, RecvTimeoutError};
    use std::thread;
    use std::time::Duration;

    use harness::wait;
    use nix::{libc, unistd};

    use super::*;

    /// The kernel has one lock for the control groups of a machine.
    #[test]
    fn a_kill_of_the_control_group_that_lasts_keeps_no_known_process_alive() {
        let lasts = keep_group();
        thread::scope(|scope| {
            let (tell, told) = mpsc::channel();
            scope.spawn(move || {
                tell.send(unistd::gettid()).unwrap();
                kill_from(&mut Alarm::new().unwrap(), None);
            });
            let thread = told.recv().unwrap();
            wait::until_true("the first thread waits for that kill", || {
                let call = fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).unwrap();
                call.starts_with(&format!("{} ", libc::SYS_futex))
            });
            let (ends, ended) = mpsc::channel::<()>();
            scope.spawn(move || {
                drop(keep_children());
                drop(ends);
            });
            let round = ended.recv_timeout(Duration::from_secs(10));
            drop(lasts);
            assert_eq!(round, Err(RecvTimeoutError::Disconnected), "another round has ended meanwhile");
        });
    }
}
