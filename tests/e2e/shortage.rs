//! A lack of memory: the kernel kills the process that uses most, and the others continue as usual. Also a limit on processor time.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use harness::candidate::Elector;
use harness::election::TestElection;
use harness::install;
use harness::kafka::Wired;
use harness::process::Process;
use harness::{not_tested, wait};
use nix::libc;
use nix::sys::signal::Signal;
use nix::unistd::Uid;

use crate::doctor::Found;
use crate::process_one::{self, Container};
use crate::{PROGRAM, election};

/// This is enough for a debug build of a candidate, and small enough to be filled quickly.
const MEMORY: u64 = 192 << 20;

/// A control group with little memory.
struct Shortage {
    group: PathBuf,
}

impl Shortage {
    /// A group below our own, in cgroup v2 or v1. If none can be created, prints what was not tested.
    fn new() -> Option<Self> {
        let limited = own_groups().iter().find_map(|own| limited_below(own));
        if limited.is_none() {
            not_tested("no control group with a limit of memory can be made");
        }
        limited.map(|group| Self { group })
    }

    /// A command prefix that enters the group.
    fn inside(&self) -> [String; 4] {
        let enter = format!(r#"echo $$ >"{}/cgroup.procs" && exec "$@""#, self.group.display());
        ["sh".to_owned(), "-c".to_owned(), enter, "sh".to_owned()]
    }

    /// How many processes the kernel has killed.
    fn killed(&self) -> u64 {
        let text = ["memory.events", "memory.oom_control"].map(|name| fs::read_to_string(self.group.join(name)));
        let text = text.into_iter().flatten().next().expect("the group counts them");
        let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        line.expect("Linux 4.13 or later").parse().expect("a number")
    }

    /// A process that allocates all memory, is killed for it, and starts again, until it is dropped.
    fn hog(&self) -> Hog {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).args(self.inside());
        command.args(["sh", "-c", "while :; do tail /dev/zero; done"]);
        Hog(command.stderr(Stdio::null()).spawn().expect("setpriv is part of util-linux"))
    }
}

impl Drop for Shortage {
    fn drop(&mut self) {
        // The processes in the group are ending.
        wait::until_true("an empty group", || {
            fs::read_to_string(self.group.join("cgroup.procs")).is_ok_and(|members| members.is_empty())
        });
        let _ = fs::remove_dir(&self.group);
    }
}

struct Hog(Child);

