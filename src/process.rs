//! Operations of the kernel on processes: start, signal, reap, find and kill; priority, limits, terminal.

pub mod attributes;
pub mod cgroup;
pub mod descriptors;
pub(crate) mod held;
pub mod limits;
pub mod memory_files;
pub mod procfs;
pub(crate) mod ready;
pub mod reap;
pub mod shell;
pub mod signals;
pub(crate) mod spawn;
pub(crate) mod spin_watch;
pub mod system;
pub mod terminal;
pub mod tree;

pub(crate) use neli_kafka::locked;
