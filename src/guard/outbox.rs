//! Sends the answers that wait, as far as the socket has room for them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use neli_proto::guard::Answers;

use crate::guard::channel::Channel;

/// Sends what can be sent.
pub(super) fn flush(answers: &mut Answers<OwnedFd>, channel: &Channel) {
    while let Some((answer, descriptor)) = answers.first() {
        let sent = channel.send_json(answer, descriptor.map(AsFd::as_fd));
        if sent.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            return;
        }
        // What fails otherwise would fail again: the other side is gone.
        answers.take_first();
    }
}

#[cfg(test)]
mod tests {
    use neli_proto::guard::Answer;
    use neli_proto::time::Time;

    use super::*;

    #[test]
    fn a_supervisor_that_reads_late_misses_no_end() {
        let (ours, theirs) = Channel::pair().unwrap();
        while ours.send(b"filler", None).is_ok() {}
        let mut answers = Answers::default();
        for nanos in 0..1_000 {
            answers.put(Answer::Extended { until: Time::from_nanos(nanos) }, None);
        }
        answers.put(Answer::Gone, None);
        flush(&mut answers, &ours);
        assert!(!answers.is_empty());

        while theirs.receive().is_ok() {}
        flush(&mut answers, &ours);
        assert!(answers.is_empty());
        let taken: Vec<Answer> =
            (0..2).map(|_| serde_json::from_slice(&theirs.receive().unwrap().unwrap().bytes).unwrap()).collect();
        assert_eq!(taken, [Answer::Extended { until: Time::from_nanos(999) }, Answer::Gone]);
        assert!(theirs.receive().is_err());
    }
}
