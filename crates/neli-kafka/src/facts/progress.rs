//! How far the topic of facts was read. The next reading continues there, so that a large topic is read only once.

use neli_proto::fact::Facts;
use neli_proto::topic::TopicId;

/// After an answer that did not arrive completely, the next one's limit is this many times smaller.
const SHRINKS: u32 = 8;
/// The smallest limit for an answer, in bytes.
const SMALLEST_ANSWER: u32 = 4096;

/// How far the topic was read, and the facts that were found.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Progress {
    /// The topic that was read; if it is unknown, the next reading begins at the log's start.
    pub(super) topic: Option<TopicId>,
    /// The next offset to read.
    pub(super) next: i64,
    /// The key's facts below that offset.
    pub(super) facts: Facts,
    /// The limit for one answer of the broker in bytes; `None` is the configured limit.
    pub(super) answer_bytes: Option<u32>,
}

impl Progress {
    /// Continues if the topic, whose log is from `start` to `end`, is the one that was read before. Otherwise begins at `start`.
    pub(super) fn continue_in(&mut self, topic: Option<TopicId>, start: i64, end: i64) {
        let is_same = topic.is_some() && self.topic == topic && self.next <= end;
        if !is_same {
            (self.topic, self.next, self.facts) = (topic, start, Facts::default());
        }
        self.next = self.next.max(start);
    }

    /// Asks for smaller answers, since no record has arrived for long: on a slow link librdkafka closes the connection each time before a
    /// large answer is complete. `configured` is the configured limit in bytes.
    pub(super) fn nothing_came(&mut self, configured: u32) {
        let smaller = self.answer_bytes.unwrap_or(configured) / SHRINKS;
        self.answer_bytes = Some(smaller.max(SMALLEST_ANSWER).min(configured));
    }

    /// Returns the facts at the end of the topic. Later answers are small, so the configured limit applies again.
    pub(super) fn reached_end(&mut self) -> Facts {
        self.answer_bytes = None;
        self.facts.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Option<TopicId> = Some(TopicId { high: 1, low: 1 });
    const OTHER: Option<TopicId> = Some(TopicId { high: 1, low: 2 });

    fn half_read(topic: Option<TopicId>) -> Progress {
        let facts = Facts { done_is_unreadable: true, ..Facts::default() };
        Progress { topic, next: 50, facts, answer_bytes: None }
    }

    #[test]
    fn the_reading_of_the_same_topic_continues_after_records_that_were_deleted() {
        for (start, end, next) in [(0, 100, 50), (0, 50, 50), (70, 100, 70)] {
            let mut progress = half_read(ONE);
            progress.continue_in(ONE, start, end);
            assert_eq!(progress, Progress { next, ..half_read(ONE) });
        }
    }

    #[test]
    fn another_or_an_unidentified_topic_of_the_same_name_is_read_from_its_start() {
        for (before, now, end) in
            [(ONE, OTHER, 100), (ONE, None, 100), (None, None, 100), (None, ONE, 100), (ONE, ONE, 49)]
        {
            let mut progress = half_read(before);
            progress.continue_in(now, 3, end);
            assert_eq!(progress, Progress { topic: now, next: 3, ..Progress::default() }, "{before:?} {now:?} {end}");
        }
    }

    #[test]
    fn answers_get_smaller_while_no_record_arrives_and_the_limit_is_reset_at_the_end() {
        let mut progress = half_read(ONE);
        let mut asked = Vec::new();
        for _ in 0..3 {
            progress.nothing_came(262_144);
            asked.extend(progress.answer_bytes);
        }
        assert_eq!(asked, [32_768, 4_096, 4_096]);
        assert_eq!(progress.reached_end(), half_read(ONE).facts);
        assert_eq!(progress.answer_bytes, None);
        progress.nothing_came(1_000);
        assert_eq!(progress.answer_bytes, Some(1_000), "a user's limit is kept");
    }
}
