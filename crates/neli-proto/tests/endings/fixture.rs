//! One machine: a node and its guard, which are the real objects, with a simulated Kafka and job.

use std::collections::VecDeque;
use std::time::Duration;

use neli_proto::candidate::{self, Durations, Elector, Timings};
use neli_proto::guard::{Answer, SeenEnd};
use neli_proto::hello::Hello;
use neli_proto::kafka::Request;
use neli_proto::listener::FIRST_SPAN;
use neli_proto::node::{self, Action, Node, Settings};
use neli_proto::precedence::Assignment;
use neli_proto::random::Random;
use neli_proto::record::{Body, MemberId, Offset, Overlap, Record, What, Why};
use neli_proto::restart::{Limit, Restart, RestartPolicy};
use neli_proto::supervisor::{Ending, Event, Lost, OnLoss, Policy, StopPolicy};
use neli_proto::time::Time;
use neli_proto::topic::TopicIdentity;

use crate::cases::{Cause, Kafka, Manner, OBEYING, Outcome, Spans};
use crate::records::{Written, hello};

use guarded::{GuardProcess, Run};

mod guarded;

const SIGKILL: i32 = 9;

pub(crate) const LEASE: Duration = Duration::from_secs(5);
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(30);
pub(crate) const RESTART_DELAY: Duration = Duration::from_secs(20);

/// One machine.
pub(crate) struct Fixture {
    now: Time,
    node: Node,
    guard: GuardProcess,
    pub(crate) kafka: Kafka,
    /// `--overlap`: how long the job may run at the same time as its successor's.
    yields_for: Duration,
    /// The offset of the next record to be read.
    end: Offset,
    /// How many terms were won and released according to the log.
    pub(crate) terms: (usize, usize),
    /// How often the guard was ordered to start the job.
    pub(crate) spawns: usize,
    /// Records that were appended and not read yet.
    unread: VecDeque<Written>,
    exit: Option<(Ending, Time)>,
}

impl Fixture {
    /// A leader whose guard was ordered to start the job.
    pub(crate) fn leading(on_loss: OnLoss, restart: Restart, limit: Option<u32>) -> Self {
        let mut fixture = Self::new(on_loss, restart, limit);
        fixture.judge();
        fixture.answer();
        fixture.assign();
        assert!(fixture.guard.run.is_some(), "it leads");
        fixture
    }

    /// A candidate that has just started.
    pub(crate) fn new(on_loss: OnLoss, restart: Restart, limit: Option<u32>) -> Self {
        Self::with(Spans::default(), on_loss, restart, limit)
    }

    /// The same with `--settle` or `--overlap`.
    pub(crate) fn with(spans: Spans, on_loss: OnLoss, restart: Restart, limit: Option<u32>) -> Self {
        let Spans { settle, overlap } = spans;
        let now = Time::from_nanos(1_000_000_000_000);
        let timings = Timings::new(
            Durations {
                lease: LEASE,
                heartbeat_interval: LEASE / 5,
                kill_margin: LEASE / 50,
                fence_warning: LEASE / 4,
                preempt_after: None,
                overlap,
            },
            Elector::Group(Some(Duration::from_millis(500))),
        )
        .unwrap_or_else(|error| panic!("{error}"));
        let policy = Policy {
            settle,
            stop: StopPolicy { signal: Some(15), timeout: STOP_TIMEOUT },
            restart: RestartPolicy {
                restart,
                delay: RESTART_DELAY,
                limit: limit.map(|restarts| Limit { restarts, within: Duration::from_secs(60) }),
            },
            on_loss,
            health: None,
        };
        let settings = Settings {
            hello: hello("me", 0),
            timings,
            job: policy,
            hooks: Vec::new(),
            accepts_remade_topic: true,
            once: None,
            started: now,
            wait: None,
            first_span: FIRST_SPAN,
        };
        let mut fixture = Self {
            now,
            node: Node::new(now, settings, Random::from_seed(1)),
            guard: GuardProcess { holds_start: true, ..GuardProcess::new() },
            kafka: Kafka::Answers,
            yields_for: overlap.map_or(Duration::ZERO, |_| LEASE),
            end: 0,
            terms: (0, 0),
            spawns: 0,
            unread: VecDeque::new(),
            exit: None,
        };
        fixture.perform();
        fixture
    }

    /// Reports that the topic is suitable.
    pub(crate) fn judge(&mut self) {
        let (asked, identity) = (self.now, TopicIdentity::Unnamed);
        self.pass_event(candidate::Event::TopicIdentified { asked, identity });
        self.pass_event(candidate::Event::TopicJudged { cut_is_harmless: true, gaps_are_markers: true });
    }

