//! Tests with heartbeats that were appended after their leader's lease was over.

use super::{beat, claim, later, observer, read};
use crate::observer::{Change, Leadership, Observer};
use crate::record::Record;

/// A leader with a lease of 5 s, whose next heartbeat is appended after 18 s.
fn late_heartbeat() -> (Observer, alloc::vec::Vec<Change>) {
    let mut observer = observer();
    observer.caught_up();
    read(&mut observer, 0, 0, &claim("m", -1));
    let changes = read(&mut observer, 1, 18_000, &beat("m", 0, "running"));
    (observer, changes)
}

#[test]
fn a_heartbeat_after_the_lease_s_end_makes_no_leader() {
    let (mut observer, changes) = late_heartbeat();
    assert!(matches!(changes[0], Change::LateBeat { gap } if gap.as_secs() == 18), "{changes:?}");
    assert_eq!(read(&mut observer, 2, 18_400, &beat("m", 0, "running")), []);
    let Leadership::Silent { age, claimable_since, claimable_in, .. } = observer.leadership(later(19_400)) else {
        panic!("led")
    };
    // The candidates wait for another silence.
    assert_eq!((age.as_secs(), claimable_since.as_secs(), claimable_in.as_millis()), (19, 0, 4_060));
    let Leadership::Silent { claimable_since, claimable_in, .. } = observer.leadership(later(24_460)) else {
        panic!("led")
    };
    assert_eq!((claimable_since.as_millis(), claimable_in.as_millis()), (1_000, 0));
}

#[test]
fn a_leader_with_further_heartbeats_leads_and_the_brokers_clock_was_set_forward() {
    let (mut observer, _) = late_heartbeat();
    let before = (0..5).map(|beat| 20_000 + 2_000 * beat);
    for (offset, ms) in (2..).zip(before) {
        assert_eq!(read(&mut observer, offset, ms, &beat("m", 0, "running")), []);
    }
    let changes = read(&mut observer, 7, 28_001, &beat("m", 0, "running"));
    assert!(matches!(changes[..], [Change::SilenceEnded { silent }] if silent.as_secs() == 18), "{changes:?}");
    assert!(matches!(observer.leadership(later(29_000)), Leadership::Led { .. }));
}

#[test]
fn another_claim_is_another_leader() {
    let (mut observer, _) = late_heartbeat();
    read(&mut observer, 2, 24_000, &claim("n", 1));
    assert!(matches!(observer.leadership(later(24_000)), Leadership::Led { .. }));
}

/// A candidate's clock may have been set forward.
#[test]
fn by_the_candidates_own_timestamps_no_heartbeat_is_late() {
    let mut observer = observer();
    observer.stamped_by_candidates();
    read(&mut observer, 0, 0, &claim("m", -1));
    assert!(matches!(*read(&mut observer, 1, 18_000, &beat("m", 0, "running")), [Change::Job(_)]));
    assert!(matches!(observer.leadership(later(18_500)), Leadership::Led { .. }));
}

/// Without the broker's timestamps a record is as old as its reading, which may be late.
#[test]
fn without_timestamps_a_silence_ends_with_the_next_heartbeat() {
    for (ms, is_silence) in [(3_199, false), (3_200, true)] {
        let mut observer = observer();
        observer.caught_up();
        for (offset, ms, line) in [(0, 0, claim("m", -1)), (1, ms, beat("m", 0, "running"))] {
            let (_, changes) = observer.read(later(ms), offset, Record::parse(line.as_bytes()).as_ref(), None);
            let ended = changes.iter().any(|change| matches!(change, Change::SilenceEnded { .. }));
            assert_eq!(ended, offset == 1 && is_silence, "{ms}: {changes:?}");
        }
    }
}
