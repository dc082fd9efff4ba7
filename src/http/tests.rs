//! Tests of the renderings of a snapshot, and of the answer for each path.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use harness::schema::{self, Schema};
use hyper::{Method, StatusCode};
use neli_kafka::clock;
use neli_proto::candidate::{JobReport, Position, StandbyReason, Waiting};
use neli_proto::fact::{Account, Fact, Success};
use neli_proto::late_beat::LateBeat;
use neli_proto::leadership::{HowReleased, LastTerm, Leader, ReadAt, Receipt, Release, Request, TermState};
use neli_proto::node::{Counts, OtherCandidate, Status};
use neli_proto::note::{Loss, Note};
use neli_proto::record::{JobState, Why};
use neli_proto::reminder::Troubles;
use neli_proto::supervisor::JobStatus::{Exited, Signaled};
use neli_proto::time::{Span, Time};
use serde_json::Value;

use super::answer::AnswerSource;
use super::{About, Board, Echoes, Histogram, RoleSnapshot, Snapshot, Tally, metrics, note_sent, publish, status};
use super::{answer_to, follows};

mod dashboard;
mod fuzz;

const PAGE: &str = include_str!("../../docs/http.md");

/// A time for which the fixtures are current.
fn now() -> Time {
    Time::ZERO + Duration::from_secs(1_000)
}

fn ago(ms: u64) -> Time {
    now() - Duration::from_millis(ms)
}

fn leader(is_self: bool, received: Time) -> Leader {
    Leader {
        member: Some("m1".into()),
        name: Some("db1".into()),
        term: 42,
        lease: Duration::from_secs(20),
        is_self,
        since: ago(60_000),
        claimed_ms: None,
        last_record: receipt(received),
        late_beat: None,
        interval: None,
        job: None,
        yields: false,
        resign: None,
    }
}

fn receipt(read: Time) -> Receipt {
    Receipt { read, written_ms: Some(1_769_860_800_123), is_brokers_time: true, is_live: true }
}

/// The leader whose heartbeat was appended 30 s after the record before, under a lease of 20 s.
fn late_leader() -> Leader {
    let late_beat = LateBeat::of(Some(Duration::from_secs(30)), Duration::from_secs(20), Some(31_000));
    Leader { late_beat, ..leader(false, now()) }
}

/// The last term: led by this leader, or else in this state.
fn role(position: Position, leader: Option<Leader>, state: TermState) -> RoleSnapshot {
    let lease_end = matches!(position, Position::Leading { .. }).then(|| now() + Duration::from_millis(19_200));
    let other = OtherCandidate { member: "m2".into(), name: Some("db2".into()), age: Duration::from_secs(3) };
    let counts = Counts { terms: 2, void_claims: 3, void_in_a_row: 1 };
    let term_state = if leader.is_some() { TermState::Led } else { state };
    let release = (term_state == TermState::Released).then(released);
    let last_term = LastTerm { leader, release, ended: None };
    let status =
        Status { last_term, term_state, position, lease_end, standbys: vec![other], counts, ..Status::default() };
    RoleSnapshot {
        label: "0".to_owned(),
        partition: 0,
        at: now(),
        status,
        tally: Tally::default(),
        runs: None,
        next_window_ms: None,
        success_due_ms: None,
    }
}

/// Ann has asked the leader to stand down.
fn released() -> Release {
    Release {
        term: 42,
        name: Some("db1".into()),
        member: Some("m1".into()),
        how: Arc::new(HowReleased {
            why: Some("resigned".into()),
            request: Some(ann()),
            exit: Some(143),
            late: None,
            once: None,
        }),
        received: receipt(ago(4_000)),
    }
}

fn ann() -> Request {
    Request { by: Some("ann".into()), reason: Some("patching".into()) }
}

fn leading() -> RoleSnapshot {
    let job = JobReport { state: JobState::Running, pid: Some(4_711), attempt: 1, since: ago(55_000) };
    let leading =
        role(Position::Leading { term: 42, job, stopping: None }, Some(leader(true, ago(800))), TermState::Led);
    with_runs(leading)
}

