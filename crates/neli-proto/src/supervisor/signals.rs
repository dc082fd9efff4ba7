//! The numbers of Linux's signals, on every machine that Rust's standard library supports except MIPS and SPARC.

pub(super) const SIGHUP: i32 = 1;
pub(super) const SIGINT: i32 = 2;
pub(super) const SIGQUIT: i32 = 3;
pub(super) const SIGKILL: i32 = 9;
pub(super) const SIGTERM: i32 = 15;
pub(super) const SIGCHLD: i32 = 17;
pub(super) const SIGCONT: i32 = 18;
pub(super) const SIGTSTP: i32 = 20;
pub(super) const SIGTTIN: i32 = 21;
pub(super) const SIGTTOU: i32 = 22;
pub(super) const SIGWINCH: i32 = 28;
