//! `--once`: whether the job runs at a lead, by what is recorded of its key, and what is recorded of its run.
//!
//! The job is not ordered before the key's facts were read to an end that was asked for after the claim had taken effect, and
//! before that the run begins was recorded and acknowledged. Its outcome is recorded and acknowledged before the term is released.
//! What it decides does not touch the journal's law: who leads is the candidate's to say.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;

use crate::candidate;
use crate::fact::{Fact, Facts, Outcome};
use crate::record::{Body, MemberId, Offset};
use crate::supervisor::RunEnd;
use crate::time::Time;

/// Between two attempts to record an outcome.
const RETRY: Duration = Duration::from_secs(1);

/// What is to be done once, by whom.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Policy {
    /// `--once`: the key.
    pub key: Box<str>,
    /// `--retries`: so many runs that failed are followed by another, counted across machines.
    pub retries: u32,
    /// `--done-status`: with what those exit who find the key done.
    pub done_status: u8,
    /// The leader's lease: a fact that can't be read or written within half of it is not waited for.
    pub lease: Duration,
}

/// Why the job is not run.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Skip {
    /// What was found.
    pub fact: Fact,
    /// What to exit with.
    pub status: u8,
}

/// Things to do.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// Record this fact, and report what becomes of it under this number.
    Append {
        /// The number.
        id: u32,
        /// The fact; the writer's wall clock is filled in.
        fact: Fact,
    },
    /// Whether a vacancy may be claimed.
    HoldClaims(bool),
    /// Nothing of the job runs, and the outcome of its run is recorded, or can't be: the term ends.
    Finish {
        /// Another run of the key may follow.
        again: bool,
    },
    /// Say so.
    Note(Note),
    /// Read the key's facts to an end that is asked for from now on; whatever was read before under another number is dropped.
    Read {
        /// The number.
        id: u32,
    },
    /// The job may be started, under the term that is led.
    Run,
    /// Go for good: the job is not to be run.
    Skip,
    /// The facts can't be read or written: let another lead.
    StandDown,
}

/// What a person is told.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Note {
    /// The job is not run, and why.
    Skipped(Skip),
    /// The facts can't be read or written, and nothing runs because of it.
    Unavailable(Box<str>),
    /// The run's outcome could not be recorded yet.
    NotRecorded(Box<str>),
}

/// One candidate's key.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Once {
    policy: Policy,
    member: MemberId,
    name: Box<str>,
    /// What is known of the key: by its facts, by releases, and by own runs.
    known: Facts,
    phase: Phase,
    /// The number of the last reading or append.
    last_id: u32,
    /// Why the facts could not be read or written lately.
    trouble: Option<Box<str>>,
    actions: VecDeque<Action>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Phase {
    /// It does not lead, and claims nothing before the facts were read.
    Asking { read: u32 },
    /// It leads, and the fact that the run begins is on its way.
    Announcing { id: u32, fact: Fact, until: Time },
    /// The job may run.
    Running { fact: Fact },
    /// It leads, and the facts are read.
    Reading { read: u32, term: Offset, until: Time },
    /// Nothing of the job is left, and its outcome is on its way.
    Recording { id: u32, fact: Fact, again_at: Option<Time>, stop_by: Option<Time> },
    /// The outcome was recorded, or is no longer waited for; the term is to be released.
    Recorded { fact: Fact },
    /// It does not lead, and may claim.
    StandingBy,
    /// It goes, or lets another lead.
    Leaving,
}

impl Once {
    /// That of a candidate that has just begun.
    pub(crate) fn new(policy: Policy, member: MemberId, name: Box<str>) -> Self {
        let mut once = Self {
            policy,
            member,
            name,
            known: Facts::default(),
            phase: Phase::StandingBy,
            last_id: 0,
            trouble: None,
            actions: VecDeque::new(),
        };
        once.ask();
        once
    }

    pub(crate) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    pub(crate) const fn poll_timeout(&self) -> Option<Time> {
        match self.phase {
            Phase::Announcing { until, .. } | Phase::Reading { until, .. } => Some(until),
            Phase::Recording { again_at: Some(again_at), stop_by: None, .. } => Some(again_at),
            Phase::Recording { again_at: None, stop_by, .. } => stop_by,
            Phase::Recording { again_at: Some(again_at), stop_by: Some(stop_by), .. } => {
                Some(if again_at.as_nanos() < stop_by.as_nanos() { again_at } else { stop_by })
            }
            Phase::Asking { .. }
            | Phase::Leaving
            | Phase::Recorded { .. }
            | Phase::Running { .. }
            | Phase::StandingBy => None,
        }
    }