/// The last of twelve nightly runs has failed.
fn with_runs(role: RoleSnapshot) -> RoleSnapshot {
    let night = |from_ms| Some(Span { from_ms, until_ms: from_ms + 86_400_000 });
    let success = Success { window: night(1_769_738_400_000), at_ms: Some(1_769_738_460_000), by: Some("db1".into()) };
    let fact = br#"{"v":1,"key":"2026-01-31T02:00:00Z","outcome":"failed","term":42,"name":"db2","exit":3,"attempt":1,"at_ms":1769824861000}"#;
    let last = Fact::parse(fact).map(Box::new);
    let runs = Some(Account { runs: 12, failures: 2, success: Some(success), last, ..Account::default() });
    RoleSnapshot { runs, next_window_ms: Some(1_769_911_200_000), success_due_ms: Some(1_769_997_600_000), ..role }
}

fn led_by(leader: Leader) -> RoleSnapshot {
    standing_by(Some(leader), TermState::Led)
}

fn standing_by(leader: Option<Leader>, state: TermState) -> RoleSnapshot {
    let standing_for = StandbyReason { leader: None, term: None, why: Some(Waiting::Led) };
    role(Position::Standby(Some(standing_for)), leader, state)
}

fn snapshot(at: Time, roles: Vec<RoleSnapshot>) -> Snapshot {
    let about = About {
        group: "bill\"ing".to_owned(),
        topic: "billing.neli".to_owned(),
        name: "a\\b\nc".to_owned(),
        member: "m0".into(),
        elector: "group",
        lease: Duration::from_secs(20),
    };
    let mut echoes = (Echoes::default(), Histogram::default());
    note_sent(&mut echoes.0, ago(7), 1);
    echoes.1.note_read(&mut echoes.0, now(), 1);
    let roles = roles.into_iter().map(Arc::new).collect();
    Snapshot { about: Arc::new(about), at, kafka: Troubles::default(), was_reached: true, echoes: echoes.1, roles }
}

/// The value of a metric's only line with this beginning.
fn value<'a>(text: &'a str, beginning: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(beginning));
    let value = lines.next().map(str::trim_start);
    assert_eq!(lines.next(), None, "{beginning} twice");
    value
}

fn json(role: RoleSnapshot) -> Value {
    json_of(&snapshot(now(), vec![role]))
}

fn json_of(snapshot: &Snapshot) -> Value {
    let moment = ReadAt { now: now(), wall_ms: 1_769_860_800_123 };
    let object: Value = serde_json::from_str(&status::render(snapshot, moment)).unwrap();
    Schema::read(PAGE, "/status").assert_holds(&object);
    object
}

/// A backslash that begins none of Prometheus's escapes would make the whole answer unreadable.
/// A job that is killed since another's claim took effect is one whose right to run was over, too.
#[test]
fn each_lead_that_is_fenced_counts() {
    let mut tally = Tally::default();
    tally.note(&Note::Fenced { term: 1, why: Why::Fenced, loss: Loss::LeaseOver, left: Duration::ZERO, late: None });
    tally.note(&Note::Released { term: 1, why: Why::Fenced, delivered: true });
    tally.note(&Note::Superseded { term: 2, by_term: Some(3), by: None });
    assert_eq!(tally.fences, 2);
    // The job obeyed the stop signal in time, or none ran.
    tally.note(&Note::Released { term: 4, why: Why::Fenced, delivered: true });
    tally.note(&Note::Released { term: 5, why: Why::Resigned, delivered: true });
    assert_eq!(tally.fences, 3);
}

/// A run that was told to stop has not failed.
#[test]
fn each_run_counts_by_how_it_ended() {
    let mut tally = Tally::default();
    let runs = [
        (Exited(0), true),
        (Exited(0), false),
        (Exited(3), true),
        (Signaled(9), true),
        (Exited(3), false),
        (Signaled(15), false),
    ];
    for (status, by_itself) in runs {
        tally.note(&Note::JobExited { term: 1, status, ran: Duration::ZERO, by_itself });
    }
    assert_eq!(tally.exits, [2, 1, 1, 2]);
}

