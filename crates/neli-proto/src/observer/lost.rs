//! Leaders whose term another's claim ended, and candidates that released a term because they leave. Most of these leaders are dead, or leave, so
//! their earlier hellos do not count for standbys. No hello of a candidate that leaves counts.

use alloc::collections::BTreeMap;
use core::time::Duration;

use super::{Change, Observer, Silence};
use crate::journal::{EarlierJob, Journal};
use crate::leadership::{Leader, Receipt};
use crate::listener::silence;
use crate::precedence::HELLO_HOLDS;
use crate::record::{MemberId, Offset, Why};
use crate::time::millis;

impl Observer {
    /// Adds a leader whose term ended without a release, as of its last record; or a candidate, as of the release of a term because its process goes,
    /// or has died. `now`: the record that shows it.
    pub(super) fn lose(&mut self, member: &MemberId, last: (Receipt, Duration), now: Receipt) {
        self.lost.retain(|_, (last, span)| !is_later(now, *last, *span + HELLO_HOLDS));
        self.lost.insert(member.clone(), last);
    }

    /// The leader's silence that ended with this record, which was read later than it was written; `None` if there was no silence, or an
    /// operator's request within it has reported it.
    pub(super) fn past_silence(&mut self, leader: &Leader, received: Receipt) -> Option<Silence> {
        let silent = leader.last_record.written_before(received).filter(|_| !received.is_live)?;
        if silent < silence(leader.lease) {
            return None;
        }
        let reported = self.reported_silence.replace(leader.last_record);
        (reported != Some(leader.last_record)).then_some(Silence::of(leader, silent, received.written_ms?))
    }

    /// Handles a release of this candidate. If it stays, it sends a hello again; a process with many roles may stay without another hello.
    pub(super) fn has_released(&mut self, member: &MemberId, why: Option<Why>, received: Receipt) {
        let goes = why.is_some_and(Why::goes_for_good);
        if goes {
            // It says none later, and one from before may be read for as long as a hello holds.
            self.lose(member, (received, HELLO_HOLDS), received);
        }
        if goes || self.candidates.get(member).is_some_and(|candidate| candidate.hello.roles.is_none()) {
            self.candidates.remove(member);
        }
    }
}

/// Whether a hello shows nothing, because its writer has left, or because the hello is from before the end of the lease of a leader
/// that may have died since. A later hello shows that such a leader is alive.
pub(super) fn is_dead(lost: &BTreeMap<MemberId, (Receipt, Duration)>, member: &MemberId, hello: Receipt) -> bool {
    lost.get(member).is_some_and(|(last, span)| !is_later(hello, *last, *span))
}

/// The leader whose silence the next record may end, if there is a leader.
pub(super) fn leads<'a>(journal: &Journal, leader: Option<&'a Leader>) -> Option<&'a Leader> {
    leader.filter(|_| journal.led().is_some())
}

/// Whether a claim ended `leader`'s term after a silence; `changes` are those of the claim's record. With `--overlap` the earlier leader is
/// alive, and ends its job.
pub(super) fn is_succeeded(leader: &Leader, journal: &Journal, changes: &[Change]) -> bool {
    journal.term().is_some_and(|term| term != leader.term)
        && !changes.iter().any(|change| matches!(change, Change::Overlapped { .. }))
}

/// Whether another candidate's claim ended `leader`'s term.
pub(super) fn is_lost(leader: &Leader, journal: &Journal) -> bool {
    journal.led().is_some_and(|term| term.offset != leader.term && term.member != leader.member)
}

/// Whether `received` was written more than `span` after `last_record`: by the broker's clock if both have a
/// timestamp, otherwise by the times of reading.
pub(super) fn is_later(received: Receipt, last_record: Receipt, span: Duration) -> bool {
    match (received.written_ms, last_record.written_ms) {
        (Some(received), Some(last_record)) => received > last_record.saturating_add(millis(span)),
        _ => received.read > last_record.read + span,
    }
}

// ---- `--overlap`: a leader that yields, and the earlier job that may run beside the leader's -----------------------

