//! Reads the output of a command, line by line, and keeps its last line. It never blocks.

use std::io;
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::task::{Context, Poll};

use nix::errno::Errno;
use nix::fcntl::{self, FcntlArg, OFlag};
use nix::unistd;

use crate::process::ready::Ready;

/// The last line is kept up to this length, in bytes.
const LAST_LINE: usize = 1_000;
/// A longer line is passed on in pieces of this size, which a pipe accepts atomically.
const LONGEST: usize = 4096;
/// How many bytes are read at once before the loop handles other events: the capacity of a pipe.
const AT_ONCE: usize = 64 * 1024;

/// The read end of the pipe with a command's output.
pub struct Tail {
    pipe: OwnedFd,
    ready: Ready,
    partial: PartialLine,
    last: LastLine,
    ended: bool,
}

impl Tail {
    /// A new pipe; returns also the end to which the command writes. Must be called within a runtime.
    ///
    /// # Errors
    ///
    /// There is no free descriptor.
    pub fn new() -> io::Result<(Self, OwnedFd)> {
        let (pipe, input) = unistd::pipe2(OFlag::O_CLOEXEC)?;
        fcntl::fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let ready = Ready::of(&pipe)?;
        Ok((Self { pipe, ready, partial: PartialLine::default(), last: LastLine::default(), ended: false }, input))
    }

    /// Waits until there is something to read. If all writers are gone, it waits for ever.
    pub fn poll_wait(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.ended { Poll::Pending } else { self.ready.poll_wait(context) }
    }

    /// Reads the available output, and passes on each complete line.
    pub fn read(&mut self, mut pass_on: impl FnMut(&[u8])) {
        let mut bytes = [0; 4096];
        for _ in 0..AT_ONCE / bytes.len() {
            match unistd::read(self.pipe.as_fd(), &mut bytes) {
                Ok(length @ 1..) => {
                    self.last.push(&bytes[..length]);
                    self.partial.push(&bytes[..length], &mut pass_on);
                }
                Err(Errno::EAGAIN) => return,
                Ok(0) | Err(_) => {
                    self.ended = true;
                    return;
                }
            }
        }
    }

    /// Returns the last line, after the command has ended, and passes on the rest of the output before. Output that other processes write
    /// later is dropped.
    #[must_use]
    pub fn into_last_line(mut self, mut pass_on: impl FnMut(&[u8])) -> String {
        self.read(&mut pass_on);
        self.partial.end(pass_on);
        self.last.text()
    }
}

/// An incomplete line.
#[derive(Debug, Default)]
struct PartialLine(Vec<u8>);

impl PartialLine {
    fn push(&mut self, bytes: &[u8], pass_on: &mut impl FnMut(&[u8])) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            for piece in part.chunks(LONGEST) {
                if self.0.len() + piece.len() > LONGEST {
                    pass_on(&self.0);
                    self.0.clear();
                }
                self.0.extend(piece);
            }
            if self.0.ends_with(b"\n") {
                pass_on(&self.0);
                self.0.clear();
            }
        }
    }

    /// Handles the end of the output: passes the line on with a newline.
    fn end(mut self, mut pass_on: impl FnMut(&[u8])) {
        if !self.0.is_empty() {
            self.0.push(b'\n');
            pass_on(&self.0);
        }
    }
}

/// The last line that is not blank, shortened to the limit.
#[derive(Debug, Default)]
struct LastLine {
    whole: Vec<u8>,
    begun: Vec<u8>,
}

impl LastLine {
    fn push(&mut self, bytes: &[u8]) {
        for (index, part) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if index > 0 {
                let line = mem::take(&mut self.begun);
                if !line.trim_ascii().is_empty() {
                    self.whole = line;
                }
            }
            let room = LAST_LINE.saturating_sub(self.begun.len());
            self.begun.extend(part.iter().take(room));
        }
    }

    fn text(&self) -> String {
        let line = if self.begun.trim_ascii().is_empty() { &self.whole } else { &self.begun };
        String::from_utf8_lossy(line.trim_ascii()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(parts: &[&str]) -> String {
        let mut line = LastLine::default();
        for part in parts {
            line.push(part.as_bytes());
        }
        line.text()
    }

    #[test]
    fn the_last_line_that_is_not_blank_is_kept() {
        assert_eq!(last(&[]), "");
        assert_eq!(last(&["one\ntwo\n"]), "two");
        assert_eq!(last(&["one\ntwo"]), "two");
        assert_eq!(last(&["one\n\n  \n"]), "one");
        assert_eq!(last(&["o", "n", "e\nt", "wo"]), "two");
        assert_eq!(last(&["one\r\n"]), "one");
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let mut line = LastLine::default();
        (0..1_000).for_each(|_| line.push(&[b'x'; 999]));
        assert_eq!(line.text().len(), LAST_LINE);
        line.push(b"\nlast");
        assert_eq!(line.text(), "last");
    }

    #[test]
    fn output_in_pieces_is_passed_on_by_the_line() {
        let mut passed = Vec::new();
        let mut pass_on = |line: &[u8]| passed.push(line.to_owned());
        let mut line = PartialLine::default();
        for part in [&b"o"[..], b"ne\n\ntwo\nth", b"re", b"\xff"] {
            line.push(part, &mut pass_on);
        }
        line.end(&mut pass_on);
        assert_eq!(passed, [&b"one\n"[..], b"\n", b"two\n", b"thre\xff\n"]);
    }

    #[test]
    fn a_line_without_end_is_passed_on_in_pieces() {
        let mut passed = Vec::new();
        let mut line = PartialLine::default();
        let mut whole: Vec<u8> = (0..100_u8).cycle().map(|number| b'0' + number % 10).take(100_000).collect();
        for part in whole.chunks(999) {
            line.push(part, &mut |piece: &[u8]| passed.push(piece.to_owned()));
        }
        assert!(passed.len() >= 100_000 / LONGEST && passed.iter().all(|piece| piece.len() <= LONGEST));
        line.end(|piece| passed.push(piece.to_owned()));
        whole.push(b'\n');
        assert_eq!(passed.concat(), whole);
    }

    #[test]
    fn bytes_that_are_no_text_are_escaped() {
        let mut line = LastLine::default();
        line.push(b"\xffa");
        assert_eq!(line.text(), "\u{fffd}a");
    }
}
