//! The runs of a term's job, according to the guard's answers: each from its start until no process is left, and the next step.

use core::time::Duration;

use super::terminal::{REST_ENDS_WITHIN, SIGKILL};
use super::watch::Watch;
use super::{Job, JobStatus, Lost, NextGuard, OwnEnd, Presence, Run, Supervisor};
use crate::guard::{Answer, CommandKind, Order, SeenEnd, Step};
use crate::note::Note;
use crate::record::{JobState, Offset, Why};
use crate::supervisor::{Action, Ending};
use crate::time::Time;

/// The exit status of a command that exists but can't be run, as in a shell.
const CAN_NOT_BE_STARTED: u8 = 126;
/// The exit status of a command that does not exist.
const NOT_FOUND: u8 = 127;
/// COMMAND must have been executed within this time of its start by the guard (and of the lease then, if that is longer): a cold disk or a busy file
/// server may take seconds, and no job is to be stopped for that.
const EXEC_TAKES: Duration = Duration::from_secs(30);
/// The number of the error "no such file or directory", the same on every Linux.
const ENOENT: i32 = 2;

impl Supervisor {
    pub(super) fn started(&mut self, now: Time, pid: u32) {
        (self.run.started, self.run.executes_by) = (true, None);
        self.note(Note::JobStarted { term: self.noted_term(), pid, attempt: self.run.attempt, window: self.window });
        match &mut self.job {
            Job::Ordered => {
                self.job = Job::Running { pid, since: now };
                self.set_report(JobState::Running, Some(pid), now);
            }
            // A stop was ordered after the spawn, so the barrier has begun already.
            Job::Stopping { main, .. } => *main = Some((pid, now)),
            Job::Held { .. } | Job::None | Job::Orphaned | Job::Restarting { .. } | Job::Running { .. } => {}
        }
    }

    /// Handles a job that runs without a descriptor: the run counts as failed and is killed, since no process could end it if the guard
    /// died.
    pub(super) fn started_unseen(&mut self, now: Time, pid: u32) {
        self.started(now, pid);
        self.note(Note::StartedUnseen);
        // Otherwise it is being stopped or killed already.
        if let Job::Running { pid, since } = self.job {
            self.run.status = Some(JobStatus::Exited(CAN_NOT_BE_STARTED));
            self.run.own_end = OwnEnd::of_main(self.holds, false);
            self.job = Job::Stopping { why: Why::Exited, main: Some((pid, since)), kill_at: None };
            self.order(Order::Kill);
        }
    }

    /// Handles a job that could not be started: the run counts as failed, unless the node decides what follows, or the term ends because of a stop
    /// that came before. COMMAND existed when this process started, and may exist again.
    fn not_started(&mut self, now: Time, errno: i32, at: Step) {
        let code = if at == Step::Exec && errno == ENOENT { NOT_FOUND } else { CAN_NOT_BE_STARTED };
        self.note(Note::NotStarted { errno, counts: !self.holds });
        self.run.status = Some(JobStatus::Exited(code));
        self.run.own_end = OwnEnd::of_main(self.holds && self.run.asked_at.is_none(), false);
        if self.has_run() {
            self.gone(now, None);
        }
    }

    /// Whether its guard lives, and a run was ordered and is not known to be gone.
    const fn has_run(&self) -> bool {
        matches!(self.job, Job::Ordered | Job::Running { .. } | Job::Stopping { .. })
    }

