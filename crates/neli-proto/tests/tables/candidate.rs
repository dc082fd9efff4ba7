//! The candidate's table: its actions in each state.

use std::time::Duration;

use neli_proto::candidate::{
    Action, Candidate, Durations, Elector, Event, JobEnd, JobReport, Position, Setup, Timings,
};
use neli_proto::guard::Grant;
use neli_proto::kafka::Request;
use neli_proto::listener::FIRST_SPAN;
use neli_proto::note::Note;
use neli_proto::precedence::Assignment;
use neli_proto::random::Random;
use neli_proto::record::{Body, JobState, MemberId, Offset, Record, What, Why};
use neli_proto::supervisor::{JobIs, Local, Wanted, WantedState};
use neli_proto::time::Time;
use neli_proto::topic::TopicIdentity;

use crate::proof::nothing_left;
use crate::records::hello;
use crate::{Happening, State, Subject, drawn};

const LEASE: Duration = Duration::from_secs(10);

/// A candidate with the group elector, and its log.
struct Fixture {
    candidate: Candidate,
    now: Time,
    /// The end of the log.
    end: Offset,
    /// The sequence numbers of its last claim, beat and release.
    claim: u64,
    beat: u64,
    release: u64,
    /// The grant that the candidate gave for the job.
    grant: Grant,
    /// What it wants of the job.
    wanted: Option<Wanted>,
    is_suspended: bool,
}

/// The states, each with a function that reaches it.
const STATES: [State<Fixture>; 7] = [
    ("listening", Fixture::new),
    ("standby", Fixture::standing_by),
    ("claiming", Fixture::claiming),
    ("leading", Fixture::leading),
    ("fenced", Fixture::fenced),
    ("releasing", Fixture::releasing),
    ("suspended", Fixture::suspended),
];

/// The events.
const EVENTS: [Happening<Fixture>; 24] = [
    ("own claim read: effective", |fixture| fixture.read_own_claim(fixture.end - 1)),
    ("own claim read: void", |fixture| {
        fixture.read_of("db2", Body::Claim { after: -2, lease_ms: 0, overlap: None });
        fixture.actions();
        fixture.read_own_claim(-1);
    }),
    ("own beat read: effective", Fixture::read_own_beat),
    ("own release read", Fixture::read_own_release),
    ("claim of another: effective", |fixture| {
        let after = fixture.end - 1;
        fixture.read_of("db2", Body::Claim { after, lease_ms: 10_000, overlap: None });
    }),
    ("`resign` of its term", |fixture| {
        let term = Some(fixture.grant.term);
        fixture.read_of("ops", Body::Request { what: What::Resign, term, by: None, reason: None, successor: None });
    }),
    ("`end`", |fixture| {
        fixture.read_of("ops", Body::Request { what: What::End, term: None, by: None, reason: None, successor: None });
    }),
    ("its last record delivered", |fixture| {
        let seq = fixture.last_seq();
        fixture.handle(Event::Delivered { seq });
    }),
    ("its last record not delivered", |fixture| {
        let seq = fixture.last_seq();
        fixture.handle(Event::Undelivered { seq, may_be_in_log: true });
    }),
    ("its last record refused", |fixture| {
        let seq = fixture.last_seq();
        fixture.handle(Event::Undelivered { seq, may_be_in_log: false });
    }),
    ("the timeout is due", Fixture::wait),
    ("a lease passes", |fixture| {
        fixture.now = fixture.now + LEASE;
        fixture.candidate.handle_timeout(fixture.now);
    }),
    ("the log's bounds answered", |fixture| fixture.answered()),
    ("the history was cut", |fixture| fixture.handle(Event::HistoryCut)),
    ("the topic is another", |fixture| fixture.identified(2)),
    ("the partition revoked", |fixture| fixture.handle(Event::Revoked)),
    ("the guard fenced or died", |fixture| fixture.fence()),
    ("the job's state changed", |fixture| {
        let job = JobReport { state: JobState::Running, pid: Some(7), attempt: 1, since: fixture.now };
        fixture.now = fixture.now + Duration::from_secs(1);
        fixture.set_job(Some(fixture.alive(job, None)));
    }),
    ("the job is gone", Fixture::nothing_left),
    ("told to stop for good", |fixture| fixture.stand_down(Why::Stopped, true)),
    ("told of an unhealthy job", |fixture| fixture.stand_down(Why::Unhealthy, false)),
    ("told to be suspended", |fixture| fixture.set_suspended(true)),
    ("continued", |fixture| fixture.set_suspended(false)),
    ("told to wait no more", |fixture| fixture.candidate.give_up(fixture.now)),
];

