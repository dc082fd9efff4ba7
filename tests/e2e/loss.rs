//! Loss of the lead: `--on-loss`, and the two stages of a fence.

use harness::candidate::{Candidate, Elector};
use harness::election::TestElection;
use harness::journal::Pen;
use harness::kafka::{Kafka, Wired};
use harness::witness::Event;
use nix::sys::signal::Signal;

use crate::{PROGRAM, election};

/// A way to lose a lead while Kafka works.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Loss {
    GuardDied,
    Resigned,
    Superseded,
}

/// A candidate whose job obeys the stop signal or ignores it.
fn candidate(election: &TestElection, obeys: bool) -> Candidate {
    let job = election.witness().set("--status", 3);
    let job = if obeys { job } else { job.with("--ignore-stop") };
    election.candidate().job(job.command()).option("--on-loss", "exit").option("--stop-timeout", "300ms")
}

/// Writes as any client with the right to write can.
fn pen(election: &TestElection) -> Pen {
    Pen::new(Kafka::shared(), &election.topic(), &[])
}

fn write(election: &TestElection, text: &str) {
    pen(election).write(&election.key(), &[text.as_bytes()]);
}

fn resign(election: &TestElection, term: u64) {
    write(election, &format!(r#"{{"v":1,"kind":"request","what":"resign","term":{term},"by":"me","reason":"why"}}"#));
}

#[test]
fn each_loss_has_its_status() {
    for (loss, obeys, status, why) in [
        (Loss::Resigned, true, 80, Some("resigned")),
        (Loss::Resigned, false, 81, Some("resigned")),
        (Loss::GuardDied, true, 82, Some("guard-died")),
        (Loss::Superseded, false, 82, None),
    ] {
        let election = election(Elector::Log);
        let mut leader = candidate(&election, obeys).start();
        let term = leader.await_lead();
        election.await_witness(term);
        match loss {
            Loss::GuardDied => leader.guard().signal(Signal::SIGKILL),
            Loss::Resigned => resign(&election, term),
            Loss::Superseded => pen(&election).supersede(&election.key()),
        }
        assert_eq!(leader.status(), status, "{loss:?}");
        election.assert_gone(term);
        let released = leader.events("released").into_iter().find(|event| event.number("term") == term);
        assert_eq!(released.as_ref().map(|event| event.text("why")), why, "{loss:?}");
        let exiting = leader.await_event("exiting");
        assert_eq!(exiting.text("from"), "neli-run");
        // The lease of a leader whose guard died is not over.
        assert!(!exiting.text("why").contains("lease"), "{}", exiting.text("why"));
    }
}

/// Without `--on-loss exit` the candidate stands by, and runs the job again when it leads.
#[test]
fn a_loss_does_not_end_the_candidate() {
    let election = election(Elector::Log);
    let mut first = election.candidate().lease("3s").start();
    let term = first.await_lead();
    election.await_witness(term);
    let mut second = election.candidate().lease("3s").start();
    second.await_event("standby");
    resign(&election, term);
    let next = second.await_lead();
    election.await_witness(next);
    resign(&election, next);
    let last = election.await_witness_after(next);
    assert_eq!(first.events("leading").last().map(|event| event.number("term")), Some(last));
    election.close([first, second]);
}

/// SIGTERM in a barrier that began with a loss: the exit status is the run's, with every value of `--on-loss`.
#[test]
fn a_stop_in_the_barrier_of_a_loss_has_the_status_of_the_run() {
    let election = election(Elector::Log);
    let job = election.witness().set("--linger-ms", 800).set("--status", 9);
    let mut leader = election.candidate().job(job.command()).option("--on-loss", "exit").start();
    let term = leader.await_lead();
    election.await_witness(term);
    resign(&election, term);
    leader.await_event("stopping");
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 9);
    assert_eq!(leader.await_event("exiting").text("from"), "job");
    election.close([leader]);
}

/// `end` in a barrier: the exit status is 0, also if the job's is not.
#[test]
fn an_end_in_a_barrier_has_status_0() {
    let election = election(Elector::Log);
    let job = election.witness().set("--linger-ms", 800).set("--status", 9);
    let mut leader = election.candidate().job(job.command()).start();
    let term = leader.await_lead();
    election.await_witness(term);
    leader.signal(Signal::SIGTERM);
    leader.await_event("stopping");
    write(&election, r#"{"v":1,"kind":"request","what":"end","term":null,"by":"me","reason":"why"}"#);
    assert_eq!(leader.status(), 0);
    assert_eq!(leader.await_event("job_exited").number("status"), 9);
    assert_eq!(leader.await_release().text("why"), "ended");
    election.close([leader]);
}

/// The time of SIGTERM, relative to a fence.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Term {
    /// Before: Kafka stops answering during the barrier of the stop.
    Before,
    /// After the fence warning.
    InBetween,
    Never,
}

/// Kafka does not answer. First comes the stop signal, and a job that obeys it ends by itself (80). A job that does not is killed at the
/// lease's end (82), also if the stop timeout is longer. With SIGTERM it is a stop (137).
#[test]
fn a_fence_asks_the_job_to_stop_and_then_kills_it() {
    let wired = Wired::take();
    for (obeys, term_too, status) in
        [(true, Term::Never, 80), (false, Term::Never, 82), (false, Term::InBetween, 137), (false, Term::Before, 137)]
    {
        let election = TestElection::new(PROGRAM, wired.kafka(), Elector::Log);
        let candidate = candidate(&election, obeys).lease("4s").option("--fence-warning", "1s");
        let mut leader = candidate.option("--stop-timeout", "1m").start();
        let term = leader.await_lead();
        election.await_witness(term);
        if term_too == Term::Before {
            leader.signal(Signal::SIGTERM);
            leader.await_event("stopping");
        }
        wired.freeze();
        if term_too != Term::Before {
            let warning = leader.await_event("fence_warning");
            assert!((1..=1_080).contains(&warning.number("left_ms")), "{warning:?}");
            assert!(warning.number("silent_ms") >= 2_920, "{warning:?}");
            assert_eq!(leader.await_event("stopping").text("why"), "fenced");
        }
        if term_too == Term::InBetween {
            leader.signal(Signal::SIGTERM);
        }
        assert_eq!(leader.status(), status, "{term_too:?}");
        election.assert_gone(term);
        assert_eq!(leader.events("fenced").len(), usize::from(!obeys), "{leader:?}");
        assert_eq!(leader.events("fence_warning").len(), usize::from(term_too != Term::Before), "told once");
        assert!(election.testimony().signals().any(|line| line.event == Event::Signal(15)));
        wired.thaw();
    }
}

/// Kafka answers again after the warning: the job has got the stop signal, and ends within the stop timeout. Then the term is released.
#[test]
fn a_job_that_was_warned_is_stopped_although_beats_come_back() {
    let wired = Wired::take();
    let election = TestElection::new(PROGRAM, wired.kafka(), Elector::Log);
    let job = election.witness().set("--linger-ms", 9_000);
    let candidate = election.candidate().job(job.command()).lease("8s").option("--fence-warning", "4s");
    let mut leader = candidate.option("--stop-timeout", "1m").start();
    let term = leader.await_lead();
    election.await_witness(term);
    wired.freeze();
    leader.await_event("fence_warning");
    wired.thaw();
    // The job takes longer to stop than the lease, and is not killed.
    let released = leader.await_release();
    assert_eq!((released.text("why"), released.fields["delivered"].as_bool()), ("fenced", Some(true)));
    assert_eq!(leader.await_event("job_exited").number("status"), 0);
    assert!(leader.events("fenced").is_empty() && leader.events("job_killed").is_empty(), "{leader:?}");
    let next = election.await_witness_after(term);
    assert!(next > term);
    leader.signal(Signal::SIGKILL);
    election.await_gone(next);
    election.assert_never_two();
}
