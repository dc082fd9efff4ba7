//! An outbox relay: it sends rows of a PostgreSQL table to Kafka in order, from one machine at a time.
//!
//! An application that changes its database *and* informs others by Kafka can't do both in one transaction. So it writes the messages
//! into a table, in the transaction of the change, and a relay sends the table's rows to Kafka. Two relays at the same time would send
//! rows twice and in the wrong order; without a relay there is an outage. So several machines run it, and one of them leads.
//!
//! Guarantees:
//! - Every row is sent at least once. It is marked as relayed after Kafka has acknowledged it. A relay that dies in between leaves rows that
//!   are sent and not marked: the next one sends them again.
//! - Rows of one key arrive in the order of their ids, but for rows that are sent again: a reader that skips ids at or below the highest
//!   that it has seen of a key sees each row once, in order.
//! - An earlier leader marks nothing any more once the next leader has begun: the term is a fencing token, which the database compares in
//!   the transaction that marks ([`Table::mark`]).
//! - A relay that is stopped in order finishes the rows that it has begun to send: none of them is sent twice.

use std::env;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use rdkafka::error::KafkaError;

mod table;
mod topic;

pub use table::{Row, Table};
pub use topic::{ID_HEADER, Topic};

/// How many rows are sent before they are marked: up to this many may be sent twice after a crash.
const BATCH: i64 = 500;

/// The polling interval of an empty outbox.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why a relay ends.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A later term has begun: another relay leads.
    #[error("another relay leads: a later term than {term} has begun")]
    Fenced {
        /// The term that is over.
        term: i64,
    },
    /// PostgreSQL fails or can't be reached.
    #[error("the outbox table: {0}")]
    Table(#[from] tokio_postgres::Error),
    /// Kafka fails or can't be reached.
    #[error("the topic: {0}")]
    Topic(#[from] KafkaError),
}

/// The configuration of a relay.
#[derive(Clone, Debug)]
pub struct Options {
    /// The database: `host=... user=... dbname=...`.
    pub database: String,
    /// The brokers: `host:port,...`.
    pub brokers: String,
    /// The topic for the rows.
    pub topic: String,
    /// The election's name, which is also the name of the fence.
    pub group: String,
}

impl Options {
    /// The options in `OUTBOX_DATABASE`, `OUTBOX_BROKERS` and `OUTBOX_TOPIC`.
    ///
    /// # Errors
    /// One of them is not set; the text names it.
    pub fn from_environment(group: String) -> Result<Self, String> {
        let [database, brokers, topic] = ["OUTBOX_DATABASE", "OUTBOX_BROKERS", "OUTBOX_TOPIC"].map(variable);
        Ok(Self { database: database?, brokers: brokers?, topic: topic?, group })
    }
}

/// An environment variable.
///
/// # Errors
/// It is not set; the text names it.
pub fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("{name} is not set"))
}

/// Relays rows as the leader of this term until `stop` is ready; rows that were sent by then are also marked. Returns how many rows were
/// relayed.
///
/// # Errors
/// The table or the topic fails, or another relay leads. Rows that were not marked are relayed again by the next leader.
pub async fn relay(options: &Options, term: i64, stop: impl Future<Output = ()>) -> Result<usize, Error> {
    let table = Table::open(&options.database, &options.group, term).await?;
    let topic = Topic::open(&options.brokers, &options.topic)?;
    eprintln!("outbox: relaying in term {term}");
    let mut stop = pin!(stop);
    let mut relayed = 0;
    loop {
        let rows = table.pending(BATCH).await?;
        topic.send(&rows).await?;
        table.mark(&rows).await?;
        relayed += rows.len();
        let pause = if rows.is_empty() { LOOK_EVERY } else { Duration::ZERO };
        tokio::select! {
            biased;
            () = &mut stop => return Ok(relayed),
            () = tokio::time::sleep(pause) => {}
        }
    }
}
