//! The picture in README: two terminals with README's first command, and what they show when the first candidate is killed. It is drawn from
//! a run of the program; numbers that differ from run to run are replaced by fixed ones.

use std::fmt::Write;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::{keep, root};

/// How long a line is awaited.
const PATIENCE: Duration = Duration::from_secs(40);

/// A terminal: the processes that write to it, and what they wrote.
struct Terminal {
    candidate: Child,
    log: Receiver<String>,
    job: Receiver<String>,
    shown: Vec<String>,
}

impl Terminal {
    fn start(directory: &Path, name: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_neli-run"));
        command.args(["--embedded", "--group", "demo", "--name", name, "--", "examples/job.sh"]).current_dir(root(""));
        command.env("XDG_RUNTIME_DIR", directory).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut candidate = command.spawn().unwrap();
        let (log, job) = (lines(candidate.stderr.take().unwrap()), lines(candidate.stdout.take().unwrap()));
        Self { candidate, log, job, shown: Vec::new() }
    }

    /// Waits until the log has a line with these words.
    fn await_log(&mut self, words: &str) {
        loop {
            let line = self.log.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{words:?} in {:?}", self.shown));
            // A line begins with its time and `neli-run[PID]`.
            let text = line.splitn(3, ' ').nth(2).unwrap_or_default().to_owned();
            let is_awaited = text.contains(words);
            self.shown.push(text);
            if is_awaited {
                return;
            }
        }
    }

    /// Waits until the job has written a line with these words.
    fn await_job(&mut self, words: &str) {
        loop {
            let line = self.job.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{words:?} in {:?}", self.shown));
            let is_awaited = line.contains(words);
            self.shown.push(line);
            if is_awaited {
                return;
            }
        }
    }
}

#[test]
fn the_picture_of_the_readme_is_a_run_of_its_first_command() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = Terminal::start(directory.path(), "db1");
    first.await_log("the job runs");
    first.await_job("working, 1 s");
    let mut second = Terminal::start(directory.path(), "db2");
    second.await_log("standing by");
    first.await_job("working, 2 s");
    first.candidate.kill().unwrap();
    first.candidate.wait().unwrap();
    second.await_log("the job runs");
    second.await_job("working, 2 s");
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(second.candidate.id().try_into().unwrap()),
        nix::sys::signal::Signal::SIGTERM,
    )
    .unwrap();
    assert_eq!(second.candidate.wait().unwrap().code(), Some(0));

    let left: Vec<String> = first.shown.iter().map(|line| fixed(line, "4713")).chain(["Killed".to_owned()]).collect();
    let right: Vec<String> = second.shown.iter().map(|line| fixed(line, "4715")).collect();
    keep("docs/takeover.svg", &picture(&left, &right));
}

/// The lines of a stream, as they come.
fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        BufReader::new(stream).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    receiver
}

/// The line with the numbers of this run replaced: pids and the port, the offset that heartbeats have moved, and the term after it.
fn fixed(line: &str, pid: &str) -> String {
    let second_term = if line.contains("term 0") { "0" } else { "9" };
    let numbers = [("pid ", pid), ("job ", pid), ("127.0.0.1:", "9092"), ("offset ", "8"), ("term ", second_term)];
    numbers.iter().fold(line.to_owned(), |line, (before, number)| {
        let Some((start, rest)) = line.split_once(before) else { return line };
        let end = rest.trim_start_matches(|sign: char| sign.is_ascii_digit());
        if end.len() == rest.len() { line } else { format!("{start}{before}{number}{end}") }
    })
}

/// The size of a terminal in the picture, in columns.
const COLUMNS: usize = 62;
/// The size of a character in the picture, in pixels.
const WIDTH: usize = 7;
/// The height of a line, in pixels.
const HEIGHT: usize = 17;
/// Around the text, and between the terminals, in pixels.
const MARGIN: usize = 12;

/// Both terminals beside each other, each with its command and its lines. The colours follow the reader's theme.
fn picture(left: &[String], right: &[String]) -> String {
    let terminals = [("db1", left), ("db2", right)].map(|(name, lines)| {
        let command = format!("$ neli-run --embedded --group demo --name {name} -- examples/job.sh");
        let rows: Vec<Row> = wrapped(&command).map(|row| (true, row)).collect();
        let rows =
            rows.into_iter().chain(lines.iter().flat_map(|line| wrapped(line).map(|row| (row == "Killed", row))));
        rows.collect::<Vec<_>>()
    });
    let terminals = later_below(terminals);
    let rows = terminals.iter().map(Vec::len).max().unwrap_or_default();
    let (terminal, height) = (COLUMNS * WIDTH + 2 * MARGIN, rows * HEIGHT + 2 * MARGIN);
    let width = 2 * terminal + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"11.6\">\n\
         <title>Two terminals: the first candidate is killed, and the second runs the job.</title>\n\
         <style>rect {{ fill: #f6f8fa; stroke: #d0d7de }} text {{ fill: #1f2328; white-space: pre }} .typed {{ font-weight: bold }}\n\
         @media (prefers-color-scheme: dark) {{ rect {{ fill: #161b22; stroke: #30363d }} text {{ fill: #e6edf3 }} }}</style>\n"
    );
    for (rows, x) in terminals.iter().zip([0, terminal + MARGIN]) {
        writeln!(svg, "<rect x=\"{x}\" y=\"0\" width=\"{terminal}\" height=\"{height}\" rx=\"6\"/>").unwrap();
        for (row, (is_typed, text)) in rows.iter().enumerate() {
            if text.is_empty() {
                continue;
            }
            let class = if *is_typed { " class=\"typed\"" } else { "" };
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            let (x, y) = (x + MARGIN, MARGIN + (row + 1) * HEIGHT - 5);
            writeln!(svg, "<text x=\"{x}\" y=\"{y}\"{class}>{text}</text>").unwrap();
        }
    }
    svg + "</svg>\n"
}

/// A row, and whether it is bold.
type Row = (bool, String);

/// Moves what the second terminal shows after the end of the first below that end.
fn later_below([left, mut right]: [Vec<Row>; 2]) -> [Vec<Row>; 2] {
    let claims = right.iter().position(|(_, row)| row.contains("claiming")).unwrap();
    let gap = left.len().saturating_sub(claims);
    right.splice(claims..claims, std::iter::repeat_n((false, String::new()), gap));
    [left, right]
}

/// The line in rows as wide as a terminal; those that follow the first are indented.
fn wrapped(line: &str) -> impl Iterator<Item = String> {
    let mut rows = vec![String::new()];
    for word in line.split(' ') {
        let row = rows.last_mut().unwrap();
        if row.len() + 1 + word.len() > COLUMNS {
            rows.push(format!("  {word}"));
        } else {
            row.push_str(if row.is_empty() { "" } else { " " });
            row.push_str(word);
        }
    }
    rows.into_iter()
}
