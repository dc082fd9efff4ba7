//! The measurements. Each one is the time between two events.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use harness::candidate::Running;
use harness::election::TestElection;
use harness::figures::Row;
use harness::process::Process;
use harness::wait;
use nix::sys::signal::Signal;
use nix::unistd::gettid;

/// The time after which a candidate counts as settled: it has joined its group, and the group is stable.
const SETTLED: Duration = Duration::from_millis(1500);

/// From the process's start to the job's first instruction: on a topic that must be created, and on an existing one.
pub(crate) fn cold(election: &dyn Fn() -> TestElection, n: usize) -> Vec<Row> {
    let mut fresh = Vec::new();
    let mut existing = Vec::new();
    for _ in 0..n {
        let election = election();
        for samples in [&mut fresh, &mut existing] {
            let mut candidate = election.candidate().job(election.witness().set("--end-ms", 0).command()).start();
            assert_eq!(candidate.status(), 0, "{candidate:?}");
            let started = election.testimony().starts().next_back().expect("the job ran").at;
            samples.push((candidate.started_at, started));
        }
    }
    vec![Row::between("cold start, new topic", fresh), Row::between("cold start, existing topic", existing)]
}

/// After SIGTERM: from the old job's last instruction to the new job's first.
pub(crate) fn handover(election: &dyn Fn() -> TestElection, n: usize) -> Vec<Row> {
    let election = election();
    let mut leader = settled_leader(&election, "5s");
    let mut term = leader.await_lead();
    let mut samples = Vec::new();
    for _ in 0..n {
        let mut successor = settled_standby(&election, "5s");
        leader.signal(Signal::SIGTERM);
        let next = successor.await_lead();
        election.await_witness(next);
        samples.push((election.last_instruction(term), election.first_instruction(next)));
        assert_eq!(leader.status(), 0);
        (leader, term) = (successor, next);
    }
    election.close([leader]);
    vec![Row::between("handover after TERM, old job's end to new job's start", samples)]
}

/// After SIGKILL of the supervisor, with a lease that is much longer than the measured time.
pub(crate) fn kill(election: &dyn Fn() -> TestElection, n: usize) -> Vec<Row> {
    let mut samples = Vec::new();
    for _ in 0..n {
        let election = election();
        let leader = settled_leader(&election, "5s");
        let mut successor = settled_standby(&election, "5s");
        let killed = wait::now();
        leader.signal(Signal::SIGKILL);
        let next = successor.await_lead();
        election.await_witness(next);
        samples.push((killed, election.first_instruction(next)));
        election.close([successor]);
    }
    vec![Row::between("supervisor SIGKILLed, to the next job's start", samples)]
}

/// After SIGKILL of supervisor, guard and job, as when the power fails.
pub(crate) fn machine(election: &dyn Fn() -> TestElection, n: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for lease in ["1s", "5s"] {
        let mut samples = Vec::new();
        for _ in 0..n {
            let election = election();
            let mut leader = settled_leader(&election, lease);
            let mut successor = settled_standby(&election, lease);
            let victims = [leader.process(), leader.guard(), leader.await_job()];
            for victim in victims {
                victim.signal(Signal::SIGSTOP);
            }
            let killed = wait::now();
            for victim in victims {
                victim.signal(Signal::SIGKILL);
            }
            let next = successor.await_lead();
            election.await_witness(next);
            samples.push((killed, election.first_instruction(next)));
            election.close([successor]);
        }
        rows.push(Row::between(format!("machine death, lease {lease}, to the next job's start"), samples));
    }
    rows
}

