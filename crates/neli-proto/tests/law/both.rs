//! One journal, read both ways; the fuzz target does the same.

use neli_proto::journal::{Journal, View};

use crate::journals::{Reading, Step};
use crate::written::{Law, State};

/// The first difference.
pub(crate) fn read(reading: &Reading) -> Result<(), String> {
    read_and_tell(reading, drop)
}

/// The same; each verdict and each state is told.
pub(crate) fn read_and_tell(reading: &Reading, tell: impl Fn(String)) -> Result<(), String> {
    let mut journal = Journal::read_from(reading.from, reading.origin);
    let mut law = Law::read_from(reading.from, reading.origin);
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

fn same<T: Copy + PartialEq + std::fmt::Debug>(fold: T, law: T, what: &str, step: &Step) -> Result<(), String> {
    if fold == law { Ok(()) } else { Err(format!("{what} {step:?}: the fold says {fold:?}, the law {law:?}")) }
}

/// What the fold says to the question that [`Law::state`] answers.
fn folded(journal: &Journal) -> State {
    match journal.view() {
        View::Led(term) => State::Led { term: term.offset, lease: term.lease },
        View::NeverLed => State::NeverLed,
        View::Released { term, .. } => State::Released { term: *term },
        View::Undecided(_) => State::Undecided,
    }
}
