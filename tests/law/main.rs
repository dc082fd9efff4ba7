//! The law as the protocol's page has it, beside the law as the program folds it: the same of every journal.
//!
//! `written.rs` answers each question from the whole of what was read; it is slow, and short enough to be compared with
//! the page by eye. The program's own sources are compiled into this test, so that a rule can be broken on purpose: the
//! comparison must notice each.

#[allow(dead_code, unreachable_pub, reason = "the crate's own, and more than the comparison needs")]
#[path = "../../src/logic/flaw.rs"]
mod flaw;
#[allow(dead_code, unreachable_pub, reason = "the crate's own, and more than the comparison needs")]
#[path = "../../src/logic/journal.rs"]
mod journal;
#[allow(dead_code, unreachable_pub, reason = "the crate's own, and more than the comparison needs")]
#[path = "../../src/logic/record.rs"]
mod record;
#[allow(dead_code, unreachable_pub, reason = "the crate's own, and more than the comparison needs")]
#[path = "../../src/logic/time.rs"]
mod time;

mod journals;
mod written;

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};

use flaw::{Flaw, break_rule};
use journal::{Journal, View};
use journals::{Reading, Step};
use written::{Law, State};

/// How many journals are read both ways.
const JOURNALS: u32 = 20_000;

/// How often each verdict and each state must have come up, or the comparison shows little.
const OFTEN: usize = 500;

/// The rules of the law.
const RULES: [Flaw; 9] = [
    Flaw::AnswersDatedByArrival,
    Flaw::AnswersHoldForEver,
    Flaw::BeatsDoNotVoid,
    Flaw::EveryClaimEffective,
    Flaw::GapIgnored,
    Flaw::SeenIgnored,
    Flaw::StartDecided,
    Flaw::UnjudgedIsVoid,
    Flaw::WindowKept,
];

/// What was seen on the way.
type Seen = RefCell<BTreeMap<String, usize>>;

#[test]
fn the_fold_is_the_law() {
    let seen = Seen::default();
    if let Err(difference) = compare(&seen) {
        panic!("{difference}");
    }
    for (what, count) in &*seen.borrow() {
        assert!(*count >= OFTEN, "{what} came up {count} times only");
    }
    let kinds = 4 + 4;
    assert_eq!(seen.borrow().len(), kinds, "every verdict and every state: {:?}", seen.borrow());
}

#[test]
fn a_broken_rule_is_noticed() {
    for rule in RULES {
        break_rule(Some(rule));
        let noticed = compare(&Seen::default());
        break_rule(None);
        assert!(noticed.is_err(), "{rule:?} was not noticed");
    }
}

/// Reads many journals both ways: the same ones each time, so that what was found is found again.
fn compare(seen: &Seen) -> Result<(), TestError<Reading>> {
    let config = Config { cases: JOURNALS, failure_persistence: None, ..Config::default() };
    let random = proptest::test_runner::TestRng::deterministic_rng(config.rng_algorithm);
    TestRunner::new_with_rng(config, random).run(&journals::any(), |reading| read_both_ways(&reading, seen))
}

fn read_both_ways(reading: &Reading, seen: &Seen) -> Result<(), TestCaseError> {
    let mut journal = Journal::read_from(reading.from, reading.origin);
    let mut law = Law::read_from(reading.from, reading.origin);
    let count = |what: String| *seen.borrow_mut().entry(what).or_default() += 1;
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
                prop_assert_eq!(verdict, law.read(*at, *offset, record.as_ref()), "the verdict on {:?}", step);
                count(format!("{verdict:?}"));
            }
        }
        prop_assert_eq!(folded(&journal), law.state(), "what is known after {:?}", step);
        prop_assert_eq!(journal.last(), law.last(), "the last record after {:?}", step);
        count(match law.state() {
            State::Led { .. } => "led".to_owned(),
            State::NeverLed => "never led".to_owned(),
            State::Released { .. } => "released".to_owned(),
            State::Undecided => "not decided".to_owned(),
        });
    }
    Ok(())
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
