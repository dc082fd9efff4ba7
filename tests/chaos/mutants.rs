//! Tests the checks: the program of `tests/mutants` runs with one broken rule after another, and each must be noticed. Without a mutant
//! nothing may be noticed.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use harness::candidate::Elector;
use harness::wait;

use crate::environment::Environment;
use crate::fault::Fault;
use crate::run::{self, Parameters};

/// A mutant must be noticed within this time.
const WITHIN: Duration = Duration::from_secs(60);

/// Without a mutant the program must pass for this time.
const HOLDS_FOR: Duration = Duration::from_secs(20);

/// The number of mutants that are run at the same time, each in its own election.
pub(crate) const AT_ONCE: usize = 6;

/// A mutant of the program, and the faults that reveal it: `NAME=FAULT+FAULT`.
#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    name: String,
    faults: Vec<Fault>,
}

impl FromStr for Mutant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, faults) = text.split_once('=').ok_or("NAME=FAULT+FAULT is expected")?;
        let faults = faults.split('+').map(|fault| Fault::from_str(fault, true)).collect::<Result<_, _>>()?;
        Ok(Self { name: name.to_owned(), faults })
    }
}

/// Runs all of them; returns whether each is noticed in time. Those that take longest should come first.
pub(crate) fn are_caught(parameters: &Parameters, mutants: &[Mutant], environment: &Environment) -> bool {
    let all_faults: BTreeSet<Fault> = mutants.iter().flat_map(|mutant| mutant.faults.iter().copied()).collect();
    let trials = mutants.iter().map(|mutant| (Some(mutant.name.as_str()), mutant.faults.clone()));
    let left = Mutex::new([(None, all_faults.into_iter().collect())].into_iter().chain(trials));
    let next = || left.lock().expect("no panic while it was locked").next();
    let began = wait::now();
    let found: Vec<bool> = thread::scope(|scope| {
        let slot = |election| {
            move || {
                let mut all = true;
                while let Some((mutant, faults)) = next() {
                    let parameters = Parameters {
                        election,
                        mutant: mutant.map(str::to_owned),
                        // A job must not end before the end of its lease if the mutant is only visible then.
                        stubborn: mutant.is_some() && faults.contains(&Fault::Fade),
                        duration: if mutant.is_some() { WITHIN } else { HOLDS_FOR },
                        only: faults,
                        elector: Elector::Log,
                        ..parameters.clone()
                    };
                    all &= is_as_it_must_be(&parameters, environment);
                }
                all
            }
        };
        let slots: Vec<_> = (0..parameters.elections).map(|election| scope.spawn(slot(election))).collect();
        slots.into_iter().map(|slot| slot.join().unwrap_or(false)).collect()
    });
    println!("mutants: {:?}", Duration::from_nanos(wait::now() - began));
    found.into_iter().all(|all| all)
}

/// Runs one mutant or none; prints the result, and returns whether it is as expected.
fn is_as_it_must_be(parameters: &Parameters, environment: &Environment) -> bool {
    let outcome = run::run(parameters, environment);
    let took = outcome.took.as_secs_f64();
    match (&parameters.mutant, outcome.violations.first()) {
        (Some(mutant), Some(found)) => println!("mutants: {mutant:30} {took:5.1} s  {found}"),
        (Some(mutant), None) => println!("{}\nmutants: {mutant:30} NOT CAUGHT within {WITHIN:?}", outcome.text),
        (None, Some(found)) => println!("{}\nmutants: with none on      {took:5.1} s  {found}", outcome.text),
        (None, None) => println!("mutants: {:30} {took:5.1} s  nothing", "with none on"),
    }
    parameters.mutant.is_some() != outcome.violations.is_empty()
}
