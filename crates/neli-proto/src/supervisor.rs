//! Decides what is done to the job and when (start it, ask it to stop, kill it), and the exit status.
//!
//! Its inputs are the guard's answers and the candidate's decisions. It does not read the journal: the candidate decides whether the job
//! may run, and the guard enforces the deadline.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem;
use core::time::Duration;

use crate::action::EndedRun;
use crate::guard::{Grant, Order, SeenEnd};
use crate::health::{Health, HealthPolicy};
use crate::job::CommandEnd;
use crate::note::Note;
use crate::record::{JobState, Offset, Why};
use crate::restart::{FailedRuns, RestartPolicy, doubled};
use crate::time::{Span, Time};
use terminal::{SIGKILL, Terminal};
use watch::Watch;

pub use crate::action::{Action, Ending, Lost};
pub use crate::job::{Foreground, JobReport, JobStatus};
pub use crate::note::Loss;
pub use wanted::{JobEnd, JobIs, Local, NothingLeft, Wanted, WantedState};

mod running;
mod terminal;
mod wanted;
mod watch;

/// The supervisor of one job.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Supervisor {
    policy: Policy,
    /// The guard must answer this long before a deadline; otherwise it is killed.
    kill_margin: Duration,
    /// What the candidate wants of the job; `None` while it holds no term.
    wanted: Option<Wanted>,
    job: Job,
    /// The job's state for the beats.
    report: JobReport,
    /// The right to run the job that is alive, or was last; `None` before the first term.
    grant: Option<Grant>,
    watch: Option<Watch>,
    next_guard: NextGuard,
    run: Run,
    failed_runs: FailedRuns,
    /// The number that the node has given to the run.
    run_id: u32,
    /// The window of the next runs.
    window: Option<Span>,
    /// The attempt of the next run.
    next_attempt: u32,
    /// Whether the node decides what follows, before each run of the term and after each run that ended by itself.
    holds: bool,
    /// Why the term's lease is over, if its guard fenced the job or died.
    fenced: Option<Why>,
    /// Why the last term has ended here, if it has, and the end of its last process, if one was alive after the guard's deadline.
    over: Option<(Why, Option<SeenEnd>)>,
    /// The signal that stopped `neli-run`.
    stop: Option<Stop>,
    /// Whether `neli-run` must be suspended once it holds nothing.
    is_suspended: bool,
    /// Whether a claim or a delivery, or a hook, is to be waited for no more.
    gives_up: bool,
    health: Option<Health>,
    terminal: Terminal,
    actions: VecDeque<Action>,
}

/// The processes that may be alive.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum Job {
    /// None, and none may be started.
    #[default]
    None,
    /// A run was ordered. It is not known yet whether it is alive.
    Ordered,
    /// None. The next run of the term (or its first) is due at this time, and the lead is kept.
    Restarting { at: Time },
    /// None. The node decides what follows: another run, or the end of the term. A first run begins at `settles_until` at the earliest.
    Held { settles_until: Option<Time> },
    /// Its main process is alive.
    Running { pid: u32, since: Time },
    /// The job was asked to stop, or only processes that it left behind are alive. SIGKILL follows at `kill_at`,
    /// unless it was sent.
    Stopping { why: Why, main: Option<(u32, Time)>, kill_at: Option<Time> },
    /// The guard is dead, and the processes that it left are being killed.
    Orphaned,
}

impl Job {
    /// Whether no process of a run is alive, or may be alive soon.
    const fn is_between_runs(&self) -> bool {
        matches!(self, Self::Held { .. } | Self::None | Self::Restarting { .. })
    }
}

/// The present or the last run.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
struct Run {
    /// Its number in this term, from 1 on.
    number: u32,
    /// `NELI_ATTEMPT`: 1, and 1 more for each failed run before it.
    attempt: u32,
    /// Whether it was ever alive, as far as it is known.
    started: bool,
    /// When COMMAND must have been executed; `None` once that is known.
    executes_by: Option<Time>,
    /// Whether COMMAND was not executed by then.
    exec_hangs: bool,
    /// How its main process ended.
    status: Option<JobStatus>,
    /// How long the main process was alive.
    ran: Duration,
    /// When it was first asked to stop, or killed, by an order.
    asked_at: Option<Time>,
    /// Whether it ended by itself, before it was asked to, in a term that is held.
    own_end: OwnEnd,
    /// How its job ends if the lead is lost: whether SIGKILL was needed, and the last reason for it.
    killed: Lost,
    /// Whether it was logged that its main process is stopped.
    said_stopped: bool,
    /// When to ask the processes to stop that its main process has left, and that may be about to end.
    ask_rest_at: Option<Time>,
}

