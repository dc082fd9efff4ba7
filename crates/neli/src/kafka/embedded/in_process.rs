//! An embedded broker in this process, for the tests and examples of programs that use the library.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::mocking::MockCluster;

use crate::error::Error;
use crate::kafka::embedded::Connection;
use crate::text::reason;

/// A small broker in this process, for tests and trials: librdkafka's mock of Kafka, on a port of the loopback interface. It stores nothing
/// on disk. It lives until the last clone of this value, and the last candidate and follower that use it, are dropped.
///
/// Only candidates of this process can use it; candidates of several processes need a real Kafka. `neli-run --embedded` has a broker of its
/// own, in a separate process.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let broker = neli::EmbeddedBroker::start()?;
/// let election = neli::Election::builder("billing").embedded(&broker).join().await?;
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
        let cannot = |error: &str| Error::System(format!("the embedded broker can't be started: {error}"));
        let (bootstrap_sender, bootstrap) = mpsc::channel();
        let (topics, asked) = mpsc::channel();
        let thread = thread::Builder::new().name("neli-broker".to_owned());
        thread.spawn(move || host(&bootstrap_sender, &asked)).map_err(|error| cannot(&reason(&error)))?;
        let bootstrap = bootstrap.recv().map_err(|_| cannot("its thread has ended"))?;
        let bootstrap = bootstrap.map_err(|error| cannot(&error.to_string()))?;
        Ok(Self { connection: Arc::new(Connection::to_thread(bootstrap, Topics(topics))) })
    }
}

/// Sends requests to the broker's thread, which creates topics.
#[derive(Debug)]
pub(super) struct Topics(Sender<Request>);

/// A topic to be created.
struct Request {
    topic: String,
    partitions: i32,
    answer: Sender<Result<(), KafkaError>>,
}

impl Topics {
    pub(super) fn create(&self, topic: &str, partitions: i32) -> io::Result<()> {
        let (answer, answered) = mpsc::channel();
        let gone = || io::Error::from(io::ErrorKind::ConnectionReset);
        self.0.send(Request { topic: topic.to_owned(), partitions, answer }).map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())?.map_err(io::Error::other)
    }
}

/// Runs the broker while there is a handle that may ask for topics.
fn host(bootstrap: &Sender<Result<String, KafkaError>>, asked: &Receiver<Request>) {
    let cluster = match MockCluster::new(1) {
        Ok(cluster) => cluster,
        Err(error) => return drop(bootstrap.send(Err(error))),
    };
    let _ = bootstrap.send(Ok(cluster.bootstrap_servers()));
    while let Ok(Request { topic, partitions, answer }) = asked.recv() {
        let _ = answer.send(match cluster.create_topic(&topic, partitions, 1) {
            Ok(()) | Err(KafkaError::MockCluster(RDKafkaErrorCode::TopicAlreadyExists)) => Ok(()),
            Err(error) => Err(error),
        });
    }
}
