//! SIGKILL, SIGSTOP and hangs of the supervisor, of the guard, of both, and of a whole machine.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use harness::candidate::{Candidate, Elector, Event, Running};
use harness::election::TestElection;
use harness::not_tested;
use harness::process::{Hold, Process};
use harness::wait;
use harness::witness::Witness;
use nix::sys::signal::Signal;
use nix::unistd::Uid;

use crate::{election, with_both_electors};

/// With a lease of this length a takeover within [`SOON`] shows that the standby did not wait for the lease's end.
const LONG_LEASE: &str = "50s";

/// Much less than [`LONG_LEASE`], and more than a busy machine needs.
const SOON: Duration = Duration::from_secs(15);

/// A witness with the tree of processes that is hardest to kill: all ignore the stop signal, and most have left the process group.
fn wild(witness: Witness) -> Witness {
    ["--ignore-stop", "--child", "--group", "--session", "--daemon", "--runner"]
        .into_iter()
        .fold(witness, Witness::with)
}

/// A candidate with that job and a short stop timeout.
fn wild_candidate(election: &TestElection, lease: &str) -> Candidate {
    election.candidate().lease(lease).job(wild(election.witness()).command()).option("--stop-timeout", "200ms")
}

/// The roles of [`wild`]'s processes.
const WILD_ROLES: [&str; 6] = ["main", "child", "group", "session", "daemon", "runner"];

/// Waits until each of these processes writes.
fn await_wild(election: &TestElection, term: u64) {
    wait::until_true("a wild tree", || {
        let testimony = election.testimony();
        WILD_ROLES.iter().all(|role| testimony.of(term).any(|line| line.role == *role))
    });
}

/// Kills supervisor, guard and job together, as a power cut would.
pub(crate) fn machine(candidate: &mut Running, job: &[Process]) {
    let guard = candidate.guard();
    let supervisor = candidate.process();
    let all: Vec<Process> = [supervisor, guard].into_iter().chain(job.iter().copied()).collect();
    Process::cut_power(all.clone());
    wait::until_true("a dead machine", || all.iter().all(|process| !process.lives()));
}

with_both_electors! {
    /// The guard reads the end of file, kills the whole tree and releases the term. Another candidate leads long before the lease's end.
    fn the_guard_of_a_dead_supervisor_kills_the_tree_and_releases_the_term(elector) {
        let election = election(elector);
        let mut first = wild_candidate(&election, LONG_LEASE).start();
        let term = first.await_lead();
        await_wild(&election, term);
        let mut second = election.candidate().lease(LONG_LEASE).start();
        second.await_event("standby");

        first.signal(Signal::SIGKILL);
        let leading = second.await_event_within("leading", SOON).expect("the guard releases for the dead supervisor");
        election.assert_gone(term);
        election.await_witness(leading.number("term"));
        let release = election.verdicts().into_iter().find(|line| line["record"]["kind"] == "release").expect("a release");
        assert_eq!((&release["verdict"], &release["record"]["why"]), (&"effective".into(), &"supervisor-died".into()));
        election.close([second]);
    }

    /// A stopped supervisor can't renew its lease: the guard kills the job at the deadline, and another candidate leads after the
    /// silence. When the supervisor continues, it notices that it was fenced, and stands by.
    fn a_supervisor_that_is_stopped_is_fenced_at_the_deadline_and_stands_by_later(elector) {
        let election = election(elector);
        let mut first = wild_candidate(&election, "8s").start();
        let term = first.await_lead();
        election.await_witness(term);
        let mut second = election.candidate().lease("8s").start();
        second.await_event("standby");

        first.signal(Signal::SIGSTOP);
        election.await_gone(term);
        let next = second.await_lead();
        election.await_witness(next);
        let testimony = election.testimony();
        let late = testimony.of(term).filter(|line| line.deadline > 0 && line.at > line.deadline + 20_000_000).count();
        assert_eq!(late, 0, "beats after the deadline");

        let leading = second.events("leading")[0].at;
        wait::pause(Duration::from_secs(1));
        first.signal(Signal::SIGCONT);
        let fenced = first.await_event("fenced").at;
        assert_eq!(first.warnings_with("neli-run did not run for").len(), 1);
        let ran = first.events("job_exited")[0].number("ran_ms");
        assert!(first.events("job_started")[0].at + ran * 1_000_000 < leading + 500_000_000, "ran for {ran} ms");
        wait::until_true("a fenced candidate that stands again", || {
            first.events("standby").iter().any(|standby| standby.at >= fenced)
        });
        assert_eq!(second.events("leading").len(), 1);
        second.signal(Signal::SIGTERM);
        assert_eq!(second.status(), 0);
        assert!(first.await_lead() > next, "it leads again, under a term of its own");
        election.close([first, second]);
    }

    /// Supervisor, guard and job die together. The standbys can notice it only by the silence.
    fn after_the_death_of_a_whole_machine_another_leads_after_the_silence(elector) {
        let election = election(elector);
        let mut first = election.candidate().lease("3s").start();
        let term = first.await_lead();
        election.await_witness(term);
        let job = first.await_job();
        let mut second = election.candidate().lease("3s").start();
        second.await_event("standby");
        machine(&mut first, &[job]);
        let next = second.await_lead();
        election.await_witness(next);
        election.close([second]);
    }
}

