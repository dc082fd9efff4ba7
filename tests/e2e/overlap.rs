//! `--overlap`: the next leader's job starts before the old one stops. At most two jobs run, and only for a limited time.

use std::time::Duration;

use harness::candidate::{Candidate, Elector, Running};
use harness::election::TestElection;
use harness::wait;
use nix::sys::signal::Signal;

use crate::priority::await_hellos;
use crate::{election, with_both_electors};

const LEASE: Duration = Duration::from_secs(4);
const OVERLAP: Duration = Duration::from_secs(2);

with_both_electors! {
    /// The old job runs until the new one does, and then gets the stop signal.
    fn a_stop_leaves_no_gap(elector) {
        let election = election(elector);
        let mut first = overlapping(&election).start();
        let (term, mut second) = lead_beside_a_standby(&election, &mut first);
        first.signal(Signal::SIGTERM);
        assert_eq!(first.await_event("yielding").text("why"), "stopped");
        let next = second.await_lead();
        election.await_witness(next);
        let overlapped = first.await_event("overlapped");
        assert_eq!(["term", "by_term", "within_ms"].map(|field| overlapped.number(field)), [term, next, 2_000]);
        assert_eq!(first.await_release().text("why"), "stopped");
        assert_eq!(first.status(), 0, "the job's own status");
        let spans = election.testimony().spans();
        assert!(spans[&next].0 < spans[&term].1, "a gap: {spans:?}");
        let verdicts = election.verdicts();
        let claim = verdicts.iter().find(|line| line["offset"] == next).expect("the claim");
        assert_eq!((&claim["record"]["over"], &claim["record"]["overlap_ms"]), (&term.into(), &2_000.into()));
        assert!(verdicts.iter().all(|line| line["verdict"] != "nonsense"));
        close(&election, [second]);
    }

    /// Two leaders in a row are stopped: the third job waits until the first one is gone.
    fn two_hand_overs_are_never_three_jobs(elector) {
        let election = election(elector);
        let mut first = overlapping(&election).start();
        let (term, mut second) = lead_beside_a_standby(&election, &mut first);
        let mut third = overlapping(&election).start();
        third.await_event("standby");
        await_hellos(&election, 3);
        first.signal(Signal::SIGTERM);
        let leader = wait::until("a leader", || [&second, &third].iter().position(|one| one.count("leading") > 0));
        let (next, last) = if leader == 0 { (&mut second, &mut third) } else { (&mut third, &mut second) };
        let next_term = next.await_lead();
        election.await_witness(next_term);
        next.signal(Signal::SIGTERM);
        let last_term = last.await_lead();
        election.await_witness(last_term);
        assert_eq!([first.status(), next.status()], [0, 0]);
        let spans = election.testimony().spans();
        assert!(spans[&next_term].0 < spans[&term].1 && spans[&last_term].0 > spans[&term].1, "{spans:?}");
        close(&election, [second, third]);
    }
}

/// If no other candidate is known, the stop does not wait.
#[test]
fn a_stop_without_a_standby_is_at_once() {
    let election = election(Elector::Log);
    let mut first = overlapping(&election).start();
    let term = first.await_lead();
    election.await_witness(term);
    first.signal(Signal::SIGTERM);
    assert_eq!(first.status(), 0);
    assert_eq!(first.await_release().text("why"), "stopped");
    assert_eq!([first.count("yielding"), first.count("overlapped")], [0, 0]);
    close(&election, []);
}

/// A job that does not stop is killed when the overlap is over, and the new leader's job continues.
#[test]
fn a_job_that_does_not_stop_is_killed_in_time() {
    let election = election(Elector::Log);
    let stubborn = election.witness().with("--ignore-stop").command();
    let mut first = overlapping(&election).job(stubborn).start();
    let (term, mut second) = lead_beside_a_standby(&election, &mut first);
    first.signal(Signal::SIGTERM);
    let next = second.await_lead();
    let overlapped = first.await_event("overlapped");
    assert_eq!(first.await_event("job_killed").text("why"), "stopped");
    assert_eq!(first.await_release().text("why"), "stopped");
    assert_eq!(first.status(), 137);
    let span = election.testimony().spans()[&term];
    assert!(span.1 <= overlapped.at + nanos(OVERLAP), "{span:?} {overlapped:?}");
    election.await_witness(next);
    close(&election, [second]);
}

/// The standby may be dead, so the leader stops after a lease in any case.
#[test]
fn without_a_claimant_the_stop_takes_a_lease() {
    let election = election(Elector::Log);
    let mut first = overlapping(&election).start();
    let (_, second) = lead_beside_a_standby(&election, &mut first);
    second.signal(Signal::SIGKILL);
    first.signal(Signal::SIGTERM);
    let yielding = first.await_event("yielding");
    assert_eq!(yielding.number("patience_ms"), 4_000);
    let stopping = first.await_event("stopping");
    assert!(stopping.at - yielding.at >= nanos(LEASE) - nanos(Duration::from_secs(1)), "{yielding:?} {stopping:?}");
    assert_eq!(first.await_release().text("why"), "stopped");
    assert_eq!(first.status(), 0);
    close(&election, []);
}

