//! The jobs' own records, read while the jobs run: which job ran when, and whether two ran at the same time.
//!
//! Each run of a job writes to its own file, which is read as it grows and removed after its end. So a day of chaos needs no more disk
//! space than a minute.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::axis::nanos;
use super::job_run::{Counts, End, JobRun, Latest, Overlap, life_of};
use super::overlaps;
use crate::process::Process;
use crate::wait;
use crate::witness::{Event, Line};

/// A process of a job that is alive this long after its term's end is an orphan.
const ORPHAN_AFTER: Duration = Duration::from_secs(1);

/// A run that has written nothing for this long is over.
const OVER_AFTER: Duration = Duration::from_secs(3);

/// Within this time after the request a topic has been created again, or will not be.
const REMADE_WITHIN: Duration = Duration::from_mins(1);

/// A run's file, and how much of it was read.
#[derive(Debug)]
struct Tail {
    file: File,
    /// An incomplete line.
    rest: Vec<u8>,
    /// The run to which the next lines belong.
    job_run: usize,
}

/// The conditions that jobs must meet, besides the basic ones.
#[derive(Clone, Debug, Default)]
pub struct Law {
    /// The lease of each slot.
    pub leases: Vec<Duration>,
    /// The time from a deadline to the lease's end, if it is checked. Then a line after that is a violation.
    pub kill_margin: Option<Duration>,
    /// Whether a stop signal to a job is a violation.
    pub undisturbed: bool,
    /// Two jobs may run at the same time during a handover (`--overlap`).
    pub overlap: Option<Duration>,
    /// Whether a job that ends is run again in the same term.
    pub runs_again: bool,
    /// Whether lines may be incomplete: at a memory limit a line may be written in part, and the next one may begin in the middle of it.
    pub lines_may_break: bool,
}

/// All runs.
#[derive(Debug)]
pub struct History {
    law: Law,
    directory: PathBuf,
    tails: HashMap<PathBuf, Tail>,
    /// Each run, in the order in which they were found.
    pub job_runs: Vec<JobRun>,
    /// Runs whose processes may still write.
    open: Vec<usize>,
    /// Two runs at the same time, by their indices.
    pub overlaps: BTreeMap<(usize, usize), Overlap>,
    /// Processes that were alive after their term.
    pub orphans: Vec<String>,
    /// Terms that were not higher than the earlier ones.
    pub shrunk: Vec<String>,
    /// Stop signals to jobs that should have got none.
    disturbances: Vec<String>,
    /// The line that was latest after its deadline.
    pub after_deadline: Latest,
    /// The line that was latest after the end of its term: after its deadline, or after its guard has ended the term before that, which is
    /// not dangerous.
    pub after_term: Latest,
    remakes: Vec<Remake>,
    /// Candidates whose supervisor and guard were killed at once.
    abandoned: BTreeSet<(usize, u64)>,
    /// The highest term so far, after the number of its topic: 0 for the first, 1 after the topic was created again.
    highest: Option<(u32, u64)>,
}

/// The topic was deleted and created again.
#[derive(Debug)]
struct Remake {
    requested: u64,
    /// From this time on, no lead begins in the topic from before.
    certain: u64,
}

impl History {
    /// The history of runs that write into this directory.
    #[must_use]
    pub fn new(directory: &Path, law: Law) -> Self {
        Self {
            law,
            directory: directory.to_owned(),
            tails: HashMap::new(),
            job_runs: Vec::new(),
            open: Vec::new(),
            overlaps: BTreeMap::new(),
            orphans: Vec::new(),
            shrunk: Vec::new(),
            disturbances: Vec::new(),
            after_deadline: Latest::default(),
            after_term: Latest::default(),
            remakes: Vec::new(),
            abandoned: BTreeSet::new(),
            highest: None,
        }
    }

    /// The file of the witnesses of a slot's `life`th candidate; the term is appended to it.
    #[must_use]
    pub fn prefix(&self, slot: usize, life: usize) -> PathBuf {
        self.directory.join(life_of(slot, life))
    }

    /// Notes that the topic will be created again: terms begin at 0.
    pub fn topic_was_remade(&mut self, at: u64) {
        self.remakes.push(Remake { requested: at, certain: at + nanos(REMADE_WITHIN) });
    }

