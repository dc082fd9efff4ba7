//! The answers that the supervisor has not received yet. They are queued, so that a stopped supervisor does not block the guard, and gets
//! the end of each job when it continues.

use alloc::collections::VecDeque;
use core::mem;

use super::message::Answer;

/// Answers in the order in which they were given, each with an optional descriptor (`D`). The queue stays short: a run has few answers, and
/// of an answer that may be repeated only the last one is kept.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Answers<D> {
    waiting: VecDeque<(Answer, Option<D>)>,
}

impl<D> Answers<D> {
    /// Adds an answer at the end.
    pub fn put(&mut self, answer: Answer, along: Option<D>) {
        if may_come_often(&answer) {
            self.waiting.retain(|(waiting, _)| mem::discriminant(waiting) != mem::discriminant(&answer));
        }
        self.waiting.push_back((answer, along));
    }

    /// Drops the descriptor of the first answer, because it can't be sent and the later answers must not wait for it. Returns whether there
    /// was one.
    pub fn give_up_descriptor(&mut self) -> bool {
        let Some((answer, along)) = self.waiting.front_mut() else { return false };
        if let Answer::Started { pid } = *answer {
            *answer = Answer::StartedUnseen { pid };
        }
        along.take().is_some()
    }

    /// The answer that is sent next.
    #[must_use]
    pub fn first(&self) -> Option<(&Answer, Option<&D>)> {
        self.waiting.front().map(|(answer, along)| (answer, along.as_ref()))
    }

    /// Removes the answer that is sent next.
    pub fn take_first(&mut self) -> Option<(Answer, Option<D>)> {
        self.waiting.pop_front()
    }

    /// Whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl<D> Default for Answers<D> {
    fn default() -> Self {
        Self { waiting: VecDeque::new() }
    }
}

const fn may_come_often(answer: &Answer) -> bool {
    matches!(
        answer,
        Answer::Extended { .. }
            | Answer::Fenced { .. }
            | Answer::NoRun { .. }
            | Answer::StillKilling
            | Answer::Stopped { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;

    #[test]
    fn of_a_thousand_extensions_the_last_is_kept_and_so_is_every_end() {
        let mut answers = Answers::<()>::default();
        for nanos in 0..1_000 {
            answers.put(Answer::Extended { until: Time::from_nanos(nanos) }, None);
        }
        answers.put(Answer::Gone, None);
        answers.put(Answer::Gone, None);
        assert_eq!(answers.first(), Some((&Answer::Extended { until: Time::from_nanos(999) }, None)));
        assert!(!answers.is_empty());
        let taken: [_; 4] = core::array::from_fn(|_| answers.take_first().map(|(answer, _)| answer));
        let extended = Answer::Extended { until: Time::from_nanos(999) };
        assert_eq!(taken, [Some(extended), Some(Answer::Gone), Some(Answer::Gone), None]);
        assert!(answers.is_empty());
    }

    #[test]
    fn an_answer_that_gives_up_its_descriptor_stays_first() {
        let mut answers = Answers::default();
        assert!(!answers.give_up_descriptor(), "no answer waits");
        answers.put(Answer::Started { pid: 7 }, Some("pidfd"));
        answers.put(Answer::Gone, None);
        assert!(answers.give_up_descriptor());
        assert_eq!(answers.take_first(), Some((Answer::StartedUnseen { pid: 7 }, None)));
        assert!(!answers.give_up_descriptor(), "the answer came without one");
        assert_eq!(answers.take_first(), Some((Answer::Gone, None)));
    }
}
