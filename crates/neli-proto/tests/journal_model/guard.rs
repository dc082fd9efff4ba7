//! The guard's process: the real guard object, and around it the job's processes, the orders in the socket, and the faults. Only the
//! guard starts the job, and it kills the job at the deadline.

use std::collections::VecDeque;
use std::time::Duration;

use neli_proto::guard::{self, Action, Answer, CommandKind, Event, Grant, KillMethod, KillRound, Order, Remains};
use neli_proto::job::{CommandEnd, JobStatus};
use neli_proto::record::Offset;
use neli_proto::time::Time;

use crate::flaws::{WorldFlaw, is_flawed};
use crate::setup::Setup;

const SIGKILL: i32 = 9;

/// The guard's process, its job, and the orders that it has not read.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Guard {
    pub(crate) life: Life,
    pub(crate) orders: VecDeque<Order>,
    pub(crate) job: Option<Job>,
    logic: guard::Guard,
    /// Whether it has noticed that the supervisor is dead.
    knows_death: bool,
    jobs: Jobs,
}

/// The parameters of the guard and its jobs.
#[derive(Clone, Copy, Debug, Hash)]
struct Jobs {
    /// Processes that exist this long after SIGKILL count as stuck. That does not happen in the model.
    patience: Duration,
    kill_margin: Duration,
    have_children: bool,
    children_are_elsewhere: bool,
    have_commands: bool,
}

/// The state of a process.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) enum Life {
    /// It runs when an event or a timeout is due.
    #[default]
    Awake,
    /// It is stopped and does nothing.
    Asleep,
    /// It is dead and was not waited for yet. Its end of the socket is closed, but its children have not been re-parented.
    Dying,
    /// It is dead.
    Dead,
}

/// The job's processes: which are alive, and which ends the guard has not waited for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "processes that live and end each for itself")]
pub(crate) struct Job {
    pub(crate) term: Offset,
    pub(crate) main: bool,
    /// A daemon that outlives the main process.
    pub(crate) child: bool,
    /// A command of the job, or the processes that the command has left.
    pub(crate) command: bool,
    /// Whether it got the stop signal, and may end.
    pub(crate) is_asked: bool,
    /// The end of the main process, if it was not waited for.
    main_ended: Option<MainEnd>,
    /// Whether the command has ended and was not waited for.
    command_ended: bool,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct MainEnd {
    /// The exit status, if it ended by itself.
    status: Option<u8>,
    /// Whether another process outlived it, at least for a moment.
    left: bool,
}

/// The guard's output: answers, and possibly a release.
#[derive(Default)]
pub(crate) struct GuardOutput {
    pub(crate) answers: Vec<Answer>,
    /// The term that it releases after the supervisor's death.
    pub(crate) release: Option<(Grant, Option<Duration>)>,
}

impl Job {
    fn started(term: Offset, jobs: Jobs) -> Self {
        let (main, child) = (true, jobs.have_children);
        Self { term, main, child, command: false, is_asked: false, main_ended: None, command_ended: false }
    }

    const fn has_ended_child(&self) -> bool {
        self.main_ended.is_some() || self.command_ended
    }

    /// Whether one of its processes is alive.
    pub(crate) fn is_alive(&self) -> bool {
        self.main || self.child || self.command
    }

    /// Sends SIGKILL to the main process.
    fn kill_main(&mut self) {
        if self.main {
            self.main = false;
            self.main_ended = Some(MainEnd { status: None, left: self.child });
        }
    }

    /// Sends SIGKILL to all processes except the main process; to the daemon if it `is_reached`.
    fn kill_rest(&mut self, is_reached: bool) {
        self.child &= !is_reached;
        self.kill_command();
    }

    fn kill_command(&mut self) {
        self.command_ended |= self.command;
        self.command = false;
    }
}

impl Guard {
    /// A guard that has just started.
    pub(crate) fn new(patience: Duration, kill_margin: Duration, setup: &Setup) -> Self {
        let Setup { jobs_have_children, children_are_elsewhere, jobs_have_commands, .. } = *setup;
        let (have_children, have_commands) = (jobs_have_children, jobs_have_commands);
        Self::of(Jobs { patience, kill_margin, have_children, children_are_elsewhere, have_commands })
    }

    /// A new guard, which has none of the present one's orders.
    pub(crate) fn anew(&self) -> Self {
        Self::of(self.jobs)
    }

