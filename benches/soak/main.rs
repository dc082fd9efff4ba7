//! Half an hour of ordinary operation on one broker: does anything grow?
//!
//! `cargo bench --bench soak` runs two elections, one with each elector and each with three candidates. Two of each stay for the whole
//! time; the third is replaced repeatedly. Every few seconds there is an ordinary change in one of the elections: an operator asks the
//! leader to resign (so the candidates that stay lead and stand by again and again), or the third candidate is stopped or killed, and
//! another one starts. The bench samples descriptors, threads and memory of the supervisors and guards that stay. At the end it prints the
//! values of the first and last quarter, and the quantities that grew ([`harness::trend`] defines that). The exit status is 1 if any
//! quantity grew, or if two jobs ran at the same time.

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

/// Runs two elections for a while, and prints the quantities that grew.
#[derive(Parser)]
struct Arguments {
    /// The duration in minutes.
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// Seconds between two changes.
    #[arg(long, default_value_t = 3.0)]
    every: f64,
    /// Seconds between two samples.
    #[arg(long, default_value_t = 5.0)]
    sample: f64,
    /// One JSON object per series, with every sample.
    #[arg(long)]
    json: bool,
    /// The argument that cargo passes to every bench.
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
