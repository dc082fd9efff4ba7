//! The last term of the guard, and until when its job may run.

use core::time::Duration;

use crate::guard::killing::SeenEnd;
use crate::guard::message::Grant;
use crate::time::Time;

/// The last term that was granted.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Tenure {
    grant: Grant,
    /// Whether nothing may be started or extended under it any more.
    over: bool,
    /// Whether nothing may be released for it any more.
    may_not_be_released: bool,
    /// The latest deadline that was granted, even if that was too late for the job.
    last_until: Time,
    /// The end of its job, if a process of it was seen alive after the lease's end.
    late_end: Option<SeenEnd>,
}

impl Tenure {
    /// Applies `grant`, which was read at `now`, and returns until when the job may run: not at all if the deadline has come, the term is
    /// over, or a later term was granted. A lease that has ended is not taken up again, nor a term at or
    /// below an earlier one (R5). `seen` and the next sequence number are updated even then, since the term may still have to be released.
    pub(super) fn granted(before: Option<Self>, grant: Grant, now: Time) -> (Self, Option<Time>) {
        let tenure = match before {
            Some(held) if held.grant.term > grant.term => return (held, None),
            Some(held) if held.grant.term == grant.term => Self {
                grant: Grant {
                    term: grant.term,
                    seen: grant.seen.max(held.grant.seen),
                    next_seq: grant.next_seq.max(held.grant.next_seq),
                    until: if held.is_over_at(now) { held.grant.until } else { grant.until.max(held.grant.until) },
                },
                last_until: grant.until.max(held.last_until),
                ..held
            },
            _ => Self { grant, over: false, may_not_be_released: false, last_until: grant.until, late_end: None },
        };
        if tenure.is_over_at(now) {
            return (Self { over: true, ..tenure }, None);
        }
        (tenure, Some(tenure.grant.until))
    }

    /// The term.
    pub(super) fn term(&self) -> i64 {
        self.grant.term
    }

    /// The deadline of the job, unless the term is over already.
    pub(super) fn deadline(&self) -> Option<Time> {
        (!self.over).then_some(self.grant.until)
    }

    /// Ends the term.
    pub(super) fn end(&mut self) {
        self.over = true;
    }

    /// Prevents a release of the term: it was released, another candidate has taken over, or a process of its job can't be killed.
    pub(super) fn forbid_release(&mut self) {
        self.over = true;
        self.may_not_be_released = true;
    }

    /// The lease's end, which is `kill_margin` after the latest deadline.
    pub(super) fn lease_end(&self, kill_margin: Duration) -> Time {
        self.last_until + kill_margin
    }

    /// Notes the end of its job; `None` if it was not killed.
    pub(super) fn job_ended(&mut self, end: Option<SeenEnd>, kill_margin: Duration) {
        self.late_end = end.filter(|end| end.overrun(self.lease_end(kill_margin)).is_some());
    }

    /// How long after the lease's end a process of its job may have been alive. A longer lease may have been read since.
    pub(super) fn overrun(&self, kill_margin: Duration) -> Option<Duration> {
        self.late_end?.overrun(self.lease_end(kill_margin))
    }

    /// The release that the guard would write if the supervisor were dead.
    pub(super) fn unreleased(&self) -> Option<Grant> {
        (!self.may_not_be_released).then_some(self.grant)
    }

    fn is_over_at(&self, now: Time) -> bool {
        self.over || now >= self.grant.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    fn grant(term: i64, seen: i64, until: u64) -> Grant {
        Grant { term, seen, next_seq: seen.cast_unsigned(), until: at(until) }
    }

    fn holding(term: i64, until: u64) -> Tenure {
        let (tenure, granted) = Tenure::granted(None, grant(term, term, until), at(0));
        assert_eq!(granted, Some(at(until)));
        tenure
    }

    #[test]
    fn a_grant_moves_the_deadline_and_never_back() {
        let (tenure, until) = Tenure::granted(Some(holding(0, 10)), grant(0, 3, 20), at(5));
        assert_eq!(until, Some(at(20)));
        let (tenure, until) = Tenure::granted(Some(tenure), grant(0, 2, 15), at(6));
        assert_eq!(until, Some(at(20)));
        assert_eq!(tenure.unreleased(), Some(grant(0, 3, 20)));
    }

    #[test]
    fn a_grant_at_its_deadline_is_refused_and_its_term_must_be_released() {
        let (tenure, until) = Tenure::granted(None, grant(7, 7, 10), at(10));
        assert_eq!(until, None);
        assert_eq!(tenure.deadline(), None);
        assert_eq!(tenure.unreleased(), Some(grant(7, 7, 10)));
    }

    #[test]
    fn a_lease_that_ended_is_not_taken_up_again() {
        let (tenure, until) = Tenure::granted(Some(holding(7, 10)), grant(7, 8, 99), at(10));
        assert_eq!(until, None);
        assert_eq!(tenure.unreleased(), Some(grant(7, 8, 10)));
        let (_, until) = Tenure::granted(Some(tenure), grant(7, 9, 99), at(10));
        assert_eq!(until, None);
    }

    #[test]
    fn a_term_that_was_ended_is_not_taken_up_again() {
        let mut tenure = holding(7, 10);
        tenure.end();
        let (tenure, until) = Tenure::granted(Some(tenure), grant(7, 8, 99), at(1));
        assert_eq!((until, tenure.deadline()), (None, None));
        assert!(tenure.unreleased().is_some());
    }

    #[test]
    fn a_later_term_replaces_an_earlier_one_and_not_the_other_way_round() {
        let mut tenure = holding(7, 10);
        tenure.forbid_release();
        assert_eq!(tenure.unreleased(), None);
        let (tenure, until) = Tenure::granted(Some(tenure), grant(8, 8, 30), at(20));
        assert_eq!(until, Some(at(30)));
        let (after, until) = Tenure::granted(Some(tenure), grant(7, 9, 99), at(21));
        assert_eq!((after, until), (tenure, None));
    }
}
