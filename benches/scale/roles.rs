//! Many roles on three candidates: the cost of a role, and how soon a dead candidate's roles are led again.

use std::collections::BTreeMap;
use std::time::Duration;

use harness::candidate::{Candidate, Elector, Running};
use harness::election::TestElection;
use harness::figures::Row;
use harness::kafka::Broker;
use harness::process::Process;
use harness::wait;
use nix::sys::signal::Signal;

use crate::meter::{self, number};
use crate::{Arguments, PROGRAM};

/// The number of candidates that share the roles.
const CANDIDATES: usize = 3;
/// This is long enough that no lease ends early on a busy machine.
const LEASE: Duration = Duration::from_secs(10);
/// The time after which candidates count as settled.
const SETTLED: Duration = Duration::from_secs(5);
/// The time limit for a thousand roles.
const PATIENCE: Duration = Duration::from_secs(300);
/// The polling interval.
const LOOK: Duration = Duration::from_millis(100);

/// The rows for this many roles.
pub(crate) fn measure(broker: &Broker, elector: Elector, arguments: &Arguments) -> Vec<Row> {
    let roles = arguments.roles;
    let election = TestElection::new(PROGRAM, &broker.kafka(), elector);
    let began = wait::now();
    let mut candidates = vec![Observed::of(candidate(&election, roles).start())];
    await_true("a lead of each role", || held(&mut candidates) == roles);
    let mut rows = vec![row(format!("{roles} roles, start to all led by one"), "ms", millis(began, wait::now()))];
    // It is started before there are shares, and leads no role. So its cost is that of a standby.
    let standby = candidate(&election, roles).option("--max-roles", "1").start();
    rows.extend(standing_by(&election, &standby, roles));
    stop(standby);

    let began = wait::now();
    candidates.extend((1..CANDIDATES).map(|_| Observed::of(candidate(&election, roles).start())));
    await_fair(&mut candidates, roles);
    rows.push(row(format!("{roles} roles, start of two more to fair shares"), "s", millis(began, wait::now()) / 1e3));
    wait::pause(SETTLED);
    rows.extend(idle(broker, &candidates, roles, arguments.seconds));

    // The supervisor is killed: its guards release its terms.
    let mut dead = candidates.swap_remove(0);
    let orphans = dead.led().len();
    dead.running.signal(Signal::SIGKILL);
    let killed = wait::now();
    rows.extend(again(&mut candidates, roles, orphans, killed, "of a killed supervisor"));
    drop(dead);

    // All of its processes are killed, as if its machine had died: the others notice when the lease is over.
    candidates.push(Observed::of(candidate(&election, roles).start()));
    await_fair(&mut candidates, roles);
    wait::pause(SETTLED);
    let mut dead = candidates.swap_remove(0);
    let orphans = dead.led().len();
    let process = dead.running.process();
    let mut family = vec![process];
    family.extend(process.descendants());
    for process in family {
        process.signal(Signal::SIGKILL);
    }
    let known = wait::now()
        + u64::try_from((LEASE.mul_f64(1.01) + Duration::from_millis(10)).as_nanos()).expect("a small number");
    rows.extend(again(&mut candidates, roles, orphans, known, "of a dead machine, from the end of its lease on"));
    drop(dead);
    for candidate in candidates {
        stop(candidate.running);
    }
    rows
}

/// The cost of a process that stands by for this many roles, compared with one that stands by for one.
fn standing_by(election: &TestElection, standby: &Running, roles: usize) -> Vec<Row> {
    await_true("a standby in nearly all", || standby.count("standby") + 1 >= roles);
    let single = election.candidate().option("--lease", lease()).job(["sleep", "100000"]);
    let single = single.option("--topic", format!("{}.single", election.topic())).start();
    await_true("one of one role", || single.count("leading") > 0);
    wait::pause(SETTLED);
    let (many, one) = (private(standby.process()), private(single.process()));
    stop(single);
    let of_role = (many - one) * 1e3 / number(roles as u64);
    vec![
        row(format!("{roles} roles stood by for: private memory"), "MB", many),
        row("one role: private memory".to_owned(), "MB", one),
        row(format!("{roles} roles stood by for: private memory of each"), "kB", of_role),
        row(format!("{roles} roles stood by for: connections"), "", number(standby.process().connections() as u64)),
        row(
            format!("{roles} roles stood by for: threads"),
            "",
            number(standby.process().threads().expect("the process runs") as u64),
        ),
    ]
}

/// The cost of this many processes that lead one role each in their own elections: the alternative to many roles in one process.
pub(crate) fn in_processes(broker: &Broker, elector: Elector, arguments: &Arguments) -> Vec<Row> {
    let count = arguments.processes;
    let stages: Vec<TestElection> = (0..count).map(|_| TestElection::new(PROGRAM, &broker.kafka(), elector)).collect();
    let start =
        |election: &TestElection| election.candidate().option("--lease", lease()).job(["sleep", "100000"]).start();
    let candidates: Vec<Observed> = stages.iter().map(|election| Observed::of(start(election))).collect();
    await_true("a lead of each", || candidates.iter().all(|candidate| candidate.running.count("leading") > 0));
    wait::pause(SETTLED);
    let mut rows = idle(broker, &candidates, count, arguments.seconds);
    let private = |candidate: &Observed| private(candidate.running.process());
    let private = candidates.iter().map(private).sum::<f64>() / number(count as u64);
    rows.push(row(format!("{count} roles on {count}: private memory of a supervisor"), "MB", private));
    for candidate in candidates {
        stop(candidate.running);
    }
    rows
}

