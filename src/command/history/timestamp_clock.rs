//! The clock of the timestamps, on which the findings about overlaps depend.

use neli_proto::observer::Finding;

/// The clock of the timestamps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TimestampClock {
    /// The broker's, or that of the one machine of all candidates.
    Brokers,
    /// Each candidate's own (`message.timestamp.type=CreateTime`); candidates' clocks may show different times.
    Candidates,
}

impl TimestampClock {
    /// Whether the finding shows that two jobs may have run at once.
    pub(super) const fn is_violation(self, finding: &Finding) -> bool {
        finding.is_violation() && !self.is_doubtful(finding)
    }

    /// Whether the finding may come from different clocks alone.
    pub(super) const fn is_doubtful(self, finding: &Finding) -> bool {
        matches!((self, finding), (Self::Candidates, Finding::Overlap { .. }))
    }
}
