//! `--role`: subcommands for one election of `--roles`.

use harness::candidate::{Candidate, Elector, Running};
use harness::election::TestElection;
use harness::kafka::Kafka;
use harness::schema::Schema;
use harness::wait;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::roles::{are_all_led, candidate, close, led};
use crate::{election, list};

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
    // So that no role moves later.
    wait::until_true("fair shares", || candidates.iter().all(|one| !led(one).is_empty()));
    both_ready(election, candidates)
}

/// The same candidates, once each role has a job and a standby.
fn both_ready(election: &TestElection, candidates: Vec<Running>) -> Vec<Running> {
    wait::until_true("a job of each role", || are_all_led(election, &candidates, &ROLES.map(str::to_owned)));
    for role in ROLES {
        wait::until_true("the hello of the one that stands by", || {
            json(election, "status", role, &[])[0]["standbys"].as_array().is_some_and(|standbys| standbys.len() == 1)
        });
    }
    candidates
}

#[test]
fn a_role_is_found_by_its_name() {
    let election = election(Elector::Log);
    let candidates = pair(&election);
    let status = &json(&election, "status", "bill", &[])[0];
    assert_eq!((&status["role"], &status["partition"], &status["state"]), (&"bill".into(), &1.into(), &"led".into()));
    assert_ne!(status["leader"]["name"], status["standbys"][0]["name"], "{status}");
    assert!(status["leader"]["hello"].is_object(), "{status}");
    let term = &status["leader"]["term"];
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

    for (wrong, has) in [("mail", "no such role; it has"), ("1", "roles with names:")] {
        for subcommand in ["status", "watch", "history", "resign", "end"] {
            let answer = election.ask(subcommand, &["--role", wrong]);
            let group = &election.group;
            let line = format!("neli-run: --role {wrong}: {group} has {has} ingest, bill, report\n");
            assert_eq!((answer.errors, answer.status), (line, 125), "{subcommand}");
        }
    }
    close(&election, candidates, &ROLES.map(str::to_owned));
}

/// The lines that a subcommand without `--role` prints, each checked against docs/json.md.
fn json_of_all(election: &TestElection, subcommand: &str, arguments: &[&str]) -> (Vec<Value>, i32) {
    let answer = election.ask(subcommand, &[&["--json"], arguments].concat());
    assert_eq!(answer.errors, "", "{answer:?}");
    let schema = Schema::read(PAGE, subcommand);
    let lines = answer.text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    (lines.inspect(|line| schema.assert_holds(line)).collect(), answer.status)
}

fn roles_of(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["role"].as_str().unwrap_or("?")).collect()
}

