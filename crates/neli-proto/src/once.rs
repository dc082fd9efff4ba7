//! `--once`, `--window` and `--schedule`: decides by the facts of a key whether a lead runs the job, and which facts of its run are
//! recorded. The job is ordered only after two steps: the key's facts were read up to an end that was asked for after the claim took
//! effect, and the fact `running` was acknowledged there (K2). The outcome is acknowledged before the term is released (K3). These decisions do
//! not change the journal's law: only the candidate decides who leads.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;

use crate::action::{Action, EndedRun, Ending};
use crate::candidate;
use crate::fact::{self, Fact, Facts, FactsEvent, Outcome, Place};
use crate::kafka::Request;
use crate::note::Note;
use crate::record::{Body, KeyedRun, MemberId, Offset, Why};
use crate::reminder::INTERVAL;
use crate::restart::doubled;
use crate::schedule::{CatchUp, Schedule};
use crate::supervisor::{Wanted, WantedState};
use crate::time::{Span, Time, Window, millis};

mod scheduled;

/// The time from a claim until the facts are read, and the wall clock with them, is shorter than this: a minute.
const CLAIM_TAKES_MS: u64 = 60_000;

/// The pause between two attempts to record an outcome.
const RETRY: Duration = Duration::from_secs(1);

/// One candidate's key.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct Once {
    policy: Policy,
    /// The candidate's lease.
    lease: Duration,
    member: MemberId,
    name: Option<Box<str>>,
    /// The facts of the key, from the topic, from releases and from own runs.
    known: Facts,
    /// The journal's end when the candidate first asked for it.
    first_end: Option<Offset>,
    /// The key in the last release below that end that contains one.
    named_before: Option<Box<str>>,
    /// Whether the topic of facts was missing, and this candidate created it.
    facts_are_new: bool,
    /// Whether the topic of facts was read: it was there.
    facts_were_there: bool,
    /// When Kafka took this candidate's last claim, by the record's timestamp.
    claimed_ms: Option<u64>,
    /// `--window` and `--schedule`: the window of the wall clock.
    shown: Option<Span>,
    /// The term that is held, until nothing of its job is left.
    term: Option<Offset>,
    /// `--schedule`: the state of the schedule.
    scheduled: Option<Schedule>,
    /// The start of the next window, as last reported; it is reported after the fact about a skipped one is recorded.
    told: Option<u64>,
    /// `--schedule`: the key and the term of the last run in a release.
    released: Option<(Box<str>, Offset)>,
    phase: Phase,
    /// The number of the reading, or of the fact, whose result the phase awaits; 0 if it awaits none.
    awaited: u32,
    /// When the phase reads or sends again. An outcome, or a fact about skipped windows, is sent again if it was refused or not acknowledged in time.
    again_at: Option<Time>,
    /// Until when the phase awaits its result. An outcome is awaited for ever, unless the candidate is to stop.
    until: Option<Time>,
    /// The end to which the facts were read in this lead, until it is known that nothing had been appended beyond it: the broker that answered may
    /// not be the partition's leader any more.
    unconfirmed_end: Option<Offset>,
    /// The number of the last reading or append.
    last_id: u32,
    /// When it was last reported that a fact is not recorded yet.
    reported_at: Option<Time>,
    /// The last error while reading or writing facts.
    trouble: Option<Box<str>>,
    /// Since when no fact has been acknowledged, or when the producer was renewed for that reason.
    unacknowledged_since: Option<Time>,
    /// How many leads in a row were given up because an answer about facts did not come in time.
    late_answers: u32,
    /// How many of this candidate's runs could not be started.
    not_started: u32,
    /// Why the candidate is to stand down, and whether for good.
    stands_down: Option<(Why, bool)>,
    actions: VecDeque<Action>,
}

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
enum Phase {
    /// It does not lead, and claims nothing before it has read the facts (K1). `unrecorded`: the outcome of its last run, if that was not
    /// acknowledged while it led.
    Asking { unrecorded: Option<Fact> },
    /// It leads; the fact `running` was sent and is not acknowledged yet. The topic is looked for once meanwhile.
    Announcing { fact: Fact },
    /// It leads, and the fact `running` was acknowledged at this offset, beyond the end to which the facts were read: they are read again, to an end
    /// beyond it.
    Confirming { fact: Fact, offset: Offset },
    /// The job may run.
    Running { fact: Fact },
    /// It leads, and reads the facts.
    Reading { term: Offset },
    /// The job has ended, and the fact with its outcome was sent and is not acknowledged yet. If it no longer `leads`, it claims nothing before
    /// that (K3).
    Recording { fact: Fact, leads: bool },
    /// The outcome was recorded or given up; the term must be released, for this reason.
    Recorded { why: Option<Why>, is_acknowledged: bool },
    /// It does not lead, and may claim.
    #[default]
    StandingBy,
    /// It exits, or lets another candidate lead.
    Leaving,
    /// `--schedule`: it leads and waits for the next window. `skip`: a fact that a window is over without a run, which is not recorded yet.
    Waiting { term: Offset, skip: Option<Fact> },
}

