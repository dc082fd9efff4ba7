//! Breaks everything around an election at random, and checks that no two jobs ever run at the same time.
//!
//! `cargo test` runs it for half a minute with both electors at once, and for half as long with `--keys`, `--window` and `--schedule` at
//! once, always with the same plans. By hand it runs with any plan:
//!
//! ```text
//! cargo test --test chaos -- --seed 0 --duration 10m --candidates 5 --brokers 3 [--elect log] [--only cut,delay]
//! cargo test --test chaos -- --seed 0 --duration 1h --brokers 3 --elections 6 --candidates 3 --changes --progress /tmp/progress
//! cargo test --test chaos -- --run remakes --duration 5m [--elect log]
//! cargo test --test chaos -- --roles 6 --candidates 5 --duration 3m [--elect group] [--only resign]
//! cargo test --test chaos -- --overlap 300ms --duration 3m [--changes]
//! cargo test --test chaos -- --keys --duration 2m [--elect log] [--changes]
//! cargo test --test chaos -- --window 5s --duration 2m [--elect log] [--changes]
//! cargo test --test chaos -- --schedule 2s --duration 2m [--elect log] [--changes]
//! ```
//!
//! With `--roles` every candidate stands for many roles, each with its own witnesses and checks; `resign` is the program's, for one role.
//! It also checks that the shares are fair at the end: within a minute after the last change, or later by the time for which a
//! candidate may get no role (`tests/support/src/judge/shares.rs`).
//!
//! With `--overlap` a leader that stops keeps its job running beside its successor's: then two jobs may run at the same time for at most
//! a lease, and never three (`tests/support/src/judge/overlaps.rs`).
//!
//! With `--keys` each candidate runs its job once for a key (`--once`), and the slot's next one runs the next key. It also checks that no
//! key runs that was known to be done before its term's claim, that no key counts as done without a successful run, and that every key is
//! done in the end (`keys.rs`).
//!
//! With `--window` each slot is a machine whose crontab starts candidates for short windows; with `--schedule` its candidate is a daemon. One
//! machine's clock is set wrong, by less than a window. Violations are also: a run of a window, or of an earlier one, although its success was
//! known before the run's claim; a recorded success of a run that had none; later windows that are not run in the end (`windows.rs`).
//!
//! `--run` selects a run with its own candidates, faults and checks (`special_runs.rs`; limits need root):
//!
//! | | faults | violations beside the basic ones |
//! |---|---|---|
//! | `broker-deaths` | three brokers with Kafka's default session, one killed every half minute; the default lease | a job that gets a signal, another lead |
//! | `cpu-quota` | half a processor for each candidate whose job wants two, without real-time scheduling | a job that is alive at its lease's end |
//! | `memory-limit` | each candidate at its memory limit, by what its job leaks in sessions of its own, and with a health command | the same |
//! | `remakes` | the topic is created again so fast that its leader does not notice; candidates run for long | two jobs for longer than two leases |
//! | `slow-crowd` | 40 standbys with a round trip of 100 ms; other programs' records among the claims after each release | |
//!
//! Candidates reach the brokers through a network that can be broken, each by its own wires; their jobs are trees of witnesses. The basic
//! violations: two jobs at the same time, an orphan, a term that is not higher than the one before, and no leader for longer than a lease
//! and three seconds while nothing is broken (each checked per role). The same seed gives the same plan of faults, but their effects
//! depend on the machine. So a failed run leaves a timeline of everything that happened, and the journals with the law's verdicts.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a program that prints, and gives up when it can't measure"
)]

mod elections;
mod environment;
mod false_records;
mod fault;
mod injection;
mod keys;
mod link_faults;
mod mutants;
mod parameters;
mod repair;
mod report;
mod roles;
mod run;
mod slot;
mod special_runs;
mod stranger;
mod windows;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use harness::candidate::Elector;
use harness::cluster::Cluster;
use harness::wait;

use environment::Environment;
use fault::Fault;
use mutants::Mutant;
use run::Parameters;
use slot::LEASES_MS;
use special_runs::SpecialRun;
use windows::Windows;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_neli-run");