/// Whether a run of a held term has ended by itself.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
enum OwnEnd {
    #[default]
    No,
    /// Its main process has, and left others.
    HasLeft,
    /// Its main process has, and left none.
    Alone,
    /// It is over: nothing of it is left.
    Over,
}

impl OwnEnd {
    const fn of_main(by_itself: bool, left: bool) -> Self {
        match (by_itself, left) {
            (false, _) => Self::No,
            (true, true) => Self::HasLeft,
            (true, false) => Self::Alone,
        }
    }
}

impl Run {
    fn note_kill(&mut self, killed: Lost) {
        self.killed = self.killed.max(killed);
    }
}

/// When a dead guard is replaced: at once, but with a growing delay if guards die repeatedly. And whether a claim would be in vain meanwhile.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
struct NextGuard {
    /// The number of guards in a row that died soon after their start, or could not be started.
    deaths: u32,
    /// When the last of them was started.
    started: Option<Time>,
    presence: Presence,
    /// Whether the guard has said that it is set up.
    is_ready: bool,
    /// Whether its predecessor died before it had said that, so that this one may die in the same way.
    is_doubtful: bool,
    /// Whether the guard did not answer and was sent SIGKILL, which may stay pending for long.
    is_killed: bool,
}

/// Whether there is a guard.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
enum Presence {
    #[default]
    There,
    /// None was needed: one of many roles has a guard only while it is claimed or led.
    Unneeded,
    /// The last one is dead, and the next one is started at this time.
    Due(Time),
}

impl NextGuard {
    /// A guard that has lived for this long does not count with those before it.
    const LONG_LIFE: Duration = Duration::from_secs(10);
    /// The delay before the third guard; doubled for each that follows, up to the maximum.
    const FIRST_DELAY: Duration = Duration::from_millis(100);
    const LONGEST_DELAY: Duration = Duration::from_secs(5);

    fn died(&mut self, now: Time) {
        self.start_again(now);
        (self.is_doubtful, self.is_ready, self.is_killed) = (!self.is_ready, false, false);
    }

    /// It could not be started for now. The next one may fail as well until it is set up.
    fn not_started(&mut self, now: Time) {
        self.start_again(now);
        (self.is_doubtful, self.is_ready) = (true, false);
    }

    fn start_again(&mut self, now: Time) {
        if self.started.is_none_or(|at| now.since(at) >= Self::LONG_LIFE) {
            self.deaths = 0;
        }
        self.presence = Presence::Due(now + doubled(Self::FIRST_DELAY, self.deaths, Self::LONGEST_DELAY));
        self.deaths = self.deaths.saturating_add(1);
    }

    fn is_set_up(&mut self) {
        (self.is_doubtful, self.is_ready) = (false, true);
    }
}

/// A signal that stopped `neli-run`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Stop {
    signal: i32,
    at: Time,
    /// Whether it came while a run was alive, or between two runs.
    amid_runs: bool,
}

impl Supervisor {
    /// A supervisor without a job. The guard must answer `kill_margin` before a deadline; otherwise it is killed.
    pub fn new(policy: Policy, kill_margin: Duration) -> Self {
        Self {
            health: policy.health.clone().map(Health::new),
            policy,
            kill_margin,
            report: JobReport { attempt: 1, ..JobReport::default() },
            next_attempt: 1,
            ..Self::default()
        }
    }

    /// The next action.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Whether a claim, a delivery or a hook is to be waited for no more, since there was a second signal to stop; returned once.
    pub fn take_give_up(&mut self) -> bool {
        mem::take(&mut self.gives_up)
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless something happens before.
    pub fn poll_timeout(&self) -> Option<Time> {
        let due_times = [
            self.ask_rest_due(),
            self.exec_hangs_at(),
            self.failed_runs_forgotten_at(),
            self.watch.and_then(|watch| watch.due(self.kill_margin)),
            self.health.as_ref().and_then(Health::poll_timeout),
            self.look_due(),
            self.next_guard_due(),
            self.setup_hangs_at(),
            self.run_due(),
        ];
        due_times.into_iter().flatten().min()
    }

    /// Performs what is due. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        let margin = self.kill_margin;
        if self.watch.as_mut().is_some_and(|watch| watch.is_over(now, margin)) {
            self.guard_hangs();
        }
        if self.failed_runs_forgotten_at().is_some_and(|due| now >= due) {
            self.failed_runs.forget();
        }
        self.ask_rest_if_due(now);
        self.note_exec_that_hangs(now);
        self.look_if_due(now);
        self.start_guard_if_due(now);
        if self.setup_hangs_at().is_some_and(|due| now >= due) {
            self.next_guard.started = Some(now);
            self.guard_hangs();
        }
        self.start_run_if_due(now);
        self.health.iter_mut().for_each(|health| health.handle_timeout(now));
        self.look_after_health(now);
    }