impl Once {
    /// The state of a candidate that has just begun.
    pub(crate) fn new(policy: Policy, lease: Duration, member: MemberId, name: Option<Box<str>>) -> Self {
        let mut once = Self {
            shown: policy.window,
            scheduled: policy.schedule.map(Schedule::new),
            policy,
            lease,
            member,
            name,
            ..Self::default()
        };
        if once.scheduled.is_none() {
            once.ask(None);
        }
        once
    }

    #[must_use]
    pub(crate) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Why the candidate is to stand down, and whether for good: the job must not be run, the facts can't be read or written, or the run's
    /// outcome is recorded or given up. Returned once.
    pub(crate) fn take_stand_down(&mut self) -> Option<(Why, bool)> {
        self.stands_down.take()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        [self.again_at, self.until].into_iter().flatten().min()
    }

    /// Performs what is due at `now`. An early call does nothing.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if self.until.is_some_and(|until| now >= until) {
            if let Phase::Recording { .. } = self.phase {
                self.finish(now, false);
            } else {
                self.late_answers += 1;
                self.give_up(now);
            }
        } else if self.again_at.take_if(|at| now >= *at).is_some() {
            if let Phase::Announcing { .. } = self.phase {
                self.read();
            } else if let Phase::Confirming { .. } = self.phase {
                self.awaited = self.read();
            } else {
                self.append_again();
            }
        }
    }

    /// Enters a phase, which awaits nothing yet.
    fn enter(&mut self, phase: Phase) {
        (self.phase, self.awaited, self.again_at, self.until) = (phase, 0, None, None);
    }

    /// What a candidate wants of its job, as far as the facts allow it (K2). While an outcome is recorded, which takes a lease at most, the job
    /// ends by itself before it is stopped (K3).
    pub(crate) fn allowed(&mut self, now: Time, wanted: Wanted) -> Wanted {
        if self.term != Some(wanted.grant.term) {
            self.led(now, wanted.grant.term);
        }
        let state = match (wanted.state, &mut self.phase) {
            (WantedState::Run, Phase::Running { fact }) => {
                WantedState::RunOnce { id: fact.seq, window: self.policy.window, attempt: fact.attempt }
            }
            (WantedState::Run, _) => WantedState::Hold { waits: self.is_waiting() && self.next_window_ms().is_some() },
            (WantedState::Stop { by: None, .. }, Phase::Recording { .. }) => {
                self.until.get_or_insert(now + self.lease);
                WantedState::Hold { waits: false }
            }
            (WantedState::Stop { why, by }, Phase::Recorded { why: instead, .. }) => {
                WantedState::Stop { why: instead.unwrap_or(why), by }
            }
            (state, _) => state,
        };
        Wanted { state, ..wanted }
    }

    /// Handles that the claim took effect: only facts that are read from now on count (K2, S1).
    fn led(&mut self, now: Time, term: Offset) {
        self.term = Some(term);
        self.enter(Phase::Reading { term });
        (self.awaited, self.until) = (self.read(), Some(self.end_of_wait(now)));
    }

    /// Handles an event in the topic of facts.
    pub(crate) fn handle(&mut self, now: Time, event: FactsEvent) {
        match event {
            FactsEvent::Appended { id, offset } => self.fact_appended(now, id, offset),
            FactsEvent::Created => self.facts_were_created(),
            FactsEvent::NotAppended { id, error } => self.fact_not_appended(now, id, error),
            FactsEvent::Read { id, end, facts } => self.facts_read(now, id, end, *facts),
            // For the message if the reading is given up.
            FactsEvent::Reading { progress } => self.trouble = Some(progress),
            FactsEvent::Unread { error } => self.was_not_read(error),
        }
    }

    /// Handles the present window of the wall clock.
    pub(crate) fn window_shown(&mut self, now: Time, window: &Window) {
        self.shown = Some(window.span);
        let is_idle = self.is_waiting();
        if let Some(schedule) = &mut self.scheduled {
            schedule.window_shown(window, is_idle);
            self.follow_schedule(now);
        }
    }

    /// Handles the facts, which were read up to the requested end.
    fn facts_read(&mut self, now: Time, id: u32, end: Offset, facts: Facts) {
        self.facts_were_there = true;
        if id != self.awaited {
            return;
        }
        if let Phase::Asking { unrecorded } = &mut self.phase {
            // Terms alone don't order the runs of windows: a later one may be of an earlier window, or of a clock that was far ahead.
            let is_newest = |own: &Fact| {
                let place = own.place();
                let id = |fact: &Fact| (fact.member.clone(), fact.term, fact.seq);
                let replaces = |found: &Fact| !own.is_older_than(found) && id(own) != id(found);
                !facts.unreadable.contains(&place) && facts.at(place).is_none_or(replaces)
            };
            let unrecorded = unrecorded.take().filter(is_newest);
            self.learn(facts);
            if let Some(fact) = unrecorded {
                self.enter(Phase::Recording { fact, leads: false });
                self.append_again();
            } else if self.scheduled.is_some() || !self.skip_if_settled() {
                self.enter(Phase::StandingBy);
            }
        } else if let Phase::Reading { term } = self.phase {
            if self.is_unreadable(&facts) {
                self.trouble = Some(fact::UNREADABLE.into());
                return self.give_up(now);
            }
            self.unconfirmed_end = Some(end);
            self.learn(facts);
            self.note_clock();
            self.note_disbelieved_facts();
            if self.scheduled.is_some() {
                self.enter(Phase::Waiting { term, skip: None });
                self.begin_schedule(now);
            } else if !self.skip_if_settled() {
                self.announce(now, term, self.until.unwrap_or(now));
            }
        } else if let Phase::Confirming { .. } = self.phase {
            self.confirm(now, end, facts);
        }
    }

    /// Handles the facts that were read once more, after `running` was acknowledged. They must contain it, or else they are not all.
    fn confirm(&mut self, now: Time, end: Offset, mut facts: Facts) {
        let is_unreadable = self.is_unreadable(&facts);
        let Phase::Confirming { fact, offset } = &self.phase else { return };
        if end <= *offset {
            self.again_at = Some(now + RETRY);
            self.trouble = Some("the broker that answers does not have the last facts".into());
            return;
        }
        if is_unreadable {
            self.trouble = Some(fact::UNREADABLE.into());
            return self.give_up(now);
        }
        // Its own fact is no run that was left unfinished.
        facts.attempt.take_if(|found| found.member == fact.member && found.term == fact.term);
        let Fact { seq, term, attempt, .. } = *fact;
        self.unconfirmed_end = None;
        self.learn(facts);
        let begun = self.begun(seq, term);
        let overlooked_failure = begun.attempt > attempt;
        if overlooked_failure {
            self.record_again(&begun);
        }
        if self.scheduled.is_some() && self.skip().is_some() {
            self.enter(Phase::Waiting { term, skip: None });
            self.begin_schedule(now);
        } else if self.scheduled.is_some() || !self.skip_if_settled() {
            // A failure that was read only now must count for all. That the key was forgotten counts for the outcome alone.
            if overlooked_failure {
                self.unconfirmed_end = Some(end);
                self.announce(now, term, self.end_of_wait(now));
            } else {
                self.run(begun);
            }
        }
    }

    /// Records a failure behind the own `running`, if no run follows it: compaction keeps the last record only.
    fn record_again(&mut self, begun: &Fact) {
        let Some(failed) = self.skip().map(|(fact, _)| fact.clone()).filter(|fact| fact.outcome == Outcome::Failed)
        else {
            return;
        };
        let Fact { term, forgets, remakes, .. } = *begun;
        let id = self.next_id();
        let fact = Fact { term, forgets, remakes, seq: id, ..failed };
        self.actions.push_back(Action::AppendFact { id, fact });
    }

    fn run(&mut self, fact: Fact) {
        self.late_answers = 0;
        self.enter(Phase::Running { fact });
    }

    /// Notes why a reading has not reached its end yet; it is repeated.
    fn was_not_read(&mut self, error: Box<str>) {
        let is_new = self.trouble.as_ref() != Some(&error);
        self.trouble = Some(error.clone());
        if is_new && let Phase::Asking { unrecorded } = &self.phase {
            let note = match unrecorded {
                Some(Fact { outcome, .. }) => Note::NotRecorded { outcome: *outcome, leads: false, error },
                None => Note::FactsUnavailable { error },
            };
            self.actions.push_back(Action::Note(note));
        }
    }

    /// Handles the broker's acknowledgement of a fact.
    fn fact_appended(&mut self, now: Time, id: u32, offset: Offset) {
        self.unacknowledged_since = None;
        // What was appended at that end shows that nothing stood beyond it.
        self.unconfirmed_end.take_if(|end| *end == offset);
        if id != self.awaited {
            return;
        }
        if let Phase::Announcing { fact } = &self.phase {
            let fact = fact.clone();
            if self.unconfirmed_end.is_none() {
                self.run(fact);
            } else {
                self.enter(Phase::Confirming { fact, offset });
                (self.awaited, self.until) = (self.read(), Some(self.end_of_wait(now)));
            }
        } else if let Phase::Recording { .. } = self.phase {
            self.finish(now, true);
        } else if let Phase::Waiting { skip, .. } = &mut self.phase {
            (*skip, self.reported_at) = (None, None);
            self.note_waiting();
        }
    }

    /// Handles a fact that was refused or not acknowledged; it may still be in the topic.
    fn fact_not_appended(&mut self, now: Time, id: u32, error: Box<str>) {
        if id != self.awaited {
            return;
        }
        if let Phase::Announcing { .. } = self.phase {
            self.trouble = Some(error);
            self.give_up(now);
        } else if let Some(outcome) = self.sent().map(|fact| fact.outcome) {
            self.again_at = Some(now + RETRY);
            if self.renew_producer_if_stale(now) {
                // Only a reading notices that the topic is missing, and creates it.
                self.read();
            }
            self.note_if_not_recorded(now, outcome, error);
        }
    }

    /// Handles that the job's run of this number ended by itself, and no process of it is left (K3). One that could not be started has no
    /// outcome, since another machine may be able to run the job. As often as a run that fails is repeated, this candidate tries again.
    pub(crate) fn run_ended(&mut self, number: u32, run: EndedRun) {
        let Phase::Running { fact } = &self.phase else { return };
        if fact.seq != number {
            return;
        }
        if !run.started {
            self.not_started += 1;
            let again = self.scheduled.is_some() || self.not_started <= self.policy.retries;
            self.enter(Phase::StandingBy);
            return self.stand_down(if again { Why::Failed } else { Why::Exited }, !again);
        }
        let status = run.status.code();
        let outcome = if status == 0 { Outcome::Done } else { Outcome::Failed };
        let ran_ms = Some(millis(run.ran));
        let fact = fact.clone();
        let id = self.next_id();
        let fact = Fact { outcome, exit: Some(status), ran_ms, seq: id, ..fact };
        let recorded = Some(fact.clone());
        self.learn(if status == 0 {
            Facts { done: recorded, ..Facts::default() }
        } else {
            Facts { attempt: recorded, ..Facts::default() }
        });
        self.enter(Phase::Recording { fact: fact.clone(), leads: true });
        self.append(id, fact);
    }

    /// Handles that no process of the job is left, and none will be started under the term. Returns the run, if the release must contain
    /// it: it has an outcome, or there was none since the key needs none.
    pub(crate) fn term_is_over(&mut self, is_leaving: bool) -> Option<KeyedRun> {
        self.term = None;
        let has_outcome = matches!(self.phase, Phase::Recorded { .. } | Phase::Recording { .. });
        let unrecorded = if let Phase::Recording { fact, .. } = &self.phase { Some(fact.clone()) } else { None };
        let is_skipped = self.phase == Phase::Leaving;
        if self.scheduled.is_some() && unrecorded.is_none() && !(is_leaving && self.lacks_record()) {
            self.enter(Phase::StandingBy);
        } else if !is_leaving && self.phase != Phase::Leaving {
            self.ask(unrecorded);
        } else if matches!(self.phase, Phase::Announcing { .. } | Phase::Confirming { .. } | Phase::Reading { .. }) {
            // A late answer about a run that is not begun any more means nothing.
            self.enter(Phase::StandingBy);
        }
        let run = || KeyedRun { key: self.policy.key.clone(), is_window: Some(self.policy.runs_in_windows()) };
        (has_outcome || is_skipped).then(run)
    }

    /// Handles that its release was delivered. If it names the run, that is as good as the fact (K4).
    pub(crate) fn release_delivered(&mut self) {
        if let Phase::Recorded { is_acknowledged, .. } = &mut self.phase {
            *is_acknowledged = true;
        }
    }

    /// The fact in another candidate's release about the key's run (K4).
    pub(crate) fn fact_released_by(&self, event: &candidate::Event) -> Option<Fact> {
        let candidate::Event::Read { record: Some(record), .. } = event else { return None };
        let Body::Release { term, exit: Some(exit), once: Some(run), .. } = &record.body else { return None };
        let is_anothers = record.member.as_ref() != Some(&self.member);
        let is_of_kind = run.is_window.is_none_or(|is_window| is_window == self.policy.runs_in_windows());
        let is_wanted = self.scheduled.is_some() || run.key == self.policy.key;
        (is_anothers && is_of_kind && is_wanted).then(|| Fact {
            window: self.policy.window,
            member: record.member.clone(),
            name: record.name.clone(),
            exit: Some(*exit),
            ..Fact::new(run.key.clone(), if *exit == 0 { Outcome::Done } else { Outcome::Failed }, *term)
        })
    }

    /// Handles that this release is effective. The facts of the run are read before anything is claimed (K1).
    pub(crate) fn run_released(&mut self, fact: Fact) {
        if self.scheduled.is_some() {
            self.released = Some((fact.key, fact.term));
            return;
        }
        if fact.outcome == Outcome::Done {
            self.learn(Facts { done: Some(fact), ..Facts::default() });
        }
        // Only the facts contain how many runs failed before.
        if self.phase == Phase::StandingBy {
            self.ask(None);
        }
    }

    /// Handles that the outcome was recorded (`is_acknowledged`) or given up.
    fn finish(&mut self, now: Time, is_acknowledged: bool) {
        let Phase::Recording { fact: Fact { term, .. }, leads } = self.phase else { return };
        self.reported_at = None;
        if !leads {
            self.ask(None);
        } else if self.scheduled.is_some() && self.until.is_some() {
            self.enter(Phase::Recorded { why: None, is_acknowledged });
        } else if let Some(schedule) = &mut self.scheduled {
            schedule.ended();
            self.enter(Phase::Waiting { term, skip: None });
            self.follow_schedule(now);
        } else {
            let again = self.skip().is_none();
            let why = if again { Why::Failed } else { Why::Exited };
            // If it stands down already, for another reason, that one decides whether it leaves.
            self.enter(Phase::Recorded { why: (!again).then_some(why), is_acknowledged });
            self.stand_down(why, !again);
        }
    }

    /// Lets another candidate lead, because an answer about facts has not come.
    fn give_up(&mut self, now: Time) {
        let mut unknown = "Kafka has not answered in time";
        if let Phase::Announcing { .. } = self.phase {
            self.renew_producer_if_stale(now);
            unknown = "Kafka has not acknowledged in time that the run begins";
        }
        let why = self.trouble.clone().unwrap_or_else(|| unknown.into());
        self.actions.push_back(Action::Note(Note::FactsUnavailable { error: why }));
        self.stand_down(Why::FactsUnavailable, false);
        self.enter(Phase::StandingBy);
    }

    fn stand_down(&mut self, why: Why, leaving: bool) {
        self.stands_down = Some((why, leaving));
    }

    fn skip_if_settled(&mut self) -> bool {
        let Some((fact, _)) = self.skip() else { return false };
        let note = Note::OnceSkipped { key: self.policy.key.clone(), fact: fact.clone().into() };
        self.enter(Phase::Leaving);
        self.actions.push_back(Action::Note(note));
        self.stand_down(Why::Skipped, true);
        true
    }

    /// Forbids claims until the facts were read (K1).
    fn ask(&mut self, unrecorded: Option<Fact>) {
        self.enter(Phase::Asking { unrecorded });
        self.awaited = self.read();
    }

    /// Asks for a reading, which creates a topic that is missing.
    fn read(&mut self) -> u32 {
        let id = self.next_id();
        self.trouble = None;
        self.actions.push_back(Action::ReadFacts { id });
        id
    }

    fn next_id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }
}

