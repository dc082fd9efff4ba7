//! The job that records when it ran (`witness.c`), and the check of its records.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, iter};

use crate::install;
use crate::process::Process;

/// The options of a witness; becomes its command line.
#[derive(Clone, Debug)]
pub struct Witness {
    file: PathBuf,
    arguments: Vec<String>,
}

impl Witness {
    /// A witness that writes to `file` and ends on a stop signal. If the name ends in a dot, the term is appended to it.
    #[must_use]
    pub fn new(file: &Path) -> Self {
        Self { file: file.to_owned(), arguments: Vec::new() }
    }

    /// Adds an option: `"--child"`, `"--daemon"`, `"--ignore-stop"`.
    #[must_use]
    pub fn with(mut self, word: &str) -> Self {
        self.arguments.push(word.to_owned());
        self
    }

    /// Adds an option with a number: `"--linger-ms"`, `"--end-ms"`, `"--status"`, `"--uid"`.
    #[must_use]
    pub fn set(self, word: &str, number: u64) -> Self {
        self.with(word).with(&number.to_string())
    }

    /// Its command line.
    #[must_use]
    pub fn command(&self) -> Vec<OsString> {
        let program = install::witness().as_os_str().to_owned();
        let arguments = self.arguments.iter().map(OsString::from);
        iter::once(program).chain(iter::once(self.file.clone().into_os_string())).chain(arguments).collect()
    }
}

/// One line that a witness wrote.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Line {
    /// The time in nanoseconds of `CLOCK_BOOTTIME`.
    pub at: u64,
    /// The event.
    pub event: Event,
    /// The process's role in the job; `main` is the job's main process.
    pub role: String,
    /// The process's pid.
    pub pid: i32,
    /// `NELI_EPOCH`.
    pub epoch: Option<u64>,
    /// The guard's deadline in the lease descriptor; 0 if the term is over or there is no descriptor.
    pub deadline: u64,
}

/// The event of a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// The process runs.
    Beat,
    /// The process is about to end by itself with this status.
    End(i64),
    /// The process received this signal.
    Signal(i64),
    /// The first instruction of its main process, with the parent's pid.
    Start(i64),
}

/// All lines that the witnesses of one election wrote.
#[derive(Clone, Debug, Default)]
pub struct Testimony {
    /// The lines in the order of their writing.
    pub lines: Vec<Line>,
}

impl Testimony {
    /// The lines of a file; none if it does not exist yet.
    #[must_use]
    pub fn read(file: &Path) -> Self {
        let text = fs::read_to_string(file).unwrap_or_default();
        // The last line may be incomplete.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines =
            whole.lines().map(|line| Line::parse(line).unwrap_or_else(|| panic!("no line of a witness: {line:?}")));
        Self { lines: lines.collect() }
    }

    /// The lines of one term.
    #[must_use]
    pub fn of(&self, epoch: u64) -> impl DoubleEndedIterator<Item = &Line> {
        self.lines.iter().filter(move |line| line.epoch == Some(epoch))
    }

    /// The times of each term's first and last line.
    #[must_use]
    pub fn spans(&self) -> BTreeMap<u64, (u64, u64)> {
        let mut spans = BTreeMap::new();
        for line in &self.lines {
            let epoch = line.epoch.expect("a job of neli-run has NELI_EPOCH");
            let (first, last) = spans.entry(epoch).or_insert((line.at, line.at));
            *first = line.at.min(*first);
            *last = line.at.max(*last);
        }
        spans
    }

    /// Every two terms whose jobs ran at the same time: must be empty.
    #[must_use]
    pub fn overlaps(&self) -> Vec<String> {
        let spans: Vec<_> = self.spans().into_iter().collect();
        let mut overlaps = Vec::new();
        for (index, (epoch, (first, last))) in spans.iter().enumerate() {
            for (later, (later_first, later_last)) in &spans[index + 1..] {
                if later_first <= last && first <= later_last {
                    let together = last.min(later_last) - first.max(later_first);
                    overlaps.push(format!("terms {epoch} and {later} ran together for {} us", together / 1000));
                }
            }
        }
        overlaps
    }

    /// The processes that wrote lines and are alive, of one term or of all.
    #[must_use]
    pub fn alive(&self, epoch: Option<u64>) -> Vec<Process> {
        let lines = self.lines.iter().filter(|line| epoch.is_none() || line.epoch == epoch);
        let pids: BTreeSet<i32> = lines.map(|line| line.pid).collect();
        // A process that got the pid of a witness later does not count.
        pids.into_iter()
            .filter_map(Process::find)
            .filter(|process| process.name().as_deref() == Some("witness"))
            .collect()
    }

    /// The time of the first instruction of each main process.
    #[must_use]
    pub fn starts(&self) -> impl DoubleEndedIterator<Item = &Line> {
        self.lines.iter().filter(|line| matches!(line.event, Event::Start(_)))
    }

    /// Every signal that a witness received.
    pub fn signals(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| matches!(line.event, Event::Signal(_)))
    }
}

impl Line {
    /// Parses one whole line.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(' ').collect();
        let &[at, event, role, pid, epoch, deadline, detail] = &fields[..] else { return None };
        let detail = detail.parse().ok()?;
        let event = match event {
            "beat" => Event::Beat,
            "end" => Event::End(detail),
            "signal" => Event::Signal(detail),
            "start" => Event::Start(detail),
            _ => return None,
        };
        let (at, pid, epoch, deadline) =
            (at.parse().ok()?, pid.parse().ok()?, epoch.parse().ok(), deadline.parse().ok()?);
        Some(Self { at, event, role: role.to_owned(), pid, epoch, deadline })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn testimony(text: &str) -> Testimony {
        let directory = install::scratch();
        let file = directory.path().join("witness");
        fs::write(&file, text).expect("the file can be written");
        Testimony::read(&file)
    }

    #[test]
    fn an_overlap_is_caught() {
        let together = testimony(
            "1000 start main 7 3 0 1\n9000 beat main 7 3 0 0\n8000 start main 8 5 0 1\n12000 beat main 8 5 0 0\n",
        );
        assert_eq!(together.overlaps(), ["terms 3 and 5 ran together for 1 us"]);
    }

    #[test]
    fn a_later_term_inside_an_earlier_one_is_reported() {
        let inside = testimony("1000 beat main 7 3 0 0\n9000 beat main 7 3 0 0\n5000 beat main 8 5 0 0\n");
        assert_eq!(inside.overlaps().len(), 1);
    }

    #[test]
    fn an_orphan_of_an_earlier_term_is_reported() {
        let orphan = testimony("1000 beat main 7 3 0 0\n2000 beat main 8 5 0 0\n3000 beat daemon 9 3 0 0\n");
        assert_eq!(orphan.overlaps().len(), 1);
    }

    #[test]
    fn jobs_that_run_one_after_another_do_not_overlap() {
        let well = testimony(
            "1000 beat main 7 3 0 0\n2000 beat main 7 3 0 0\n2001 start main 8 5 0 1\n3000 beat main 8 5 0 0\n99",
        );
        assert_eq!(well.overlaps(), [""; 0]);
        assert_eq!(well.lines.len(), 4, "a line that is half written is left out");
    }
}
