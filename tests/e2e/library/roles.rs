//! Many roles on a real Kafka, shared by a process with the library and `neli-run --roles`.

use std::collections::BTreeMap;
use std::fs::File;
use std::time::Duration;

use harness::candidate::{Elector, Running};
use harness::election::TestElection;
use harness::kafka::Kafka;
use harness::wait::PATIENCE;
use harness::with_both_electors;
use harness::witness::Testimony;
use neli_election::{Election, Roles};
use serde_json::Value;

use super::follower::{led, until};
use super::worker::act;
use super::{candidate, run, soon, test_election};

const ROLES: [&str; 4] = ["bill", "ingest", "report", "send"];

/// How many roles the program leads according to its log.
fn led_by(program: &Running) -> usize {
    let mut led: BTreeMap<String, bool> = BTreeMap::new();
    for event in program.history() {
        match event.name() {
            "leading" => drop(led.insert(event.text("role").to_owned(), true)),
            "fenced" | "released" | "superseded" => drop(led.insert(event.text("role").to_owned(), false)),
            _ => {}
        }
    }
    led.values().filter(|is_led| **is_led).count()
}

fn led_here(roles: &Roles) -> usize {
    roles.iter().filter(|(_, election)| election.leader().is_some_and(|leader| leader.is_self)).count()
}

async fn until_true(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        let mut times = tokio::time::interval(Duration::from_millis(20));
        while !is_so() {
            times.tick().await;
        }
    };
    soon(what, PATIENCE, wait).await;
}

with_both_electors! {
    /// Each process leads its share, two never act for one role at the same time, and the other process leads the roles that one
    /// leaves. The tasks ignore the end of their lead, and are dropped at the stop timeout.
    fn a_library_process_and_neli_run_share_the_roles(elector) {
        let test_election = test_election(elector);
        let file = |role: &str| test_election.directory().join(format!("witness.{role}"));
        let mut job = vec!["sh".into(), "-c".into(), "exec \"$0\" \"$1.$NELI_ROLE\"".into()];
        job.extend(test_election.witness().command());
        let program = test_election.candidate().option("--roles", ROLES.join(",")).job(job).start();
        run(async {
            let builder = candidate(&test_election).stop_timeout(Duration::from_millis(100));
            let roles = builder.named_roles(ROLES).join_roles().await.expect("the candidate joins");
            let mut served = Vec::new();
            for (role, election) in roles.iter() {
                let file = File::options().create(true).append(true).open(file(role)).expect("a file");
                let election = election.clone();
                served.push(tokio::spawn(async move { election.serve(|lease| act(&file, lease)).await }));
            }
            until_true("a fair share for both", || led_here(&roles) == 2 && led_by(&program) == 2).await;
            let builder = Election::builder(&test_election.group).brokers(Kafka::shared().address());
            let followers = builder.named_roles(ROLES).follow_roles().expect("the follower starts");
            for (role, follower) in &followers {
                until(role, &mut follower.clone(), led).await;
            }
            roles.leave().await;
            for served in served {
                assert_eq!(served.await.expect("no panic"), Ok(()));
            }
            until_true("all roles for the program", || led_by(&program) == ROLES.len()).await;
        });
        test_election.close([program]);
        for role in ROLES {
            let testimony = Testimony::read(&file(role));
            assert!(testimony.overlaps().is_empty(), "role {role}: {:?}", testimony.overlaps());
        }
    }
}

/// The release of each role says so if the process leaves all of them: to a process that has left one role, others hand further roles while
/// it leaves them, and these have no leader for two leases.
#[test]
fn a_process_that_leaves_all_roles_says_so_in_each_release() {
    let test_election = test_election(Elector::Log);
    run(async {
        let roles = candidate(&test_election).named_roles(ROLES).join_roles().await.expect("the candidate joins");
        until_true("a lead of each role", || led_here(&roles) == ROLES.len()).await;
        roles.leave().await;
    });
    assert_each_release_says_departed(&test_election);
}

/// The same without `leave`.
#[test]
fn a_process_that_drops_all_roles_says_so_in_each_release() {
    let test_election = test_election(Elector::Log);
    run(async {
        let roles = candidate(&test_election).named_roles(ROLES).join_roles().await.expect("the candidate joins");
        until_true("a lead of each role", || led_here(&roles) == ROLES.len()).await;
        let mut events = roles.events();
        drop(roles);
        let end = async { while events.next().await.is_some() {} };
        soon("the end of the events", PATIENCE, end).await;
    });
    assert_each_release_says_departed(&test_election);
}

fn assert_each_release_says_departed(test_election: &TestElection) {
    for role in ROLES {
        let answer = test_election.ask("watch", &["--role", role, "--from", "start", "--until-end", "--json"]);
        let lines = answer.text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
        let releases: Vec<Value> = lines.filter(|line| line["record"]["kind"] == "release").collect();
        let whys: Vec<_> = releases.iter().map(|line| line["record"]["why"].as_str()).collect();
        assert_eq!(whys, [Some("departed")], "role {role}: {releases:?}");
        assert!(releases[0]["record"]["exit"].is_null(), "a task has no exit status: {releases:?}");
    }
}