    /// `left`: it has left processes. `foreground`: it had the terminal's.
    fn main_exited(&mut self, now: Time, ended_at: Time, status: JobStatus, left: bool, foreground: bool) {
        let main = match self.job {
            Job::Running { since, .. } => Some(since),
            Job::Stopping { main, .. } => main.map(|(_, since)| since),
            Job::Held { .. } | Job::None | Job::Ordered | Job::Orphaned | Job::Restarting { .. } => None,
        };
        // A run that failed at its start keeps that status.
        self.run.status.get_or_insert(status);
        self.run.ran = ended_at.since(main.unwrap_or(ended_at));
        // Without a stop signal a run that ends before SIGKILL ends by itself.
        let has_signal = self.policy.stop.signal.is_some();
        let was_stopped = matches!(self.job, Job::Stopping { kill_at, .. } if has_signal || kill_at.is_none())
            && self.run.asked_at.is_none_or(|asked_at| asked_at <= ended_at);
        // The guard kills at its deadline, also while this process is stopped, and perhaps before it has read the last grant. One that does not
        // answer is killed with the job.
        let was_fenced = status == JobStatus::Signaled(SIGKILL)
            && self.watch.is_none_or(|watch| ended_at >= watch.guards_deadline());
        // Ctrl-C in the job's terminal counts as a stop.
        let by_itself = !was_stopped && !was_fenced && self.terminal.interrupted_by.is_none();
        self.note(Note::JobExited { term: self.noted_term(), status, ran: self.run.ran, by_itself });
        match &mut self.job {
            Job::Stopping { main, kill_at, .. } => {
                *main = None;
                // What follows for the run is the node's to decide, although the term ends.
                if self.holds && by_itself {
                    self.run.own_end = OwnEnd::of_main(true, left);
                }
                // The processes that it left, for example in another session, did not get the stop signal yet. The first stop timeout
                // applies.
                if let Some(kill_at) = kill_at.filter(|_| left) {
                    self.order_stop_by(kill_at);
                }
            }
            Job::Held { .. } | Job::None | Job::Orphaned | Job::Restarting { .. } => {}
            Job::Ordered | Job::Running { .. } => {
                self.run.own_end = OwnEnd::of_main(self.holds && by_itself, left);
                self.job = Job::Stopping { why: Why::Exited, main: None, kill_at: None };
                if left {
                    // A daemon that the job left behind counts as running work: it gets the stop signal, and then SIGKILL.
                    let kill_at = now + self.policy.stop.timeout;
                    self.job = Job::Stopping { why: Why::Exited, main: None, kill_at: Some(kill_at) };
                    self.ask_rest(now, if foreground { REST_ENDS_WITHIN } else { Duration::ZERO });
                    self.set_report(JobState::Stopping, None, now);
                }
            }
        }
    }

    /// Handles that only processes of the commands beside the job were left at the main process's end, which are killed with their groups. What
    /// has left its group is asked to stop as what the job itself has left.
    fn commands_left(&mut self, now: Time) {
        let longest = self.policy.stop.timeout;
        if let Job::Stopping { why, main: None, kill_at } = &mut self.job {
            if *why == Why::Exited {
                kill_at.get_or_insert(now + longest);
            }
            self.ask_rest(now, REST_ENDS_WITHIN);
        }
    }

    /// Handles that no process of the present or last tree is left, according to its guard, or, if the guard is dead, to this process's own
    /// check, of which the end was seen.
    pub(super) fn gone(&mut self, now: Time, seen: Option<SeenEnd>) {
        match self.job {
            Job::Held { .. } | Job::None | Job::Restarting { .. } => {}
            Job::Ordered | Job::Running { .. } | Job::Stopping { why: Why::Exited, .. } => self.run_is_over(now),
            // It got the stop signal when only processes that it had left were alive.
            Job::Stopping { why, .. } if self.run.own_end != OwnEnd::No && why != Why::Fenced => {
                self.run_is_over(now);
            }
            Job::Stopping { why, .. } => {
                self.note_run_over_in_time();
                self.end_term(why);
            }
            Job::Orphaned => {
                self.note_run_over_in_time();
                // During a restart delay no run was alive.
                let was_alive = self.run.killed == Lost::Fenced;
                self.end_term_seen(Why::GuardDied, seen.filter(|_| was_alive));
                self.start_guard_if_due(now);
            }
        }
    }

    /// Nothing was left of a run that ended by itself when this process or its guard noticed that the lease is over, or that the guard is dead.
    fn note_run_over_in_time(&mut self) {
        if self.run.own_end == OwnEnd::Alone {
            self.run.own_end = OwnEnd::Over;
        }
    }

