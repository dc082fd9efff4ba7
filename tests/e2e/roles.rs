//! Several elections in one process: `--roles`.

use std::collections::{BTreeMap, BTreeSet};

use harness::candidate::{Candidate, Elector, Running};
use harness::election::TestElection;
use harness::process::WITHOUT_INHERITED;
use harness::wait;
use harness::witness::{Event, Testimony};
use nix::sys::signal::Signal;

use crate::{election, with_both_electors};

/// A candidate for these roles. The witnesses of each role write to a file per role, because terms of two roles may have the same number.
pub(crate) fn candidate(election: &TestElection, roles: &str) -> Candidate {
    let mut words = vec!["sh".into(), "-c".into(), "exec \"$0\" \"$1.$NELI_ROLE\"".into()];
    words.extend(election.witness().command());
    election.candidate().option("--roles", roles).job(words)
}

/// The names of the roles if `--roles` is a number.
pub(crate) fn numbers(roles: usize) -> Vec<String> {
    (0..roles).map(|role| role.to_string()).collect()
}

/// The role of a log line: its number or its name.
pub(crate) fn role_of(event: &harness::candidate::Event) -> String {
    event.fields["role"].as_u64().map_or_else(|| event.text("role").to_owned(), |number| number.to_string())
}

/// The roles that a candidate leads according to its log, each with the last term.
pub(crate) fn led(candidate: &Running) -> BTreeMap<String, u64> {
    let mut led = BTreeMap::new();
    for event in candidate.history() {
        match event.name() {
            "leading" => drop(led.insert(role_of(&event), event.number("term"))),
            "fenced" | "released" | "superseded" => drop(led.remove(&role_of(&event))),
            _ => {}
        }
    }
    led
}

/// Whether each role is led by one of them, and its job writes with that term.
pub(crate) fn are_all_led(election: &TestElection, candidates: &[Running], roles: &[String]) -> bool {
    let terms: Vec<BTreeMap<String, u64>> = candidates.iter().map(led).collect();
    roles.iter().all(|role| {
        let term = terms.iter().filter_map(|led| led.get(role)).max();
        term.is_some_and(|term| testimony(election, role).of(*term).any(|line| line.event == Event::Beat))
    })
}

/// Ends all candidates: no job is left, and no two of one role ever ran at the same time.
pub(crate) fn close(election: &TestElection, candidates: Vec<Running>, roles: &[String]) {
    election.close(candidates);
    for role in roles {
        let testimony = testimony(election, role);
        assert!(testimony.alive(None).is_empty(), "role {role}: orphans");
        assert!(testimony.overlaps().is_empty(), "role {role}: {:?}", testimony.overlaps());
    }
}

/// The first and last line of each run of a role, in order. A term in one partition may have the same number as one in another.
pub(crate) fn runs(election: &TestElection, role: &str) -> Vec<(u64, u64)> {
    let mut runs: BTreeMap<i32, (u64, u64)> = BTreeMap::new();
    for line in testimony(election, role).lines {
        let (first, last) = runs.entry(line.pid).or_insert((line.at, line.at));
        (*first, *last) = (line.at.min(*first), line.at.max(*last));
    }
    let mut runs: Vec<(u64, u64)> = runs.into_values().collect();
    runs.sort_unstable();
    runs
}

fn testimony(election: &TestElection, role: &str) -> Testimony {
    Testimony::read(&election.directory().join(format!("witness.{role}")))
}

