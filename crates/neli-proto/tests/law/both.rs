//! Reads one journal with both implementations of the law. The fuzz target uses it as well.

use neli_proto::journal::{Journal, View};
use neli_proto::record::Offset;
use neli_proto::time::Time;

use crate::journals::{Reading, Step};
use crate::written::{Law, State};

/// The first difference.
pub(crate) fn read(reading: &Reading) -> Result<(), String> {
    read_and_tell(reading, drop)
}

/// The same; also passes each verdict and state to `tell`.
pub(crate) fn read_and_tell(reading: &Reading, tell: impl Fn(String)) -> Result<(), String> {
    let mut journal = Journal::read_from(reading.from, reading.origin);
    let mut law = Law::read_from(reading.from, reading.origin);
    let mut late = Late::read_from(reading);
    for step in &reading.steps {
        match step {
            Step::Answered { at, asked, end } => {
                journal.answered(*at, *asked, *end);
                law.answered(*asked, *end);
            }
            Step::Missed { below } => {
                journal.miss_below(*below);
                law.miss_below(*below);
            }
            Step::Other { at, offset } => {
                journal.read_other(*at, *offset);
                law.read_other(*at, *offset);
            }
            Step::Read { at, offset, record } => {
                let verdict = journal.read(*at, *offset, record.as_ref());
                same(verdict, law.read(*at, *offset, record.as_ref()), "the verdict on", step)?;
                tell(format!("{verdict:?}"));
            }
        }
        late.take(step);
        if late.passed.is_none() {
            same(folded(&late.journal), law.state(), "what is known late after", step)?;
            same(late.journal.last(), law.last(), "the last record known late after", step)?;
        }
        same(folded(&journal), law.state(), "what is known after", step)?;
        same(journal.last(), law.last(), "the last record after", step)?;
        tell(match law.state() {
            State::Led { .. } => "led".to_owned(),
            State::NeverLed => "never led".to_owned(),
            State::Released { .. } => "released".to_owned(),
            State::Undecided => "not decided".to_owned(),
        });
    }
    Ok(())
}

/// A reader that passes on records under other keys as late as the reader of a session with many elections: before any other event, and
/// where an offset is missing.
struct Late {
    journal: Journal,
    /// The next offset.
    next: Option<Offset>,
    /// The range of records under other keys that was not passed on yet.
    passed: Option<(Offset, Offset)>,
}

impl Late {
    fn read_from(reading: &Reading) -> Self {
        let journal = Journal::read_from(reading.from, reading.origin);
        Self { journal, next: Some(reading.from), passed: None }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Other { offset, .. } if self.next == Some(*offset) => {
                let first = self.passed.map_or(*offset, |(first, _)| first);
                self.passed = Some((first, *offset));
            }
            Step::Other { at, offset } => {
                self.pass(*at);
                self.journal.read_other(*at, *offset);
            }
            Step::Answered { at, asked, end } => {
                self.pass(*at);
                self.journal.answered(*at, *asked, *end);
            }
            Step::Missed { below } => {
                self.pass(Time::ZERO);
                self.journal.miss_below(*below);
            }
            Step::Read { at, offset, record } => {
                self.pass(*at);
                self.journal.read(*at, *offset, record.as_ref());
            }
        }
        match step {
            Step::Answered { .. } => {}
            Step::Missed { .. } => self.next = None,
            Step::Other { offset, .. } | Step::Read { offset, .. } => self.next = Some(offset + 1),
        }
    }

    fn pass(&mut self, at: Time) {
        if let Some((first, last)) = self.passed.take() {
            self.journal.read_others(at, first, last);
        }
    }
}

fn same<T: Copy + PartialEq + std::fmt::Debug>(fold: T, law: T, what: &str, step: &Step) -> Result<(), String> {
    if fold == law { Ok(()) } else { Err(format!("{what} {step:?}: the fold says {fold:?}, the law {law:?}")) }
}

/// The fold's result for [`Law::state`].
fn folded(journal: &Journal) -> State {
    match journal.view() {
        View::Led(term) => State::Led { term: term.offset, lease: term.lease },
        View::NeverLed => State::NeverLed,
        View::Released { term, .. } => State::Released { term: *term },
        View::Undecided(_) => State::Undecided,
    }
}
