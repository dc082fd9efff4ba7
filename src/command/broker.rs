//! `neli-run broker`: the embedded broker in the foreground, and the hidden form in which candidates start it.

pub mod host;
mod marker;

use std::io::{self, Write};

use neli::program::embedded::directory::BrokerDirectory;
use neli::program::embedded::{DISTRUST, IDLE_TIMEOUT};

use crate::command::broker::host::{BrokerSettings, EmbeddedBroker};
use crate::command::stdout;
use crate::exit::{ExitStatus, StartupError};

/// The address is for other tools: a candidate asks the broker's process, not Kafka's protocol, to make a topic.
const USAGE: &str = "neli-run: this user's candidates find this broker with --embedded (neli-run --embedded --group NAME -- \
                     COMMAND). Don't give its address to --brokers: this broker makes no topics for Kafka's clients";

/// Runs the broker until TERM or INT, prints its address on stdout, and explains on stderr how it is used. Candidates of this
/// user find it by `--embedded`.
///
/// # Errors
///
/// One is running already, or it can't be started, or stdout does not take the address.
pub fn main() -> Result<ExitStatus, StartupError> {
    let directory = BrokerDirectory::of_user().map_err(StartupError::new)?;
    let settings = BrokerSettings { directory, idle_timeout: IDLE_TIMEOUT, distrust: DISTRUST };
    let broker = EmbeddedBroker::open(settings).map_err(StartupError::new)?;
    stdout::written(writeln!(io::stdout(), "{}", broker.bootstrap()))?;
    // stderr may be closed: the hint is then lost.
    let _ = writeln!(io::stderr(), "{USAGE}");
    serve(broker, false)
}

/// `neli-run broker 0`: the broker that a candidate starts if it finds none. Its exit status is not used.
///
/// # Errors
///
/// One is running already, or it can't be started.
pub fn daemon() -> Result<ExitStatus, StartupError> {
    let settings = host::detach().map_err(StartupError::new)?;
    let broker = EmbeddedBroker::open(settings).map_err(StartupError::new)?;
    serve(broker, true)
}

fn serve(broker: EmbeddedBroker, idle_ends: bool) -> Result<ExitStatus, StartupError> {
    broker.serve(idle_ends).map_err(|error| StartupError::new(format!("the embedded broker: {error}")))?;
    Ok(ExitStatus::Success)
}
