//! The brokers to which a client could not connect: no administrative question is put to them until they take connections again.
//!
//! While such a question waits for its broker's connection, librdkafka 2.12 connects again at each change of a broker's state
//! (`rd_kafka_broker_get_async`), and a refused connection is such a change: thousands of attempts a second, on one to two processors, whatever
//! `reconnect.backoff.ms` says, until the question's time is over. The question can't be taken back. (Records, fetches and questions for offsets wait
//! in another way, and keep to that time.)

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::Duration;

use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::consumer::DefaultConsumerContext;
use rdkafka::producer::DefaultProducerContext;

use crate::bootstrap_servers::{connect, without_protocol};
use crate::threads::locked;

/// A proxy that takes connections for a broker that is down closes them within this time.
const CLOSED_WITHIN: Duration = Duration::from_millis(50);

/// The brokers to which one client could not connect: their ids and addresses.
#[derive(Default)]
pub struct FailedBrokers(Mutex<BTreeMap<i32, String>>);

/// The context of a client that may know them.
pub trait KnowsFailedBrokers: ClientContext {
    /// They, unless nothing is known.
    fn failed_brokers(&self) -> Option<&FailedBrokers> {
        None
    }
}

impl KnowsFailedBrokers for DefaultClientContext {}
impl KnowsFailedBrokers for DefaultConsumerContext {}
impl KnowsFailedBrokers for DefaultProducerContext {}

impl FailedBrokers {
    /// Notes the broker if this line of librdkafka's log is about a connection to it that has failed before it was ready.
    pub(super) fn note(&self, line: &str) {
        if let Some((broker, address)) = failed(line) {
            locked(&self.0).insert(broker, address.to_owned());
        }
    }

    /// Whether a connection to this broker has failed, and another one fails now, within `limit`. librdkafka does not report each failure.
    pub(super) fn refuses(&self, broker: i32, limit: Duration) -> bool {
        let Some(address) = locked(&self.0).get(&broker).cloned() else { return false };
        let is_taken = connect(&address, limit).is_some_and(|stream| is_kept(&stream));
        if is_taken {
            locked(&self.0).remove(&broker);
        }
        !is_taken
    }
}

/// `[thrd:ssl://kafka-1:9093/1]: ssl://kafka-1:9093/1: Connect to ipv4#10.0.0.1:9093 failed: Connection refused (after 0ms in state CONNECT)`
fn failed(line: &str) -> Option<(i32, &str)> {
    let (_, line) = line.split_once("]: ")?;
    let (broker, words) = line.split_once(": ")?;
    let (address, id) = broker.rsplit_once('/')?;
    let is_ready = words.contains(" in state UP");
    (words.contains(" in state ") && !is_ready).then_some((id.parse().ok()?, without_protocol(address)))
}

/// Whether the other side keeps the connection. A broker says nothing before it is asked.
fn is_kept(stream: &TcpStream) -> bool {
    let read = stream.set_read_timeout(Some(CLOSED_WITHIN)).and_then(|()| stream.peek(&mut [0]));
    read.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn a_broker_is_noted_if_a_connection_to_it_was_never_ready() {
        let refused = "Connect to ipv4#10.0.0.1:9092 failed: Connection refused (after 0ms in state CONNECT)";
        let line = |broker: &str, words: &str| format!("[thrd:{broker}]: {broker}: {words}");
        for (line, expected) in [
            (line("kafka-1:9092/1", refused), Some((1, "kafka-1:9092"))),
            (line("sasl_ssl://[::1]:9092/12", refused), Some((12, "[::1]:9092"))),
            (line("a:1/2", "Disconnected (after 1ms in state APIVERSION_QUERY)"), Some((2, "a:1"))),
            (line("a:1/2", "Disconnected (after 600000ms in state UP)"), None),
            (line("a:1/bootstrap", refused), None),
            ("[thrd:main]: 1/1 brokers are down".to_owned(), None),
        ] {
            assert_eq!(failed(&line), expected, "{line}");
        }
    }

    #[test]
    fn a_port_that_closes_each_connection_refuses_it() {
        const LONG: Duration = Duration::from_secs(10);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let brokers = FailedBrokers::default();
        let fails = || brokers.note(&format!("[thrd:x]: {address}/1: Disconnected (after 1ms in state CONNECT)"));
        fails();
        thread::scope(|scope| {
            scope.spawn(|| drop(listener.accept().unwrap()));
            assert!(brokers.refuses(1, LONG));
        });
        assert!(!brokers.refuses(1, LONG), "it listens");
        drop(listener);
        assert!(!brokers.refuses(1, LONG), "it is not known to fail");
        fails();
        assert!(brokers.refuses(1, LONG) && brokers.refuses(1, LONG));
    }
}
