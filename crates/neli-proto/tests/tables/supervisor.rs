//! What a supervisor does in each state of its job.

use std::time::Duration;

use neli_proto::candidate::{LocalEvent, Loss};
use neli_proto::guard::{Answer, CommandKind, Grant, Order, Step};
use neli_proto::record::{JobState, Why};
use neli_proto::restart::{Restart, RestartPolicy};
use neli_proto::supervisor::{Action, Event, JobPhase, LeadEvent, OnLoss, Policy, StopPolicy, Supervisor};
use neli_proto::terminal::Foreground;
use neli_proto::time::Time;

use crate::{Happening, State, Subject, drawn};

const TERM: i32 = 15;
const STOP: i32 = 20;
const USR1: i32 = 10;
const STATUS: i32 = 3;

/// A supervisor that runs its job again.
struct Scene {
    supervisor: Supervisor,
    now: Time,
}

/// The states, each with the way to it.
const STATES: [State<Scene>; 7] = [
    ("no job", Scene::new),
    ("held", Scene::held),
    ("ordered", Scene::ordered),
    ("running", Scene::running),
    ("stopping", Scene::stopping),
    ("between two runs", Scene::restarting),
    ("guard dead", Scene::orphaned),
];

/// The events.
const EVENTS: [Happening<Scene>; 29] = [
    ("candidate: led", |scene| scene.lead(LeadEvent::Led(scene.grant()))),
    ("candidate: led, with `--once`", |scene| scene.lead(LeadEvent::Held(scene.grant()))),
    ("node: the job may run", |scene| scene.lead(LeadEvent::MayRun(None))),
    ("node: the next window is awaited", |scene| scene.lead(LeadEvent::Waits)),
    ("candidate: extended", |scene| scene.lead(LeadEvent::Extended(scene.grant()))),
    ("candidate: stand down", |scene| scene.lead(LeadEvent::StoppedFor(Why::Resigned))),
    ("candidate: lease over", |scene| scene.lead(LeadEvent::Killed(Loss::LeaseOver))),
    ("guard: `Accepted`, `Extended`", |scene| scene.answer(Answer::Extended { until: scene.grant().until })),
    ("guard: `Started`", |scene| scene.answer(Answer::Started { pid: 7 })),
    ("guard: `NotStarted`", |scene| scene.answer(Answer::NotStarted { errno: 2, at: Step::Exec })),
    ("guard: `Exited`, nothing left", |scene| scene.exited(false)),
    ("guard: `Exited`, others left", |scene| scene.exited(true)),
    ("guard: `Killed`", |scene| scene.answer(Answer::Killed)),
    ("guard: `Gone`", |scene| scene.answer(Answer::Gone)),
    ("guard: `NoRun`", |scene| scene.answer(Answer::NoRun { term: 5, attempt: 1 })),
    ("guard: `Fenced`", |scene| scene.answer(Answer::Fenced { term: 5, gone_at: Some(scene.now) })),
    ("guard: `Stuck`", |scene| scene.answer(Answer::Stuck { pids: vec![7] })),
    ("no answer in time", |scene| {
        scene.now = scene.now + Duration::from_secs(1);
        scene.lead(LeadEvent::Extended(scene.grant()));
        scene.actions();
        scene.now = scene.grant().until;
        scene.supervisor.handle_timeout(scene.now);
    }),
    ("the guard died", |scene| scene.handle(Event::GuardDied)),
    ("no guard could be started", |scene| scene.handle(Event::GuardNotStarted)),
    ("what a dead guard left is gone", |scene| scene.handle(Event::OrphansGone)),
    ("the timeout is due", |scene| {
        scene.now = scene.supervisor.poll_timeout().unwrap_or(scene.now);
        scene.supervisor.handle_timeout(scene.now);
    }),
    ("SIGTERM", |scene| scene.supervisor.handle_signal(scene.now, TERM)),
    ("SIGTERM again, later", |scene| {
        scene.supervisor.handle_signal(scene.now, TERM);
        scene.actions();
        scene.now = scene.now + Duration::from_secs(1);
        scene.supervisor.handle_signal(scene.now, TERM);
    }),
    ("SIGUSR1", |scene| scene.supervisor.handle_signal(scene.now, USR1)),
    ("SIGTSTP", |scene| scene.handle(Event::SuspendSignal { continuable: true })),
    ("the job stopped by SIGTSTP", |scene| {
        let (signal, foreground) = (STOP, Foreground::Elsewhere);
        scene.handle(Event::JobStopped { signal, foreground, continuable: true });
    }),
    ("the terminal is gone", |scene| scene.handle(Event::TerminalGone)),
    ("guard: `StartedUnseen`", |scene| scene.answer(Answer::StartedUnseen { pid: 7 })),
];