/// What shows elections shows all roles, and what acts on one does nothing before it knows on which.
#[test]
fn without_a_role_all_are_shown_and_none_is_touched() {
    let election = election(Elector::Log);
    let candidates = pair(&election);
    let (states, exit) = json_of_all(&election, "status", &[]);
    assert_eq!((roles_of(&states), exit), (ROLES.to_vec(), 0));
    assert!(states.iter().all(|line| line["state"] == "led" && line["leader"]["hello"].is_object()), "{states:?}");
    let answer = election.ask("status", &[]);
    let lines: Vec<&str> = answer.text.lines().collect();
    let head = format!("{}: all 3 roles are led; --role shows one of them", election.group);
    assert_eq!((lines[0], lines.len(), answer.status), (head.as_str(), 5, 0), "{answer:?}");
    assert!(lines[1].starts_with("ROLE ") && lines[1].ends_with("LEADER"), "{answer:?}");
    for (line, (role, state)) in lines[2..].iter().zip(ROLES.iter().zip(&states)) {
        let leads = format!("{} leads, heartbeat ", state["leader"]["name"].as_str().unwrap_or_default());
        assert!(line.starts_with(role) && line.contains(&leads), "{answer:?}");
    }
    let (terms, exit) = json_of_all(&election, "history", &[]);
    let mut of_terms = roles_of(&terms);
    of_terms.dedup();
    assert_eq!((of_terms, exit), (ROLES.to_vec(), 0));
    let answer = election.ask("history", &[]);
    assert!(answer.text.starts_with("ROLE ") && ROLES.iter().all(|role| answer.text.contains(&format!("\n{role} "))));
    let answer = election.ask("history", &["--check"]);
    assert!(ROLES.iter().all(|role| answer.text.contains(&format!("{role}: "))), "{answer:?}");
    let (records, exit) = json_of_all(&election, "watch", &["--from", "start", "--until-end"]);
    let claims = records.iter().filter(|line| line["record"]["kind"] == "claim" && line["verdict"] == "effective");
    let mut claimed: Vec<&str> = claims.map(|line| line["role"].as_str().unwrap_or("?")).collect();
    claimed.sort_unstable();
    claimed.dedup();
    assert_eq!((claimed, exit), (vec!["bill", "ingest", "report"], 0));
    let answer = election.ask("watch", &["--from", "start", "--until-end"]);
    assert!(ROLES.iter().all(|role| answer.text.contains(&format!("Z {role}: "))), "{answer:?}");

    let has = format!("neli-run: {} has the roles ingest, bill, report: ", election.group);
    let commands: [(&str, &[&str], &str); 6] = [
        ("end", &["--yes"], "--role says which is to be ended, and --all-roles ends them all"),
        (
            "resign",
            &[],
            "--role says whose leader is to stand down, and --all-roles asks the leaders of all, one after the other",
        ),
        ("assert", &["--epoch", "0"], "--role says of which the term is"),
        ("forget", &["--newest-window"], "--role says which is meant"),
        ("watch", &["--from", "0"], "--from 0 is in one partition, and --role says in which"),
        ("history", &["--svg", "/dev/null"], "--svg draws one, and --role says which"),
    ];
    for (subcommand, arguments, what) in commands {
        let answer = election.ask(subcommand, arguments);
        assert_eq!(
            (answer.errors, answer.text.as_str(), answer.status),
            (format!("{has}{what}\n"), "", 125),
            "{subcommand}"
        );
    }
    let ended: usize = candidates.iter().map(|candidate| candidate.count("ended") + candidate.count("resigned")).sum();
    assert_eq!(ended, 0);
    close(&election, candidates, &ROLES.map(str::to_owned));
}

/// Roles without names: role 0 alone is not the group.
#[test]
fn a_role_that_nobody_leads_is_seen_and_all_are_ended_on_request() {
    let election = election(Elector::Log);
    let mut candidates = vec![candidate(&election, "3").start()];
    wait::until_true("a job of each role", || are_all_led(&election, &candidates, &crate::roles::numbers(3)));
    let answer = election.ask("end", &["--role", "1"]);
    assert!(
        answer.text.starts_with(&format!("{}/1 is ended: its candidates stop its job,", election.group)),
        "{answer:?}"
    );
    wait::until_true("its release", || json_of_all(&election, "status", &[]).0[1]["state"] == "released");
    let answer = election.ask("status", &[]);
    let head = format!("{}: 2 of 3 roles are led; --role shows one of them\n", election.group);
    assert!(answer.text.starts_with(&head) && answer.status == 3, "{answer:?}");

    let listed = list::json(&["--group", &election.group, "--topic", &election.topic()]);
    let (shown, _) = json_of_all(&election, "status", &[]);
    let states =
        |lines: &[Value]| lines.iter().map(|line| (line["role"].clone(), line["state"].clone())).collect::<Vec<_>>();
    assert_eq!(states(&listed), states(&shown));

    for (options, of_1, status) in
        [(&["--all-roles"][..], "nobody-stands", 3), (&["--all-roles", "--force"], "ended", 0)]
    {
        let (ended, exit) = json_of_all(&election, "end", options);
        assert_eq!((roles_of(&ended), exit), (vec!["0", "1", "2"], status));
        let outcomes: Vec<&str> = ended.iter().filter_map(|line| line["outcome"].as_str()).collect();
        assert_eq!(outcomes, ["ended", of_1, "ended"]);
        assert_eq!(candidates[0].status(), 0);
    }
    election.close(candidates);
}

/// Each role gets another leader; the command waits for one before it asks the next.
#[test]
fn the_leaders_of_all_roles_resign_one_after_the_other() {
    let election = election(Elector::Log);
    // Otherwise the third role may just have been given back for a fair share.
    let start = |name: &str| named(&election, name).option("--spread", "no").start();
    let candidates = both_ready(&election, vec![start("first"), start("second")]);
    let before: Vec<i64> =
        json_of_all(&election, "status", &[]).0.iter().filter_map(|line| line["leader"]["term"].as_i64()).collect();
    let answer = election.ask("resign", &["--all-roles", "--role", "bill"]);
    assert_eq!(
        (answer.errors.as_str(), answer.status),
        ("neli-run: --role bill: can't be combined with --all-roles\n", 125)
    );
    let (resigned, exit) = json_of_all(&election, "resign", &["--all-roles"]);
    assert_eq!((roles_of(&resigned), exit), (ROLES.to_vec(), 0));
    for (line, term) in resigned.iter().zip(before) {
        assert!(line["outcome"] == "resigned" && line["to"]["term"].as_i64() > Some(term), "{resigned:?}");
    }
    close(&election, candidates, &ROLES.map(str::to_owned));
}