#[test]
fn a_label_has_only_visible_characters() {
    assert_eq!(metrics::label("n", "a\"b\\c\nd\u{9b}\u{202e}\u{feff}"), r#"n="a\"b\\c\nd\\u{9b}\\u{202e}\\u{feff}""#);
}

#[test]
fn metrics_of_a_leader_and_of_a_standby() {
    // It led before, and others have recorded runs since.
    let mut second = with_runs(led_by(leader(false, ago(300))));
    second.label = "mail".to_owned();
    let text = metrics::render(&snapshot(now(), vec![leading(), second]), now());
    let first = "{group=\"bill\\\"ing\",role=\"0\"}";
    let mail = "{group=\"bill\\\"ing\",role=\"mail\"}";
    for (name, of_first, of_mail) in [
        ("neli_leader", "1", "0"),
        ("neli_led", "1", "1"),
        ("neli_term", "42", "42"),
        ("neli_lease_remaining_seconds", "19.2", "0"),
        ("neli_heartbeat_age_seconds", "0.8", "0.3"),
        ("neli_standbys", "1", "2"),
        ("neli_job_running", "1", "0"),
        ("neli_transitions_total", "2", "2"),
        ("neli_void_claims_total", "3", "3"),
    ] {
        assert_eq!(value(&text, &format!("{name}{first}")), Some(of_first), "{name}");
        assert_eq!(value(&text, &format!("{name}{mail}")), Some(of_mail), "{name}");
    }
    for (name, of_first) in [
        ("neli_recorded_runs_total", "12"),
        ("neli_recorded_failures_total", "2"),
        ("neli_last_run_failed", "1"),
        ("neli_last_run_exit_status", "3"),
        ("neli_last_success_timestamp_seconds", "1769738460"),
        ("neli_next_window_timestamp_seconds", "1769911200"),
        ("neli_success_due_timestamp_seconds", "1769997600"),
    ] {
        assert_eq!(value(&text, &format!("{name}{first}")), Some(of_first), "{name}");
        assert_eq!(value(&text, &format!("{name}{mail}")), None, "{name}");
    }
    assert!(text.contains(",name=\"a\\\\b\\nc\",version="), "{text}");
    for (bound, count) in [("0.005", "0"), ("0.01", "1"), ("10", "1"), ("+Inf", "1")] {
        let line = format!("neli_echo_seconds_bucket{{group=\"bill\\\"ing\",le=\"{bound}\"}}");
        assert_eq!(value(&text, &line), Some(count), "{bound}");
    }
    assert_eq!(value(&text, "neli_echo_seconds_sum{group=\"bill\\\"ing\"}"), Some("0.007"));
}

/// `--overlap`: its term has ended, and its job runs on.
#[test]
fn a_job_that_runs_beside_the_next_leaders_runs() {
    let mut role = leading();
    role.status.position = Position::Overlapped { term: 42 };
    let text = metrics::render(&snapshot(now(), vec![role]), now());
    assert_eq!(value(&text, "neli_job_running{group=\"bill\\\"ing\",role=\"0\"}"), Some("1"));
}

/// This holds in every state of the main loop.
#[test]
fn no_process_leads_after_the_lease() {
    let later = now() + Duration::from_secs(30);
    let text = metrics::render(&snapshot(now(), vec![leading()]), later);
    let of_role = "{group=\"bill\\\"ing\",role=\"0\"}";
    for name in ["neli_leader", "neli_led", "neli_lease_remaining_seconds"] {
        assert_eq!(value(&text, &format!("{name}{of_role}")), Some("0"), "{name}");
    }
}

/// The metrics of a page, with their types.
fn exported(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect()
}

#[test]
fn metrics_are_documented() {
    let text = metrics::render(&snapshot(now(), vec![leading()]), now());
    assert_eq!(schema::metrics(PAGE), exported(&text));
}

#[test]
fn the_examples_ask_for_what_is_exported() {
    let text = metrics::render(&snapshot(now(), vec![leading()]), now());
    let exported = exported(&text);
    for example in [
        include_str!("../../examples/monitoring/alerts.yaml"),
        include_str!("../../examples/monitoring/alerts.test.yaml"),
        include_str!("../../examples/monitoring/grafana.json"),
    ] {
        let words: BTreeSet<&str> = example.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()).collect();
        let named: Vec<&str> = words.into_iter().filter(|word| word.starts_with("neli_")).collect();
        assert!(named.len() > 5);
        for name in named {
            assert!(exported.contains_key(name.trim_end_matches("_bucket")), "no metric is called {name}");
        }
    }
}

