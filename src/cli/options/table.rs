//! Every option, in the order of the help. A new option is one row in its section's file, and one line in `validate.rs` that reads it.

use super::Opt;

mod commands;
mod election;
mod job;
mod kafka;
mod log;
mod monitoring;
mod timing;

/// A section's options each.
const SECTIONS: [&[Opt]; 7] = [
    election::OPTIONS,
    kafka::OPTIONS,
    timing::OPTIONS,
    job::OPTIONS,
    commands::OPTIONS,
    log::OPTIONS,
    monitoring::OPTIONS,
];

/// Every option.
pub fn options() -> impl Iterator<Item = &'static Opt> {
    SECTIONS.into_iter().flatten()
}