with_both_electors! {
    /// Each role is led by one of two candidates, and its job has the role in its environment.
    fn each_role_is_led_by_one(elector) {
        let election = election(elector);
        let roles = numbers(3);
        let candidates = vec![candidate(&election, "3").start(), candidate(&election, "3").start()];
        wait::until_true("a job of each role", || are_all_led(&election, &candidates, &roles));
        close(&election, candidates, &roles);
    }

    /// A role is not handed to a candidate that no longer stands for it: nobody would lead it for two leases.
    fn roles_whose_jobs_end_are_handed_to_none_that_has_left_them(elector) {
        let election = election(elector);
        let worker = || election.candidate().option("--roles", "3").option("--restart", "no").lease("50s");
        let mut candidates = [(); 2].map(|()| worker().job(["sleep", "2"]).start());
        for candidate in &mut candidates {
            assert_eq!(candidate.status(), 0);
        }
    }

    /// One of a killed supervisor's guards releases the terms of all of them, so that no role waits for the lease's end.
    fn the_roles_of_a_killed_supervisor_are_released(elector) {
        let election = election(elector);
        let roles = numbers(8);
        let patient = || candidate(&election, "8").option("--spread", "no").lease("50s");
        let first = patient().start();
        wait::until_true("a job of each role", || are_all_led(&election, std::slice::from_ref(&first), &roles));
        let second = patient().start();
        wait::until_true("a standby for each role", || second.count("standby") >= roles.len());
        first.signal(Signal::SIGKILL);
        // This is less time than the lease.
        wait::until_true("a lead of each role elsewhere", || led(&second).len() == roles.len());
        close(&election, vec![first, second], &roles);
    }
}

/// With more roles than partitions, several elections share a partition.
#[test]
fn roles_share_a_partition() {
    let election = election(Elector::Log);
    let mut first = candidate(&election, "2").start();
    first.await_event("topic_created");
    wait::until_true("a lead of both", || led(&first).len() == 2);
    first.signal(Signal::SIGTERM);
    first.status();
    let roles = numbers(7);
    let candidates = vec![candidate(&election, "7").start(), candidate(&election, "7").start()];
    wait::until_true("a job of each role", || are_all_led(&election, &candidates, &roles));
    close(&election, candidates, &roles);
}

/// Named roles: the job gets the name of its role, and all names as they were given.
#[test]
fn roles_have_names() {
    let election = election(Elector::Log);
    let job = ["sh", "-c", "echo \"$NELI_ROLE of $NELI_ROLES\" >&2; exec sleep 1000"];
    let mut candidate = election.candidate().option("--roles", "ingest,bill").job(job).start();
    wait::until_true("a line of each job", || {
        let lines: BTreeSet<String> = candidate.strange_lines().into_iter().collect();
        lines == BTreeSet::from(["ingest of ingest,bill".to_owned(), "bill of ingest,bill".to_owned()])
    });
    candidate.signal(Signal::SIGTERM);
    assert_eq!(candidate.status(), 143);
    election.close([candidate]);
}

/// The job of one role has ended with 0 and the other role had none, so 143 is the highest status.
#[test]
fn a_stop_has_the_status_of_a_role_without_a_job() {
    let election = election(Elector::Log);
    let job = ["sh", "-c", "trap 'exit 0' TERM; echo ready >&2; while :; do sleep 0.01; done"];
    let mut candidate = election.candidate().option("--roles", "2").option("--max-roles", "1").job(job).start();
    wait::until_true("a job", || !candidate.strange_lines().is_empty());
    candidate.signal(Signal::SIGTERM);
    assert_eq!(candidate.status(), 143);
    let exiting = candidate.await_event("exiting");
    assert_eq!(exiting.text("why"), "stopped by SIGTERM");
}

/// SIGQUIT, with which a job may show its threads. The role without a job would have no leader after the next handover.
#[test]
fn a_signal_for_the_jobs_stops_no_role_without_one() {
    let election = election(Elector::Log);
    let job = ["sh", "-c", "trap 'echo dump >&2' QUIT; echo ready >&2; while :; do sleep 0.01; done"];
    let roles = || election.candidate().option("--roles", "2").job(job).start();
    let (first, mut second) = (roles(), roles());
    let has_said = |run: &Running, word: &str| run.strange_lines().iter().any(|line| line == word);
    let leads_one = |run: &Running| led(run).len() == 1 && has_said(run, "ready");
    wait::until_true("a role each", || leads_one(&first) && leads_one(&second));
    first.signal(Signal::SIGQUIT);
    wait::until_true("the signal at its job", || has_said(&first, "dump"));
    second.signal(Signal::SIGTERM);
    second.status();
    wait::until_true("a lead of both", || led(&first).len() == 2);
    election.close([first, second]);
}

