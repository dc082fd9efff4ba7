//! Processes of a job that can't be killed: they are named and the term is not released, or the job's own control group ends them.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::candidate::{Candidate, Elector, Running};
use harness::election::TestElection;
use harness::not_tested;
use harness::pid_namespace::PidNamespace;
use harness::process::Process;
use harness::wait;
use harness::witness::Witness;
use neli_run::process::cgroup::{self, Cgroup};
use nix::sys::signal::Signal;
use nix::unistd::{Gid, Uid, chown};

use crate::election;

/// Runs its arguments as the user nobody, in a control group if one is given first.
const AS_NOBODY: &str = r#"
    [ -z "$1" ] || echo $$ > "$1/cgroup.procs" || exit
    shift
    exec setpriv --reuid=65534 --regid=65534 --clear-groups --pdeathsig KILL -- "$@"
"#;

fn is_root() -> bool {
    let is_root = Uid::effective().is_root();
    if !is_root {
        not_tested("only root can make a setuid program of root's");
    }
    is_root
}

/// A candidate whose job ignores the stop signal and gets root by a setuid program, so that `neli-run` may not signal it.
fn climbing_candidate(election: &TestElection) -> Candidate {
    fs::set_permissions(election.directory(), Permissions::from_mode(0o755)).expect("our own directory");
    let climb = election.directory().join("setuid").join("witness");
    fs::create_dir(climb.parent().expect("a directory")).expect("our own directory");
    let mut job: Vec<OsString> = election.witness().with("--ignore-stop").set("--uid", 0).command();
    fs::copy(&job[0], &climb).expect("our own directory");
    fs::set_permissions(&climb, Permissions::from_mode(0o4755)).expect("our own file");
    job[0] = climb.into();
    election.candidate().lease("3s").option("--stop-timeout", "200ms").job(job)
}

/// Whether one of the warnings is about processes that can't be killed.
fn warns(warnings: &[harness::candidate::Event]) -> bool {
    warnings.iter().any(|warning| warning.text("message").contains("CAP_KILL"))
}

/// A process that can't be killed is named, and no term is released while it lives. The lease runs out by itself.
#[test]
fn a_process_that_cannot_die_is_named_and_its_term_never_released() {
    if !is_root() {
        return;
    }
    let election = election(Elector::Log);
    let mut run = climbing_candidate(&election).start_behind(&["sh", "-c", AS_NOBODY, "sh", ""]);
    let term = run.await_lead();
    election.await_witness(term);
    let job = run.await_job();
    assert!(warns(&run.events("warning")));
    let guard = run.guard();
    stop_in_vain(&mut run, job);
    assert!(job.lives());
    job.signal(Signal::SIGKILL);
    assert_never_released(&election, guard);
    election.assert_gone(term);
}

/// A crontab that runs it with `-q` would mail the warning at each run.
#[test]
fn where_no_setuid_program_takes_effect_none_is_warned_of() {
    if !is_root() {
        return;
    }
    let election = election(Elector::Log);
    let as_nobody = ["sh", "-c", AS_NOBODY, "sh", "", "setpriv", "--no-new-privs"];
    let mut run = election.candidate().job(["sleep", "1000"]).start_behind(&as_nobody);
    run.await_job();
    assert!(!warns(&run.events("warning")), "{run:?}");
    run.signal(Signal::SIGTERM);
    run.await_release();
    assert_eq!(run.status(), 143);
}

/// A process's tracer delays the report of its end, but the process is dead: the term is released.
#[test]
fn a_process_that_is_dead_and_traced_is_not_left() {
    let election = election(Elector::Log);
    let job = election.witness().with("--ignore-stop").command();
    let mut run = election.candidate().lease("5s").option("--stop-timeout", "200ms").job(job).start();
    let term = run.await_lead();
    election.await_witness(term);
    let is_out_of_reach = cgroup::kills_without_one().is_none() && Cgroup::make(&mut None).is_err();
    assert_eq!(warns(&run.events("warning")), is_out_of_reach);
    let hold = run.await_job().hold();
    run.signal(Signal::SIGTERM);
    run.await_release();
    election.assert_gone(term);
    assert_eq!(run.status(), 137);
    assert!(run.events("error").is_empty(), "{run:?}");
    drop(hold);
    election.close([run]);
}

