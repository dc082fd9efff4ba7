//! A check that can't fail is none: the program with one rule broken after the other, each of which must be noticed.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use harness::candidate::Elector;
use harness::wait;

use crate::fault::Fault;
use crate::ground::Ground;
use crate::run::{self, Orders};

/// Within this a broken rule must have been noticed.
const WITHIN: Duration = Duration::from_secs(60);

/// A rule of the program, and the faults that bring it to light.
struct Mutant {
    flaw: &'static str,
    faults: &'static [Fault],
}

/// How many are looked for at one time, each in an election of its own.
pub(crate) const AT_ONCE: usize = 4;

/// Those that a minute of faults can show. For the rest of `neli_proto::flaw` the model is the proof: most take histories that are
/// cut, or longer than a reading, at the right moment; and what a supervisor takes for done too early the guard kills as soon
/// as it hears of the release, or of the supervisor's end. Those that take longest come first.
const MUTANTS: &[Mutant] = &[
    Mutant { flaw: "EchoByKind", faults: &[Fault::Fade, Fault::Resign] },
    Mutant { flaw: "LeaseFromReceipt", faults: &[Fault::Fade, Fault::Resign] },
    Mutant { flaw: "OrphansTakenForGone", faults: &[Fault::KillGuard, Fault::Term] },
    Mutant { flaw: "OwnLeaseOfSilence", faults: &[Fault::Cut, Fault::StopSupervisor, Fault::Term] },
    Mutant { flaw: "AcknowledgedClaimTaken", faults: &[Fault::KillSupervisor, Fault::Term] },
    Mutant { flaw: "EveryClaimEffective", faults: &[Fault::Delay, Fault::KillSupervisor, Fault::Term] },
    Mutant { flaw: "GuardForgetsTree", faults: &[Fault::KillJob, Fault::KillSupervisor, Fault::Term] },
    Mutant { flaw: "GuardIgnoresDeadline", faults: &[Fault::StopSupervisor] },
    Mutant { flaw: "GuardReleasesFirst", faults: &[Fault::KillSupervisor] },
    Mutant { flaw: "SilenceFromBeforeListening", faults: &[Fault::KillSupervisor, Fault::StopSupervisor, Fault::Term] },
    Mutant { flaw: "SilenceNotAwaited", faults: &[Fault::KillSupervisor, Fault::Term] },
    Mutant { flaw: "StopTakenForDone", faults: &[Fault::Resign, Fault::Term] },
];

/// Whether each of them, or of those that are named, is caught in time.
pub(crate) fn are_caught(orders: &Orders, names: &[String], ground: &Ground) -> bool {
    if !cfg!(feature = "flaws") {
        println!("no rule can be broken in this build: `cargo test --features flaws --test chaos -- --mutants`");
        return false;
    }
    let wanted = |mutant: &&Mutant| names.is_empty() || names.iter().any(|name| name == mutant.flaw);
    let mut left: Vec<&Mutant> = MUTANTS.iter().filter(wanted).collect();
    left.reverse();
    let left = Mutex::new(left);
    let next = || left.lock().expect("no panic while it was locked").pop();
    let began = wait::now();
    let found: Vec<bool> = thread::scope(|scope| {
        let slot = |election| {
            move || {
                let mut all = true;
                while let Some(mutant) = next() {
                    all &= is_caught(mutant, &Orders { election, ..orders.clone() }, ground);
                }
                all
            }
        };
        let slots: Vec<_> = (0..orders.elections).map(|election| scope.spawn(slot(election))).collect();
        slots.into_iter().map(|slot| slot.join().unwrap_or(false)).collect()
    });
    println!("mutants: {:?}", Duration::from_nanos(wait::now() - began));
    found.into_iter().all(|all| all)
}

/// Whether a broken rule is noticed; it is said.
fn is_caught(mutant: &Mutant, orders: &Orders, ground: &Ground) -> bool {
    let orders = Orders {
        flaw: Some(mutant.flaw.to_owned()),
        duration: WITHIN,
        only: mutant.faults.to_vec(),
        // What shows only at the very end of a lease is not to end before.
        stubborn: mutant.faults.contains(&Fault::Fade),
        elector: Elector::Log,
        ..orders.clone()
    };
    let outcome = run::run(&orders, ground);
    if let Some(found) = outcome.violations.first() {
        println!("mutants: {:30} {:5.1} s  {found}", mutant.flaw, outcome.took.as_secs_f64());
        return true;
    }
    println!("{}\nmutants: {:30} NOT CAUGHT within {WITHIN:?}", outcome.text, mutant.flaw);
    false
}
