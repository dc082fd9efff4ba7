//! The relay as a job of `neli-run`, which starts it on one machine at a time:
//!
//! ```text
//! neli-run --group outbox --brokers kafka:9092 --restart always -- outbox
//! ```
//!
//! It is configured by environment variables: `OUTBOX_DATABASE` (`host=db user=app dbname=app`), `OUTBOX_BROKERS`, `OUTBOX_TOPIC`;
//! `neli-run` sets `NELI_EPOCH` and `NELI_GROUP`. SIGTERM ends it once the current rows are marked.

use std::error::Error;
use std::process::ExitCode;

use outbox::{Options, relay, variable};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(relayed) => {
            eprintln!("outbox: {relayed} rows relayed");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("outbox: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<usize, Box<dyn Error>> {
    // Before anything else, so that an early signal is handled as well.
    let mut terminate = signal(SignalKind::terminate())?;
    let options = Options::from_environment(variable("NELI_GROUP")?)?;
    let term = variable("NELI_EPOCH")?.parse()?;
    let stop = async {
        terminate.recv().await;
    };
    Ok(relay(&options, term, stop).await?)
}
