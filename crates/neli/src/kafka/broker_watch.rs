//! Waits for the end of an embedded broker, and finds or starts the next one.

use std::io;
use std::sync::Arc;
use std::thread;

use tokio::sync::mpsc::Sender;

use crate::kafka::embedded::{BrokerFinder, Connection, START_INTERVAL};
use crate::kafka::event::{KafkaEvent, SessionEvent};

/// Keeps `connection` open in a thread of its own. Each time the broker ends, the thread finds or starts another one and sends it to
/// `events` ([`SessionEvent::Moved`]).
///
/// # Errors
///
/// The thread can't be started.
pub fn watch(finder: BrokerFinder, mut connection: Arc<Connection>, events: Sender<KafkaEvent>) -> io::Result<()> {
    let following = move || {
        while !events.is_closed() {
            connection.wait_for_end();
            let event = match finder.find_or_start() {
                Ok(found) => {
                    connection = Arc::clone(&found.connection);
                    SessionEvent::Moved(found)
                }
                Err(error) => {
                    thread::park_timeout(START_INTERVAL);
                    SessionEvent::Down { error: error.to_string() }
                }
            };
            if events.blocking_send(event.into()).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("neli-embedded".to_owned()).spawn(following).map(drop)
}
