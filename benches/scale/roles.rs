//! Many roles on three candidates: what a role costs, and how soon those of a dead candidate are led again.

use std::collections::BTreeMap;
use std::time::Duration;

use harness::candidate::{Candidate, Elector, Running};
use harness::figures::Row;
use harness::kafka::Broker;
use harness::process::Process;
use harness::stage::Stage;
use harness::wait;
use nix::sys::signal::Signal;

use crate::meter::{self, number};
use crate::{Arguments, PROGRAM};

/// How many candidates share the roles.
const CANDIDATES: usize = 3;
/// So long that no lease ends on a busy machine before its time.
const LEASE: Duration = Duration::from_secs(10);
/// How long all is left alone before it counts as settled.
const SETTLED: Duration = Duration::from_secs(5);
/// What a thousand roles may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often they are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// The rows of so many roles.
pub(crate) fn measure(broker: &Broker, elector: Elector, arguments: &Arguments) -> Vec<Row> {
    let roles = arguments.roles;
    let stage = Stage::new(PROGRAM, &broker.kafka(), elector);
    let began = wait::now();
    let mut candidates = vec![candidate(&stage, roles).start()];
    await_true("a lead of each role", || held(&candidates) == roles);
    let mut rows = vec![row(format!("{roles} roles, start to all led by one"), "ms", millis(began, wait::now()))];
    // Before there are shares: it leads nothing, so that what it costs is what standing by costs.
    let standby = candidate(&stage, roles).option("--max-roles", "1").start();
    rows.extend(standing_by(&stage, &standby, roles));
    stop(standby);

    let began = wait::now();
    candidates.extend((1..CANDIDATES).map(|_| candidate(&stage, roles).start()));
    await_fair(&candidates, roles);
    rows.push(row(format!("{roles} roles, start of two more to fair shares"), "s", millis(began, wait::now()) / 1e3));
    wait::pause(SETTLED);
    rows.extend(idle(broker, &candidates, roles, arguments.seconds));

    // The supervisor is killed: each guard releases for it.
    let dead = candidates.swap_remove(0);
    let orphans = led(&dead).len();
    dead.signal(Signal::SIGKILL);
    let killed = wait::now();
    rows.push(again(&candidates, roles, orphans, killed, "of a killed supervisor"));
    drop(dead);

    // All of its processes are killed, as with its machine: the others know when its lease is over.
    candidates.push(candidate(&stage, roles).start());
    await_fair(&candidates, roles);
    wait::pause(SETTLED);
    let dead = candidates.swap_remove(0);
    let orphans = led(&dead).len();
    let mut family = vec![dead.process()];
    family.extend(dead.process().descendants());
    for process in family {
        process.signal(Signal::SIGKILL);
    }
    let known =
        wait::now() + u64::try_from((LEASE.mul_f64(1.01) + Duration::from_millis(10)).as_nanos()).expect("seconds");
    rows.push(again(&candidates, roles, orphans, known, "of a dead machine, from the end of its lease on"));
    drop(dead);
    candidates.into_iter().for_each(stop);
    rows
}

/// What a process costs that stands by for so many roles, beside one that stands by for one.
fn standing_by(stage: &Stage, standby: &Running, roles: usize) -> Vec<Row> {
    await_true("a standby in nearly all", || standby.count("standby") + 1 >= roles);
    let single = stage.candidate().option("--lease", lease()).job(["sleep", "100000"]);
    let single = single.option("--topic", format!("{}.single", stage.topic())).start();
    await_true("one of one role", || single.count("leading") > 0);
    wait::pause(SETTLED);
    let private =
        |process: Process| process.megabytes("smaps_rollup", &["Private_Clean:", "Private_Dirty:"]).expect("it runs");
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
            number(standby.process().threads().expect("it runs") as u64),
        ),
    ]
}

/// What three candidates cost that lead a third of the roles each.
fn idle(broker: &Broker, candidates: &[Running], roles: usize, seconds: u64) -> Vec<Row> {
    let supervisors: Vec<Process> = candidates.iter().map(Running::process).collect();
    let is_guard = |process: &Process| process.name().as_deref() == Some("neli-guard");
    let guards: Vec<Process> = supervisors.iter().flat_map(|process| process.children()).filter(is_guard).collect();
    let when = format!("{roles} roles on {}", candidates.len());
    let cost = meter::cost(broker, &[&supervisors, &guards], seconds);
    let mut rows = cost.rows(&when, &["a supervisor (mean)", "a guard (mean)"]);
    for (what, unit, of) in [
        ("connections", "", (|process: Process| number(process.connections() as u64)) as fn(Process) -> f64),
        ("threads", "", |process| number(process.threads().expect("it runs") as u64)),
        ("descriptors", "", |process| number(process.descriptors().len() as u64)),
        ("resident memory", "MB", |process| process.megabytes("status", &["VmRSS:"]).expect("it runs")),
    ] {
        rows.push(Row::new(
            format!("{when}: {what} of a supervisor"),
            unit,
            supervisors.iter().map(|one| of(*one)).collect(),
        ));
    }
    rows
}

/// How long after `from` the last of the dead one's roles was led again, and its job started.
fn again(candidates: &[Running], roles: usize, orphans: usize, from: u64, whose: &str) -> Row {
    await_true("a lead of each role again", || held(candidates) == roles && started(candidates) >= roles);
    let last = candidates.iter().flat_map(|candidate| candidate.events("job_started")).map(|event| event.at).max();
    let last = last.expect("they run");
    row(format!("{orphans} of {roles} roles {whose}: all jobs started again"), "ms", millis(from, last))
}

/// The roles that a candidate leads, by its log.
fn led(candidate: &Running) -> BTreeMap<u64, u64> {
    let mut led = BTreeMap::new();
    for event in candidate.history() {
        match event.name() {
            "leading" => drop(led.insert(event.number("role"), event.number("term"))),
            "fenced" | "released" | "superseded" => drop(led.remove(&event.number("role"))),
            _ => {}
        }
    }
    led
}

fn held(candidates: &[Running]) -> usize {
    candidates.iter().map(|candidate| led(candidate).len()).sum()
}

/// How many of the roles that they lead have a job.
fn started(candidates: &[Running]) -> usize {
    let runs = |candidate: &Running| {
        let terms = led(candidate);
        let started = candidate.events("job_started");
        let current = started.iter().filter(|event| terms.get(&event.number("role")) == Some(&event.number("term")));
        current.count()
    };
    candidates.iter().map(runs).sum()
}

fn await_fair(candidates: &[Running], roles: usize) {
    let fair = roles / candidates.len()..=roles.div_ceil(candidates.len());
    await_true("fair shares", || {
        started(candidates) >= roles && candidates.iter().all(|candidate| fair.contains(&led(candidate).len()))
    });
}

fn candidate(stage: &Stage, roles: usize) -> Candidate {
    let candidate = stage.candidate().option("--roles", roles.to_string()).option("--lease", lease());
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
        assert!(wait::now() < end, "waited {PATIENCE:?} in vain: {what}");
        wait::pause(LOOK);
    }
}
