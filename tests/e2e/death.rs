//! SIGKILL, SIGSTOP and hangs: of the supervisor, of the guard, of both, of a whole machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::candidate::{Candidate, Elector, Running};
use harness::election::TestElection;
use harness::not_tested;
use harness::process::Process;
use harness::wait;
use harness::witness::Witness;
use nix::sys::signal::Signal;
use nix::unistd::Uid;

use crate::{election, with_both_electors};

/// Where a lease of this length is no help, nobody waited for it.
const LONG_LEASE: &str = "50s";

/// Far less than [`LONG_LEASE`], and more than a busy machine needs.
const SOON: Duration = Duration::from_secs(15);

/// The worst tree there is: everything in it ignores the stop signal, and most of it has left its group.
fn wild(witness: Witness) -> Witness {
    ["--ignore-stop", "--child", "--group", "--session", "--daemon", "--runner"]
        .into_iter()
        .fold(witness, Witness::with)
}

/// A candidate of a wild job, which is not asked for long.
fn wild_candidate(election: &TestElection, lease: &str) -> Candidate {
    election.candidate().lease(lease).job(wild(election.witness()).command()).option("--stop-timeout", "200ms")
}

/// The roles of [`wild`]'s processes.
const WILD_ROLES: [&str; 6] = ["main", "child", "group", "session", "daemon", "runner"];

/// Waits until each of them beats.
fn await_wild(election: &TestElection, term: u64) {
    wait::until_true("a wild tree", || {
        let testimony = election.testimony();
        WILD_ROLES.iter().all(|role| testimony.of(term).any(|line| line.role == *role))
    });
}

/// What a power cut does: supervisor, guard and job, at once.
pub(crate) fn machine(candidate: &mut Running, job: &[Process]) {
    let guard = candidate.guard();
    let supervisor = candidate.process();
    // Stopped first, so that none of them sees another one die.
    let all: Vec<Process> = [supervisor, guard].into_iter().chain(job.iter().copied()).collect();
    for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
        for process in &all {
            process.signal(signal);
        }
    }
    wait::until_true("a dead machine", || all.iter().all(|process| !process.lives()));
}

