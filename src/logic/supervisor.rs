//! What to do to the job, and when: start it, ask it to stop, kill it; and with which status to end.
//!
//! It knows the guard's answers and the candidate's word. It does not know the journal: whether the job may run is the
//! candidate's to say, and until when the guard's to enforce.

use std::collections::VecDeque;
use std::time::Duration;

use super::candidacy::{self, Departure, JobReport, Right};
use super::flaw::{Flaw, broken};
use super::health::{Health, HealthPolicy};
use super::record::{JobState, Offset, Why};
use super::time::Time;

pub use super::supervision::{Action, Ending, Event, JobStatus, Note, Order, StopPolicy};

// Said with its path, so that it is found from wherever this file is compiled: the model compiles it, too.
#[path = "supervisor/ailing.rs"]
mod ailing;

/// Two stop signals nearer than this are one: GNU `timeout` sends two.
const SAME_STOP: Duration = Duration::from_millis(500);

// The numbers of Linux, on every machine that Rust's standard library knows but MIPS and SPARC.
const SIGINT: i32 = 2;
const SIGQUIT: i32 = 3;
const SIGPIPE: i32 = 13;
const SIGTERM: i32 = 15;
const SIGCHLD: i32 = 17;
const SIGCONT: i32 = 18;
const SIGTSTP: i32 = 20;
const SIGTTIN: i32 = 21;
const SIGTTOU: i32 = 22;
const SIGWINCH: i32 = 28;

/// The supervisor of one job.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Supervisor {
    policy: StopPolicy,
    job: Job,
    /// The term of the job that is alive, or was last.
    term: Offset,
    watch: Option<Watch>,
    /// The last run's end, in this process.
    last_status: Option<JobStatus>,
    /// The last run was killed, not asked, or not in time.
    killed: bool,
    /// What stopped `neli-run`.
    stop: Option<Stop>,
    health: Option<Health>,
    actions: VecDeque<Action>,
}

/// What may be alive.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Job {
    /// Nothing, and nothing may be started.
    None,
    /// It has been ordered; whether it is alive is not known yet.
    Ordered,
    /// Its main process is alive.
    Running { pid: u32, since: Time },
    /// It has been asked to stop, or only what it left behind is alive.
    Stopping { why: Why, main: Option<(u32, Time)> },
    /// The guard is dead, and what it left is being killed.
    Orphaned,
}

/// The guard is to answer before this.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Watch {
    /// Orders that await an answer.
    unanswered: u32,
    /// Since when one of them does.
    since: Time,
    /// The last deadline that it answered, or the spawn's.
    answered_until: Time,
}

impl Watch {
    fn ask(&mut self, now: Time) {
        if self.unanswered == 0 {
            self.since = now;
        }
        self.unanswered += 1;
    }
}

/// A signal that stopped `neli-run`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Stop {
    signal: i32,
    at: Time,
    /// Whether a run was alive when it came.
    run_alive: bool,
}

impl Supervisor {
    /// One with no job yet.
    #[must_use]
    pub const fn new(policy: StopPolicy) -> Self {
        Self {
            policy,
            job: Job::None,
            term: -1,
            watch: None,
            last_status: None,
            killed: false,
            stop: None,
            health: None,
            actions: VecDeque::new(),
        }
    }

    /// The same, with a health command.
    #[must_use]
    pub fn looking_after_health(self, policy: HealthPolicy) -> Self {
        Self { health: Some(Health::new(policy)), ..self }
    }

