//! What the candidate wants of the job, as a state, and what the supervisor does when it changes.

use core::mem;
use core::time::Duration;

use super::watch::Watch;
use super::{Job, JobReport, JobStatus, Lost, Presence, Run, Supervisor};
use crate::guard::{Grant, Order, SeenEnd};
use crate::health::Health;
use crate::note::Note;
use crate::record::{JobState, KeyedRun, Offset, Why};
use crate::supervisor::StopPolicy;
use crate::time::{Span, Time};

/// What the candidate that holds a term wants of its job. It is compared after each input, so that no change is lost or comes twice.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Wanted {
    /// The term, and until when its job may run.
    pub grant: Grant,
    /// How often the same grant was given again: there is no new one, but the guard's answer shows that it is alive.
    pub again: u32,
    /// The state that the job is to come to.
    pub state: WantedState,
}

/// What a job is to do.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(missing_docs, reason = "a field with an unclear meaning has a comment")]
pub enum WantedState {
    /// Run, and run again as the policy says.
    Run,
    /// Not run: the node decides what follows, before each run of the term and after each run that ended by itself. It may wait for the next
    /// window.
    Hold { waits: bool },
    /// Run once, for a window if it is for one. The report of the run's end contains its number. After a run that ended by itself the term is
    /// kept.
    RunOnce { id: u32, window: Option<Span>, attempt: u32 },
    /// End in order: the barrier.
    Stop {
        /// The reason.
        why: Why,
        /// `--overlap`: another candidate leads already. SIGKILL follows at this time, or at the stop timeout if that is sooner.
        by: Option<Time>,
    },
    /// Be killed at once: the lease is over, or another candidate has taken over.
    Kill,
}

impl Supervisor {
    /// Handles what the candidate wants of the job; `None` while it holds no term.
    pub fn set_wanted(&mut self, now: Time, wanted: Option<Wanted>) {
        let before = mem::replace(&mut self.wanted, wanted);
        if before == wanted {
            return;
        }
        if let Some(wanted) = wanted {
            self.follow(now, before.filter(|before| before.grant.term == wanted.grant.term), wanted);
        } else if self.job_may_be_alive() {
            // Nothing may run without a term.
            self.lose(now);
        }
        self.look_after_health(now);
    }

    /// Handles a change; `before` is what was wanted under the same term.
    fn follow(&mut self, now: Time, before: Option<Wanted>, wanted: Wanted) {
        let Wanted { grant, again, state } = wanted;
        let changes = before.is_none_or(|before| before.state != state);
        let is_given = before.is_some_and(|before| (before.grant, before.again) != (grant, again));
        if before.is_none() {
            self.begin_term(now, wanted);
        }
        // A stop goes out before the lease, and a run under the new lease.
        if changes && state == WantedState::Kill {
            self.lose(now);
        } else if changes && let WantedState::Stop { why, by } = state {
            let has_begun = before.is_some_and(|before| matches!(before.state, WantedState::Stop { .. }));
            self.stop(now, why, by, has_begun);
        }
        if is_given && state != WantedState::Kill {
            self.extend(now, grant);
        }
        if changes && state == (WantedState::Hold { waits: true }) && matches!(self.job, Job::Held { .. }) {
            self.set_report(JobState::Restarting, None, now);
        } else if changes && let WantedState::RunOnce { id, window, attempt } = state {
            self.run_once(now, id, (window, attempt));
        }
    }

    /// Begins a term that was won; no run has been started under it.
    fn begin_term(&mut self, now: Time, wanted: Wanted) {
        let Wanted { grant, state, .. } = wanted;
        let settle = self.policy.settle;
        self.holds = matches!(state, WantedState::Hold { .. } | WantedState::RunOnce { .. });
        self.grant = Some(grant);
        (self.run, self.next_attempt) = (Run::default(), 1);
        (self.over, self.fenced) = (None, None);
        self.report = JobReport { state: JobState::Starting, pid: None, attempt: 1, since: now };
        self.failed_runs.begin_term();
        if self.next_guard.presence == Presence::There {
            self.watch = Some(Watch::new(grant.until));
        }
        if self.holds {
            let settles_until = Some(settle).filter(|settle| !settle.is_zero()).map(|settle| now + settle);
            self.job = Job::Held { settles_until };
        } else {
            self.job = Job::Restarting { at: now + settle };
            if settle.is_zero() {
                return self.start_run_if_due(now);
            }
            self.note(Note::Settling { term: self.noted_term(), delay: settle });
        }
        // The guard must get the term at once, since it must release it if this process dies.
        self.extend(now, grant);
    }