/// Of two that lead a role each, the named one takes the other's, and then hands over its own: the shares stay fair.
#[test]
fn a_role_is_moved_to_the_named_candidate() {
    let election = election(Elector::Log);
    let start = |name: &str| {
        let candidate = election.candidate().option("--roles", "ingest,bill").option("--name", name);
        candidate.option("--max-roles", if name == "small" { "1" } else { "2" }).job(["sleep", "100000"]).start()
    };
    let mut candidates = ["large", "small"].map(start);
    // Before their hellos nobody knows the roles.
    for candidate in &mut candidates {
        candidate.await_event("leading");
    }
    let leader = |role: &str| json(&election, "status", role, &[])[0]["leader"]["name"].clone();
    let of_small = || ["ingest", "bill"].into_iter().find(|role| leader(role) == "small");
    let led = wait::until("a role of each", || of_small().filter(|role| leader(other(role)) == "large"));
    let answer = election.ask("resign", &["--role", other(led), "--to", "small"]);
    let line =
        "neli-run: large leads, and small leads 1 role, its --max-roles; --force asks large to stand down anyway\n";
    assert_eq!((answer.errors.as_str(), answer.status), (line, 2));
    let answer = election.ask("resign", &["--role", other(led)]);
    let line =
        "neli-run: large leads, and small leads 1 role, its --max-roles; --force asks large to stand down anyway\n";
    assert_eq!((answer.errors.as_str(), answer.status), (line, 2), "nor does another take it");
    let object = &json(&election, "resign", led, &["--to", "large"])[0];
    assert_eq!((&object["outcome"], &object["to"]["name"]), (&"resigned".into(), &"large".into()), "{object}");
    wait::until_true("the other role in exchange", || of_small() == Some(other(led)));
    let answer = election.ask("resign", &["--all-roles", "--to", "small"]);
    let line =
        "neli-run: --to small: can't be combined with --all-roles: it names who is to lead one role, so give --role\n";
    assert_eq!((answer.errors.as_str(), answer.status), (line, 125));
    election.close(candidates);
}

/// It counts as a standby for 75 s. Another one answers, which may lead no second role.
#[test]
fn a_dead_candidate_with_room_does_not_stand_in_for_a_living_one_without() {
    let election = election(Elector::Log);
    let start = |name: &str| {
        let candidate = election.candidate().option("--roles", "ingest,bill").option("--name", name);
        candidate.option("--max-roles", "1").job(["sleep", "100000"]).start()
    };
    let mut leaders = ["a", "b"].map(start);
    for candidate in &mut leaders {
        candidate.await_event("leading");
    }
    let spare = start("spare");
    let status = || json(&election, "status", "ingest", &[]).swap_remove(0);
    wait::until_true("both standbys", || status()["standbys"].as_array().is_some_and(|standbys| standbys.len() == 2));
    spare.signal(Signal::SIGKILL);
    let answer = election.ask("resign", &["--role", "ingest", "--timeout", "3s"]);
    let leader = status()["leader"]["name"].clone();
    let (leader, full) = if leader == "a" { ("a", "b") } else { ("b", "a") };
    let begin =
        format!("neli-run: {leader} leads, and no standby that has room has answered within 3s; spare said hello ");
    let end = format!(
        " ago, and may have died; {full} leads 1 role, its --max-roles; --force asks {leader} to stand down anyway\n"
    );
    assert!(answer.errors.starts_with(&begin) && answer.errors.ends_with(&end), "{answer:?}");
    assert_eq!(answer.status, 2, "{answer:?}");
    assert_eq!(leaders.iter().map(|candidate| candidate.count("resigned")).sum::<usize>(), 0);
    election.close(leaders);
}

fn other(role: &str) -> &'static str {
    if role == "bill" { "ingest" } else { "bill" }
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
    let expected = format!(
        "{}/report is ended: its candidates stop its job, at the latest when its lease ends, and exit if they stand",
        election.group
    );
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
