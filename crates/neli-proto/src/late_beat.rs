//! A heartbeat that was appended after its leader's lease was over, for example because a broker finds it in its socket when it runs again.
//! It restarts the silence for the candidates (R2), and extends no lease (R3): its leader was fenced, and no longer leads. And heartbeats that
//! are missed: the leader may be dead, and is shown as silent long before its lease is over. No rule depends on this module: its result is only
//! shown.

use core::time::Duration;

use crate::listener::silence;
use crate::record::{Body, JobState, Offset, Record};
use crate::time::millis;
use crate::timings::{
    LONGEST_DEFAULT_HEARTBEAT_INTERVAL, LONGEST_LEASE, default_heartbeat_interval, heartbeat_intervals,
};

/// The time that a beat may need from the leader to the reader.
pub(crate) const DELIVERY: Duration = Duration::from_millis(200);

/// A leader that has missed this many heartbeats is shown as silent.
const MISSED: u32 = 3;

/// The longest interval to expect between the heartbeats of a leader with this lease; its records do not contain the interval.
pub(crate) fn longest_interval(lease: Duration) -> Duration {
    LONGEST_DEFAULT_HEARTBEAT_INTERVAL.min(lease / 3)
}

/// A late heartbeat.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LateBeat {
    /// The time between it and the previous record, by the broker's timestamps.
    pub gap: Duration,
    /// When it was appended, in milliseconds since 1970.
    first_ms: u64,
}

impl LateBeat {
    /// The late heartbeat, if a heartbeat that was appended at `written_ms` is late: its leader's previous record was appended at `last_ms`
    /// and contains this `lease`. Without timestamps that is unknown.
    pub(crate) fn of(last_ms: Option<u64>, lease: Duration, written_ms: Option<u64>) -> Option<Self> {
        let (first_ms, gap) = (written_ms?, between(last_ms, written_ms)?);
        (gap >= silence(lease)).then_some(Self { gap, first_ms })
    }

    /// Whether a heartbeat that was appended at `written_ms` shows that the leader still leads, and that the broker's clock was set
    /// forward. A leader that was fenced sends no other, and those that waited for the broker are appended long before this.
    fn is_refuted_by(self, written_ms: Option<u64>) -> bool {
        let until_ms = self.first_ms.saturating_add(millis(LONGEST_LEASE));
        written_ms.is_some_and(|written_ms| written_ms > until_ms)
    }
}

/// The time between two records.
fn between(earlier_ms: Option<u64>, later_ms: Option<u64>) -> Option<Duration> {
    Some(Duration::from_millis(later_ms?.checked_sub(earlier_ms?)?))
}

/// The times at which the records of the present leader were appended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Punctuality {
    term: Option<Offset>,
    last_ms: Option<u64>,
    late: Option<LateBeat>,
    /// The job in its last heartbeat.
    job: Option<(Option<JobState>, Option<u32>, Option<u32>)>,
    /// The time before the last heartbeat that reported no change of the job. (One that reports a change comes earlier.)
    interval: Option<Duration>,
}

impl Punctuality {
    /// That of a leader whose first record that was read was appended at `written_ms`.
    pub(crate) fn beginning(term: Offset, written_ms: Option<u64>) -> Self {
        Self { term: Some(term), last_ms: written_ms, ..Self::default() }
    }

    /// Notes an effective record of the leader of `term`, with this `lease`, that was appended at `written_ms`.
    pub fn read(&mut self, term: Offset, lease: Duration, record: &Record, written_ms: Option<u64>) {
        match &record.body {
            Body::Beat { state, pid, attempt, .. } if self.term == Some(term) => {
                if self.job.replace((*state, *pid, *attempt)) == Some((*state, *pid, *attempt)) {
                    self.interval = between(self.last_ms, written_ms);
                }
                self.late = match (self.late, LateBeat::of(self.last_ms, lease, written_ms)) {
                    (_, Some(late)) => Some(late),
                    (Some(late), None) => (!late.is_refuted_by(written_ms)).then_some(late),
                    (None, None) => None,
                };
                self.last_ms = written_ms;
            }
            Body::Beat { .. } | Body::Claim { .. } => {
                *self = Self::beginning(term, written_ms);
            }
            Body::Release { .. } | Body::Request { .. } => {}
        }
    }

    /// The late heartbeat because of which the leader of `term` does not lead, if its last ones came after its lease was over.
    pub(crate) fn late(&self, term: Offset) -> Option<LateBeat> {
        self.late.filter(|_| self.term == Some(term))
    }

