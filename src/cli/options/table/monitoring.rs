//! Options for monitoring.

use crate::cli::options::{Default, Opt, Section, Takes};

pub(super) const OPTIONS: &[Opt] = &[Opt {
    long: "listen",
    short: None,
    takes: Takes::Value("ADDRESS"),
    default: Default::None,
    section: Section::Monitoring,
    help: "Serve metrics, probes and a status page over HTTP",
    more: "HOST:PORT, or :PORT for all addresses of the machine. With port 0 any free port is used, and the \
           log says which. There is no password: choose an address that only trusted clients reach. See \
           MONITORING in neli-run(1).",
}];