// ---- the settings of a job that succeeds once per key, and its actions for the node --------------------------------

/// The key or window for which the job succeeds once, and the policy of the candidate.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Policy {
    /// `--once`: the key. `--window`: the window's key.
    pub key: Box<str>,
    /// `--window`: the window that the wall clock showed at the start.
    pub window: Option<Span>,
    /// `--schedule`: the job runs in each window; each run takes its key from the wall clock.
    pub schedule: Option<CatchUp>,
    /// `--retries`: the number of failed runs that are followed by another, counted on all machines.
    pub retries: u32,
    /// `--done-status`: the exit status of a candidate that finds the key done.
    pub done_status: u8,
}

impl Policy {
    /// Whether its runs are those of windows, and not of a key.
    const fn runs_in_windows(&self) -> bool {
        self.window.is_some() || self.schedule.is_some()
    }
}

// ---- the facts of a run: which are appended, and what follows if they are not acknowledged -------------------------

/// A leader waits at least this long for the facts, and for the acknowledgement of a fact: the connections for them may still have to be
/// opened, which takes several round trips, and half of a short lease is less.
const SHORTEST_WAIT: Duration = Duration::from_secs(2);
/// It waits at most this long.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

impl Once {
    /// When a leader gives up what it asks for at `now`, and lets another candidate lead. Its lease is extended meanwhile. After a lead that was
    /// given up for this reason it waits twice as long: a next lead opens the connections anew, so on a slow link the same time would end
    /// before the answer in each lead.
    fn end_of_wait(&self, now: Time) -> Time {
        let first = (self.lease / 2).max(SHORTEST_WAIT);
        now + doubled(first, self.late_answers.saturating_add(1), LONGEST_WAIT)
    }

