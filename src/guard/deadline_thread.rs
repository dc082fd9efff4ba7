//! A thread of the guard that kills the job if the first one stalls.
//!
//! At a memory limit that guard and job share, the first thread may stall for seconds when it opens a file, forks or sends a message: the
//! kernel charges the memory to the group, and looks for processes to kill while the job allocates what each has left. This thread does
//! nothing of the kind, not even for a page of its stack. It can't search the tree, but a process that ends leaves its children to the guard, where
//! the next round finds them.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard};

use neli_kafka::clock::Alarm;
use neli_proto::time::Time;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::process::attributes::Scheduling;
use crate::process::reap::keep_children;
use crate::process::spin_watch::spawn_above;
use crate::process::tree::{Tree, in_rounds};
use crate::process::{locked, system};

/// Is held during a round that kills the control group.
static KILLING_GROUP: Mutex<()> = Mutex::new(());

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
        // A guard makes children by `fork_to_execute` alone.
        system::keep_stack_from_children();
        drop(keep_children());
        known.note_living();
        known
    };
    spawn_above("neli-deadline", scheduling, prepare, move |known| {
        kill_when(&due_now, keep_children, || {
            known.note_living();
            known.kill();
        })
    })?;
    if let Some(cgroup) = tree.cgroup.clone() {
        let due_now = due()?;
        let one_round = || locked(&KILLING_GROUP);
        spawn_above("neli-group-kill", scheduling, || (), move |()| kill_when(&due_now, one_round, || cgroup.kill()))?;
    }
    Ok(alarm)
}

/// From this time on they kill again and again; with `None` never.
pub(super) fn kill_from(alarm: &mut Alarm, time: Option<Time>) {
    // It can't fail for a descriptor of our own. No lock is held meanwhile: whatever holds this thread up must not hold up the others.
    let _ = alarm.set(time);
    // A round that has begun ends before a new run can start.
    drop((keep_children(), locked(&KILLING_GROUP)));
}

fn kill_when(due: &OwnedFd, one_round: fn() -> MutexGuard<'static, ()>, kill: impl Fn()) -> Infallible {
    let is_due = |timeout: PollTimeout| {
        poll(&mut [PollFd::new(due.as_fd(), PollFlags::POLLIN)], timeout).is_ok_and(|readable| readable > 0)
    };
    let kill_if_due = || {
        let _round = one_round();
        let due = is_due(PollTimeout::ZERO);
        if due {
            kill();
        }
        due
    };
    loop {
        is_due(PollTimeout::NONE);
        in_rounds(kill_if_due);
    }
}