    /// Reports that the log is empty.
    pub(crate) fn answer(&mut self) {
        let asked = self.now;
        self.pass_event(candidate::Event::Answered { asked, start: 0, end: 0 });
    }

    /// Reports the candidate's member id in the group. Then the candidate says hello.
    pub(crate) fn name(&mut self) {
        self.pass_event(candidate::Event::Named { id: "neli-run-1".into() });
    }

    /// Reports that the group has assigned the partition to the candidate.
    pub(crate) fn assign(&mut self) {
        self.pass_event(candidate::Event::AssignmentChanged(Assignment::Own));
    }

    pub(crate) fn happens(&mut self, cause: Cause) {
        match cause {
            Cause::End => self
                .append(None, Body::Request { what: What::End, term: None, by: None, reason: None, successor: None }),
            // After the warning the beats are read back again.
            Cause::FenceWarning => self.without_kafka(LEASE * 3 / 4),
            Cause::GuardDied => self.guard_dies(),
            Cause::LeaseOver => self.without_kafka(LEASE),
            Cause::Refused => {
                self.node.handle(self.now, node::Event::Refused("no".into()));
                self.perform();
            }
            Cause::Resigned => {
                let (term, by, reason) = (self.node.leads(), None, None);
                self.append(None, Body::Request { what: What::Resign, term, by, reason, successor: None });
            }
            Cause::Revoked => self.pass_event(candidate::Event::Revoked),
            Cause::SecondTerm => {
                self.signal_term();
                self.pass(Duration::from_millis(600));
                self.signal_term();
            }
            Cause::Stuck => self.handle_event(Event::OrphansStuck { pids: vec![77] }),
            Cause::Superseded => {
                let after = self.end - 1;
                self.append(Some("other"), Body::Claim { after, lease_ms: 5_000, overlap: None });
            }
            Cause::Term => self.signal_term(),
            Cause::Unhealthy => {
                self.node.handle(self.now, node::Event::StandDown { why: Why::Unhealthy, leaving: false });
                self.perform();
            }
        }
    }

    /// Ends the rest of the job and of the lead. After the last back-off nothing changes any more.
    pub(crate) fn finish(&mut self, manner: Manner) -> Outcome {
        if self.guard.run.is_some() && self.guard.holds_start {
            self.say_started();
        }
        match (self.guard.run, manner) {
            (Some(Run { is_dying: false, main_is_gone: true, .. }), Manner::Obeys) => self.gone(),
            (Some(Run { is_dying: false, .. }), Manner::Obeys) => self.main_ends(OBEYING, false),
            (Some(Run { is_dying: false, .. }), Manner::Stubborn) => self.pass(self.yields_for + STOP_TIMEOUT),
            (None | Some(Run { is_dying: true, .. }), _) => {}
        }
        self.die();
        if self.guard.is_dead {
            self.handle_event(Event::OrphansGone(SeenEnd { gone_at: self.now, lived_at: None }));
        }
        if self.exit.is_none() {
            // Another candidate leads from now on, so this one stands by.
            self.happens(Cause::Superseded);
        }
        self.pass(LEASE);
        self.exit.map_or(Outcome::StandsBy, |(ending, _)| Outcome::Exit(code(ending)))
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    pub(crate) fn has_job(&self) -> bool {
        self.guard.run.is_some()
    }

    /// The time at which the process ended, or the present time if it has not.
    pub(crate) fn exited_at(&self) -> Time {
        self.exit.map_or(self.now, |(_, at)| at)
    }

    // ---- time, Kafka ------------------------------------------------------------------------------------------------

    pub(crate) fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while self.exit.is_none() {
            let next = [self.guard.guard.poll_timeout(), self.node.poll_timeout()].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.now = self.now.max(next);
            self.guard.guard.handle_timeout(self.now);
            self.perform_for_guard();
            assert!(self.guard.guard.poll_timeout().is_none_or(|due| due > self.now), "the guard's timeout stays due");
            self.node.handle_timeout(self.now);
            assert!(self.node.poll_timeout().is_none_or(|due| due > self.now), "the node's timeout stays due");
            self.perform();
        }
        self.now = self.now.max(until);
    }

    fn without_kafka(&mut self, span: Duration) {
        let before = std::mem::replace(&mut self.kafka, Kafka::IsGone);
        self.pass(span);
        self.kafka = before;
    }

