//! The supervisor's table: its actions in each state of the job.

use std::time::Duration;

use neli_proto::guard::{Answer, CommandKind, Grant, Order, SeenEnd, Step};
use neli_proto::job::JobStatus;
use neli_proto::record::{JobState, Why};
use neli_proto::restart::{Restart, RestartPolicy};
use neli_proto::supervisor::{
    Action, Event, Foreground, Job, JobIs, Local, OnLoss, Policy, StopPolicy, Supervisor, Wanted, WantedState,
};
use neli_proto::time::Time;

use crate::{Happening, State, Subject, drawn};

const HUP: i32 = 1;
const TERM: i32 = 15;
const STOP: i32 = 20;
const USR1: i32 = 10;
const STATUS: u8 = 3;

/// A supervisor that restarts its job.
struct Fixture {
    supervisor: Supervisor,
    now: Time,
    /// What the candidate wants of the job.
    wanted: Option<Wanted>,
    /// What the candidate last saw of this machine.
    seen: Local,
}

/// The states, each with a function that reaches it.
const STATES: [State<Fixture>; 7] = [
    ("no job", Fixture::new),
    ("held", Fixture::held),
    ("ordered", Fixture::ordered),
    ("running", Fixture::running),
    ("stopping", Fixture::stopping),
    ("restarting", Fixture::restarting),
    ("guard dead", Fixture::orphaned),
];

/// The events.
const EVENTS: [Happening<Fixture>; 31] = [
    ("candidate: run", |fixture| fixture.lead(WantedState::Run)),
    ("candidate: run, with `--once`", |fixture| fixture.lead(WantedState::Hold { waits: false })),
    ("node: the job may run", |fixture| fixture.want(WantedState::RunOnce { id: 1, window: None, attempt: 1 })),
    ("node: the next window is awaited", |fixture| fixture.want(WantedState::Hold { waits: true })),
    ("candidate: extended", |fixture| fixture.extend()),
    ("candidate: stop", |fixture| fixture.want(WantedState::Stop { why: Why::Resigned, by: None })),
    ("candidate: kill", |fixture| fixture.want(WantedState::Kill)),
    ("guard: `Accepted`, `Extended`", |fixture| fixture.answer(Answer::Extended { until: fixture.grant().until })),
    ("guard: `Started`", |fixture| fixture.answer(Answer::Started { pid: 7 })),
    ("guard: `NotStarted`", |fixture| fixture.answer(Answer::NotStarted { errno: 2, at: Step::Exec })),
    ("guard: `Exited`, nothing left", |fixture| fixture.exited(false)),
    ("guard: `Exited`, others left", |fixture| fixture.exited(true)),
    ("guard: `Killed`", |fixture| fixture.answer(Answer::Killed)),
    ("guard: `Gone`", |fixture| fixture.answer(Answer::Gone)),
    ("guard: `NoRun`", |fixture| fixture.answer(Answer::NoRun { term: 5, run: 1 })),
    ("guard: `Fenced`", |fixture| fixture.answer(Answer::Fenced { term: 5, end: Some(fixture.seen_end()) })),
    ("guard: `StillKilling`", |fixture| fixture.answer(Answer::StillKilling)),
    ("guard: `Stuck`", |fixture| fixture.answer(Answer::Stuck { pids: vec![7] })),
    ("no answer in time", |fixture| {
        fixture.now = fixture.now + Duration::from_secs(1);
        fixture.extend();
        fixture.actions();
        // This is the first moment that is too late. A supervisor that is late itself gives the guard more time.
        let mut later = (0..400).map(|step| fixture.now + Duration::from_millis(50) * step);
        fixture.now = later.find(|at| fixture.kills_guard_at(*at)).unwrap_or_else(|| fixture.grant().until);
        fixture.supervisor.handle_timeout(fixture.now);
    }),
    ("the guard died", |fixture| fixture.handle(Event::GuardDied)),
    ("no guard could be started", |fixture| fixture.handle(Event::GuardNotStarted { again: false })),
    ("no guard could be started now", |fixture| fixture.handle(Event::GuardNotStarted { again: true })),
    ("what a dead guard left is gone", |fixture| fixture.handle(Event::OrphansGone(fixture.seen_end()))),
    ("the timeout is due", |fixture| {
        fixture.now = fixture.supervisor.poll_timeout().unwrap_or(fixture.now);
        fixture.supervisor.handle_timeout(fixture.now);
    }),
    ("SIGTERM", |fixture| fixture.supervisor.handle_signal(fixture.now, TERM, false)),
    ("SIGTERM again, later", |fixture| {
        fixture.supervisor.handle_signal(fixture.now, TERM, false);
        fixture.actions();
        fixture.now = fixture.now + Duration::from_secs(1);
        fixture.supervisor.handle_signal(fixture.now, TERM, false);
    }),
    ("SIGUSR1", |fixture| fixture.supervisor.handle_signal(fixture.now, USR1, false)),
    ("SIGTSTP", |fixture| fixture.handle(Event::SuspendSignal { continuable: true })),
    ("the job stopped by SIGTSTP", |fixture| {
        let (signal, foreground) = (STOP, Foreground::Elsewhere);
        fixture.handle(Event::JobStopped { signal, foreground, continuable: true });
    }),
    ("the terminal is gone", |fixture| fixture.supervisor.handle_signal(fixture.now, HUP, true)),
    ("guard: `StartedUnseen`", |fixture| fixture.answer(Answer::StartedUnseen { pid: 7 })),
];

