//! The smallest program that does its work on one machine of many:
//!
//! ```sh
//! cargo run -p neli-election --example minimal -- kafka-1:9092,kafka-2:9092
//! ```
//!
//! Without an argument it uses its own embedded broker, and is the only candidate.
//!
//! It handles no signal: when it is ended, the others lead after its lease, 20 s. `examples/outbox` shows how to leave at SIGTERM, so that they
//! lead at once.

#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::env;
use std::time::Duration;

use neli::{Election, EmbeddedBroker, Error, Lease};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let builder = Election::builder("minimal").on_warning(|message| println!("{message}"));
    let builder = match env::args().nth(1) {
        Some(brokers) => builder.brokers(brokers),
        None => builder.embedded(&EmbeddedBroker::start()?),
    };
    let election = builder.join().await?;
    println!("standing by");
    election.serve(work).await
}

/// The work that only one machine may do at a time.
async fn work(lease: Lease) {
    let mut times = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            reason = lease.ending() => return println!("stopping in order: {reason}"),
            _ = times.tick() => {
                // Checked before each effect.
                if lease.is_valid() {
                    println!("working, with the fencing token {}", lease.token());
                }
            }
        }
    }
}