/// A supervisor is stopped while its successor's job runs: the guard ends its own job at the lease's end.
#[test]
fn a_supervisor_that_is_stopped_costs_its_lease() {
    let election = election(Elector::Log);
    let mut first = overlapping(&election).job(election.witness().with("--ignore-stop").command()).start();
    let (term, mut second) = lead_beside_a_standby(&election, &mut first);
    let mut third = overlapping(&election).start();
    third.await_event("standby");
    await_hellos(&election, 3);
    first.signal(Signal::SIGTERM);
    first.await_event("yielding");
    let leader = wait::until("a leader", || [&second, &third].iter().position(|one| one.count("leading") > 0));
    first.signal(Signal::SIGSTOP);
    let (next, last) = if leader == 0 { (&mut second, &mut third) } else { (&mut third, &mut second) };
    let next_term = next.await_lead();
    election.await_witness(next_term);
    // The second handover must wait, because otherwise three jobs would run.
    next.signal(Signal::SIGTERM);
    let last_term = last.await_lead();
    election.await_witness(last_term);
    election.assert_gone(term);
    first.signal(Signal::SIGCONT);
    assert_eq!(next.status(), 0);
    first.status();
    let spans = election.testimony().spans();
    assert!(spans[&last_term].0 > spans[&term].1, "{spans:?}");
    assert!(spans[&term].1 < spans[&next_term].0 + nanos(LEASE), "{spans:?}");
    close(&election, [second, third]);
}

/// One of the two leaders dies: the other's job continues, and no third one starts before the first one is gone.
#[test]
fn the_death_of_one_of_two_leaders_does_not_end_the_other_s_job() {
    for victim in ["first supervisor", "first guard", "second supervisor", "second guard"] {
        let election = election(Elector::Log);
        let mut first = overlapping(&election).job(election.witness().with("--ignore-stop").command()).start();
        let (term, mut second) = lead_beside_a_standby(&election, &mut first);
        let guards = [first.guard(), second.guard()];
        first.signal(Signal::SIGTERM);
        let next = second.await_lead();
        election.await_witness(next);
        first.await_event("overlapped");
        match victim {
            "first supervisor" => first.signal(Signal::SIGKILL),
            "first guard" => guards[0].signal(Signal::SIGKILL),
            "second supervisor" => second.signal(Signal::SIGKILL),
            _ => guards[1].signal(Signal::SIGKILL),
        }
        election.await_gone(term);
        let mut others = Vec::new();
        if victim.starts_with("second") {
            election.await_gone(next);
            let third = overlapping(&election).start();
            election.await_witness_after(next);
            others.push(third);
        } else {
            assert_eq!(second.count("leading"), 1, "{victim}");
            assert!(!election.testimony().alive(Some(next)).is_empty(), "{victim}");
        }
        first.status();
        others.push(second);
        close(&election, others);
    }
}

/// Either all candidates use `--overlap`, or none. One that starts later and differs exits, and names the leader. A candidate that has left
/// does not count.
#[test]
fn candidates_that_differ_in_the_option_exit() {
    for with in [true, false] {
        let election = election(Elector::Log);
        let candidate = |with: bool, name: &str| {
            let candidate = if with { overlapping(&election) } else { election.candidate().option("--lease", "4s") };
            candidate.option("--name", name)
        };
        let mut first = candidate(with, "old").start();
        let term = first.await_lead();
        election.await_witness(term);
        let mut second = candidate(!with, "new").start();
        assert_eq!(second.status(), 125);
        let error = second.await_event("error");
        let expected = if with {
            "--overlap is missing: old stands in this election with it; all its candidates need it, or none"
        } else {
            "--overlap: old stands in this election without it; all its candidates need it, or none"
        };
        assert_eq!(error.text("message"), expected);
        assert_eq!(second.count("claiming"), 0);
        first.signal(Signal::SIGTERM);
        assert_eq!(first.status(), 0);
        let mut third = candidate(!with, "new").start();
        election.await_witness(third.await_lead());
        close(&election, [third]);
    }
}

/// `watch` and `status` show both jobs.
#[test]
fn watch_shows_both_jobs() {
    let election = election(Elector::Log);
    let mut first = overlapping(&election).option("--name", "old").start();
    let (term, mut second) = lead_beside_a_standby(&election, &mut first);
    first.signal(Signal::SIGTERM);
    let next = second.await_lead();
    election.await_witness(next);
    assert_eq!(first.status(), 0);
    close(&election, [second]);
    let printed = election.ask("watch", &["--from", "start", "--until-end"]).text;
    for sentence in [
        "old is to stop: its job runs on until another has claimed".to_owned(),
        format!("leads, term {next}"),
        format!("the job of old (term {term}) may run beside the job of "),
        "until it is released, for 4s at most".to_owned(),
        format!("nothing is left of the job of term {term}"),
    ] {
        assert!(printed.contains(&sentence), "{sentence} is missing in\n{printed}");
    }
}

/// A candidate whose job takes a moment to stop, as most do.
fn overlapping(election: &TestElection) -> Candidate {
    let job = election.witness().set("--linger-ms", 300).command();
    election.candidate().lease("4s").option("--overlap", "2s").job(job)
}

/// Waits until it leads, and starts a standby whose hello it reads; returns the term and the standby.
fn lead_beside_a_standby(election: &TestElection, first: &mut Running) -> (u64, Running) {
    let term = first.await_lead();
    election.await_witness(term);
    let mut second = overlapping(election).start();
    second.await_event("standby");
    await_hellos(election, 2);
    (term, second)
}

/// Ends all candidates: no job is left, and no three ever ran at the same time.
pub(crate) fn close(election: &TestElection, candidates: impl IntoIterator<Item = Running>) {
    for mut candidate in candidates {
        candidate.signal(Signal::SIGTERM);
        candidate.status();
    }
    let testimony = election.testimony();
    let orphans = testimony.alive(None);
    assert!(orphans.is_empty(), "orphans: {orphans:?}");
    let spans: Vec<(u64, u64)> = testimony.spans().into_values().collect();
    for (first, _) in &spans {
        let together = spans.iter().filter(|(from, to)| from <= first && first <= to).count();
        assert!(together <= 2, "{together} jobs at one time: {spans:?}");
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("a small number")
}