    fn run_once(&mut self, now: Time, id: u32, (window, attempt): (Option<Span>, u32)) {
        if let Job::Held { settles_until } = &self.job {
            let delay = settles_until.map_or(Duration::ZERO, |until| until.since(now));
            (self.run_id, self.window, self.next_attempt) = (id, window, attempt);
            self.job = Job::Restarting { at: now + delay };
            if !delay.is_zero() {
                self.note(Note::Settling { term: self.noted_term(), delay });
            }
            self.start_run_if_due(now);
        }
    }

    pub(super) fn extend(&mut self, now: Time, grant: Grant) {
        if let Some(watch) = &mut self.watch {
            watch.ask(now, grant.until);
            self.grant = Some(grant);
            self.order(Order::Lease(grant));
        } else if self.next_guard.presence != Presence::There {
            self.grant = Some(grant);
        }
    }

    /// Begins the barrier, unless it has begun. Without a living run it is over at once. If another candidate leads already, SIGKILL follows
    /// at `by` at the latest, also in a barrier that has begun.
    fn stop(&mut self, now: Time, reason: Why, by: Option<Time>, has_begun: bool) {
        let longest = self.policy.stop.timeout;
        let timeout = by.map_or(longest, |by| by.since(now).min(longest));
        if !has_begun || by.is_some() {
            self.stop_in(now, reason, timeout);
        }
        if by.is_some()
            && let Job::Stopping { kill_at, .. } = &mut self.job
        {
            let sooner = now + timeout;
            if kill_at.is_none_or(|kill_at| sooner < kill_at) {
                *kill_at = kill_at.map(|_| sooner);
                // It got the stop signal already.
                self.order(Order::Stop { signal: None, kill_at: sooner });
            }
        }
    }

    fn stop_in(&mut self, now: Time, reason: Why, timeout: Duration) {
        match &mut self.job {
            // There is nothing yet that could be asked.
            Job::Ordered if self.run.exec_hangs => self.kill(now, reason),
            Job::Ordered => self.begin_to_stop(now, reason, None, timeout),
            Job::Running { pid, since } => {
                let main = (*pid, *since);
                self.begin_to_stop(now, reason, Some(main), timeout);
            }
            // The processes that the job left got the stop signal already, but this does not count as an end by itself any more. The first
            // timeout applies. Because of the order, the guard repeats the report of the end, in case it was lost.
            Job::Stopping { why: why @ Why::Exited, kill_at, .. } => {
                *why = reason;
                let kill_at = kill_at.unwrap_or(now + timeout);
                self.order(Order::Stop { signal: None, kill_at });
            }
            Job::Held { .. } | Job::Restarting { .. } => self.end_term(reason),
            Job::None | Job::Orphaned | Job::Stopping { .. } => {}
        }
    }

    fn begin_to_stop(&mut self, now: Time, why: Why, main: Option<(u32, Time)>, timeout: Duration) {
        self.note(Note::Stopping { term: self.noted_term(), why, timeout });
        let kill_at = now + timeout;
        self.run.asked_at = Some(now);
        self.order_stop_by(kill_at);
        self.job = Job::Stopping { why, main, kill_at: Some(kill_at) };
        self.set_report(JobState::Stopping, main.map(|(pid, _)| pid), now);
    }

    /// Handles that the lease is over or another candidate took over: there is no barrier.
    fn lose(&mut self, now: Time) {
        self.kill(now, Why::Fenced);
        // No later beat makes the guard answer. Its next answer is that no process is left.
        if let Some(watch) = &mut self.watch {
            watch.ask_for_end(now);
        }
    }

    pub(super) fn kill(&mut self, now: Time, why: Why) {
        let main = match self.job {
            Job::Running { pid, since } => Some((pid, since)),
            Job::Stopping { main, .. } => main,
            Job::Ordered => None,
            Job::Held { .. } | Job::Restarting { .. } => return self.end_term(why),
            // There is no job, or it is being killed already.
            Job::None | Job::Orphaned => return,
        };
        self.run.note_kill(if why == Why::Fenced { Lost::Fenced } else { Lost::Killed });
        self.run.asked_at.get_or_insert(now);
        self.job = Job::Stopping { why, main, kill_at: None };
        self.order(Order::Kill);
    }

