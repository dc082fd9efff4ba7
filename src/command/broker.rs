//! `neli-run broker`: the embedded broker in the foreground, and the hidden form in which candidates start it.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use crate::cli::given::Given;
use crate::driver::embedded::LINGER;
use crate::driver::embedded::host::{self, Host};
use crate::driver::embedded::place::Place;
use crate::exit::{ExitStatus, Refusal};

/// Runs the broker until TERM or INT, and prints its address on stdout. Candidates of this user find it by `--embedded`.
///
/// # Errors
///
/// One is running already, or it can't be started.
pub fn main(_: &Given) -> Result<ExitStatus, Refusal> {
    let place = Place::of_user().map_err(|error| Refusal::new(error.to_string()))?;
    let broker = Host::open(&place, LINGER).map_err(|error| Refusal::new(error.to_string()))?;
    // Nobody may want to know.
    let _ = writeln!(std::io::stdout(), "{}", broker.bootstrap());
    serve(broker, false)
}

/// `neli-run broker <directory> <linger in ms>`: what a candidate starts that finds no broker. Nobody reads what it
/// returns.
///
/// # Errors
///
/// One is running already, or it can't be started.
pub fn daemon(directory: &OsStr, linger_ms: &OsStr) -> Result<ExitStatus, Refusal> {
    host::detach().map_err(|error| Refusal::new(error.to_string()))?;
    let linger_ms = linger_ms.to_str().and_then(|text| text.parse().ok());
    let linger = Duration::from_millis(linger_ms.ok_or_else(|| Refusal::new("the linger is no number"))?);
    let place = Place::at(Path::new(directory)).map_err(|error| Refusal::new(error.to_string()))?;
    let broker = Host::open(&place, linger).map_err(|error| Refusal::new(error.to_string()))?;
    serve(broker, true)
}

fn serve(broker: Host, idle_ends: bool) -> Result<ExitStatus, Refusal> {
    broker.serve(idle_ends).map_err(|error| Refusal::new(format!("the embedded broker: {error}")))?;
    Ok(ExitStatus::Success)
}