    /// Handles that the job ended by itself: another run under the same term follows, or the term ends.
    fn run_is_over(&mut self, now: Time) {
        if let Some(status) = self.run.status.filter(|_| self.run.own_end != OwnEnd::No) {
            self.run.own_end = OwnEnd::Over;
            self.job = Job::Held { settles_until: None };
            // The run is over: later kills don't change its result.
            self.run.killed = Lost::Stopped;
            self.failed_runs.ended(status, self.run.ran);
            self.set_report(JobState::Stopping, None, now);
            return;
        }
        let Some(status) = self.run.status.filter(|_| self.stop.is_none()) else {
            return self.end_term(Why::Exited);
        };
        match self.failed_runs.judge(now, self.policy.restart, status, self.run.ran) {
            Ok(delay) => {
                self.next_attempt = if status == JobStatus::Exited(0) { 1 } else { self.run.attempt.saturating_add(1) };
                self.note(Note::Restarting { term: self.noted_term(), attempt: self.next_attempt, delay });
                self.job = Job::Restarting { at: now + delay };
                // The run is over: later kills don't change its result.
                self.run.killed = Lost::Stopped;
                self.set_report(JobState::Restarting, None, now);
            }
            Err(why) => self.end_term(why),
        }
    }

    /// When a run that continues resets the failures before it.
    pub(super) fn failed_runs_forgotten_at(&self) -> Option<Time> {
        let Job::Running { since, .. } = self.job else { return None };
        self.failed_runs.forgotten_at(since)
    }

    /// When the next run (or the first of a term) is due; `None` while there is no guard or it is being killed.
    pub(super) fn run_due(&self) -> Option<Time> {
        let Job::Restarting { at } = self.job else { return None };
        self.watch.map(|_| at)
    }

    /// Orders the next run of the term (or the first), unless something delays it. The guard checks that there is enough time (R4).
    pub(super) fn start_run_if_due(&mut self, now: Time) {
        if self.run_due().is_none_or(|due| now < due) {
            return;
        }
        let Some(grant) = self.grant else { return };
        self.job = Job::Ordered;
        let (number, attempt) = (self.run.number.saturating_add(1), self.next_attempt);
        self.run = Run { number, attempt, ..Run::default() };
        if let Some(watch) = &mut self.watch {
            watch.ask(now, grant.until);
        }
        self.order(Order::Spawn { grant, run: self.run.number.into(), attempt: self.run.attempt, window: self.window });
    }

    /// When a run whose COMMAND is not known to be executed counts as unhealthy.
    pub(super) fn exec_hangs_at(&self) -> Option<Time> {
        self.run.executes_by.filter(|_| self.job == Job::Ordered)
    }

    /// Notes that COMMAND was not executed in time: its file can't be read, or its process was stopped before. The guard answers all the same, and no
    /// health command runs beside such a run.
    pub(super) fn note_exec_that_hangs(&mut self, now: Time) {
        if self.exec_hangs_at().is_some_and(|due| now >= due) {
            (self.run.executes_by, self.run.exec_hangs) = (None, true);
            self.failed_runs.failed(Duration::ZERO);
            self.note(Note::ExecHangs { term: self.noted_term(), for_at_least: EXEC_TAKES });
        }
    }

    pub(super) fn killed_at_timeout(&mut self) {
        self.run.note_kill(Lost::Killed);
        if let Job::Stopping { why, kill_at, .. } = &mut self.job {
            *kill_at = None;
            let why = *why;
            self.note(Note::JobKilled { term: self.noted_term(), why });
        }
    }

    /// Handles the guard's answer that it has fenced the job of this term, and that no process of it is left.
    pub(super) fn fenced(&mut self, term: Offset, seen: Option<SeenEnd>) {
        if self.term() == Some(term) && self.job != Job::None {
            self.note_kill(Lost::Fenced);
            self.note_run_over_in_time();
            self.fenced.get_or_insert(Why::Fenced);
            self.end_term_seen(Why::Fenced, seen);
        }
    }

    /// Handles a guard that does not answer. Its SIGKILL may stay pending for long (state D, frozen), so the job is killed as well, and the
    /// lease is over. Only the report of the guard's death shows that no process is left.
    pub(super) fn guard_hangs(&mut self) {
        self.watch = None;
        self.next_guard.is_killed = true;
        self.actions.push_back(Action::KillGuard);
        self.note(Note::GuardHangs);
        if self.job != Job::None {
            self.fenced.get_or_insert(Why::GuardDied);
        }
    }

