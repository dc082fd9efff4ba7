//! What an election costs where there is much of something: candidates, elections in a topic, history; and what one costs at all.
//!
//! `cargo bench --bench scale` prints a table; with `-- --json`, one JSON object a row. It runs on a broker of its own, since
//! that one's processor time, connections and disk are part of what is measured. The defaults are for a desk; each size has an
//! option. `ss` (of iproute2) counts the broker's bytes.

#![expect(clippy::expect_used, reason = "a program that gives up when it can't measure")]

mod bulk_writer;
mod crowd;
mod elections;
mod footprint;
mod history;
mod meter;
mod roles;

use clap::{Parser, ValueEnum};
use harness::candidate::Elector;
use harness::figures::Figures;
use harness::kafka::Broker;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The program that is measured.
const PROGRAM: &str = env!("CARGO_BIN_EXE_neli-run");

/// Measures what `neli-run` costs at scale, on a Kafka of its own.
#[derive(Parser)]
struct Arguments {
    /// What to measure; all of it by default.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// The elector; both by default, where it matters.
    #[arg(long, value_name = "group|log")]
    elect: Option<Elector>,
    /// How many handovers, or starts, for each row.
    #[arg(short, default_value_t = 5)]
    n: usize,
    /// How many seconds an idle election is looked at: a hello of each candidate comes every 30.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Of `crowd-of-standbys`: how many there are, in rising order.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 1, 10, 100])]
    standbys: Vec<usize>,
    /// Of `elections`: how many share the topic.
    #[arg(long, default_value_t = 1000)]
    elections: usize,
    /// Of `processes`: how many there are.
    #[arg(long, default_value_t = 20)]
    processes: usize,
    /// Of `roles`: how many there are.
    #[arg(long, default_value_t = 100)]
    roles: usize,
    /// Of `history`: how many records there are.
    #[arg(long, default_value_t = 1_000_000)]
    records: i64,
    /// One JSON object a row, as it is measured.
    #[arg(long)]
    json: bool,
    /// What cargo says to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A part of the bench.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Part {
    /// One election: its records and their bytes in the log, and its connections.
    Footprint,
    /// Many standbys in one election: handovers, claims, and what all of it costs the broker.
    CrowdOfStandbys,
    /// Many elections in one topic: what the others' records cost the candidates of one.
    Elections,
    /// A long journal: starts must not grow with it.
    History,
    /// One role in each of many processes, each in an election of its own.
    Processes,
    /// Many roles in each of three processes: what a role costs, and how soon those of a dead candidate are led again.
    Roles,
}

fn main() {
    let arguments = Arguments::parse();
    let parts = if arguments.only.is_empty() { Part::value_variants() } else { &arguments.only[..] };
    let electors = arguments.elect.map_or(Elector::ALL.to_vec(), |elector| vec![elector]);
    // A crowd has pipes.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("every process has limits");
    setrlimit(Resource::RLIMIT_NOFILE, most, most).expect("up to the hard limit");

    let mut figures = Figures::new(arguments.json);
    for part in parts {
        // A fresh broker for each: what one leaves behind is no part of the next.
        let broker = Broker::own();
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
            Part::History => history::measure(&broker, &arguments, &mut |rows| figures.tell("log", rows)),
        }
    }
    figures.finish();
}