/// The table.
pub(crate) fn table() -> String {
    drawn(&STATES, &EVENTS)
}

impl Subject for Fixture {
    fn state(&self) -> &'static str {
        match self.candidate.position() {
            Position::Claiming => "claiming",
            Position::Departed => "departed",
            Position::Fenced { .. } => "fenced",
            Position::Leading { .. } => "leading",
            Position::Listening => "listening",
            Position::Overlapped { .. } => "overlapped",
            Position::Releasing { .. } => "releasing",
            Position::Standby(_) => "standby",
            Position::Suspended => "suspended",
        }
    }

    fn actions(&mut self) -> Vec<String> {
        let wanted = self.candidate.wants();
        let mut actions = shown_change(self.wanted, wanted).map(str::to_owned).collect::<Vec<_>>();
        self.grant = wanted.map_or(self.grant, |wanted| wanted.grant);
        self.wanted = wanted;
        while let Some(action) = self.candidate.poll_action() {
            actions.extend(self.shown(action));
        }
        actions
    }
}

impl Fixture {
    /// A candidate that has sent a query for the end of the log.
    fn new() -> Self {
        let now = Time::from_nanos(1_000_000_000_000);
        let durations = Durations {
            lease: LEASE,
            heartbeat_interval: LEASE / 5,
            kill_margin: LEASE / 50,
            fence_warning: LEASE / 4,
            preempt_after: None,
            overlap: None,
        };
        let elector = Elector::Group(Some(Duration::from_millis(500)));
        let setup = Setup {
            hello: hello("me", 0),
            timings: Timings::new(durations, elector).unwrap_or_else(|error| panic!("{error}")),
            started: now,
            wait: None,
            first_span: FIRST_SPAN,
        };
        let candidate = Candidate::new(now, setup, Random::from_seed(1));
        let grant = Grant { term: 0, seen: 0, next_seq: 1, until: now };
        let mut fixture =
            Self { candidate, now, end: 0, claim: 0, beat: 0, release: 0, grant, wanted: None, is_suspended: false };
        fixture.handle(Event::TopicJudged { cut_is_harmless: true, gaps_are_markers: true });
        fixture
    }

    /// A candidate that has read an empty log; the group has assigned the partition to it.
    fn listened() -> Self {
        let mut fixture = Self::new();
        fixture.answered();
        fixture.identified(1);
        fixture.handle(Event::Named { id: "a-member".into() });
        fixture.handle(Event::AssignmentChanged(Assignment::Own));
        fixture
    }

    /// A candidate while another one leads.
    fn standing_by() -> Self {
        let mut fixture = Self::listened();
        fixture.wait_for("claiming");
        fixture.read_of("db1", Body::Claim { after: -1, lease_ms: 10_000, overlap: None });
        fixture.read_own_claim(-1);
        fixture
    }

    fn claiming() -> Self {
        let mut fixture = Self::listened();
        fixture.wait_for("claiming");
        fixture
    }

    /// A leader with a beat under way.
    fn leading() -> Self {
        let mut fixture = Self::claiming();
        fixture.read_own_claim(-1);
        while fixture.beat == 0 {
            fixture.wait();
            fixture.actions();
        }
        fixture
    }

    fn fenced() -> Self {
        let mut fixture = Self::leading();
        fixture.fence();
        fixture
    }

    fn releasing() -> Self {
        let mut fixture = Self::leading();
        fixture.nothing_left();
        fixture
    }

    fn suspended() -> Self {
        let mut fixture = Self::standing_by();
        fixture.set_suspended(true);
        fixture
    }

    // ---- events -------------------------------------------------------------------------------------------------------

    fn handle(&mut self, event: Event) {
        self.candidate.handle(self.now, event);
    }

    fn set_job(&mut self, job: Option<JobIs>) {
        let is_suspended = self.is_suspended;
        let local = Local { job, lacks_guard: false, is_stopped: false, is_suspended };
        self.candidate.set_local(self.now, local);
    }

    fn set_suspended(&mut self, is_suspended: bool) {
        self.is_suspended = is_suspended;
        self.set_job(None);
    }

    fn alive(&self, report: JobReport, fenced: Option<Why>) -> JobIs {
        JobIs::Alive { term: self.grant.term, report, is_unhealthy: false, fenced }
    }

    fn fence(&mut self) {
        let report = JobReport { state: JobState::Starting, pid: None, attempt: 1, since: self.now };
        self.set_job(Some(self.alive(report, Some(Why::GuardDied))));
    }

    fn answered(&mut self) {
        let (asked, end) = (self.now, self.end);
        self.handle(Event::Answered { asked, start: 0, end });
    }

