//! The topic of facts: the facts under way, the recorded ones, and whether the key's run has succeeded.

use std::collections::BTreeSet;
use std::hash::Hash;

use neli_proto::fact::{Fact, Facts, Outcome};
use neli_proto::node::FactsEvent;
use neli_proto::record::{Body, Offset, Record, Why};
use neli_proto::schedule::CatchUp;

use super::{Breach, World};
use crate::machine::Input;
use crate::setup::{Occasion, Who};
use crate::step::Step;

/// The topic and the facts under way.
#[derive(Clone, Default, Hash)]
pub(super) struct FactsTopic {
    log: Vec<Fact>,
    pub(super) flying: Vec<FactFlight>,
    success: Option<Success>,
    /// The terms whose runs have failed.
    failed: BTreeSet<Offset>,
    /// The journal's end when a success was first recorded. The writer of every later claim has to know the success.
    recorded_below: Option<Offset>,
    /// The last forgetting of the key. Runs before it no longer count.
    forgotten: Option<Fact>,
}

/// A fact under way.
#[derive(Clone, Hash)]
pub(super) struct FactFlight {
    /// The machine that sent it; `None` for an operator.
    from: Option<Who>,
    id: u32,
    fact: Fact,
    pub(super) delayed: bool,
}

/// A run that has succeeded.
#[derive(Clone, Copy, Hash)]
struct Success {
    by: Who,
    term: Offset,
    /// How often the key had been forgotten when the run began.
    forgets: u32,
    /// Whether its runner got the acknowledgement within its lease. Then no other run may follow.
    recorded: bool,
    /// Whether its runner died, or lost its lease, before that. Then another run may follow.
    excused: bool,
}

impl FactsTopic {
    /// The next offset.
    fn end(&self) -> Offset {
        Offset::try_from(self.log.len()).unwrap_or(Offset::MAX)
    }

    /// How many times the key was forgotten.
    pub(super) fn forgets(&self) -> u32 {
        self.forgotten.as_ref().map_or(0, |forgotten| forgotten.forgets)
    }

    /// Whether the key was not forgotten after that run. The world has its own rule, so that a wrong rule of the program is noticed.
    fn counts(&self, fact: &Fact) -> bool {
        let is_later = |forgotten: &Fact| fact.forgets >= forgotten.forgets || fact.term > forgotten.term;
        self.forgotten.as_ref().is_none_or(is_later)
    }

    /// Handles that the record of the forgetting has reached the topic. Runs may follow again.
    fn forget(&mut self, forgotten: Fact) {
        let is_about = |success: &Success| success.forgets < forgotten.forgets && success.term <= forgotten.term;
        if self.success.as_ref().is_none_or(is_about) {
            (self.success, self.recorded_below) = (None, None);
        }
        self.failed.retain(|term| *term > forgotten.term);
        self.forgotten = Some(forgotten);
    }
}

impl World {
    /// Passes a machine's facts to its producer.
    pub(super) fn send_facts(&mut self, who: Who, facts: &[(u32, Fact)]) {
        for (id, fact) in facts {
            if fact.outcome == Outcome::Done && self.facts.counts(fact) {
                let Fact { term, forgets, .. } = *fact;
                let success = Success { by: who, term, forgets, recorded: false, excused: false };
                self.facts.success.get_or_insert(success);
            } else if fact.outcome == Outcome::Failed {
                self.facts.failed.insert(fact.term);
            }
            self.facts.flying.push(FactFlight { from: Some(who), id: *id, fact: fact.clone(), delayed: false });
        }
    }

    pub(super) fn append_fact(&mut self, flight: usize) {
        let FactFlight { from, id, fact, .. } = self.facts.flying.remove(flight);
        if fact.outcome == Outcome::Done && self.facts.counts(&fact) {
            self.facts.recorded_below.get_or_insert(self.log.part.end());
        }
        let offset = self.facts.end();
        self.facts.log.push(fact.clone());
        if fact.outcome == Outcome::Forgotten {
            self.facts.forget(fact);
        }
        if let Some(from) = from {
            self.tell(from, Input::FactAppended { id, offset });
        }
    }

    /// Sends the last fact twice, so that it may arrive a second time at any moment.
    pub(crate) fn send_last_fact_again(&mut self) {
        let again = self.facts.log.last().cloned();
        self.facts.flying.extend(again.map(|fact| FactFlight { from: None, id: 0, fact, delayed: true }));
    }

    /// How many times the key may still be forgotten.
    pub(crate) const fn forgets_left(&self) -> u8 {
        self.faults.forgets
    }

    /// How many jobs may still end by themselves.
    pub(crate) const fn exits_left(&self) -> u8 {
        self.faults.exits
    }