    /// Handles an event of the job, of its guard's process or of `neli-run`. The guard's answers have a separate function.
    pub fn handle(&mut self, now: Time, event: Event) {
        match event {
            Event::ForegroundSeen(foreground) => self.foreground_seen(now, foreground),
            Event::GuardDied => {
                self.stop_looking();
                self.guard_died(now);
            }
            Event::GuardNotStarted { again } => self.guard_not_started(now, again),
            Event::GuardStuck { pids, are_all } => self.stuck(Note::GuardStuck { pids, are_all }),
            Event::HasGuard(true) => self.guard_started(now),
            Event::HasGuard(false) => {
                self.next_guard = NextGuard { presence: Presence::Unneeded, ..NextGuard::default() }
            }
            Event::HealthEnded { id, end, last_line } => {
                if let Some(health) = &mut self.health {
                    health.command_ended(now, id, end, last_line);
                }
            }
            Event::JobStopped { signal, foreground, continuable } => {
                self.job_stopped(now, signal, foreground, continuable);
            }
            Event::OrphansGone(end) => self.gone(now, Some(end)),
            Event::OrphansStuck { pids } => self.stuck(Note::Stuck { pids }),
            Event::SuspendSignal { continuable } => self.suspend(continuable),
        }
        self.look_after_health(now);
    }

    /// The term of the job that is alive, or was last; `None` before the first job.
    pub fn term(&self) -> Option<Offset> {
        self.grant.map(|grant| grant.term)
    }

    /// The term in notes about the job, of which there is none before the first term.
    fn noted_term(&self) -> Offset {
        self.term().unwrap_or(-1)
    }

    /// The last run of a held term, with the number that the node has given to it, if it ended by itself and nothing of it is left.
    pub fn run_end(&self) -> Option<(u32, EndedRun)> {
        let ended = self.ended_run(true).filter(|_| self.run.own_end == OwnEnd::Over)?;
        Some((self.run_id, ended))
    }

    /// The attempt of the present or the last run in its term. Before the first one it is 1, and also before the first of a schedule.
    pub(crate) fn attempt(&self) -> u32 {
        self.run.attempt.max(1)
    }

    /// The present or the last run, if its main process has ended or could not be started.
    pub(crate) fn ended_run(&self, by_itself: bool) -> Option<EndedRun> {
        let Run { number, attempt, started, ran, status, .. } = self.run;
        Some(EndedRun { number, attempt, status: status?, started, ran, by_itself, window: self.window })
    }

    /// Whether a process of the run of this number may be alive.
    pub(crate) fn may_be_alive(&self, number: u32) -> bool {
        self.run.number == number && !self.job.is_between_runs()
    }

    /// The state of the job.
    pub const fn job(&self) -> &Job {
        &self.job
    }

    /// Whether a process of the job is alive, or may be alive soon.
    pub(crate) fn job_may_be_alive(&self) -> bool {
        self.job != Job::None
    }

    // ---- actions ------------------------------------------------------------------------------------------------

    fn set_report(&mut self, state: JobState, pid: Option<u32>, since: Time) {
        self.report = JobReport { state, pid, attempt: self.attempt(), since };
    }

    fn order(&mut self, order: Order) {
        self.actions.push_back(Action::Order(order));
    }

    fn note(&mut self, note: Note) {
        self.actions.push_back(Action::Note(note));
    }
}

// ---- the events of a job, of its guard's process and of `neli-run` -------------------------------------------------

