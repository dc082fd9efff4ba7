//! The connection to the service manager.

use neli_proto::time::Time;

use crate::report::notes::Trouble;
use crate::report::notify::Notifier;

/// The connection to the service manager, and the last report.
pub(super) struct ServiceStatus {
    pub(super) notifier: Notifier,
    pub(super) reported: Option<(String, Option<(Time, Trouble)>)>,
}

impl ServiceStatus {
    /// A connection over which nothing was reported yet.
    pub(super) const fn to(notifier: Notifier) -> Self {
        Self { notifier, reported: None }
    }
}