    /// Hands a machine the facts of the key in the topic, but the last ones.
    pub(super) fn hand_facts(&mut self, who: Who, without: usize) {
        let facts = Box::new(self.facts_of_key(without));
        self.tell(who, Input::FactsRead { end: self.facts.end() - i64::from(without > 0), facts });
    }

    /// Whether there is a fact that a broker may lack.
    pub(super) const fn has_old_facts(&self) -> bool {
        !self.facts.log.is_empty()
    }

    /// The facts of the key in the topic, but the last ones.
    fn facts_of_key(&self, without: usize) -> Facts {
        let mut facts = Facts::default();
        let before = self.setup.once.and_then(Occasion::recorded);
        let log = &self.facts.log[..self.facts.log.len() - without];
        for fact in before.iter().chain(log) {
            facts.take(fact.place(), Some(&fact.to_bytes()));
        }
        facts
    }

    /// Lets an operator read the facts and the journal's end, and then send the record of the forgetting (`neli-run forget --force`).
    pub(super) fn forget(&mut self) {
        let facts = self.facts_of_key(0);
        let known = || [&facts.done, &facts.attempt, &facts.forgotten].into_iter().flatten();
        let Some(example) = known().next() else { return };
        let fact = Fact {
            outcome: Outcome::Forgotten,
            term: known().map(|fact| fact.term).fold(self.log.part.end() - 1, Offset::max),
            member: None,
            name: None,
            exit: None,
            attempt: 1,
            forgets: known().map(|fact| fact.forgets).max().unwrap_or_default() + 1,
            ..example.clone()
        };
        self.facts.flying.push(FactFlight { from: None, id: 0, fact, delayed: false });
    }

    /// The breach if a machine exits because the key needs no run, although it needs one.
    pub(super) fn skips_wrongly(&self, who: Who, skips: bool) -> Option<Breach> {
        let began_after = self.machine(who)?.forgets_at_begin > 0;
        (skips && began_after && self.facts.success.is_none()).then_some(Breach::KeptForgotten)
    }

    /// The effect of the next step on a successful run.
    pub(super) fn look_after_success(&mut self, step: Step) {
        if let Step::Crash(who) | Step::Die(who) | Step::KillGuard(who) = step {
            self.excuse(who);
        } else if let Step::Receive(who) = step {
            self.note_recorded(who);
        }
    }

    /// Notes whether a machine that is about to read a delivery report gets the report of its success within its lease.
    fn note_recorded(&mut self, who: Who) {
        let holds = |term| {
            self.machine(who).is_some_and(|machine| {
                let is_reported = matches!(machine.facts_events.front(), Some(FactsEvent::Appended { .. }));
                let lease_end = machine.node.status(self.now).lease_end;
                is_reported && machine.node.leads() == Some(term) && lease_end.is_some_and(|end| self.now < end)
            })
        };
        if let Some(success) = self.facts.success.filter(|success| success.by == who && holds(success.term)) {
            self.facts.success = Some(Success { recorded: true, ..success });
        }
    }

    /// Notes that a fault has affected a machine or its guard.
    fn excuse(&mut self, who: Who) {
        if let Some(success) = self.facts.success.as_mut().filter(|success| success.by == who) {
            success.excused |= !success.recorded;
        }
    }

    /// Handles a release that reports a lost lease.
    pub(super) fn excuse_the_fenced(&mut self, who: Who, record: &Record) {
        let lost = [Why::Fenced, Why::GuardDied].map(Why::as_str);
        if let Body::Release { why: Some(why), .. } = &record.body
            && lost.contains(&&**why)
        {
            self.excuse(who);
        }
    }

    /// The breach if a machine's job is alive after a successful run, and no fault excuses that. No fault excuses a job whose claim
    /// came after the record of the success. The same applies if so many runs have failed that none may follow.
    pub(super) fn runs_again(&self, who: Who) -> Option<Breach> {
        let living = self.machine(who)?.guard.living_term()?;
        if matches!(self.setup.once, Some(Occasion::Schedule(_, CatchUp::None))) {
            return Some(Breach::RanAgain);
        }
        let retries = self.setup.once.map_or(0, Occasion::retries);
        let are_used_up = u32::try_from(self.facts.failed.len()).is_ok_and(|failed| failed > retries);
        if are_used_up && self.facts.failed.last().is_some_and(|last| living > *last) {
            return Some(Breach::RanAgain);
        }
        if self.facts.recorded_below.is_some_and(|end| living >= end) {
            return Some(Breach::RanAgain);
        }
        let success = self.facts.success.filter(|success| !success.excused)?;
        let was_released = self.machine(success.by).is_some_and(|runner| runner.released == success.term);
        (living > success.term && (success.recorded || was_released)).then_some(Breach::RanAgain)
    }
}
