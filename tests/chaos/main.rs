//! Breaks everything around an election, at random, and shows that no two jobs ever ran at one time.
//!
//! `cargo test` runs it for half a minute under each elector, and for half as long with `--keys`, `--window` and `--schedule`, always with the same
//! plan. By hand, with any plan:
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
//! With `--roles` every candidate stands for many roles, each with witnesses and a judgement of its own; `resign` is the program's, for
//! one role. What must be besides, once nothing is broken any more: fair shares, a minute after the last change, later by what may be
//! kept from somebody, or somebody be barred from, by then (`roles.rs`).
//!
//! With `--overlap` a leader that is to stop keeps its job running beside its successor's: two jobs may run at one time then, for a lease at
//! most, and never three (`overlaps.rs`).
//!
//! With `--keys` each candidate runs its job once for a key (`--once`), and the slot's next one for the next key. What must not be besides: a
//! run of a key that was known to be done before its term's claim, a key that is taken for done and is not, and one that is not done in
//! the end (`keys.rs`).
//!
//! With `--window` each slot is a machine whose crontab starts candidates for short windows, and with `--schedule` its candidate is a daemon. One
//! machine's clock is set, by less than a window. What must not be besides: a run of a window, or of one before it, though its success was known
//! before the run's claim, a success that is recorded and was none, and later windows that are not run in the end (`windows.rs`).
//!
//! `--run` names a run whose candidates, faults and judgement are its own (`named.rs`; root's rights are needed for limits):
//!
//! | | what is broken | what must not be, besides what must never be |
//! |---|---|---|
//! | `broker-deaths` | three brokers with Kafka's own session, one killed every half minute; the default lease | a job that is sent a signal, another lead |
//! | `cpu-quota` | half a processor for each candidate whose job wants two, without real-time scheduling | a job that is alive at its lease's end |
//! | `memory-limit` | each candidate at its memory limit, by what its job leaks in sessions of its own | the same |
//! | `remakes` | the topic made anew so fast that its leader does not notice; candidates live long | two jobs for longer than two leases |
//! | `slow-crowd` | 40 standbys, 100 ms from the broker and back; strange records among the claims after each release | |
//!
//! Candidates reach the brokers through a network that can be broken, each by wires of its own; their jobs are trees of
//! witnesses. What must never be: two jobs at one time, an orphan, a term that did not grow, nobody who leads for longer than
//! a lease and three seconds when nothing is broken; of each role, where there are many. The same seed plans the same faults;
//! what becomes of them the machine decides, so a failed run leaves everything that happened on one axis of time, and the
//! journals with the law's verdicts.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a program that prints, and gives up when it can't measure"
)]

mod axis;
mod fault;
mod ground;
mod history;
mod job_run;
mod keys;
mod lies;
mod many;
mod mending;
mod mutants;
mod named;
mod orders;
mod overlaps;
mod report;
mod roles;
mod run;
mod slot;
mod stranger;
mod striking;
mod windows;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use harness::candidate::Elector;
use harness::cluster::Cluster;
use harness::wait;

use fault::Fault;
use ground::Ground;
use mutants::Mutant;
use named::Named;
use run::Orders;
use slot::LEASES_MS;
use windows::Windows;

/// The program that is put to the proof.
const PROGRAM: &str = env!("CARGO_BIN_EXE_neli-run");

/// Breaks things around an election, and shows that it holds.
#[derive(Debug, Parser)]
struct Arguments {
    /// The plan of faults; 0 is any one. By default it is always the same, so that a test that fails is about the program.
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// How long things are broken, under each elector.
    #[arg(long, default_value = "30s", value_parser = humantime::parse_duration)]
    duration: Duration,
    /// How many candidates there are.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(2..=5))]
    candidates: u8,
    /// How many brokers there are; of three, two must have a record.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    brokers: u8,
    /// The elector; both, one after the other, by default.
    #[arg(long, value_name = "group|log")]
    elect: Option<Elector>,
    /// How many elections there are side by side, each with as many candidates; with both electors by turns, unless one is named.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=20))]
    elections: u8,
    /// How many roles each candidate stands for, with a job of its own for each. At the end they must be spread fairly.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=20))]
    roles: u8,
    /// A leader that is to stop keeps its job running for so long beside its successor's: two may run at one time then, and never three.
    #[arg(long, value_parser = humantime::parse_duration, conflicts_with = "roles")]
    overlap: Option<Duration>,
    /// Each candidate runs its job once for a key (`--once`), and the next one for the next key.
    #[arg(long, conflicts_with_all = ["overlap", "roles"])]
    keys: bool,
    /// Each candidate is started as by a crontab, and runs its job once in each window of this length (`--window`).
    #[arg(long, value_parser = humantime::parse_duration, conflicts_with_all = ["keys", "overlap", "roles", "schedule"])]
    window: Option<Duration>,
    /// Each candidate is a daemon that runs its job once in each window of this length (`--schedule 'every ..'`).
    #[arg(long, value_parser = humantime::parse_duration, conflicts_with_all = ["keys", "overlap", "roles"])]
    schedule: Option<Duration>,
    /// Mostly what changes the leader, and at a higher pace.
    #[arg(long)]
    changes: bool,
    /// Writes there every minute how far it has come.
    #[arg(long)]
    progress: Option<PathBuf>,
    /// A run with candidates, faults and a judgement of its own.
    #[arg(long, value_enum, conflicts_with_all = ["changes", "elections", "keys", "mutants", "overlap", "roles", "schedule", "window"])]
    run: Option<Named>,
    /// These faults alone.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Fault>,
    /// Another program than the one that was built beside this.
    #[arg(long, default_value = PROGRAM)]
    program: PathBuf,
    /// The mutant that is on in the program; it is that of `tests/mutants`.
    #[arg(long, requires = "program")]
    mutant: Option<String>,
    /// Shows that each of these mutants of the program is noticed, within a minute of its faults (`tests/mutants` does that).
    #[arg(
        long,
        value_name = "NAME=FAULT+FAULT",
        value_delimiter = ',',
        requires = "program",
        conflicts_with = "roles"
    )]
    mutants: Vec<Mutant>,
    /// What `cargo test` was told for all tests: a name to look for.
    #[arg(hide = true)]
    filters: Vec<String>,
    #[command(flatten)]
    cargo_test: CargoTestOptions,
}

