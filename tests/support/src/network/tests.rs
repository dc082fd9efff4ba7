use std::io::{Read, Write};
use std::net;

use super::*;
use crate::wait;

/// A server that echoes what it receives, and a wire to it.
fn wire() -> (Network, Wire) {
    let listener = net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let network = Network::start();
    let wire = network.wire(listener.local_addr().expect("it is bound"));
    thread::spawn(move || {
        while let Ok((mut connection, _)) = listener.accept() {
            thread::spawn(move || {
                let mut answers = connection.try_clone().expect("a descriptor to spare");
                // The test has seen how the connection ended.
                let _ = io::copy(&mut connection, &mut answers);
            });
        }
    });
    (network, wire)
}

fn connect(wire: &Wire) -> net::TcpStream {
    let connection = wait::until("a wire that listens", || net::TcpStream::connect(("127.0.0.1", wire.port)).ok());
    connection.set_read_timeout(Some(wait::PATIENCE)).expect("a time");
    connection
}

fn read_byte(connection: &mut net::TcpStream) -> io::Result<u8> {
    let mut byte = [0];
    connection.read_exact(&mut byte)?;
    Ok(byte[0])
}

#[test]
fn bytes_pass_both_ways() {
    let (_network, wire) = wire();
    let mut connection = connect(&wire);
    connection.write_all(b"ab").expect("the connection is open");
    connection.shutdown(net::Shutdown::Write).expect("the connection is open");
    let mut received = String::new();
    connection.read_to_string(&mut received).expect("the connection is closed in order");
    assert_eq!(received, "ab");
}

#[test]
fn bytes_held_in_one_direction_arrive_when_it_clears() {
    let (_network, wire) = wire();
    let mut connection = connect(&wire);
    wire.set(LinkConditions { back: Flow::Held, ..LinkConditions::default() });
    connection.write_all(b"a").expect("the connection is open");
    connection.set_read_timeout(Some(Duration::from_millis(100))).expect("a time");
    assert!(read_byte(&mut connection).is_err(), "a held byte does not arrive");
    connection.set_read_timeout(Some(wait::PATIENCE)).expect("a time");
    wire.set(LinkConditions::default());
    assert_eq!(read_byte(&mut connection).expect("received"), b'a');
}

#[test]
fn a_connection_with_lost_bytes_is_reset_when_it_clears() {
    let (_network, wire) = wire();
    let mut connection = connect(&wire);
    connection.write_all(b"a").expect("the connection is open");
    read_byte(&mut connection).expect("received");
    wire.set(LinkConditions { there: Flow::Lost, ..LinkConditions::default() });
    connection.write_all(b"b").expect("the connection is open");
    // The chunk is lost only once the proxy has read it, which can't be observed from here.
    wait::pause(Duration::from_millis(50));
    wire.set(LinkConditions::default());
    assert!(read_byte(&mut connection).is_err());
    let mut anew = connect(&wire);
    anew.write_all(b"c").expect("the connection is open");
    assert_eq!(read_byte(&mut anew).expect("received"), b'c');
}

#[test]
fn slow_and_late_bytes_arrive_whole() {
    let (_network, wire) = wire();
    for flow in [Flow::Trickle(1000), Flow::Late(Duration::from_millis(5))] {
        let mut connection = connect(&wire);
        wire.set(LinkConditions { there: flow, ..LinkConditions::default() });
        let sent: Vec<u8> = (0..100).collect();
        for _ in 0..2 {
            connection.write_all(&sent).expect("the connection is open");
            let mut received = [0; 100];
            connection.read_exact(&mut received).expect("received");
            assert_eq!(received[..], sent);
        }
    }
}

#[test]
fn a_reset_or_refused_connection_ends_at_once() {
    let (_network, wire) = wire();
    let mut connection = connect(&wire);
    connection.write_all(b"a").expect("the connection is open");
    read_byte(&mut connection).expect("received");
    wire.reset();
    assert_eq!(read_byte(&mut connection).expect_err("reset").kind(), io::ErrorKind::ConnectionReset);
    wire.set(LinkConditions { refuses: true, ..LinkConditions::default() });
    wait::until_true("a wire that refuses", || net::TcpStream::connect(("127.0.0.1", wire.port)).is_err());
    wire.set(LinkConditions::default());
    connect(&wire);
}