/// An event of the job, of its guard's process or of `neli-run`. The guard's answers are handled by
/// [`handle_answer`](Supervisor::handle_answer).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum Event {
    /// The answer to [`Action::LookAtForeground`].
    ForegroundSeen(Foreground),
    /// The guard is dead: the kernel says so, even if its tracer keeps this process from waiting for it. Its tree belongs to this process
    /// now.
    GuardDied,
    /// No guard could be started. `again`: only for now, so that another attempt follows; otherwise there will be none.
    GuardNotStarted { again: bool },
    /// Whether one of many roles has a guard from now on: it was started, or none is needed.
    HasGuard(bool),
    /// The health command of this number has ended. The last line of its output may be empty.
    HealthEnded { id: u32, end: CommandEnd, last_line: Box<str> },
    /// The guard did not answer, was sent SIGKILL a lease ago, and has not ended. These processes of its job are alive, as far as they can be
    /// seen; `are_all`: whether all processes could be looked at.
    GuardStuck { pids: Vec<u32>, are_all: bool },
    /// The job's main process was stopped by a signal, while this group had the terminal's foreground. `continuable`: whether `neli-run` may stop
    /// itself, because a parent can continue it.
    JobStopped { signal: i32, foreground: Foreground, continuable: bool },
    /// No process of the dead guard's tree is left.
    OrphansGone(SeenEnd),
    /// These processes are alive one lease after SIGKILL.
    OrphansStuck { pids: Vec<u32> },
    /// `neli-run` received TSTP, and a parent can continue it (`continuable`) or not.
    SuspendSignal { continuable: bool },
}

/// Why a candidate exits.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Departure {
    /// The election was ended.
    Ended,
    /// The candidate was told to stop.
    Left,
    /// The candidate has not led within `--wait`.
    WaitedEnough,
}

// ---- the policy for a job ------------------------------------------------------------------------------------------

/// The policy for a job.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Policy {
    /// The delay from winning the lead to the first run.
    pub settle: Duration,
    /// The policy for stopping it.
    pub stop: StopPolicy,
    /// Whether and when it is run again.
    pub restart: RestartPolicy,
    /// The action after a loss of the lead.
    pub on_loss: OnLoss,
    /// The policy for its health checks, if there are any.
    pub health: Option<HealthPolicy>,
}

/// `--on-loss`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum OnLoss {
    /// The candidate exits.
    Exit,
    /// The candidate stands by, and runs the job again when it leads.
    #[default]
    Standby,
}

/// The policy for stopping a job.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct StopPolicy {
    /// The number of the signal that asks the job to stop; `None` lets its run finish.
    pub signal: Option<i32>,
    /// The time from that signal, or from the stop, to SIGKILL; zero means SIGKILL at once, without a stop signal.
    pub timeout: Duration,
}

// ---- the exit status: of several causes, the first one that applies (docs/options.md, Exit statuses) ---------------

impl Supervisor {
    /// Handles that the candidate exits.
    pub fn exit(&mut self, departure: Departure) {
        let ending = match (departure, self.stop) {
            (Departure::Ended, _) => Ending::Ended,
            (Departure::Left | Departure::WaitedEnough, Some(stop)) => self.stopped(stop),
            (Departure::WaitedEnough, None) => Ending::WaitedEnough,
            (Departure::Left, None) => self.left(),
        };
        let ending = self.die_of_the_terminals_signal(ending);
        self.actions.push_back(Action::Exit(ending));
    }

    /// The status of the run that was alive when the signal came, or of the last one if it came between two.
    fn stopped(&self, stop: Stop) -> Ending {
        // The main process's own end takes precedence, since perhaps only processes that it had left were killed. A dead guard reports no
        // status.
        let was_killed = self.run.started && self.run.killed != Lost::Stopped;
        let status = self.run.status.or(was_killed.then_some(JobStatus::Signaled(SIGKILL)));
        status.filter(|_| stop.amid_runs).map_or(Ending::StoppedBy(stop.signal), Ending::Job)
    }

    /// The signal that has stopped this process.
    pub(crate) fn signal_of_stop(&self) -> Option<i32> {
        self.stop.map(|stop| stop.signal)
    }

    fn left(&self) -> Ending {
        match self.over.map(|(why, _)| why) {
            Some(why) if why.is_loss() => Ending::Lost(if self.run.started { self.run.killed } else { Lost::Stopped }),
            Some(Why::RestartLimit) => Ending::RestartLimit,
            Some(_) | None => self.run.status.map_or(Ending::Ended, Ending::Job),
        }
    }

    /// Whether this candidate exits when a term ends for this reason.
    fn leaves_after(&self, why: Why) -> bool {
        let by_itself = matches!(why, Why::Exited | Why::RestartLimit);
        self.stop.is_some() || by_itself || (why.is_loss() && self.policy.on_loss == OnLoss::Exit)
    }
}
