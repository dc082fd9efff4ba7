//! The hidden mode `neli-run release <descriptor>`: what a guard becomes when its supervisor has died and the job's tree is
//! gone. It writes the term's release for the dead, tries for one lease at most, and ends.
//!
//! Whoever stands by waits for this record, so nothing stands between the start and the producer: no option is parsed,
//! no topic is looked for, nothing is read. It judges nothing: it writes what the guard knew last.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::Duration;

use neli::program::{Access, Client, ElectionId, Elections, KafkaEvent, Producer};
use neli_proto::record::{Body, MemberId, Offset, Record, Why};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::exit::{ExitStatus, StartupError};

/// What the guard passes to it, as JSON in a file in memory.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ReleaseOrder {
    /// The member that held the term.
    pub member: MemberId,
    /// The term.
    pub term: Offset,
    /// The offset as of which it was current.
    pub seen: Offset,
    /// The release's sequence number.
    pub seq: u64,
    /// What the guard was started with for this.
    pub release: Means,
}

/// What writing a release takes besides the term. The guard passes it on, and does not read it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Means {
    /// How Kafka is reached: [`Brokers::At`](neli::program::Brokers::At), the embedded broker's address too.
    pub client: Client,
    /// The election.
    pub election: ElectionId,
    /// How the candidate was called.
    pub name: String,
    /// For how long to try, in milliseconds.
    pub lease_ms: u64,
}

/// Carries out the order in this descriptor. Only a test reads what it returns.
///
/// # Errors
///
/// The descriptor holds no order, or the release was not delivered within the lease.
pub fn main(descriptor: &OsStr) -> Result<ExitStatus, StartupError> {
    // Opened anew by its name, so that it is read from its beginning.
    let text = fs::read(Path::new("/proc/self/fd").join(descriptor)).map_err(|error| {
        StartupError::new(format!("no release order in descriptor {}: {error}", descriptor.display()))
    })?;
    let order: ReleaseOrder = serde_json::from_slice(&text).map_err(|error| {
        StartupError::new(format!("no release order in descriptor {}: {error}", descriptor.display()))
    })?;
    deliver(&order)
}

fn deliver(order: &ReleaseOrder) -> Result<ExitStatus, StartupError> {
    let Means { client, election, lease_ms, .. } = &order.release;
    let access = Access::try_from(client).map_err(StartupError::new)?;
    let (sender, mut events) = mpsc::channel(4);
    let producer = Producer::start(&access, &Elections::from(election), Duration::from_millis(*lease_ms), sender)
        .map_err(StartupError::new)?;
    producer.send(election, Some(order.seq), &election.key(), &record(order).to_bytes()).map_err(StartupError::new)?;
    loop {
        match events.blocking_recv() {
            Some(KafkaEvent::Delivered { .. }) => return Ok(ExitStatus::Success),
            Some(KafkaEvent::NotDelivered { error, .. } | KafkaEvent::Refused { error }) => {
                return Err(StartupError::new(error));
            }
            // Tried again.
            Some(_) => {}
            None => return Err(StartupError::new("the producer is gone")),
        }
    }
}

fn record(order: &ReleaseOrder) -> Record {
    Record {
        member: Some(order.member.clone()),
        name: Some(order.release.name.as_str().into()),
        seq: Some(order.seq),
        body: Body::Release {
            term: order.term,
            seen: order.seen,
            why: Some(Why::SupervisorDied.as_str().into()),
            exit: None,
            late_ms: None,
            group_member: None,
            once: None,
            successor: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_guard_writes_is_read_and_becomes_a_release() {
        let order = r#"{"member":"m","term":42,"seen":57,"seq":9,"release":{
            "client":{"brokers":{"At":"localhost:9092"},"properties":[["linger.ms","1"]]},
            "election":{"group":"g","topic":"t","partition":0,"role":0},"name":"n","lease_ms":5000}}"#;
        let order: ReleaseOrder = serde_json::from_str(order).unwrap();
        let line = r#"{"v":1,"member":"m","name":"n","seq":9,"kind":"release","term":42,"seen":57,"why":"supervisor-died","exit":null}"#;
        assert_eq!(String::from_utf8(record(&order).to_bytes()).unwrap(), line);
    }
}
