//! With arbitrary input the server answers or closes the connection, and continues to serve.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::Duration;

use proptest::prelude::*;

use super::super::{bind, serve};
use super::*;
use crate::config::Listen;

/// Much more time than an answer takes, and than a request may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// One server for all cases.
fn server() -> SocketAddr {
    static ADDRESS: OnceLock<SocketAddr> = OnceLock::new();
    *ADDRESS.get_or_init(|| {
        let bound = bind(&Listen { host: "127.0.0.1".to_owned(), port: 0, shown: String::new() }).unwrap();
        let address = bound.local_addr().unwrap();
        let board = Board::new(Arc::new(snapshot(clock::now(), vec![standing_by(None, TermState::Undecided)])));
        serve(bound, || Rc::new(AnswerSource::new(Arc::new(board)))).unwrap();
        address
    })
}

/// Sends these bytes; returns what is received until the connection is closed.
fn answer(bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // It fails if the server closes the connection before everything was sent.
    let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "neither answered nor closed: {bytes:?}");
    }
    answer
}

fn assert_serves() {
    let response = answer(b"GET /leader HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(response.starts_with(b"HTTP/1.1 503 "), "{}", String::from_utf8_lossy(&response));
}

fn request() -> impl Strategy<Value = Vec<u8>> {
    let method = prop_oneof![Just("GET".to_owned()), Just("HEAD".to_owned()), "[A-Z]{1,9}", "\\PC{0,5}"];
    let path = prop_oneof![
        Just("/status".to_owned()),
        "/(leader|metrics|readyz)/?\\PC{0,20}",
        "[/%.a-z0-9?#:@*-]{0,200}",
        "\\PC{0,40}"
    ];
    let version = prop_oneof![Just("HTTP/1.1".to_owned()), Just("HTTP/1.0".to_owned()), "HTTP/[0-9.]{0,4}"];
    let header = ("[A-Za-z-]{0,20}", prop_oneof![Just(":"), Just(""), Just(" : ")], "\\PC{0,40}");
    let headers = prop::collection::vec(header, 0..80);
    (method, path, version, headers, any::<bool>()).prop_map(|(method, path, version, headers, ends)| {
        let lines = headers.iter().map(|(name, colon, value)| format!("{name}{colon}{value}\r\n"));
        let headers = lines.collect::<Vec<_>>().concat();
        let end = if ends { "\r\n" } else { "" };
        format!("{method} {path} {version}\r\n{headers}{end}").into_bytes()
    })
}

/// `nc -N` and similar clients close their half as soon as the request is sent.
#[test]
fn a_client_that_closes_its_half_before_the_server_reads_is_answered() {
    let bound = bind(&Listen { host: "127.0.0.1".to_owned(), port: 0, shown: String::new() }).unwrap();
    let mut stream = TcpStream::connect(bound.local_addr().unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /leader HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let board = Board::new(Arc::new(snapshot(clock::now(), vec![standing_by(None, TermState::Undecided)])));
    serve(bound, || Rc::new(AnswerSource::new(Arc::new(board)))).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 503 "), "{response:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_do_not_stop_the_server(bytes in prop::collection::vec(any::<u8>(), 0..20_000)) {
        answer(&bytes);
        assert_serves();
    }

    #[test]
    fn random_requests_do_not_stop_the_server(request in request()) {
        // A client that follows the status would wait for ever here.
        prop_assume!(!request.windows(7).any(|part| part == b"/events"));
        let response = answer(&request);
        prop_assert!(response.is_empty() || response.starts_with(b"HTTP/1."), "{}", String::from_utf8_lossy(&response));
        assert_serves();
    }
}