    /// Handles the guard's death: the processes that it left are killed before anything is reported as over.
    pub(super) fn guard_died(&mut self, now: Time) {
        self.watch = None;
        self.note(Note::GuardLost { is_killed: self.next_guard.is_killed });
        self.next_guard.died(now);
        if self.job == Job::None {
            return self.start_guard_if_due(now);
        }
        // It may have died before it could report that the job runs.
        self.run.started |= !self.job.is_between_runs();
        self.note_kill(Lost::Fenced);
        self.job = Job::Orphaned;
        self.fenced.get_or_insert(Why::GuardDied);
        self.actions.push_back(Action::KillOrphans);
    }

    /// When the next guard is started; `None` while processes of the last one's job are left.
    pub(super) fn next_guard_due(&self) -> Option<Time> {
        let Presence::Due(at) = self.next_guard.presence else { return None };
        Some(at).filter(|_| self.job.is_between_runs())
    }

    /// When a guard that may fail as its predecessor did counts as one that hangs before it is set up. Beside a job its answers show that.
    pub(super) fn setup_hangs_at(&self) -> Option<Time> {
        let is_awaited =
            self.next_guard.is_doubtful && self.next_guard.presence == Presence::There && self.job == Job::None;
        self.next_guard.started.filter(|_| is_awaited).map(|started| started + NextGuard::LONG_LIFE)
    }

    /// Whether a claim would be in vain, because there is no guard, one that is killed since it does not answer, or one that may fail as the
    /// last one did. While processes of the last guard's job are left, the candidate claims nothing anyway.
    pub fn lacks_guard(&self) -> bool {
        self.next_guard.is_doubtful || self.next_guard.is_killed || self.next_guard_due().is_some()
    }

    pub(super) fn start_guard_if_due(&mut self, now: Time) {
        if self.next_guard_due().is_none_or(|due| now < due) {
            return;
        }
        self.actions.push_back(Action::StartGuard);
        self.guard_started(now);
    }

    /// Whether a term has begun although there was no guard: none runs under it before one is started.
    pub fn awaits_guard(&self) -> bool {
        self.next_guard.presence == Presence::Unneeded && self.job != Job::None
    }

    /// Handles that there is a guard again, which may get the term that waited for it.
    pub(super) fn guard_started(&mut self, now: Time) {
        if self.next_guard.presence == Presence::There {
            return;
        }
        (self.next_guard.presence, self.next_guard.started) = (Presence::There, Some(now));
        let Some(grant) = self.grant.filter(|_| self.job != Job::None) else { return };
        if now >= grant.until {
            return self.fenced(grant.term, None);
        }
        self.watch = Some(Watch::new(grant.until));
        // A run that waited for the guard may begin now. If none is due yet, the guard must get the term at once, since it must release it
        // if this process dies.
        self.start_run_if_due(now);
        if self.job != Job::Ordered {
            self.extend(now, grant);
        }
    }

    /// Handles processes that can't be killed, or a guard that does not end: until it has ended, nothing shows that its job is gone, even if no
    /// process of it can be seen.
    pub(super) fn stuck(&mut self, note: Note) {
        self.note(note);
        self.actions.push_back(Action::Exit(Ending::Stuck));
    }

    /// Notes that the run that may be alive was killed. The kill does not count for an earlier run.
    fn note_kill(&mut self, killed: Lost) {
        if !self.job.is_between_runs() {
            self.run.note_kill(killed);
        }
    }

    /// Ends the term: no process is left of a job whose guard kept its deadline, or no job was alive.
    pub(super) fn end_term(&mut self, why: Why) {
        self.end_term_seen(why, None);
    }

    /// The same for a job whose last process was seen to end after the guard's deadline.
    fn end_term_seen(&mut self, why: Why, seen: Option<SeenEnd>) {
        let Some(term) = self.term().filter(|_| self.job != Job::None) else { return };
        self.job = Job::None;
        self.watch = None;
        // Otherwise candidates that can't read the facts would pass the lead on to each other without a pause.
        if why == Why::FactsUnavailable {
            self.failed_runs.failed(Duration::ZERO);
        }
        self.over = Some((why, seen));
        self.order(Order::Over { term });
    }
}

