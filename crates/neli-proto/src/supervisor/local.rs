//! The state of this machine for its candidate: what the job is, and whether the process must stop.

use core::time::Duration;

use super::{Job, JobStatus, Supervisor};
use crate::guard::SeenEnd;
use crate::health::Health;
use crate::record::{JobState, KeyedRun, Offset, Why};
use crate::time::Time;

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
        /// Whether its health commands have failed too often.
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

/// The job's state for the beats.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct JobReport {
    /// Its state.
    pub state: JobState,
    /// The main process.
    pub pid: Option<u32>,
    /// 1, and 1 more for each failed run before it: of its key or window, else since the last success in this term.
    pub attempt: u32,
    /// When the job entered this state.
    pub since: Time,
}

/// How a term has ended here.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Over {
    pub(super) why: Why,
    /// The end of the last process, if one was alive after the guard's deadline.
    pub(super) seen: Option<SeenEnd>,
}

impl Supervisor {
    /// The state of this machine.
    #[must_use]
    pub fn local(&self) -> Local {
        Local {
            job: self.term().map(|term| self.job_of(term)),
            lacks_guard: self.lacks_guard(),
            is_stopped: self.stop.is_some(),
            is_suspended: self.is_suspended,
        }
    }

    fn job_of(&self, term: Offset) -> JobIs {
        let (Job::None, Some(Over { why, seen })) = (&self.job, self.over) else {
            let is_unhealthy = self.health.as_ref().is_some_and(Health::is_unhealthy);
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
