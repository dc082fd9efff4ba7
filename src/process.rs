//! Processes and what the kernel offers for them: start, signal, reap, find and kill; priority, limits, terminal.

pub mod cgroup;
mod child;
pub mod descriptors;
pub mod image;
pub mod limits;
pub mod memory;
pub(crate) mod oom_score;
pub mod priority;
pub mod procfs;
pub mod quota;
pub(crate) mod ready;
pub mod reap;
pub mod release_queue;
mod room_for_threads;
pub mod scheduling;
pub mod sealed_file;
pub mod shell;
pub mod signal_set;
pub mod signals;
pub(crate) mod spawn;
pub(crate) mod spawn_spec;
pub(crate) mod spin_watch;
pub mod system;
pub mod tail;
pub mod terminal;
pub(crate) mod timer;
pub mod tree;
