//! The counters for `/metrics`, from the notes of the nodes and from own records that are read back.

use std::collections::VecDeque;
use std::time::Duration;

use neli_proto::note::Note;
use neli_proto::supervisor::JobStatus;
use neli_proto::time::Time;

/// The counters of one election since this process started.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Tally {
    /// Losses of the lease or the grant after which the job was killed.
    pub(super) fences: u64,
    /// Repeated runs of the job.
    pub(super) restarts: u64,
    /// Runs that ended with status 0, with another status, and by a signal.
    pub(super) exits: [u64; 3],
}

/// The labels of the runs in [`Tally::exits`].
pub(super) const RESULTS: [&str; 3] = ["success", "failure", "signal"];

impl Tally {
    /// Counts a note.
    pub(crate) const fn note(&mut self, note: &Note) {
        if let Note::Fenced { .. } = note {
            self.fences += 1;
        } else if let Note::Restarting { .. } = note {
            self.restarts += 1;
        } else if let Note::JobExited { status, .. } = note {
            let result = match status {
                JobStatus::Exited(0) => 0,
                JobStatus::Exited(_) => 1,
                JobStatus::Signaled(_) => 2,
            };
            self.exits[result] += 1;
        }
    }
}

/// The upper limits of the histogram's buckets, in milliseconds. There is one more bucket above the last limit.
pub(super) const BOUNDS_MS: [u64; 13] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];

/// The times from the sending of own records to their reading.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Histogram {
    /// The number of records in each bucket.
    pub(super) buckets: [u64; BOUNDS_MS.len() + 1],
    /// The sum of all times.
    pub(super) sum: Duration,
}

impl Histogram {
    fn add(&mut self, took: Duration) {
        let fits = |bound: &u64| took <= Duration::from_millis(*bound);
        self.buckets[BOUNDS_MS.iter().position(fits).unwrap_or(BOUNDS_MS.len())] += 1;
        self.sum = self.sum.saturating_add(took);
    }
}

/// Own records of one election that were sent and not read yet.
#[derive(Debug, Default)]
pub(crate) struct Echoes(VecDeque<(u64, Time)>);

impl Echoes {
    /// The most records in the list, so that it does not grow while no broker answers.
    const MOST: usize = 64;

    /// Notes that a record was sent.
    pub(crate) fn sent(&mut self, now: Time, seq: u64) {
        if self.0.len() == Self::MOST {
            self.0.pop_front();
        }
        self.0.push_back((seq, now));
    }

    /// Notes that a record was read. Own records that were sent before it and were not read are lost.
    pub(crate) fn read(&mut self, now: Time, seq: u64, histogram: &mut Histogram) {
        while let Some((sent_seq, sent)) = self.0.front().copied().filter(|(sent_seq, _)| *sent_seq <= seq) {
            self.0.pop_front();
            if sent_seq == seq {
                histogram.add(now.since(sent));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_that_comes_back_is_counted_once() {
        let (mut echoes, mut histogram) = (Echoes::default(), Histogram::default());
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        (0..100).for_each(|seq| echoes.sent(at(seq), seq));
        echoes.read(at(200), 35, &mut histogram);
        assert_eq!(histogram, Histogram::default(), "it is not kept for so long");
        echoes.read(at(101), 98, &mut histogram);
        echoes.read(at(102), 98, &mut histogram);
        echoes.read(at(20_000), 99, &mut histogram);
        assert_eq!((histogram.buckets[2], histogram.buckets[13]), (1, 1));
        assert_eq!(histogram.sum, Duration::from_millis(3 + 19_901));
    }
}