    fn announce(&mut self, now: Time, term: Offset, until: Time) {
        let id = self.next_id();
        let fact = self.begun(id, term);
        self.enter(Phase::Announcing { fact: fact.clone() });
        self.append(id, fact);
        (self.again_at, self.until) = (Some(now + until.since(now) / 2), Some(until.max(now)));
    }

    /// The fact that the wanted run begins, by what is known now.
    fn begun(&self, seq: u32, term: Offset) -> Fact {
        let fact = self.own_fact(seq, self.policy.key.clone(), Outcome::Running, term);
        Fact { window: self.policy.window, attempt: self.next_attempt(), ..fact }
    }

    /// A fact of this candidate, with this number.
    fn own_fact(&self, seq: u32, key: Box<str>, outcome: Outcome, term: Offset) -> Fact {
        Fact {
            member: Some(self.member.clone()),
            name: self.name.clone(),
            forgets: self.forgets(),
            remakes: self.remakes(term),
            seq,
            ..Fact::new(key, outcome, term)
        }
    }

    /// The outcome, or the fact about skipped windows, that is not acknowledged yet.
    const fn sent(&self) -> Option<&Fact> {
        if let Phase::Recording { fact, .. } | Phase::Waiting { skip: Some(fact), .. } = &self.phase {
            Some(fact)
        } else {
            None
        }
    }

