//! `--listen`: the state of this process, for monitoring, load balancers and users. It is read-only.
//!
//! A thread of its own serves the state that the main loop has published last, so the main loop never waits for it. Clients are limited:
//! one request for each connection, some thousand connections a second, a maximum number at a time, and a time limit for each.

mod answer;
mod metrics;
mod server;
mod site;
mod snapshot;
mod status;

pub(crate) use answer::site;
pub(crate) use metrics::escaped as label;
pub(crate) use server::{Bound, serve};
pub(crate) use site::{Answer, ContentType, Events, Site, ok, text, unavailable};
pub(crate) use snapshot::{About, Board, Broker, Echoes, Histogram, RoleSnapshot, RunsSnapshot, Snapshot, Tally};
pub(crate) use status::BrokerPart;

/// The most descriptors that the server uses.
pub(crate) const OPEN_FILES: u64 = 80;

#[cfg(test)]
mod tests;
