//! Whether the age of a leader's last record, by the broker's timestamp and this machine's clock, may be wrong because the two clocks
//! differ.

use core::time::Duration;

use super::Observer;
use crate::journal::View;
use crate::leadership::{Leadership, ReadAt};
use crate::listener::silence;
use crate::time::millis;

/// The tolerance between clocks: an age by a timestamp may be this much below the age by the clock before the clocks
/// count as different.
pub(super) const CLOCKS_DIFFER: Duration = Duration::from_secs(1);

impl Observer {
    /// Notes a broker's timestamp of a record of the partition, of any election.
    pub fn stamped(&mut self, written_ms: u64) {
        self.latest_timestamp = self.latest_timestamp.max(Some(written_ms));
    }

    /// How long to listen before the timestamps of the leader's records count. That is two of its heartbeats, if it seems silent or its
    /// record is in the future, and no record was read live that would show the difference of the clocks.
    #[must_use]
    pub fn doubts_timestamps(&self, at: ReadAt) -> Option<Duration> {
        let (View::Led(_), None, Some(leader)) = (self.journal.view(), self.broker_clock, self.leader()) else {
            return None;
        };
        let is_ahead = leader
            .last_record
            .written_ms
            .is_some_and(|written| written.saturating_sub(at.wall_ms) > millis(CLOCKS_DIFFER));
        let silent_after = match self.leadership(at) {
            Leadership::Overdue { .. } => Some(leader.overdue_after()),
            Leadership::Silent { .. } => Some(silence(leader.lease)),
            Leadership::Forgotten
            | Leadership::Led { .. }
            | Leadership::NeverLed
            | Leadership::Released { .. }
            | Leadership::Unknown(_) => None,
        };
        let is_doubtful = silent_after.is_some_and(|after| !self.was_silent_by_brokers_clock(after));
        (is_ahead || is_doubtful).then(|| leader.two_beats())
    }

    /// How far the newest record lies in the future by this machine's clock, if so: then the age of what was not read live is too short.
    #[must_use]
    pub fn is_ahead_by(&self, at: ReadAt) -> Option<Duration> {
        let leader = self.leader().and_then(|leader| leader.last_record.written_ms);
        let release = self.last_term.release.as_ref().and_then(|release| release.received.written_ms);
        let newest_ms = self.latest_timestamp.max(leader).max(release)?;
        let ahead = Duration::from_millis(newest_ms.saturating_sub(at.wall_ms));
        (ahead > CLOCKS_DIFFER).then_some(ahead)
    }

    /// Whether a record after the leader's last one shows, by the broker's clock alone, that the leader has been silent for so long.
    fn was_silent_by_brokers_clock(&self, silent: Duration) -> bool {
        let last_ms = self.leader().and_then(|leader| leader.last_record.written_ms);
        let (Some(last_ms), Some(latest_ms)) = (last_ms, self.latest_timestamp) else { return false };
        latest_ms.saturating_sub(last_ms) >= millis(silent)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{claim, later, observer, read_late, release};
    use super::*;

    /// The clock is a minute behind the broker's.
    #[test]
    fn an_age_is_at_least_that_up_to_the_newest_record() {
        let slow = ReadAt { wall_ms: later(0).wall_ms - 60_000, ..later(0) };
        let mut observer = observer();
        read_late(&mut observer, 0, slow, 0, &claim("m", -1));
        read_late(&mut observer, 1, slow, 1_000, &release("m", 0, "exited", "0"));
        observer.stamped(later(9_000).wall_ms);
        let Leadership::Released { age, .. } = observer.leadership(slow) else { panic!("released") };
        assert_eq!((age.as_secs(), observer.is_ahead_by(slow)), (8, Some(Duration::from_secs(69))));
        assert_eq!(observer.is_ahead_by(later(8_000)), None, "a second is within the tolerance");
        assert_eq!(observer.broker_now(later(20_000)), later(20_000).wall_ms);
    }

    /// The lease is 5 s.
    #[test]
    fn a_later_record_of_the_partition_proves_a_silence_without_a_wait() {
        for (stamped_ms, is_doubted) in [(0, true), (5_059, true), (5_060, false)] {
            let mut observer = observer();
            read_late(&mut observer, 0, later(90_000), 0, &claim("m", -1));
            observer.stamped(later(stamped_ms).wall_ms);
            assert!(matches!(observer.leadership(later(90_000)), Leadership::Silent { .. }));
            assert_eq!(observer.doubts_timestamps(later(90_000)).is_some(), is_doubted, "{stamped_ms} ms");
        }
    }
}