    /// Reads another candidate's hello, so that the candidate knows a standby.
    pub(crate) fn read_standby(&mut self) {
        let hello = Hello { overlap_ms: Some(1_000), ..Hello::new("other".into(), None) };
        let offset = self.end;
        self.end += 1;
        self.pass_event(candidate::Event::ReadHello { offset, hello: Box::new(hello) });
    }

    /// Reads another candidate's claim that overlaps this term, so that the job may continue for a while.
    pub(crate) fn overlap(&mut self) {
        let over = self.node.leads();
        let overlap = Some(Overlap { within_ms: 1_000, over, yields: false });
        self.append(Some("other"), Body::Claim { after: self.end - 1, lease_ms: 5_000, overlap });
    }

    /// Drops the records that were appended and not read.
    pub(crate) fn lose_unread(&mut self) {
        self.unread.clear();
    }

    fn append(&mut self, by: Option<&str>, body: Body) {
        let record = Record { member: by.map(MemberId::from), name: None, seq: None, body };
        self.unread.push_back(record.into());
        self.perform();
    }

    // ---- the process --------------------------------------------------------------------------------------------------

    fn signal_term(&mut self) {
        self.node.handle(self.now, node::Event::Signal { signal: 15, by_terminal: false });
        self.perform();
    }

    fn handle_event(&mut self, event: Event) {
        self.hear_of_job(event);
        self.perform();
    }

    fn hear_of_job(&mut self, event: Event) {
        self.node.handle(self.now, node::Event::Job(event));
    }

    fn pass_event(&mut self, event: candidate::Event) {
        self.node.handle(self.now, node::Event::Election(event));
        self.perform();
    }

    fn perform(&mut self) {
        while self.exit.is_none() {
            if let Some(action) = self.node.poll_action() {
                self.perform_one(action);
            } else if self.kafka != Kafka::Answers || !self.read_one() {
                return;
            }
        }
    }

    /// Reads the next record; returns false if there is none.
    fn read_one(&mut self) -> bool {
        let Some(written) = self.unread.pop_front() else { return false };
        let offset = self.end;
        self.end += 1;
        self.node.handle(self.now, node::Event::Election(written.read_at(offset)));
        true
    }

    /// Reads the next record and performs the resulting actions.
    pub(crate) fn read(&mut self) {
        assert!(self.read_one(), "something was appended");
        self.perform();
    }

    fn perform_one(&mut self, action: Action) {
        match action {
            Action::Exit(ending) => self.exit = Some((ending, self.now)),
            // The guard has little time to kill the job before the lease's end.
            Action::KillGuard => self.guard_dies(),
            Action::Order(order) => self.order(order),
            Action::Kafka(request @ (Request::SayHello(_) | Request::Send { .. })) => {
                if self.kafka != Kafka::IsGone {
                    let written = Written::of(&request);
                    match written.as_ref().and_then(Written::record).map(|record| &record.body) {
                        Some(Body::Claim { .. }) => self.terms.0 += 1,
                        Some(Body::Release { .. }) => self.terms.1 += 1,
                        Some(Body::Beat { .. } | Body::Request { .. }) | None => {}
                    }
                    self.unread.extend(written);
                }
            }
            Action::RenewGuard | Action::StartGuard => {
                self.guard = GuardProcess::new();
                self.hear_answer(Answer::Ready);
            }
            // A new reading gets no answer, because the candidate must stand by and not lead again.
            Action::DieOf { .. }
            | Action::AppendFact { .. }
            | Action::Kafka(_)
            | Action::KillHook { .. }
            | Action::KillOrphans
            | Action::LookAtForeground
            | Action::Note(_)
            | Action::ReadFacts { .. }
            | Action::RunHook(_) => {}
        }
    }
}

fn code(ending: Ending) -> u8 {
    match ending {
        Ending::Ended => 0,
        Ending::Job(status) | Ending::NotDone { job: Some(status), .. } => status.code(),
        Ending::Lost(Lost::Fenced) => 82,
        Ending::Lost(Lost::Killed) => 81,
        Ending::Lost(Lost::Stopped) => 80,
        Ending::Refused => 125,
        Ending::RestartLimit => 84,
        Ending::Skipped { status, .. } => status,
        Ending::StoppedBy(signal) | Ending::NotDone { signal: Some(signal), job: None } => {
            u8::try_from(128 + signal).unwrap_or(u8::MAX)
        }
        Ending::Stuck => 85,
        Ending::WaitedEnough | Ending::NotDone { signal: None, job: None } => 75,
    }
}
