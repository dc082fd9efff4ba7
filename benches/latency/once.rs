//! `--once`: the additional time of a first run, and the time that the candidates take that do not run the job.

use harness::candidate::{Candidate, Running};
use harness::election::TestElection;
use harness::figures::Row;
use harness::wait;

/// A first run on topics that must be created and on existing ones, a start whose key is done, and one that waits for the runner.
pub(crate) fn once(election: &dyn Fn() -> TestElection, n: usize) -> Vec<Row> {
    let (mut fresh, mut existing, mut done, mut runner, mut waiting) = (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..n {
        let election = election();
        for (samples, key) in [(&mut fresh, "v1"), (&mut existing, "v2")] {
            let mut first = candidate(&election, key, 0).start();
            assert_eq!(first.status(), 0, "{first:?}");
            let started = election.testimony().starts().next_back().expect("the job ran").at;
            samples.push((first.started_at, started));
        }
        let mut again = candidate(&election, "v2", 0).start();
        let [ended] = ends_of([&mut again]);
        done.push((again.started_at, ended));
        assert_eq!(again.count("once_skipped"), 1, "{again:?}");

        // This is long enough for the other candidate to stand by and to be in the group.
        let mut first = candidate(&election, "v3", 3_000).start();
        let term = first.await_lead();
        let mut other = candidate(&election, "v3", 0).start();
        other.await_event("standby");
        let [of_first, of_other] = ends_of([&mut first, &mut other]);
        assert_eq!(other.count("once_skipped"), 1, "{other:?}");
        let ended = election.last_instruction(term);
        runner.push((ended, of_first));
        waiting.push((ended, of_other));
    }
    vec![
        Row::between("--once, process start to the job's first instruction, new topics", fresh),
        Row::between("--once, process start to the job's first instruction, existing topics", existing),
        Row::between("--once, a key that is done: process start to exit", done),
        Row::between("--once, the job's end to the runner's exit", runner),
        Row::between("--once, the job's end to the exit of a candidate that waited", waiting),
    ]
}

/// A candidate whose job ends by itself after this many milliseconds.
fn candidate(election: &TestElection, key: &str, job_ms: u64) -> Candidate {
    election.candidate().option("--once", key).job(election.witness().set("--end-ms", job_ms).command())
}

/// The time when each has ended with status 0, to the millisecond.
fn ends_of<const N: usize>(mut running: [&mut Running; N]) -> [u64; N] {
    let mut ends = [None; N];
    wait::until_true("the ends", || {
        for (end, running) in ends.iter_mut().zip(&mut running) {
            if end.is_none() && running.ended().is_some() {
                *end = Some(wait::now());
            }
        }
        ends.iter().all(Option::is_some)
    });
    for running in running {
        assert_eq!(running.status(), 0, "{running:?}");
    }
    ends.map(Option::unwrap_or_default)
}
