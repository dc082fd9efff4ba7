//! A library candidate in a separate process. It is this test program executed again, and writes a witness's lines while it leads.

use std::env;
use std::fs::File;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use harness::election::TestElection;
use harness::process::Process;
use harness::wait;
use harness::witness::Event;
use neli_election::{Election, Lease};

const BROKERS: &str = "NELI_TEST_BROKERS";
const GROUP: &str = "NELI_TEST_GROUP";
const LEASE_MS: &str = "NELI_TEST_LEASE_MS";
const ELECTOR: &str = "NELI_TEST_ELECTOR";
const FILE: &str = "NELI_TEST_FILE";

/// The process of a worker; it is killed when this is dropped.
pub(crate) struct Worker {
    child: Child,
}

impl Worker {
    pub(crate) fn start(test_election: &TestElection, brokers: &str, lease: Duration) -> Self {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(env::current_exe().expect("a program"));
        command.args(["--exact", "library::worker::runs_a_candidate_in_the_given_election", "--nocapture"]);
        command.env(BROKERS, brokers).env(GROUP, &test_election.group).env(LEASE_MS, lease.as_millis().to_string());
        command.env(ELECTOR, test_election.elector().name()).env(FILE, test_election.directory().join("witness"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Self { child: command.spawn().expect("setpriv is part of util-linux: apt-get install util-linux") }
    }

    pub(crate) fn process(&self) -> Process {
        Process::child(self.child.id())
    }

    /// Waits until the worker acts as the leader in a later term than `after`, and returns the term.
    pub(crate) fn await_lead(&self, test_election: &TestElection, after: Option<u64>) -> u64 {
        let pid = self.process().pid;
        wait::until("a lead", || {
            let lines = test_election.testimony().lines.into_iter();
            lines.filter(|line| line.pid == pid).filter_map(|line| line.epoch).find(|term| Some(*term) > after)
        })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.process().signal(nix::sys::signal::Signal::SIGKILL);
        self.child.wait().expect("a child can be waited for");
    }
}

/// Runs the candidate, if an environment variable asks for it; otherwise it does nothing.
#[test]
fn runs_a_candidate_in_the_given_election() {
    let Ok(group) = env::var(GROUP) else { return };
    let setting = |name| env::var(name).expect("set together with the group");
    let elector = setting(ELECTOR).parse().expect("an elector");
    let lease = Duration::from_millis(setting(LEASE_MS).parse().expect("milliseconds"));
    let file = File::options().create(true).append(true).open(setting(FILE)).expect("a file");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let builder = Election::builder(group).brokers(setting(BROKERS)).lease(lease);
        let election = builder.elector(super::elector(elector)).join().await.expect("the candidate joins");
        loop {
            let mut lead = election.lead().await.expect("the candidate leads");
            let _ = lead.run(|lease| act(&file, lease)).await;
        }
    });
}

/// Writes lines while the lease is valid. They stand for effects of a leader, and contain the time at which the lease was checked.
pub(crate) async fn act(mut file: &File, lease: Lease) {
    let mut event = "start";
    let mut times = tokio::time::interval(Duration::from_millis(1));
    loop {
        times.tick().await;
        let at = wait::now();
        if lease.is_valid() {
            let line = format!("{at} {event} main {} {} 0 0\n", std::process::id(), lease.token());
            file.write_all(line.as_bytes()).expect("the file can be written");
            event = "beat";
        }
    }
}

/// The processes that have written a start, with their terms, in the order of the terms.
pub(crate) fn leaders(test_election: &TestElection) -> Vec<(u64, i32)> {
    let testimony = test_election.testimony();
    let starts = testimony.lines.iter().filter(|line| matches!(line.event, Event::Start(_)));
    let mut leaders: Vec<(u64, i32)> = starts.filter_map(|line| Some((line.epoch?, line.pid))).collect();
    leaders.sort_unstable();
    leaders.dedup();
    leaders
}
