//! How long each way to a lead takes on a real Kafka on this machine, and the cost of a standby.
//!
//! `cargo bench --bench latency` prints a table; with `-- --json`, one JSON object per row. It measures from outside: a witness (a static C
//! program) writes the times of its first and last instruction, on `CLOCK_BOOTTIME`. Every row is a distribution of `n` runs, including the
//! first.

#![expect(clippy::expect_used, reason = "a program that gives up when it can't measure")]

mod measure;
mod once;

use clap::{Parser, ValueEnum};
use harness::candidate::Elector;
use harness::election::TestElection;
use harness::figures::{Figures, Row};
use harness::kafka::Kafka;

/// The program that is measured.
const PROGRAM: &str = env!("CARGO_BIN_EXE_neli-run");

/// Measures `neli-run` on its own Kafka (or that of `KAFKA_BROKERS`).
#[derive(Parser)]
struct Arguments {
    /// The parts to measure; all by default.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// The elector; both by default.
    #[arg(long, value_name = "group|log")]
    elect: Option<Elector>,
    /// The number of runs, in place of each part's default.
    #[arg(short)]
    n: Option<usize>,
    /// One JSON object per row, printed as soon as it is measured.
    #[arg(long)]
    json: bool,
    /// The argument that cargo passes to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A part of the bench.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Part {
    /// From the process's start to the job's first instruction.
    Cold,
    /// After SIGTERM: from the old job's end to the new job's first instruction.
    Handover,
    /// After SIGKILL of the supervisor: from the signal to the new job's first instruction.
    Kill,
    /// After SIGKILL of supervisor, guard and job: from the signal to the new job's first instruction.
    Machine,
    /// A stopped supervisor on a busy machine: from the guard's deadline until the whole tree is gone.
    Fence,
    /// A job of a thousand processes on a busy machine: from the guard's deadline, and from the stop timeout, until all are gone.
    Crowd,
    /// A job that must succeed once: to its first instruction, and to the exit of the candidates that do not run it.
    Once,
    /// Standbys that join and leave: their effect on the leader's job.
    Standbys,
    /// Memory and processor time of an idle leader.
    Idle,
}

fn main() {
    let arguments = Arguments::parse();
    let parts = if arguments.only.is_empty() { Part::value_variants() } else { &arguments.only[..] };
    let electors = arguments.elect.map_or(Elector::ALL.to_vec(), |elector| vec![elector]);
    let mut figures = Figures::new(arguments.json);
    for part in parts {
        for elector in &electors {
            let election = || TestElection::new(PROGRAM, Kafka::shared(), *elector);
            figures.tell(elector.name(), measured(*part, &election, arguments.n));
        }
    }
    figures.finish();
}

/// The rows of a part; `n` replaces its default number of runs.
fn measured(part: Part, election: &dyn Fn() -> TestElection, n: Option<usize>) -> Vec<Row> {
    match part {
        Part::Cold => measure::cold(election, n.unwrap_or(20)),
        Part::Crowd => measure::crowd(election, n.unwrap_or(10)),
        Part::Fence => measure::fence(election, n.unwrap_or(50)),
        Part::Handover => measure::handover(election, n.unwrap_or(20)),
        Part::Idle => measure::idle(election),
        Part::Kill => measure::kill(election, n.unwrap_or(10)),
        Part::Machine => measure::machine(election, n.unwrap_or(10)),
        Part::Once => once::once(election, n.unwrap_or(15)),
        Part::Standbys => measure::standbys(election, n.unwrap_or(100)),
    }
}