    /// Sends it again, with another number.
    fn append_again(&mut self) {
        let Some(fact) = self.sent().cloned() else { return };
        let id = self.next_id();
        self.append(id, fact);
    }

    /// Sends a fact, whose acknowledgement is awaited.
    fn append(&mut self, id: u32, fact: Fact) {
        self.awaited = id;
        self.actions.push_back(Action::AppendFact { id, fact });
    }

    /// A producer that has failed for two leases is renewed, as for claims: if the topic was created again on another broker, a producer that
    /// wrote to the old one may never write to the new one. Returns whether it was renewed.
    fn renew_producer_if_stale(&mut self, now: Time) -> bool {
        let since = *self.unacknowledged_since.get_or_insert(now);
        let is_stale = now >= since + self.lease * 2;
        if is_stale {
            self.unacknowledged_since = Some(now);
            self.actions.push_back(Action::Kafka(Request::RenewProducer));
        }
        is_stale
    }
}

// Whether the topic of facts was lost: the topic was missing, but a run is known that was recorded there.

impl Once {
    /// Handles an event of the election.
    pub(crate) fn observe(&mut self, event: &candidate::Event) {
        if let candidate::Event::Answered { end, .. } = event {
            self.first_end.get_or_insert(*end);
        }
        if let candidate::Event::Read { offset, record: Some(record), .. } = event
            && let Body::Release { once: Some(run), .. } = &record.body
            && self.first_end.is_some_and(|end| *offset < end)
        {
            self.named_before = Some(run.key.clone());
            self.tell_of_lost_facts();
        }
        if let candidate::Event::Read { record: Some(record), written_ms, .. } = event
            && let Body::Claim { .. } = record.body
            && record.member.as_ref() == Some(&self.member)
        {
            self.claimed_ms = *written_ms;
        }
    }

