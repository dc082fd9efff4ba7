//! Rules that are broken on purpose, to show that the model, the law, the scenarios and the chaos notice it.
//!
//! The shipped sources contain no trace of them: the mutants are a [table](table::mutants) of edits that are made in a copy of the
//! sources below `target/`. In the copy each is an alternative that an environment variable selects, so one build serves all. `cargo
//! test` only checks that each edit still fits the sources; this runs them all:
//!
//! ```text
//! cargo test --test mutants -- --ignored --nocapture
//! MUTANTS=EchoByKind,WindowKept cargo test --test mutants -- --ignored --nocapture
//! ```

mod copy;
mod mutant;
mod notice;
mod place;
mod schemata;
mod table;

use std::collections::BTreeSet;
use std::time::Instant;

use mutant::{Mutant, Notice};
use table::mutants;

#[test]
fn each_mutant_fits_the_sources() {
    copy::changed_files().unwrap_or_else(|lost| panic!("{lost}"));
    let names: BTreeSet<&str> = mutants().map(|mutant| mutant.name).collect();
    assert_eq!(names.len(), mutants().count(), "each has a name of its own");
    for mutant in mutants() {
        assert!(!mutant.edits.is_empty(), "{} changes nothing", mutant.name);
        assert!(!mutant.noticed_by.is_empty(), "nothing notices {}", mutant.name);
    }
}

#[test]
#[ignore = "builds a copy of the program, and has the chaos run it: three minutes"]
fn each_mutant_is_noticed() {
    let names = std::env::var("MUTANTS").unwrap_or_default();
    let names: Vec<&str> = names.split(',').filter(|name| !name.is_empty()).collect();
    let mutants: Vec<&Mutant> = mutants().filter(|mutant| names.is_empty() || names.contains(&mutant.name)).collect();
    assert!(names.is_empty() || mutants.len() == names.len(), "{names:?}: some of these are no mutants");
    let built = timed("building the copy", || copy::build().unwrap());
    let wrong = timed("the model and the law", || notice::by_tests(&mutants, &built));
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), mutants.len(), wrong.join("\n"));
    let wrong = timed("the chaos", || notice::by_chaos(&mutants, &built));
    assert_eq!(wrong, None);
    let chaos =
        mutants.iter().filter(|mutant| mutant.noticed_by.iter().any(|notice| matches!(notice, Notice::Chaos(_))));
    println!("mutants: all {} were noticed, {} of them by the chaos", mutants.len(), chaos.count());
}

#[expect(clippy::disallowed_methods, clippy::print_stdout, reason = "how long it takes is for people")]
fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = work();
    println!("mutants: {what}: {:.1} s", began.elapsed().as_secs_f64());
    result
}
