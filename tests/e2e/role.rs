//! `--role`: one election of `--roles`, as it is looked at and steered.

use harness::candidate::{Candidate, Elector, Running};
use harness::kafka::Kafka;
use harness::schema::Schema;
use harness::stage::Stage;
use harness::wait;
use serde_json::Value;

use crate::roles::{are_all_led, candidate, close, led};
use crate::stage;

const PAGE: &str = include_str!("../../docs/json.md");
const ROLES: [&str; 3] = ["ingest", "bill", "report"];

fn named(stage: &Stage, name: &str) -> Candidate {
    candidate(stage, &ROLES.join(",")).option("--name", name)
}

/// What a subcommand prints as JSON about the role of this name or number; each line is as docs/json.md says.
fn json(stage: &Stage, subcommand: &str, role: &str, arguments: &[&str]) -> Vec<Value> {
    let answer = stage.ask(subcommand, &[&["--json", "--role", role], arguments].concat());
    assert_eq!(answer.errors, "", "{answer:?}");
    let schema = Schema::read(PAGE, subcommand);
    let lines = answer.text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    lines.inspect(|line| schema.assert_holds(line)).collect()
}

/// Two candidates that lead the three roles between them, of whom each says of each role that the other stands by.
fn pair(stage: &Stage) -> Vec<Running> {
    let candidates = vec![named(stage, "first").start(), named(stage, "second").start()];
    wait::until_true("a job of each role", || are_all_led(stage, &candidates, &ROLES.map(str::to_owned)));
    for role in ROLES {
        wait::until_true("the hello of the one that stands by", || {
            json(stage, "status", role, &[])[0]["standbys"].as_array().is_some_and(|standbys| standbys.len() == 1)
        });
    }
    candidates
}

#[test]
fn a_role_is_seen_by_its_name_and_by_its_number() {
    let stage = stage(Elector::Log);
    let candidates = pair(&stage);
    let status = &json(&stage, "status", "bill", &[])[0];
    assert_eq!((&status["role"], &status["partition"], &status["state"]), (&"bill".into(), &1.into(), &"led".into()));
    assert_ne!(status["leader"]["name"], status["standbys"][0]["name"], "{status}");
    assert!(status["leader"]["hello"].is_object(), "{status}");
    let term = &status["leader"]["term"];
    assert_eq!(&json(&stage, "status", "1", &[])[0]["leader"]["term"], term);
    assert_eq!(&json(&stage, "history", "bill", &[]).last().expect("a term")["term"], term);
    let leader = status["leader"]["name"].as_str().unwrap_or_default();

    let answer = stage.ask("status", &["--role", "bill"]);
    let head = format!("{}/bill: {leader} leads\n", stage.group);
    let roles = "\nroles      ingest, bill, report; this is bill, and --role shows another\n";
    assert!(answer.text.starts_with(&head) && answer.text.ends_with(roles), "{answer:?}");
    let answer = stage.ask("watch", &["--role", "bill", "--from", "start", "--until-end"]);
    assert!(answer.text.contains(&format!(" {leader} leads, term {term}\n")), "{answer:?}");
    let answer = stage.ask("assert", &["--role", "bill", "--epoch", &term.to_string()]);
    assert_eq!((answer.errors.as_str(), answer.status), ("", 0));

    // Without --role it is role 0, which has another name here.
    let answer = stage.ask("status", &[]);
    let head = "no leader: there is no role 0; --role says which of ingest, bill, report is meant";
    assert!(answer.text.starts_with(&format!("{}: {head}\n", stage.group)), "{answer:?}");
    assert!(answer.text.ends_with("\nroles      ingest, bill, report; --role says which\n"), "{answer:?}");
    assert_eq!(answer.status, 3);
    for unknown in ["mail", "3"] {
        for subcommand in ["status", "watch", "history", "resign", "end"] {
            let answer = stage.ask(subcommand, &["--role", unknown]);
            let group = &stage.group;
            let line = format!("neli-run: --role {unknown}: {group} has no such role; it has ingest, bill, report\n");
            assert_eq!((answer.errors, answer.status), (line, 125), "{subcommand}");
        }
    }
    close(&stage, candidates, &ROLES.map(str::to_owned));
}

#[test]
fn a_role_is_resigned_and_ended_by_itself() {
    let stage = stage(Elector::Group);
    let mut candidates = pair(&stage);
    let of_role = |role: &str| json(&stage, "status", role, &[]).remove(0);
    let before = of_role("report");
    let object = &json(&stage, "resign", "report", &[])[0];
    assert_eq!((&object["outcome"], &object["role"]), (&"resigned".into(), &"report".into()), "{object}");
    assert_eq!(object["from"]["name"], before["leader"]["name"]);
    assert_ne!(object["to"]["name"], before["leader"]["name"], "{object}");
    let resigned: usize = candidates.iter().map(|candidate| candidate.count("resigned")).sum();
    assert_eq!(resigned, 1, "of one role alone");

    let answer = stage.ask("end", &["--role", "report"]);
    let expected =
        format!("{}/report is ended: its candidates stop its job, and exit with 0 when no other role", stage.group);
    assert!(answer.text.starts_with(&expected), "{answer:?}");
    for candidate in &mut candidates {
        assert_eq!(candidate.await_event("ended").text("role"), "report");
    }
    wait::until_true("its release", || of_role("report")["state"] == "released");
    assert_eq!((of_role("ingest")["state"].as_str(), of_role("bill")["state"].as_str()), (Some("led"), Some("led")));
    close(&stage, candidates, &ROLES.map(str::to_owned));
}

/// All candidates together may lead fewer roles than there are: the one that nobody leads says why.
#[test]
fn a_role_that_nobody_has_room_for_says_so() {
    let stage = stage(Elector::Log);
    let start = |name| named(&stage, name).option("--max-roles", "1").start();
    let mut candidates = vec![start("first"), start("second")];
    let states = || ROLES.map(|role| json(&stage, "status", role, &[]).remove(0));
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
    let answer = stage.ask("status", &["--role", &role]);
    assert!(answer.text.starts_with(&format!("{}/{role}: {why}\n", stage.group)), "{answer:?}");
    assert_eq!(answer.status, 3);

    candidates.push(start("third"));
    wait::until_true("all of them led", || states().iter().all(|state| state["state"] == "led"));
    close(&stage, candidates, &ROLES.map(str::to_owned));
}

/// Nobody has said hello: a number tells its partition by itself, and a name does not.
#[test]
fn a_topic_without_hellos() {
    let stage = stage(Elector::Log);
    Kafka::shared().create_topic(&stage.topic(), &[]);
    let status = &json(&stage, "status", "7", &[])[0];
    assert_eq!(
        (&status["role"], &status["partition"], &status["state"]),
        (&"7".into(), &0.into(), &"never-led".into())
    );
    let answer = stage.ask("status", &["--role", "bill"]);
    let line = format!("neli-run: --role bill: no candidate of {} has said in topic ", stage.group);
    assert!(answer.errors.starts_with(&line) && answer.errors.lines().count() == 1, "{answer:?}");
    assert_eq!(answer.status, 125);
}
