//! A check that can't fail is none: the program with one rule broken after the other, each of which must be noticed.

use std::fmt::Write as _;
use std::time::Duration;

use harness::candidate::Elector;

use crate::fault::Fault;
use crate::ground::Ground;
use crate::run::{self, Orders};

/// Within this a broken rule must have been noticed.
const WITHIN: Duration = Duration::from_secs(60);

/// A rule of the program, and what brings it to light: the faults that are most of its run. None: all there are.
struct Mutant {
    flaw: &'static str,
    faults: &'static [Fault],
}

/// Those that a minute of faults can show. For the rest of `logic::flaw` the model is the proof: most take histories that are
/// cut, or longer than a reading, at the right moment; and what a supervisor takes for done too early the guard kills as soon
/// as it hears of the release, or of the supervisor's end.
const MUTANTS: &[Mutant] = &[
    Mutant { flaw: "AcknowledgedClaimTaken", faults: &[Fault::KillSupervisor, Fault::Term] },
    Mutant { flaw: "EchoByKind", faults: &[Fault::Fade, Fault::Garbage, Fault::Resign, Fault::StopGuard] },
    Mutant { flaw: "EveryClaimEffective", faults: &[Fault::KillSupervisor, Fault::Term] },
    Mutant { flaw: "GuardForgetsTree", faults: &[] },
    Mutant { flaw: "GuardIgnoresDeadline", faults: &[Fault::StopSupervisor] },
    Mutant { flaw: "GuardReleasesFirst", faults: &[Fault::KillSupervisor] },
    Mutant { flaw: "LeaseFromReceipt", faults: &[Fault::Fade, Fault::Garbage, Fault::Resign, Fault::StopGuard] },
    Mutant { flaw: "OrphansTakenForGone", faults: &[Fault::KillGuard, Fault::Term] },
    Mutant { flaw: "OwnLeaseOfSilence", faults: &[Fault::Cut, Fault::StopSupervisor, Fault::Term] },
    Mutant { flaw: "SilenceFromBeforeListening", faults: &[] },
    Mutant { flaw: "SilenceNotAwaited", faults: &[] },
    Mutant { flaw: "StopTakenForDone", faults: &[Fault::Resign, Fault::Term] },
];

/// Whether each of them, or of those that are named, is caught in time.
pub(crate) fn are_caught(orders: &Orders, names: &[String], ground: &Ground) -> bool {
    if !cfg!(feature = "flaws") {
        println!("no rule can be broken in this build: `cargo test --features flaws --test chaos -- --mutants`");
        return false;
    }
    let wanted = |mutant: &&Mutant| names.is_empty() || names.iter().any(|name| name == mutant.flaw);
    let mut missed = Vec::new();
    let mut table = String::new();
    for Mutant { flaw, faults } in MUTANTS.iter().filter(wanted) {
        let orders = Orders {
            flaw: Some((*flaw).to_owned()),
            duration: WITHIN,
            only: if faults.is_empty() { orders.only.clone() } else { faults.to_vec() },
            elector: Elector::Log,
            ..orders.clone()
        };
        ground.begin_anew();
        let outcome = run::run(&orders, ground);
        let found = outcome.violations.first();
        println!("{}", outcome.text);
        let _ = match found {
            Some(found) => writeln!(table, "{flaw:30} {:5.1} s  {found}", outcome.took.as_secs_f64()),
            None => writeln!(table, "{flaw:30} NOT CAUGHT within {WITHIN:?}"),
        };
        if found.is_none() {
            missed.push(*flaw);
        }
    }
    println!("{table}");
    missed.is_empty()
}
