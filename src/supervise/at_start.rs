//! Properties of the process that can only be read at its very start.

use std::os::fd::RawFd;

use neli_kafka::clock;
use neli_proto::time::Time;

use crate::process::descriptors;
use crate::process::terminal::is_there;

/// Properties of the process at the very start of `main`.
#[derive(Clone, Debug)]
pub struct AtStart {
    /// When it started.
    pub time: Time,
    /// The descriptors that it inherited.
    pub inherited: Vec<RawFd>,
    /// Whether it had a terminal.
    pub has_terminal: bool,
}

impl AtStart {
    /// Must be the first call in `main`, before anything is opened.
    #[must_use]
    pub fn now() -> Self {
        // Without /proc only the three standard descriptors are known.
        let inherited = descriptors::open().unwrap_or_else(|_| vec![0, 1, 2]);
        Self { time: clock::now(), inherited, has_terminal: is_there() }
    }
}