#[test]
fn the_status_of_a_leader() {
    let object = json(leading());
    let role = &object["roles"][0];
    assert_eq!((role["state"].as_str(), role["leads"].as_bool()), (Some("led"), Some(true)), "{role}");
    assert_eq!(
        (&role["runs"]["last"]["exit"], &role["runs"]["last_success"]["by"]),
        (&3.into(), &"db1".into()),
        "{role}"
    );
    assert_eq!(role["leader"]["since"], "2026-01-31T11:59:00.123Z");
    assert_eq!(
        (role["leader"]["lease_left_ms"].as_u64(), role["lease_left_ms"].as_u64()),
        (Some(19_200), Some(19_200))
    );
    assert_eq!(role["leader"]["job"]["for_ms"], 55_000);
    assert_eq!(role["standbys"].as_array().map(Vec::len), Some(1));
    assert_eq!(role["void_claims"], 1);
}

#[test]
fn the_status_of_a_standby_shows_why_there_is_no_leader() {
    let none = |state| standing_by(None, state);
    let overdue = "db1 has been silent for 18s (lease 20s): unless a heartbeat comes, another may claim in 2.2s";
    let resigned =
        "no leader: db1 released term 42 4s ago: it was asked to stand down by ann: patching (the job's status: 143)";
    let forgotten = "no leader: the topic keeps no record of this election (older ones were deleted)";
    let late = "no leader: db1 was silent for 30s (lease 20s); a heartbeat that came after that extends no lease";
    let missing = "can't tell who leads: the record that says so is missing from the topic; if no record of a leader comes, a \
        candidate claims after 60.61s";
    let yields = "db1 leads (it is to stop; its job runs on until another has claimed)";
    let cut = "can't tell who leads: the topic was made anew, or its records were deleted, and the job of an earlier leader may \
        run on; if no record of a leader comes, a candidate claims after 60.61s";
    for (role, state, why) in [
        (led_by(leader(false, ago(3_199))), "led", None),
        (led_by(Leader { yields: true, ..leader(false, ago(3_199)) }), "led", Some(yields)),
        (led_by(leader(false, ago(18_000))), "silent", Some(overdue)),
        (led_by(leader(false, ago(20_210))), "silent", Some("no leader: db1 has been silent for 20s (lease 20s)")),
        (led_by(late_leader()), "silent", Some(late)),
        (none(TermState::Released), "released", Some(resigned)),
        (none(TermState::NeverLed), "never-led", Some("no leader: nobody has ever led")),
        (none(TermState::Forgotten), "forgotten", Some(forgotten)),
        (none(TermState::Undecided), "unknown", Some(missing)),
        (none(TermState::Cut), "unknown", Some(cut)),
        (
            none(TermState::Unread),
            "unknown",
            Some("can't tell who leads: Kafka has not delivered the whole journal yet"),
        ),
    ] {
        let object = json(role);
        let role = &object["roles"][0];
        assert_eq!((role["state"].as_str(), role["why"].as_str()), (Some(state), why), "{role}");
        assert_eq!(role["standbys"][0]["is_self"], true);
    }
    let role_of_late = &json(led_by(late_leader()))["roles"][0];
    assert_eq!(role_of_late["leader"]["lease_left_ms"], 0, "the late heartbeat extends no lease");
}

/// `status --json` says it in the same fields.
#[test]
fn the_status_names_the_operator_who_asked_for_the_end_and_the_reason() {
    let object = json(standing_by(None, TermState::Released));
    let release = &object["roles"][0]["release"];
    assert_eq!((&release["asked_by"], &release["reason"]), (&"ann".into(), &"patching".into()), "{release}");
    assert_eq!(release["at"], "2026-01-31T12:00:00.123Z");
    let mut left = role(Position::Departed, None, TermState::Released);
    left.status.last_term.ended = Some((ann(), receipt(ago(4_000))));
    let object = json(left);
    let ended = &object["roles"][0]["ended"];
    assert_eq!((&ended["by"], &ended["reason"]), (&"ann".into(), &"patching".into()), "{ended}");
}