impl Drop for Hog {
    fn drop(&mut self) {
        // The kernel kills the processes that it started, for their memory.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates a group with little memory below this one.
fn limited_below(own: &Path) -> Option<PathBuf> {
    let group = own.join(format!("shortage-{}", wait::now()));
    fs::create_dir(&group).ok()?;
    let limits = ["memory.max", "memory.limit_in_bytes"].map(|name| group.join(name));
    let is_limited = limits.iter().any(|limit| limit.exists() && fs::write(limit, MEMORY.to_string()).is_ok());
    if !is_limited {
        let _ = fs::remove_dir(&group);
    }
    is_limited.then_some(group)
}

/// Our own groups, below which memory can be limited.
fn own_groups() -> Vec<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = |prefix: &str, mount: &str| {
        let group = groups.lines().find_map(|line| line.split_once(prefix).map(|(_, path)| path))?;
        Some(Path::new(mount).join(group.trim_start_matches('/')))
    };
    [path("0::", "/sys/fs/cgroup"), path(":memory:", "/sys/fs/cgroup/memory")].into_iter().flatten().collect()
}

/// The kernel kills the job, which uses all memory; this end is handled like any other.
#[test]
fn a_job_that_takes_all_memory_is_killed_and_has_ended_like_any_other() {
    let Some(shortage) = Shortage::new() else { return };
    let election = election(Elector::Log);
    let inside = shortage.inside();
    let mut run = election.candidate().job(["tail", "/dev/zero"]).start_behind(&inside.each_ref().map(String::as_str));
    assert_eq!(run.status(), 137);
    assert_eq!(run.await_event("job_exited").number("signal"), 9);
    let released = run.await_release();
    assert_eq!((released.text("why"), released.fields["delivered"].as_bool()), ("exited", Some(true)));
    let words = ["--brokers", "127.0.0.1:1", "--timeout", "1s"];
    let found = Found::behind(&inside.each_ref().map(String::as_str), &words);
    found.assert_finding("memory-limit", "ok", &["192 MiB"]);
}

/// While another process uses all memory again and again, the lease is kept, and a fence works.
#[test]
fn a_neighbour_that_takes_all_memory_ends_no_lease() {
    let Some(shortage) = Shortage::new() else { return };
    let election = election(Elector::Log);
    let job = election.witness().with("--ignore-stop").with("--daemon");
    let inside = shortage.inside();
    let candidate = election.candidate().lease("5s").job(job.command());
    let mut run = candidate.start_behind(&inside.each_ref().map(String::as_str));
    let term = run.await_lead();
    election.await_witness(term);
    let hog = shortage.hog();
    let deadline = || election.testimony().of(term).next_back().map_or(0, |line| line.deadline);
    let (before, killed) = (deadline(), shortage.killed());
    wait::until_true("a lease that is renewed", || deadline() > before + 5_500_000_000);
    wait::until_true("a shortage", || shortage.killed() > killed + 3);
    assert!(run.events("fenced").is_empty());

    run.signal(Signal::SIGSTOP);
    election.await_gone(term);
    drop(hog);
    run.signal(Signal::SIGCONT);
    run.await_event("fenced");
    election.close([run]);
}

/// Sets the limit of open files of a running process.
fn limit_open_files(process: Process, limit: u64) {
    let set =
        Command::new("prlimit").args([format!("--pid={}", process.pid), format!("--nofile={limit}:{limit}")]).status();
    assert!(set.expect("prlimit is part of util-linux").success());
}

/// Without threads for a member of the group, librdkafka would abort the process, or wait for ever. The candidate stands for election without one.
#[test]
fn without_threads_for_a_member_of_the_group_a_candidate_stands_for_election() {
    if !Uid::effective().is_root() {
        not_tested("only root can run a candidate as a user that has no other processes");
        return;
    }
    let election = election(Elector::Group);
    let mut first = election.candidate().lease("10s").job(["sleep", "1000"]).start_behind(&AS_OWN_USER);
    first.await_lead();
    let mut second = election.candidate().lease("10s").job(["sleep", "1000"]).start();
    for free in 0..6 {
        second.await_event("standby");
        first.await_job();
        // The job, which has ended by then, frees one more.
        limit_threads(first.process(), threads_of_own_user() - 1 + free);
        assert_eq!(election.ask("resign", &[]).status, 0, "{first:?}");
        first.await_event("standby");
        second.await_job();
        limit_threads(first.process(), 4_000);
        assert_eq!(election.ask("resign", &[]).status, 0, "{free} free: {first:?}");
        first.await_lead();
    }
    election.close([second, first]);
}

/// A user that has no processes but those of one test: the limit of threads counts all of a user's.
const OWN_USER: u32 = 64_321;

const AS_OWN_USER: [&str; 6] =
    ["setpriv", "--reuid=64321", "--regid=64321", "--clear-groups", "--pdeathsig=KILL", "--"];

/// Sets the limit of threads of its user for a running process. The user sets it itself, since in a container root may not.
fn limit_threads(process: Process, limit: u64) {
    let mut set = Command::new(AS_OWN_USER[0]);
    set.args(&AS_OWN_USER[1..]).arg("prlimit").args([format!("--pid={}", process.pid), format!("--nproc={limit}:")]);
    assert!(set.status().expect("setpriv is part of util-linux").success());
}

fn threads_of_own_user() -> u64 {
    let threads = |process: fs::DirEntry| {
        let is_theirs = process.metadata().is_ok_and(|found| found.uid() == OWN_USER);
        let tasks = is_theirs.then(|| fs::read_dir(process.path().join("task")).ok()).flatten();
        tasks.map_or(0, |tasks| tasks.count() as u64)
    };
    fs::read_dir("/proc").expect("/proc is mounted").filter_map(Result::ok).map(threads).sum()
}

/// The lowest descriptor number that is free in a process.
fn lowest_free(process: Process) -> u64 {
    let open: Vec<u64> = fs::read_dir(format!("/proc/{}/fd", process.pid))
        .expect("it lives")
        .map(|entry| entry.expect("a descriptor").file_name().to_string_lossy().parse().expect("a number"))
        .collect();
    (0..1_000).find(|number| !open.contains(number)).expect("a candidate has few open")
}

/// Waits until the lease was renewed a few times: right after the start not all connections are open.
fn await_connections(election: &TestElection) {
    let is_beat = |line: &&serde_json::Value| line["record"]["kind"] == "beat";
    wait::until_true("a lead that goes on", || election.verdicts().iter().filter(is_beat).count() > 2);
}

/// At the limit of open files the job is still supervised, and a new guard can be started, thanks to reserved descriptors.
#[test]
fn with_no_descriptor_left_the_job_is_still_supervised() {
    let election = election(Elector::Log);
    let mut run = election.candidate().lease("5s").option("--restart", "always").option("--restart-delay", "0").start();
    let term = run.await_lead();
    election.await_witness(term);
    let first = run.await_job();
    await_connections(&election);
    limit_open_files(run.process(), lowest_free(run.process()));
    first.signal(Signal::SIGKILL);
    let second = run.await_job();
    run.guard().signal(Signal::SIGKILL);
    run.await_event("guard_lost");
    wait::until_true("a job that is killed", || !second.lives());
    let third = run.await_job();
    assert!(third.lives());
    assert!(run.events("error").is_empty(), "{run:?}");
    election.close([run]);
}

/// At the limit of open files connections are lost. They are opened again, since the reserve does not use their descriptors.
#[test]
fn with_no_descriptor_left_lost_connections_are_opened_again() {
    let wired = Wired::take();
    let election = TestElection::new(PROGRAM, wired.kafka(), Elector::Log);
    let mut run = election.candidate().lease("5s").start();
    let term = run.await_lead();
    election.await_witness(term);
    let job = run.await_job();
    await_connections(&election);
    limit_open_files(run.process(), lowest_free(run.process()));
    for _ in 0..3 {
        wired.wire().reset();
        run.guard().signal(Signal::SIGKILL);
        run.await_event("guard_lost");
        let next = run.await_job();
        assert!(next.lives() && !job.lives());
    }
    election.close([run]);
}

/// With no free descriptor the guard dies. The end of its job is noticed nevertheless, the term is released at once, and the process leads nothing
/// until it can start another guard. (In a container, since whether a process of another user has the job's mark is read from a file.)
#[test]
fn with_no_descriptor_left_at_all_the_term_of_a_dead_guard_is_released() {
    if !process_one::is_possible() {
        return;
    }
    let election = election(Elector::Log);
    let Container { running: mut run, first } = Container::start(&election.candidate().lease("20s"));
    let term = run.await_lead();
    election.await_witness(term);
    run.await_event("job_started");
    limit_open_files(first, 3);
    first.children().iter().for_each(|guard| guard.signal(Signal::SIGKILL));
    let released = run.await_release();
    assert_eq!((released.text("why"), released.fields["delivered"].as_bool()), ("guard-died", Some(true)), "{run:?}");
    election.assert_gone(term);
    let words = ["the guard can't be started again", "tried each 5s, it is not led here: raise the limit"];
    let is_said = |text: &str| words.iter().all(|word| text.contains(word));
    while !is_said(run.await_event("warning").text("message")) {}
    first.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 143, "{run:?}");
}

