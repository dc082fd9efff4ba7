//! OAUTHBEARER with tokens from a token endpoint (`sasl.oauthbearer.method=oidc`): one that works, one that refuses, one that is down,
//! and one that fails later. They are no part of the end-to-end tests, so that these need not be built again with the feature.

#![expect(clippy::expect_used, reason = "a test fails by a panic")]

#[path = "e2e/guarded.rs"]
mod guarded;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use harness::accounts::{Account, PASSWORD};
use harness::candidate::{Candidate, Elector};
use neli_kafka::clock;
use nix::sys::signal::Signal;

use guarded::{Guarded, assert_refused};

const PROGRAM: &str = env!("CARGO_BIN_EXE_neli-run");

/// A candidate with no option except the log's format.
fn bare() -> Candidate {
    Candidate::new(Path::new(PROGRAM))
}

const CLIENT: &str = "neli";

/// An identity provider's token endpoint in this process. It gives unsigned tokens, which Kafka accepts by default, to clients with the
/// right secret.
struct Endpoint {
    address: SocketAddr,
    /// How many tokens were requested.
    asked: Arc<AtomicUsize>,
    reply: Arc<Mutex<Reply>>,
}

/// The endpoint's answer to a client with the right secret.
#[derive(Clone, Copy)]
enum Reply {
    Token,
    Refusal,
    /// It closes the connection.
    None,
}

impl Endpoint {
    /// Starts an endpoint whose tokens are valid for this time.
    fn start(life: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let endpoint = Self { address, asked: Arc::default(), reply: Arc::new(Mutex::new(Reply::Token)) };
        let (asked, reply) = (Arc::clone(&endpoint.asked), Arc::clone(&endpoint.reply));
        // The thread ends with this process, as do the clients.
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                // The client may be killed during its request.
                let Some(secret_is_right) = read_request(&connection) else { continue };
                asked.fetch_add(1, Ordering::Relaxed);
                let reply = *reply.lock().expect("no panic while it was locked");
                let _ = match reply {
                    Reply::Token if secret_is_right => answer(&connection, Some(&token(life))),
                    Reply::Token | Reply::Refusal => answer(&connection, None),
                    Reply::None => Ok(()),
                };
            }
        });
        endpoint
    }

    fn set_reply(&self, reply: Reply) {
        *self.reply.lock().expect("no panic while it was locked") = reply;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// A candidate that gets its tokens here; its properties come from a file.
    fn candidate(&self, guarded: &Guarded, elector: Elector) -> Candidate {
        let text = format!(
            "security.protocol=SASL_PLAINTEXT\n\
             sasl.mechanisms=OAUTHBEARER\n\
             sasl.oauthbearer.method=oidc\n\
             sasl.oauthbearer.client.id={CLIENT}\n\
             sasl.oauthbearer.client.secret={PASSWORD}\n\
             sasl.oauthbearer.token.endpoint.url=http://{}/token\n",
            self.address
        );
        let file = guarded.election.directory().join("properties");
        fs::write(&file, text).expect("the directory is ours");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("the file's mode can be set");
        guarded.candidate(elector, &[]).option("--properties", file)
    }
}

/// Whether the request contains the right secret; `None` if it is incomplete.
fn read_request(connection: &TcpStream) -> Option<bool> {
    let mut input = BufReader::new(connection);
    let (mut length, mut login) = (0, None);
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok().filter(|read| *read > 0)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().ok()?,
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => login = Some(value.to_owned()),
            None if line.trim_end().is_empty() => break,
            // These are the request line `POST /token HTTP/1.1`, and other headers.
            Some(_) | None => {}
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    let expected = format!("Basic {}", base64(format!("{CLIENT}:{PASSWORD}").as_bytes(), *b"+/", "="));
    Some(body.starts_with(b"grant_type=client_credentials") && login == Some(expected))
}