    /// Notes that the topic of facts was missing, and this candidate created it.
    fn facts_were_created(&mut self) {
        self.facts_are_new = true;
        if self.facts_were_there {
            self.named_before = self.known.runs().next().map(|fact| fact.key.clone());
        }
        self.tell_of_lost_facts();
    }

    fn tell_of_lost_facts(&mut self) {
        if !self.facts_are_new {
            return;
        }
        if let Some(key) = self.named_before.take() {
            self.facts_are_new = false;
            self.actions.push_back(Action::Note(Note::FactsLost { key }));
        }
    }
}

// ---- the meaning of the facts of a key, or of an election's windows, for the wanted run -----------------------------

impl Once {
    /// The fact because of which the job must not be run, and the ending for that.
    fn skip(&self) -> Option<(&Fact, Ending)> {
        let runs = || self.known.runs().filter(|fact| self.covers(fact));
        if let Some(fact) = runs().find(|fact| fact.place() == Place::Done) {
            // A candidate that ran the job exits with the job's status.
            let is_own = fact.member.as_ref() == Some(&self.member);
            let status = if is_own { 0 } else { self.policy.done_status };
            return Some((fact, Ending::Skipped { status, is_done: true }));
        }
        let failed = runs().find(|fact| fact.outcome == Outcome::Failed && fact.attempt > self.policy.retries)?;
        Some((failed, Ending::Skipped { status: failed.exit.unwrap_or(1), is_done: false }))
    }

