//! Leaders whose terms ended by silence. Most of them are dead, so hellos that they sent before do not count as
//! standbys.

use alloc::collections::BTreeMap;
use core::time::Duration;

use super::{Change, Leader, Receipt, Silence};
use crate::journal::{Journal, View};
use crate::precedence::HELLO_HOLDS;
use crate::record::MemberId;
use crate::time::millis;

/// The last record and the lease of each such leader, kept for as long as an earlier hello could count.
#[derive(Clone, Debug, Default)]
pub(super) struct Lost(BTreeMap<MemberId, (Receipt, Duration)>);

impl Lost {
    /// No such leader.
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// This leader's term ended without a release.
    pub(super) fn insert(&mut self, leader: &Leader, claim: Receipt) {
        self.0.retain(|_, (last_record, lease)| !is_later(claim, *last_record, *lease + HELLO_HOLDS));
        self.0.extend(leader.member.clone().map(|member| (member, (leader.last_record, leader.lease))));
    }

    /// Whether a hello proves nothing about the time after the leader's lease: the leader may have died since. A
    /// later hello shows that the member is alive.
    pub(super) fn is_dead(&mut self, member: &MemberId, hello: Receipt) -> bool {
        let is_dead = self.0.get(member).is_some_and(|(last_record, lease)| !is_later(hello, *last_record, *lease));
        if !is_dead {
            self.0.remove(member);
        }
        is_dead
    }
}

/// The leader whose silence the next record may end, if there is a leader.
pub(super) fn leads<'a>(journal: &Journal, leader: Option<&'a Leader>) -> Option<&'a Leader> {
    leader.filter(|_| matches!(journal.view(), View::Led(_)))
}

/// Whether another candidate ended `leader`'s term by a claim after silence; `changes` are those of the claim's
/// record. With `--overlap` the earlier leader is alive, and ends its job.
pub(super) fn is_lost(leader: &Leader, journal: &Journal, changes: &[Change]) -> bool {
    let View::Led(term) = journal.view() else { return false };
    term.offset != leader.term
        && term.member != leader.member
        && !changes.iter().any(|change| matches!(change, Change::Overlapped(_)))
}

/// The leader's silence that ended with this record, which was read later than it was written; `None` if the leader
/// was not silent.
pub(super) fn past_silence(leader: &Leader, received: Receipt) -> Option<Silence> {
    let silent = leader.last_record.written_before(received).filter(|_| !received.is_live)?;
    Silence::of(leader, silent, received.written_ms?)
}

/// Whether `received` was written more than `span` after `last_record`: by the broker's clock if both have a
/// timestamp, otherwise by the times of reading.
pub(super) fn is_later(received: Receipt, last_record: Receipt, span: Duration) -> bool {
    match (received.written_ms, last_record.written_ms) {
        (Some(received), Some(last_record)) => received > last_record.saturating_add(millis(span)),
        _ => received.read > last_record.read + span,
    }
}