/// The table.
pub(crate) fn table() -> String {
    drawn(&STATES, &EVENTS).replace("all but *no job* and *guard dead*", "*any job*")
}

impl Subject for Fixture {
    fn state(&self) -> &'static str {
        match self.supervisor.job() {
            Job::Restarting { .. } => "restarting",
            Job::Held { .. } => "held",
            Job::None => "no job",
            Job::Ordered => "ordered",
            Job::Orphaned => "guard dead",
            Job::Running { .. } => "running",
            Job::Stopping { .. } => "stopping",
        }
    }

    fn actions(&mut self) -> Vec<String> {
        let gives_up = self.supervisor.take_give_up().then(|| "have the candidate wait no more".to_owned());
        let others = std::iter::from_fn(|| self.supervisor.poll_action()).filter_map(|action| shown(&action));
        let mut actions: Vec<String> = gives_up.into_iter().chain(others).collect();
        let local = self.supervisor.local();
        actions.extend(shown_change(&self.seen, &local));
        self.seen = local;
        actions
    }
}

impl Fixture {
    fn new() -> Self {
        let second = Duration::from_secs(1);
        let stop = StopPolicy { signal: Some(TERM), timeout: 8 * second };
        let restart = RestartPolicy { restart: Restart::Always, delay: second, limit: None };
        let policy = Policy { settle: Duration::ZERO, stop, restart, on_loss: OnLoss::Standby, health: None };
        let supervisor = Supervisor::new(policy, Duration::from_millis(200));
        let seen = supervisor.local();
        let mut fixture = Self { supervisor, now: Time::from_nanos(1_000_000_000_000), wanted: None, seen };
        fixture.answer(Answer::Ready);
        fixture
    }

    fn ordered() -> Self {
        let mut fixture = Self::new();
        fixture.lead(WantedState::Run);
        fixture
    }

    fn held() -> Self {
        let mut fixture = Self::new();
        fixture.lead(WantedState::Hold { waits: false });
        fixture
    }

    fn running() -> Self {
        let mut fixture = Self::ordered();
        fixture.answer(Answer::Accepted { until: fixture.grant().until });
        fixture.answer(Answer::Started { pid: 7 });
        fixture
    }

    fn stopping() -> Self {
        let mut fixture = Self::running();
        fixture.want(WantedState::Stop { why: Why::Resigned, by: None });
        fixture
    }

    fn restarting() -> Self {
        let mut fixture = Self::running();
        fixture.exited(false);
        fixture.answer(Answer::Gone);
        fixture
    }

    fn orphaned() -> Self {
        let mut fixture = Self::running();
        fixture.handle(Event::GuardDied);
        fixture
    }

    fn grant(&self) -> Grant {
        Grant { term: 5, seen: 5, next_seq: 3, until: self.now + Duration::from_secs(10) }
    }

    fn kills_guard_at(&self, at: Time) -> bool {
        let mut supervisor = self.supervisor.clone();
        supervisor.handle_timeout(at);
        std::iter::from_fn(|| supervisor.poll_action()).any(|action| action == Action::KillGuard)
    }