/// A process's private memory, in megabytes.
fn private(process: Process) -> f64 {
    process.megabytes("smaps_rollup", &["Private_Clean:", "Private_Dirty:"]).expect("the process runs")
}

/// The cost of candidates that lead the same share of the roles each.
fn idle(broker: &Broker, candidates: &[Observed], roles: usize, seconds: u64) -> Vec<Row> {
    let supervisors: Vec<Process> = candidates.iter().map(|candidate| candidate.running.process()).collect();
    let is_guard = |process: &Process| process.name().as_deref() == Some("neli-guard");
    let guards: Vec<Process> = supervisors.iter().flat_map(|process| process.children()).filter(is_guard).collect();
    let when = format!("{roles} roles on {}", candidates.len());
    let cost = meter::cost(broker, &[&supervisors, &guards], seconds);
    let mut rows = cost.rows(&when, &["a supervisor (mean)", "a guard (mean)"]);
    for (what, unit, of) in [
        ("connections", "", (|process: Process| number(process.connections() as u64)) as fn(Process) -> f64),
        ("threads", "", |process| number(process.threads().expect("the process runs") as u64)),
        ("descriptors", "", |process| number(process.descriptors().len() as u64)),
        ("resident memory", "MB", |process| process.megabytes("status", &["VmRSS:"]).expect("the process runs")),
    ] {
        rows.push(Row::new(
            format!("{when}: {what} of a supervisor"),
            unit,
            supervisors.iter().map(|one| of(*one)).collect(),
        ));
    }
    rows
}

/// The time from `from` until the last of the dead candidate's roles was led again, and until its job started.
fn again(candidates: &mut [Observed], roles: usize, orphans: usize, from: u64, whose: &str) -> [Row; 2] {
    await_true("a lead of each role again", || held(candidates) == roles && with_job(candidates) == roles);
    let led = candidates.iter().map(|candidate| candidate.led_last).max().unwrap_or_default();
    let started = candidates.iter().map(|candidate| candidate.started_last).max().unwrap_or_default();
    let of = |what: &str, at| row(format!("{orphans} of {roles} roles {whose}: {what}"), "ms", millis(from, at));
    [of("all led again", led), of("all jobs started again", started)]
}

/// A candidate, and its log events about its roles. Each event is read once, because reading all of them at each poll would cost more than
/// the measured work.
struct Observed {
    running: Running,
    read: usize,
    /// The terms of the roles that it leads.
    led: BTreeMap<u64, u64>,
    /// The terms in which a job was started.
    started: BTreeMap<u64, u64>,
    led_last: u64,
    started_last: u64,
}

impl Observed {
    fn of(running: Running) -> Self {
        Self { running, read: 0, led: BTreeMap::new(), started: BTreeMap::new(), led_last: 0, started_last: 0 }
    }

    fn read(&mut self) {
        let events = self.running.history_from(self.read);
        self.read += events.len();
        for event in events {
            let term = || (event.number("role"), event.number("term"));
            match event.name() {
                "leading" => {
                    self.led.extend([term()]);
                    self.led_last = event.at;
                }
                "job_started" => {
                    self.started.extend([term()]);
                    self.started_last = event.at;
                }
                "fenced" | "released" | "superseded" => drop(self.led.remove(&event.number("role"))),
                _ => {}
            }
        }
    }

    /// The roles that it leads, with their terms.
    fn led(&mut self) -> &BTreeMap<u64, u64> {
        self.read();
        &self.led
    }

    /// How many of the roles that it leads have a job.
    fn with_job(&mut self) -> usize {
        self.read();
        self.led.iter().filter(|(role, term)| self.started.get(role) == Some(term)).count()
    }
}

fn held(candidates: &mut [Observed]) -> usize {
    candidates.iter_mut().map(|candidate| candidate.led().len()).sum()
}

fn with_job(candidates: &mut [Observed]) -> usize {
    candidates.iter_mut().map(Observed::with_job).sum()
}

fn await_fair(candidates: &mut [Observed], roles: usize) {
    let fair = roles / candidates.len()..=roles.div_ceil(candidates.len());
    await_true("fair shares", || {
        with_job(candidates) == roles && candidates.iter_mut().all(|candidate| fair.contains(&candidate.led().len()))
    });
}

fn candidate(election: &TestElection, roles: usize) -> Candidate {
    let candidate = election.candidate().option("--roles", roles.to_string()).option("--lease", lease());
    candidate.job(["sleep", "100000"])
}

fn lease() -> String {
    format!("{}s", LEASE.as_secs())
}

fn stop(mut candidate: Running) {
    candidate.signal(Signal::SIGTERM);
    await_true("an end", || candidate.ended().is_some());
}

fn row(what: String, unit: &'static str, value: f64) -> Row {
    Row::new(what, unit, vec![value])
}

fn millis(from: u64, to: u64) -> f64 {
    number(to.saturating_sub(from)) / 1e6
}

fn await_true(what: &str, mut condition: impl FnMut() -> bool) {
    let end = wait::after(PATIENCE);
    while !condition() {
        assert!(wait::now() < end, "not within {PATIENCE:?}: {what}");
        wait::pause(LOOK);
    }
}