    /// Does what is due by now. Early calls do nothing.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        match &mut self.phase {
            Phase::Announcing { until, .. } | Phase::Reading { until, .. } if now >= *until => self.give_up(),
            Phase::Recording { stop_by: Some(by), .. } if now >= *by => self.finish(),
            Phase::Recording { again_at, fact, id, .. } if again_at.is_some_and(|at| now >= at) => {
                *again_at = None;
                self.last_id += 1;
                *id = self.last_id;
                self.actions.push_back(Action::Append { id: *id, fact: fact.clone() });
            }
            Phase::Announcing { .. }
            | Phase::Asking { .. }
            | Phase::Leaving
            | Phase::Reading { .. }
            | Phase::Recorded { .. }
            | Phase::Recording { .. }
            | Phase::Running { .. }
            | Phase::StandingBy => {}
        }
    }

    /// The claim has taken effect: the facts that count are those that are read from now on.
    pub(crate) fn led(&mut self, now: Time, term: Offset) {
        let read = self.read();
        self.phase = Phase::Reading { read, term, until: now + self.policy.lease / 2 };
    }

    /// The facts were read to the end that was asked for.
    pub(crate) fn was_read(&mut self, now: Time, id: u32, facts: Facts) {
        match self.phase {
            Phase::Asking { read } if read == id => {
                self.learn(facts);
                if !self.skip_if_settled() {
                    self.phase = Phase::StandingBy;
                    self.actions.push_back(Action::HoldClaims(false));
                }
            }
            Phase::Reading { read, term, until } if read == id => {
                if facts.is_unreadable() {
                    self.trouble = Some("a record of this key is none that this version can read".into());
                    return self.give_up();
                }
                self.learn(facts);
                if !self.skip_if_settled() {
                    self.announce(now, term, until);
                }
            }
            Phase::Announcing { .. }
            | Phase::Asking { .. }
            | Phase::Leaving
            | Phase::Reading { .. }
            | Phase::Recorded { .. }
            | Phase::Recording { .. }
            | Phase::Running { .. }
            | Phase::StandingBy => {}
        }
    }

    /// Why a reading has not come to its end yet. It is tried again.
    pub(crate) fn can_not_read(&mut self, error: Box<str>) {
        let is_new = self.trouble.as_ref() != Some(&error);
        self.trouble = Some(error.clone());
        if is_new && matches!(self.phase, Phase::Asking { .. }) {
            self.actions.push_back(Action::Note(Note::Unavailable(error)));
        }
    }

    /// A fact was acknowledged.
    pub(crate) fn was_appended(&mut self, id: u32) {
        match &self.phase {
            Phase::Announcing { id: awaited, fact, .. } if *awaited == id => {
                self.phase = Phase::Running { fact: fact.clone() };
                self.actions.push_back(Action::Run);
            }
            Phase::Recording { id: awaited, .. } if *awaited == id => self.finish(),
            Phase::Announcing { .. }
            | Phase::Asking { .. }
            | Phase::Leaving
            | Phase::Reading { .. }
            | Phase::Recorded { .. }
            | Phase::Recording { .. }
            | Phase::Running { .. }
            | Phase::StandingBy => {}
        }
    }

    /// A fact was not acknowledged, or refused; it may be in the topic all the same.
    pub(crate) fn was_not_appended(&mut self, now: Time, id: u32, error: Box<str>) {
        match &mut self.phase {
            Phase::Announcing { id: awaited, .. } if *awaited == id => {
                self.trouble = Some(error);
                self.give_up();
            }
            Phase::Recording { id: awaited, again_at, .. } if *awaited == id => {
                *again_at = Some(now + RETRY);
                self.actions.push_back(Action::Note(Note::NotRecorded(error)));
            }
            Phase::Announcing { .. }
            | Phase::Asking { .. }
            | Phase::Leaving
            | Phase::Reading { .. }
            | Phase::Recorded { .. }
            | Phase::Recording { .. }
            | Phase::Running { .. }
            | Phase::StandingBy => {}
        }
    }

    /// The job has ended by itself, and nothing of it is left.
    pub(crate) fn run_ended(&mut self, end: RunEnd) {
        let Phase::Running { fact } = &self.phase else { return };
        let outcome = if end.status == 0 { Outcome::Done } else { Outcome::Failed };
        let ran_ms = u64::try_from(end.ran.as_millis()).ok();
        let fact = Fact { outcome, exit: Some(end.status), ran_ms, ..fact.clone() };
        let told = Some(fact.clone());
        self.learn(match outcome {
            Outcome::Done => Facts { done: told, ..Facts::default() },
            Outcome::Failed | Outcome::Running => Facts { attempt: told, ..Facts::default() },
        });
        let id = self.next_id();
        self.actions.push_back(Action::Append { id, fact: fact.clone() });
        self.phase = Phase::Recording { id, fact, again_at: None, stop_by: None };
    }

    /// The candidate stands down. Whether that has to wait until the outcome is recorded; for a lease at most.
    pub(crate) fn holds_back_stop(&mut self, now: Time) -> bool {
        let Phase::Recording { stop_by, .. } = &mut self.phase else { return false };
        stop_by.get_or_insert(now + self.policy.lease);
        true
    }

    /// Nothing of the job is left, and none will be started under the term. Gives the key, if the term's run has an outcome that
    /// the release is to carry.
    pub(crate) fn term_is_over(&mut self, is_leaving: bool) -> Option<Box<str>> {
        let has_outcome = matches!(self.phase, Phase::Recorded { .. } | Phase::Recording { .. });
        if !is_leaving && self.phase != Phase::Leaving {
            self.ask();
        }
        has_outcome.then(|| self.policy.key.clone())
    }

    /// What another's release tells of the key's run.
    pub(crate) fn is_told_by(&self, event: &candidate::Event) -> Option<Fact> {
        let candidate::Event::Read { record: Some(record), .. } = event else { return None };
        let Body::Release { term, exit: Some(exit), once: Some(key), .. } = &record.body else { return None };
        let is_anothers = record.member.as_ref() != Some(&self.member);
        (is_anothers && *key == self.policy.key).then(|| Fact {
            key: key.clone(),
            outcome: if *exit == 0 { Outcome::Done } else { Outcome::Failed },
            term: *term,
            member: record.member.clone(),
            name: record.name.clone(),
            exit: Some(*exit),
            attempt: 1,
            ran_ms: None,
            at_ms: None,
        })
    }

    /// That release is effective. What is recorded of the run is read before anything is claimed.
    pub(crate) fn was_released(&mut self, fact: Fact) {
        if fact.outcome == Outcome::Done {
            self.learn(Facts { done: Some(fact), ..Facts::default() });
        }
        // How many runs have failed before, the facts alone tell.
        if self.phase == Phase::StandingBy {
            self.ask();
        }
    }

    /// Why the job is not to be run, by all that is known.
    fn skip(&self) -> Option<Skip> {
        if let Some(fact) = &self.known.done {
            // The runner's own exit status is its job's.
            let is_own = fact.member.as_ref() == Some(&self.member);
            let status = if is_own { 0 } else { self.policy.done_status };
            return Some(Skip { fact: fact.clone(), status });
        }
        let failed = self.known.attempt.as_ref().filter(|fact| fact.outcome == Outcome::Failed)?;
        let status = failed.exit.unwrap_or(1);
        (failed.attempt > self.policy.retries).then(|| Skip { fact: failed.clone(), status })
    }

    /// What is exited with by whoever goes since the job is not to be run.
    pub(crate) fn skipped(&self) -> Option<u8> {
        if self.phase == Phase::Leaving { self.skip().map(|skip| skip.status) } else { None }
    }

    /// Whether nothing may be claimed before the facts were read.
    pub(crate) const fn holds_claims(&self) -> bool {
        matches!(self.phase, Phase::Asking { .. } | Phase::Leaving)
    }

    fn announce(&mut self, now: Time, term: Offset, until: Time) {
        let attempt = match &self.known.attempt {
            Some(Fact { outcome: Outcome::Failed, attempt, .. }) => attempt.saturating_add(1),
            // It died, or was stopped: that is no failure.
            Some(Fact { attempt, .. }) => *attempt,
            None => 1,
        };
        let fact = Fact {
            key: self.policy.key.clone(),
            outcome: Outcome::Running,
            term,
            member: Some(self.member.clone()),
            name: Some(self.name.clone()),
            exit: None,
            attempt,
            ran_ms: None,
            at_ms: None,
        };
        let id = self.next_id();
        self.actions.push_back(Action::Append { id, fact: fact.clone() });
        self.phase = Phase::Announcing { id, fact, until: until.max(now) };
    }

    /// The outcome is recorded, or is not waited for any longer.
    fn finish(&mut self) {
        let Phase::Recording { fact, .. } = &self.phase else { return };
        self.phase = Phase::Recorded { fact: fact.clone() };
        let again = self.skip().is_none();
        self.actions.push_back(Action::Finish { again });
    }

    fn give_up(&mut self) {
        let why = self.trouble.clone().unwrap_or_else(|| "Kafka has not answered".into());
        self.actions.push_back(Action::Note(Note::Unavailable(why)));
        self.actions.push_back(Action::StandDown);
        self.phase = Phase::StandingBy;
    }

    fn skip_if_settled(&mut self) -> bool {
        let Some(skip) = self.skip() else { return false };
        self.phase = Phase::Leaving;
        self.actions.push_back(Action::Note(Note::Skipped(skip)));
        self.actions.push_back(Action::Skip);
        true
    }

    /// Of a place, the fact of the highest term counts; of one term's, the outcome, and of two of these the one that tells more.
    fn learn(&mut self, facts: Facts) {
        let newest = |known: Option<Fact>, fact: Option<Fact>| {
            let rank = |fact: &Fact| (fact.term, fact.outcome != Outcome::Running, fact.at_ms.is_some());
            known.into_iter().chain(fact).max_by_key(rank)
        };
        self.known.done = newest(self.known.done.take(), facts.done);
        self.known.attempt = newest(self.known.attempt.take(), facts.attempt);
    }

    /// Nothing is claimed before the facts were read.
    fn ask(&mut self) {
        self.actions.push_back(Action::HoldClaims(true));
        let read = self.read();
        self.phase = Phase::Asking { read };
    }

    fn read(&mut self) -> u32 {
        let id = self.next_id();
        self.trouble = None;
        self.actions.push_back(Action::Read { id });
        id
    }

    fn next_id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }
}
