//! The program around a node. Records that the node sends are read back when the test requires it.

use std::time::Duration;

use neli_proto::candidate::{self, Durations, Elector, Timings};
use neli_proto::guard::Answer;
use neli_proto::hello::Hello;
use neli_proto::hooks::Hook;
use neli_proto::kafka::Request;
use neli_proto::listener::FIRST_SPAN;
use neli_proto::node::{Action, Event, HookRun, Node, Settings, Status};
use neli_proto::note::{Note, Refusal};
use neli_proto::random::Random;
use neli_proto::record::{Body, MemberId, Offset, Record};
use neli_proto::restart::RestartPolicy;
use neli_proto::supervisor::{self, Ending, JobStatus, OnLoss, Policy, StopPolicy};
use neli_proto::time::Time;
use neli_proto::topic::TopicIdentity;

use crate::records::{Written, hello};

pub(crate) const LEASE: Duration = Duration::from_secs(5);
pub(crate) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
const STOP_TIMEOUT: Duration = Duration::from_secs(8);
pub(crate) const TERM: i32 = 15;
pub(crate) const TSTP_ENDS: i32 = 18;

pub(crate) const DURATIONS: Durations = Durations {
    lease: LEASE,
    heartbeat_interval: HEARTBEAT_INTERVAL,
    kill_margin: Duration::from_millis(100),
    fence_warning: Duration::ZERO,
    preempt_after: None,
    overlap: None,
};

/// A node, its time, and the log.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) node: Node,
    pub(crate) now: Time,
    pub(crate) log: Vec<Written>,
    /// Records that were sent and not appended yet.
    pub(crate) sent: Vec<Written>,
}

impl Host {
    pub(crate) fn new(hooks: &[Hook], accepts_remade_topic: bool) -> Self {
        let now = Time::ZERO + Duration::from_secs(1_000);
        let settings = Self::settings(now, hooks, accepts_remade_topic);
        let mut node = Node::new(now, settings, Random::from_seed(1));
        node.handle(now, Event::Guard(Answer::Ready));
        Self { node, now, log: Vec::new(), sent: Vec::new() }
    }

    /// The settings of a node that begins at `now`.
    pub(crate) fn settings(now: Time, hooks: &[Hook], accepts_remade_topic: bool) -> Settings {
        Settings {
            hello: Hello { name: Some("me".into()), ..hello("me", 0) },
            timings: Timings::new(DURATIONS, Elector::Log).unwrap_or_else(|error| panic!("{error}")),
            job: Policy {
                settle: Duration::ZERO,
                stop: StopPolicy { signal: Some(TERM), timeout: STOP_TIMEOUT },
                restart: RestartPolicy::default(),
                on_loss: OnLoss::Standby,
                health: None,
            },
            hooks: hooks.to_vec(),
            accepts_remade_topic,
            once: None,
            started: now,
            wait: None,
            first_span: FIRST_SPAN,
        }
    }

    /// A node that lets its job run at the same time as its successor's for a second.
    pub(crate) fn overlapping() -> Self {
        let now = Time::ZERO + Duration::from_secs(1_000);
        let settings = Self::settings(now, &[], true);
        let durations = Durations { overlap: Some(Duration::from_secs(1)), ..DURATIONS };
        let timings = Timings::new(durations, Elector::Log).unwrap_or_else(|error| panic!("{error}"));
        let node = Node::new(now, Settings { timings, ..settings }, Random::from_seed(1));
        Self { node, now, log: Vec::new(), sent: Vec::new() }.listened()
    }

    /// A node with the group elector.
    pub(crate) fn in_group() -> Self {
        let now = Time::ZERO + Duration::from_secs(1_000);
        let elector = Elector::Group(Some(Duration::from_millis(500)));
        let timings = Timings::new(DURATIONS, elector).unwrap_or_else(|error| panic!("{error}"));
        let settings = Settings { timings, ..Self::settings(now, &[], true) };
        let node = Node::new(now, settings, Random::from_seed(1));
        Self { node, now, log: Vec::new(), sent: Vec::new() }.listened()
    }

    /// A node that has read an empty log in a suitable topic, and is about to claim.
    pub(crate) fn listening(hooks: &[Hook]) -> Self {
        Self::new(hooks, true).listened()
    }

    pub(crate) fn listened(self) -> Self {
        let mut host = self;
        host.identified(TopicIdentity::Unnamed);
        host.elects(candidate::Event::TopicJudged { cut_is_harmless: true, gaps_are_markers: true });
        host
    }

    /// A leader whose first run waits for this time (`--settle`).
    pub(crate) fn settling(hooks: &[Hook], settle: Duration) -> Self {
        let mut host = Self::new(hooks, true);
        let mut settings = Self::settings(host.now, hooks, true);
        settings.job.settle = settle;
        host.node = Node::new(host.now, settings, Random::from_seed(1));
        let mut host = host.listened();
        host.answered();
        host.claims();
        host.reads_what_it_sent();
        host.actions();
        host
    }