/// The term whose leader yields, and the term whose job may run beside the leader's.
pub(super) fn side_by_side(journal: &Journal) -> [Option<Offset>; 2] {
    [journal.led().filter(|term| term.yields).map(|term| term.offset), journal.earlier_job().term()]
}

/// The changes since they were these: of the earlier job, and of the leader.
pub(super) fn changes_since([yields, earlier]: [Option<Offset>; 2], journal: &Journal) -> impl Iterator<Item = Change> {
    let [yields_now, _] = side_by_side(journal);
    let of_job = match (journal.earlier_job(), earlier) {
        (EarlierJob::Overlapped { term, name, lease, .. }, before) if before != Some(*term) => {
            Some(Change::Overlapped { term: *term, name: name.clone(), lease: *lease })
        }
        (EarlierJob::Gone, Some(term)) => Some(Change::EarlierJobGone { term }),
        (EarlierJob::Gone | EarlierJob::Overlapped { .. } | EarlierJob::Unknown, _) => None,
    };
    let yields = (yields_now.is_some() && yields_now != yields).then_some(Change::Yields);
    of_job.into_iter().chain(yields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Origin;
    use crate::observer::tests::{claim, later, observer};
    use crate::record::Record;

    fn receipt(ms: u64, has_timestamp: bool) -> Receipt {
        let at = later(ms);
        let written_ms = has_timestamp.then_some(at.wall_ms);
        Receipt { read: at.now, written_ms, is_brokers_time: true, is_live: true }
    }

    /// The journal with one effective claim of each.
    fn claimed_by(members: &[&str]) -> Journal {
        let mut journal = Journal::read_from(0, Origin::Beginning);
        for (offset, member) in (0..).zip(members) {
            journal.read(later(0).now, offset, Record::parse(claim(member, offset - 1).as_bytes()).as_ref());
        }
        journal
    }

    /// The leader of the last claim, with a lease of 5 s.
    fn leader_of(journal: &Journal, last_record: Receipt) -> Leader {
        Leader::of(journal.led().expect("led"), last_record, None)
    }

    #[test]
    fn a_hello_counts_again_if_it_was_sent_after_the_lost_lease() {
        for has_timestamp in [true, false] {
            let at = |ms| receipt(ms, has_timestamp);
            let (first, second) = (MemberId::from("a"), MemberId::from("b"));
            let mut observer = observer();
            let lease = Duration::from_secs(5);
            observer.lose(&first, (at(10), lease), at(6_000));
            observer.lose(&second, (at(10), lease), at(80_010));
            assert!(is_dead(&observer.lost, &first, at(5_010)));
            assert!(is_dead(&observer.lost, &first, at(5_010)), "it stays dead");
            assert!(!is_dead(&observer.lost, &first, at(5_011)), "a later hello shows that it is alive");
            observer.lose(&first, (at(80_011), lease), at(80_011));
            assert!(!is_dead(&observer.lost, &second, at(20)), "hellos of that time count no more");
        }
    }

    #[test]
    fn no_hello_of_one_that_goes_counts_again() {
        let (stopped, other) = (MemberId::from("a"), MemberId::from("b"));
        let at = |ms| receipt(ms, true);
        let mut observer = observer();
        observer.lose(&stopped, (at(10), HELLO_HOLDS), at(10));
        assert!(
            is_dead(&observer.lost, &stopped, at(5))
                && is_dead(&observer.lost, &stopped, at(60_000))
                && !is_dead(&observer.lost, &other, at(5))
        );
        observer.lose(&other, (at(75_010), HELLO_HOLDS), at(75_010));
        assert!(is_dead(&observer.lost, &stopped, at(75_010)));
        observer.lose(&other, (at(75_011), HELLO_HOLDS), at(75_011));
        assert!(!is_dead(&observer.lost, &stopped, at(75_011)), "it says no hello any more");
    }

    #[test]
    fn a_leader_that_claims_over_its_own_silence_is_not_lost() {
        let leader = leader_of(&claimed_by(&["a"]), receipt(0, true));
        for (claims, is_expected) in [(&["a"][..], false), (&["a", "a"], false), (&["a", "b"], true)] {
            assert_eq!(is_lost(&leader, &claimed_by(claims)), is_expected, "{claims:?}");
        }
    }
}