/// Injects faults around an election, and checks its guarantees.
#[derive(Debug, Parser)]
struct Arguments {
    /// The seed of the plan; 0 chooses one at random. The default is fixed, so that a failure of the test is caused by the program.
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// How long faults are injected, for each elector.
    #[arg(long, default_value = "30s", value_parser = humantime::parse_duration)]
    duration: Duration,
    /// The number of candidates.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(2..=5))]
    candidates: u8,
    /// The number of brokers; of three, two must store a record.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    brokers: u8,
    /// The elector; by default both, one after the other.
    #[arg(long, value_name = "group|log")]
    elect: Option<Elector>,
    /// The number of elections that run in parallel, each with its own candidates. The electors alternate, unless one is given.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=20))]
    elections: u8,
    /// The number of roles of each candidate, with a job for each. At the end they must be spread fairly.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=20))]
    roles: u8,
    /// A leader that stops keeps its job running for this long beside its successor's: two jobs may run at the same time then, and never
    /// three.
    #[arg(long, value_parser = humantime::parse_duration, conflicts_with = "roles")]
    overlap: Option<Duration>,
    /// Each candidate runs its job once for a key (`--once`), and the next candidate runs the next key.
    #[arg(long, conflicts_with_all = ["overlap", "roles"])]
    keys: bool,
    /// Each candidate is started as by a crontab, and runs its job once in each window of this length (`--window`).
    #[arg(long, value_parser = humantime::parse_duration, conflicts_with_all = ["keys", "overlap", "roles", "schedule"])]
    window: Option<Duration>,
    /// Each candidate is a daemon that runs its job once in each window of this length (`--schedule 'every ..'`).
    #[arg(long, value_parser = humantime::parse_duration, conflicts_with_all = ["keys", "overlap", "roles"])]
    schedule: Option<Duration>,
    /// Mostly faults that change the leader, at a higher rate.
    #[arg(long)]
    changes: bool,
    /// The file to which the progress is written every minute.
    #[arg(long)]
    progress: Option<PathBuf>,
    /// A run with its own candidates, faults and checks.
    #[arg(long, value_enum, conflicts_with_all = ["changes", "elections", "keys", "mutants", "overlap", "roles", "schedule", "window"])]
    run: Option<SpecialRun>,
    /// Only these faults.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Fault>,
    /// Another program than the one that was built with this test.
    #[arg(long, default_value = PROGRAM)]
    program: PathBuf,
    /// The active mutant of the program, which must be that of `tests/mutants`.
    #[arg(long, requires = "program")]
    mutant: Option<String>,
    /// Checks that each of these mutants of the program is noticed within a minute of its faults (for `tests/mutants`).
    #[arg(
        long,
        value_name = "NAME=FAULT+FAULT",
        value_delimiter = ',',
        requires = "program",
        conflicts_with = "roles"
    )]
    mutants: Vec<Mutant>,
    /// The name filter that `cargo test` passes to all tests.
    #[arg(hide = true)]
    filters: Vec<String>,
    #[command(flatten)]
    cargo_test: CargoTestOptions,
}

impl Arguments {
    fn windows(&self) -> Option<Windows> {
        self.window.map(Windows::Crontab).or(self.schedule.map(Windows::Daemon))
    }

    /// Whether this is a plain `cargo test`, without an option of this test.
    fn are_defaults(&self) -> bool {
        let plain = Self::parse_from(["chaos"]);
        let numbers = |of: &Self| (of.seed, of.duration, of.candidates, of.brokers, of.elections, of.roles);
        let has_none = self.elect.is_none() && self.overlap.is_none() && self.run.is_none() && self.mutant.is_none();
        let has_none = has_none && self.windows().is_none();
        let is_plain = self.only.is_empty() && self.mutants.is_empty() && !self.keys && !self.changes;
        numbers(self) == numbers(&plain) && has_none && is_plain
    }
}

