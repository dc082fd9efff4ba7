//! Many standbys in one election.

use std::time::Duration;

use harness::candidate::{Candidate, Elector, Running};
use harness::election::TestElection;
use harness::figures::Row;
use harness::kafka::Broker;
use harness::process::Process;
use harness::wait;
use nix::sys::signal::Signal;

use crate::meter::{self, number};
use crate::{Arguments, PROGRAM};

/// How many candidates start at once.
const AT_ONCE: usize = 10;
/// The time without changes after a candidate joined or left.
const SETTLED: Duration = Duration::from_secs(3);
/// The polling interval of this bench; the times themselves are measured by the witness.
const LOOK: Duration = Duration::from_millis(20);
/// The time limit for a step of a single candidate.
const PATIENCE: Duration = Duration::from_secs(180);

/// The rows of each size, as they are measured.
pub(crate) fn measure(broker: &Broker, elector: Elector, arguments: &Arguments, tell: &mut dyn FnMut(Vec<Row>)) {
    let election = TestElection::new(PROGRAM, &broker.kafka(), elector);
    let mut crowd = Crowd { candidate: candidate(&election), members: Vec::new(), election, shown: 0 };
    crowd.grow(1);
    let mut term = crowd.await_lead(None);
    for size in &arguments.standbys {
        crowd.grow(size + 1);
        wait::pause(SETTLED);
        tell(crowd.idle(broker, *size, arguments.seconds));
        if *size > 0 {
            tell(crowd.handovers(*size, arguments.n, &mut term));
        }
    }
    crowd.election.close(crowd.members);
}

struct Crowd {
    election: TestElection,
    candidate: Candidate,
    members: Vec<Running>,
    /// How many records of the journal were counted already.
    shown: usize,
}

impl Crowd {
    /// Starts candidates until there are this many, each of which stands by or leads.
    fn grow(&mut self, to: usize) {
        while self.members.len() < to {
            let many = AT_ONCE.min(to - self.members.len());
            let mut fresh: Vec<Running> = (0..many).map(|_| self.candidate.start()).collect();
            for member in &mut fresh {
                await_true("a candidate that has come", || member.count("standby") + member.count("leading") > 0);
            }
            self.members.append(&mut fresh);
        }
    }

    /// Waits for a leader in a term after `before` whose job runs; returns the term.
    fn await_lead(&self, before: Option<u64>) -> u64 {
        let mut found = None;
        await_true("a lead", || {
            let terms = self.members.iter().filter(|member| member.count("leading") > 0);
            let terms = terms.filter_map(|member| Some(member.events("leading").last()?.number("term")));
            found = terms.max().filter(|term| before.is_none_or(|before| *term > before));
            found.is_some_and(|term| self.election.testimony().of(term).next().is_some())
        });
        found.expect("it was awaited")
    }

    fn leader(&self, term: u64) -> usize {
        let leads = |member: &Running| {
            member.count("leading") > 0
                && member.events("leading").last().is_some_and(|event| event.number("term") == term)
        };
        self.members.iter().position(leads).expect("somebody leads")
    }

    /// The cost of this many standbys while there are no changes.
    fn idle(&mut self, broker: &Broker, size: usize, seconds: u64) -> Vec<Row> {
        let families: Vec<Vec<Process>> =
            self.members.iter_mut().map(|member| vec![member.process(), member.guard()]).collect();
        let supervisors: Vec<Process> = families.iter().map(|family| family[0]).collect();
        let guards: Vec<Process> = families.iter().map(|family| family[1]).collect();
        let cost = meter::cost(broker, &[&supervisors, &guards], seconds);
        let names = ["a supervisor (mean of all)", "a guard (mean of all)"];
        let mut rows = cost.rows(&format!("{size} standbys, idle"), &names);
        let connections = supervisors.iter().map(|process| process.connections()).sum::<usize>();
        rows.push(Row::new(
            format!("{size} standbys, idle: connections to the broker"),
            "",
            vec![number(connections as u64)],
        ));
        rows
    }

    /// Stops the leader again and again, and starts another candidate.
    fn handovers(&mut self, size: usize, n: usize, term: &mut u64) -> Vec<Row> {
        let mut samples = Vec::new();
        self.claims();
        for _ in 0..n {
            let mut leader = self.members.swap_remove(self.leader(*term));
            leader.signal(Signal::SIGTERM);
            let next = self.await_lead(Some(*term));
            samples.push((self.election.last_instruction(*term), self.election.first_instruction(next)));
            await_true("a leader that has gone", || leader.ended().is_some());
            drop(leader);
            *term = next;
            self.grow(size + 1);
            wait::pause(SETTLED);
        }
        let claims = self.claims();
        vec![
            Row::between(format!("{size} standbys, TERM: old job's end to new job's start"), samples),
            Row::new(
                format!("{size} standbys, TERM: claims for the next term, the effective one included"),
                "",
                claims,
            ),
        ]
    }

    /// How many claims there were for each term since the last call.
    fn claims(&mut self) -> Vec<f64> {
        let verdicts = self.election.verdicts();
        let fresh = &verdicts[self.shown..];
        self.shown = verdicts.len();
        let mut counts = Vec::new();
        for verdict in fresh {
            let of = |kind: &str| verdict["record"]["kind"] == kind;
            if of("release") && verdict["verdict"] == "effective" {
                counts.push(0.0);
            } else if of("claim")
                && let Some(count) = counts.last_mut()
            {
                *count += 1.0;
            }
        }
        counts
    }
}

/// A candidate whose job writes rarely, and does not end during the bench.
fn candidate(election: &TestElection) -> Candidate {
    const HOUR_MS: u64 = 60 * 60 * 1000;
    election.candidate().job(election.witness().set("--every-us", 100_000).set("--limit-ms", HOUR_MS).command())
}

fn await_true(what: &str, mut condition: impl FnMut() -> bool) {
    let end = wait::after(PATIENCE);
    while !condition() {
        assert!(wait::now() < end, "not within {PATIENCE:?}: {what}");
        wait::pause(LOOK);
    }
}