// ---- handles the guard's answers -----------------------------------------------------------------------------------

impl Supervisor {
    /// Handles an answer of the guard. A job that a signal stopped, and the end of a health command, are [events](super::Event), which also contain
    /// the terminal's state and the output. Processes that were left behind are only logged.
    pub fn handle_answer(&mut self, now: Time, answer: Answer) {
        match answer {
            Answer::Accepted { until } | Answer::Extended { until } => {
                self.watch.iter_mut().for_each(|watch| watch.answered(until));
                // One of many guards is set up long after the order, perhaps.
                if let Answer::Accepted { .. } = answer {
                    self.run.executes_by = Some(until.max(now + EXEC_TAKES));
                }
            }
            Answer::CommandsLeft => self.commands_left(now),
            Answer::Exited { status, ended_at, left, foreground } => {
                self.interrupted_by(now, status, foreground);
                self.main_exited(now, ended_at, status, left, foreground);
            }
            Answer::Fenced { term, end } => self.fenced(term, end),
            Answer::Gone => self.gone(now, None),
            Answer::Killed => self.killed_at_timeout(),
            Answer::Ready => self.next_guard.is_set_up(),
            Answer::NoRun { term, run } => self.no_run(now, term, run),
            Answer::NotStarted { at: Step::InTime, .. } => {
                if let Some(term) = self.term() {
                    self.fenced(term, None);
                }
            }
            Answer::NotStarted { errno, at: at @ (Step::Exec | Step::Fork | Step::Lease) } => {
                self.not_started(now, errno, at);
            }
            Answer::Started { pid } => self.started(now, number_of(pid).unwrap_or_default()),
            Answer::StartedUnseen { pid } => self.started_unseen(now, number_of(pid).unwrap_or_default()),
            Answer::StillKilling => self.watch.iter_mut().for_each(|watch| watch.still_kills(now)),
            Answer::Stuck { pids } => {
                self.stuck(Note::Stuck { pids: pids.into_iter().filter_map(number_of).collect() });
            }
            Answer::CommandEnded { .. } | Answer::LeftBehind { .. } | Answer::Stopped { .. } => {}
        }
        self.look_after_health(now);
    }

    /// Handles that there is no guard, so that a run which was ordered since the last one's end has not begun. A term is not kept for a guard
    /// that may never start.
    pub(super) fn guard_not_started(&mut self, now: Time, again: bool) {
        self.watch = None;
        let is_ordered = matches!(self.job, Job::Ordered | Job::Stopping { main: None, .. });
        if is_ordered && !self.run.started || again && self.job.is_between_runs() {
            self.end_term(Why::GuardDied);
        }
        if again {
            self.next_guard.not_started(now);
        }
    }

    /// Handles the guard's answer that no process is alive, and that this run was its last. If it is the present run, the report of its end
    /// was lost; otherwise its end was handled before.
    fn no_run(&mut self, now: Time, term: Offset, run: u64) {
        let is_present = self.term() == Some(term) && u64::from(self.run.number) == run;
        if is_present && self.has_run() {
            self.gone(now, None);
        }
    }
}

fn number_of(pid: i32) -> Option<u32> {
    u32::try_from(pid).ok()
}

// ---- the health checks of the job, which run only while its main process runs and is not being stopped -------------

impl Supervisor {
    /// Begins or ends the checks. Must be called after every event that may have changed the job's state.
    pub(super) fn look_after_health(&mut self, now: Time) {
        let Some(mut health) = self.health.take() else { return };
        health.set_running(now, matches!(self.job, Job::Running { .. }));
        let command = health.poll_command(now);
        if let Some(failure) = health.poll_failure() {
            if let Job::Running { since, .. } = self.job
                && health.is_unhealthy()
            {
                self.failed_runs.failed(now.since(since));
            }
            let (term, most) = (self.noted_term(), health.most_failures());
            self.note(Note::HealthFailed { term, failure, most });
        }
        if let Some((id, kill_at)) = command {
            self.order(Order::Command { kind: CommandKind::Health, id, kill_at });
        }
        self.health = Some(health);
    }
}
