//! How the guard handles its orders.

use alloc::collections::VecDeque;

use super::message::{Action, Answer, CommandKind, Grant, Order};
use super::run::GuardedRun;
use super::tenure::Tenure;
use super::{Guard, end_of_search, fenced};
use crate::job::CommandEnd;
use crate::time::Time;

impl Guard {
    pub(super) fn obey(&mut self, now: Time, order: &Order) {
        match *order {
            Order::Command { kind, id, kill_at } => self.start_command(now, kind, id, kill_at),
            Order::HandOn => {
                if let Some(run) = self.run.as_mut().filter(|_| !self.supervisor.has_gone()) {
                    run.hand_on(&mut self.actions);
                }
            }
            Order::Kill => match &self.run {
                None => self.answer_no_run(),
                // The report of its end is the answer.
                Some(run) if run.is_being_killed() => {}
                Some(_) => {
                    self.actions.push_back(Action::Answer(Answer::Killed));
                    self.kill(now);
                }
            },
            Order::Lease(grant) => self.extend(now, grant),
            Order::Over { term } => {
                if self.holds(term) {
                    self.end_term(now);
                }
            }
            Order::Released { term } => {
                if self.holds(term) {
                    self.end_term(now);
                    self.forbid_release();
                }
            }
            Order::Signal { signal, to } => {
                self.run.iter_mut().for_each(|run| run.signal(signal, to, &mut self.actions));
            }
            Order::Spawn { grant, run, attempt, window } => {
                if let Some(until) = self.spawn(now, grant, run) {
                    self.actions.push_back(Action::Start { term: grant.term, until, attempt, window });
                }
            }
            Order::Stop { signal, kill_at } => {
                let look_until = end_of_search(self.tenure, now);
                match &mut self.run {
                    None => self.answer_no_run(),
                    Some(run) => run.stop(signal, kill_at, look_until, &mut self.actions),
                }
            }
            Order::TakeBack => self.actions.push_back(Action::TakeBack),
        }
        if self.supervisor.has_gone() {
            // The guard knows this term only from its last orders.
            self.end_term(now);
        }
    }

    fn holds(&self, term: i64) -> bool {
        self.tenure.is_some_and(|tenure| tenure.term() == term)
    }

    fn extend(&mut self, now: Time, grant: Grant) {
        if self.run.is_some() && !self.holds(grant.term) {
            // The job of one term never runs on another term's lease.
            return;
        }
        match self.take_grant(now, grant) {
            Some(until) => {
                self.actions.push_back(Action::ShowDeadline { term: grant.term, until });
                self.actions.push_back(Action::Answer(Answer::Extended { until }));
                self.may_look = true;
            }
            // While processes are being killed, the report of the run's end is the answer.
            None if self.run.is_some() => {}
            None => self.actions.push_back(fenced(grant.term, None)),
        }
    }

    fn take_grant(&mut self, now: Time, grant: Grant) -> Option<Time> {
        let (tenure, until) = Tenure::granted(self.tenure, grant, now);
        self.tenure = Some(tenure);
        until
    }

    /// Begins a run unless there is one already, so that no order can cause two jobs at once. Returns before when its job must execute.
    fn spawn(&mut self, now: Time, grant: Grant, run: u64) -> Option<Time> {
        if self.run.is_some() {
            return None;
        }
        let Some(until) = self.take_grant(now, grant) else {
            self.actions.push_back(fenced(grant.term, None));
            return None;
        };
        if self.supervisor.has_gone() {
            return None;
        }
        self.actions.push_back(Action::Answer(Answer::Accepted { until }));
        (self.run, self.last_run) = (Some(GuardedRun::default()), Some((grant.term, run)));
        Some(until)
    }

    /// Answers that there is no run. Otherwise a supervisor that has lost the report of the end would wait for ever.
    fn answer_no_run(&mut self) {
        let answer = self.last_run.map(|(term, run)| Answer::NoRun { term, run });
        self.actions.extend(answer.map(Action::Answer));
    }

    /// Starts a command, but only beside a job that runs, and not shortly before the deadline.
    fn start_command(&mut self, now: Time, kind: CommandKind, id: u32, kill_at: Time) {
        let runs = self.run.as_ref().is_some_and(|run| run.has_main() && !run.is_being_killed());
        if !runs || self.supervisor.is_known_dead() {
            self.actions.push_back(ended(kind, id, CommandEnd::Abandoned));
        } else if self.has_time_to_fork(now) {
            self.commands.start(kind, id, kill_at, &mut self.actions);
        } else {
            self.actions.push_back(ended(kind, id, CommandEnd::NoTime));
        }
    }
}

// Commands that run beside the job: the health command, and the `--on-lead` hook.
//
// Each is part of the job's tree and dies with it, but is not part of the job's work. So it is killed when the main process has ended, and
// the processes that the job left are those of the tree without it.

const KINDS: [CommandKind; 2] = [CommandKind::Health, CommandKind::Lead];

/// The commands that were started and not waited for; at most one of each kind.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Commands {
    running: [Option<Running>; KINDS.len()],
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Running {
    /// The number that its report must carry.
    id: u32,
    /// When it is killed; `None` after it was killed and its end was reported.
    kill_at: Option<Time>,
}