    /// For how long a leader with this lease writes nothing until it is shown as silent: three of its heartbeats. Its records do not contain
    /// the interval: it is the last one that was seen in its term, and at least the default one.
    pub(crate) fn overdue_after(&self, lease: Duration) -> Duration {
        let interval = self.interval.unwrap_or_default().max(default_heartbeat_interval(lease));
        let interval = interval.min(*heartbeat_intervals(lease).end());
        (interval * MISSED + DELIVERY).min(silence(lease))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the leader is shown as leading after heartbeats under a lease of 5 s, which were appended this many milliseconds after the
    /// leader's claim.
    fn leads_after(beats: &[u64]) -> bool {
        let lease = Duration::from_secs(5);
        let mut punctuality = Punctuality::default();
        let mut read = |ms: u64, line: &str| {
            let record = Record::parse(line.as_bytes()).expect("a record");
            punctuality.read(0, lease, &record, Some(1_769_860_800_000 + ms));
        };
        read(0, r#"{"v":1,"member":"m","seq":1,"kind":"claim","after":-1,"lease_ms":5000}"#);
        for ms in beats {
            read(*ms, r#"{"v":1,"member":"m","seq":2,"kind":"beat","term":0,"seen":0,"lease_ms":5000}"#);
        }
        punctuality.late(0).is_none()
    }

    #[test]
    fn a_heartbeat_is_late_from_the_silence_on() {
        let silence = millis(silence(Duration::from_secs(5)));
        assert!(leads_after(&[silence - 1]));
        assert!(!leads_after(&[silence]));
    }

    #[test]
    fn a_leader_is_not_shown_after_late_heartbeats() {
        assert!(leads_after(&[4_900]));
        assert!(!leads_after(&[5_100]));
        assert!(!leads_after(&[1_000, 9_000, 9_400]));
        assert!(!leads_after(&[9_000, 9_600, 10_400]), "however many were queued");
    }

    #[test]
    fn a_leader_that_still_leads_is_shown_again() {
        let until = |last: u64| (9_000..last).step_by(1_000).chain([last]).collect::<alloc::vec::Vec<u64>>();
        assert!(leads_after(&until(69_001)) && !leads_after(&until(69_000)), "the longest lease later");
    }

    /// After how many milliseconds without a record a leader with a lease of 20 s is shown as silent. Of each of its heartbeats: when it was
    /// appended, in milliseconds after the claim, and the process of the job.
    fn overdue_after(beats: &[(u64, u32)]) -> u64 {
        let (lease, mut punctuality) = (Duration::from_secs(20), Punctuality::beginning(0, Some(1_000)));
        for (ms, pid) in beats {
            let line = alloc::format!(
                r#"{{"v":1,"member":"m","seq":2,"kind":"beat","term":0,"seen":0,"lease_ms":20000,"state":"running","pid":{pid}}}"#
            );
            let record = Record::parse(line.as_bytes()).expect("a record");
            punctuality.read(0, lease, &record, Some(1_000 + ms));
        }
        millis(punctuality.overdue_after(lease))
    }

    #[test]
    fn a_leader_is_overdue_after_three_of_its_heartbeats() {
        assert_eq!(overdue_after(&[]), 3_200, "those of the default, a second");
        assert_eq!(overdue_after(&[(4_000, 7)]), 3_200, "it may report that the job runs");
        assert_eq!(overdue_after(&[(100, 7), (5_100, 7)]), 15_200, "of 5 s");
        assert_eq!(overdue_after(&[(100, 7), (5_100, 7), (5_300, 8)]), 15_200, "another job");
        assert_eq!(overdue_after(&[(100, 7), (200, 7)]), 3_200, "no shorter than the default");
        assert_eq!(overdue_after(&[(100, 7), (15_100, 7)]), 20_199, "of the longest interval that the lease allows");
        assert_eq!(overdue_after(&[(100, 7), (15_100, 7), (16_100, 7)]), 3_200, "it was held up once");
        let short = Duration::from_millis(300);
        assert_eq!(Punctuality::default().overdue_after(short), silence(short));
    }

    #[test]
    fn another_term_has_no_late_heartbeat() {
        let mut punctuality = Punctuality::default();
        let beat = Record::parse(br#"{"v":1,"member":"m","seq":2,"kind":"beat","term":0,"seen":0,"lease_ms":5000}"#);
        let beat = beat.expect("a record");
        for written_ms in [1, 9_000] {
            punctuality.read(0, Duration::from_secs(5), &beat, Some(written_ms));
        }
        assert_eq!((punctuality.late(0).is_some(), punctuality.late(7)), (true, None));
        punctuality.read(7, Duration::from_secs(5), &beat, Some(20_000));
        assert_eq!(punctuality.late(7), None);
    }
}
