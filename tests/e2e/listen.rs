//! `--listen`: the HTTP server of a leader and of a standby, also with clients that try to exhaust it.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;

use harness::candidate::{Candidate, Elector, Running};
use harness::election::{Answer, TestElection};
use harness::process::WITHOUT_INHERITED;
use harness::schema::Schema;
use harness::wait;
use serde_json::Value;

use crate::{PROGRAM, election, roles};

/// The limit of open connections.
const CONNECTIONS: usize = 64;
/// The limit of connections that follow the status.
const FOLLOWERS: usize = 16;

/// Starts a candidate that listens, and returns it with its address.
pub(crate) fn listening(candidate: &Candidate) -> (Running, String) {
    let mut run = candidate.clone().option("--listen", "127.0.0.1:0").start();
    let address = run.await_event("listening").text("address").to_owned();
    (run, address)
}

fn connect(address: &str) -> TcpStream {
    let connection = TcpStream::connect(address).expect("it listens");
    connection.set_read_timeout(Some(wait::PATIENCE)).expect("a timeout");
    connection
}

pub(crate) fn send(address: &str, request: &[u8]) -> TcpStream {
    let mut connection = connect(address);
    // A client that sends too much gets its answer before it has sent everything, so the write may fail.
    let _ = connection.write_all(request);
    connection
}

/// Reads until the connection is closed or reset.
fn rest(mut connection: TcpStream) -> String {
    let mut bytes = Vec::new();
    if let Err(error) = connection.read_to_end(&mut bytes) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    String::from_utf8(bytes).expect("UTF-8")
}

/// The status code and the body.
pub(crate) fn get(address: &str, path: &str) -> (u16, String) {
    let answer = rest(send(address, format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()));
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{path}: {answer:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("{path}: {head}")), body.to_owned())
}

/// The body of `/status` and its first role, checked against docs/http.md.
pub(crate) fn status(address: &str) -> (Value, Value) {
    let (status, body) = get(address, "/status");
    assert_eq!(status, 200);
    let object: Value = serde_json::from_str(&body).expect("JSON");
    Schema::read(include_str!("../../docs/http.md"), "/status").assert_holds(&object);
    let role = object["roles"][0].clone();
    (object, role)
}

/// The value of a metric of role 0, or of the given role.
pub(crate) fn metric(address: &str, name: &str) -> f64 {
    let (status, body) = get(address, "/metrics");
    assert_eq!(status, 200);
    let (name, more) = name.split_once(' ').unwrap_or((name, "role=\"0\""));
    let mut lines = body.lines().filter(|line| line.starts_with(&format!("{name}{{")) && line.contains(more));
    let line = lines.next().unwrap_or_else(|| panic!("no {name} {more}: {body}"));
    line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number")
}

