//! The harness of `neli-run`'s end-to-end tests and benches: a real Kafka, candidates, witnesses.
//!
//! Every process that is started here ends with the process that started it, even if that one is killed: brokers by the end of a pipe,
//! candidates by the kernel's parent-death signal, witnesses by their guard, and as a last resort by their own time limit. Errors panic
//! with the available output, because this crate is for tests only.

#![expect(clippy::expect_used, clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test fails by a panic")]

/// Accounts that may log in, and their rights.
pub mod accounts;
/// A `neli-run` under test.
pub mod candidate;
/// Several brokers, and a separate network path from each candidate to each broker.
pub mod cluster;
/// One election and its witnesses.
pub mod election;
/// Results of benches.
pub mod figures;
/// What one test at a time has.
pub mod in_turn;
/// Files that are built once and kept in `target/`: Kafka, the witness.
pub mod install;
/// Records that a test writes itself.
pub mod journal;
/// The judges of the chaos test: what was seen of a run goes in, and its violations come out.
pub mod judge;
/// Brokers.
pub mod kafka;
/// Control groups that make a candidate's processes die together or limit them.
pub mod machine;
/// A link to a network namespace, which can be cut.
pub mod netns_link;
/// TCP proxies that can be broken.
pub mod network;
mod node;
/// Other processes, as `/proc` shows them.
pub mod pid_namespace;
pub mod process;
/// Short scripts as programs.
pub mod program;
mod request;
/// ACLs that are granted and revoked while a broker runs.
pub mod rights;
/// The documented schema of a command's JSON.
pub mod schema;
/// A terminal, and a shell with job control on it.
pub mod terminal;
/// A throw-away certificate authority.
pub mod tls;
/// A test for growth in a series of samples.
pub mod trend;
mod untested;
/// Waiting for conditions, and the clock for it.
pub mod wait;
/// The job that records when it ran, and the checker of its records.
pub mod witness;

pub use untested::not_tested;

/// Defines one test per elector, in a module with the test's name. [`Elector`](candidate::Elector) must be in scope.
#[macro_export]
macro_rules! with_both_electors {
    ($($(#[$attribute:meta])* fn $name:ident($elector:ident) $scenario:block)*) => {$(
        $(#[$attribute])*
        mod $name {
            #[allow(unused_imports, reason = "not every test of a file uses all of its imports")]
            use super::*;

            #[test]
            fn group() {
                scenario(Elector::Group);
            }

            #[test]
            fn log() {
                scenario(Elector::Log);
            }

            fn scenario($elector: Elector) $scenario
        }
    )*};
}
