//! The connection to the service manager.

use neli_proto::time::Time;

use crate::report::notes::Trouble;
use crate::report::notify::Notifier;

/// The connection to the service manager, and the last report.
pub(super) struct ServiceStatus {
    pub(super) notifier: Notifier,
    pub(super) reported: Option<(String, Option<(Time, Trouble)>)>,
    /// When the leader will have missed three heartbeats, or its lease will be over, which the report must say.
    pub(super) silent_at: Option<Time>,
}

impl ServiceStatus {
    /// A connection over which nothing was reported yet.
    pub(super) const fn to(notifier: Notifier) -> Self {
        Self { notifier, reported: None, silent_at: None }
    }

    /// When the next report is due, unless something changes before.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        [self.notifier.poll_timeout(), self.silent_at].into_iter().flatten().min()
    }
}