/// Stops a candidate whose job neither stops nor dies. The candidate logs that and exits.
fn stop_in_vain(run: &mut Running, job: Process) {
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 85);
    let error = run.await_event("error");
    assert!(error.text("message").contains(&format!("pid {}", job.pid)), "{}", error.fields);
    assert!(run.events("released").is_empty());
}

/// The guard keeps killing and ends with the job's last process. Even then it releases no term.
fn assert_never_released(election: &TestElection, guard: Process) {
    wait::until_true("a guard with nothing left to do", || !guard.lives());
    let records = election.verdicts();
    let kinds: Vec<&str> = records.iter().filter_map(|line| line["record"]["kind"].as_str()).collect();
    assert!(kinds.contains(&"claim") && !kinds.contains(&"release"), "{kinds:?}");
}

/// A control group that belongs to the user nobody.
struct Delegated(PathBuf);

impl Delegated {
    fn new() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("every Linux has it");
        let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?.split(' ').nth(4)?;
        let groups = fs::read_to_string("/proc/self/cgroup").expect("every Linux has it");
        let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let path = Path::new(mount).join(own).join(format!("test-of-neli-run.{:x}", wait::now()));
        fs::create_dir(&path).ok()?;
        let delegated = Self(path);
        for path in [delegated.0.clone(), delegated.0.join("cgroup.procs")] {
            chown(&path, Some(Uid::from_raw(65534)), Some(Gid::from_raw(65534))).ok()?;
        }
        Some(delegated)
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// A leader in that group, whose job has got root.
fn lead_out_of_reach(election: &TestElection, delegated: &Delegated) -> (Running, u64) {
    let group = delegated.0.to_str().expect("UTF-8");
    let mut run = climbing_candidate(election).start_behind(&["sh", "-c", AS_NOBODY, "sh", group]);
    let term = run.await_lead();
    election.await_witness(term);
    (run, term)
}

/// With a control group of its own, a job that got root is killed like any other, and the group is removed.
#[test]
fn unreachable_processes_are_ended_by_their_control_group() {
    if !is_root() {
        return;
    }
    let Some(delegated) = Delegated::new() else { return not_tested("no control group can be made here") };
    let election = election(Elector::Log);
    let (mut run, term) = lead_out_of_reach(&election, &delegated);
    assert!(!warns(&run.events("warning")));
    run.signal(Signal::SIGTERM);
    run.await_release();
    election.assert_gone(term);
    assert_eq!(run.status(), 137);
    let below = || fs::read_dir(&delegated.0).expect("it is there").flatten().filter(|entry| entry.path().is_dir());
    assert_eq!(below().count(), 0);
    election.close([run]);
}

/// The guard dies and the kernel does not kill such a job with it (the parent-death signal is lost). The control group ends it.
#[test]
fn unreachable_processes_end_when_the_guard_dies() {
    if !is_root() {
        return;
    }
    let Some(delegated) = Delegated::new() else { return not_tested("no control group can be made here") };
    let election = election(Elector::Log);
    let (mut run, term) = lead_out_of_reach(&election, &delegated);
    run.guard().signal(Signal::SIGKILL);
    run.await_event("guard_lost");
    run.await_release();
    election.assert_gone(term);
    let next = election.await_witness_after(term);
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 137);
    election.assert_gone(next);
    election.close([run]);
}

/// Runs its arguments as nobody with a `/proc` that hides other users' processes (`hidepid`).
const BEHIND_HIDEPID: &str = r#"
    mount -t proc -o hidepid=2 proc /proc || exit
    exec setpriv --reuid=65534 --regid=65534 --clear-groups --pdeathsig KILL -- "$@"
"#;

/// A candidate with a job whose program is not readable, so that `/proc` hides even the user's own processes of it.
fn start_hidden(election: &TestElection) -> Running {
    fs::set_permissions(election.directory(), Permissions::from_mode(0o777)).expect("our own directory");
    let hidden = election.directory().join("hidden");
    let witness =
        ["--ignore-stop", "--child", "--session", "--daemon"].into_iter().fold(election.witness(), Witness::with);
    let mut job = witness.command();
    fs::copy(&job[0], &hidden).expect("our own directory");
    fs::set_permissions(&hidden, Permissions::from_mode(0o711)).expect("our own file");
    job[0] = hidden.into();
    let unshare = ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", BEHIND_HIDEPID, "sh"];
    election.candidate().lease("5s").option("--stop-timeout", "200ms").job(job).start_behind(&unshare)
}