/// The supervisor kills what its dead guard leaves behind, releases the term, and stands by with a new guard.
#[test]
fn the_supervisor_of_a_dead_guard_kills_the_tree_and_releases_the_term() {
    let election = election(Elector::Log);
    let mut first = wild_candidate(&election, LONG_LEASE).start();
    let term = first.await_lead();
    await_wild(&election, term);
    let mut second = election.candidate().lease(LONG_LEASE).start();
    second.await_event("standby");
    let guard = first.guard();

    guard.signal(Signal::SIGKILL);
    first.await_event("guard_lost");
    let released = first.await_release();
    assert_eq!(released.text("why"), "guard-died");
    election.assert_gone(term);
    let next = wait::poll_for(SOON, || {
        let mut leading = first.events("leading").into_iter().chain(second.events("leading"));
        leading.find(|event| event.number("term") > term)
    });
    election.await_witness(next.expect("another term, long before the lease's end").number("term"));
    assert_ne!(first.guard(), guard);
    election.close([first, second]);
}

/// A shell that starts another program, and then executes `neli-run`, leaves it a child that is no process of the job.
#[test]
fn a_child_from_before_the_program_outlives_the_guard() {
    let election = election(Elector::Log);
    let pid_file = election.directory().join("sidecar");
    let script = format!("sleep 1000 & echo $! >{}; exec \"$@\"", pid_file.display());
    let mut run = election.candidate().start_behind(&["sh", "-c", &script, "sh"]);
    let term = run.await_lead();
    let pid = fs::read_to_string(&pid_file).expect("it was started before").trim().parse().expect("a pid");
    let sidecar = Process::find(pid).expect("it sleeps");
    run.guard().signal(Signal::SIGKILL);
    run.await_event("guard_lost");
    election.await_witness_after(term);
    assert!(sidecar.lives());
    sidecar.signal(Signal::SIGKILL);
    election.close([run]);
}

/// Supervisor and guard die together: the kernel kills the job's main process with its parent (assumption 3).
#[test]
fn the_job_dies_with_its_supervisor_and_guard_at_once() {
    let election = election(Elector::Log);
    let mut first = election.candidate().lease("3s").job(election.witness().with("--ignore-stop").command()).start();
    let term = first.await_lead();
    election.await_witness(term);
    let mut second = election.candidate().lease("3s").start();
    second.await_event("standby");
    machine(&mut first, &[]);
    let next = second.await_lead();
    election.assert_gone(term);
    election.await_witness(next);
    election.close([second]);
}

/// A job that changed its uid loses the kernel's parent-death signal. It is killed nevertheless if one of the two dies.
#[test]
fn a_job_of_another_uid_dies_with_its_supervisor_or_guard() {
    for victim in ["supervisor", "guard"] {
        let election = election(Elector::Log);
        let mut job = election.witness().with("--ignore-stop").with("--daemon");
        // Without root a job can't change its uid. Then this is the same case as the one above.
        if Uid::effective().is_root() {
            job = job.set("--uid", 65534);
        }
        let mut first = election.candidate().lease(LONG_LEASE).job(job.command()).start();
        let term = first.await_lead();
        wait::until_true("a daemon", || election.testimony().of(term).any(|line| line.role == "daemon"));
        match victim {
            "guard" => {
                first.guard().signal(Signal::SIGKILL);
                first.await_event("guard_lost");
                first.await_release();
                election.assert_gone(term);
            }
            _ => first.signal(Signal::SIGKILL),
        }
        election.await_gone(term);
        election.close([first]);
    }
}