impl Commands {
    /// When the next command must be killed.
    pub(super) fn due(&self) -> Option<Time> {
        self.running.iter().filter_map(|running| running.as_ref()?.kill_at).min()
    }

    /// Starts a command, or reports its end if that is known already.
    pub(super) fn start(&mut self, kind: CommandKind, id: u32, kill_at: Time, actions: &mut VecDeque<Action>) {
        let running = &mut self.running[kind as usize];
        if running.is_some() {
            // The previous one was killed and does not die, so another one would hang too.
            actions.push_back(ended(kind, id, CommandEnd::TimedOut));
            return;
        }
        *running = Some(Running { id, kill_at: Some(kill_at) });
        actions.push_back(Action::StartCommand(kind));
    }

    /// Kills the commands whose time limit is over.
    pub(super) fn handle_timeout(&mut self, now: Time, actions: &mut VecDeque<Action>) {
        self.kill(|kill_at| now >= kill_at, &CommandEnd::TimedOut, actions);
    }

    /// Kills all commands, because the main process has ended.
    pub(super) fn abandon(&mut self, actions: &mut VecDeque<Action>) {
        self.kill(|_| true, &CommandEnd::Abandoned, actions);
    }

    fn kill(&mut self, which: impl Fn(Time) -> bool, end: &CommandEnd, actions: &mut VecDeque<Action>) {
        for kind in KINDS {
            let Some(running) = &mut self.running[kind as usize] else { continue };
            if running.kill_at.take_if(|kill_at| which(*kill_at)).is_some() {
                actions.push_back(Action::KillCommand(kind));
                actions.push_back(ended(kind, running.id, end.clone()));
            }
        }
    }

    /// Handles a command that was waited for, or could not be started. Reports its end, unless that was reported before.
    pub(super) fn ended(&mut self, kind: CommandKind, end: CommandEnd, actions: &mut VecDeque<Action>) {
        if let Some(Running { id, kill_at: Some(_) }) = self.running[kind as usize].take() {
            actions.push_back(ended(kind, id, end));
        }
    }
}

/// The answer to a command order.
pub(super) const fn ended(kind: CommandKind, id: u32, end: CommandEnd) -> Action {
    Action::Answer(Answer::CommandEnded { kind, id, end })
}

// The guard's view of its supervisor: the known state of that process, and the consequences of its death.

/// The known state of the supervisor's process.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum SupervisorLife {
    /// Its end of the socket is open, and it is not known to be dead.
    #[default]
    Open,
    /// Its end of the socket is closed, and it is not known to be dead.
    Closed,
    /// It is dead, and some of its orders may be unread.
    DeadUnread,
    /// It is dead, and all its orders were read.
    Dead,
}

impl SupervisorLife {
    /// Whether it can't give orders any more, or will soon be unable to.
    pub(super) fn has_gone(self) -> bool {
        self != Self::Open
    }

    pub(super) const fn is_known_dead(self) -> bool {
        matches!(self, Self::DeadUnread | Self::Dead)
    }

    /// Notes that everything it has sent was read. If the supervisor was dead before, no more orders follow.
    pub(super) fn all_was_read(&mut self) {
        if *self == Self::DeadUnread {
            *self = Self::Dead;
        }
    }
}

impl Guard {
    pub(super) fn socket_closed(&mut self, now: Time) {
        self.supervisor.all_was_read();
        if self.supervisor == SupervisorLife::Open {
            self.supervisor = SupervisorLife::Closed;
            self.lose_supervisor(now);
        }
    }

    pub(super) fn supervisor_died(&mut self, now: Time) {
        let before = self.supervisor;
        self.supervisor = match before {
            SupervisorLife::Open => SupervisorLife::DeadUnread,
            SupervisorLife::Closed => SupervisorLife::Dead,
            SupervisorLife::DeadUnread | SupervisorLife::Dead => return,
        };
        if before == SupervisorLife::Open {
            self.lose_supervisor(now);
        }
    }

    /// Ends the term and kills the job, because no job may run without a supervisor.
    fn lose_supervisor(&mut self, now: Time) {
        // The terminal comes first, because the calling shell continues at once and may read from it.
        self.actions.push_back(Action::TakeBack);
        self.end_term(now);
    }

    /// Ends the guard when the supervisor is gone and no process of the job is left. If the supervisor is known to be dead and could not
    /// release the term, the guard releases it. Unread orders may contain a term, or the report that it was released.
    pub(super) fn end_if_done(&mut self) {
        let can_order_more = matches!(self.supervisor, SupervisorLife::Open | SupervisorLife::DeadUnread);
        if self.is_over || can_order_more || self.run.is_some() {
            return;
        }
        let last = match self.tenure.and_then(|tenure| tenure.unreleased()) {
            None => Action::End,
            Some(grant) if self.supervisor == SupervisorLife::Dead => {
                let late = self.tenure.and_then(|tenure| tenure.overrun(self.kill_margin));
                Action::Release { grant, late }
            }
            // A closed socket is a reason to kill, not to release (R6).
            Some(_) => return,
        };
        self.is_over = true;
        if self.supervisor.is_known_dead() {
            self.actions.push_back(Action::RemoveCgroup);
        }
        self.actions.push_back(last);
    }
}
