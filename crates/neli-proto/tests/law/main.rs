//! The law in its written form, compared with the program's fold on random journals. Both must agree.
//!
//! `written.rs` answers each question from all records that were read. It is slow, and short enough to be compared with docs/protocol.md by
//! eye. `tests/mutants` shows that the comparison notices each broken rule of the fold.

mod both;
mod journals;
mod written;

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};

use neli_proto::journal::Origin;

use journals::Reading;

/// The number of journals that are compared.
const JOURNALS: u32 = 20_000;

/// The smallest number of times that each verdict and each state must occur, so that the comparison is meaningful.
const OFTEN: usize = 500;

/// The number of times that each verdict and state occurred.
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

/// Compares many journals. They are always the same, so that a failure is reproducible.
fn compare(seen: &Seen) -> Result<(), TestError<Reading>> {
    let config = Config { cases: JOURNALS, failure_persistence: None, ..Config::default() };
    let random = proptest::test_runner::TestRng::deterministic_rng(config.rng_algorithm);
    TestRunner::new_with_rng(config, random).run(&any_journal(), |reading| read_both_ways(&reading, seen))
}

fn any_journal() -> impl Strategy<Value = Reading> {
    let origin = prop_oneof![Just(Origin::Beginning), Just(Origin::CutHead), Just(Origin::Middle)];
    let step = (0_u8..20, 0_u8..8, 0_u8..8, 0_u8..8);
    (origin, 1_i64..10, prop::collection::vec(step, 0..30))
        .prop_map(|(origin, from, numbers)| Reading::of_numbers(origin, from, numbers))
}

/// Inputs that fuzzing has found (`fuzz/`).
#[test]
fn the_corpus_of_the_fuzz_target() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/law");
    let mut count = 0;
    for file in std::fs::read_dir(directory).expect("part of the sources") {
        let bytes = std::fs::read(file.expect("readable").path()).expect("readable");
        let reading = Reading::of_bytes(&bytes);
        both::read(&reading).unwrap_or_else(|difference| panic!("{difference}: {reading:?}"));
        count += 1;
    }
    assert!(count > 0);
}

fn read_both_ways(reading: &Reading, seen: &Seen) -> Result<(), TestCaseError> {
    let count = |what: String| *seen.borrow_mut().entry(what).or_default() += 1;
    both::read_and_tell(reading, count).map_err(TestCaseError::fail)
}