impl Arguments {
    fn windows(&self) -> Option<Windows> {
        self.window.map(Windows::Crontab).or(self.schedule.map(Windows::Daemon))
    }

    /// Whether they say nothing of the run.
    fn choose_nothing(&self) -> bool {
        let plain = Self::parse_from(["chaos"]);
        let numbers = |of: &Self| (of.seed, of.duration, of.candidates, of.brokers, of.elections, of.roles);
        let has_none = self.elect.is_none() && self.overlap.is_none() && self.run.is_none() && self.mutant.is_none();
        let has_none = has_none && self.windows().is_none();
        let is_plain = self.only.is_empty() && self.mutants.is_empty() && !self.keys && !self.changes;
        numbers(self) == numbers(&plain) && has_none && is_plain
    }
}

/// What `cargo test` says to every test.
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
    let is_one_of_all_tests = arguments.choose_nothing();
    let named = arguments.run;
    let candidates = usize::from(arguments.candidates).min(LEASES_MS.len());
    let candidates = named.and_then(Named::candidates).unwrap_or(candidates);
    let brokers = named.and_then(Named::brokers).unwrap_or(usize::from(arguments.brokers));
    let elections = if arguments.mutants.is_empty() { usize::from(arguments.elections) } else { mutants::AT_ONCE };
    let wires = if named.and_then(Named::shared_weather).is_some() { 1 } else { elections * candidates };
    let cluster = if named == Some(Named::BrokerDeaths) {
        Cluster::with_default_sessions(brokers, wires)
    } else {
        Cluster::start(brokers, wires)
    };
    let ground = Ground::new(cluster, elections);
    let windows = arguments.windows();
    let orders = Orders {
        program: arguments.program,
        // The clock of a machine that has run for a while is as good as dice.
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
        only: named.filter(|_| arguments.only.is_empty()).map_or(arguments.only, |named| named.faults().to_vec()),
        named,
        changes: arguments.changes,
        stubborn: false,
        mutant: arguments.mutant,
    };
    let all_is_well = if arguments.mutants.is_empty() {
        let electors = arguments.elect.map_or(vec![Elector::Group, Elector::Log], |elector| vec![elector]);
        if elections > 1 {
            let orders = |election| Orders { election, elector: electors[election % electors.len()], ..orders.clone() };
            many::hold(&(0..elections).map(orders).collect::<Vec<_>>(), &ground, arguments.progress.as_deref())
        } else {
            let shorter = Orders { duration: orders.duration / 2, ..orders.clone() };
            let with = |windows| Orders { windows: Some(windows), ..shorter.clone() };
            let once = [
                Orders { keys: true, ..shorter.clone() },
                with(Windows::Crontab(Duration::from_secs(5))),
                with(Windows::Daemon(Duration::from_secs(2))),
            ];
            electors.into_iter().all(|elector| holds(&Orders { elector, ..orders.clone() }, &ground))
                && (!is_one_of_all_tests || once.iter().all(|orders| holds(orders, &ground)))
        }
    } else {
        mutants::are_caught(&orders, &arguments.mutants, &ground)
    };
    if all_is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn holds(orders: &Orders, ground: &Ground) -> bool {
    ground.begin_anew();
    let outcome = run::run(orders, ground);
    println!("{}", outcome.text);
    if let Some(directory) = &outcome.directory {
        println!("  what happened is in {}", directory.display());
    }
    outcome.violations.is_empty()
}
