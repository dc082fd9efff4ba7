//! After a node has handled what was due, its next timeout is in the future. Otherwise its process would use all of a CPU.

use std::time::Duration;

use neli_proto::candidate::{self, Durations, Elector, Timings};
use neli_proto::guard::{Answer, Order, SeenEnd};
use neli_proto::health::HealthPolicy;
use neli_proto::job::JobStatus;
use neli_proto::node::{Action, Event, Node, Settings};
use neli_proto::precedence::Assignment;
use neli_proto::random::Random;
use neli_proto::record::{Body, Offset, What, Why};
use neli_proto::restart::{Restart, RestartPolicy};
use neli_proto::supervisor;
use neli_proto::time::Time;
use neli_proto::topic::TopicIdentity;

use crate::host::{DURATIONS, Host, LEASE, TERM, by};
use crate::records::{Written, hello};

/// A node, and the random events for it.
struct World {
    node: Node,
    now: Time,
    log: Vec<Written>,
    read: usize,
    sent: Vec<Written>,
    orders: Vec<Order>,
    random: Random,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::from_seed(seed);
        let now = Time::ZERO + Duration::from_secs(1_000);
        let below = |random: &mut Random, bound| below(random, bound);
        let elector = match below(&mut random, 3) {
            0 => Elector::Log,
            1 => Elector::Group(Some(Duration::from_millis(500))),
            _ => Elector::Group(None),
        };
        let overlap = (below(&mut random, 3) == 0).then_some(Duration::from_secs(1));
        let preempt_after = (below(&mut random, 2) == 0).then_some(Duration::from_secs(2));
        let durations = Durations { overlap, preempt_after, ..DURATIONS };
        let settings = Host::settings(now, &[], true);
        let mut job = settings.job.clone();
        if below(&mut random, 2) == 0 {
            let (start, timeout) = (Duration::ZERO, Duration::from_secs(1));
            job.health = Some(HealthPolicy { interval: Duration::from_secs(2), timeout, failures: 2, start });
            job.settle = Duration::from_millis(300);
            job.restart = RestartPolicy { restart: Restart::Always, delay: Duration::from_secs(1), limit: None };
        }
        let wait = (below(&mut random, 4) == 0).then_some(Duration::from_secs(20));
        let timings = Timings::new(durations, elector).unwrap_or_else(|error| panic!("{error}"));
        let node = Node::new(now, Settings { timings, job, wait, ..settings }, random.clone());
        let mut world = Self { node, now, log: Vec::new(), read: 0, sent: Vec::new(), orders: Vec::new(), random };
        if world.below(4) > 0 {
            world.answered();
            world.judged();
            world.identified();
        }
        world
    }

    fn below(&mut self, bound: u64) -> u64 {
        below(&mut self.random, bound)
    }

    fn end(&self) -> Offset {
        Offset::try_from(self.log.len()).unwrap()
    }

    /// Lets time pass, often to exactly the node's timeout.
    fn pass(&mut self) {
        self.now = match self.node.poll_timeout() {
            Some(due) if self.below(3) == 0 => due.max(self.now),
            _ => self.now + self.random.up_to(LEASE / 20),
        };
    }

    /// Handles the timeout and checks the next one.
    fn wake(&mut self, seed: u64, step: u32, after: &str) {
        self.node.handle_timeout(self.now);
        self.perform();
        // Performing the actions may have caused events.
        let due = self.node.poll_timeout();
        assert!(due.is_none_or(|due| due > self.now), "seed {seed}, step {step}, after {after}: it would spin");
    }

    fn perform(&mut self) {
        while let Some(action) = self.node.poll_action() {
            if let Action::Kafka(request) = &action {
                self.sent.extend(Written::of(request));
            } else if let Action::Order(order) = action {
                self.orders.push(order);
            }
        }
    }

    fn elects(&mut self, event: candidate::Event) {
        self.node.handle(self.now, Event::Election(event));
    }

    fn job(&mut self, event: supervisor::Event) {
        self.node.handle(self.now, Event::Job(event));
    }

    fn answers(&mut self, answer: Answer) {
        self.node.handle(self.now, Event::Guard(answer));
    }

    /// The guard answers the first unanswered order.
    fn guard_answers(&mut self) {
        if self.orders.is_empty() {
            return;
        }
        match self.orders.remove(0) {
            Order::Lease(grant) => self.answers(Answer::Extended { until: grant.until }),
            Order::Spawn { grant, .. } => {
                self.answers(Answer::Accepted { until: grant.until });
                self.answers(Answer::Started { pid: 7 });
            }
            Order::Stop { .. } | Order::Kill => {
                self.answers(Answer::Exited {
                    status: JobStatus::Signaled(TERM),
                    ended_at: self.now,
                    left: false,
                    foreground: false,
                });
                self.answers(Answer::Gone);
            }
            Order::Command { .. }
            | Order::HandOn
            | Order::Over { .. }
            | Order::Released { .. }
            | Order::Signal { .. }
            | Order::TakeBack => {}
        }
    }

    fn answered(&mut self) {
        let (asked, end) = (self.now, self.end());
        self.elects(candidate::Event::Answered { asked, start: 0, end });
    }

    fn judged(&mut self) {
        self.elects(candidate::Event::TopicJudged { cut_is_harmless: true, gaps_are_markers: true });
    }

    fn identified(&mut self) {
        let asked = self.now;
        self.elects(candidate::Event::TopicIdentified { asked, identity: TopicIdentity::Unnamed });
    }

    fn read_one(&mut self) {
        let Some(record) = self.log.get(self.read).cloned() else {
            let next = self.end();
            return self.elects(candidate::Event::ReachedEnd { next });
        };
        let offset = Offset::try_from(self.read).unwrap();
        self.read += 1;
        self.elects(record.read_at(offset));
    }

    fn another_writes(&mut self) {
        let after = self.end() - 1;
        let last = self
            .log
            .iter()
            .rposition(|written| written.record().is_some_and(|record| matches!(record.body, Body::Claim { .. })));
        let term = Offset::try_from(last.unwrap_or_default()).unwrap();
        let record = match self.below(6) {
            0 => Written::from(by("ann", Body::Claim { after, lease_ms: 5_000, overlap: None })),
            1 => hello("ann", 10).into(),
            2 => hello("ann", 0).into(),
            3 => hello("bob", 0).into(),
            4 => by(
                "ann",
                Body::Request { what: What::Resign, term: Some(term), by: None, reason: None, successor: None },
            )
            .into(),
            _ => return,
        };
        self.log.push(record);
    }

    /// A random event.
    fn happens(&mut self) -> &'static str {
        match self.below(24) {
            0 => {
                self.answered();
                "an answer"
            }
            1 => {
                self.judged();
                "the judgement"
            }
            2 => {
                self.identified();
                "the topic's id"
            }
            3..8 => {
                self.read_one();
                "a record"
            }
            8..12 => {
                self.log.append(&mut self.sent);
                (self.read..self.log.len()).for_each(|_| self.read_one());
                "all that was sent"
            }
            12..17 => {
                self.guard_answers();
                "an answer of the guard's"
            }
            17 => {
                self.another_writes();
                "another's record"
            }
            18 => {
                let standings = [Assignment::Own, Assignment::Elsewhere, Assignment::Unknown];
                let standing = standings[usize::try_from(self.below(3)).unwrap()];
                self.elects(candidate::Event::AssignmentChanged(standing));
                "a standing"
            }
            19 => {
                self.elects(candidate::Event::Named { id: "m-me".into() });
                "a name"
            }
            20 if self.below(4) == 0 => {
                self.elects(candidate::Event::HistoryCut);
                (self.log, self.read, self.sent) = (Vec::new(), 0, Vec::new());
                "a cut"
            }
            21 if self.below(4) == 0 => {
                self.orders.clear();
                self.job(supervisor::Event::GuardDied);
                self.perform();
                self.job(supervisor::Event::OrphansGone(SeenEnd { gone_at: self.now, lived_at: None }));
                "a guard's death"
            }
            22 if self.below(4) == 0 => {
                self.elects(candidate::Event::Revoked);
                "a revoke"
            }
            23 if self.below(4) == 0 => {
                self.node.handle(self.now, Event::StandDown { why: Why::Resigned, leaving: false });
                "a resignation"
            }
            _ => {
                let status = JobStatus::Exited(1);
                self.answers(Answer::Exited { status, ended_at: self.now, left: false, foreground: false });
                self.answers(Answer::Gone);
                "a failed run"
            }
        }
    }
}

fn below(random: &mut Random, bound: u64) -> u64 {
    random.up_to(Duration::from_secs(bound)).as_secs().min(bound - 1)
}

#[test]
fn the_next_timeout_of_a_node_is_in_the_future() {
    let mut led = 0;
    for seed in 0..600 {
        let mut world = World::new(seed);
        for step in 0..300 {
            world.pass();
            world.wake(seed, step, "time");
            let what = world.happens();
            world.perform();
            world.wake(seed, step, what);
            led += u32::from(world.node.leads().is_some());
        }
    }
    assert!(led > 1_000, "it leads now and then: {led} times");
}