    /// Notes that the topic that was noted last exists: who leads from now on leads in it.
    pub fn topic_is_remade(&mut self, at: u64) {
        self.remakes.last_mut().expect("it was noted").certain = at;
    }

    /// Notes that supervisor and guard of this candidate will be killed at once. From now on its jobs are outside the guarantee.
    pub fn abandon(&mut self, slot: usize, life: usize) {
        let life = u64::try_from(life).expect("a small number");
        self.abandoned.insert((slot, life));
        for job_run in &mut self.job_runs {
            job_run.abandoned |= (job_run.slot, job_run.life) == (slot, life);
        }
    }

    /// The run that wrote last, if that was within the last tenth of a second.
    #[must_use]
    pub fn current(&self) -> Option<usize> {
        let latest = self.open.iter().copied().max_by_key(|job_run| self.job_runs[*job_run].span.1)?;
        (self.job_runs[latest].span.1 + nanos(Duration::from_millis(100)) >= wait::now()).then_some(latest)
    }

    /// Reads and judges all new lines.
    pub fn read(&mut self) {
        self.look_for_files();
        let now = wait::now();
        let mut lines = Vec::new();
        for (file, tail) in &mut self.tails {
            let mut bytes = std::mem::take(&mut tail.rest);
            tail.file.read_to_end(&mut bytes).expect("a file can be read");
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            tail.rest = bytes.split_off(whole);
            let text = String::from_utf8(bytes).expect("witnesses write text");
            for line in text.lines() {
                let parsed = Line::parse(line);
                if self.law.lines_may_break && !parsed.as_ref().is_some_and(|line| makes_sense(line, now)) {
                    continue;
                }
                let line = parsed.unwrap_or_else(|| panic!("{}: no line of a witness: {line:?}", file.display()));
                // This is another run of the same term, in the same lead or in a topic that was created again.
                let again = matches!(line.event, Event::Start(_)) && self.job_runs[tail.job_run].main != line.pid;
                if again && self.job_runs[tail.job_run].main != 0 {
                    let before = &self.job_runs[tail.job_run];
                    let job_run =
                        JobRun { pids: BTreeSet::new(), judged: false, main: 0, end: End::default(), ..before.clone() };
                    let job_run = JobRun { is_again: self.law.runs_again, ..job_run };
                    self.job_runs.push(JobRun { span: (u64::MAX, 0), deadline: 0, term_over: None, ..job_run });
                    tail.job_run = self.job_runs.len() - 1;
                    self.open.push(tail.job_run);
                }
                if let Event::Start(_) = line.event {
                    self.job_runs[tail.job_run].main = line.pid;
                }
                // Processes that an earlier run left behind belong to that run.
                let is_earlier = |job_run: &&usize| {
                    let job_run = &self.job_runs[**job_run];
                    job_run.file == *file && job_run.pids.contains(&line.pid)
                };
                let earlier = self.open.iter().filter(|_| self.law.runs_again).find(is_earlier);
                lines.push((earlier.copied().unwrap_or(tail.job_run), line));
            }
        }
        // The lines are ordered by time, so that the growth of terms can be checked.
        lines.sort_by_key(|(_, line)| line.at);
        for (job_run, line) in &lines {
            self.take(*job_run, line);
        }
        self.compare();
    }

    fn look_for_files(&mut self) {
        for entry in fs::read_dir(&self.directory).expect("the directory of the runs can be read") {
            let path = entry.expect("the directory of the runs can be read").path();
            if self.tails.contains_key(&path) {
                continue;
            }
            // Only this process removes files, so the file exists.
            let file = File::open(&path).expect("a file that is there");
            let mut found = JobRun::of_file(&path);
            found.abandoned = self.abandoned.contains(&(found.slot, found.life));
            // A daemon runs the job again under its term, for another window.
            let is_of_its_lead =
                |other: &JobRun| (other.slot, other.life, other.term) == (found.slot, found.life, found.term);
            if let Some(earlier) = self.job_runs.iter().rfind(|other| found.window.is_some() && is_of_its_lead(other)) {
                (found.is_again, found.generation) = (true, earlier.generation);
            }
            self.job_runs.push(found);
            let job_run = self.job_runs.len() - 1;
            self.open.push(job_run);
            self.tails.insert(path, Tail { file, rest: Vec::new(), job_run });
        }
    }