/// Nobody can know who leads, and each place says so; only a lease that was seen to run a moment ago is known.
#[test]
fn while_kafka_does_not_answer_the_leader_is_unknown() {
    let heard = "can't tell who leads: Kafka does not answer; db1 led, and was heard last 30s ago";
    let vacant = "can't tell who leads: Kafka does not answer; nobody led when it last did";
    for (role, state, led, why) in [
        (leading(), "led", "1", None),
        (led_by(leader(false, ago(300))), "led", "1", None),
        (led_by(leader(false, ago(30_000))), "unknown", "0", Some(heard)),
        (standing_by(None, TermState::Released), "unknown", "0", Some(vacant)),
    ] {
        let mut away = snapshot(now(), vec![role]);
        away.kafka.outage.begin(ago(200), "kafka:9092: refused".to_owned());
        let object = &json_of(&away)["roles"][0];
        assert_eq!((object["state"].as_str(), object["why"].as_str()), (Some(state), why), "{object}");
        assert!(!object["doing"].as_str().is_some_and(|doing| doing.contains("db1 leads")), "{object}");
        let labels = "{group=\"bill\\\"ing\",role=\"0\"}";
        let text = metrics::render(&away, now());
        assert_eq!(value(&text, &format!("neli_led{labels}")), Some(led), "{object}");
    }
}

/// With --roles a process goes on without an election that was ended: what it has read of it is over.
#[test]
fn a_process_that_has_left_an_election_does_not_say_who_leads_it() {
    let left = || role(Position::Departed, Some(leader(false, clock::now())), TermState::Led);
    let object = json(left());
    let of_role = &object["roles"][0];
    let why = "can't tell who leads: this process has left this election, and does not read it any more";
    assert_eq!((of_role["state"].as_str(), of_role["why"].as_str()), (Some("unknown"), Some(why)), "{of_role}");
    assert_eq!(
        (of_role["leader"].is_null(), of_role["standbys"].as_array().map(Vec::len)),
        (true, Some(0)),
        "{of_role}"
    );
    let text = metrics::render(&snapshot(clock::now(), vec![left()]), clock::now());
    let labels = "{group=\"bill\\\"ing\",role=\"0\"}";
    let values = ["neli_led", "neli_standbys", "neli_term", "neli_heartbeat_age_seconds"]
        .map(|name| value(&text, &format!("{name}{labels}")));
    assert_eq!(values, [Some("0"), Some("0"), None, None]);
    assert_eq!(body(vec![left()]), format!("not leading; {why}\n"));
}

#[test]
fn the_status_of_a_standby_shows_when_it_claims() {
    let mut waiting = standing_by(None, TermState::Undecided);
    waiting.status.claims_at = Some(now() + Duration::from_secs(50));
    assert_eq!(json(waiting)["roles"][0]["claims_at"], "2026-01-31T12:00:50.123Z");
    let mut led = led_by(leader(false, now()));
    led.status.claims_at = Some(now() + Duration::from_secs(20));
    assert_eq!(json(led)["roles"][0]["claims_at"], Value::Null);
}

/// A hello that is older than those of present candidates does not count any more, even if nothing was published since.
#[test]
fn a_standby_without_recent_hellos_is_dropped() {
    let role = leading();
    assert_eq!((role.standbys(now()), role.standbys(now() + Duration::from_secs(72))), (1, 0));
}

/// The status code for each path.
fn statuses(snapshot: Snapshot) -> Vec<u16> {
    let source = AnswerSource::new(Arc::new(Board::new(Arc::new(snapshot))));
    let paths = ["/", "/healthz", "/readyz", "/leader", "/leader/0", "/leader/1", "/metrics", "/status", "/other"];
    let status = |path: &&str| answer_to(&source, &Method::GET, path).status().as_u16();
    paths.iter().map(status).collect()
}