/// Of a candidate with roles and one without the later one exits, names the other, and has not started a job. Named roles have other elections
/// than the candidate without any.
#[test]
fn a_candidate_with_roles_and_one_without_do_not_stand_side_by_side() {
    for roles in ["3", "ingest,bill"] {
        let election = election(Elector::Log);
        let with = || candidate(&election, roles).option("--name", "with");
        let without = || election.candidate().option("--name", "without");
        let refused = |mut later: Running, named: &str| {
            assert_eq!((later.status(), later.count("job_started"), later.count("leading")), (125, 0, 0), "{later:?}");
            let why = later.await_event("error").text("message").to_owned();
            assert!(why.contains(named) && why.contains("all its candidates need the same --roles, or none"), "{why}");
        };
        let first = with().start();
        wait::until_true("a lead", || !led(&first).is_empty());
        refused(without().start(), &format!("no --roles, and with stands in this group with --roles {roles} on "));
        // It said hello before, and then that it leaves: as a standby for an election without roles it would be listed.
        let listed = election.ask("list", &["--json"]).text;
        assert!(roles == "3" || !listed.contains(r#""role":"0""#), "{listed}");
        election.close([first]);

        let mut first = without().start();
        election.await_witness(first.await_lead());
        refused(with().start(), ", and without stands in this group with no --roles: ");
        election.close([first]);
    }
}

/// With `--restart no`, a role whose job has ended is left to others; the process exits after the last one, with the highest status.
#[test]
fn a_candidate_stands_no_longer_for_a_role_whose_job_has_ended() {
    let election = election(Elector::Log);
    let job = ["sh", "-c", "exit $((NELI_ROLE + 3))"];
    let mut candidate = election.candidate().option("--roles", "3").option("--restart", "no").job(job).start();
    assert_eq!(candidate.status(), 5);
    let started: BTreeSet<String> = candidate.events("job_started").iter().map(role_of).collect();
    assert_eq!((candidate.count("job_started"), started), (3, numbers(3).into_iter().collect()));
    election.close([candidate]);
}

/// With roles a job that ends is run again by the same candidate: `--restart` defaults to `always`.
#[test]
fn a_job_that_ends_is_run_again() {
    let election = election(Elector::Log);
    let candidate = election.candidate().option("--roles", "2").option("--restart-delay", "10ms").job(["true"]).start();
    wait::until_true("a second run of both", || {
        let runs: Vec<String> = candidate.events("job_started").iter().map(role_of).collect();
        numbers(2).iter().all(|role| runs.iter().filter(|run| *run == role).count() >= 2)
    });
    let runs = candidate.events("job_started");
    assert!(runs.iter().all(|run| run.number("attempt") == 1), "a run after a success is no further attempt: {runs:?}");
    election.close([candidate]);
}

/// A role that another candidate leads has no guard here: a guard is started with the next claim.
#[test]
fn a_role_that_is_led_elsewhere_has_no_guard_here() {
    let election = election(Elector::Log);
    let roles = numbers(4);
    let candidates = vec![candidate(&election, "4").start(), candidate(&election, "4").start()];
    wait::until_true("as many guards as roles that are led", || {
        are_all_led(&election, &candidates, &roles)
            && candidates.iter().all(|candidate| {
                let children = candidate.process().children();
                let guards = children.iter().filter(|child| child.name().as_deref() == Some("neli-guard")).count();
                guards == led(candidate).len() && guards == 2
            })
    });
    close(&election, candidates, &roles);
}

/// A process that stands by for many roles has no more threads, connections and descriptors than one that stands by for two.
#[test]
fn a_role_that_is_led_elsewhere_costs_no_thread_and_no_connection() {
    let [of_two, of_many] = [2, 40].map(|roles| {
        let election = election(Elector::Group);
        let start = || {
            let candidate = election.candidate().option("--roles", roles.to_string()).option("--spread", "no");
            candidate.job(["sleep", "1000"]).start()
        };
        let leader = start();
        wait::until_true("a lead of each role", || led(&leader).len() == roles);
        let standby = start();
        wait::until_true("a standby for each role", || standby.count("standby") >= roles);
        (election, leader, standby)
    });
    let needed = |standby: &Running| {
        let process = standby.process();
        process.threads().map(|threads| threads + process.connections() + process.descriptors().len())
    };
    // At the start there are some more for a moment. After a question without an answer, librdkafka may have one more thread with four
    // descriptors for its address of the broker, for some minutes. 38 more roles with a thread, a connection or a descriptor each would be
    // more than that.
    wait::until_true("few more for many roles than for two", || {
        let (two, many) = (needed(&of_two.2), needed(&of_many.2));
        two.zip(many).is_some_and(|(two, many)| many < two + 38) && of_two.2.process().connections() <= 5
    });
    for (election, leader, standby) in [of_two, of_many] {
        assert_eq!(standby.count("leading"), 0, "{standby:?}");
        election.close([standby, leader]);
    }
}

/// When many roles are claimed at once, most guards must wait for their start. A stop then releases each role.
#[test]
fn a_stop_while_guards_wait_releases_each_role() {
    let election = election(Elector::Log);
    let roles = numbers(40);
    let mut candidate = candidate(&election, "40").start();
    wait::until_true("a first lead", || candidate.count("leading") > 0);
    candidate.signal(Signal::SIGTERM);
    candidate.status();
    assert_eq!((candidate.count("released"), candidate.count("fenced")), (candidate.count("claiming"), 0));
    close(&election, vec![candidate], &roles);
}

/// While the processes of one dead guard are killed, other guards die as well: the death of each is noticed, and each role is led again.
#[test]
fn the_guards_of_all_roles_die_at_once() {
    let election = election(Elector::Log);
    let roles = numbers(12);
    let candidate = candidate(&election, "12").lease("50s").start();
    wait::until_true("a job of each role", || are_all_led(&election, std::slice::from_ref(&candidate), &roles));
    let ended = led(&candidate);
    let children = candidate.process().children();
    let guards = children.into_iter().filter(|child| child.name().as_deref() == Some("neli-guard"));
    guards.for_each(|guard| guard.signal(Signal::SIGKILL));
    // This is less time than the lease. A role's term may still be in the log as led when the loss of its guard is.
    let lost = || candidate.events("guard_lost").iter().map(role_of).collect::<BTreeSet<_>>();
    wait::until_true("the loss of each guard", || lost().len() == roles.len());
    wait::until_true("a new term of each role", || {
        led(&candidate).iter().filter(|(role, term)| ended.get(*role) != Some(*term)).count() == roles.len()
    });
    wait::until_true("a job of each role", || are_all_led(&election, std::slice::from_ref(&candidate), &roles));
    close(&election, vec![candidate], &roles);
}

/// The soft limit of open files is for programs that can't have many. `neli-run` raises its own, and its jobs keep it.
#[test]
fn a_low_soft_limit_of_open_files_limits_the_jobs_alone() {
    let (election, roles) = (election(Elector::Log), numbers(30));
    let job = ["sh", "-c", "echo \"$(ulimit -Sn) of $(ulimit -Hn)\" >&2; exec sleep 1000"];
    let candidate = election.candidate().option("--roles", "30").job(job);
    let candidate = candidate.start_behind(&["prlimit", "--nofile=50:1000", "--"]);
    wait::until_true("a line of each job", || candidate.strange_lines().len() == roles.len());
    assert_eq!(candidate.strange_lines(), vec!["50 of 1000"; roles.len()]);
    // On a busy machine it may not run for a while.
    let mut warnings = candidate.warnings_with("");
    warnings.retain(|warning| !warning.contains("did not run for"));
    assert_eq!((led(&candidate).len(), warnings), (30, Vec::new()));
    election.close([candidate]);
}

/// A candidate leads only as many roles as its limit of open files allows. Otherwise it would end at the first guard that it could not start, and
/// so would the jobs of all its roles.
#[test]
fn a_low_limit_of_open_files_limits_the_roles_that_are_led() {
    let (election, roles) = (election(Elector::Log), numbers(30));
    let limit = [&WITHOUT_INHERITED[..], &["prlimit", "--nofile=248:248", "--"]].concat();
    let limited = candidate(&election, "30").start_behind(&limit);
    wait::until_true("all roles that it has files for", || led(&limited).len() == 12);
    let warns = "248 open files (ulimit -n, LimitNOFILE=) are enough to lead 12 roles";
    assert!(limited.events("warning").iter().any(|event| event.text("message").starts_with(warns)));
    let candidates = vec![limited, candidate(&election, "30").start()];
    wait::until_true("all roles", || are_all_led(&election, &candidates, &roles));
    assert_eq!(led(&candidates[0]).len(), 12);
    close(&election, candidates, &roles);
}