    /// Orders the guard to send the stop signal to the processes that did not get it in this barrier.
    pub(super) fn order_stop_by(&mut self, kill_at: Time) {
        let StopPolicy { signal, timeout, .. } = self.policy.stop;
        self.order(Order::Stop { signal: signal.filter(|_| !timeout.is_zero()), kill_at });
    }
}

// ---- the state of this machine for its candidate: what the job is, and whether the process must stop ---------------

/// The state of this machine, as far as its candidate acts on it. It is compared after each input, so that no change is lost or comes twice.
#[derive(Debug, Eq, PartialEq)]
pub struct Local {
    /// The job of the present or the last term; `None` before the first.
    pub job: Option<JobIs>,
    /// Whether a claim would be in vain, because this machine lacks a guard, so that no job could run.
    pub lacks_guard: bool,
    /// Whether a signal has told the process to stop.
    pub is_stopped: bool,
    /// Whether the process must be suspended until SIGCONT once it holds nothing.
    pub is_suspended: bool,
}

/// What a job is.
#[derive(Debug, Eq, PartialEq)]
pub enum JobIs {
    /// A process of it may be alive, or may be started.
    Alive {
        /// Its term.
        term: Offset,
        /// Its state for the beats.
        report: JobReport,
        /// Whether its health commands have failed too often, or COMMAND was not executed in time.
        is_unhealthy: bool,
        /// Why the lease is over, also if the candidate's own deadline is later: the guard fenced the job, or died.
        fenced: Option<Why>,
    },
    /// No process of it is left, and none will be started under its term (R6).
    Gone(JobEnd),
}

/// The end of a term's job.
#[derive(Debug, Eq, PartialEq)]
pub struct JobEnd {
    /// The proof that no process is left; it contains the term.
    pub proof: NothingLeft,
    /// Why the term ends, unless the candidate has another reason already.
    pub why: Why,
    /// The job's exit status.
    pub exit: Option<u8>,
    /// Whether the candidate leaves for good.
    pub leaving: bool,
    /// `--once`, `--window`, `--schedule`: the run, if it has ended and `exit` is its outcome.
    pub once: Option<KeyedRun>,
    /// Why the lease was over before that, if the guard fenced the job or died.
    pub fenced: Option<Why>,
    /// The end of the last process; `None` if that was before the guard's deadline, or if no job was alive then.
    pub seen: Option<SeenEnd>,
    /// The time to add to the claim delay from now on, because the last runs failed; zero if none did.
    pub back_off: Duration,
}

/// The proof that no process of a term's job is left, and that none will be started under that term (R6). Only [`Supervisor::local`] makes it,
/// when its job is over, and a release of the term consumes it.
#[derive(Debug, Eq, PartialEq)]
pub struct NothingLeft {
    term: Offset,
}

impl NothingLeft {
    /// The term of the job.
    pub(crate) const fn term(&self) -> Offset {
        self.term
    }

    pub(crate) const fn into_term(self) -> Offset {
        self.term
    }
}

impl Supervisor {
    /// The state of this machine.
    pub fn local(&self) -> Local {
        Local {
            job: self.term().map(|term| self.job_of(term)),
            lacks_guard: self.lacks_guard(),
            is_stopped: self.stop.is_some(),
            is_suspended: self.is_suspended,
        }
    }

    fn job_of(&self, term: Offset) -> JobIs {
        let (Job::None, Some((why, seen))) = (&self.job, self.over) else {
            let is_unhealthy = self.run.exec_hangs || self.health.as_ref().is_some_and(Health::is_unhealthy);
            return JobIs::Alive { term, report: self.report, is_unhealthy, fenced: self.fenced };
        };
        JobIs::Gone(JobEnd {
            proof: NothingLeft { term },
            why,
            exit: self.run.status.map(JobStatus::code),
            leaving: self.leaves_after(why),
            once: None,
            fenced: self.fenced,
            seen,
            back_off: self.failed_runs.back_off(),
        })
    }
}
