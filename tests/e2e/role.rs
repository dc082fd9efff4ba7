//! `--role`: subcommands for one election of `--roles`.

use harness::candidate::{Candidate, Elector, Running};
use harness::election::TestElection;
use harness::kafka::Kafka;
use harness::schema::Schema;
use harness::wait;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::election;
use crate::roles::{are_all_led, candidate, close, led};

const PAGE: &str = include_str!("../../docs/json.md");
const ROLES: [&str; 3] = ["ingest", "bill", "report"];

fn named(election: &TestElection, name: &str) -> Candidate {
    candidate(election, &ROLES.join(",")).option("--name", name)
}

/// The JSON that a subcommand prints about a role, given by name or number; each line is checked against docs/json.md.
fn json(election: &TestElection, subcommand: &str, role: &str, arguments: &[&str]) -> Vec<Value> {
    let answer = election.ask(subcommand, &[&["--json", "--role", role], arguments].concat());
    assert_eq!(answer.errors, "", "{answer:?}");
    let schema = Schema::read(PAGE, subcommand);
    let lines = answer.text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    lines.inspect(|line| schema.assert_holds(line)).collect()
}

/// Two candidates that share the leads of the three roles, each of which knows the other as a standby of its roles.
fn pair(election: &TestElection) -> Vec<Running> {
    let candidates = vec![named(election, "first").start(), named(election, "second").start()];
    wait::until_true("a job of each role", || are_all_led(election, &candidates, &ROLES.map(str::to_owned)));
    for role in ROLES {
        wait::until_true("the hello of the one that stands by", || {
            json(election, "status", role, &[])[0]["standbys"].as_array().is_some_and(|standbys| standbys.len() == 1)
        });
    }
    candidates
}

#[test]
fn a_role_is_found_by_its_name_and_by_its_number() {
    let election = election(Elector::Log);
    let candidates = pair(&election);
    let status = &json(&election, "status", "bill", &[])[0];
    assert_eq!((&status["role"], &status["partition"], &status["state"]), (&"bill".into(), &1.into(), &"led".into()));
    assert_ne!(status["leader"]["name"], status["standbys"][0]["name"], "{status}");
    assert!(status["leader"]["hello"].is_object(), "{status}");
    let term = &status["leader"]["term"];
    assert_eq!(&json(&election, "status", "1", &[])[0]["leader"]["term"], term);
    assert_eq!(&json(&election, "history", "bill", &[]).last().expect("a term")["term"], term);
    let leader = status["leader"]["name"].as_str().unwrap_or_default();

    let answer = election.ask("status", &["--role", "bill"]);
    let head = format!("{}/bill: {leader} leads\n", election.group);
    let roles = "\nroles      ingest, bill, report; this is bill, and --role shows another\n";
    assert!(answer.text.starts_with(&head) && answer.text.ends_with(roles), "{answer:?}");
    let answer = election.ask("watch", &["--role", "bill", "--from", "start", "--until-end"]);
    assert!(answer.text.contains(&format!(" {leader} leads, term {term}\n")), "{answer:?}");
    let answer = election.ask("assert", &["--role", "bill", "--epoch", &term.to_string()]);
    assert_eq!((answer.errors.as_str(), answer.status), ("", 0));

    // Without --role it is role 0, which has a name here.
    let answer = election.ask("status", &[]);
    let head = "no leader: there is no role 0; --role says which of ingest, bill, report is meant";
    assert!(answer.text.starts_with(&format!("{}: {head}\n", election.group)), "{answer:?}");
    assert!(answer.text.ends_with("\nroles      ingest, bill, report; --role says which\n"), "{answer:?}");
    assert_eq!(answer.status, 3);
    let line = format!("{} has no role 0; --role says which of ingest, bill, report is meant", election.group);
    let commands: [(&str, &[&str], i32); 6] = [
        ("history", &[], 3),
        ("resign", &[], 3),
        ("end", &["--yes"], 3),
        ("assert", &["--epoch", "0"], 83),
        ("watch", &["--until-end"], 0),
        ("watch", &["--from", "start", "--until-end", "--json"], 0),
    ];
    for (subcommand, arguments, status) in commands {
        let answer = election.ask(subcommand, arguments);
        assert!(answer.errors.contains(&line) && answer.errors.lines().count() == 1, "{subcommand}: {answer:?}");
        assert_eq!((answer.text.as_str(), answer.status), ("", status), "{subcommand}");
    }
    for unknown in ["mail", "3"] {
        for subcommand in ["status", "watch", "history", "resign", "end"] {
            let answer = election.ask(subcommand, &["--role", unknown]);
            let group = &election.group;
            let line = format!("neli-run: --role {unknown}: {group} has no such role; it has ingest, bill, report\n");
            assert_eq!((answer.errors, answer.status), (line, 125), "{subcommand}");
        }
    }
    close(&election, candidates, &ROLES.map(str::to_owned));
}

