//! `neli-run broker`: the embedded broker in the foreground, and the hidden form in which candidates start it.

pub mod host;
mod marker;

use std::io::{self, Write};

use neli::program::embedded::directory::BrokerDirectory;
use neli::program::embedded::{DISTRUST, IDLE_TIMEOUT};

use crate::command::broker::host::{BrokerSettings, EmbeddedBroker};
use crate::command::stdout;
use crate::exit::{ExitStatus, StartupError};

/// Other tools can use the address, but a candidate must use `--embedded`: it asks the broker's process to create a topic, and not by
/// Kafka's protocol.
const USAGE: &str = "neli-run: this user's candidates find this broker with --embedded (neli-run --embedded --group NAME -- \
                     COMMAND). Don't give its address to --brokers: this broker makes no topics for Kafka's clients";

/// Runs the broker until TERM or INT, prints its address on stdout, and explains on stderr how to use it. Candidates of this user find it
/// by `--embedded`.
///
/// # Errors
///
/// Another broker runs already, the broker can't be started, or stdout can't be written.
pub fn main() -> Result<ExitStatus, StartupError> {
    let directory = BrokerDirectory::of_user().map_err(StartupError::new)?;
    let settings = BrokerSettings { directory, idle_timeout: IDLE_TIMEOUT, distrust: DISTRUST };
    let broker = EmbeddedBroker::open(settings).map_err(StartupError::new)?;
    stdout::written(writeln!(io::stdout(), "{}", broker.bootstrap()))?;
    // stderr may be closed; then the hint is lost.
    let _ = writeln!(io::stderr(), "{USAGE}");
    serve(broker, false)
}

/// `neli-run broker 0`: the broker that a candidate starts if it finds none. Its exit status is not used.
///
/// # Errors
///
/// Another broker runs already, or the broker can't be started.
pub fn daemon() -> Result<ExitStatus, StartupError> {
    let settings = host::detach().map_err(StartupError::new)?;
    let broker = EmbeddedBroker::open(settings).map_err(StartupError::new)?;
    serve(broker, true)
}

fn serve(broker: EmbeddedBroker, idle_ends: bool) -> Result<ExitStatus, StartupError> {
    broker.serve(idle_ends).map_err(|error| StartupError::new(format!("the embedded broker: {error}")))?;
    Ok(ExitStatus::Success)
}