/// Guards that die one after the other are restarted after growing delays, for a standby and for a leader. Meanwhile nothing is claimed.
#[test]
fn guards_that_die_again_and_again_are_restarted_after_growing_delays() {
    let election = election(Elector::Log);
    let mut run = election.candidate().lease(LONG_LEASE).start();
    let term = run.await_lead();
    election.await_witness(term);
    let mut lost = Vec::new();
    for _ in 0..5 {
        run.guard().signal(Signal::SIGKILL);
        lost.push(run.await_event("guard_lost").at);
    }
    // The second starts at once, and the third, fourth and fifth start after 100, 200 and 400 ms. The test reads a log line slightly
    // after the event.
    let took = Duration::from_nanos(lost[4] - lost[0]);
    assert!(took + Duration::from_millis(200) >= Duration::from_millis(700), "{took:?}");
    let next = election.await_witness_after(term);
    // Before the sixth lives nothing is claimed, since no job could run. (A claim may have been under way when the fifth died.)
    wait::until_true("a job of the sixth", || run.events("job_started").iter().any(|event| event.at > lost[4]));
    let after: Vec<Event> = run.history().into_iter().filter(|event| event.at > lost[4]).collect();
    if let Some(claim) = after.iter().position(|event| event.name() == "claiming") {
        let waits = |event: &Event| event.name() == "standby" && event.text("why").contains("no guard lives here");
        // A machine that is so slow that it reads the journal for as long has nothing to wait for.
        let is_late = Duration::from_nanos(after[claim].at - lost[4]) >= Duration::from_millis(600);
        assert!(is_late || after[..claim].iter().any(waits), "{after:?}");
    }
    wait::until_true("word of that lead", || run.events("leading").iter().any(|event| event.number("term") == next));
    election.close([run]);
}

/// A guard that is stopped by SIGSTOP is continued at once, so that nothing is lost.
#[test]
fn a_guard_that_is_stopped_is_continued_at_once() {
    let election = election(Elector::Log);
    let mut leader = election.candidate().start();
    let term = leader.await_lead();
    election.await_witness(term);
    let guard = leader.guard();
    for _ in 0..5 {
        guard.signal(Signal::SIGSTOP);
        wait::until_true("a guard that goes on", || !guard.is_stopped());
    }
    // If the guard were continued a lease later, the deadline would have passed.
    let deadline =
        |testimony: &harness::witness::Testimony| testimony.of(term).next_back().map_or(0, |line| line.deadline);
    let before = deadline(&election.testimony());
    wait::until_true("a lease that is renewed", || deadline(&election.testimony()) > before + 4_000_000_000);
    assert!(guard.lives());
    assert!(leader.events("guard_lost").is_empty());
    election.close([leader]);
}

/// A guard that hangs without any report is detected within the lease, and the supervisor kills the job.
#[test]
fn a_guard_that_hangs_is_detected_within_the_lease() {
    let election = election(Elector::Log);
    let mut first = wild_candidate(&election, "5s").start();
    let term = first.await_lead();
    election.await_witness(term);
    let mut second = election.candidate().lease("5s").start();
    second.await_event("standby");
    let guard = first.guard();
    let hold = guard.hold();
    wait::until_true("a guard that is killed", || !guard.lives());
    drop(hold);
    first.await_event("guard_lost");
    first.await_release();
    election.assert_gone(term);
    election.await_witness_after(term);
    election.close([first, second]);
}

/// A candidate of [`wild_candidate`] that runs without a control group for its job, even if the test may make one.
fn start_ungrouped(election: &TestElection) -> Running {
    let candidate = wild_candidate(election, "5s");
    if !Uid::effective().is_root() {
        return candidate.start();
    }
    fs::set_permissions(election.directory(), Permissions::from_mode(0o777)).expect("our own directory");
    candidate.start_behind(&[
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--pdeathsig",
        "KILL",
        "--",
    ])
}

/// A guard that is dead and can't be waited for, because another process traces it: its job belongs to the supervisor, which kills it before
/// it releases the term. The same if the tracer also has the job's processes, of which it keeps the dead ones too.
#[test]
fn a_guard_that_is_dead_and_traced_leaves_no_process_of_its_job() {
    for (hangs, with_job) in [(true, false), (false, false), (true, true), (false, true)] {
        let election = election(Elector::Log);
        let mut first = start_ungrouped(&election);
        let term = first.await_lead();
        await_wild(&election, term);
        let mut second = election.candidate().lease("5s").start();
        second.await_event("standby");
        let guard = first.guard();
        let job = if with_job { guard.descendants() } else { Vec::new() };
        // The runner of the tree goes on in one child after the other.
        let tracers: Vec<Hold> = job.into_iter().filter_map(Process::trace_if_alive).collect();
        let tracer = if hangs { guard.hold() } else { guard.trace() };
        if !hangs {
            guard.signal(Signal::SIGKILL);
        }
        first.await_event("guard_lost");
        assert_eq!(first.await_release().text("why"), "guard-died", "{hangs} {with_job}");
        election.assert_gone(term);
        election.await_witness_after(term);
        assert!(
            first.events("error").iter().all(|error| !error.text("message").contains("can't be killed")),
            "{first:?}"
        );
        drop((tracer, tracers));
        election.close([first, second]);
    }
}

