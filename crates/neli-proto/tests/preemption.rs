//! `--priority` and `--preempt`: the lead moves to a candidate with the highest priority, and stays there.
//!
//! Candidates with equal and different priorities join and leave over days of simulated time. All candidates read each record a millisecond
//! after it was sent. The lead moves only after a candidate has joined or left, and at most a few times for each.

use std::time::Duration;

use neli_proto::candidate::{Action, Candidate, Durations, Elector, Event, JobEnd, Setup, Timings};
use neli_proto::kafka::Request;
use neli_proto::listener::FIRST_SPAN;
use neli_proto::random::Random;
use neli_proto::record::Why;
use neli_proto::supervisor::{JobIs, Local, Wanted, WantedState};
use neli_proto::time::Time;
use neli_proto::topic::TopicIdentity;

#[path = "proof/mod.rs"]
mod proof;
#[path = "records/mod.rs"]
mod records;

use records::{Written, hello};

const LEASE: Duration = Duration::from_secs(20);
const PREEMPT_AFTER: Duration = Duration::from_secs(60);
const WAY: Duration = Duration::from_millis(1);

/// A candidate with its priority and state.
struct Member {
    candidate: Candidate,
    priority: u16,
    /// What it last wanted of its job.
    wanted: Option<Wanted>,
}

struct World {
    now: Time,
    elector: Elector,
    members: Vec<Member>,
    log: Vec<Written>,
    /// How many records of the log all candidates have read.
    read: usize,
    /// The priorities of the leaders so far, in order.
    leads: Vec<u16>,
    begun: u64,
}

impl World {
    fn new(elector: Elector) -> Self {
        let now = Time::ZERO + Duration::from_secs(100);
        Self { now, elector, members: Vec::new(), log: Vec::new(), read: 0, leads: Vec::new(), begun: 0 }
    }

    fn join(&mut self, priority: u16, preempts: bool) {
        self.begun += 1;
        let durations = Durations {
            lease: LEASE,
            heartbeat_interval: LEASE / 4,
            kill_margin: LEASE / 50,
            fence_warning: LEASE / 4,
            preempt_after: preempts.then_some(PREEMPT_AFTER),
            overlap: None,
        };
        let timings = Timings::new(durations, self.elector).unwrap_or_else(|error| panic!("{error}"));
        let hello = hello(&format!("{:032x}", self.begun), priority);
        let setup = Setup { hello, timings, started: self.now, wait: None, first_span: FIRST_SPAN };
        let mut candidate = Candidate::new(self.now, setup, Random::from_seed(self.begun));
        let identity = TopicIdentity::Unnamed;
        candidate.handle(self.now, Event::TopicIdentified { asked: self.now, identity });
        candidate.handle(self.now, Event::TopicJudged { cut_is_harmless: true, gaps_are_markers: true });
        self.members.push(Member { candidate, priority, wanted: None });
        self.settle();
    }

    fn leave(&mut self, index: usize) {
        self.members[index].candidate.stand_down(self.now, Why::Stopped, true);
        self.settle();
    }

    /// Delivers every record until no more are sent.
    fn settle(&mut self) {
        loop {
            for index in 0..self.members.len() {
                self.act(index);
            }
            self.members.retain(|member| member.candidate.departed().is_none());
            let Some(record) = self.log.get(self.read).cloned() else { break };
            self.now = self.now + WAY;
            let offset = i64::try_from(self.read).unwrap_or(i64::MAX);
            self.read += 1;
            for member in &mut self.members {
                member.candidate.handle(self.now, record.clone().read_at(offset));
            }
        }
    }

    fn act(&mut self, index: usize) {
        self.perform(index);
        self.do_what_is_wanted(index);
        self.perform(index);
    }

    /// The job runs when it may, and ends as soon as it is stopped.
    fn do_what_is_wanted(&mut self, index: usize) {
        let now = self.now;
        let member = &mut self.members[index];
        let wanted = member.candidate.wants();
        if wanted.is_some() && member.wanted.is_none() {
            self.leads.push(member.priority);
        }
        member.wanted = wanted;
        match wanted {
            None | Some(Wanted { state: WantedState::Run, .. }) => {}
            Some(Wanted { state: WantedState::Stop { why, by: None }, grant, .. }) => {
                let (proof, leaving) = (proof::nothing_left(now, grant), why == Why::Stopped);
                let (once, fenced, seen, back_off) = (None, None, None, Duration::ZERO);
                let end = JobEnd { proof, why, exit: Some(0), leaving, once, fenced, seen, back_off };
                let job = Some(JobIs::Gone(end));
                let local = Local { job, lacks_guard: false, is_stopped: false, is_suspended: false };
                member.candidate.set_local(now, local);
                member.wanted = None;
            }
            Some(other) => panic!("nothing is lost here: {other:?}"),
        }
    }