    /// What to do next.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless something happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        [self.guard_due(), self.health_due()].into_iter().flatten().min()
    }

    fn guard_due(&self) -> Option<Time> {
        let watch = self.watch.filter(|watch| watch.unanswered > 0)?;
        // A question that comes so late has half the kill margin for its answer: the tree is dead before the lease's end
        // all the same, which is a whole one after the deadline.
        let margin = self.policy.kill_margin;
        Some((watch.answered_until - margin).max(watch.since + margin / 2))
    }

    /// Does what is due by now. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.guard_due().is_some_and(|due| now >= due) {
            // Its death is reported, and what it leaves is then ours to kill.
            self.watch = None;
            self.actions.push_back(Action::KillGuard);
        }
        self.look_after_health(now);
    }

    /// Takes in what happened.
    pub fn handle(&mut self, now: Time, event: Event) {
        match event {
            Event::Answered { until } => {
                if let Some(watch) = &mut self.watch {
                    watch.unanswered = watch.unanswered.saturating_sub(1);
                    watch.answered_until = watch.answered_until.max(until);
                }
            }
            Event::Departed(departure) => self.exit(departure),
            Event::Extended(right) => self.extended(now, right),
            Event::Fenced { term } => {
                if term == self.term && self.job != Job::None {
                    self.killed = true;
                    self.tell(candidacy::Event::Fenced { why: Why::Fenced });
                    self.nothing_left(Why::Fenced);
                }
            }
            Event::Gone => self.gone(),
            Event::GuardDied => self.guard_died(),
            Event::HealthEnded { id, end, last_line } => self.health_ended(now, id, end, last_line),
            Event::Killed(_) => {
                self.kill(Why::Fenced);
                // No beat asks the guard for a sign of life any more; that nothing is left is its answer to this, and
                // whatever deadline it answered holds no longer.
                if let Some(watch) = &mut self.watch {
                    watch.ask(now);
                    watch.answered_until = watch.answered_until.min(now);
                }
            }
            Event::KilledAtTimeout => {
                self.killed = true;
                if let Job::Stopping { why, .. } = self.job {
                    self.note(Note::JobKilled { why });
                }
            }
            Event::Led(right) => {
                (self.job, self.term) = (Job::Ordered, right.term);
                (self.last_status, self.killed) = (None, false);
                self.watch = Some(Watch { unanswered: 1, since: now, answered_until: right.until });
                self.order(Order::Spawn { right, attempt: 1 });
            }
            Event::MainExited { status, left } => self.main_exited(now, status, left),
            Event::NotStarted { code, error } => {
                self.note(Note::NotStarted { error });
                self.last_status = Some(JobStatus::Exited(code));
                self.nothing_left(Why::Exited);
            }
            Event::PassSignal { signal, to_group } => match self.job {
                Job::Ordered | Job::Running { .. } | Job::Stopping { main: Some(_), .. } => {
                    self.order(Order::Signal { signal, to_group });
                }
                Job::None | Job::Orphaned | Job::Stopping { main: None, .. } => {}
            },
            Event::Started { pid } => self.started(now, pid),
            Event::StopSignal { signal } => self.stop_signal(now, signal),
            Event::StoppedFor(why) => self.stop(now, why),
            Event::Stuck { pids } => {
                self.note(Note::Stuck { pids });
                self.actions.push_back(Action::Exit(Ending::Stuck));
            }
        }
        self.look_after_health(now);
    }

    /// Takes in a signal to `neli-run` (interface.md, Signals).
    pub fn handle_signal(&mut self, now: Time, signal: i32) {
        let stops = signal == self.policy.signal || matches!(signal, SIGINT | SIGTERM);
        match signal {
            SIGCHLD | SIGPIPE | SIGTSTP | SIGTTIN | SIGTTOU => {}
            _ if stops => self.handle(now, Event::StopSignal { signal }),
            SIGQUIT if !self.main_is_alive() => self.handle(now, Event::StopSignal { signal }),
            SIGCONT | SIGQUIT | SIGWINCH => self.handle(now, Event::PassSignal { signal, to_group: true }),
            _ => self.handle(now, Event::PassSignal { signal, to_group: false }),
        }
    }

    /// The term of the job that is alive, or was last.
    #[must_use]
    pub const fn term(&self) -> Offset {
        self.term
    }

    /// Whether a process of the job may be alive.
    #[must_use]
    pub fn job_may_be_alive(&self) -> bool {
        self.job != Job::None
    }

    /// Whether its main process is alive, as far as known.
    #[must_use]
    pub const fn main_is_alive(&self) -> bool {
        match self.job {
            Job::Running { .. } | Job::Stopping { main: Some(_), .. } => true,
            Job::None | Job::Ordered | Job::Orphaned | Job::Stopping { main: None, .. } => false,
        }
    }

    // ---- the guard's word -----------------------------------------------------------------------------------------

    fn started(&mut self, now: Time, pid: u32) {
        self.note(Note::JobStarted { pid, attempt: 1 });
        match &mut self.job {
            Job::Ordered => {
                self.job = Job::Running { pid, since: now };
                self.report(JobState::Running, Some(pid), now);
            }
            // A stop went behind the spawn: the barrier already runs.
            Job::Stopping { main, .. } => *main = Some((pid, now)),
            Job::None | Job::Orphaned | Job::Running { .. } => {}
        }
    }

    fn main_exited(&mut self, now: Time, status: JobStatus, left: bool) {
        let since = match self.job {
            Job::Running { since, .. } | Job::Stopping { main: Some((_, since)), .. } => since,
            Job::None | Job::Ordered | Job::Orphaned | Job::Stopping { main: None, .. } => now,
        };
        self.last_status = Some(status);
        self.note(Note::JobExited { status, ran: now.since(since) });
        match &mut self.job {
            Job::Stopping { main, .. } => *main = None,
            Job::None | Job::Orphaned => {}
            Job::Ordered | Job::Running { .. } => {
                self.job = Job::Stopping { why: Why::Exited, main: None };
                if left && broken(Flaw::MainEndTakenForAll) {
                    return self.nothing_left(Why::Exited);
                }
                if left {
                    // A daemon that the job left behind counts as running work: it is asked, then killed.
                    self.order_stop(now);
                    self.report(JobState::Stopping, None, now);
                }
            }
        }
    }

    fn gone(&mut self) {
        match self.job {
            Job::None => {}
            Job::Stopping { why, .. } => self.nothing_left(why),
            Job::Ordered | Job::Running { .. } => self.nothing_left(Why::Exited),
            Job::Orphaned => {
                self.nothing_left(Why::GuardDied);
                self.actions.push_back(Action::StartGuard);
            }
        }
    }

    /// The net below the guard: what it left is killed, and only then is anything said to be over.
    fn guard_died(&mut self) {
        self.watch = None;
        self.note(Note::GuardLost);
        if self.job == Job::None {
            self.actions.push_back(Action::StartGuard);
        } else {
            self.killed = true;
            self.job = Job::Orphaned;
            self.tell(candidacy::Event::Fenced { why: Why::GuardDied });
            self.actions.push_back(Action::KillOrphans);
        }
    }

    fn nothing_left(&mut self, why: Why) {
        if self.job == Job::None {
            return;
        }
        self.job = Job::None;
        self.watch = None;
        self.order(Order::Over { term: self.term });
        let exit = self.last_status.map(JobStatus::code);
        let leaving = why == Why::Exited || self.stop.is_some();
        self.tell(candidacy::Event::NothingLeft { why, exit, leaving });
    }

    // ---- the candidate's word -------------------------------------------------------------------------------------

    fn extended(&mut self, now: Time, right: Right) {
        if let Some(watch) = &mut self.watch {
            watch.ask(now);
            self.order(Order::Extend(right));
        }
    }

    fn stop(&mut self, now: Time, why: Why) {
        if self.job == Job::Ordered && broken(Flaw::StopBehindSpawnTakenForDone) {
            return self.nothing_left(why);
        }
        match self.job {
            Job::Ordered | Job::Running { .. } => {
                let main = match self.job {
                    Job::Running { pid, since } => Some((pid, since)),
                    Job::None | Job::Ordered | Job::Orphaned | Job::Stopping { .. } => None,
                };
                self.note(Note::Stopping { why });
                self.job = Job::Stopping { why, main };
                self.order_stop(now);
                self.report(JobState::Stopping, main.map(|(pid, _)| pid), now);
            }
            Job::None | Job::Orphaned | Job::Stopping { .. } => {}
        }
    }

    fn kill(&mut self, why: Why) {
        if self.job == Job::None {
            return;
        }
        self.killed = true;
        let main = match self.job {
            Job::Running { pid, since } => Some((pid, since)),
            Job::Stopping { main, .. } => main,
            Job::None | Job::Ordered => None,
            // It is being killed already.
            Job::Orphaned => return,
        };
        self.job = Job::Stopping { why, main };
        self.order(Order::Kill);
    }

    fn order_stop(&mut self, now: Time) {
        let signal = (!self.policy.timeout.is_zero()).then_some(self.policy.signal);
        self.order(Order::Stop { signal, kill_at: now + self.policy.timeout });
    }

    // ---- a person's word ------------------------------------------------------------------------------------------

    fn stop_signal(&mut self, now: Time, signal: i32) {
        let Some(stop) = self.stop else {
            let run_alive = self.job_may_be_alive() && self.last_status.is_none();
            self.stop = Some(Stop { signal, at: now, run_alive });
            return self.tell(candidacy::Event::StandDown { why: Why::Stopped, leaving: true });
        };
        if now.since(stop.at) < SAME_STOP {
            return;
        }
        if self.job == Job::None {
            self.actions.push_back(Action::GiveUpWaiting);
        } else {
            self.kill(Why::Stopped);
        }
    }

    /// Several causes, the first that applies (interface.md, Exit status).
    fn exit(&mut self, departure: Departure) {
        const KILLED: JobStatus = JobStatus::Signaled(9);
        // What the main process itself ended with comes first: only what it left may have been killed. A guard that
        // died tells no status.
        let own = self.last_status.or(self.killed.then_some(KILLED));
        let ending = match (departure, self.stop) {
            (Departure::Ended, _) => Ending::Ended,
            (_, Some(Stop { run_alive: true, signal, .. })) => own.map_or(Ending::StoppedBy(signal), Ending::Job),
            (_, Some(Stop { signal, .. })) => Ending::StoppedBy(signal),
            (Departure::WaitedEnough, None) => Ending::WaitedEnough,
            (Departure::Left, None) => self.last_status.map_or(Ending::Ended, Ending::Job),
        };
        self.actions.push_back(Action::Exit(ending));
    }

    // ---- speaking -------------------------------------------------------------------------------------------------

    fn report(&mut self, state: JobState, pid: Option<u32>, since: Time) {
        self.tell(candidacy::Event::JobChanged(JobReport { state, pid, attempt: 1, since }));
    }

    fn tell(&mut self, event: candidacy::Event) {
        self.actions.push_back(Action::Tell(event));
    }

    fn order(&mut self, order: Order) {
        self.actions.push_back(Action::Order(order));
    }

    fn note(&mut self, note: Note) {
        self.actions.push_back(Action::Note(note));
    }
}
