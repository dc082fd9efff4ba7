//! Half an hour of ordinary life on one broker: does anything grow?
//!
//! `cargo bench --bench soak` lets two elections live, one of each elector, each with three candidates. Two of each stay for
//! the whole time; the third comes and goes. Every few seconds something ordinary happens to one of the elections: an
//! operator asks the leader to resign (so those who stay lead and stand by over and over), or the third is told to go, or is
//! killed, and another comes. Of those who stay, supervisors and guards, it samples descriptors, threads and memory, and says at
//! the end what the first quarter and the last had, and what grew: [`harness::trend`] says what that means. The exit status is 1
//! when anything did, or when two jobs ran at once.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a program that prints, and gives up when it can't measure"
)]

mod election;
mod series;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use harness::candidate::Elector;
use harness::kafka::Broker;
use harness::wait;

use election::SoakElection;

/// The program that is watched.
const PROGRAM: &str = env!("CARGO_BIN_EXE_neli-run");

/// Lets two elections live for a while, and says what grew.
#[derive(Parser)]
struct Arguments {
    /// How long.
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// Seconds between two changes.
    #[arg(long, default_value_t = 3.0)]
    every: f64,
    /// Seconds between two samples.
    #[arg(long, default_value_t = 5.0)]
    sample: f64,
    /// One JSON object a series, with every sample.
    #[arg(long)]
    json: bool,
    /// What cargo says to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let Arguments { minutes, every, sample, json, bench: _ } = Arguments::parse();
    let (every, sample) = (Duration::from_secs_f64(every), Duration::from_secs_f64(sample));
    let broker = Broker::own();
    let kafka = broker.kafka();
    let mut elections = [Elector::Log, Elector::Group].map(|elector| SoakElection::open(PROGRAM, &kafka, elector));

    let end = wait::after(Duration::from_secs_f64(minutes * 60.0));
    let (mut next_change, mut next_sample) = (wait::now(), wait::now());
    let mut turns = 0;
    while wait::now() < end {
        if wait::now() >= next_change {
            let election = turns % elections.len();
            elections[election].change();
            (turns, next_change) = (turns + 1, next_change.max(wait::now()) + nanos(every));
        }
        if wait::now() >= next_sample {
            elections.iter_mut().for_each(SoakElection::sample);
            next_sample += nanos(sample);
        }
        let next = next_change.min(next_sample);
        wait::pause(Duration::from_nanos(next.saturating_sub(wait::now())));
    }

    let mut grown = 0;
    if !json {
        print!("{}", series::head());
    }
    for election in &elections {
        for series in election.series() {
            let trend = series.trend();
            grown += usize::from(trend.grows);
            println!("{}", if json { series.json() } else { series.line() });
        }
    }
    for election in elections {
        let story = election.close();
        if !json {
            println!("\n{story}");
        }
    }
    if grown == 0 {
        return ExitCode::SUCCESS;
    }
    if !json {
        println!("\n{grown} series grew");
    }
    ExitCode::FAILURE
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).expect("no centuries")
}