    /// The candidate has won a term.
    fn lead(&mut self, state: WantedState) {
        if self.wanted.is_none() {
            self.wanted = Some(Wanted { grant: self.grant(), again: 0, state });
        }
        self.supervisor.set_wanted(self.now, self.wanted);
    }

    fn extend(&mut self) {
        let grant = self.grant();
        self.wanted = self.wanted.map(|wanted| Wanted { grant, again: wanted.again + 1, ..wanted });
        self.supervisor.set_wanted(self.now, self.wanted);
    }

    fn want(&mut self, state: WantedState) {
        self.wanted = self.wanted.map(|wanted| Wanted { state, ..wanted });
        self.supervisor.set_wanted(self.now, self.wanted);
    }

    fn answer(&mut self, answer: Answer) {
        self.supervisor.handle_answer(self.now, answer);
    }

    fn handle(&mut self, event: Event) {
        self.supervisor.handle(self.now, event);
    }

    fn seen_end(&self) -> SeenEnd {
        SeenEnd { gone_at: self.now, lived_at: None }
    }

    fn exited(&mut self, left: bool) {
        self.answer(Answer::Exited { status: JobStatus::Exited(STATUS), ended_at: self.now, left, foreground: false });
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the others are actions of other objects")]
fn shown(action: &Action) -> Option<String> {
    Some(match action {
        Action::DieOf { .. } => "die of the signal".to_owned(),
        Action::Exit(ending) => format!("exit: {ending:?}"),
        Action::KillGuard => "kill guard and job".to_owned(),
        Action::KillOrphans => "kill what it left".to_owned(),
        Action::LookAtForeground => "look at the foreground".to_owned(),
        Action::Note(_) => return None,
        Action::Order(order) => match order {
            Order::Command { kind: CommandKind::Health, .. } => "`Command` (health)".to_owned(),
            Order::Command { kind: CommandKind::Lead, .. } => "`Command` (hook)".to_owned(),
            Order::HandOn => "`HandOn`".to_owned(),
            Order::Kill => "`Kill`".to_owned(),
            Order::Lease(_) => "`Lease`".to_owned(),
            Order::Over { .. } => "`Over`".to_owned(),
            Order::Released { .. } => "`Released`".to_owned(),
            Order::Signal { .. } => "`Signal`".to_owned(),
            Order::Spawn { .. } => "`Spawn`".to_owned(),
            Order::Stop { .. } => "`Stop`".to_owned(),
            Order::TakeBack => "`TakeBack`".to_owned(),
        },
        Action::StartGuard => "start a guard".to_owned(),
        action => panic!("not a supervisor's: {action:?}"),
    })
}

/// What the candidate sees of a change.
fn shown_change(before: &Local, local: &Local) -> Vec<String> {
    let mut seen = Vec::new();
    if local.is_stopped && !before.is_stopped {
        seen.push("told to stop".to_owned());
    }
    if local.is_suspended && !before.is_suspended {
        seen.push("told to suspend".to_owned());
    }
    seen.extend(shown_job(before.job.as_ref(), local.job.as_ref()));
    if before.lacks_guard != local.lacks_guard {
        seen.push(if local.lacks_guard { "no guard" } else { "a guard" }.to_owned());
    }
    if seen.is_empty() { Vec::new() } else { vec![format!("shows: {}", seen.join(" and "))] }
}

fn shown_job(before: Option<&JobIs>, job: Option<&JobIs>) -> Option<String> {
    let (report_before, fenced_before) = match before {
        Some(JobIs::Alive { report, fenced, .. }) => (Some(report.state), *fenced),
        Some(JobIs::Gone(_)) | None => (None, None),
    };
    match job? {
        JobIs::Alive { fenced: Some(_), .. } if fenced_before.is_none() => Some("fenced".to_owned()),
        JobIs::Alive { report, .. } if report_before != Some(report.state) => Some(match report.state {
            JobState::Restarting => "restarting".to_owned(),
            JobState::Running => "running".to_owned(),
            JobState::Starting => "starting".to_owned(),
            JobState::Stopping => "stopping".to_owned(),
        }),
        JobIs::Gone(end) if !matches!(before, Some(JobIs::Gone(_))) => Some(format!("gone ({})", end.why)),
        JobIs::Alive { .. } | JobIs::Gone(_) => None,
    }
}