    /// How long before the lease's end its deadline is.
    pub(crate) const fn kill_margin(&self) -> Duration {
        self.jobs.kill_margin
    }

    fn of(jobs: Jobs) -> Self {
        let logic = guard::Guard::new(jobs.patience).with_kill_margin(jobs.kill_margin);
        Self { life: Life::Awake, orders: VecDeque::new(), job: None, logic, knows_death: false, jobs }
    }

    /// The term of the job, if one of its processes is alive.
    pub(crate) fn living_term(&self) -> Option<Offset> {
        self.job.filter(Job::is_alive).map(|job| job.term)
    }

    /// The next time at which it acts without an event. `late` adds its scheduling delay.
    pub(crate) fn due(&self, late: Duration) -> Option<Time> {
        self.logic.poll_timeout().filter(|_| self.life == Life::Awake).map(|due| due + late)
    }

    /// Whether an event is waiting, that is, whether a child or the supervisor has ended.
    pub(crate) fn has_news(&self, supervisor_is_dead: bool) -> bool {
        let of_death = supervisor_is_dead && (!self.knows_death || self.orders.is_empty());
        of_death || self.job.is_some_and(|job| job.has_ended_child())
    }

    /// Whether it runs and has read all orders. In this model it performs each order at once.
    pub(crate) fn has_answered_all(&self) -> bool {
        self.life == Life::Awake && self.orders.is_empty()
    }

    /// Handles what is due, and waits for children that have ended.
    pub(crate) fn act(&mut self, now: Time) -> GuardOutput {
        let mut output = GuardOutput::default();
        self.logic.handle_timeout(now);
        self.finish_turn(now, &mut output);
        output
    }

    /// Waits for children that have ended.
    pub(crate) fn notice(&mut self, now: Time) -> GuardOutput {
        let mut output = GuardOutput::default();
        self.finish_turn(now, &mut output);
        output
    }

    /// Performs an order that is read at `now`.
    pub(crate) fn obey(&mut self, now: Time, order: Order) -> GuardOutput {
        let mut output = GuardOutput::default();
        let mut unchecked = None;
        if let Order::Spawn { grant, .. } = order
            && is_flawed(WorldFlaw::SupervisorSpawns)
        {
            unchecked = Some(grant);
        }
        let (was_running, is_stop) = (self.job.is_some(), matches!(order, Order::Stop { .. }));
        self.handle(now, Event::Ordered(order), &mut output);
        if is_stop && let Some(job) = &mut self.job {
            job.is_asked = true;
        }
        if let Some(grant) = unchecked.filter(|_| self.job.is_none()) {
            let answers = [Answer::Accepted { until: grant.until }, Answer::Started { pid: 1 }];
            output = GuardOutput { answers: answers.into(), release: None };
            self.job = Some(Job::started(grant.term, self.jobs));
        }
        if self.jobs.have_commands && !was_running && self.job.is_some() {
            // As if a stop without a time limit had been ordered with it.
            let kill_at = Time::from_nanos(u64::MAX);
            self.handle(now, Event::Ordered(Order::Command { kind: CommandKind::Lead, id: 1, kill_at }), &mut output);
        }
        self.finish_turn(now, &mut output);
        output
    }

    /// Handles the supervisor's death. The guard notices it before it reads the remaining orders.
    pub(crate) fn outlive_supervisor(&mut self, now: Time) -> GuardOutput {
        let mut output = GuardOutput::default();
        if !self.knows_death {
            self.knows_death = true;
            self.handle(now, Event::SupervisorDied, &mut output);
        }
        if self.orders.is_empty() && self.life == Life::Awake {
            self.handle(now, Event::SocketClosed, &mut output);
        }
        self.finish_turn(now, &mut output);
        output
    }

    /// The main process ends by itself. Processes that it left continue.
    pub(crate) fn main_ends(&mut self, status: u8) {
        if let Some(job) = self.job.as_mut().filter(|job| job.main) {
            job.main = false;
            job.main_ended =
                Some(MainEnd { status: Some(status), left: job.child && !self.jobs.children_are_elsewhere });
        }
    }

    /// The process that the main process left ends.
    pub(crate) fn child_ends(&mut self) {
        self.job.iter_mut().for_each(|job| job.child = false);
    }