    /// A leader whose job runs.
    pub(crate) fn leading(hooks: &[Hook]) -> Self {
        Self::listening(hooks).led()
    }

    /// Lets it become the leader, with a running job.
    pub(crate) fn led(self) -> Self {
        let mut host = self;
        host.answered();
        host.claims();
        host.reads_what_it_sent();
        host.started();
        host.actions();
        host
    }

    pub(crate) fn happens(&mut self, event: Event) {
        self.node.handle(self.now, event);
    }

    pub(crate) fn elects(&mut self, event: candidate::Event) {
        self.happens(Event::Election(event));
    }

    pub(crate) fn job(&mut self, event: supervisor::Event) {
        self.happens(Event::Job(event));
    }

    /// Delivers an answer of the guard.
    pub(crate) fn answers(&mut self, answer: Answer) {
        self.happens(Event::Guard(answer));
    }

    pub(crate) fn identified(&mut self, identity: TopicIdentity) {
        self.elects(candidate::Event::TopicIdentified { asked: self.now, identity });
    }

    /// Reports that the log is empty.
    pub(crate) fn answered(&mut self) {
        self.answered_with(0);
    }

    /// Reports that the log holds this many records.
    pub(crate) fn answered_with(&mut self, end: Offset) {
        let asked = self.now;
        self.elects(candidate::Event::Answered { asked, start: 0, end });
    }

    pub(crate) fn started(&mut self) {
        self.answers(Answer::Started { pid: 7 });
    }

    /// Ends the job's main process, without other processes of the job.
    pub(crate) fn ends(&mut self, status: JobStatus) {
        self.answers(Answer::Exited { status, ended_at: self.now, left: false, foreground: false });
        self.answers(Answer::Gone);
    }

    /// The node's actions; records to be sent are stored.
    pub(crate) fn actions(&mut self) -> Vec<Action> {
        let actions: Vec<Action> = std::iter::from_fn(|| self.node.poll_action()).collect();
        for action in &actions {
            if let Action::Kafka(request) = action {
                self.sent.extend(Written::of(request));
            }
        }
        actions
    }

    /// Lets time pass until the claim is sent.
    pub(crate) fn claims(&mut self) {
        while !self.actions().iter().any(|action| sends(action, "claim")) {
            self.now = self.node.poll_timeout().unwrap();
            self.node.handle_timeout(self.now);
        }
    }

    pub(crate) fn end(&self) -> Offset {
        Offset::try_from(self.log.len()).unwrap()
    }

    pub(crate) fn reads(&mut self, written: impl Into<Written>) {
        self.log.push(written.into());
        self.reads_at(self.end() - 1);
    }

    pub(crate) fn reads_at(&mut self, offset: Offset) {
        let written = self.log[usize::try_from(offset).unwrap()].clone();
        self.elects(written.read_at(offset));
    }

    /// Reads the sent records back.
    pub(crate) fn reads_what_it_sent(&mut self) {
        for written in std::mem::take(&mut self.sent) {
            self.reads(written);
        }
    }

    pub(crate) fn status(&self) -> Status {
        self.node.status(self.now)
    }

    pub(crate) fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
        self.node.handle_timeout(self.now);
        assert!(self.node.poll_timeout().is_none_or(|due| due > self.now), "it would be called again for ever");
    }

    /// Lets time pass until something is due.
    pub(crate) fn pass_until_due(&mut self) {
        let due = self.node.poll_timeout().unwrap();
        assert!(due > self.now, "it is due, and was not called");
        self.pass(due.since(self.now));
    }
}

pub(crate) fn sends(action: &Action, kind: &str) -> bool {
    if let Action::Kafka(Request::SayHello(_)) = action {
        return kind == "hello";
    }
    let Action::Kafka(Request::Send { record }) = action else { return false };
    let sent = match record.body {
        Body::Beat { .. } => "beat",
        Body::Claim { .. } => "claim",
        Body::Release { .. } => "release",
        Body::Request { .. } => "request",
    };
    sent == kind
}

pub(crate) fn by(member: &str, body: Body) -> Record {
    Record { member: Some(MemberId::from(member)), name: Some(format!("{member}-name").into()), seq: Some(1), body }
}

pub(crate) fn exits(actions: &[Action]) -> Vec<Ending> {
    actions.iter().filter_map(|action| if let Action::Exit(ending) = action { Some(*ending) } else { None }).collect()
}

pub(crate) fn refusals(actions: &[Action]) -> Vec<Refusal> {
    let refusal = |action: &Action| {
        if let Action::Note(Note::Refused(refusal)) = action { Some(refusal.clone()) } else { None }
    };
    actions.iter().filter_map(refusal).collect()
}

pub(crate) fn hooks_in(actions: &[Action]) -> Vec<HookRun> {
    actions.iter().filter_map(|action| if let Action::RunHook(run) = action { Some(*run) } else { None }).collect()
}
