//! The cost of an election with many candidates, with many elections in a topic, with a long history; of a single one; and of
//! `observe`.
//!
//! `cargo bench --bench scale` prints a table; with `-- --json`, one JSON object per row. It starts its own broker, because the broker's
//! processor time, connections and disk are measured as well. The defaults are for a developer's machine; each size has an option. `ss`
//! (of iproute2) counts the broker's bytes.

#![expect(clippy::expect_used, reason = "a program that gives up when it can't measure")]

mod bulk_writer;
mod crowd;
mod elections;
mod footprint;
mod history;
mod meter;
mod observe;
mod roles;
mod simulate;

use std::cell::LazyCell;

use clap::{Parser, ValueEnum};
use harness::candidate::Elector;
use harness::figures::Figures;
use harness::kafka::Broker;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The program that is measured.
const PROGRAM: &str = env!("CARGO_BIN_EXE_neli-run");

/// Measures the cost of `neli-run` at scale, on its own Kafka.
#[derive(Parser)]
struct Arguments {
    /// The parts to measure; all by default.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// The elector; by default both, if it makes a difference.
    #[arg(long, value_name = "group|log")]
    elect: Option<Elector>,
    /// The number of handovers or starts for each row.
    #[arg(short, default_value_t = 5)]
    n: usize,
    /// How many seconds an idle election is observed. Each candidate sends a hello every 30 seconds.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// For `crowd-of-standbys`: their numbers, in ascending order.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 1, 10, 100])]
    standbys: Vec<usize>,
    /// For `elections`: how many share the topic. For `observe`: how many there are in ten topics. For `simulate`: how many there are, a thousand in
    /// each topic.
    #[arg(long, default_value_t = 1000)]
    elections: usize,
    /// For `processes`: their number.
    #[arg(long, default_value_t = 20)]
    processes: usize,
    /// For `roles`: their number.
    #[arg(long, default_value_t = 100)]
    roles: usize,
    /// For `history` and `observe`: the number of records.
    #[arg(long, default_value_t = 1_000_000)]
    records: i64,
    /// For `observe` and `simulate`: the number of terms of each election.
    #[arg(long, default_value_t = 1)]
    terms: usize,
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
    /// One election: its records and their bytes in the log, and its connections.
    Footprint,
    /// Many standbys in one election: handovers, claims, and the cost for the broker.
    CrowdOfStandbys,
    /// Many elections in one topic: the cost of the other elections' records for the candidates of one.
    Elections,
    /// A long journal: the time of a start must not grow with it.
    History,
    /// `neli-run observe` over many elections in ten topics: its start, and its cost.
    Observe,
    /// One role in each of many processes, each in its own election.
    Processes,
    /// Many roles in each of three processes: the cost of a role, and how soon a dead candidate's roles are led again.
    Roles,
    /// What `observe` holds and decides of more elections than one Kafka of this size could carry, in virtual time and without Kafka.
    Simulate,
}

fn main() {
    let arguments = Arguments::parse();
    let parts = if arguments.only.is_empty() { Part::value_variants() } else { &arguments.only[..] };
    let electors = arguments.elect.map_or(Elector::ALL.to_vec(), |elector| vec![elector]);
    // Many child processes need many pipes.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("every process has limits");
    setrlimit(Resource::RLIMIT_NOFILE, most, most).expect("up to the hard limit");

    let mut figures = Figures::new(arguments.json);
    for part in parts {
        // Each part has a new broker, so that one measurement does not affect the next.
        let broker = LazyCell::new(Broker::own);
        match part {
            Part::CrowdOfStandbys => {
                for elector in &electors {
                    crowd::measure(&broker, *elector, &arguments, &mut |rows| figures.tell(elector.name(), rows));
                }
            }
            Part::Elections => elections::measure(&broker, &arguments, &mut |rows| figures.tell("log", rows)),
            Part::Footprint => {
                for elector in &electors {
                    figures.tell(elector.name(), footprint::bytes(&broker, *elector, &arguments));
                }
                for elector in &electors {
                    figures.tell(elector.name(), footprint::connections(&broker, *elector));
                }
            }
            Part::Observe => figures.tell("log", observe::measure(&broker, &arguments)),
            Part::Processes => {
                for elector in &electors {
                    figures.tell(elector.name(), roles::in_processes(&broker, *elector, &arguments));
                }
            }
            Part::Roles => {
                for elector in &electors {
                    figures.tell(elector.name(), roles::measure(&broker, *elector, &arguments));
                }
            }
            Part::Simulate => figures.tell("log", simulate::measure(&arguments)),
            Part::History => history::measure(&broker, &arguments, &mut |rows| figures.tell("log", rows)),
        }
    }
    figures.finish();
}
