//! A thread of the guard that kills the job if the first one stalls.
//!
//! At a memory limit that guard and job share, the first thread may stall for seconds when it opens a file, forks or sends a message: the
//! kernel charges the memory to the group, and looks for processes to kill while the job allocates what each has left. This thread does
//! nothing of the kind. It can't search the tree, but a process that ends leaves its children to the guard, where the next round finds them.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use neli_kafka::clock::Alarm;
use neli_proto::time::Time;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::process::attributes::Scheduling;
use crate::process::cgroup::Cgroup;
use crate::process::reap::keep_children;
use crate::process::spin_watch::spawn_above;
use crate::process::tree::{KnownProcesses, Tree, in_rounds};

/// Enough for the part of the list of children that is read at once, 4 KiB.
const STACK: usize = 32 * 1024;

/// Starts the thread, which ends with the process, with a priority above that of the calling thread if that one is real-time. Returns the alarm from
/// whose time on it kills.
///
/// # Errors
///
/// No thread can be started, or there is no free descriptor.
pub(super) fn start(tree: &Tree) -> io::Result<Alarm> {
    let alarm = Alarm::new()?;
    let (due, known) = (alarm.as_fd().try_clone_to_owned()?, tree.known()?);
    let cgroup = tree.cgroup.clone();
    // What a round needs is in memory after a look, and is locked when all has started.
    let prepare = move || {
        known.for_each_child(|_| ());
        known
    };
    // A sandbox may hide it.
    let scheduling = Scheduling::current().unwrap_or(Scheduling::ordinary());
    spawn_above(scheduling, STACK, prepare, move |known| kill_when(&due, &known, cgroup.as_deref()))?;
    Ok(alarm)
}

/// From this time on it kills again and again; with `None` never.
pub(super) fn kill_from(alarm: &mut Alarm, time: Option<Time>) {
    // It can't fail for a descriptor of our own. The lock is not held meanwhile: whatever holds this thread up must not hold up the other one.
    let _ = alarm.set(time);
    // A round that has begun ends before a new run can start.
    drop(keep_children());
}

fn kill_when(due: &OwnedFd, known: &KnownProcesses, cgroup: Option<&Cgroup>) -> Infallible {
    let is_due = |timeout: PollTimeout| {
        poll(&mut [PollFd::new(due.as_fd(), PollFlags::POLLIN)], timeout).is_ok_and(|readable| readable > 0)
    };
    let kill_if_due = || {
        let _children = keep_children();
        let due = is_due(PollTimeout::ZERO);
        if due {
            known.note_living();
            known.kill();
            if let Some(cgroup) = cgroup {
                cgroup.kill();
            }
        }
        due
    };
    loop {
        is_due(PollTimeout::NONE);
        in_rounds(kill_if_due);
    }
}
