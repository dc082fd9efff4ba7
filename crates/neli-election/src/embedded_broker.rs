//! An embedded broker in this process, for the tests and examples of programs that use the library.

use std::sync::Arc;

use neli_kafka::{
    embedded::{Connection, in_process},
    reason,
};

use crate::error::Error;

/// A small broker in this process, for tests and trials: librdkafka's mock of Kafka, on a port of the loopback interface. It stores nothing
/// on disk. It lives until the last clone of this value, and the last candidate and follower that use it, are dropped.
///
/// Only candidates of this process can use it; candidates of several processes need a real Kafka. `neli-run --embedded` has a broker of its
/// own, in a separate process.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let broker = neli_election::EmbeddedBroker::start()?;
/// let election = neli_election::Election::builder("billing").embedded(&broker).join().await?;
/// assert!(election.lead().await?.lease().is_valid());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct EmbeddedBroker {
    pub(crate) connection: Arc<Connection>,
}

impl EmbeddedBroker {
    /// Starts a broker.
    ///
    /// # Errors
    ///
    /// The machine has no thread, port or descriptor to spare.
    pub fn start() -> Result<Self, Error> {
        let connection = in_process::start()
            .map_err(|error| Error::System(format!("the embedded broker can't be started: {}", reason(&error))))?;
        Ok(Self { connection: Arc::new(connection) })
    }
}
