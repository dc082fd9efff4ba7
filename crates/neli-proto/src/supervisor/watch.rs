//! The time limit for the guard's answers, after which the guard is treated as dead.

use core::time::Duration;

use crate::time::Time;

/// After `StillKilling` a guard need not send another answer for this time. It repeats that answer before each check, and a check takes 50
/// ms at most.
const KILLS_FOR: Duration = Duration::from_millis(300);

/// The orders that the guard has not answered, and its last deadline.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Watch {
    question: Option<Question>,
    /// The last deadline in an answer of the guard, or that of the spawn.
    answered_until: Time,
    /// Until when the guard counts as busy killing a large tree. No other process could do that faster, and a supervisor that killed the
    /// guard would have to begin again.
    busy_until: Time,
}

/// Orders that the guard has not answered yet.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Question {
    /// The answer to all of them: a deadline at or above this one, the highest that was ordered (the guard reads orders in sequence, and of several
    /// unsent answers about deadlines it keeps the last one); `None`: only the report that the job's tree has ended.
    awaited: Option<Time>,
    /// When the first of them was sent.
    since: Time,
    /// Until when the guard may still answer, if the supervisor came too late to judge: it was stopped or got no processor, and has not
    /// read any answers.
    respite: Option<Time>,
}

impl Watch {
    /// The watch of a new guard that has answered nothing yet, with a lease that ends at `until`.
    pub(super) const fn new(until: Time) -> Self {
        Self { question: None, answered_until: until, busy_until: Time::ZERO }
    }

    /// Notes the order to let the job run until `until`.
    pub(super) fn ask(&mut self, now: Time, until: Time) {
        self.wait_for(now, Some(until));
    }

    /// Notes the order to kill the job. An earlier deadline in an answer no longer counts, and earlier orders need no answer any more.
    pub(super) fn ask_for_end(&mut self, now: Time) {
        self.wait_for(now, None);
        self.answered_until = self.answered_until.min(now);
    }

    fn wait_for(&mut self, now: Time, awaited: Option<Time>) {
        let question = self.question.get_or_insert(Question { awaited, since: now, respite: None });
        question.awaited = question.awaited.zip(awaited).map(|(before, until)| before.max(until));
    }

    /// Notes an answer with a deadline.
    pub(super) fn answered(&mut self, until: Time) {
        if self.question.is_some_and(|question| question.awaited.is_none()) {
            return;
        }
        self.question.take_if(|question| question.awaited <= Some(until));
        self.answered_until = self.answered_until.max(until);
    }

    /// The guard's last deadline, according to its answers that were read.
    pub(super) const fn guards_deadline(self) -> Time {
        self.answered_until
    }

    /// Notes the guard's answer that it is still killing the job.
    pub(super) fn still_kills(&mut self, now: Time) {
        self.busy_until = now + KILLS_FOR;
    }

    /// Whether the guard is treated as dead now. A supervisor that comes more than half a kill margin late was stopped or got no processor
    /// itself, and so may have been its guard (the machine was suspended). Then, once for each question, the guard has half a margin of the
    /// supervisor's own time to answer.
    pub(super) fn is_over(&mut self, now: Time, margin: Duration) -> bool {
        let Some(late) = self.due(margin).filter(|due| now >= *due).map(|due| now.since(due)) else { return false };
        let Some(question) = &mut self.question else { return false };
        let is_in_time = late <= margin / 2;
        let had_respite = question.respite.is_some();
        if is_in_time || had_respite {
            return true;
        }
        question.respite = Some(now + margin / 2);
        false
    }

    /// When the guard is treated as dead.
    pub(super) fn due(&self, margin: Duration) -> Option<Time> {
        // If an order is sent this late, half the kill margin is left for its answer. The tree is still dead before the end of the lease,
        // which is a whole margin after the deadline.
        let due = |question: Question| (self.answered_until - margin).max(question.since + margin / 2);
        self.question.map(|question| question.respite.unwrap_or_else(|| due(question)).max(self.busy_until))
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
    fn a_guard_has_half_a_margin_more_only_if_the_supervisor_comes_more_than_that_late() {
        for (millis, is_over) in [(959, false), (960, true), (970, true), (971, false)] {
            let mut watch = Watch::new(at(980));
            watch.ask(at(300), at(1_280));
            assert_eq!(watch.is_over(at(millis), MARGIN), is_over, "{millis}");
            if millis == 971 {
                assert_eq!(watch.due(MARGIN), Some(at(981)));
                assert!(watch.is_over(at(1_100), MARGIN), "once for each question");
            }
        }
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
    fn after_the_deadline_the_guard_has_half_a_margin_to_report_the_end() {
        let mut watch = Watch::new(at(980));
        watch.ask_for_end(at(1_000));
        assert_eq!(watch.due(MARGIN), Some(at(1_010)));
    }

    #[test]
    fn a_supervisor_that_comes_late_itself_gives_the_guard_half_a_margin() {
        let mut watch = Watch::new(at(980));
        watch.ask(at(300), at(1_280));
        assert!(!watch.is_over(at(959), MARGIN));
        // The guard's answer may have come meanwhile, and was not read.
        assert!(!watch.is_over(at(5_000), MARGIN));
        assert_eq!(watch.due(MARGIN), Some(at(5_010)));
        assert!(!watch.is_over(at(5_009), MARGIN));
        assert!(watch.is_over(at(9_000), MARGIN), "once for a question");
        watch.answered(at(1_280));
        watch.ask(at(9_000), at(9_980));
        assert!(watch.is_over(at(9_020), MARGIN));
    }

    #[test]
    fn a_supervisor_that_comes_in_time_gives_the_guard_no_time_beyond_its_own() {
        let mut watch = Watch::new(at(980));
        watch.ask(at(300), at(1_280));
        assert!(watch.is_over(at(970), MARGIN));
    }

    #[test]
    fn a_guard_that_reports_that_it_kills_does_not_count_as_dead_while_it_repeats_it() {
        let mut watch = Watch::new(at(980));
        watch.ask_for_end(at(1_000));
        watch.still_kills(at(1_002));
        assert!(!watch.is_over(at(1_301), MARGIN));
        watch.still_kills(at(1_301));
        assert!(!watch.is_over(at(1_600), MARGIN));
        assert!(watch.is_over(at(1_601), MARGIN));
    }
}