#[test]
fn a_leader_and_a_standby_that_follows_it() {
    let election = election(Elector::Group);
    let (mut first, one) = listening(&election.candidate().option("--name", "first"));
    let term = first.await_lead();
    election.await_witness(term);
    let (mut second, two) = listening(&election.candidate().option("--name", "<b>second"));
    second.await_event("standby");
    wait::until_true("both know each other", || {
        metric(&one, "neli_standbys") > 0.5 && metric(&two, "neli_led") > 0.5 && get(&two, "/readyz").0 == 200
    });

    for (address, leads) in [(&one, true), (&two, false)] {
        assert_eq!((get(address, "/healthz").0, get(address, "/readyz").0), (200, 200));
        let (status, _) = get(address, "/leader");
        assert_eq!((status == 200, status == 503), (leads, !leads));
        assert_eq!(get(address, "/leader/0").0, status);
        assert_eq!((get(address, "/leader/1").0, get(address, "/nowhere").0), (404, 404));
        assert!(get(address, "/").1.starts_with("<!doctype html>"));
        assert!((metric(address, "neli_leader") - f64::from(u8::from(leads))).abs() < 0.5);
        assert!((metric(address, "neli_job_running") - f64::from(u8::from(leads))).abs() < 0.5);
        assert!((metric(address, "neli_broker_up group=") - 1.0).abs() < 0.5);
    }
    assert!(metric(&one, "neli_lease_remaining_seconds") > 0.0);
    assert!(metric(&one, "neli_echo_seconds_count group=") >= 1.0);

    // Both candidates and the subcommand show the same.
    let asked = election.ask("status", &["--json"]).json();
    for (address, name) in [(&one, "first"), (&two, "<b>second")] {
        let (object, role) = status(address);
        assert_eq!(object["name"], name);
        for field in ["state", "why"] {
            assert_eq!(role[field], asked[field], "{field}: {role}");
        }
        for field in ["name", "member", "term", "lease_ms"] {
            assert_eq!(role["leader"][field], asked["leader"][field], "{field}: {role}");
        }
        assert_eq!((role["leader"]["is_self"] == true, role["leads"] == true), (name == "first", name == "first"));
        assert_eq!(role["standbys"].as_array().map(Vec::len), Some(1), "{role}");
        assert_eq!(role["standbys"][0]["name"], "<b>second");
    }

    // A client that follows the status receives the handover.
    let mut follower = send(&two, b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
    first.signal(nix::sys::signal::Signal::SIGTERM);
    first.status();
    let next = second.await_lead();
    let mut seen = Vec::new();
    wait::until_true("an event with the new term", || {
        let mut bytes = [0; 4096];
        let length = follower.read(&mut bytes).expect("events");
        seen.extend_from_slice(&bytes[..length]);
        String::from_utf8_lossy(&seen).contains(&format!("\"is_self\":true,\"term\":{next}"))
    });
    assert!(String::from_utf8_lossy(&seen).contains("content-type: text/event-stream"));
    assert_eq!(get(&two, "/leader"), (200, format!("leading, term {next}\n")));
    assert!(metric(&two, "neli_transitions_total") >= 1.0);
    election.close([second]);
}

/// Idle connections, incomplete requests, invalid bytes, endless requests, and clients that never read do not affect the lease.
#[test]
fn hostile_clients_do_not_affect_the_lease() {
    let election = election(Elector::Log);
    let (mut run, address) = listening(&election.candidate());
    let term = run.await_lead();
    election.await_witness(term);
    let endless = [b"GET / HTTP/1.1\r\nX: ".as_slice(), &vec![b'a'; 100_000]].concat();
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(1_000)).into_bytes();
    let requests: [&[u8]; 8] = [
        b"",
        b"GET /metrics HTT",
        b"GET /metrics HTTP/1.1\r\n\r\n",
        b"GET /status HTTP/1.1\r\nHost: x\r\n\r\nGET /status HTTP/1.1\r\n\r\n",
        b"POST /leader HTTP/1.1\r\nContent-Length: 1000000\r\n\r\nx",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\xff\x00\xfe",
        &endless,
        &many,
    ];
    // These are more connections than the limit. None is read from, and the oldest are closed in favour of the new ones.
    let open: Vec<TcpStream> = (0..2 * CONNECTIONS).map(|at| send(&address, requests[at % requests.len()])).collect();
    for path in ["/healthz", "/leader"] {
        assert_eq!(get(&address, path).0, 200, "{path}");
    }
    // Each connection is answered or closed in the end, and an invalid request gets an error.
    let answers: Vec<String> = open.into_iter().skip(CONNECTIONS).map(rest).collect();
    for (at, expected) in [(5, "HTTP/1.1 400 "), (6, "HTTP/1.1 431 "), (7, "HTTP/1.1 431 "), (4, "HTTP/1.1 405 ")] {
        let answers: Vec<&String> = answers.iter().skip(at).step_by(requests.len()).collect();
        assert!(answers.iter().all(|answer| answer.is_empty() || answer.starts_with(expected)), "{at}: {answers:?}");
    }
    assert_eq!(get(&address, "/leader"), (200, format!("leading, term {term}\n")));
    for event in ["fence_warning", "fenced", "released", "stopping"] {
        assert_eq!(run.count(event), 0, "{event}: {run:?}");
    }
    election.close([run]);
}

