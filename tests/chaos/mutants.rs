//! A check that can't fail is none: the program with one rule broken after the other, each of which must be noticed.

use std::time::Duration;

use harness::candidate::Elector;
use harness::cluster::Cluster;

use crate::fault::Fault;
use crate::run::{self, Orders};

/// Within this a broken rule must have been noticed.
const WITHIN: Duration = Duration::from_secs(60);

/// A rule of the program, and what brings it to light: the faults that are most of its run. None: all there are.
struct Mutant {
    flaw: &'static str,
    faults: &'static [Fault],
}

/// Those that a minute of faults can show. The rest of `logic::flaw` takes histories that are cut, or longer than a reading,
/// at the right moment: the model has them.
const MUTANTS: &[Mutant] = &[
    Mutant { flaw: "AcknowledgedClaimTaken", faults: &[] },
    Mutant { flaw: "BeatsDoNotVoid", faults: &[] },
    Mutant { flaw: "ClaimAheadOfReading", faults: &[] },
    Mutant { flaw: "EchoByKind", faults: &[] },
    Mutant { flaw: "EveryClaimEffective", faults: &[] },
    Mutant { flaw: "GuardForgetsTree", faults: &[] },
    Mutant { flaw: "GuardIgnoresDeadline", faults: &[] },
    Mutant { flaw: "GuardReleasesFirst", faults: &[] },
    Mutant { flaw: "LateClaimTaken", faults: &[Fault::Delay, Fault::Term] },
    Mutant { flaw: "LeaseFromReceipt", faults: &[] },
    Mutant { flaw: "MainEndTakenForAll", faults: &[] },
    Mutant { flaw: "OrphansTakenForGone", faults: &[] },
    Mutant { flaw: "OwnLeaseOfSilence", faults: &[] },
    Mutant { flaw: "SilenceFromBeforeListening", faults: &[] },
    Mutant { flaw: "SilenceNotAwaited", faults: &[] },
    Mutant { flaw: "StopBehindSpawnTakenForDone", faults: &[Fault::TermAtLead] },
    Mutant { flaw: "StopTakenForDone", faults: &[] },
];

/// Whether each of them, or of those that are named, is caught in time.
pub(crate) fn are_caught(orders: &Orders, names: &[String], cluster: &mut Cluster) -> bool {
    assert!(cfg!(feature = "flaws"), "no rule can be broken: `cargo test --features flaws --test chaos -- --mutants`");
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
        let outcome = run::run(&orders, cluster);
        let found = outcome.violations.first();
        println!("{}", outcome.text);
        table += &match found {
            Some(found) => format!("{flaw:30} {:5.1} s  {found}\n", outcome.took.as_secs_f64()),
            None => format!("{flaw:30} NOT CAUGHT within {WITHIN:?}\n"),
        };
        if found.is_none() {
            missed.push(*flaw);
        }
    }
    println!("{table}");
    missed.is_empty()
}