    /// The ending of a candidate that exits because the job must not be run.
    pub(crate) fn skipped(&self) -> Option<Ending> {
        if self.phase == Phase::Leaving { self.skip().map(|(_, ending)| ending) } else { None }
    }

    /// Whether nothing may be claimed before the facts were read (K1).
    pub(crate) const fn holds_claims(&self) -> bool {
        matches!(self.phase, Phase::Asking { .. } | Phase::Leaving | Phase::Recording { leads: false, .. })
    }

    /// Whether its key, or its window, still needs a run, as far as others know. With a schedule there is always another window.
    pub(crate) fn lacks_run(&self) -> bool {
        self.scheduled.is_none() && self.known_ending().is_none()
    }

    /// The ending for its key, or its window, if that needs no run any more, and others know it. With a schedule there is none.
    pub(crate) fn known_ending(&self) -> Option<Ending> {
        let is_known = self.scheduled.is_none() && !self.lacks_record();
        self.skip().filter(|_| is_known).map(|(_, ending)| ending)
    }

    /// Whether the outcome of its last run is not known to be recorded.
    pub(crate) const fn lacks_record(&self) -> bool {
        matches!(
            self.phase,
            Phase::Asking { unrecorded: Some(_), .. }
                | Phase::Recorded { is_acknowledged: false, .. }
                | Phase::Recording { .. }
        )
    }

    /// Whether its key, or its window, needs no run any more. Then each of its candidates exits.
    pub(crate) fn is_settled(&self) -> bool {
        self.scheduled.is_none() && self.skip().is_some()
    }

    /// Whether the fact is about the wanted run: about its key, or about its window or a newer one. A window is over when a newer one has
    /// an outcome. If a window was forgotten, or a schedule has left it out, the windows before it stay over.
    fn covers(&self, fact: &Fact) -> bool {
        match (self.policy.window, fact.window) {
            (None, _) => !self.known.has_forgotten(fact),
            (Some(_), None) => false,
            (Some(own), Some(other)) => {
                let left_out = fact.outcome == Outcome::Skipped && self.scheduled.is_none();
                let is_own_over = own.from_ms == other.from_ms && !left_out && !self.known.has_forgotten(fact);
                (own.from_ms < other.from_ms || is_own_over) && self.believes(fact)
            }
        }
    }