    /// The generation of the topic of a run that started at this time in this term. The old topic may have a leader until all brokers know
    /// of its deletion. Until that is certain, it is the first generation in which the term is higher than all earlier ones.
    fn generation_of(&self, term: u64, at: u64) -> u32 {
        let remade_before = |time: fn(&Remake) -> u64| {
            let remakes = self.remakes.iter().filter(|remade| time(remade) < at).count();
            u32::try_from(remakes).expect("a small number")
        };
        let (certain, latest) = (remade_before(|remade| remade.certain), remade_before(|remade| remade.requested));
        let grows = |generation: &u32| self.highest.is_none_or(|highest| (*generation, term) > highest);
        (certain..=latest).find(grows).unwrap_or(latest)
    }

    fn take(&mut self, index: usize, line: &Line) {
        let JobRun { term, is_again, generation, .. } = self.job_runs[index];
        let generation = if is_again { generation } else { self.generation_of(term, line.at) };
        let job_run = &mut self.job_runs[index];
        if let Event::Start(_) = line.event {
            job_run.generation = generation;
            let place = (job_run.generation, job_run.term);
            if let Some(highest) = self.highest
                && (place < highest || place == highest && !is_again)
            {
                let JobRun { term, slot, .. } = job_run;
                let (topic, before) = highest;
                self.shrunk.push(format!("term {term} of slot {slot} came after term {before} (topic {topic})"));
            }
            self.highest = self.highest.max(Some(place));
        }
        if let (Event::Signal(signal), true) = (line.event, self.law.undisturbed) {
            self.disturbances.push(format!("signal {signal} at {} of term {}", line.role, job_run.term));
        }
        job_run.take_end(line);
        job_run.span = (job_run.span.0.min(line.at), job_run.span.1.max(line.at));
        job_run.pids.insert(line.pid);
        if line.deadline > 0 {
            job_run.deadline = job_run.deadline.max(line.deadline);
        } else if job_run.deadline > 0 {
            job_run.term_over.get_or_insert(line.at);
        }
        if job_run.abandoned || job_run.deadline == 0 {
            return;
        }
        // The deadline may be moved forward between the reading of the clock and that of the lease, but never back.
        let late = line.at.saturating_sub(job_run.term_over.unwrap_or(u64::MAX).min(job_run.deadline));
        let beyond = line.at.saturating_sub(job_run.deadline);
        for (latest, by) in [(&mut self.after_term, late), (&mut self.after_deadline, beyond)] {
            if by > latest.by {
                *latest = Latest {
                    by,
                    of: format!("{} {} of term {} of slot {}", line.role, line.pid, job_run.term, job_run.slot),
                };
            }
        }
        if let Some(margin) = self.law.kill_margin
            && beyond > nanos(margin)
            && !job_run.judged
        {
            job_run.judged = true;
            let (term, slot, pid) = (job_run.term, job_run.slot, line.pid);
            let beyond = (beyond - nanos(margin)) / 1_000_000;
            let what = format!(
                "{} {pid} of term {term} of slot {slot} wrote a line {beyond} ms after its lease's end",
                line.role
            );
            self.disturbances.push(what);
        }
        if late > nanos(ORPHAN_AFTER) && !job_run.judged {
            job_run.judged = true;
            let (term, slot, pid) = (job_run.term, job_run.slot, line.pid);
            let late = late / 1_000_000;
            self.orphans.push(format!(
                "{} {pid} of term {term} of slot {slot} wrote a line {late} ms after its term was over",
                line.role
            ));
        }
    }

    /// Finds two runs at the same time among those that may still write.
    fn compare(&mut self) {
        for (at, later) in self.open.iter().enumerate() {
            for earlier in &self.open[..at] {
                let mut pair = [&self.job_runs[*earlier], &self.job_runs[*later]];
                pair.sort_by_key(|job_run| (job_run.generation, job_run.term));
                let [a, b] = pair;
                if a.span.0 > b.span.1 || b.span.0 > a.span.1 {
                    continue;
                }
                let span = (a.span.0.max(b.span.0), a.span.1.min(b.span.1));
                let excuse = self.law.excuse(a, b, span.1 - span.0);
                let overlap = Overlap { terms: (a.term, b.term), slots: (a.slot, b.slot), span, excuse };
                self.overlaps.insert((*earlier, *later), overlap);
            }
        }
    }

