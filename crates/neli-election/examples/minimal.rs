//! The smallest program that does its work on one machine of many:
//!
//! ```sh
//! cargo run -p neli-election --example minimal -- kafka-1:9092,kafka-2:9092
//! ```
//!
//! Without an argument it uses its own embedded broker, and is the only candidate.
//!
//! At SIGTERM it leaves, so that another leads at once. Without that, or after SIGKILL, the others wait for its lease, 20 s.

#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::env;
use std::error::Error;
use std::time::Duration;

use neli_election::{Election, EmbeddedBroker, Lease};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // Before anything else: while Kafka is away, `join` waits.
    let mut sigterm = signal(SignalKind::terminate())?;
    let builder = Election::builder("minimal");
    let builder = match env::args().nth(1) {
        Some(brokers) => builder.brokers(brokers),
        None => builder.embedded(&EmbeddedBroker::start()?),
    };
    let election = tokio::select! {
        election = builder.join() => election?,
        _ = sigterm.recv() => return Ok(()),
    };
    println!("standing by");
    let leaving = election.clone();
    tokio::spawn(async move {
        sigterm.recv().await;
        leaving.leave().await;
    });
    Ok(election.serve(work).await?)
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