/// The supervisor kills the job in time although the guard does not die. It releases the term only when the guard is dead; if that takes
/// more than a lease, it exits with a message that names the guard.
#[test]
fn no_term_is_released_before_its_frozen_guard_is_dead() {
    for thaws in [true, false] {
        let election = election(Elector::Log);
        let mut first = wild_candidate(&election, "4s").start();
        let term = first.await_lead();
        await_wild(&election, term);
        let guard = first.guard();
        let Some(frozen) = guard.freeze() else {
            return not_tested("no freezer of the old control groups here");
        };
        election.await_gone(term);
        let testimony = election.testimony();
        // The job's clock continues while the supervisor gets no processor time. This time is much shorter than the seconds for which a job
        // would live on that is not killed.
        let late = testimony.of(term).filter(|line| line.deadline > 0 && line.at > line.deadline + 500_000_000).count();
        assert_eq!(late, 0, "beats after the deadline");
        wait::until_true("word of it", || {
            first.events("error").iter().any(|error| error.text("message").contains("does not answer"))
        });
        assert!(guard.lives() && first.events("released").is_empty(), "{first:?}");
        if thaws {
            drop(frozen);
            first.await_event("guard_lost");
            assert_eq!(first.await_release().text("why"), "guard-died");
            election.await_witness_after(term);
            election.close([first]);
        } else {
            assert_eq!(first.status(), 85);
            let named = format!("(pid {}", guard.pid);
            assert!(first.events("error").iter().any(|error| error.text("message").contains(&named)), "{first:?}");
            drop(frozen);
        }
    }
}

/// A guard that hangs before its first answer: the claim is effective, but no job runs in that term.
#[test]
fn no_job_runs_under_a_guard_that_hangs_before_its_first_answer() {
    let election = election(Elector::Log);
    let mut first = election.candidate().lease("3s").start();
    let term = first.await_lead();
    election.await_witness(term);
    let mut second = election.candidate().lease("3s").start();
    second.await_event("standby");
    let guard = second.guard();
    let hold = guard.hold();
    first.signal(Signal::SIGTERM);
    assert_eq!(first.status(), 0);
    wait::until_true("a guard that is killed", || !guard.lives());
    drop(hold);
    second.await_event("guard_lost");
    let next = election.await_witness_after(term);
    // The job may write before the test reads the log.
    wait::until_true("the log line about that lead", || {
        second.events("leading").iter().any(|event| event.number("term") == next)
    });
    let claimed = second.events("claiming").len();
    assert!(claimed > 1, "the first claim's term had no job");
    election.close([first, second]);
}

/// A standby's death affects no other candidate.
#[test]
fn the_death_of_a_standby_affects_no_other_candidate() {
    let election = election(Elector::Group);
    let mut leader = election.candidate().lease("5s").start();
    let term = leader.await_lead();
    election.await_witness(term);
    let mut standby = election.candidate().start();
    standby.await_event("standby");
    let guard = standby.guard();
    standby.signal(Signal::SIGKILL);
    wait::until_true("a guard that follows its supervisor", || !guard.lives());
    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 0);
    assert_eq!(leader.events("leading").len(), 1);
    election.close([leader]);
}

/// At a memory limit that it shares with the job, the main loop may stall when the guard is killed. Another thread kills what is left, and the
/// next run is not affected.
#[test]
fn the_job_of_a_killed_guard_is_gone_although_the_main_loop_stalls() {
    let election = election(Elector::Log);
    let mut candidate = wild_candidate(&election, LONG_LEASE).start();
    let term = candidate.await_lead();
    await_wild(&election, term);
    let (guard, hold) = (candidate.guard(), candidate.process().hold());
    guard.signal(Signal::SIGKILL);
    election.await_gone(term);
    assert_eq!(candidate.count("guard_lost"), 0);
    drop(hold);
    let next = candidate.await_lead();
    await_wild(&election, next);
    candidate.signal(Signal::SIGTERM);
    candidate.status();
    election.assert_gone(next);
}
