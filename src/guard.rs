//! The guard: a process between the supervisor and the job that holds the deadline (R4).
//!
//! A supervisor that is stopped, swapped out or dead can't enforce a deadline. So a separate process does, and the job is that process's
//! child. It is this program, executed again before any thread exists, so that it is small, and a start of the job costs one fork.
//!
//! - At the deadline it kills the whole tree of the job, whatever the supervisor does.
//! - When the supervisor's end of the socket closes, or the supervisor dies, it kills the tree at once.
//! - When the supervisor is dead, the tree gone and the term not released, it releases the term in the supervisor's place (R6).
//! - It reads only its socket, and writes only to its socket and the lease descriptor.
//!
//! The supervisor decides when to start, extend and stop; the guard's own decisions are [`neli_proto::guard::Guard`]. A process that
//! changed its uid or gid may be out of reach: that is reported ([`Answer::Stuck`]), and the process never counts as gone.
//!
//! [`GuardHandle`] is the supervisor's end. The process is `guard_loop`, which performs what the guard decides.

mod channel;
mod deadline_thread;
mod guard_loop;
mod handle;
mod job;
pub mod lease;
mod message;
mod perform;
mod trial;

use std::os::fd::RawFd;
use std::panic;
use std::process::ExitCode;

use crate::guard::guard_loop::GuardLoop;

pub use crate::guard::handle::GuardHandle;
pub use crate::guard::message::GuardConfig;
pub(crate) use crate::guard::trial::trial;
pub use neli_proto::guard::{Answer, CommandKind, Grant, Order, Step, Target};

/// The path of this program. It works even if the program's file has been replaced since.
pub(crate) const PROGRAM: &str = "/proc/self/exe";

/// The guard's process, from its start to its end, whose status is an errno. `config` is the number of the file with its configuration.
pub fn main(config: RawFd) -> ExitCode {
    // Writing to a stderr that is not read would block, and delay the kill at the deadline.
    panic::set_hook(Box::new(|_| {}));
    match GuardLoop::new(config).and_then(GuardLoop::run) {
        Ok(()) => ExitCode::SUCCESS,
        // Nothing else tells the supervisor why there is no guard.
        Err(error) => error.raw_os_error().and_then(|errno| u8::try_from(errno).ok()).unwrap_or(u8::MAX).into(),
    }
}