    fn perform(&mut self, index: usize) {
        let (now, read) = (self.now, self.read);
        let member = &mut self.members[index];
        while let Some(action) = member.candidate.poll_action() {
            if action == Action::Kafka(Request::ReadAnew) {
                let end = i64::try_from(read).unwrap_or(i64::MAX);
                member.candidate.handle(now, Event::Answered { asked: now, start: 0, end });
            } else if let Action::Kafka(Request::ReadFrom(from)) = action {
                let from = usize::try_from(from).unwrap_or_default();
                for (offset, record) in (0..).zip(&self.log[..read]).skip(from) {
                    member.candidate.handle(now, record.clone().read_at(offset));
                }
            } else if let Action::Kafka(request) = action {
                self.log.extend(Written::of(&request));
            }
        }
    }

    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let due = self.members.iter().filter_map(|member| member.candidate.poll_timeout()).min();
            let Some(due) = due.filter(|due| *due <= end) else { break };
            self.now = self.now.max(due);
            for member in &mut self.members {
                member.candidate.handle_timeout(self.now);
                assert!(member.candidate.poll_timeout().is_none_or(|due| due > self.now), "it stays due");
            }
            self.settle();
        }
        self.now = self.now.max(end);
    }

    fn highest(&self) -> Option<u16> {
        self.members.iter().map(|member| member.priority).max()
    }
}

const ELECTORS: [Elector; 2] = [Elector::Log, Elector::Group(Some(Duration::from_millis(500)))];

/// Many candidates with equal and different priorities that join and leave.
#[test]
fn the_lead_moves_to_the_highest_priority_and_stays() {
    for (elector, seed) in ELECTORS.into_iter().flat_map(|elector| (0..3).map(move |seed| (elector, seed))) {
        let mut random = Random::from_seed(seed);
        let mut draw =
            |below: u64| u64::try_from(random.up_to(Duration::from_nanos(below - 1)).as_nanos()).unwrap_or_default();
        let mut world = World::new(elector);
        for change in 0..80 {
            let priority = [0, 0, 1, 5, 5, 10][usize::try_from(draw(6)).unwrap_or_default()];
            if world.members.len() < 2 || (world.members.len() < 8 && draw(2) == 0) {
                world.join(priority, true);
            } else {
                let index = usize::try_from(draw(world.members.len() as u64)).unwrap_or_default();
                world.leave(index);
            }
            let before = world.leads.len();
            // A new leader's hello comes at most 30 s later and contains its priority. Then a standby may act on it.
            world.pass(PREEMPT_AFTER * 3);
            let leads = &world.leads[before.saturating_sub(1)..];
            assert_eq!(world.leads.last().copied(), world.highest(), "{elector:?} {seed} {change}: {leads:?}");
            assert!(world.leads.len() <= before + 2, "{elector:?} {seed} {change}: {leads:?}");
            // From now on the lead does not move.
            let settled = world.leads.len();
            world.pass(PREEMPT_AFTER * 10);
            assert_eq!(world.leads.len(), settled, "{elector:?} {seed} {change}: {:?}", world.leads);
        }
    }
}

/// No candidate asks a leader of the same priority to resign, even if many candidates have `--preempt`.
#[test]
fn candidates_of_equal_priority_do_not_preempt_each_other() {
    for elector in ELECTORS {
        let mut world = World::new(elector);
        for _ in 0..20 {
            world.join(7, true);
            world.pass(PREEMPT_AFTER);
        }
        world.pass(Duration::from_secs(7_200));
        assert_eq!(world.leads, [7]);
    }
}

/// Without `--preempt` a candidate with a higher priority waits for a vacancy, and leads then.
#[test]
fn without_preempt_a_higher_priority_waits_for_a_vacancy() {
    for elector in ELECTORS {
        let mut world = World::new(elector);
        world.join(0, false);
        world.pass(LEASE);
        (0..5).for_each(|_| world.join(1, false));
        world.join(9, false);
        world.pass(Duration::from_secs(7_200));
        assert_eq!(world.leads, [0]);
        world.leave(0);
        world.pass(LEASE);
        assert_eq!(world.leads, [0, 9]);
    }
}