#[test]
fn a_role_is_resigned_and_ended_independently() {
    let election = election(Elector::Group);
    let mut candidates = pair(&election);
    let of_role = |role: &str| json(&election, "status", role, &[]).remove(0);
    let before = of_role("report");
    let object = &json(&election, "resign", "report", &[])[0];
    assert_eq!((&object["outcome"], &object["role"]), (&"resigned".into(), &"report".into()), "{object}");
    assert_eq!(object["from"]["name"], before["leader"]["name"]);
    assert_ne!(object["to"]["name"], before["leader"]["name"], "{object}");
    let resigned: usize = candidates.iter().map(|candidate| candidate.count("resigned")).sum();
    assert_eq!(resigned, 1, "only the leader of this role resigned");

    // The time limit is longer than librdkafka's longest.
    let answer = election.ask("end", &["--role", "report", "--timeout", "30d"]);
    let expected =
        format!("{}/report is ended: its candidates stop its job, and exit with 0 when no other role", election.group);
    assert!(answer.text.starts_with(&expected), "{answer:?}");
    for candidate in &mut candidates {
        assert_eq!(candidate.await_event("ended").text("role"), "report");
    }
    wait::until_true("its release", || of_role("report")["state"] == "released");
    let standbys = |role| of_role(role)["standbys"].as_array().map(Vec::len);
    wait::until_true("hellos that say who has left it", || standbys("report") == Some(0));
    assert_eq!(standbys("bill"), Some(1));
    assert_eq!((of_role("ingest")["state"].as_str(), of_role("bill")["state"].as_str()), (Some("led"), Some("led")));
    close(&election, candidates, &ROLES.map(str::to_owned));
}

/// All candidates together may lead fewer roles than there are. Then `status` of the role without a leader explains that.
#[test]
fn the_status_of_a_role_that_no_candidate_may_lead_explains_that() {
    let election = election(Elector::Log);
    let start = |name| named(&election, name).option("--max-roles", "1").start();
    let mut candidates = vec![start("first"), start("second")];
    let states = || ROLES.map(|role| json(&election, "status", role, &[]).remove(0));
    wait::until_true("two leads", || candidates.iter().map(|candidate| led(candidate).len()).sum::<usize>() == 2);
    let vacant = wait::until("two of three roles that are led", || {
        let states = states();
        let led = states.iter().filter(|state| state["state"] == "led").count();
        let all_have_hellos = |state: &&Value| state["standbys"].as_array().is_some_and(|standbys| standbys.len() == 2);
        states.iter().find(all_have_hellos).filter(|_| led == 2).cloned()
    });
    let why =
        "no leader: nobody has ever led; nobody has room for it: 2 candidates may lead 2 of 3 roles (--max-roles 1)";
    assert_eq!(vacant["why"], why, "{vacant}");
    assert_eq!(vacant["standbys"][0]["max_roles"], 1);
    let role = vacant["role"].as_str().unwrap_or_default().to_owned();
    let answer = election.ask("status", &["--role", &role]);
    assert!(answer.text.starts_with(&format!("{}/{role}: {why}\n", election.group)), "{answer:?}");
    assert_eq!(answer.status, 3);

    candidates.push(start("third"));
    wait::until_true("every candidate led a role", || states().iter().all(|state| state["state"] == "led"));
    close(&election, candidates, &ROLES.map(str::to_owned));
}

/// A candidate with many roles is killed while it leads some of them: it stands by for no other either. Each role has a partition of its own here,
/// so the releases of its terms are not in the partitions of the other roles, which `status` and `resign` read.
#[test]
fn a_killed_candidate_is_no_standby_of_any_role() {
    let election = election(Elector::Log);
    let mut candidates = pair(&election);
    wait::until_true("a share of the roles for each", || candidates.iter().all(|candidate| !led(candidate).is_empty()));
    let killed = candidates.remove(0);
    let leads = led(&killed);
    let other = ROLES.into_iter().find(|role| !leads.contains_key(*role)).expect("the other candidate leads a role");
    killed.signal(Signal::SIGKILL);
    wait::until_true("a lead of each role elsewhere", || led(&candidates[0]).len() == ROLES.len());
    wait::until_true("no standby", || json(&election, "status", other, &[])[0]["standbys"] == Value::Array(Vec::new()));
    let answer = election.ask("resign", &["--role", other]);
    assert_eq!(answer.status, 2, "{answer:?}");
    candidates.push(killed);
    close(&election, candidates, &ROLES.map(str::to_owned));
}

/// No candidate has sent a hello: a role's number gives its partition, a name does not.
#[test]
fn a_topic_without_hellos() {
    let election = election(Elector::Log);
    Kafka::shared().create_topic(&election.topic(), &[]);
    let status = &json(&election, "status", "7", &[])[0];
    assert_eq!(
        (&status["role"], &status["partition"], &status["state"]),
        (&"7".into(), &0.into(), &"never-led".into())
    );
    let answer = election.ask("status", &["--role", "bill"]);
    let line = format!("neli-run: --role bill: no candidate of {} has said in topic ", election.group);
    assert!(answer.errors.starts_with(&line) && answer.errors.lines().count() == 1, "{answer:?}");
    assert_eq!(answer.status, 125);
}
