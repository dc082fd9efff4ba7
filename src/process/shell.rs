//! Command lines, each run by `/bin/sh -c` as a child of this process: a health command or a hook; and the reading of its output.
//!
//! Each has its own process group, which is killed as a whole, and no input; it dies with this process.

use std::io;
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::task::{Context, Poll};

use neli_proto::job::CommandEnd;
use nix::errno::Errno;
use nix::fcntl::{self, FcntlArg, OFlag};
use nix::libc::SIGKILL;
use nix::unistd::{self, Pid};

use crate::process::ready::Ready;
use crate::process::spawn::{LATE, PendingChild, SpawnSpec, spawn};
use crate::process::system;
use crate::text::why_not_started;

/// The commands that were started and not waited for yet, each with what it is.
#[derive(Debug)]
pub(crate) struct ShellCommands<K>(Vec<(K, PendingChild)>);

impl<K> ShellCommands<K> {
    pub(crate) const fn none() -> Self {
        Self(Vec::new())
    }

    /// Starts a command: the image of a shell.
    ///
    /// # Errors
    ///
    /// There is no process, memory or descriptor left.
    pub(crate) fn start(&mut self, what: K, spec: &SpawnSpec<'_>) -> io::Result<()> {
        self.0.push((what, spawn(spec)?));
        Ok(())
    }

    /// The pids of their shells.
    pub(crate) fn pids(&self) -> impl Iterator<Item = Pid> {
        self.0.iter().map(|(_, child)| child.pid)
    }

    /// Whether one may not have executed yet.
    pub(crate) fn is_any_pending(&self) -> bool {
        self.0.iter().any(|(_, child)| child.is_pending())
    }

    /// Sends SIGKILL to the groups of these. Processes that have left their group are not killed. Waiting shows the command's own end.
    pub(crate) fn kill(&self, is_meant: impl Fn(&K) -> bool) {
        self.0.iter().filter(|(what, _)| is_meant(what)).for_each(|(_, child)| kill_group_of(child));
    }

    /// Kills the processes that a command has left in its group. Called when a child has ended and was not waited for: until then the
    /// group's id belongs to it for certain.
    pub(crate) fn end_group_of(&self, pid: Pid) {
        self.0.iter().filter(|(_, child)| child.pid == pid).for_each(|(_, child)| kill_group_of(child));
    }

    /// What it was and how it has ended, if this child was one of them and has ended.
    pub(crate) fn observe_child(&mut self, pid: Pid, status: ExitStatus) -> Option<(K, CommandEnd)> {
        let at = self.0.iter().position(|(_, child)| child.pid == pid)?;
        let end = end_of(&self.0[at].1, status)?;
        Some((self.0.swap_remove(at).0, end))
    }
}

fn kill_group_of(child: &PendingChild) {
    let _ = system::signal_group(child.pid, SIGKILL);
}

/// How it ended, according to the wait status; `None` if the status is not an end.
fn end_of(child: &PendingChild, status: ExitStatus) -> Option<CommandEnd> {
    let ended = match (status.code(), status.signal()) {
        (Some(code), _) => CommandEnd::Exited(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, Some(signal)) => CommandEnd::Signaled(signal),
        (None, None) => return None,
    };
    Some(match child.executed() {
        Some(Err(LATE)) => CommandEnd::Abandoned,
        Some(Err(errno)) => not_started(errno.into()),
        Some(Ok(())) | None => ended,
    })
}

/// The end of a command that could not be started.
#[expect(clippy::needless_pass_by_value, reason = "what `map_err` gives")]
pub(crate) fn not_started(error: io::Error) -> CommandEnd {
    CommandEnd::NotStarted(why_not_started(&error).into())
}

/// The last line is kept up to this length, in bytes.
const LAST_LINE: usize = 1_000;
/// A longer line is passed on in pieces of this size, which a pipe accepts atomically.
const LONGEST: usize = 4096;
/// How many bytes are read at once before the loop handles other events: the capacity of a pipe.
const AT_ONCE: usize = 64 * 1024;

/// The read end of the pipe with a command's output. It never blocks.
pub struct Tail {
    pipe: OwnedFd,
    ready: Ready,
    lines: Lines,
    ended: bool,
}

impl Tail {
    /// A new pipe; returns also the end to which the command writes. Must be called within a runtime.
    ///
    /// # Errors
    ///
    /// There is no free descriptor.
    pub(crate) fn new() -> io::Result<(Self, OwnedFd)> {
        let (pipe, input) = unistd::pipe2(OFlag::O_CLOEXEC)?;
        fcntl::fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let ready = Ready::of(&pipe)?;
        Ok((Self { pipe, ready, lines: Lines::default(), ended: false }, input))
    }