/// The time until the tree is gone after a supervisor was stopped, while there are two busy processes per core.
pub(crate) fn fence(election: &dyn Fn() -> TestElection, n: usize) -> Vec<Row> {
    const MARGIN: u64 = 20_000_000;
    let _load = Load::start();
    let urgency = Urgency::new();
    let mut from_deadline = Vec::new();
    let mut from_end = Vec::new();
    // A killed process does no more work, but needs processor time to end.
    let mut to_last = Vec::new();
    for _ in 0..n {
        let election = election();
        let job = election.witness().with("--ignore-stop").with("--session").with("--daemon");
        let mut candidate = election.candidate().lease("1s").job(job.command()).start();
        let term = candidate.await_lead();
        wait::until_true("a tree", || {
            let testimony = election.testimony();
            ["main", "session", "daemon"].iter().all(|role| testimony.of(term).any(|line| line.role == *role))
        });
        let tree = election.testimony().alive(Some(term));
        candidate.signal(Signal::SIGSTOP);
        let gone = await_gone(&tree);
        let testimony = election.testimony();
        let deadline = testimony.of(term).map(|line| line.deadline).max().expect("the job has written a line");
        let last = testimony.of(term).map(|line| line.at).max().expect("the job has written a line");
        to_last.push((deadline, last));
        from_deadline.push((deadline, gone));
        from_end.push((deadline + MARGIN, gone));
    }
    let seen = if urgency.granted { "" } else { " (seen by a thread that may be late itself)" };
    vec![
        Row::between("fence, every core busy: deadline to the job's last beat", to_last),
        Row::between(format!("fence, every core busy: deadline to tree gone{seen}"), from_deadline),
        Row::between(format!("fence, every core busy: lease's end to tree gone{seen}"), from_end),
    ]
}

/// The time until a job of a thousand processes is gone after a fence and after a stop timeout, with two busy processes per core.
pub(crate) fn crowd(election: &dyn Fn() -> TestElection, n: usize) -> Vec<Row> {
    const STOP_TIMEOUT: u64 = 200_000_000;
    const CROWD: &str = r#"i=0; while [ $i -lt 1000 ]; do sleep 1000 & i=$((i + 1)); done; exec "$@""#;
    let _load = Load::start();
    let _urgency = Urgency::new();
    let mut fenced = Vec::new();
    let mut stopped = Vec::new();
    for fence in [true, false].repeat(n) {
        let election = election();
        let witness = election.witness().with("--ignore-stop").command();
        let job = ["sh", "-c", CROWD, "sh"].map(Into::into).into_iter().chain(witness);
        let candidate = election.candidate().lease("5s").option("--stop-timeout", "200ms").job(job);
        let mut candidate = candidate.variable("CROWD", election.directory()).start();
        let term = candidate.await_lead();
        election.await_witness(term);
        // A forked process is still the shell until its exec.
        let tree = wait::until("a crowd", || {
            let mut tree = Process::with_variable("CROWD", election.directory());
            tree.retain(|process| process.name().is_some_and(|name| name == "sleep" || name == "witness"));
            (tree.len() > 1000).then_some(tree)
        });
        let from = if fence {
            candidate.signal(Signal::SIGSTOP);
            wait::until_true("a deadline that comes", || {
                election.testimony().of(term).next_back().is_some_and(|line| line.deadline < wait::now() + 100_000_000)
            });
            election.testimony().of(term).map(|line| line.deadline).max().expect("the job has written a line")
        } else {
            candidate.signal(Signal::SIGTERM);
            wait::now() + STOP_TIMEOUT
        };
        let samples = if fence { &mut fenced } else { &mut stopped };
        samples.push((from, await_gone(&tree)));
    }
    vec![
        Row::between("fence, 1,000 processes, every core busy: deadline to tree gone", fenced),
        Row::between("barrier, 1,000 processes, every core busy: stop timeout to tree gone", stopped),
    ]
}

/// The effect of standbys that join and leave on a leader's job.
pub(crate) fn standbys(election: &dyn Fn() -> TestElection, n: usize) -> Vec<Row> {
    let election = election();
    let mut leader = settled_leader(&election, "5s");
    for _ in 0..n {
        let mut standby = election.candidate().start();
        standby.await_event("standby");
        // This is long enough to join the group, and for the group to become stable.
        wait::pause(Duration::from_millis(300));
        standby.signal(Signal::SIGTERM);
        assert_eq!(standby.status(), 143, "{standby:?}");
    }
    let testimony = election.testimony();
    #[expect(clippy::cast_precision_loss, reason = "a count")]
    let noticed = (testimony.signals().count() + testimony.starts().count() - 1) as f64;
    leader.signal(Signal::SIGTERM);
    leader.status();
    vec![Row::new(format!("signals or restarts at the job in {n} joins and leaves"), "", vec![noticed])]
}

