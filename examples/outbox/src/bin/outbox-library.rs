//! The same relay as a program that stands for election itself, with the library `neli-election`. It runs on each
//! machine, and one of them relays.
//!
//! It is configured by environment variables: `OUTBOX_DATABASE`, `OUTBOX_BROKERS` and `OUTBOX_TOPIC` as for the other program,
//! `OUTBOX_GROUP` (the election's name), and optionally `OUTBOX_LEASE_MS` (how long the others wait for a leader that has died). SIGTERM
//! ends it once the current rows are marked and the lead is released.
//!
//! Unlike with `neli-run`, nothing kills it at the end of its lease: its work ends at the next await. The fence in the table refuses a
//! mark that is made after that.

use std::cell::Cell;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use neli_election::{Election, Lease};
use outbox::{Options, relay, variable};
use tokio::signal::unix::{SignalKind, signal};

/// How long a relay that has failed keeps the lead, unless it must give it up before.
const PAUSE: Duration = Duration::from_secs(1);

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
    let options = Options::from_environment(variable("OUTBOX_GROUP")?)?;
    let mut builder = Election::builder(&options.group).brokers(&options.brokers);
    builder = builder.on_warning(|message| eprintln!("outbox: {message}"));
    if let Ok(lease) = variable("OUTBOX_LEASE_MS") {
        builder = builder.lease(Duration::from_millis(lease.parse()?));
    }
    let election = tokio::select! {
        election = builder.join() => election?,
        _ = terminate.recv() => return Ok(0),
    };
    let leaving = election.clone();
    tokio::spawn(async move {
        terminate.recv().await;
        leaving.leave().await;
    });
    let relayed = Cell::new(0);
    let work = async |lease: Lease| {
        let stop = async {
            lease.ending().await;
        };
        match relay(&options, lease.token(), stop).await {
            Ok(rows) => relayed.set(relayed.get() + rows),
            Err(error) => {
                eprintln!("outbox: {error}");
                // While the database is down, the lead would otherwise move between the machines many times a second.
                let _ = tokio::time::timeout(PAUSE, lease.ending()).await;
                // The lead is given up, so that another machine tries; if there is none, this one leads again after two leases.
            }
        }
    };
    election.serve(work).await?;
    Ok(relayed.get())
}