    /// How often an operator asked to forget the key. Facts about runs are kept for longer than that of an earlier request.
    fn forgets(&self) -> u32 {
        self.known.forgotten.iter().chain(self.known.runs()).map(|fact| fact.forgets).max().unwrap_or_default()
    }

    /// How many times the journal was created again, as far as the facts show it: in one journal no run is of a later term than that of the
    /// present leader.
    fn remakes(&self, term: Offset) -> u32 {
        let counted = self.known.runs().map(|fact| fact.remakes.saturating_add((fact.term > term).into()));
        counted.max().unwrap_or_default()
    }

    /// Whether the wall clock does not contradict the fact (S2).
    fn believes(&self, fact: &Fact) -> bool {
        self.shown.zip(fact.window).is_none_or(|(shown, window)| shown.believes(window))
    }

    /// Whether one of the key's places contains a record that this version can't read.
    fn is_unreadable(&self, facts: &Facts) -> bool {
        let is_other = |fact: &Option<Fact>| fact.as_ref().is_some_and(|fact| fact.window.is_none());
        let is_of_windows = self.policy.window.is_some() || self.scheduled.is_some();
        !facts.unreadable.is_empty()
            || (is_of_windows && [&facts.done, &facts.attempt, &facts.forgotten].into_iter().any(is_other))
    }

    /// Notes that the wall clock is wrong, or Kafka's is. (A timestamp that the producer gave agrees with the wall clock.)
    fn note_clock(&mut self) {
        let Some((shown, claimed_ms)) = self.shown.zip(self.claimed_ms.take()) else { return };
        let differ = shown.until_ms.saturating_sub(shown.from_ms).max(CLAIM_TAKES_MS);
        if !(shown.from_ms.saturating_sub(differ)..shown.until_ms.saturating_add(differ)).contains(&claimed_ms) {
            self.actions.push_back(Action::Note(Note::ClockDiffers { shown, claimed_ms }));
        }
    }

    fn note_disbelieved_facts(&mut self) {
        let known = [&self.known.done, &self.known.attempt].into_iter().flatten();
        if let Some(fact) = known.filter(|fact| !self.believes(fact)).max_by_key(|fact| fact.term) {
            self.actions.push_back(Action::Note(Note::NotBelieved(fact.clone().into())));
        }
    }

    /// Reports a fact that is not recorded at once, then every 30 s until it is recorded.
    fn note_if_not_recorded(&mut self, now: Time, outcome: Outcome, error: Box<str>) {
        if self.reported_at.is_none_or(|at| now >= at + INTERVAL) {
            self.reported_at = Some(now);
            let leads = !matches!(self.phase, Phase::Recording { leads: false, .. });
            self.actions.push_back(Action::Note(Note::NotRecorded { outcome, leads, error }));
        }
    }

    /// The number of the wanted run. A run whose candidate died or was stopped does not count as failed.
    fn next_attempt(&self) -> u32 {
        let is_same = |fact: &&Fact| {
            fact.place() == Place::Attempt && fact.window == self.policy.window && !self.known.has_forgotten(fact)
        };
        self.known.runs().find(is_same).map_or(1, Fact::next_attempt)
    }

    /// Adds facts. Of two facts in one place, the one of the later run counts; of two facts of one run, the outcome; and of two outcomes,
    /// the more complete one. A fact of another window that is hidden by it is kept as well.
    fn learn(&mut self, facts: Facts) {
        let replaced = [&self.known.done, &self.known.attempt].map(Clone::clone).into_iter().flatten();
        let hidden = facts.hidden.into_iter().chain(replaced);
        let tells = |fact: &Fact| (fact.outcome != Outcome::Running, fact.at_ms.is_some());
        let newest = |known: Option<Fact>, new: Option<Fact>| match (known, new) {
            (Some(known), Some(new)) => {
                let is_same = new.term == known.term && new.window == known.window;
                let is_known_better = new.is_older_than(&known) || (is_same && tells(&new) < tells(&known));
                Some(if is_known_better { known } else { new })
            }
            (known, new) => new.or(known),
        };
        self.known.done = newest(self.known.done.take(), facts.done);
        self.known.attempt = newest(self.known.attempt.take(), facts.attempt);
        self.known.forgotten = newest(self.known.forgotten.take(), facts.forgotten);
        self.known.keep_hidden(hidden);
    }
}
