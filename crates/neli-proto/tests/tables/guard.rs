//! The guard's tables: its actions in each state of the run, and in each state of its supervisor.

use std::time::Duration;

use neli_proto::guard::{
    Action, Answer, CommandKind, Event, Grant, Guard, KillMethod, KillRound, Order, Remains, RunPhase, Step,
    SupervisorLife,
};
use neli_proto::job::{CommandEnd, JobStatus};
use neli_proto::time::Time;

use crate::{Happening, State, Subject, drawn};

const TERM: i32 = 15;
const USR1: i32 = 10;
const CONT: i32 = 18;
const MARGIN: Duration = Duration::from_millis(20);

/// A guard with a granted term.
struct Fixture {
    guard: Guard,
    now: Time,
    /// Its group can't be killed then, so "kill" is to the known alone.
    has_main_ended: bool,
}

/// The same guard in the table of its supervisor's states.
struct OfSupervisor(Fixture);

/// The states of the run, each with a function that reaches it.
const STATES: [State<Fixture>; 5] = [
    ("no run", Fixture::granted),
    ("starting", Fixture::starting),
    ("running", Fixture::running),
    ("others left", Fixture::main_ended),
    ("killing", Fixture::killing),
];

/// The events.
const EVENTS: [Happening<Fixture>; 29] = [
    ("deadline", |fixture| fixture.pass(Duration::from_secs(10))),
    ("`Spawn`, granted", |fixture| {
        fixture.order(Order::Spawn { grant: fixture.grant(), run: 2, attempt: 2, window: None });
    }),
    ("`Spawn` of an earlier term", |fixture| {
        let grant = Grant { term: 4, ..fixture.grant() };
        fixture.order(Order::Spawn { grant, run: 2, attempt: 2, window: None });
    }),
    ("`Lease`, granted", |fixture| fixture.order(Order::Lease(fixture.grant()))),
    ("`Lease` with an earlier end", |fixture| {
        fixture.order(Order::Lease(Grant { until: fixture.now, ..fixture.grant() }));
    }),
    ("`Lease` of another term", |fixture| fixture.order(Order::Lease(Grant { term: 9, ..fixture.grant() }))),
    ("`Stop`", Fixture::stop),
    ("stop timeout", |fixture| {
        fixture.stop();
        fixture.actions();
        fixture.pass(Duration::from_secs(1));
    }),
    ("the next SIGKILL is due", |fixture| fixture.pass(Duration::from_millis(2))),
    ("`Kill`", |fixture| fixture.order(Order::Kill)),
    ("`Over`", |fixture| fixture.order(Order::Over { term: 5 })),
    ("`Released`", |fixture| fixture.order(Order::Released { term: 5 })),
    ("`Signal`", |fixture| {
        fixture.order(Order::Signal { signal: USR1, to: neli_proto::guard::Target::Group });
    }),
    ("`HandOn`", |fixture| fixture.order(Order::HandOn)),
    ("`TakeBack`", |fixture| fixture.order(Order::TakeBack)),
    ("`Command`", Fixture::command),
    ("`Command`, again", |fixture| {
        fixture.command();
        fixture.actions();
        fixture.command();
    }),
    ("`Command` 50 ms before the deadline", |fixture| {
        fixture.now = fixture.now + Duration::from_millis(9_950);
        fixture.command();
    }),
    ("a command that runs has ended", |fixture| {
        fixture.command();
        fixture.actions();
        fixture.handle(Event::CommandEnded { kind: CommandKind::Health, end: CommandEnd::Exited(0) });
    }),
    ("the job has executed", |fixture| fixture.handle(Event::Executed)),
    ("it can't execute", |fixture| fixture.handle(Event::NotStarted { errno: 2, at: Step::Exec })),
    ("it can't be forked", |fixture| fixture.handle(Event::NotStarted { errno: 11, at: Step::Fork })),
    ("the main process ended", Fixture::end_main),
    ("the main process stopped", |fixture| fixture.handle(Event::MainStopped { signal: 20 })),
    ("waited: children are left", |fixture| fixture.handle(Event::Waited(Remains::seen(true, || false)))),
    ("waited: others are left", |fixture| fixture.handle(Event::Waited(Remains::seen(false, || true)))),
    ("waited: nothing is left", Fixture::nothing_left),
    ("the supervisor's socket closed", |fixture| fixture.handle(Event::SocketClosed)),
    ("the supervisor died", |fixture| fixture.handle(Event::SupervisorDied)),
];