/// Memory and processor time of an idle leader.
pub(crate) fn idle(election: &dyn Fn() -> TestElection) -> Vec<Row> {
    const WATCHED: Duration = Duration::from_secs(30);
    const PRIVATE: &[&str] = &["Private_Clean:", "Private_Dirty:"];

    let election = election();
    // A job that uses no processor time.
    let mut leader = election.candidate().job(["sleep", "1000"]).start();
    leader.await_lead();
    let standby = settled_standby(&election, "5s");
    let processes = [leader.process(), leader.guard()];
    let used = || processes.iter().map(|process| process.processor_time().expect("the process runs")).sum::<Duration>();
    let before = used();
    wait::pause(WATCHED);
    let busy = used().saturating_sub(before).as_secs_f64() / WATCHED.as_secs_f64() * 100.0;

    let [supervisor, guard] = processes;
    vec![
        Row::new(
            "resident memory, standby",
            "MB",
            vec![standby.process().megabytes("status", &["VmRSS:"]).expect("the process runs")],
        ),
        Row::new(
            "resident memory, leader",
            "MB",
            vec![supervisor.megabytes("status", &["VmRSS:"]).expect("the process runs")],
        ),
        Row::new(
            "private memory, guard",
            "MB",
            vec![guard.megabytes("smaps_rollup", PRIVATE).expect("the process runs")],
        ),
        Row::new("processor, idle leader and guard, of one core", "%", vec![busy]),
    ]
}

/// A leader that has led for a while; with the group elector, one that the group has chosen.
fn settled_leader(election: &TestElection, lease: &str) -> Running {
    let mut leader = election.candidate().lease(lease).start();
    let term = wait::until("a lead", || leader.events("leading").first().map(|event| event.number("term")));
    election.await_witness(term);
    if election.elector().name() == "group" {
        leader.await_event("assigned");
    }
    leader
}

fn settled_standby(election: &TestElection, lease: &str) -> Running {
    let mut standby = election.candidate().lease(lease).start();
    standby.await_event("standby");
    wait::pause(SETTLED);
    standby
}

/// The time when the last of them was gone. It is checked five times per millisecond, or during half of the time: this thread has a higher
/// priority, and must leave processor time to the processes that are ending.
fn await_gone(tree: &[Process]) -> u64 {
    let end = wait::after(wait::PATIENCE);
    let mut left = tree.to_vec();
    loop {
        let looked = wait::now();
        left.retain(|process| process.lives());
        let now = wait::now();
        if left.is_empty() {
            return now;
        }
        assert!(now < end, "a tree that is not fenced");
        wait::pause(Duration::from_nanos(now - looked).max(Duration::from_micros(200)));
    }
}

/// Gives this thread a higher priority than all ordinary ones, so that its own delay does not count. Processes that it starts are
/// ordinary.
struct Urgency {
    /// Whether it was allowed.
    granted: bool,
}

impl Urgency {
    fn new() -> Self {
        Self { granted: schedule(&["--reset-on-fork", "--fifo", "--pid", "10"]) }
    }
}

impl Drop for Urgency {
    fn drop(&mut self) {
        schedule(&["--other", "--pid", "0"]);
    }
}

/// Sets this thread's scheduling; returns whether that was allowed.
fn schedule(how: &[&str]) -> bool {
    let mut chrt = Command::new("chrt");
    chrt.args(how).arg(gettid().to_string()).stderr(Stdio::null());
    chrt.status().is_ok_and(|status| status.success())
}

/// Two processes per core that are always busy.
struct Load(Vec<Child>);

impl Load {
    fn start() -> Self {
        let cores = thread::available_parallelism().map_or(2, usize::from);
        let busy = || {
            let mut worker = Command::new("setpriv");
            worker.args(["--pdeathsig", "KILL", "--", "sh", "-c", "while :; do :; done"]);
            worker.spawn().expect("setpriv is part of util-linux")
        };
        Self((0..cores * 2).map(|_| busy()).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for worker in &mut self.0 {
            // The process may have ended already.
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}