/// Ends the run by a stop, or by SIGKILL to its guard or to `neli-run`, and waits until its term is released.
fn ends_with(end: &str, election: &TestElection, run: &mut Running, term: u64) {
    match end {
        "stop" => run.signal(Signal::SIGTERM),
        "guard" => run.guard().signal(Signal::SIGKILL),
        _ => run.signal(Signal::SIGKILL),
    }
    if end == "supervisor" {
        assert!(election.candidate().job(["true"]).start().await_lead() > term);
    } else {
        run.await_release();
    }
}

/// Hidden processes are found, killed and waited for as usual, at a stop and at the death of guard or supervisor.
#[test]
fn processes_hidden_in_proc_are_ended() {
    let unshare =
        ["--mount", "--propagation", "private", "--", "mount", "-t", "proc", "-o", "hidepid=2", "proc", "/proc"];
    if !Command::new("unshare").args(unshare).output().is_ok_and(|tried| tried.status.success()) {
        return not_tested("a /proc with hidepid takes root");
    }
    for end in ["stop", "guard", "supervisor"] {
        let election = election(Elector::Log);
        let mut run = start_hidden(&election);
        let term = run.await_lead();
        let has = |role: &str| election.testimony().of(term).any(|line| line.role == role);
        wait::until_true("a tree", || ["child", "session", "daemon"].into_iter().all(has));
        ends_with(end, &election, &mut run, term);
        election.assert_gone(term);
        if end != "supervisor" {
            run.signal(Signal::SIGTERM);
            run.status();
            assert!(run.events("error").is_empty(), "{run:?}");
        }
    }
}

/// A job that leaves a witness in this namespace, beside the witness that is its main process. Only the second writes its own pid.
fn job_in(namespace: &PidNamespace, election: &TestElection) -> Vec<OsString> {
    fs::set_permissions(election.directory(), Permissions::from_mode(0o777)).expect("our own directory");
    let copy = election.directory().join("of-all").join("witness");
    fs::create_dir(copy.parent().expect("a directory")).expect("our own directory");
    let mut witness = election.witness().command();
    fs::copy(&witness[0], &copy).expect("our own directory");
    witness[0] = copy.into();
    let line = format!("{} setsid --fork \"$@\"; exec \"$@\"", namespace.enter());
    ["sh", "-c", &line, "sh"].map(OsString::from).into_iter().chain(witness).collect()
}

/// A process whose parent ends in a PID namespace beside the job gets a parent that is no process of the job. It is ended before the term is
/// released, at a stop and at the death of guard or supervisor, also if `neli-run` has no rights and no control group.
#[test]
fn a_process_that_another_pid_namespace_has_taken_is_ended() {
    const NOBODY: &[&str] =
        &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--pdeathsig", "KILL", "--"];
    let user = if Uid::effective().is_root() { NOBODY } else { &[] };
    let Some(namespace) = PidNamespace::new(user) else { return not_tested("no user namespace can be made here") };
    for end in ["stop", "guard", "supervisor"] {
        let election = election(Elector::Log);
        let job = job_in(&namespace, &election);
        let file = PathBuf::from(job.last().expect("the file"));
        let mut run = election.candidate().lease("5s").job(job).start_behind(user);
        let term = run.await_lead();
        let both = wait::until("two witnesses", || {
            let of_file = Process::with_word(&file).into_iter();
            let found: Vec<Process> = of_file.filter(|process| process.name().as_deref() == Some("witness")).collect();
            (found.len() == 2).then_some(found)
        });
        election.await_witness(term);
        ends_with(end, &election, &mut run, term);
        let left: Vec<&Process> = both.iter().filter(|process| process.lives()).collect();
        assert!(left.is_empty(), "{end}: {left:?}");
        if end == "guard" {
            run.signal(Signal::SIGTERM);
            run.status();
        }
    }
}