    /// Waits until there is something to read. If all writers are gone, it waits for ever.
    pub(crate) fn poll_wait(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.ended { Poll::Pending } else { self.ready.poll_wait(context) }
    }

    /// Reads the available output, and passes on each complete line.
    pub(crate) fn read(&mut self, mut pass_on: impl FnMut(&[u8])) {
        let mut bytes = [0; 4096];
        for _ in 0..AT_ONCE / bytes.len() {
            match unistd::read(self.pipe.as_fd(), &mut bytes) {
                Ok(length @ 1..) => self.lines.push(&bytes[..length], &mut pass_on),
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
    pub(crate) fn into_last_line(mut self, mut pass_on: impl FnMut(&[u8])) -> String {
        self.read(&mut pass_on);
        self.lines.end(&mut pass_on)
    }
}

/// The lines of an output: the one that is incomplete, and the last that is not blank, up to the limit.
#[derive(Debug, Default)]
struct Lines {
    partial: Vec<u8>,
    /// Whether a part of the incomplete line was passed on.
    is_continued: bool,
    last: Vec<u8>,
}

impl Lines {
    fn push(&mut self, bytes: &[u8], pass_on: &mut impl FnMut(&[u8])) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            for piece in part.chunks(LONGEST) {
                if self.partial.len() + piece.len() > LONGEST {
                    self.pass_on(pass_on);
                }
                self.partial.extend(piece);
            }
            if self.partial.ends_with(b"\n") {
                self.pass_on(pass_on);
            }
        }
    }

    /// Passes on what there is of the line. The last line is kept from its beginning on.
    fn pass_on(&mut self, pass_on: &mut impl FnMut(&[u8])) {
        let line = mem::take(&mut self.partial);
        let is_continued = mem::replace(&mut self.is_continued, !line.ends_with(b"\n"));
        if !is_continued && !line.trim_ascii().is_empty() {
            self.last = line[..line.len().min(LAST_LINE)].to_vec();
        }
        pass_on(&line);
    }

    /// Handles the end of the output: passes the incomplete line on with a newline, and returns the last one.
    fn end(mut self, pass_on: &mut impl FnMut(&[u8])) -> String {
        if !self.partial.is_empty() {
            self.push(b"\n", pass_on);
        }
        String::from_utf8_lossy(self.last.trim_ascii()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is passed on, and the last line.
    fn read(parts: &[&[u8]]) -> (Vec<Vec<u8>>, String) {
        let (mut passed, mut lines) = (Vec::new(), Lines::default());
        let mut pass_on = |line: &[u8]| passed.push(line.to_owned());
        for part in parts {
            lines.push(part, &mut pass_on);
        }
        let last = lines.end(&mut pass_on);
        (passed, last)
    }

    #[test]
    fn the_last_line_that_is_not_blank_is_kept() {
        let last = |parts: &[&str]| read(&parts.iter().map(|part| part.as_bytes()).collect::<Vec<_>>()).1;
        assert_eq!(last(&[]), "");
        assert_eq!(last(&["one\ntwo\n"]), "two");
        assert_eq!(last(&["one\ntwo"]), "two");
        assert_eq!(last(&["one\n\n  \n"]), "one");
        assert_eq!(last(&["one\n\n  "]), "one");
        assert_eq!(last(&["o", "n", "e\nt", "wo"]), "two");
        assert_eq!(last(&["one\r\n"]), "one");
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let parts = vec![&[b'x'; 999][..]; 1_000];
        assert_eq!(
            read(&[&[&b"begun "[..]], parts.as_slice()].concat()).1,
            format!("begun {}", "x".repeat(LAST_LINE - 6))
        );
        assert_eq!(read(&[parts.as_slice(), &[&b"\nlast"[..]]].concat()).1, "last");
    }

    #[test]
    fn output_in_pieces_is_passed_on_by_the_line() {
        let (passed, _) = read(&[b"o", b"ne\n\ntwo\nth", b"re", b"\xff"]);
        assert_eq!(passed, [&b"one\n"[..], b"\n", b"two\n", b"thre\xff\n"]);
    }

    #[test]
    fn a_line_without_end_is_passed_on_in_pieces() {
        let mut whole: Vec<u8> = (0..100_u8).cycle().map(|number| b'0' + number % 10).take(100_000).collect();
        let (passed, _) = read(&whole.chunks(999).collect::<Vec<_>>());
        assert!(passed.len() >= 100_000 / LONGEST && passed.iter().all(|piece| piece.len() <= LONGEST));
        whole.push(b'\n');
        assert_eq!(passed.concat(), whole);
    }

    #[test]
    fn bytes_that_are_no_text_are_escaped() {
        assert_eq!(read(&[b"\xffa"]).1, "\u{fffd}a");
    }
}