    fn identified(&mut self, low: i64) {
        let identity = TopicIdentity::Id { high: 0, low };
        self.handle(Event::TopicIdentified { asked: self.now, identity });
    }

    fn stand_down(&mut self, why: Why, leaving: bool) {
        self.candidate.stand_down(self.now, why, leaving);
    }

    fn wait(&mut self) {
        self.now = self.candidate.poll_timeout().unwrap_or(self.now);
        self.candidate.handle_timeout(self.now);
    }

    fn wait_for(&mut self, state: &str) {
        while self.state() != state {
            self.wait();
        }
        self.actions();
    }

    fn read(&mut self, record: Record) {
        let offset = self.end;
        self.end += 1;
        self.handle(Event::Read { offset, record: Some(record), written_ms: None });
    }

    fn read_of(&mut self, member: &str, body: Body) {
        self.read(Record { member: Some(MemberId::from(member)), name: None, seq: None, body });
    }

    fn read_own(&mut self, seq: u64, body: Body) {
        self.read(Record { member: Some(MemberId::from("me")), name: None, seq: Some(seq), body });
    }

    fn read_own_claim(&mut self, after: Offset) {
        self.read_own(self.claim, Body::Claim { after, lease_ms: 10_000, overlap: None });
    }

    fn read_own_beat(&mut self) {
        let (term, seen) = (self.grant.term, self.end - 1);
        self.read_own(self.beat, Body::Beat { term, seen, lease_ms: 10_000, job: None, overlap: None });
    }

    fn read_own_release(&mut self) {
        let (term, seen) = (self.grant.term, self.end - 1);
        let (why, exit, late_ms) = (None, None, None);
        self.read_own(
            self.release,
            Body::Release { term, seen, why, exit, late_ms, group_member: None, once: None, successor: None },
        );
    }

    fn last_seq(&self) -> u64 {
        self.claim.max(self.beat).max(self.release)
    }

    fn nothing_left(&mut self) {
        let (proof, seen) = (nothing_left(self.now, self.grant), None);
        self.set_job(Some(JobIs::Gone(JobEnd {
            once: None,
            proof,
            why: Why::Exited,
            exit: Some(0),
            leaving: false,
            fenced: None,
            seen,
            back_off: Duration::ZERO,
        })));
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the others are actions of other objects")]
    fn shown(&mut self, action: Action) -> Option<String> {
        let shown = match action {
            Action::RenewGuard => "new guard",
            Action::Kafka(Request::Identify) => "identify",
            Action::Kafka(Request::JoinGroup) => "join",
            Action::Kafka(Request::LeaveGroup) => "leave",
            Action::Kafka(Request::LookForEnd) => "ask where the log ends",
            Action::Note(Note::Refused(_)) => "refuse",
            Action::Note(_) => return None,
            Action::Kafka(Request::ReadAnew) => "read anew",
            Action::Kafka(Request::ReadFrom(_)) => "read",
            Action::Kafka(Request::RenewProducer) => "new producer",
            Action::Kafka(Request::SayHello(_)) => "`hello`",
            Action::Kafka(Request::Send { record }) => {
                let seq = record.seq.unwrap_or_default();
                match record.body {
                    Body::Beat { .. } => {
                        self.beat = seq;
                        "`beat`"
                    }
                    Body::Claim { .. } => {
                        self.claim = seq;
                        "`claim`"
                    }
                    Body::Release { .. } => {
                        self.release = seq;
                        "`release`"
                    }
                    Body::Request { .. } => "`request`",
                }
            }
            action => panic!("not a candidate's: {action:?}"),
        };
        Some(shown.to_owned())
    }
}

/// The change of what the candidate wants of its job.
fn shown_change(before: Option<Wanted>, wanted: Option<Wanted>) -> impl Iterator<Item = &'static str> {
    let term = wanted.map(|wanted| wanted.grant.term);
    let before = before.filter(|before| Some(before.grant.term) == term);
    let is_given =
        wanted.map(|wanted| (wanted.grant, wanted.again)) != before.map(|before| (before.grant, before.again));
    let given = wanted.filter(|_| is_given).map(|_| if before.is_some() { "extend" } else { "run" });
    let state = wanted.map(|wanted| wanted.state).filter(|state| before.is_some_and(|before| before.state != *state));
    let state = state.map(|state| match state {
        WantedState::Run => "run",
        WantedState::Stop { .. } => "stop",
        WantedState::Kill => "kill",
        WantedState::Hold { .. } | WantedState::RunOnce { .. } => panic!("the node's: {state:?}"),
    });
    given.into_iter().chain(state)
}
