//! Sends the queued answers, as far as the socket has room for them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use neli_proto::guard::{Answer, Answers};
use nix::libc;

use crate::guard::channel::{Channel, Waiting};

/// Sends as many answers as possible; returns why the rest is still queued.
pub(super) fn flush(answers: &mut Answers<OwnedFd>, channel: &Channel) -> Option<Waiting> {
    flush_by(answers, |answer, descriptor| channel.send_json(answer, descriptor))
}

fn flush_by(
    answers: &mut Answers<OwnedFd>,
    mut send: impl FnMut(&Answer, Option<BorrowedFd<'_>>) -> io::Result<()>,
) -> Option<Waiting> {
    while let Some((answer, descriptor)) = answers.first() {
        if let Err(error) = send(answer, descriptor.map(AsFd::as_fd))
            && let Some(waiting) = Waiting::of(&error)
        {
            // Other processes of this user may have many descriptors in flight for a long time, and a guard that sends no answers is killed
            // with its job. So the descriptor is given up.
            if error.raw_os_error() == Some(libc::ETOOMANYREFS) && answers.give_up_descriptor() {
                continue;
            }
            return Some(waiting);
        }
        // Any other error is permanent: the other side is gone.
        answers.take_first();
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use neli_proto::time::Time;
    use nix::libc::{ENOBUFS, ENOMEM, EPIPE, ETOOMANYREFS};

    use super::*;

    #[test]
    fn a_supervisor_that_reads_late_misses_no_end() {
        let (ours, peer) = Channel::pair().unwrap();
        while ours.send(b"filler", None).is_ok() {}
        let mut answers = Answers::default();
        for nanos in 0..1_000 {
            answers.put(Answer::Extended { until: Time::from_nanos(nanos) }, None);
        }
        answers.put(Answer::Gone, None);
        assert_eq!(flush(&mut answers, &ours), Some(Waiting::Full));
        assert!(!answers.is_empty());

        while peer.receive().is_ok() {}
        assert_eq!(flush(&mut answers, &ours), None);
        assert!(answers.is_empty());
        let taken: Vec<Answer> =
            (0..2).map(|_| serde_json::from_slice(&peer.receive().unwrap().unwrap().bytes).unwrap()).collect();
        assert_eq!(taken, [Answer::Extended { until: Time::from_nanos(999) }, Answer::Gone]);
        assert!(peer.receive().is_err());
    }

    #[test]
    fn a_packet_without_kernel_memory_is_sent_later() {
        for errno in [ENOBUFS, ENOMEM, ETOOMANYREFS] {
            let mut answers = Answers::default();
            answers.put(Answer::Gone, None);
            let short = |_: &Answer, _: Option<BorrowedFd<'_>>| Err(io::Error::from_raw_os_error(errno));
            assert_eq!(flush_by(&mut answers, short), Some(Waiting::OutOfResources));
            let mut sent = Vec::new();
            let waiting = flush_by(&mut answers, |answer, _| {
                sent.push(answer.clone());
                Ok(())
            });
            assert_eq!((waiting, sent), (None, vec![Answer::Gone]));
        }
    }

    #[test]
    fn a_start_is_reported_although_no_descriptor_can_be_sent() {
        let mut answers = Answers::default();
        answers.put(Answer::Started { pid: 7 }, Some(File::open("/dev/null").unwrap().into()));
        answers.put(Answer::Gone, None);
        let mut sent = Vec::new();
        let waiting = flush_by(&mut answers, |answer, descriptor| {
            if descriptor.is_some() {
                return Err(io::Error::from_raw_os_error(ETOOMANYREFS));
            }
            sent.push(answer.clone());
            Ok(())
        });
        assert_eq!((waiting, sent), (None, vec![Answer::StartedUnseen { pid: 7 }, Answer::Gone]));
    }

    #[test]
    fn a_supervisor_that_is_gone_is_sent_nothing_again() {
        let mut answers = Answers::default();
        answers.put(Answer::Gone, None);
        assert_eq!(flush_by(&mut answers, |_, _| Err(io::Error::from_raw_os_error(EPIPE))), None);
        assert!(answers.is_empty());
    }
}
