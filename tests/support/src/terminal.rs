//! A terminal with a shell with job control, keys, and a screen.
//!
//! The terminal is a pseudoterminal of the kernel, so its foreground group, modes and signals are real.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::signal::Signal;
use nix::sys::termios::{self, Termios};
use nix::unistd;
use serde_json::Value;

use crate::candidate::Event;
use crate::process::Process;
use crate::{program, wait};

/// The shell's prompt.
pub const PROMPT: &str = "<ready>";

/// The environment variable by which all processes that were started on a terminal are found.
const MARK: &str = "NELI_TEST_TERMINAL";

/// The shells under test.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shell {
    /// GNU bash.
    Bash,
    /// Debian's `/bin/sh`.
    Dash,
}

impl Shell {
    /// The name of its program.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Dash => "dash",
        }
    }

    /// The arguments for an interactive shell without the user's own configuration.
    #[must_use]
    pub fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Bash => &["--norc", "--noprofile", "--noediting", "-i"],
            Self::Dash => &["-i"],
        }
    }
}

/// A key with Ctrl held.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ctrl {
    /// Quit.
    Backslash,
    /// Interrupt.
    C,
    /// Suspend.
    Z,
}

/// A terminal and the shell on it. Dropping it closes the terminal and kills the processes that outlive that.
#[derive(Debug)]
pub struct Terminal {
    shell: Child,
    process: Process,
    master: Option<File>,
    slave: PathBuf,
    directory: PathBuf,
    screen: Arc<Screen>,
    /// How much of the screen was returned already.
    seen: usize,
    /// The pipe, whose closing ends the reading thread, and that thread.
    reading: Option<(OwnedFd, JoinHandle<()>)>,
}

/// Everything that has appeared on the screen.
#[derive(Debug, Default)]
struct Screen {
    text: Mutex<Vec<u8>>,
    changed: Condvar,
}

impl Terminal {
    /// A terminal with this shell in `directory`, at its prompt. A directory can have one shell at a time.
    #[must_use]
    pub fn new(shell: Shell, directory: &Path) -> Self {
        // The descriptor is close-on-exec, because another test's child would inherit it otherwise.
        let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC).expect("a pseudoterminal");
        grantpt(&master).expect("the new terminal can be unlocked");
        unlockpt(&master).expect("the new terminal can be unlocked");
        let slave = PathBuf::from(ptsname_r(&master).expect("it has a name"));
        let master = File::from(OwnedFd::from(master));
        let end = || {
            let opened = File::options().read(true).write(true).custom_flags(OFlag::O_NOCTTY.bits()).open(&slave);
            Stdio::from(opened.expect("the other end of a pseudoterminal"))
        };
        let name = shell.name();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "setsid", "--ctty", "--", name]).args(shell.arguments());
        command.env("PS1", PROMPT).env("PS2", "").env("TERM", "dumb").env_remove("ENV").env_remove("HISTFILE");
        command.env(MARK, directory).current_dir(directory);
        command.stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().expect("setpriv is part of util-linux: apt-get install util-linux");
        let screen = Arc::new(Screen::default());
        let (ended, end_of_reading) = unistd::pipe2(OFlag::O_CLOEXEC).expect("a pipe");
        let reader = master.try_clone().expect("a descriptor");
        let writer = Arc::clone(&screen);
        let thread = thread::spawn(move || writer.read(&reader, &ended));
        let process = Process::child(child.id());
        let reading = Some((end_of_reading, thread));
        let directory = directory.to_owned();
        let mut terminal =
            Self { shell: child, process, master: Some(master), slave, directory, screen, seen: 0, reading };
        let found = wait::poll_for(wait::PATIENCE, || {
            (terminal.screen.find(PROMPT, 0).is_some() || !process.lives()).then(|| process.lives())
        });
        assert_eq!(found, Some(true), "no prompt of {name}: apt-get install {name}\n{}", terminal.screen.show());
        terminal.await_prompt();
        terminal
    }

    /// The shell's process.
    #[must_use]
    pub fn shell(&self) -> Process {
        self.process
    }

    /// Types text.
    pub fn type_text(&self, text: &str) {
        let master = self.master.as_ref().expect("the terminal was not closed");
        unistd::write(master, text.as_bytes()).expect("the terminal takes it");
    }

    /// Types a line.
    pub fn type_line(&self, line: &str) {
        self.type_text(&format!("{line}\n"));
    }

    /// Presses a key.
    pub fn press(&self, key: Ctrl) {
        self.type_text(match key {
            Ctrl::Backslash => "\x1c",
            Ctrl::C => "\x03",
            Ctrl::Z => "\x1a",
        });
    }

    /// Waits until `text` appears after what was returned before, and returns what appeared before it.
    pub fn await_text(&mut self, text: &str) -> String {
        let found = wait::poll_for(wait::PATIENCE, || self.screen.find(text, self.seen));
        let at = found.unwrap_or_else(|| panic!("{text:?} did not appear:\n{}", self.screen.show()));
        let before = self.screen.part(self.seen, at);
        self.seen = at + text.len();
        before
    }

    /// Waits for the prompt, and returns what appeared before it.
    pub fn await_prompt(&mut self) -> String {
        self.await_text(PROMPT)
    }

    /// Types a line, waits for the next prompt, and returns what appeared between the two.
    pub fn run(&mut self, line: &str) -> String {
        self.type_line(line);
        let text = self.await_prompt();
        text.replacen(&format!("{line}\r\n"), "", 1)
    }

    /// Everything that has appeared.
    #[must_use]
    pub fn text(&self) -> String {
        self.screen.show()
    }

    /// The foreground process group.
    #[must_use]
    pub fn foreground(&self) -> i32 {
        let master = self.master.as_ref().expect("the terminal was not closed");
        unistd::tcgetpgrp(master).expect("a terminal with a session").as_raw()
    }

    /// The terminal's modes.
    #[must_use]
    pub fn modes(&self) -> Termios {
        let master = self.master.as_ref().expect("the terminal was not closed");
        termios::tcgetattr(master).expect("a terminal has modes")
    }

    /// Changes the size of the window.
    pub fn resize(&self, rows: u16, columns: u16) {
        let (rows, columns) = (rows.to_string(), columns.to_string());
        let done = Command::new("stty").arg("-F").arg(&self.slave).args(["rows", &rows, "cols", &columns]).status();
        assert!(done.expect("stty is part of coreutils").success());
    }

    /// Closes the terminal.
    pub fn close(&mut self) {
        if let Some((end, thread)) = self.reading.take() {
            drop(end);
            thread.join().expect("the call only reads");
        }
        self.master = None;
    }

    /// Every process that was started on it and is alive.
    #[must_use]
    pub fn processes(&self) -> Vec<Process> {
        Process::with_variable(MARK, &self.directory)
    }
}

