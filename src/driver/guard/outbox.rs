//! The answers that the supervisor has not taken yet. A supervisor that is stopped must not hold up the guard, and must
//! miss no end when it goes on.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::{AsFd, OwnedFd};

use crate::driver::guard::channel::Channel;
use crate::driver::guard::message::Answer;

/// Answers in order. It stays short: a run gives few, and of those that may come again and again the last is kept.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: VecDeque<(Answer, Option<OwnedFd>)>,
}

impl Outbox {
    /// Puts an answer at the end.
    pub(super) fn put(&mut self, answer: Answer, descriptor: Option<OwnedFd>) {
        if may_come_often(&answer) {
            self.queue.retain(|(waiting, _)| mem::discriminant(waiting) != mem::discriminant(&answer));
        }
        self.queue.push_back((answer, descriptor));
    }

    /// Sends what can be sent.
    pub(super) fn flush(&mut self, channel: &Channel) {
        while let Some((answer, descriptor)) = self.queue.front() {
            let sent = serde_json::to_vec(answer)
                .map_err(io::Error::from)
                .and_then(|bytes| channel.send(&bytes, descriptor.as_ref().map(AsFd::as_fd)));
            if sent.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                return;
            }
            // What fails otherwise would fail again: the other side is gone.
            self.queue.pop_front();
        }
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

fn may_come_often(answer: &Answer) -> bool {
    matches!(answer, Answer::Extended { .. } | Answer::Fenced { .. } | Answer::Stopped { .. })
}

#[cfg(test)]
mod tests {
    use neli_proto::time::Time;

    use super::*;

    #[test]
    fn a_supervisor_that_reads_late_misses_no_end() {
        let (ours, theirs) = Channel::pair().unwrap();
        while ours.send(b"filler", None).is_ok() {}
        let mut outbox = Outbox::default();
        for nanos in 0..1_000 {
            outbox.put(Answer::Extended { until: Time::from_nanos(nanos) }, None);
        }
        outbox.put(Answer::Gone, None);
        outbox.flush(&ours);
        assert_eq!(outbox.queue.len(), 2);

        while theirs.receive().is_ok() {}
        outbox.flush(&ours);
        assert!(outbox.is_empty());
        let answers: Vec<Answer> =
            (0..2).map(|_| serde_json::from_slice(&theirs.receive().unwrap().unwrap().bytes).unwrap()).collect();
        assert_eq!(answers, [Answer::Extended { until: Time::from_nanos(999) }, Answer::Gone]);
    }
}