fn answer(mut connection: &TcpStream, token: Option<&str>) -> std::io::Result<()> {
    let (status, body) = token.map_or_else(
        || ("401 Unauthorized", r#"{"error":"invalid_client"}"#.to_owned()),
        |token| ("200 OK", format!(r#"{{"access_token":"{token}","token_type":"Bearer"}}"#)),
    );
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n");
    write!(connection, "{head}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// A token for the operator's account.
fn token(life: Duration) -> String {
    let now = clock::wall_ms() / 1_000;
    let claims = format!(r#"{{"sub":"{}","iat":{now},"exp":{}}}"#, Account::Operator.name(), now + life.as_secs());
    let part = |text: &str| base64(text.as_bytes(), *b"-_", "");
    format!("{}.{}.", part(r#"{"alg":"none"}"#), part(&claims))
}

/// Base64 that ends in these two digits and this padding.
fn base64(bytes: &[u8], last: [u8; 2], padding: &str) -> String {
    let digits: Vec<u8> = (b'A'..=b'Z').chain(b'a'..=b'z').chain(b'0'..=b'9').chain(last).collect();
    let chunk = |chunk: &[u8]| {
        let number = (0..3).fold(0, |number, at| number << 8 | usize::from(chunk.get(at).copied().unwrap_or(0)));
        let digit = |at: usize| char::from(digits[number >> (18 - 6 * at) & 63]);
        let text: String = (0..=chunk.len()).map(digit).collect();
        text + &padding.repeat(3 - chunk.len())
    };
    bytes.chunks(3).map(chunk).collect()
}

/// Asserts that the message names the endpoint's address and contains these words.
fn assert_finding(message: &str, endpoint: &Endpoint, words: &[&str]) {
    let address = endpoint.address.to_string();
    assert!(message.contains(&address), "{address} is not in {message}");
    assert!(words.iter().all(|word| message.contains(word)), "{words:?} are not in {message}");
}

/// This includes the group: each client has its own token. librdkafka logs at its most verbose level, and the secret does not appear.
#[test]
#[cfg_attr(not(feature = "oidc"), ignore = "needs the feature oidc")]
fn a_candidate_with_a_token_leads_and_hides_its_secret() {
    let guarded = Guarded::new(Elector::Group);
    let endpoint = Endpoint::start(Duration::from_hours(1));
    let mut run = endpoint.candidate(&guarded, Elector::Group).flag("-v").property("debug", "all").start();
    let term = run.await_lead();
    guarded.election.await_witness(term);
    assert!(endpoint.asked() >= 3, "reader, producer, member: {}", endpoint.asked());
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 0);
    let debug = format!("{run:?}");
    assert!(
        debug.contains("sasl.oauthbearer.client.secret"),
        "librdkafka says what it was configured with, and redacts it"
    );
    assert!(!debug.contains(PASSWORD), "{debug}");
    guarded.election.close([run]);
}

/// At the start a refusal is final, like a wrong password.
#[test]
#[cfg_attr(not(feature = "oidc"), ignore = "needs the feature oidc")]
fn a_token_endpoint_that_refuses_is_final() {
    let guarded = Guarded::new(Elector::Log);
    let endpoint = Endpoint::start(Duration::from_hours(1));
    endpoint.set_reply(Reply::Refusal);
    let run = endpoint.candidate(&guarded, Elector::Log).start();
    let address = endpoint.address.to_string();
    assert_refused(run, &[&address, "401", "invalid_client", "sasl.oauthbearer.client.secret"]);
}

/// The candidate waits for an endpoint that can't be reached, as it does for Kafka.
#[test]
#[cfg_attr(not(feature = "oidc"), ignore = "needs the feature oidc")]
fn a_token_endpoint_that_does_not_answer_is_waited_for() {
    let guarded = Guarded::new(Elector::Log);
    let endpoint = Endpoint::start(Duration::from_hours(1));
    endpoint.set_reply(Reply::None);
    let mut run = endpoint.candidate(&guarded, Elector::Log).start();
    let down = run.await_event("broker_down");
    assert_finding(down.text("error"), &endpoint, &["Empty reply", "sasl.oauthbearer.token.endpoint.url"]);
    endpoint.set_reply(Reply::Token);
    run.await_lead();
    run.await_event("broker_up");
    assert_eq!(run.count("broker_down"), 1, "one line: {run:?}");
    guarded.election.close([run]);
}

/// A new token is requested before the old one expires. If there is none, the lead does not end while the lease lasts, not even when the
/// broker rejects the old token.
#[test]
#[cfg_attr(not(feature = "oidc"), ignore = "needs the feature oidc")]
fn a_token_endpoint_that_fails_later_ends_no_lead_before_the_lease() {
    let guarded = Guarded::new(Elector::Log);
    // A new token is requested after four seconds, and ten seconds after a refusal.
    let endpoint = Endpoint::start(Duration::from_secs(5));
    let mut run = endpoint.candidate(&guarded, Elector::Log).lease("1m").start();
    let term = run.await_lead();
    guarded.election.await_witness(term);
    endpoint.set_reply(Reply::Refusal);
    let warning = run.await_event("warning");
    assert_finding(warning.text("message"), &endpoint, &["401", "sasl.oauthbearer.client.secret", "every 10 s"]);
    let down = run.await_event("broker_down");
    endpoint.set_reply(Reply::Token);
    run.await_event("broker_up");
    assert_eq!((run.count("leading"), run.count("fenced"), run.count("error")), (1, 0, 0), "{down:?}");
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 0);
    guarded.election.close([run]);
}