/// A client that follows the status and disconnects frees its place.
#[test]
fn the_number_of_followers_is_limited() {
    let election = election(Elector::Log);
    let (mut run, address) = listening(&election.candidate());
    run.await_lead();
    let follow = || {
        let mut follower = send(&address, b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
        let mut head = [0; 12];
        follower.read_exact(&mut head).expect("an answer");
        (follower, head == *b"HTTP/1.1 200")
    };
    let mut followers: Vec<(TcpStream, bool)> = (0..FOLLOWERS).map(|_| follow()).collect();
    assert!(followers.iter().all(|(_, is_served)| *is_served));
    let (_, is_served) = follow();
    assert!(!is_served, "one too many");
    let (gone, _) = followers.remove(0);
    gone.shutdown(Shutdown::Both).expect("it was open");
    wait::until_true("the place of one that has gone", || follow().1);
    election.close([run]);
}

#[test]
fn each_of_many_roles() {
    let election = election(Elector::Log);
    let labels = ["web".to_owned(), "mail".to_owned()];
    let (run, address) = listening(&roles::candidate(&election, "web,mail"));
    wait::until_true("both roles are led", || roles::led(&run).len() == 2);
    wait::until_true("both are shown", || labels.iter().all(|role| get(&address, &format!("/leader/{role}")).0 == 200));
    for role in &labels {
        assert!(metric(&address, &format!("neli_leader role=\"{role}\"")) > 0.5);
    }
    assert_eq!(
        (get(&address, "/leader").0, get(&address, "/leader/1").0, get(&address, "/leader/2").0),
        (200, 200, 404)
    );
    let (object, _) = status(&address);
    assert_eq!((object["roles"][0]["role"].as_str(), object["roles"][1]["role"].as_str()), (Some("web"), Some("mail")));
    roles::close(&election, vec![run], &labels);
}

#[test]
fn runs_and_restarts_are_counted() {
    let election = election(Elector::Log);
    let job = ["sh", "-c", "[ $NELI_ATTEMPT -ge 3 ] && exec sleep 1000; exit 3"];
    let candidate = election.candidate().option("--restart", "on-failure").option("--restart-delay", "1ms").job(job);
    let (run, address) = listening(&candidate);
    wait::until_true("the third run", || metric(&address, "neli_restarts_total") > 1.5);
    assert!((metric(&address, "neli_job_exits_total result=\"failure\"") - 2.0).abs() < 0.5);
    assert!(metric(&address, "neli_job_exits_total result=\"success\"") < 0.5);
    election.close([run]);
}

#[test]
fn without_a_broker_it_lives_and_is_not_ready() {
    let election = TestElection::unreachable(PROGRAM);
    let candidate = crate::bare().option("--group", &election.group).option("--brokers", "127.0.0.1:1").job(["true"]);
    let (mut run, address) = listening(&candidate);
    run.await_event("broker_down");
    let (status, body) = wait::until("a reason", || {
        let (status, body) = get(&address, "/readyz");
        body.starts_with("no broker reached for ").then_some((status, body))
    });
    assert!(status == 503 && body.contains("127.0.0.1:1"), "{body}");
    assert_eq!((get(&address, "/healthz").0, get(&address, "/leader").0), (200, 503));
    assert!(metric(&address, "neli_broker_up group=") < 0.5);
}

#[test]
fn an_address_that_is_not_available() {
    let holder = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = holder.local_addr().expect("an address").to_string();
    let form = "must be HOST:PORT, as in 127.0.0.1:9464 or [::1]:9464, or :PORT for all addresses of this machine";
    for (address, why, status) in [
        (taken.as_str(), "address already in use", 86),
        ("192.0.2.1:0", "cannot assign requested address", 86),
        ("no-such-host.invalid:0", "failed to lookup address information", 86),
        ("9464", form, 125),
    ] {
        let mut command = Command::new(PROGRAM);
        command.args(["--group", "g", "--brokers", "127.0.0.1:1", "--listen", address, "--", "true"]);
        let answer = Answer::of(command);
        assert_eq!((answer.text.as_str(), answer.status), ("", status), "{answer:?}");
        let line = format!("neli-run: --listen {address}: {why}");
        assert!(answer.errors.starts_with(&line) && answer.errors.lines().count() == 1, "{answer:?}");
    }
}

#[test]
fn too_few_descriptors_for_it() {
    let expected = "neli-run: 100 open files are too few (ulimit -n): neli-run needs at least 144\n";
    for words in [
        "--group g --brokers 127.0.0.1:1 --listen 127.0.0.1:0 -- true",
        "observe --brokers 127.0.0.1:1 --listen 127.0.0.1:0",
    ] {
        let line = format!("ulimit -n 100; exec {PROGRAM} {words}");
        let mut command = Command::new(WITHOUT_INHERITED[0]);
        command.args(&WITHOUT_INHERITED[1..]).args(["sh", "-c", &line]);
        let answer = Answer::of(command);
        assert_eq!((answer.errors.as_str(), answer.status), (expected, 125), "{words}");
    }
}

#[test]
fn all_addresses_of_the_machine() {
    let election = TestElection::unreachable(PROGRAM);
    let candidate = crate::bare().option("--group", &election.group).option("--brokers", "127.0.0.1:1").job(["true"]);
    let mut run = candidate.option("--listen", ":0").start();
    let address = run.await_event("listening").text("address").to_owned();
    let port = address.rsplit(':').next().expect("a port");
    assert_eq!(get(&format!("127.0.0.1:{port}"), "/healthz"), (200, "ok\n".to_owned()));
}
