//! `--embedded`: the journal is lost with the broker, so its candidates end with it.

use std::fs::File;
use std::{future, io};

use neli_kafka::embedded::FoundBroker;
use nix::unistd::Pid;

use crate::process::ready::Ready;

/// The broker that this candidate has found or started.
pub(super) struct EmbeddedBroker {
    end: Ready,
    pub(super) has_ended: bool,
    /// The processes that this candidate has started for it: children that are not part of a job.
    pub(super) started: Vec<Pid>,
    /// No new broker begins while this process holds it.
    _lock: File,
}

impl EmbeddedBroker {
    pub(super) fn new(found: FoundBroker) -> io::Result<Self> {
        let FoundBroker { connection, lock, started, .. } = found;
        let end = connection.end().map(|end| Ready::of(&end)).transpose()?;
        let end = end.ok_or(io::ErrorKind::NotConnected)?;
        let started = started.iter().map(|child| Pid::from_raw(child.id().cast_signed())).collect();
        Ok(Self { end, has_ended: false, started, _lock: lock })
    }
}

/// Waits for the broker's end, once.
pub(super) async fn ended(broker: Option<&EmbeddedBroker>) {
    match broker {
        Some(broker) if !broker.has_ended => broker.end.wait().await,
        Some(_) | None => future::pending().await,
    }
}
