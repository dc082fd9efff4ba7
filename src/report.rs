//! What people and the service manager are told: the log, systemd's status, and the texts for what the node notes.

pub mod journald;
pub mod log;
pub(crate) mod notes;
pub mod notify;
