//! What `neli-run`'s end-to-end tests and its bench stand on: a real Kafka, candidates, witnesses.
//!
//! Everything that is started here ends with the process that started it, however that ends: the brokers by the end of
//! a pipe, the candidates by the kernel's parent-death signal, the witnesses by their guard and, at last, a limit of
//! their own. What goes wrong panics, with what there is to read: this crate is for tests.

#![expect(clippy::expect_used, clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test fails by a panic")]

/// Who may log in, and what they may do.
pub mod accounts;
/// A `neli-run` under test: started, watched, signalled, awaited.
pub mod candidate;
/// Several brokers, and a way of its own for each candidate to each of them.
pub mod cluster;
/// One election and its witnesses.
pub mod election;
/// Rows of figures: what every bench prints.
pub mod figures;
/// What is made once and kept in `target/`: Kafka, the witness.
pub mod install;
/// Records of our own making: a stranger's, a forger's.
pub mod journal;
/// Brokers.
pub mod kafka;
/// A machine of its own for a candidate, as far as its death goes.
pub mod machine;
/// A link to a machine of its own, that can be cut.
pub mod netns_link;
/// Wires that can be broken.
pub mod network;
mod node;
/// Other processes, as `/proc` shows them.
pub mod process;
/// Programs of a few lines.
pub mod program;
mod request;
/// Rights, given and taken while a broker runs.
pub mod rights;
/// What the documentation says about a command's JSON.
pub mod schema;
/// A terminal, and a shell with job control on it.
pub mod terminal;
/// A throw-away certificate authority.
pub mod tls;
/// Whether what was sampled grows.
pub mod trend;
mod untested;
/// Waiting for conditions, and the clock that it needs.
pub mod wait;
/// The job that says when it ran, and the checker of what it said.
pub mod witness;

pub use untested::not_tested;

/// The same story under both electors: a test each, in a module of the story's name. [`Elector`](candidate::Elector) is to be in scope.
#[macro_export]
macro_rules! with_both_electors {
    ($($(#[$attribute:meta])* fn $name:ident($elector:ident) $scenario:block)*) => {$(
        $(#[$attribute])*
        mod $name {
            #[allow(unused_imports, reason = "what the stories of this file use")]
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
