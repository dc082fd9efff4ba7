//! Requests that rust-rdkafka does not support, encoded by hand. Kafka's own tools take seconds to start.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::wait;

/// A request of Kafka's protocol, possibly incomplete.
pub(crate) struct Request(Vec<u8>);

impl Request {
    /// A request with this API key and version.
    pub(crate) fn new(kind: i16, version: i16) -> Self {
        let mut request = Self(Vec::new());
        request.i16(kind);
        request.i16(version);
        request.i32(1); // correlation
        request.text("harness");
        request
    }

    pub(crate) fn i8(&mut self, number: i8) {
        self.0.extend(number.to_be_bytes());
    }

    fn i16(&mut self, number: i16) {
        self.0.extend(number.to_be_bytes());
    }

    pub(crate) fn i32(&mut self, number: i32) {
        self.0.extend(number.to_be_bytes());
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.i16(i16::try_from(text.len()).expect("a short text"));
        self.0.extend(text.as_bytes());
    }

    /// The length of the array or text that follows, in a flexible version.
    pub(crate) fn compact_length(&mut self, length: usize) {
        self.0.push(u8::try_from(length + 1).ok().filter(|byte| *byte < 0x80).expect("a short list"));
    }

    /// Empty tagged fields, in a flexible version.
    pub(crate) fn no_tags(&mut self) {
        self.0.push(0);
    }

    pub(crate) fn compact_text(&mut self, text: &str) {
        self.compact_bytes(text.as_bytes());
    }

    pub(crate) fn compact_bytes(&mut self, bytes: &[u8]) {
        self.compact_length(bytes.len());
        self.0.extend(bytes);
    }

    /// Sends it to `HOST:PORT`, and returns the answer, which begins with the correlation id.
    pub(crate) fn send(&self, address: &str) -> io::Result<Vec<u8>> {
        let address: SocketAddr = address.parse().map_err(io::Error::other)?;
        let mut connection = TcpStream::connect_timeout(&address, wait::PATIENCE)?;
        connection.set_read_timeout(Some(wait::PATIENCE))?;
        let size = i32::try_from(self.0.len()).map_err(io::Error::other)?.to_be_bytes();
        connection.write_all(&[&size[..], &self.0].concat())?;
        let mut size = [0; 4];
        connection.read_exact(&mut size)?;
        let mut answer = vec![0; usize::try_from(i32::from_be_bytes(size)).map_err(io::Error::other)?];
        connection.read_exact(&mut answer)?;
        Ok(answer)
    }
}
