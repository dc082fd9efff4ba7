//! An embedded broker in this process, for the tests and examples of programs that use the library.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::mocking::MockCluster;

use crate::embedded::Connection;

/// Starts a broker in this process: librdkafka's mock of Kafka, on a port of the loopback interface. It stores nothing on disk. It lives until
/// the last clone of the connection is dropped.
///
/// # Errors
///
/// The machine has no thread, port or descriptor to spare.
pub fn start() -> io::Result<Connection> {
    let (bootstrap_sender, bootstrap) = mpsc::channel();
    let (topics, asked) = mpsc::channel();
    let thread = thread::Builder::new().name("neli-broker".to_owned());
    thread.spawn(move || host(&bootstrap_sender, &asked))?;
    let bootstrap = bootstrap.recv().map_err(|_| io::Error::other("its thread has ended"))?;
    Ok(Connection::to_thread(bootstrap.map_err(io::Error::other)?, Topics(topics)))
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
