//! Reports to users and to the service manager: the log, systemd's status, and the texts for a node's notes.

pub(crate) mod election;
pub(crate) mod events;
pub(crate) mod json;
pub mod log;
pub(crate) mod notes;
pub mod notify;