    /// Sends SIGKILL to the guard. The job's main process dies with it, but the job's other processes do not.
    pub(crate) fn be_killed(&mut self) {
        self.life = Life::Dying;
        self.orders.clear();
        if let Some(job) = &mut self.job {
            (job.main, job.main_ended, job.command_ended) = (false, None, false);
        }
        self.job = self.job.filter(Job::is_alive);
    }

    /// The end of a turn: waits for children that have ended, and reports whether some are left.
    fn finish_turn(&mut self, now: Time, output: &mut GuardOutput) {
        self.perform(now, output);
        loop {
            let Some(job) = &mut self.job else { return };
            if std::mem::take(&mut job.command_ended) {
                let (kind, end) = (CommandKind::Lead, CommandEnd::Signaled(SIGKILL));
                self.handle(now, Event::CommandEnded { kind, end }, output);
            } else if let Some(end) = job.main_ended {
                let status = end.status.map_or(JobStatus::Signaled(SIGKILL), JobStatus::Exited);
                self.handle(now, Event::MainEnded { status }, output);
                self.job.iter_mut().for_each(|job| job.main_ended = None);
            } else {
                let has_command = job.command && !is_flawed(WorldFlaw::CommandForgotten);
                let is_child = job.child && !self.jobs.children_are_elsewhere;
                let is_elsewhere = job.child && !is_flawed(WorldFlaw::ElsewhereForgotten);
                let remains = Remains::seen(job.main || is_child || has_command, || is_elsewhere);
                self.handle(now, Event::Waited(remains), output);
                if !self.job.is_some_and(|job| job.has_ended_child()) {
                    return;
                }
            }
        }
    }

    fn handle(&mut self, now: Time, event: Event, output: &mut GuardOutput) {
        self.logic.handle(now, event);
        self.perform(now, output);
    }

    /// Performs the guard's actions. Each process that is sent SIGKILL is dead at once.
    fn perform(&mut self, now: Time, output: &mut GuardOutput) {
        while let Some(action) = self.logic.poll_action() {
            match action {
                Action::Answer(answer) => output.add_answer(answer),
                Action::AnswerExited { status, .. } => {
                    let left = self.job.and_then(|job| job.main_ended).is_some_and(|end| end.left);
                    output.add_answer(Answer::Exited { status, ended_at: now, left, foreground: false });
                }
                Action::AnswerStarted => output.add_answer(Answer::Started { pid: 1 }),
                Action::BeginAnew => self.job = self.job.filter(Job::is_alive),
                Action::End => self.life = Life::Dead,
                Action::Kill(methods) => {
                    let is_reached = !self.jobs.children_are_elsewhere || methods.contains(&KillMethod::Found);
                    let lives = methods.contains(&KillMethod::Look) && self.job.is_some_and(|job| job.is_alive());
                    let lived_at = lives.then_some(now);
                    if !methods.is_empty() {
                        self.job.iter_mut().for_each(|job| job.kill_rest(is_reached));
                    }
                    let seen = KillRound { has_seen_all: true, lived_at, ..KillRound::default() };
                    self.logic.handle(now, Event::Killed(seen));
                }
                Action::KillCommand(_) => {
                    if !is_flawed(WorldFlaw::CommandForgotten) {
                        self.job.iter_mut().for_each(Job::kill_command);
                    }
                }
                Action::KillMainGroup => self.job.iter_mut().for_each(Job::kill_main),
                Action::Release { grant, late } => {
                    self.life = Life::Dead;
                    output.release = Some((grant, late));
                }
                Action::Start { term, .. } => {
                    self.job = Some(Job::started(term, self.jobs));
                    self.logic.handle(now, Event::Executed);
                }
                Action::StartCommand(_) => self.job.iter_mut().for_each(|job| job.command = true),
                // The tree is never examined and there is no terminal. Remaining processes may end at any time, asked or not.
                Action::AnswerLeftBehind { .. }
                | Action::AnswerStuck
                | Action::HandOn
                | Action::Learn { .. }
                | Action::RemoveCgroup
                | Action::ShowDeadline { .. }
                | Action::ShowEnd
                | Action::Signal { .. }
                | Action::SignalRest { .. }
                | Action::TakeBack => {}
            }
        }
    }
}

impl GuardOutput {
    fn add_answer(&mut self, answer: Answer) {
        // The command belongs to the model, and is not one of the node's hooks.
        if !matches!(answer, Answer::CommandEnded { .. }) {
            self.answers.push(answer);
        }
    }
}