with_both_electors! {
    /// The guard kills the whole tree at the end of file, and releases for the dead: another leads long before the lease's end.
    fn of_the_supervisor(elector) {
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

    /// A supervisor that is stopped can't renew its lease: its guard kills at the deadline, and another leads when it has been
    /// silent. When it goes on, it finds itself fenced, and stands by.
    fn of_a_supervisor_that_is_stopped(elector) {
        let election = election(elector);
        let mut first = wild_candidate(&election, "3s").start();
        let term = first.await_lead();
        election.await_witness(term);
        let mut second = election.candidate().lease("3s").start();
        second.await_event("standby");

        first.signal(Signal::SIGSTOP);
        election.await_gone(term);
        let next = second.await_lead();
        election.await_witness(next);
        let testimony = election.testimony();
        let late = testimony.of(term).filter(|line| line.deadline > 0 && line.at > line.deadline + 20_000_000).count();
        assert_eq!(late, 0, "beats after the deadline");

        first.signal(Signal::SIGCONT);
        let fenced = first.await_event("fenced").at;
        wait::until_true("a fenced candidate that stands again", || {
            first.events("standby").iter().any(|standby| standby.at >= fenced)
        });
        assert_eq!(second.events("leading").len(), 1);
        second.signal(Signal::SIGTERM);
        assert_eq!(second.status(), 0);
        assert!(first.await_lead() > next, "it leads again, under a term of its own");
        election.close([first, second]);
    }

    /// The supervisor kills what its guard leaves behind, releases, and stands again with a new guard.
    fn of_the_guard(elector) {
        let election = election(elector);
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

    /// Supervisor, guard and job at once: silence decides.
    fn of_a_whole_machine(elector) {
        let election = election(elector);
        let mut first = election.candidate().lease("1s").start();
        let term = first.await_lead();
        election.await_witness(term);
        let job = first.await_job();
        let mut second = election.candidate().lease("1s").start();
        second.await_event("standby");
        machine(&mut first, &[job]);
        let next = second.await_lead();
        election.await_witness(next);
        election.close([second]);
    }
}

/// Supervisor and guard at once: the kernel ends the job's main process with its parent (assumption 3).
#[test]
fn of_supervisor_and_guard_at_once() {
    let election = election(Elector::Log);
    let mut first = election.candidate().lease("1s").job(election.witness().with("--ignore-stop").command()).start();
    let term = first.await_lead();
    election.await_witness(term);
    let mut second = election.candidate().lease("1s").start();
    second.await_event("standby");
    machine(&mut first, &[]);
    let next = second.await_lead();
    election.assert_gone(term);
    election.await_witness(next);
    election.close([second]);
}

/// A job that changed its uid has lost the kernel's parent-death signal, and is gone all the same when one of the two dies.
#[test]
fn with_a_job_of_another_uid() {
    for victim in ["supervisor", "guard"] {
        let election = election(Elector::Log);
        let mut job = election.witness().with("--ignore-stop").with("--daemon");
        // Who is not root can't change; then this is the plain case once more.
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

/// Guards that die one after the other are not started one after the other as fast as can be: of a standby, and of a leader.
#[test]
fn of_guards_again_and_again() {
    let election = election(Elector::Log);
    let mut run = election.candidate().lease(LONG_LEASE).start();
    let term = run.await_lead();
    election.await_witness(term);
    let mut lost = Vec::new();
    for _ in 0..5 {
        run.guard().signal(Signal::SIGKILL);
        lost.push(run.await_event("guard_lost").at);
    }
    // The second follows at once; 100, 200 and 400 ms are waited before the third, the fourth and the fifth. A line of the log comes to us
    // a little after the event.
    let took = Duration::from_nanos(lost[4] - lost[0]);
    assert!(took + Duration::from_millis(200) >= Duration::from_millis(700), "{took:?}");
    let next = election.await_witness_after(term);
    wait::until_true("word of that lead", || run.events("leading").iter().any(|event| event.number("term") == next));
    election.close([run]);
}

/// A guard that somebody stops is told to go on at once: nothing is lost.
#[test]
fn of_a_guard_that_is_stopped() {
    let election = election(Elector::Log);
    let mut leader = election.candidate().lease("2s").start();
    let term = leader.await_lead();
    election.await_witness(term);
    let guard = leader.guard();
    for _ in 0..5 {
        guard.signal(Signal::SIGSTOP);
        wait::until_true("a guard that goes on", || !guard.is_stopped());
    }
    // A lease later it would be too late.
    let deadline =
        |testimony: &harness::witness::Testimony| testimony.of(term).next_back().map_or(0, |line| line.deadline);
    let before = deadline(&election.testimony());
    wait::until_true("a lease that is renewed", || deadline(&election.testimony()) > before + 2_000_000_000);
    assert!(guard.lives());
    assert!(leader.events("guard_lost").is_empty());
    election.close([leader]);
}

/// A leader whose supervisor and guard are both stopped until half a second after the lease's end, its guard, and its term.
fn stopped_beyond_its_lease(election: &TestElection) -> (Running, Process, u64) {
    let mut leader = election.candidate().lease("1s").start();
    let term = leader.await_lead();
    election.await_witness(term);
    let guard = leader.guard();
    leader.signal(Signal::SIGSTOP);
    guard.signal(Signal::SIGSTOP);
    wait::until_true("a job that outlives its lease", || {
        let testimony = election.testimony();
        testimony.of(term).any(|line| line.deadline > 0 && line.at > line.deadline + 500_000_000)
    });
    (leader, guard, term)
}

/// Supervisor and guard are both held up beyond the lease's end: what was too late is said to have been, and how late.
#[test]
fn of_no_process_but_the_kill_is_late() {
    let election = election(Elector::Log);
    let (mut first, guard, term) = stopped_beyond_its_lease(&election);
    guard.signal(Signal::SIGCONT);
    election.await_gone(term);
    first.signal(Signal::SIGCONT);
    let fenced = first.await_event("fenced");
    assert_eq!((fenced.number("left_ms"), fenced.text("level")), (0, "error"));
    assert!((400..60_000).contains(&fenced.number("late_ms")), "{fenced:?}");
    let released = first.await_release();
    assert_eq!(released.text("why"), "fenced");
    let verdicts = election.verdicts();
    let release = verdicts.iter().find(|line| line["record"]["kind"] == "release").expect("a release");
    assert_eq!(release["record"]["late_ms"].as_u64(), Some(fenced.number("late_ms")));
    election.close([first]);
}

/// The same, and the supervisor dies: the release that its guard writes says how late, too.
#[test]
fn of_a_supervisor_after_a_late_kill() {
    let election = election(Elector::Log);
    let (first, _, _) = stopped_beyond_its_lease(&election);
    // The kernel continues the guard, whose parent died.
    first.signal(Signal::SIGKILL);
    let release = || election.verdicts().into_iter().find(|line| line["record"]["kind"] == "release");
    wait::until_true("a release", || release().is_some());
    let release = release().expect("a release");
    assert_eq!(release["record"]["why"], "supervisor-died");
    let late = release["record"]["late_ms"].as_u64();
    assert!(late.is_some_and(|late| (400..60_000).contains(&late)), "{release}");
}

/// A guard that hangs, in a way that nothing reports, is found out within the lease, and the supervisor does its work.
#[test]
fn of_a_guard_that_hangs() {
    let election = election(Elector::Log);
    let mut first = wild_candidate(&election, "1s").start();
    let term = first.await_lead();
    election.await_witness(term);
    let mut second = election.candidate().lease("1s").start();
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

/// A guard that gets no processor, not even to die: its control group of the old hierarchy is frozen.
struct Frozen(PathBuf);

impl Frozen {
    fn guard(guard: Process) -> Option<Self> {
        let group = Path::new("/sys/fs/cgroup/freezer").join(format!("neli-test.{}", guard.pid));
        fs::create_dir(&group).ok()?;
        let frozen = Self(group);
        fs::write(frozen.0.join("cgroup.procs"), guard.pid.to_string()).ok()?;
        fs::write(frozen.0.join("freezer.state"), "FROZEN").ok()?;
        let state = || fs::read_to_string(frozen.0.join("freezer.state")).unwrap_or_default();
        wait::until_true("a frozen guard", || state().trim() == "FROZEN");
        Some(frozen)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        fs::write(self.0.join("freezer.state"), "THAWED").expect("our own group");
        wait::until_true("an empty group", || fs::remove_dir(&self.0).is_ok());
    }
}

/// The supervisor kills the job beside a guard that does not die, in time; it releases only when the guard is dead, and ends,
/// naming it, when that takes more than a lease.
#[test]
fn of_a_guard_that_is_frozen() {
    for thaws in [true, false] {
        let election = election(Elector::Log);
        let mut first = wild_candidate(&election, "2s").start();
        let term = first.await_lead();
        await_wild(&election, term);
        let guard = first.guard();
        let Some(frozen) = Frozen::guard(guard) else {
            return not_tested("no freezer of the old control groups here");
        };
        election.await_gone(term);
        let testimony = election.testimony();
        // Its clock runs on while the supervisor gets no processor: much less than the seconds for which it would live on.
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

/// A guard that hangs before its first answer: the claim is effective, and no job ever runs under it.
#[test]
fn of_a_guard_that_hangs_before_its_first_answer() {
    let election = election(Elector::Log);
    let mut first = election.candidate().lease("1s").start();
    let term = first.await_lead();
    election.await_witness(term);
    let mut second = election.candidate().lease("1s").start();
    second.await_event("standby");
    let guard = second.guard();
    let hold = guard.hold();
    first.signal(Signal::SIGTERM);
    assert_eq!(first.status(), 0);
    wait::until_true("a guard that is killed", || !guard.lives());
    drop(hold);
    second.await_event("guard_lost");
    let next = election.await_witness_after(term);
    // Its job may write before its log is read.
    wait::until_true("word of that lead", || second.events("leading").iter().any(|event| event.number("term") == next));
    let claimed = second.events("claiming").len();
    assert!(claimed > 1, "the first claim's term had no job");
    election.close([first, second]);
}

/// A standby that dies takes nothing with it.
#[test]
fn of_a_standby() {
    let election = election(Elector::Group);
    let mut leader = election.candidate().lease("2s").start();
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