/// With no free descriptor, a job that can't be supervised does not continue: it is killed, and counts as failed.
#[test]
fn with_no_descriptor_left_at_all_no_job_runs_unsupervised() {
    let election = election(Elector::Log);
    let candidate = election.candidate().option("--restart", "on-failure").option("--restart-delay", "0");
    let mut run = candidate.option("--restart-limit", "2/1m").start();
    let term = run.await_lead();
    election.await_witness(term);
    let first = run.await_job();
    limit_open_files(run.process(), 3);
    first.signal(Signal::SIGKILL);
    assert_eq!(run.status(), 84, "{run:?}");
    election.assert_gone(term);
    let said = run.events("error");
    assert!(said.iter().all(|event| event.text("message").contains("ulimit -n")) && said.len() == 2, "{run:?}");
}

/// A group of cgroup v1 with half a processor, below our own; `None` if it can't be created.
struct Ration(PathBuf);

impl Ration {
    fn new() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = groups.lines().find_map(|line| line.split_once(":cpu:").map(|(_, path)| path));
        let made = own.and_then(|own| {
            let own = Path::new("/sys/fs/cgroup/cpu").join(own.trim_start_matches('/'));
            let group = own.join(format!("ration-{}", wait::now()));
            fs::create_dir(&group).ok()?;
            let made = Self(group);
            fs::write(made.0.join("cpu.cfs_quota_us"), "50000").ok()?;
            Some(made)
        });
        if made.is_none() {
            not_tested("no control group with a quota of processor time can be made");
        }
        made
    }

    /// A command prefix that enters the group, without the right to real-time scheduling.
    fn inside(&self) -> [String; 4] {
        let enter = format!(
            r#"echo $$ >"{}/cgroup.procs" && exec setpriv --bounding-set=-sys_nice -- prlimit --rtprio=0 -- "$@""#,
            self.0.display()
        );
        ["sh".to_owned(), "-c".to_owned(), enter, "sh".to_owned()]
    }
}

