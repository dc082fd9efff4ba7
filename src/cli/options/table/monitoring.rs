//! What others may ask this process.

use crate::cli::options::{Default, Opt, Section, Takes};

pub(super) const OPTIONS: &[Opt] = &[Opt {
    long: "listen",
    short: None,
    takes: Takes::Value("ADDRESS"),
    default: Default::None,
    section: Section::Monitoring,
    help: "Serve metrics, health and a status page by HTTP here",
    more: "HOST:PORT, or :PORT for all addresses of the machine; port 0 is any that is free, and the log says which. /metrics is for \
           Prometheus; /healthz is 200 while the main loop turns, /readyz while a broker is reached too, /leader while this process \
           leads (/leader/ROLE for one of several), and each is 503 else; /status is JSON, and / a page for people. Nothing can be \
           changed by it, and nobody is asked for a password: give it an address that only those reach who may know.",
}];
