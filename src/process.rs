//! Operations of the kernel on processes: start, signal, reap, find and kill; priority, limits, terminal.

pub mod attributes;
pub mod cgroup;
pub mod descriptors;
pub mod image;
pub mod limits;
pub mod memory;
pub mod priority;
pub mod procfs;
pub mod quota;
pub(crate) mod ready;
pub mod reap;
pub mod release_queue;
pub mod sealed_file;
pub mod shell;
pub mod signal_set;
pub mod signals;
pub(crate) mod spawn;
pub(crate) mod spin_watch;
pub mod system;
pub mod tail;
pub mod terminal;
pub mod tree;