impl Drop for Ration {
    fn drop(&mut self) {
        wait::until_true("an empty group", || fs::remove_dir(&self.0).is_ok());
    }
}

/// A sandbox may deny waiting for children. Nothing needs it that keeps two jobs apart.
#[test]
fn a_candidate_leads_where_it_may_not_wait_for_its_children() {
    let election = election(Elector::Log);
    let (deny, call) = (install::deny().to_str().expect("UTF-8"), libc::SYS_wait4.to_string());
    let mut run = election.candidate().start_behind(&[deny, &call]);
    election.await_witness(run.await_lead());
    run.signal(Signal::SIGTERM);
    let _ = run.await_release();
    assert_eq!(run.warnings_with("may not wait for its children").len(), 1, "{run:?}");
    election.close([run]);
}

/// The guard may be delayed. It warns about that, and kills earlier by the possible delay. A lease that is too short for this is refused.
#[test]
fn under_a_quota_without_real_time_scheduling_the_guard_kills_earlier_and_warns() {
    let Some(ration) = Ration::new() else { return };
    let election = election(Elector::Log);
    let inside = ration.inside();
    let inside = inside.each_ref().map(String::as_str);
    let candidate = election.candidate().lease("600ms").variable("NO_COLOR", "1");
    let mut run = candidate.start_behind(&inside);
    assert_eq!(run.status(), 125);
    let said = run.strange_lines().join("\n");
    assert!(said.contains("--lease 600ms: too short") && said.contains("cpu.cfs_quota_us"), "{said}");

    let words = ["--group", "g", "--brokers", "127.0.0.1:1", "--timeout", "1s", "--lease"];
    let found = Found::behind(&inside, &[&words[..], &["600ms"]].concat());
    found.assert_finding("cpu-quota", "fail", &["--lease 600ms: too short", "cpu.cfs_quota_us"]);
    found.assert_finding("real-time", "warn", &["LimitRTPRIO=2"]);
    found.assert_finding("brokers", "fail", &["127.0.0.1:1"]);
    let found = Found::behind(&inside, &[&words[..], &["20s"]].concat());
    found.assert_finding("cpu-quota", "warn", &["cpu.cfs_quota_us", "before the lease ends"]);

    // The job uses all of the group's processor time.
    let job = election.witness().with("--ignore-stop").with("--daemon").command();
    let busy = "(while :; do :; done) & (while :; do :; done) & exec \"$@\"";
    let job = ["sh", "-c", busy, "sh"].map(Into::into).into_iter().chain(job);
    let mut run = election.candidate().lease("2s").job(job).start_behind(&inside);
    let warned = run.await_event("warning");
    assert!(warned.text("message").contains("cpu.cfs_quota_us"), "{warned:?}");
    let term = run.await_lead();
    election.await_witness(term);
    run.signal(Signal::SIGSTOP);
    election.await_gone(term);
    let testimony = election.testimony();
    let last = testimony.of(term).next_back().expect("the job has written a line").at;
    // A beat between the guard's clearing of the deadline and the kill contains 0, so the latest deadline counts.
    let deadline = testimony.of(term).map(|line| line.deadline).max().expect("the job has written a line");
    run.signal(Signal::SIGCONT);
    let fenced = run.await_event("fenced");
    // The lease ends a kill margin after the deadline, 300 ms here. Without real-time scheduling the guard may still be late on a busy
    // machine; then the log reports it.
    let is_reported_late = fenced.fields["late_ms"].is_number();
    assert!(last < deadline + 300_000_000 || is_reported_late, "{} ns after the deadline: {fenced:?}", last - deadline);
    election.close([run]);
}