/// The states of the supervisor, as far as the guard knows them.
const LIVES: [State<OfSupervisor>; 4] = [
    ("alive", || OfSupervisor(Fixture::running())),
    ("silent", || OfSupervisor(Fixture::running().after(Event::SocketClosed))),
    ("dead", || OfSupervisor(Fixture::running().after(Event::SupervisorDied))),
    ("dead and read", || OfSupervisor(Fixture::running().after(Event::SupervisorDied).after(Event::AllRead))),
];

/// The events.
const OF_SUPERVISOR: [Happening<OfSupervisor>; 5] = [
    ("its socket closed", |of| of.0.handle(Event::SocketClosed)),
    ("it died", |of| of.0.handle(Event::SupervisorDied)),
    ("all its orders were read", |of| of.0.handle(Event::AllRead)),
    ("the job is gone, the term not released", |of| of.0.nothing_left()),
    ("the job is gone, the term released", |of| {
        of.0.order(Order::Released { term: 5 });
        of.actions();
        of.0.nothing_left();
    }),
];

/// The table of the run's states.
pub(crate) fn table() -> String {
    drawn(&STATES, &EVENTS)
}

/// The table of the supervisor's states.
pub(crate) fn table_of_supervisor() -> String {
    drawn(&LIVES, &OF_SUPERVISOR)
}

impl Subject for Fixture {
    fn state(&self) -> &'static str {
        match self.guard.run_phase() {
            None => "no run",
            Some((_, true)) => "killing",
            Some((RunPhase::MainEnded, _)) => "others left",
            Some((RunPhase::Running, _)) => "running",
            Some((RunPhase::Starting, _)) => "starting",
        }
    }

    fn actions(&mut self) -> Vec<String> {
        let actions = std::iter::from_fn(|| self.guard.poll_action()).filter_map(shown);
        let is_kill = |action: &str| self.has_main_ended && action == "kill the known";
        actions.map(|action| if is_kill(&action) { "kill".to_owned() } else { action }).collect()
    }
}

impl Subject for OfSupervisor {
    fn state(&self) -> &'static str {
        match self.0.guard.supervisor_life() {
            SupervisorLife::Closed => "silent",
            SupervisorLife::Dead => "dead and read",
            SupervisorLife::DeadUnread => "dead",
            SupervisorLife::Open => "alive",
        }
    }

    fn actions(&mut self) -> Vec<String> {
        self.0.actions()
    }
}

impl Fixture {
    /// A guard whose run is over, under a term that continues.
    fn granted() -> Self {
        let mut fixture = Self::running();
        fixture.nothing_left();
        fixture
    }

    fn starting() -> Self {
        let guard = Guard::new(Duration::from_secs(5)).with_kill_margin(MARGIN);
        let mut fixture = Self { guard, now: Time::from_nanos(1_000_000_000_000), has_main_ended: false };
        fixture.order(Order::Spawn { grant: fixture.grant(), run: 1, attempt: 1, window: None });
        fixture
    }

    fn running() -> Self {
        Self::starting().after(Event::Executed)
    }

    fn main_ended() -> Self {
        let mut fixture = Self::running();
        fixture.end_main();
        fixture
    }

    fn killing() -> Self {
        Self::running()
            .after(Event::Ordered(Order::Kill))
            .after(Event::Killed(KillRound { has_seen_all: true, ..KillRound::default() }))
    }

    fn after(mut self, event: Event) -> Self {
        self.handle(event);
        self
    }

    fn grant(&self) -> Grant {
        Grant { term: 5, seen: 5, next_seq: 3, until: self.now + Duration::from_secs(10) }
    }