/// The options that `cargo test` passes to every test.
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line that is not ours")]
#[derive(Debug, clap::Args)]
struct CargoTestOptions {
    #[arg(long, hide = true)]
    exact: bool,
    #[arg(long, hide = true)]
    include_ignored: bool,
    #[arg(long, hide = true)]
    nocapture: bool,
    #[arg(long, hide = true)]
    show_output: bool,
    #[arg(long, hide = true)]
    skip: Vec<String>,
    #[arg(long, hide = true)]
    ignored: bool,
    #[arg(long, hide = true)]
    list: bool,
    #[arg(long, short, hide = true)]
    quiet: bool,
    #[arg(long, hide = true)]
    test_threads: Option<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let names_us = |filter: &String| "chaos".contains(filter);
    let is_meant = (arguments.filters.is_empty() || arguments.filters.iter().any(names_us))
        && !arguments.cargo_test.skip.iter().any(names_us);
    if arguments.cargo_test.list || arguments.cargo_test.ignored || !is_meant {
        return ExitCode::SUCCESS;
    }
    let is_one_of_all_tests = arguments.are_defaults();
    let special_run = arguments.run;
    let candidates = usize::from(arguments.candidates).min(LEASES_MS.len());
    let candidates = special_run.and_then(SpecialRun::candidates).unwrap_or(candidates);
    let brokers = special_run.and_then(SpecialRun::brokers).unwrap_or(usize::from(arguments.brokers));
    let elections = match usize::from(arguments.elections) {
        _ if is_one_of_all_tests => 3,
        _ if !arguments.mutants.is_empty() => mutants::AT_ONCE,
        elections => elections,
    };
    let wires = if special_run.and_then(SpecialRun::shared_conditions).is_some() { 1 } else { elections * candidates };
    let cluster = if special_run == Some(SpecialRun::BrokerDeaths) {
        Cluster::with_default_sessions(brokers, wires)
    } else {
        Cluster::start(brokers, wires)
    };
    let environment = Environment::new(cluster, elections);
    let windows = arguments.windows();
    let parameters = Parameters {
        program: arguments.program,
        // The nanoseconds of the uptime are random enough for a seed.
        seed: if arguments.seed == 0 { wait::now() % 1_000_000_000 } else { arguments.seed },
        election: 0,
        elections,
        duration: arguments.duration,
        candidates,
        brokers,
        elector: Elector::Log,
        roles: usize::from(arguments.roles),
        overlap: arguments.overlap,
        keys: arguments.keys,
        windows,
        only: special_run
            .filter(|_| arguments.only.is_empty())
            .map_or(arguments.only, |special_run| special_run.faults().to_vec()),
        special_run,
        changes: arguments.changes,
        stubborn: false,
        mutant: arguments.mutant,
    };
    let all_is_well = if arguments.mutants.is_empty() {
        let electors = arguments.elect.map_or(vec![Elector::Group, Elector::Log], |elector| vec![elector]);
        let together = |of: &[Parameters]| {
            environment.begin_anew();
            let numbered = of.iter().cloned().enumerate();
            let numbered: Vec<_> =
                numbered.map(|(election, one)| Parameters { election, elections: of.len(), ..one }).collect();
            elections::hold(&numbered, &environment, arguments.progress.as_deref())
        };
        let with = |elector| Parameters { elector, ..parameters.clone() };
        if is_one_of_all_tests {
            let shorter = Parameters { duration: parameters.duration / 2, ..parameters.clone() };
            let within = |windows| Parameters { windows: Some(windows), ..shorter.clone() };
            let once = [
                Parameters { keys: true, ..shorter.clone() },
                within(Windows::Crontab(Duration::from_secs(5))),
                within(Windows::Daemon(Duration::from_secs(2))),
            ];
            together(&electors.into_iter().map(with).collect::<Vec<_>>()) && together(&once)
        } else if elections > 1 {
            together(&(0..elections).map(|election| with(electors[election % electors.len()])).collect::<Vec<_>>())
        } else {
            electors.into_iter().all(|elector| holds(&with(elector), &environment))
        }
    } else {
        mutants::are_caught(&parameters, &arguments.mutants, &environment)
    };
    if all_is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn holds(parameters: &Parameters, environment: &Environment) -> bool {
    environment.begin_anew();
    let outcome = run::run(parameters, environment);
    println!("{}", outcome.text);
    if let Some(directory) = &outcome.directory {
        println!("  what happened is in {}", directory.display());
    }
    outcome.violations.is_empty()
}
