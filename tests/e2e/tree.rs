//! What a job may leave out of reach: named and never released, or ended by the control group of the job's own.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use harness::candidate::{Candidate, Elector, Running};
use harness::process::Process;
use harness::stage::Stage;
use harness::wait;
use nix::sys::signal::Signal;
use nix::unistd::{Gid, Uid, chown};

use crate::stage;

/// Runs what follows as nobody, in a group of its own when one is named first.
const AS_NOBODY: &str = r#"
    [ -z "$1" ] || echo $$ > "$1/cgroup.procs" || exit
    shift
    exec setpriv --reuid=65534 --regid=65534 --clear-groups --pdeathsig KILL -- "$@"
"#;

/// Says what could not be tested, past the test harness's silence.
fn not_tested(why: &str) {
    let _ = writeln!(io::stderr(), "NOT TESTED: {why}");
}

fn is_root() -> bool {
    let is_root = Uid::effective().is_root();
    if !is_root {
        not_tested("only root can make a setuid program of root's");
    }
    is_root
}

/// A candidate whose job ignores the stop signal, and gets root by a setuid program: nobody may signal it.
fn climbing_candidate(stage: &Stage) -> Candidate {
    fs::set_permissions(stage.directory(), Permissions::from_mode(0o755)).expect("our own directory");
    let climb = stage.directory().join("setuid").join("witness");
    fs::create_dir(climb.parent().expect("a directory")).expect("our own directory");
    let mut job: Vec<OsString> = stage.witness().with("--ignore-stop").set("--uid", 0).command();
    fs::copy(&job[0], &climb).expect("our own directory");
    fs::set_permissions(&climb, Permissions::from_mode(0o4755)).expect("our own file");
    job[0] = climb.into();
    stage.candidate().lease("1s").option("--stop-timeout", "200ms").job(job)
}

/// Says a warning about setuid programs.
fn warns(warnings: &[harness::candidate::Event]) -> bool {
    warnings.iter().any(|warning| warning.text("message").contains("setuid"))
}

/// What can't be killed is named, and nothing is released while it lives: the lease runs out by itself.
#[test]
fn what_cannot_die_is_named_and_never_released() {
    if !is_root() {
        return;
    }
    let stage = stage(Elector::Log);
    let mut run = climbing_candidate(&stage).start_behind(&["sh", "-c", AS_NOBODY, "sh", ""]);
    let term = run.await_lead();
    stage.await_witness(term);
    let job = run.await_job();
    assert!(warns(&run.events("warning")));
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 85);
    let error = run.await_event("error");
    assert!(error.text("message").contains(&format!("pid {}", job.pid)), "{}", error.fields);
    assert!(run.events("released").is_empty());
    assert!(job.lives());
    let records = stage.verdicts();
    let kinds: Vec<&str> = records.iter().filter_map(|line| line["record"]["kind"].as_str()).collect();
    assert!(!kinds.contains(&"release"), "{kinds:?}");
    let guard = Process::find(job.parent().expect("it lives")).expect("the guard watches what is left");
    job.signal(Signal::SIGKILL);
    wait::until_true("a guard with nothing left to do", || !guard.lives());
    stage.assert_gone(term);
}

/// A control group that is nobody's.
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
fn lead_out_of_reach(stage: &Stage, delegated: &Delegated) -> (Running, u64) {
    let group = delegated.0.to_str().expect("UTF-8");
    let mut run = climbing_candidate(stage).start_behind(&["sh", "-c", AS_NOBODY, "sh", group]);
    let term = run.await_lead();
    stage.await_witness(term);
    (run, term)
}

/// With a control group of the job's own, what got root is ended like all else; and nothing of the group is left.
#[test]
fn what_is_out_of_reach_is_ended_by_its_control_group() {
    if !is_root() {
        return;
    }
    let Some(delegated) = Delegated::new() else { return not_tested("no control group can be made here") };
    let stage = stage(Elector::Log);
    let (mut run, term) = lead_out_of_reach(&stage, &delegated);
    assert!(!warns(&run.events("warning")));
    run.signal(Signal::SIGTERM);
    run.await_event("released");
    stage.assert_gone(term);
    assert_eq!(run.status(), 137);
    let below = || fs::read_dir(&delegated.0).expect("it is there").flatten().filter(|entry| entry.path().is_dir());
    assert_eq!(below().count(), 0);
    stage.close([run]);
}

/// The same when the guard dies, and the kernel has forgotten to end such a job with it.
#[test]
fn what_is_out_of_reach_is_ended_when_the_guard_dies() {
    if !is_root() {
        return;
    }
    let Some(delegated) = Delegated::new() else { return not_tested("no control group can be made here") };
    let stage = stage(Elector::Log);
    let (mut run, term) = lead_out_of_reach(&stage, &delegated);
    run.guard().signal(Signal::SIGKILL);
    run.await_event("guard_lost");
    run.await_event("released");
    stage.assert_gone(term);
    let next = stage.await_witness_after(term);
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 137);
    stage.assert_gone(next);
    stage.close([run]);
}