    /// Closes the runs that are over, and checks that no process of them is left.
    pub fn close_what_is_over(&mut self) {
        let now = wait::now();
        let over = |job_run: &JobRun| job_run.span.1 > 0 && job_run.span.1 + nanos(OVER_AFTER) < now;
        let (closed, open): (Vec<usize>, Vec<usize>) =
            self.open.iter().partition(|index| over(&self.job_runs[**index]));
        self.open = open;
        for index in closed {
            let left = self.processes_of(index);
            let job_run = &self.job_runs[index];
            if !left.is_empty() && !job_run.abandoned {
                self.orphans.push(format!("{left:?} of term {} of slot {} are left", job_run.term, job_run.slot));
            }
            let job_run = &mut self.job_runs[index];
            job_run.pids = BTreeSet::new();
            let file = std::mem::take(&mut job_run.file);
            // Another run in the same file may have been closed just before.
            let is_last = self.open.iter().all(|other| self.job_runs[*other].file != file);
            if is_last && self.tails.remove(&file).is_some() {
                fs::remove_file(&file).expect("a file that nobody else removes");
            }
        }
    }

    /// The living processes of a run.
    #[must_use]
    pub fn processes_of(&self, job_run: usize) -> Vec<Process> {
        let JobRun { pids, file, .. } = &self.job_runs[job_run];
        let prefix = file.with_extension("");
        let prefix = format!("{}.", prefix.display());
        let is_ours = |process: &Process| {
            let words = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|word| word == prefix.as_bytes())
        };
        pids.iter().filter_map(|pid| Process::find(*pid)).filter(is_ours).collect()
    }

    /// The runs whose processes may still write.
    #[must_use]
    pub fn open(&self) -> &[usize] {
        &self.open
    }

    /// The violations that the history alone shows.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        let overlaps = self.overlaps.values().filter(|overlap| overlap.excuse.is_none()).map(|overlap| {
            let Overlap { terms, slots, span, .. } = overlap;
            let micros = (span.1 - span.0) / 1000;
            format!(
                "terms {} (slot {}) and {} (slot {}) ran together for {micros} us",
                terms.0, slots.0, terms.1, slots.1
            )
        });
        let disturbances = self.disturbances.iter().cloned();
        let overlaps = overlaps.chain(overlaps::of_three(&self.overlaps));
        overlaps.chain(self.orphans.iter().cloned()).chain(self.shrunk.iter().cloned()).chain(disturbances).collect()
    }

    /// Allows stop signals from now on, because the test itself stops candidates.
    pub fn expect_signals(&mut self) {
        self.law.undisturbed = false;
    }

    /// The numbers so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            leaderships: self.job_runs.len(),
            overlaps: self.overlaps.values().filter(|overlap| overlap.excuse.is_none()).count(),
            excused: self.overlaps.values().filter(|overlap| overlap.excuse.is_some()).count(),
            orphans: self.orphans.len(),
            shrunk: self.shrunk.len(),
        }
    }

    /// How often the leader changed to another candidate.
    #[must_use]
    pub fn changes(&self) -> usize {
        let mut job_runs: Vec<&JobRun> = self.job_runs.iter().filter(|job_run| job_run.span.1 > 0).collect();
        job_runs.sort_by_key(|job_run| job_run.span.0);
        job_runs.windows(2).filter(|pair| (pair[0].slot, pair[0].life) != (pair[1].slot, pair[1].life)).count()
    }
}

/// Whether the numbers of a line are plausible: a time in the past, and a deadline within a lease.
fn makes_sense(line: &Line, now: u64) -> bool {
    const LONGEST_LEASE: Duration = Duration::from_mins(1);
    let is_near = now.saturating_sub(line.at) < nanos(LONGEST_LEASE);
    let has_lease = line.deadline == 0 || line.deadline.abs_diff(line.at) < nanos(LONGEST_LEASE);
    line.at <= now && is_near && has_lease
}

#[cfg(test)]
mod tests;