/// The table.
pub(crate) fn table() -> String {
    drawn(&STATES, &EVENTS)
}

impl Subject for Scene {
    fn state(&self) -> &'static str {
        match self.supervisor.phase() {
            JobPhase::BetweenRuns => "between two runs",
            JobPhase::Held => "held",
            JobPhase::NoJob => "no job",
            JobPhase::Ordered => "ordered",
            JobPhase::Orphaned => "guard dead",
            JobPhase::Running => "running",
            JobPhase::Stopping => "stopping",
        }
    }

    fn actions(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.supervisor.poll_action()).filter_map(shown).collect()
    }
}

impl Scene {
    fn new() -> Self {
        let second = Duration::from_secs(1);
        let stop = StopPolicy { signal: TERM, timeout: 8 * second };
        let restart = RestartPolicy { restart: Restart::Always, delay: second, limit: None };
        let policy = Policy { settle: Duration::ZERO, stop, restart, on_loss: OnLoss::Standby, health: None };
        Self {
            supervisor: Supervisor::new(policy, Duration::from_millis(200)),
            now: Time::from_nanos(1_000_000_000_000),
        }
    }

    fn ordered() -> Self {
        let mut scene = Self::new();
        scene.lead(LeadEvent::Led(scene.grant()));
        scene
    }

    fn held() -> Self {
        let mut scene = Self::new();
        scene.lead(LeadEvent::Held(scene.grant()));
        scene
    }

    fn running() -> Self {
        let mut scene = Self::ordered();
        scene.answer(Answer::Accepted { until: scene.grant().until });
        scene.answer(Answer::Started { pid: 7 });
        scene
    }

    fn stopping() -> Self {
        let mut scene = Self::running();
        scene.lead(LeadEvent::StoppedFor(Why::Resigned));
        scene
    }

    fn restarting() -> Self {
        let mut scene = Self::running();
        scene.exited(false);
        scene.answer(Answer::Gone);
        scene
    }

    fn orphaned() -> Self {
        let mut scene = Self::running();
        scene.handle(Event::GuardDied);
        scene
    }

    fn grant(&self) -> Grant {
        Grant { term: 5, seen: 5, next_seq: 3, until: self.now + Duration::from_secs(10) }
    }

    fn lead(&mut self, event: LeadEvent) {
        self.supervisor.handle_lead(self.now, event);
    }

    fn answer(&mut self, answer: Answer) {
        self.supervisor.handle_answer(self.now, answer);
    }

    fn handle(&mut self, event: Event) {
        self.supervisor.handle(self.now, event);
    }

    fn exited(&mut self, left: bool) {
        self.answer(Answer::Exited { code: Some(STATUS), signal: None, left, foreground: false });
    }
}

fn shown(action: Action) -> Option<String> {
    Some(match action {
        Action::DieOf { .. } => "die of the signal".to_owned(),
        Action::Exit(ending) => format!("exit: {ending:?}"),
        Action::GiveUpWaiting => "have the candidate wait no more".to_owned(),
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
        Action::RunEnded(_) => "ask the node what follows".to_owned(),
        Action::StartGuard => "start a guard".to_owned(),
        Action::Tell(event) => match event {
            LocalEvent::Continued => "tell: continued".to_owned(),
            LocalEvent::Fenced { .. } => "tell: fenced".to_owned(),
            LocalEvent::HandOver { .. } | LocalEvent::SpreadBy(_) => panic!("the spread's: {event:?}"),
            LocalEvent::JobChanged(job) => match job.state {
                JobState::Restarting => "tell: restarting",
                JobState::Running => "tell: running",
                JobState::Starting => "tell: starting",
                JobState::Stopping => "tell: stopping",
            }
            .to_owned(),
            LocalEvent::NothingLeft(end) => format!("tell: nothing is left ({})", end.why),
            LocalEvent::StandDown { why, .. } => format!("tell: stand down ({why})"),
        },
    })
}
