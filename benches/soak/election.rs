//! One election: two candidates that stay, one that is replaced repeatedly, and the changes.

use harness::candidate::{Elector, Running};
use harness::election::TestElection;
use harness::journal::Pen;
use harness::kafka::Kafka;
use harness::wait;
use nix::sys::signal::Signal;

use crate::series::{Measure, Series};

/// The changes, in this order, repeated.
const STORY: &[Change] = &[Change::Resign, Change::Term, Change::Resign, Change::Resign, Change::Kill, Change::Resign];

/// An ordinary change.
#[derive(Clone, Copy)]
enum Change {
    /// The third candidate is killed, and another starts.
    Kill,
    /// An operator asks the leader to resign.
    Resign,
    /// The third candidate is stopped, and another starts.
    Term,
}

/// An election, the candidates that stay, and the one that is replaced.
pub(crate) struct SoakElection {
    election: TestElection,
    pen: Pen,
    residents: Vec<Running>,
    guest: Running,
    term: u64,
    turns: usize,
    resigned: usize,
    leads: usize,
    series: Vec<Series>,
}

impl SoakElection {
    /// Three candidates, one of which leads.
    pub(crate) fn open(program: &str, kafka: &Kafka, elector: Elector) -> Self {
        let election = TestElection::new(program, kafka, elector);
        let mut residents: Vec<Running> = (0..2).map(|_| candidate(&election).start()).collect();
        for resident in &mut residents {
            wait::until_true("a resident that has come", || resident.count("leading") + resident.count("standby") > 0);
        }
        let guest = candidate(&election).start();
        let mut series = Vec::new();
        for index in 0..residents.len() {
            for process in ["supervisor", "guard"] {
                for measure in Measure::ALL {
                    series.push(Series::new(elector.name(), index, process, measure));
                }
            }
        }
        let pen = Pen::new(kafka, &election.topic(), &[]);
        let mut election = Self { election, pen, residents, guest, term: 0, turns: 0, resigned: 0, leads: 1, series };
        election.term = wait::until("a first lead", || election.latest());
        election
    }

    /// Makes the next change, and waits until there is a leader again.
    pub(crate) fn change(&mut self) {
        let change = STORY[self.turns % STORY.len()];
        self.turns += 1;
        let leads = |candidate: &Running| candidate.events("leading").last().map(|event| event.number("term"));
        let guest_leads = leads(&self.guest) == Some(self.term);
        match change {
            Change::Kill | Change::Term => {
                let signal = if matches!(change, Change::Kill) { Signal::SIGKILL } else { Signal::SIGTERM };
                self.guest.signal(signal);
                self.guest.status();
                self.guest = candidate(&self.election).start();
                if guest_leads {
                    self.await_next();
                }
            }
            Change::Resign => {
                let request = format!(
                    r#"{{"v":1,"kind":"request","member":"soak","seq":{},"what":"resign","term":{},"by":"soak","reason":"a change"}}"#,
                    self.turns, self.term
                );
                self.pen.write(&self.election.key(), &[request.as_bytes()]);
                self.resigned += 1;
                self.await_next();
            }
        }
    }

    /// Samples the candidates that stay.
    pub(crate) fn sample(&mut self) {
        let mut series = self.series.iter_mut();
        for resident in &mut self.residents {
            for process in [resident.process(), resident.guard()] {
                for (measure, series) in Measure::ALL.into_iter().zip(series.by_ref()) {
                    series.take(measure.of(process));
                }
            }
        }
    }

    /// All samples.
    pub(crate) fn series(&self) -> &[Series] {
        &self.series
    }

    /// Stops all candidates, and checks that no two jobs ever ran at the same time. Returns the numbers of changes as a line.
    pub(crate) fn close(self) -> String {
        let Self { election, mut residents, guest, turns, resigned, leads, .. } = self;
        let of_residents: Vec<usize> = residents.iter().map(|resident| resident.count("leading")).collect();
        // On a busy machine a lease may be lost, which affects the samples. So these events are counted.
        let odd = ["fenced", "guard_lost", "fence_warning", "broker_down", "error"].map(|name| {
            let count: usize = residents.iter().map(|resident| resident.count(name)).sum();
            format!("{name} {count}")
        });
        residents.push(guest);
        election.close(residents);
        let elector = election.elector().name();
        format!(
            "{elector}: {turns} changes ({resigned} of them resignations), {leads} leads, {of_residents:?} of them of those who stayed, \
             who said beside what is ordinary: {}",
            odd.join(", ")
        )
    }

    fn await_next(&mut self) {
        let before = self.term;
        self.term = wait::until("another lead", || self.latest().filter(|term| *term > before));
        self.leads += 1;
    }

    /// The highest term of all candidates so far.
    fn latest(&self) -> Option<u64> {
        let everybody = self.residents.iter().chain([&self.guest]);
        everybody.filter_map(|candidate| Some(candidate.events("leading").last()?.number("term"))).max()
    }
}

/// A candidate whose job writes rarely, and does not end during the soak.
fn candidate(election: &TestElection) -> harness::candidate::Candidate {
    const DAY_MS: u64 = 24 * 60 * 60 * 1000;
    let job = election.witness().set("--every-us", 100_000).set("--limit-ms", DAY_MS);
    election.candidate().job(job.command())
}
