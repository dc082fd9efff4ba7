//! Every option, in the order of the help. A new option needs a row in its section's file, and a line in `validate.rs` that reads it.

use super::Opt;

mod commands;
mod common;
mod election;
mod job;
mod kafka;
mod log;
mod timing;

/// The options of each section.
const SECTIONS: [&[Opt]; 7] = [
    common::OPTIONS,
    election::OPTIONS,
    kafka::OPTIONS,
    timing::OPTIONS,
    job::OPTIONS,
    commands::OPTIONS,
    log::OPTIONS,
];

/// Every option.
pub fn options() -> impl Iterator<Item = &'static Opt> {
    SECTIONS.into_iter().flatten()
}
