//! The library starts no process, handles no signal, reads no environment variable and changes no global state. The crate
//! `neli-kafka` contains code that does so, for the embedded broker of `neli-run`; the library must not reach it.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use neli_election::{Election, Elector, EmbeddedBroker};

/// The file that starts processes and reads variables, for `neli-run`.
const BROKER_OF_PROGRAM: [&str; 1] = ["neli-kafka/src/embedded.rs"];
/// Functions that start a process, read or set a variable, or change signals or other state of the whole process.
const GLOBAL: [&str; 12] = [
    "Command::new",
    "current_dir",
    "env::remove_var",
    "env::set_var",
    "env::var",
    "fork(",
    "panic::set_hook",
    "prctl",
    "setrlimit",
    "sigaction",
    "signal_hook",
    "sigprocmask",
];
/// The entry points of that code, and where they may occur.
const ENTRANCES: [&str; 2] = ["BrokerFinder", "BrokerDirectory"];
const WITH_ENTRANCES: [&str; 1] = ["neli-kafka/src/embedded.rs"];

fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

#[test]
fn the_library_does_not_reach_the_code_for_processes_and_variables() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut global, mut entered) = (Vec::new(), Vec::new());
    for file in ["neli-election/src", "neli-kafka/src"].iter().flat_map(|folder| sources(&crates.join(folder))) {
        let name = file.strip_prefix(crates).unwrap().to_str().unwrap().to_owned();
        let source = fs::read_to_string(&file).unwrap();
        for line in source.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
            global.extend(GLOBAL.iter().any(|part| line.contains(part)).then(|| name.clone()));
            entered.extend(ENTRANCES.iter().any(|part| line.contains(part)).then(|| name.clone()));
        }
    }
    global.sort();
    global.dedup();
    assert_eq!(global, BROKER_OF_PROGRAM);
    entered.sort();
    entered.dedup();
    assert_eq!(entered, WITH_ENTRANCES);
}

/// The state of the process according to Linux: its signal handlers and ignored signals, its children, its directory, its limits.
fn of_process() -> Vec<String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let status = read("/proc/self/status");
    let signals = status.lines().filter(|line| ["SigCgt", "SigIgn", "Umask"].iter().any(|name| line.starts_with(name)));
    let mut of_process: Vec<String> = signals.map(str::to_owned).collect();
    of_process.push(read("/proc/self/limits"));
    of_process.push(fs::read_link("/proc/self/cwd").unwrap().display().to_string());
    of_process.push(format!("{:?}", std::env::vars_os().collect::<Vec<_>>()));
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let children: String = tasks.map(|task| read(task.unwrap().path().join("children").to_str().unwrap())).collect();
    of_process.push(format!("children: {children}"));
    of_process
}

#[tokio::test(flavor = "current_thread")]
async fn an_election_leaves_the_process_as_it_was() {
    let before = of_process();
    let broker = EmbeddedBroker::start().unwrap();
    let builder = Election::builder("billing").embedded(&broker).elector(Elector::Group);
    let election = builder.lease(Duration::from_secs(2)).join().await.unwrap();
    let follower = Election::builder("billing").embedded(&broker).follow().unwrap();
    let mut lead = election.lead().await.unwrap();
    lead.run(async |_| ()).await.unwrap();
    assert_eq!(of_process(), before, "while it leads");
    drop((lead, follower));
    election.leave().await;
    assert_eq!(of_process(), before, "afterwards");
}
