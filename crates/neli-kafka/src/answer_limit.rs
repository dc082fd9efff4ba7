//! The time limit of a question to Kafka. It grows after each question without an answer, and follows the time that answers take.
//!
//! A slow link needs several round trips before the first answer (TCP, TLS, API versions, login, metadata). If the limit never grew, each
//! attempt would end before its first answer, for ever.

use std::time::Duration;

use neli_proto::time::Time;

use crate::clock;

/// The longest time limit, unless the caller sets a shorter one.
const LONGEST: Duration = Duration::from_secs(16);
/// The limit is multiplied by this after a question without an answer.
const GROWTH: u32 = 4;
/// The limit after an answer is the time that the answer took, multiplied by this.
const ALLOWANCE: u32 = 4;

/// The time limit of one caller's questions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct AnswerLimit {
    /// The limit of the first question.
    first: Duration,
    /// The limit of each question after an answer, at least.
    least: Duration,
    /// The limit of each question, at most.
    longest: Duration,
    limit: Option<Duration>,
    /// When the first question since the last answer was asked.
    asking_since: Option<Time>,
}

impl AnswerLimit {
    /// The first question has the limit `first`; each question after an answer has at least `least`.
    pub(super) const fn new(first: Duration, least: Duration) -> Self {
        Self { first, least, longest: LONGEST, limit: None, asking_since: None }
    }

    /// The same with another longest limit, for answers that are useless after that time.
    pub(super) const fn at_most(self, longest: Duration) -> Self {
        Self { longest, ..self }
    }

    /// The limit of the question that is asked now.
    pub(super) fn ask(&mut self) -> Duration {
        self.asking_since.get_or_insert_with(clock::now);
        self.limit()
    }

    /// The limit of the next question.
    pub(super) fn limit(&self) -> Duration {
        self.limit.unwrap_or(self.first)
    }

    /// Whether the next question is the first one.
    pub(super) const fn is_first(&self) -> bool {
        self.limit.is_none()
    }

    /// There was no answer in time: the next question has four times the limit.
    pub(super) fn was_too_short(&mut self) {
        self.limit = Some((self.limit() * GROWTH).min(self.longest));
    }

    /// There was an answer to a question that was asked at `asked`. Returns the time since the first question without an answer: it
    /// includes the time for connecting, so it shows what a question needs on this link.
    pub(super) fn answered(&mut self, asked: Time) -> Duration {
        let now = clock::now();
        let since = self.asking_since.take().unwrap_or(asked);
        self.limit = Some((now.since(asked) * ALLOWANCE).clamp(self.least, self.longest));
        now.since(since).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_question_after_a_missing_answer_has_more_time_up_to_a_limit() {
        let mut answer_limit = AnswerLimit::new(Duration::from_secs(1), Duration::from_secs(2));
        let mut limits = Vec::new();
        assert!(answer_limit.is_first());
        for _ in 0..4 {
            limits.push(answer_limit.ask().as_secs());
            answer_limit.was_too_short();
            assert!(!answer_limit.is_first());
        }
        assert_eq!(limits, [1, 4, 16, 16]);
    }

    #[test]
    fn a_caller_may_set_a_shorter_longest_limit() {
        let mut answer_limit =
            AnswerLimit::new(Duration::from_secs(2), Duration::from_secs(2)).at_most(Duration::from_secs(5));
        let mut limits = Vec::new();
        for _ in 0..3 {
            limits.push(answer_limit.ask().as_secs());
            answer_limit.was_too_short();
        }
        assert_eq!(limits, [2, 5, 5]);
        answer_limit.answered(Time::from_nanos(clock::now().as_nanos() - 3_000_000_000));
        assert_eq!(answer_limit.limit(), Duration::from_secs(5));
    }

    #[test]
    fn the_limit_follows_the_time_of_the_last_answer() {
        let mut answer_limit = AnswerLimit::new(Duration::from_secs(1), Duration::from_secs(2));
        answer_limit.ask();
        answer_limit.was_too_short();
        answer_limit.was_too_short();
        let took = answer_limit.answered(clock::now());
        assert!(took < Duration::from_secs(1));
        assert_eq!(answer_limit.limit(), Duration::from_secs(2));
        answer_limit.answered(Time::from_nanos(clock::now().as_nanos() - 3_000_000_000));
        let limit = answer_limit.limit();
        assert!((Duration::from_secs(12)..Duration::from_secs(13)).contains(&limit), "{limit:?}");
    }
}
