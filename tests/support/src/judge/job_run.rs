//! The data of the history about each run of a job, and their sums.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::witness::{Event, Line};

/// HUP, INT, QUIT and TERM, which stop a job. Other signals are passed on to a job that continues, such as CONT if its supervisor was
/// stopped.
const STOPS: [i64; 4] = [1, 2, 3, 15];

/// The name of a run's file without the term: the slot, and the candidate's number in it.
#[must_use]
pub fn life_of(slot: usize, life: usize) -> String {
    format!("{slot}.{life}.")
}

/// One run of a job in a term of one candidate.
#[derive(Clone, Debug)]
pub struct JobRun {
    /// The candidate's slot.
    pub slot: usize,
    /// The number of the candidate in its slot.
    pub life: u64,
    /// `NELI_EPOCH`.
    pub term: u64,
    /// The window of the run, if it has one.
    pub window: Option<u64>,
    /// Whether it follows another run of the same term in the same lead.
    pub is_again: bool,
    /// How often the topic had been created again when it began.
    pub generation: u32,
    /// The first and the last line of all its processes.
    pub span: (u64, u64),
    /// Its main process's pid.
    pub main: i32,
    /// Its end.
    pub end: End,
    /// Whether supervisor and guard were killed at once. Then the job's processes are outside the guarantee (assumption 3).
    pub abandoned: bool,
    /// The file that its processes write.
    pub file: PathBuf,
    /// Its processes.
    pub pids: BTreeSet<i32>,
    /// The latest deadline that the lease descriptor showed.
    pub deadline: u64,
    /// When the lease descriptor first showed no deadline any more.
    pub term_over: Option<u64>,
    /// Whether a violation by it was reported already.
    pub judged: bool,
}

impl JobRun {
    /// The run of a file. The file's name contains the slot, the candidate's number in the slot, the window if there is one, and the term.
    #[must_use]
    pub fn of_file(file: &Path) -> Self {
        let name = file.file_name().and_then(|name| name.to_str()).expect("we gave it its name");
        let numbers: Vec<u64> = name.split('.').map(|part| part.parse().expect("numbers")).collect();
        let (slot, life, window, term) = match numbers[..] {
            [slot, life, term] => (slot, life, None, term),
            [slot, life, window, term] => (slot, life, Some(window), term),
            _ => panic!("{name} is no run"),
        };
        Self {
            slot: usize::try_from(slot).expect("a small number"),
            life,
            term,
            window,
            is_again: false,
            generation: 0,
            span: (u64::MAX, 0),
            main: 0,
            end: End::default(),
            abandoned: false,
            file: file.to_owned(),
            pids: BTreeSet::new(),
            deadline: 0,
            term_over: None,
            judged: false,
        }
    }

    /// Reads the end of the run from a line.
    pub fn take_end(&mut self, line: &Line) {
        if self.end == End::Unrecorded {
            self.end = match line.event {
                Event::Signal(signal) if STOPS.contains(&signal) => End::Stopped,
                Event::End(0) if line.pid == self.main => End::Success,
                Event::Beat | Event::End(_) | Event::Signal(_) | Event::Start(_) => End::Unrecorded,
            };
        }
    }
}

/// The end of a run, according to its own lines.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum End {
    /// Not recorded.
    #[default]
    Unrecorded,
    /// A process of it got a stop signal.
    Stopped,
    /// Its main process ended by itself with status 0.
    Success,
}

/// Two runs at the same time.
#[derive(Clone, Debug)]
pub struct Overlap {
    /// Their terms.
    pub terms: (u64, u64),
    /// The slots of their candidates.
    pub slots: (usize, usize),
    /// Begin and end.
    pub span: (u64, u64),
    /// Why it is outside the guarantee; `None` if it is a violation.
    pub excuse: Option<&'static str>,
}

/// Counters of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Runs of jobs.
    pub leaderships: usize,
    /// Two runs at the same time.
    pub overlaps: usize,
    /// Two runs at the same time that are outside the guarantee.
    pub excused: usize,
    /// Processes that were alive after their term.
    pub orphans: usize,
    /// Terms that were not higher than the earlier ones.
    pub shrunk: usize,
}

impl Counts {
    /// The sum of two counters.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        Self {
            leaderships: self.leaderships + other.leaderships,
            overlaps: self.overlaps + other.overlaps,
            excused: self.excused + other.excused,
            orphans: self.orphans + other.orphans,
            shrunk: self.shrunk + other.shrunk,
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { leaderships, overlaps, excused, orphans, shrunk } = self;
        write!(
            f,
            "leaderships {leaderships}, overlaps {overlaps} (outside the guarantee {excused}), orphans {orphans}, \
             terms that did not grow {shrunk}"
        )
    }
}

/// The latest line of a job.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Latest {
    /// The lateness in nanoseconds.
    pub by: u64,
    /// The run that it belongs to.
    pub of: String,
}

impl fmt::Display for Latest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { by, of } = self;
        if *by == 0 { f.write_str("none") } else { write!(f, "{:?} ({of})", Duration::from_nanos(*by)) }
    }
}