#[test]
fn each_path_has_its_status() {
    let lead = || {
        let mut role = leading();
        role.status.lease_end = Some(clock::now() + Duration::from_secs(20));
        vec![role]
    };
    assert_eq!(statuses(snapshot(clock::now(), lead())), [200, 200, 200, 200, 200, 404, 200, 200, 404]);
    let standby = snapshot(clock::now(), vec![standing_by(None, TermState::Undecided)]);
    assert_eq!(statuses(standby), [200, 200, 200, 503, 503, 404, 200, 200, 404]);
    let mut away = snapshot(clock::now(), lead());
    away.kafka.outage.begin(clock::now(), "kafka:9092: refused".to_owned());
    assert_eq!(statuses(away), [200, 200, 503, 200, 200, 404, 200, 200, 404]);
    let mut new = snapshot(clock::now(), vec![standing_by(None, TermState::Undecided)]);
    new.was_reached = false;
    assert_eq!(statuses(new)[..3], [200, 200, 503]);
    let hangs = snapshot(clock::now() - Duration::from_secs(10), lead());
    assert_eq!(statuses(hangs)[..4], [200, 503, 503, 200]);
}

/// The body of a 503 of `/leader`.
fn body(roles: Vec<RoleSnapshot>) -> String {
    let source = AnswerSource::new(Arc::new(Board::new(Arc::new(snapshot(clock::now(), roles)))));
    let answer = answer_to(&source, &Method::GET, "/leader");
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    String::from_utf8_lossy(answer.body()).into_owned()
}

/// docs/http.md describes it.
#[test]
fn the_answer_of_a_process_that_does_not_lead_contains_the_reason() {
    let led = || led_by(leader(false, clock::now()));
    assert_eq!(body(vec![led()]), "not leading; db1 leads, term 42\n");
    assert_eq!(body(vec![standing_by(None, TermState::NeverLed)]), "not leading; no leader: nobody has ever led\n");
    let mut over = leading();
    over.status.lease_end = Some(Time::ZERO);
    over.status.last_term.leader = Some(leader(true, clock::now()));
    assert_eq!(body(vec![over]), "not leading; can't tell who leads: the lease of this process, which led, is over\n");
    assert_eq!(body(vec![led(), led()]), "not leading; none of its 2 roles\n");
}

/// docs/http.md promises both the name and the number.
#[test]
fn a_role_with_a_name_is_found_by_its_number_too() {
    let role = |label: &str| RoleSnapshot { label: label.to_owned(), ..standing_by(None, TermState::Undecided) };
    let source =
        AnswerSource::new(Arc::new(Board::new(Arc::new(snapshot(clock::now(), vec![role("web"), role("mail")])))));
    let statuses = ["web", "1", "2", "x"]
        .map(|label| answer_to(&source, &Method::GET, &format!("/leader/{label}")).status().as_u16());
    assert_eq!(statuses, [503, 503, 404, 404]);
}

/// A cached answer belongs to the current snapshot.
#[test]
fn a_new_snapshot_is_rendered_again() {
    let board = Arc::new(Board::new(Arc::new(snapshot(now(), vec![leading()]))));
    let source = AnswerSource::new(Arc::clone(&board));
    let (first, again) = (source.status(&source.look(), now()), source.status(&source.look(), now()));
    assert_eq!(first.as_ptr(), again.as_ptr());
    assert_ne!(source.status(&source.look(), now() + Duration::from_millis(100)).as_ptr(), first.as_ptr());
    assert!(publish(&board, snapshot(now(), vec![standing_by(None, TermState::NeverLed)])));
    let second = source.status(&source.look(), now());
    assert!(String::from_utf8_lossy(&second).contains("\"state\":\"never-led\""));
}

#[test]
fn nothing_can_be_changed() {
    let source = AnswerSource::new(Arc::new(Board::new(Arc::new(snapshot(clock::now(), vec![leading()])))));
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS, Method::CONNECT] {
        for path in ["/leader", "/events"] {
            assert!(!follows(&method, path));
            assert_eq!(answer_to(&source, &method, path).status(), StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
        }
    }
    assert_eq!(answer_to(&source, &Method::HEAD, "/status").status(), StatusCode::OK);
    assert!(follows(&Method::GET, "/events") && !follows(&Method::GET, "/status"));
}

/// The page needs nothing from other servers, and shows names as text, not as markup.
#[test]
fn the_page_is_complete_and_shows_names_as_text() {
    let page = include_str!("page.html");
    for word in
        ["http:", "https:", "src=", "@import", "url(", "innerHTML", "outerHTML", "insertAdjacent", "document.write"]
    {
        assert!(!page.contains(word), "{word}");
    }
}
