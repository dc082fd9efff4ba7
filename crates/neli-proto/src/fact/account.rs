//! What the facts of a key, or of an election's windows, tell of all runs. It is only displayed: no rule looks at it.

use alloc::boxed::Box;

use serde::{Deserialize, Serialize};

use super::{Fact, Facts, Outcome};
use crate::window::Span;

/// The runs of a key, or of an election's windows, up to a fact that contains this. So it outlives the process and the facts of other runs.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(default)]
pub struct Account {
    /// The number of runs that have ended by themselves.
    pub runs: u32,
    /// The number of those that have failed.
    pub failures: u32,
    /// The last one that has succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success: Option<Success>,
    /// `--schedule`, as it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Box<str>>,
    /// Its `--timezone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<Box<str>>,
}

/// A run that has succeeded.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Success {
    /// Its window, if it was for one.
    #[serde(flatten)]
    pub window: Option<Span>,
    /// When that was recorded, in milliseconds since 1970 by the writer's wall clock.
    pub at_ms: Option<u64>,
    /// The name of the candidate.
    pub by: Option<Box<str>>,
}

impl Account {
    /// The runs up to this fact, and its own.
    #[must_use]
    pub fn of(fact: &Fact) -> Self {
        let own = (fact.outcome == Outcome::Done).then(|| Success::of(fact));
        Self { success: own.or_else(|| fact.account.success.clone()), ..fact.account.clone() }
    }

    fn add(&mut self, other: Self) {
        let at = |success: &Option<Success>| success.as_ref().map(|success| success.at_ms);
        (self.runs, self.failures) = (self.runs.max(other.runs), self.failures.max(other.failures));
        if at(&self.success) < at(&other.success) {
            self.success = other.success;
        }
    }
}

impl Success {
    fn of(fact: &Fact) -> Self {
        Self { window: fact.window, at_ms: fact.at_ms, by: fact.name.clone() }
    }
}

/// The runs as far as a candidate knows them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Runs {
    /// All runs.
    pub account: Account,
    /// The last run that has ended by itself.
    pub last: Option<Fact>,
}

impl Runs {
    /// Adds what was read.
    pub fn read(&mut self, facts: &Facts) {
        for fact in facts.runs() {
            self.account.add(Account::of(fact));
            let is_later = self.last.as_ref().is_none_or(|last| last.at_ms < fact.at_ms);
            if has_ended(fact) && is_later {
                self.last = Some(fact.clone());
            }
        }
    }

    /// Completes a fact that is about to be written, and adds it. A fact that is written again counts once.
    #[must_use]
    pub fn written(&mut self, fact: Fact) -> Fact {
        let is_again = |last: &Fact| (&last.member, last.term, last.seq) == (&fact.member, fact.term, fact.seq);
        if has_ended(&fact) && !self.last.as_ref().is_some_and(is_again) {
            self.account.runs = self.account.runs.saturating_add(1);
            let has_failed = fact.outcome == Outcome::Failed;
            self.account.failures = self.account.failures.saturating_add(has_failed.into());
            if !has_failed {
                self.account.success = Some(Success::of(&fact));
            }
            self.last = Some(fact.clone());
        }
        // Its own success stands in the fact already.
        let success = self.account.success.clone().filter(|_| fact.outcome != Outcome::Done);
        Fact { account: Account { success, ..self.account.clone() }, ..fact }
    }
}

const fn has_ended(fact: &Fact) -> bool {
    matches!(fact.outcome, Outcome::Done | Outcome::Failed)
}

#[cfg(test)]
mod tests {
    use super::super::tests::fact;
    use super::*;

    fn at(outcome: Outcome, number: u64, seq: u32) -> Fact {
        let window = Some(Span { from_ms: number * 10, until_ms: (number + 1) * 10 });
        let exit = if outcome == Outcome::Failed { Some(3) } else { None };
        Fact { window, at_ms: Some(number * 10 + 5), seq, exit, ..fact(outcome, 42) }
    }

    /// Two processes write one after the other. The second one reads what the first one wrote, as it is kept: one fact at each place.
    #[test]
    fn runs_are_counted_across_processes_and_the_last_success_is_kept() {
        let (mut log, mut first) = (Facts::default(), Runs::default());
        let mut write = |runs: &mut Runs, fact: Fact| {
            let fact = runs.written(fact);
            log.take(fact.place(), Some(&fact.to_bytes()));
            log.clone()
        };
        for (outcome, number, seq) in
            [(Outcome::Running, 1, 1), (Outcome::Done, 1, 2), (Outcome::Running, 2, 3), (Outcome::Failed, 2, 4)]
        {
            write(&mut first, at(outcome, number, seq));
        }
        // Its acknowledgement was lost.
        let kept = write(&mut first, at(Outcome::Failed, 2, 4));
        let mut second = Runs::default();
        second.read(&kept);
        assert_eq!((second.account.runs, second.account.failures), (2, 1));
        assert_eq!(second.last.as_ref().and_then(|last| last.exit), Some(3));
        let success = second.account.success.clone().unwrap();
        assert_eq!((success.window, success.at_ms), (at(Outcome::Done, 1, 2).window, Some(15)));
        // A window that is skipped stands at the place of the success.
        let skipped = Fact { term: 57, ..at(Outcome::Skipped, 3, 1) };
        let kept = write(&mut second, skipped);
        let last = kept.done.as_ref().map(Account::of).unwrap();
        assert_eq!((last.runs, last.failures, last.success), (2, 1, Some(success)));
    }

    #[test]
    fn facts_of_a_version_without_it_count_as_they_are() {
        let mut runs = Runs::default();
        runs.read(&Facts { done: Some(at(Outcome::Done, 4, 0)), ..Facts::default() });
        assert_eq!((runs.account.runs, runs.account.success.and_then(|success| success.at_ms)), (0, Some(45)));
    }
}
