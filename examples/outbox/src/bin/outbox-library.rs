//! The same relay as a program that stands for election itself, with the library `neli` (the crate `neli-election`). One on each machine; one of them relays.
//!
//! It is told by variables: `OUTBOX_DATABASE`, `OUTBOX_BROKERS` and `OUTBOX_TOPIC` as the other, `OUTBOX_GROUP` (the election's name), and
//! `OUTBOX_LEASE_MS`, if it is set (how long the others wait for a leader that has died). SIGTERM ends it when the rows under way are
//! marked and the lead is released.
//!
//! Nothing kills it when its lease is over, as `neli-run` would: its work ends at the next await. The fence in the table is what
//! refuses a mark that was under way.

use std::cell::Cell;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use neli::{Election, Lease};
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
    // Before anything else: a stop that comes early is a stop too.
    let mut terminate = signal(SignalKind::terminate())?;
    let options = Options::from_environment(variable("OUTBOX_GROUP")?)?;
    let mut builder = Election::builder(&options.group).brokers(&options.brokers);
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
            // The lead is given up, so that another machine tries; where there is none, this one leads again after two leases.
            Err(error) => eprintln!("outbox: {error}"),
        }
    };
    election.serve(work).await?;
    Ok(relayed.get())
}
