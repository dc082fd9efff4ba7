//! A guard and a job for `doctor`, which start in the same way as a candidate's.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::Duration;

use neli_kafka::clock;
use neli_proto::guard::{Answer, Grant, Order};
use nix::libc::SIGKILL;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::guard::PROGRAM;
use crate::guard::handle::GuardHandle;
use crate::guard::message::GuardConfig;
use crate::process::attributes::{EarlierAttributes, Mark};
use crate::process::memory_files::release_queue;
use crate::process::system;
use crate::text::why_not_started;

/// The lease of the job, which ends at once. A guard that does not answer for so long counts as failed.
const LEASE: Duration = Duration::from_secs(10);

/// Starts a guard, and below it a job that does nothing; returns once both have ended.
///
/// # Errors
///
/// The step that fails, and why.
pub(crate) fn trial() -> Result<(), String> {
    let release_queue =
        release_queue().map_err(|error| format!("no file in memory for the guards' releases: {error}"))?;
    let guard_config = guard_config(&release_queue);
    let mut guard = GuardHandle::start(Path::new(PROGRAM), &guard_config)
        .map_err(|error| format!("the guard ({PROGRAM}) can't be started: {}", why_not_started(&error)))?;
    let ran = run(&guard);
    if ran.is_err() {
        let _ = guard.signal(SIGKILL);
    }
    guard.close();
    // It ends at once: its term is released, or it was killed.
    let _ = system::wait_for(guard.pid(), 0);
    guard.note_death(None);
    ran
}

/// Has the guard run the job, and waits until no process of it is left.
fn run(guard: &GuardHandle) -> Result<(), String> {
    let gone = |error: io::Error| format!("the guard has ended at its start: {error}");
    let end = clock::now() + LEASE;
    let grant = Grant { term: 0, seen: 0, next_seq: 1, until: end };
    guard.send(&Order::Spawn { grant, run: 1, attempt: 1, window: None }).map_err(gone)?;
    loop {
        let left = PollTimeout::try_from(end.since(clock::now())).unwrap_or(PollTimeout::ZERO);
        if poll(&mut [PollFd::new(guard.as_fd(), PollFlags::POLLIN)], left) == Ok(0) {
            return Err("the guard does not answer".to_owned());
        }
        match guard.receive() {
            Ok(Some((Answer::Gone, _))) => return guard.send(&Order::Released { term: 0 }).map_err(gone),
            Ok(Some((Answer::NotStarted { errno, at }, _))) => {
                let error = io::Error::from_raw_os_error(errno);
                return Err(format!("the job can't be started ({at:?}): {}", why_not_started(&error)));
            }
            Ok(Some((Answer::Fenced { .. } | Answer::Stuck { .. }, _))) => {
                return Err("the guard was too late for its job".to_owned());
            }
            // A step on the way.
            Ok(Some(_)) => {}
            Ok(None) => return Err(gone(io::ErrorKind::UnexpectedEof.into())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(gone(error)),
        }
    }
}

fn guard_config(release_queue: &File) -> GuardConfig {
    GuardConfig {
        attributes: EarlierAttributes { mark: Mark::new(), ..EarlierAttributes::default() },
        // It is there in an image that has nothing else. It has no stdout, so it prints nothing.
        command: vec![PROGRAM.into(), "--version".into()],
        kill_margin: Duration::from_millis(20),
        lease: LEASE,
        releaser: PROGRAM.into(),
        release_queue: release_queue.as_raw_fd(),
        ..GuardConfig::default()
    }
}
