//! The durations of the protocol.

use crate::cli::options::{Default, Opt, Section, Takes};

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        long: "lease",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Value("20s"),
        section: Section::Timing,
        help: "How long a leader may act on its last heartbeat",
        more: "Counted from the moment before it was sent. After a machine's death another leads about this \
               much later; after a stop, or the death of neli-run alone, at once. After the unclean death of a broker that \
               holds the topic, a follower too, no heartbeat comes back for 9s to 14s with Kafka's own settings: a \
               lease that is not longer ends the job then. 300ms to 60s, in whole milliseconds. The guard kills the job a \
               fiftieth of it, at least 20ms, before its end.",
    },
    Opt {
        long: "heartbeat-interval",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Computed("a fifth of --lease, at most 1s"),
        section: Section::Timing,
        help: "Between two heartbeats",
        more: "10ms to a third of --lease.",
    },
    Opt {
        long: "fence-warning",
        short: None,
        takes: Takes::Value("DURATION"),
        default: Default::Computed("a quarter of --lease, at most 2500ms"),
        section: Section::Timing,
        help: "The stop signal comes this long before the kill",
        more: "When heartbeats don't come back, the guard kills the job just before the lease's end; this long before that, the job is asked to stop. 0 (it is not) to half of --lease.",
    },
];