impl Screen {
    fn read(&self, mut master: &File, ended: &OwnedFd) {
        let mut bytes = [0; 4096];
        loop {
            let mut both =
                [PollFd::new(master.as_fd(), PollFlags::POLLIN), PollFd::new(ended.as_fd(), PollFlags::POLLIN)];
            match poll(&mut both, PollTimeout::NONE) {
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(error) => panic!("a terminal can be polled: {error}"),
            }
            if both[1].any() == Some(true) {
                return;
            }
            match master.read(&mut bytes) {
                Ok(count) => {
                    self.text.lock().expect("no panic while it was locked").extend(&bytes[..count]);
                    self.changed.notify_all();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // No process has the other end open any more.
                Err(_) => return,
            }
        }
    }

    /// The position of `text` at or after `from`.
    fn find(&self, text: &str, from: usize) -> Option<usize> {
        let bytes = self.text.lock().expect("no panic while it was locked");
        let rest = bytes.get(from..)?;
        rest.windows(text.len()).position(|window| window == text.as_bytes()).map(|at| from + at)
    }

    fn part(&self, from: usize, to: usize) -> String {
        let bytes = self.text.lock().expect("no panic while it was locked");
        String::from_utf8_lossy(&bytes[from..to]).into_owned()
    }

    fn show(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().expect("no panic while it was locked")).into_owned()
    }
}

impl Drop for Terminal {
    #[expect(clippy::print_stderr, reason = "a failed test prints the contents of its terminal")]
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("--- the terminal showed:\n{}", self.text());
        }
        Process::cut_power(self.processes());
        self.close();
        self.process.signal(Signal::SIGKILL);
        self.shell.wait().expect("a child can be waited for");
    }
}

/// A log file to which one `neli-run` after the other writes.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    /// How many lines were returned or skipped already.
    returned: usize,
}

impl Log {
    /// The log in this file, which need not exist yet.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), returned: 0 }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for the next event of this name, after the last one that was returned.
    pub fn await_event(&mut self, name: &str) -> Event {
        let find = || {
            let events = self.events().into_iter().enumerate().skip(self.returned);
            events.into_iter().find(|(_, event)| event.name() == name)
        };
        let found = wait::poll_for(wait::PATIENCE, find);
        let (at, event) = found.unwrap_or_else(|| panic!("no `{name}` in {}", self.text()));
        self.returned = at + 1;
        event
    }

    /// The events so far.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        let text = self.text();
        // The last line may be incomplete.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let fields = whole.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        fields.map(|fields| Event { at: wait::now(), fields }).collect()
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap_or_default()
    }
}

/// Writes a script to a file that executes `words`.
pub fn script(path: &Path, words: &[impl AsRef<std::ffi::OsStr>]) {
    let quoted: Vec<String> = words
        .iter()
        .map(|word| format!("'{}'", word.as_ref().to_str().expect("UTF-8").replace('\'', r"'\''")))
        .collect();
    executable(path, &format!("exec {} \"$@\"", quoted.join(" ")));
}

/// Writes a shell script to a file.
pub fn executable(path: &Path, text: &str) {
    program::write(path, &format!("#!/bin/sh\n{text}\n"));
}