    fn handle(&mut self, event: Event) {
        self.guard.handle(self.now, event);
    }

    fn order(&mut self, order: Order) {
        self.handle(Event::Ordered(order));
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.guard.handle_timeout(self.now);
    }

    fn stop(&mut self) {
        self.order(Order::Stop { signal: Some(TERM), kill_at: self.now + Duration::from_secs(1) });
    }

    fn command(&mut self) {
        let kill_at = self.now + Duration::from_secs(1);
        self.order(Order::Command { kind: CommandKind::Health, id: 1, kill_at });
    }

    fn end_main(&mut self) {
        self.has_main_ended = true;
        self.handle(Event::MainEnded { status: JobStatus::Exited(3) });
    }

    fn nothing_left(&mut self) {
        self.handle(Event::Waited(Remains::seen(false, || false)));
    }
}

fn shown(action: Action) -> Option<String> {
    Some(match action {
        Action::Answer(answer) => answered(&answer).to_owned(),
        Action::AnswerExited { .. } => "`Exited`".to_owned(),
        Action::AnswerLeftBehind { .. } => "`LeftBehind`".to_owned(),
        Action::AnswerStarted => "`Started`".to_owned(),
        Action::AnswerStuck => "`Stuck`".to_owned(),
        // These are preparations for another run, and for a job that reads its lease.
        Action::BeginAnew | Action::ShowDeadline { .. } => return None,
        Action::End => "end".to_owned(),
        Action::HandOn => "hand on".to_owned(),
        Action::Kill(methods) => {
            let all = methods.contains(&KillMethod::Found);
            if all { "kill all, by every means" } else { "kill the known" }.to_owned()
        }
        Action::KillCommand(_) => "kill the command".to_owned(),
        Action::KillMainGroup => "kill the main group".to_owned(),
        Action::Learn { .. } => "learn the tree".to_owned(),
        Action::Release { .. } => "release".to_owned(),
        Action::RemoveCgroup => "remove the control group".to_owned(),
        Action::ShowEnd => "end lease".to_owned(),
        Action::Signal { signal, .. } => name(signal).to_owned(),
        Action::SignalRest { signal, .. } => format!("{} to those that are left", name(signal)),
        Action::Start { .. } => "start".to_owned(),
        Action::StartCommand(_) => "start the command".to_owned(),
        Action::TakeBack => "take back".to_owned(),
    })
}

/// The signal's name.
fn name(signal: i32) -> &'static str {
    match signal {
        CONT => "SIGCONT",
        TERM => "SIGTERM",
        USR1 => "SIGUSR1",
        other => panic!("signal {other} is not sent"),
    }
}

const fn answered(answer: &Answer) -> &'static str {
    match answer {
        Answer::Accepted { .. } => "`Accepted`",
        Answer::CommandEnded { end: CommandEnd::Abandoned, .. } => "`CommandEnded` (abandoned)",
        Answer::CommandEnded { end: CommandEnd::NoTime, .. } => "`CommandEnded` (no time)",
        Answer::CommandEnded { end: CommandEnd::TimedOut, .. } => "`CommandEnded` (timed out)",
        Answer::CommandEnded { .. } => "`CommandEnded`",
        Answer::CommandsLeft => "`CommandsLeft`",
        Answer::Exited { .. } => "`Exited`",
        Answer::Extended { .. } => "`Extended`",
        Answer::Fenced { .. } => "`Fenced`",
        Answer::Gone => "`Gone`",
        Answer::Killed => "`Killed`",
        Answer::LeftBehind { .. } => "`LeftBehind`",
        Answer::NoRun { .. } => "`NoRun`",
        Answer::NotStarted { .. } => "`NotStarted`",
        Answer::Ready => "`Ready`",
        Answer::Started { .. } => "`Started`",
        Answer::StartedUnseen { .. } => "`StartedUnseen`",
        Answer::StillKilling => "`StillKilling`",
        Answer::Stopped { .. } => "`Stopped`",
        Answer::Stuck { .. } => "`Stuck`",
    }
}
