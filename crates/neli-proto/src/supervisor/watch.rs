//! The time limit for the guard's answers, after which the guard is treated as dead.

use core::time::Duration;

use crate::time::Time;

/// The orders that the guard has not answered, and the last deadline that it has.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Watch {
    question: Option<Question>,
    /// The last deadline that the guard answered, or the spawn's.
    answered_until: Time,
}

/// The orders that await an answer.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Question {
    awaited: AwaitedAnswer,
    /// When the first of them was sent.
    since: Time,
}

/// The answer that answers all of them.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
enum AwaitedAnswer {
    /// A deadline not below this one, the highest that was ordered. The guard reads orders in their order, and of several deadline
    /// answers that wait to be sent it keeps the last.
    Deadline(Time),
    /// Only the report that the job's tree has ended.
    End,
}

impl Watch {
    /// A new guard that has answered nothing yet, with a lease that ends at `until`.
    pub(super) const fn new(until: Time) -> Self {
        Self { question: None, answered_until: until }
    }

    /// The guard is ordered to let the job run until `until`.
    pub(super) fn ask(&mut self, now: Time, until: Time) {
        self.wait_for(now, AwaitedAnswer::Deadline(until));
    }

    /// The guard is ordered to kill the job. A deadline that it answered before no longer counts, and earlier orders need no answer any
    /// more.
    pub(super) fn ask_for_end(&mut self, now: Time) {
        self.wait_for(now, AwaitedAnswer::End);
        self.answered_until = self.answered_until.min(now);
    }

    fn wait_for(&mut self, now: Time, awaited: AwaitedAnswer) {
        let question = self.question.get_or_insert(Question { awaited, since: now });
        question.awaited = question.awaited.max(awaited);
    }

    /// The guard has answered a deadline.
    pub(super) fn answered(&mut self, until: Time) {
        if self.question.is_some_and(|question| question.awaited == AwaitedAnswer::End) {
            return;
        }
        self.question.take_if(|question| question.awaited <= AwaitedAnswer::Deadline(until));
        self.answered_until = self.answered_until.max(until);
    }

    /// When the guard is treated as dead.
    pub(super) fn due(&self, margin: Duration) -> Option<Time> {
        // An order sent this late leaves half the kill margin for its answer. The tree is still dead before the end of the lease, which
        // is a whole margin after the deadline.
        self.question.map(|question| (self.answered_until - margin).max(question.since + margin / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGIN: Duration = Duration::from_millis(20);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn one_answer_is_enough_for_all_orders_whose_deadlines_are_not_above_it() {
        let mut watch = Watch::new(at(980));
        for (now, until) in [(100, 1_000), (200, 1_200), (300, 1_100)] {
            watch.ask(at(now), at(until));
        }
        watch.answered(at(1_199));
        assert_eq!(watch.due(MARGIN), Some(at(1_179)));
        watch.answered(at(1_200));
        assert_eq!(watch.due(MARGIN), None);
        // An order with the same deadline needs an answer again.
        watch.ask(at(400), at(1_200));
        assert_eq!(watch.due(MARGIN), Some(at(1_180)));
        watch.answered(at(1_200));
        assert_eq!(watch.due(MARGIN), None);
    }

    #[test]
    fn an_order_that_comes_late_has_half_a_margin() {
        let mut watch = Watch::new(at(980));
        watch.ask(at(970), at(1_300));
        watch.ask(at(975), at(1_310));
        assert_eq!(watch.due(MARGIN), Some(at(980)));
    }

    #[test]
    fn nothing_but_the_end_answers_the_order_to_kill() {
        let mut watch = Watch::new(at(980));
        watch.ask_for_end(at(300));
        watch.answered(at(1_300));
        watch.ask(at(301), at(1_400));
        watch.answered(at(1_400));
        assert_eq!(watch.due(MARGIN), Some(at(310)));
    }

    #[test]
    fn after_the_deadline_the_end_is_awaited_for_half_a_margin_too() {
        let mut watch = Watch::new(at(980));
        watch.ask_for_end(at(1_000));
        assert_eq!(watch.due(MARGIN), Some(at(1_010)));
    }
}
