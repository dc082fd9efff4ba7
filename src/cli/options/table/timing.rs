//! Options for the durations of the protocol.

use crate::cli::options::{Default, Opt, Section, Takes};

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        long: "heartbeat-interval",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Computed("--lease / 5, at most 1s"),
        section: Section::Timing,
        help: "Time between two heartbeats",
        more: "10ms to a third of --lease.",
    },
    Opt {
        long: "fence-warning",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Computed("--lease / 4, at most 2500ms"),
        section: Section::Timing,
        help: "Time from the stop signal to the kill by the guard",
        more: "If no heartbeat comes back, the guard kills the job just before the lease ends; the job gets the \
               stop signal this long before that. 0 (no stop signal) to half of --lease.",
    },
];
