//! `--once`: the communication between the key's object, the candidate and the supervisor.

use std::time::Duration;

use neli_proto::candidate;
use neli_proto::fact::{Fact, Facts, Outcome, Place};
use neli_proto::guard::{Answer, Order, SeenEnd, Step};
use neli_proto::hooks::Hook;
use neli_proto::kafka::Request;
use neli_proto::node::{Action, Event, FactsEvent, Node, Settings};
use neli_proto::note::Note;
use neli_proto::once::Policy;
use neli_proto::random::Random;
use neli_proto::record::{Body, KeyedRun, MemberId, Offset, Record, What};
use neli_proto::supervisor::{self, Ending, JobStatus, Lost, OnLoss, StopPolicy};
use neli_proto::topic::TopicIdentity;

use crate::host::{Host, LEASE, TERM, by, exits, sends};
use crate::records::hello;

pub(crate) const KEY: &str = "v1.42";

/// A candidate for the key that has read an empty log.
pub(crate) fn listening(retries: u32) -> Host {
    listening_for(policy(retries))
}

pub(crate) fn policy(retries: u32) -> Policy {
    Policy { key: KEY.into(), window: None, schedule: None, retries, done_status: 7 }
}

pub(crate) fn listening_for(policy: Policy) -> Host {
    listening_to(policy, 0)
}

/// A candidate that has got the answer that the log holds this many records.
pub(crate) fn listening_to(policy: Policy, end: Offset) -> Host {
    listening_with(policy, end, |settings| settings)
}

fn listening_with(policy: Policy, end: Offset, change: impl FnOnce(Settings) -> Settings) -> Host {
    let mut host = Host::new(&[], true);
    let settings = Settings { once: Some(policy), ..Host::settings(host.now, &[Hook::Lead], true) };
    let settings = change(settings);
    host.node = Node::new(host.now, settings, Random::from_seed(1));
    host.identified(TopicIdentity::Unnamed);
    host.elects(candidate::Event::TopicJudged { cut_is_harmless: true, gaps_are_markers: true });
    host.answered_with(end);
    host
}

/// The queries for facts, and the facts to record, among the actions.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) read: Option<u32>,
    pub(crate) appended: Option<(u32, Fact)>,
    pub(crate) spawns: bool,
    pub(crate) releases: Option<Record>,
    pub(crate) actions: Vec<Action>,
}

pub(crate) fn asked(host: &mut Host) -> Asked {
    let mut asked = Asked { actions: host.actions(), ..Asked::default() };
    for action in &asked.actions {
        asked.spawns |= matches!(action, Action::Order(Order::Spawn { .. }));
        if let Action::AppendFact { id, fact } = action {
            asked.appended = Some((*id, fact.clone()));
        } else if let Action::ReadFacts { id } = action {
            asked.read = Some(*id);
        } else if let Action::Kafka(Request::Send { record }) = action
            && sends(action, "release")
        {
            asked.releases = Some(record.clone());
        }
    }
    asked
}

pub(crate) fn facts(host: &mut Host, event: FactsEvent) {
    host.happens(Event::Facts(event));
}

pub(crate) fn read(host: &mut Host, id: u32, facts_of_key: Facts) {
    facts(host, FactsEvent::Read { id, end: 0, facts: Box::new(facts_of_key) });
}

pub(crate) fn fact(outcome: Outcome, term: Offset, exit: Option<u8>, attempt: u32) -> Fact {
    let (member, name) = (Some(MemberId::from("db2")), Some("db2-name".into()));
    let (ran_ms, at_ms) = (Some(3_200), Some(1_000));
    Fact { member, name, exit, attempt, ran_ms, at_ms, ..Fact::new(KEY, outcome, term) }
}

pub(crate) fn attempted(fact: Fact) -> Facts {
    Facts { attempt: Some(fact), ..Facts::default() }
}

pub(crate) fn done(term: Offset) -> Facts {
    Facts { done: Some(fact(Outcome::Done, term, Some(0), 1)), ..Facts::default() }
}

/// A leader that reads the key's facts.
pub(crate) fn leading(retries: u32) -> (Host, u32) {
    led(listening(retries))
}

fn led(mut host: Host) -> (Host, u32) {
    let first = asked(&mut host).read.unwrap();
    read(&mut host, first, Facts::default());
    host.claims();
    host.reads_what_it_sent();
    let led = asked(&mut host);
    assert!(!led.spawns, "a job that is started before the facts were read");
    (host, led.read.unwrap())
}

/// A leader whose job runs.
pub(crate) fn running(retries: u32, facts_of_key: Facts) -> (Host, Fact) {
    begun(leading(retries), facts_of_key)
}

/// A host whose run is ordered, and the recorded fact.
fn ordered((mut host, id): (Host, u32), facts_of_key: Facts) -> (Host, Fact) {
    read(&mut host, id, facts_of_key);
    let (id, fact) = asked(&mut host).appended.unwrap();
    facts(&mut host, FactsEvent::Appended { id, offset: 0 });
    assert!(asked(&mut host).spawns);
    (host, fact)
}

fn begun(leading: (Host, u32), facts_of_key: Facts) -> (Host, Fact) {
    let (mut host, fact) = ordered(leading, facts_of_key);
    host.started();
    host.actions();
    (host, fact)
}

fn skipped(actions: &[Action]) -> Vec<(Outcome, Offset)> {
    let skip = |action: &Action| {
        let Action::Note(Note::OnceSkipped { fact, .. }) = action else { return None };
        Some((fact.outcome, fact.term))
    };
    actions.iter().filter_map(skip).collect()
}

#[test]
fn nothing_is_claimed_before_the_facts_were_read() {
    let mut host = listening(0);
    let id = asked(&mut host).read.unwrap();
    host.pass(Duration::from_secs(100));
    assert!(!host.actions().iter().any(|action| sends(action, "claim")));
    read(&mut host, id, done(3));
    let actions = host.actions();
    assert_eq!(
        (skipped(&actions), exits(&actions)),
        (vec![(Outcome::Done, 3)], vec![Ending::Skipped { status: 7, is_done: true }])
    );
    assert!(!actions.iter().any(|action| sends(action, "claim")));
}

#[test]
fn the_job_waits_for_what_is_recorded_and_for_the_acknowledgement_of_its_beginning() {
    let (mut host, id) = leading(0);
    host.pass(LEASE / 5);
    let meanwhile = asked(&mut host);
    assert!(!meanwhile.spawns && meanwhile.actions.iter().any(|action| sends(action, "beat")), "{meanwhile:?}");
    host.reads_what_it_sent();
    read(&mut host, id - 1, Facts::default());
    assert!(asked(&mut host).appended.is_none(), "that was asked for before the claim");
    read(&mut host, id, Facts::default());
    let begun = asked(&mut host);
    let (append, fact) = begun.appended.unwrap();
    assert_eq!(
        (fact.outcome, fact.attempt, fact.term, &*fact.key),
        (Outcome::Running, 1, host.node.supervisor().term().unwrap(), KEY)
    );
    assert!(!begun.spawns);
    facts(&mut host, FactsEvent::Appended { id: append, offset: 0 });
    let runs = asked(&mut host);
    assert!(runs.spawns);
    let is_hook = |action: &&Action| matches!(action, Action::Order(Order::Command { .. }));
    assert_eq!(runs.actions.iter().filter(is_hook).count(), 1, "the hook runs beside the job");
}

/// A member whose request to join has no answer yet waits for the answer only to leave the group in order.
#[test]
fn all_candidates_leave_the_group_when_the_key_needs_no_run() {
    let hears_of_another = |host: &mut Host| {
        let hello = hello("db3", 0);
        host.elects(candidate::Event::ReadHello { offset: host.end(), hello: Box::new(hello) });
    };
    for (status, goes) in [(0, true), (3, false)] {
        let (mut runner, _) = running(1, Facts::default());
        hears_of_another(&mut runner);
        assert!(!runner.node.is_alone(runner.now));
        runner.ends(JobStatus::Exited(status));
        assert_eq!(runner.node.is_alone(runner.now), goes, "status {status}, and one retry");
    }
    let mut standby = listening(0);
    hears_of_another(&mut standby);
    let id = asked(&mut standby).read.unwrap();
    assert!(!standby.node.is_alone(standby.now));
    read(&mut standby, id, done(3));
    assert!(standby.node.is_alone(standby.now));
}

/// Two runs have failed on other machines.
#[test]
fn the_job_is_told_the_attempt_that_its_fact_has() {
    let (mut host, id) = leading(2);
    read(&mut host, id, attempted(fact(Outcome::Failed, 0, Some(3), 2)));
    let (id, begun) = asked(&mut host).appended.unwrap();
    facts(&mut host, FactsEvent::Appended { id, offset: 0 });
    let spawned = asked(&mut host).actions.into_iter().find_map(|action| {
        let Action::Order(Order::Spawn { run, attempt, .. }) = action else { return None };
        Some((run, attempt))
    });
    assert_eq!((begun.attempt, spawned), (3, Some((1, 3))));
}

#[test]
fn a_stop_before_the_start_means_that_nothing_runs() {
    let (mut host, id) = leading(0);
    host.happens(Event::Signal { signal: TERM, by_terminal: false });
    let stopped = asked(&mut host);
    assert!(!stopped.spawns);
    let Some(Record { body: Body::Release { once, exit, .. }, .. }) = stopped.releases else { panic!("{stopped:?}") };
    assert_eq!((once, exit), (None, None));
    read(&mut host, id, Facts::default());
    assert!(!asked(&mut host).spawns);
    host.reads_what_it_sent();
    assert_eq!(exits(&host.actions()), [Ending::NotDone { signal: Some(TERM), job: None }]);
}

#[test]
fn the_outcome_is_acknowledged_before_the_release_which_contains_it_too() {
    let (mut host, begun) = running(0, Facts::default());
    host.pass(Duration::from_millis(1_500));
    host.reads_what_it_sent();
    host.actions();
    host.ends(JobStatus::Exited(0));
    let ended = asked(&mut host);
    let (id, fact) = ended.appended.unwrap();
    let (outcome, seq) = (Outcome::Done, begun.seq + 1);
    assert_eq!(fact, Fact { outcome, exit: Some(0), ran_ms: Some(1_500), seq, ..begun });
    assert!(ended.releases.is_none());
    // A stop waits for it as well, and a fact that Kafka refused is sent again.
    host.happens(Event::Signal { signal: TERM, by_terminal: false });
    facts(&mut host, FactsEvent::NotAppended { id, error: "no".into() });
    let refused = asked(&mut host);
    assert!(refused.releases.is_none() && refused.appended.is_none(), "{refused:?}");
    host.pass(Duration::from_millis(900));
    assert!(asked(&mut host).appended.is_none(), "not at once");
    host.pass(Duration::from_millis(100));
    let (again, _) = asked(&mut host).appended.unwrap();
    host.reads_what_it_sent();
    facts(&mut host, FactsEvent::Appended { id, offset: 0 });
    assert!(asked(&mut host).releases.is_none(), "that was refused, and is not the one that is awaited");
    facts(&mut host, FactsEvent::Appended { id: again, offset: 0 });
    let goes = asked(&mut host);
    assert_eq!(goes.read, None, "whoever goes asks for nothing more");
    let released = goes.releases.unwrap();
    let Body::Release { once, exit, why, .. } = &released.body else { panic!("{released:?}") };
    assert_eq!((once.as_ref().map(|run| &*run.key), *exit, why.as_deref()), (Some(KEY), Some(0), Some("stopped")));
    host.reads_what_it_sent();
    assert_eq!(exits(&host.actions()), [Ending::Job(JobStatus::Exited(0))]);
}

#[test]
fn a_stop_waits_a_lease_for_the_acknowledgement_and_no_longer() {
    let (mut host, _) = running(0, Facts::default());
    host.ends(JobStatus::Exited(0));
    host.happens(Event::Signal { signal: TERM, by_terminal: false });
    let mut waited = Duration::ZERO;
    let released = loop {
        if let Some(released) = asked(&mut host).releases {
            break released;
        }
        assert!(waited <= LEASE, "it waits for longer than a lease");
        host.reads_what_it_sent();
        host.answers(Answer::Extended { until: host.now + LEASE });
        host.pass(LEASE / 10);
        waited += LEASE / 10;
    };
    assert_eq!(waited, LEASE);
    let Body::Release { why, .. } = &released.body else { panic!("{released:?}") };
    assert_eq!(why.as_deref(), Some("stopped"), "nothing else has ended the term");
    host.reads_what_it_sent();
    assert_eq!(
        exits(&host.actions()),
        [Ending::Job(JobStatus::Exited(0))],
        "the release names the run, and was delivered"
    );
}

/// A status of 0 would say that the key is done.
#[test]
fn a_stop_whose_lease_ends_before_the_outcome_is_confirmed_is_not_the_job_s_success() {
    let (mut host, _) = running(0, Facts::default());
    host.ends(JobStatus::Exited(0));
    host.happens(Event::Signal { signal: TERM, by_terminal: false });
    host.actions();
    host.pass(LEASE);
    host.answers(Answer::Fenced { term: 0, end: None });
    let mut all = host.actions();
    while exits(&all).is_empty() {
        host.pass_until_due();
        all.extend(host.actions());
    }
    assert_eq!(exits(&all), [Ending::NotDone { signal: Some(TERM), job: None }]);
    assert!(all.contains(&Action::Note(Note::OutcomeLost)), "{all:?}");
}

#[test]
fn a_run_that_was_stopped_has_neither_done_nor_failed() {
    let (mut host, _) = running(0, Facts::default());
    host.happens(Event::Signal { signal: TERM, by_terminal: false });
    host.actions();
    host.ends(JobStatus::Exited(0));
    let stopped = asked(&mut host);
    assert!(stopped.appended.is_none());
    let Some(Record { body: Body::Release { once, exit, .. }, .. }) = stopped.releases else { panic!("{stopped:?}") };
    assert_eq!((once, exit), (None, Some(0)));
    host.reads_what_it_sent();
    assert_eq!(
        exits(&host.actions()),
        [Ending::NotDone { signal: Some(TERM), job: None }],
        "0 says that the key is done"
    );
}

/// Beside its release, before it looks at the key again: 0 would say that the key is done.
#[test]
fn an_election_that_is_ended_when_the_key_has_failed_has_the_runs_status() {
    let (mut host, _) = running(0, Facts::default());
    host.ends(JobStatus::Exited(3));
    let (id, fact) = asked(&mut host).appended.unwrap();
    assert_eq!((fact.outcome, fact.exit), (Outcome::Failed, Some(3)));
    facts(&mut host, FactsEvent::Appended { id, offset: 1 });
    host.actions();
    let end = Body::Request { what: What::End, term: None, by: None, reason: None, successor: None };
    host.reads(by("ann", end));
    host.reads_what_it_sent();
    assert_eq!(exits(&host.actions()), [Ending::Skipped { status: 3, is_done: false }]);
}

#[test]
fn a_runner_that_died_has_not_failed_and_failures_are_counted() {
    let (_, fact_of_next) = running(0, attempted(fact(Outcome::Running, 0, None, 1)));
    assert_eq!(fact_of_next.attempt, 1);
    let (_, fact_of_next) = running(2, attempted(fact(Outcome::Failed, 0, Some(3), 2)));
    assert_eq!(fact_of_next.attempt, 3);
    let (mut host, id) = leading(2);
    // This is also the status for a key that is done.
    read(&mut host, id, attempted(fact(Outcome::Failed, 0, Some(7), 3)));
    let used_up = asked(&mut host);
    assert!(!used_up.spawns, "{used_up:?}");
    let Some(Record { body: Body::Release { once, exit, .. }, .. }) = used_up.releases else { panic!("{used_up:?}") };
    assert_eq!((once.as_ref().map(|run| &*run.key), exit), (Some(KEY), None), "the release names what needs no run");
    host.reads_what_it_sent();
    assert_eq!(exits(&host.actions()), [Ending::Skipped { status: 7, is_done: false }]);
}

#[test]
fn a_failed_runner_stands_by_again_while_retries_are_left() {
    for (retries, ending) in [(0, Some(Ending::Job(JobStatus::Exited(3)))), (1, None)] {
        let (mut host, _) = running(retries, Facts::default());
        host.ends(JobStatus::Exited(3));
        let (id, fact) = asked(&mut host).appended.unwrap();
        assert_eq!((fact.outcome, fact.exit), (Outcome::Failed, Some(3)));
        facts(&mut host, FactsEvent::Appended { id, offset: 0 });
        assert!(asked(&mut host).releases.is_some());
        host.reads_what_it_sent();
        assert_eq!(exits(&host.actions()), Vec::from_iter(ending));
    }
}

/// The topic keeps each fact for as long, so the request to forget the key is deleted before the facts of runs after it.
#[test]
fn failures_are_counted_after_the_request_to_forget_the_key_is_deleted() {
    let failed = Fact { forgets: 1, ..fact(Outcome::Failed, -1, Some(3), 1) };
    let (_, begun) = running(1, attempted(failed.clone()));
    let mut read_next = Facts::default();
    for fact in [failed, begun] {
        read_next.take(Place::Attempt, Some(&fact.to_bytes()));
    }
    assert_eq!(read_next.attempt.map(|fact| (fact.outcome, fact.attempt)), Some((Outcome::Running, 2)));
}

/// Ends the ordered run: the job can't be executed.
pub(crate) fn can_not_start(host: &mut Host) -> Asked {
    host.answers(Answer::NotStarted { errno: 11, at: Step::Fork });
    asked(host)
}

/// COMMAND was executed, and may have done something before it was killed.
#[test]
fn a_run_that_was_killed_because_nothing_could_watch_it_has_failed() {
    let (mut host, _) = ordered(leading(0), Facts::default());
    host.answers(Answer::StartedUnseen { pid: 7 });
    host.ends(JobStatus::Signaled(9));
    let (_, fact) = asked(&mut host).appended.unwrap();
    assert_eq!((fact.outcome, fact.exit), (Outcome::Failed, Some(126)));
}

/// No instruction of it ran, so nothing is recorded, and any candidate may run the key. It tries as often as it would run a job that fails.
#[test]
fn a_run_that_could_not_be_started_is_none() {
    let (mut host, id) = leading(1);
    read(&mut host, id, Facts::default());
    let (mut id, begun) = asked(&mut host).appended.unwrap();
    for (why, ending) in [("failed", None), ("exited", Some(Ending::Job(JobStatus::Exited(126))))] {
        facts(&mut host, FactsEvent::Appended { id, offset: 0 });
        assert!(asked(&mut host).spawns);
        let ended = can_not_start(&mut host);
        assert!(ended.appended.is_none(), "no outcome: {ended:?}");
        let Some(Record { body: Body::Release { once, why: said, .. }, .. }) = ended.releases else {
            panic!("{ended:?}")
        };
        assert_eq!((once, said.as_deref()), (None, Some(why)), "no release reports the run");
        let released_at = host.now;
        host.reads_what_it_sent();
        assert_eq!(exits(&host.actions()), Vec::from_iter(ending));
        if ending.is_none() {
            read(&mut host, ended.read.unwrap(), attempted(begun.clone()));
            host.claims();
            assert!(host.now >= released_at + Duration::from_millis(500), "after the back-off");
            host.reads_what_it_sent();
            let asked_again = asked(&mut host).read.unwrap();
            read(&mut host, asked_again, attempted(begun.clone()));
            let (next, fact) = asked(&mut host).appended.unwrap();
            assert_eq!(fact.attempt, 1, "the attempt does not count");
            id = next;
        }
    }
}

/// What the candidate wants of the job does not change any more, so the node would not end the term.
#[test]
fn a_run_that_could_not_be_started_after_a_stop_ends_the_term() {
    let (mut host, _) = ordered(leading(1), Facts::default());
    host.happens(Event::Signal { signal: TERM, by_terminal: false });
    let ended = can_not_start(&mut host);
    assert!(ended.appended.is_none(), "no outcome: {ended:?}");
    let Some(Record { body: Body::Release { once, why, .. }, .. }) = ended.releases else {
        panic!("the term is kept: {:?}", ended.actions)
    };
    assert_eq!((once, why.as_deref()), (None, Some("stopped")));
    host.reads_what_it_sent();
    let job = Some(JobStatus::Exited(126));
    assert_eq!(exits(&host.actions()), [Ending::NotDone { signal: Some(TERM), job }]);
}

#[test]
fn facts_that_can_not_be_read_or_written_are_no_reason_to_run() {
    let unavailable = |actions: &[Action]| {
        let is_noted = |action: &Action| matches!(action, Action::Note(Note::FactsUnavailable { .. }));
        actions.iter().any(is_noted)
    };
    let (host, id) = leading(0);
    let mut late = host.clone();
    facts(&mut late, FactsEvent::Unread { error: "no".into() });
    late.pass(LEASE / 5);
    late.reads_what_it_sent();
    late.pass(LEASE * 3 / 10);
    let mut unreadable = host.clone();
    read(&mut unreadable, id, Facts { unreadable: [Place::Attempt].into(), ..Facts::default() });
    let mut refused = host;
    read(&mut refused, id, Facts::default());
    let (append, _) = asked(&mut refused).appended.unwrap();
    facts(&mut refused, FactsEvent::NotAppended { id: append, error: "no".into() });
    let lets_another_lead = |mut host: Host| {
        let asked = asked(&mut host);
        assert!(!asked.spawns && asked.releases.is_some() && unavailable(&asked.actions), "{asked:?}");
        host.reads_what_it_sent();
        assert_eq!(exits(&host.actions()), []);
    };
    lets_another_lead(late);
    lets_another_lead(unreadable);
    lets_another_lead(refused);
}

#[test]
fn a_release_with_a_success_of_the_key_is_no_vacancy() {
    for (exit, is_claimed) in [(0, false), (3, true)] {
        let mut host = listening(1);
        let id = asked(&mut host).read.unwrap();
        read(&mut host, id, Facts::default());
        host.actions();
        is_released(&mut host, KEY, exit);
        let id = asked(&mut host).read.unwrap();
        host.pass(Duration::from_secs(10));
        assert!(!host.actions().iter().any(|action| sends(action, "claim")), "it is to be read first");
        // The record of the outcome may have been lost.
        read(&mut host, id, attempted(fact(Outcome::Running, 0, None, 1)));
        host.pass(Duration::from_secs(1));
        let actions = host.actions();
        assert_eq!(
            exits(&actions),
            Vec::from_iter((!is_claimed).then_some(Ending::Skipped { status: 7, is_done: true }))
        );
        assert_eq!(actions.iter().any(|action| sends(action, "claim")), is_claimed);
    }
}

/// `--wait` is over while the facts are read once more. A success is known by then, a failure is not.
#[test]
fn a_wait_that_is_over_after_a_release_with_a_success_ends_as_a_done_key() {
    for (exit, ending) in [(0, Ending::Skipped { status: 7, is_done: true }), (3, Ending::WaitedEnough)] {
        let wait = Some(Duration::from_secs(6));
        let mut host = listening_with(policy(1), 0, |settings| Settings { wait, ..settings });
        let id = asked(&mut host).read.unwrap();
        read(&mut host, id, Facts::default());
        is_released(&mut host, KEY, exit);
        host.pass(Duration::from_secs(6));
        assert_eq!(exits(&host.actions()), [ending]);
    }
}

/// Another candidate leads, and releases with this outcome of the key's run.
pub(crate) fn is_released(host: &mut Host, key: &str, exit: u8) {
    host.reads(by("db1", Body::Claim { after: -1, lease_ms: 2_000, overlap: None }));
    let (why, group_member, late_ms, successor) = (Some("exited".into()), None, None, None);
    let (exit, once) = (Some(exit), Some(KeyedRun { key: key.into(), is_window: None }));
    host.reads(by("db1", Body::Release { term: 0, seen: 0, why, exit, late_ms, group_member, once, successor }));
}

#[test]
fn a_release_allows_no_claim_before_the_first_reading() {
    let mut host = listening(0);
    host.actions();
    is_released(&mut host, KEY, 0);
    host.pass(Duration::from_secs(10));
    assert!(!host.actions().iter().any(|action| sends(action, "claim")));
}

#[test]
fn a_release_with_another_key_is_a_vacancy() {
    let mut host = listening(0);
    let id = asked(&mut host).read.unwrap();
    read(&mut host, id, Facts::default());
    is_released(&mut host, "v1.41", 0);
    assert_eq!(asked(&mut host).read, None);
    host.claims();
}

#[test]
fn a_lease_that_ends_before_the_acknowledgement_is_a_fence_and_the_release_contains_the_run() {
    let (mut host, begun) = running(0, Facts::default());
    host.ends(JobStatus::Exited(0));
    host.actions();
    host.pass(LEASE);
    host.answers(Answer::Fenced { term: 0, end: None });
    let fenced = asked(&mut host);
    let Some(Record { body: Body::Release { once, exit, why, .. }, .. }) = fenced.releases else {
        panic!("{fenced:?}")
    };
    assert_eq!((once.as_ref().map(|run| &*run.key), exit, why.as_deref()), (Some(KEY), Some(0), Some("fenced")));
    let id = fenced.read.unwrap();
    host.reads_what_it_sent();
    read(&mut host, id, attempted(fact(Outcome::Running, 0, None, 1)));
    let (id, done) = asked(&mut host).appended.expect("the outcome is sent again");
    assert_eq!((done.outcome, done.term), (Outcome::Done, begun.term));
    host.pass(LEASE * 3);
    let waits = asked(&mut host);
    let claims = waits.actions.iter().any(|action| sends(action, "claim"));
    assert!(!claims && exits(&waits.actions).is_empty(), "nothing is known to be done: {waits:?}");
    facts(&mut host, FactsEvent::Appended { id, offset: 0 });
    let id = asked(&mut host).read.expect("what is recorded counts");
    read(&mut host, id, Facts { done: Some(done), ..Facts::default() });
    assert_eq!(exits(&host.actions()), [Ending::Skipped { status: 0, is_done: true }], "its own run has succeeded");
}

/// The process was stopped, or got no processor, from before the end of the run until after that of the lease. It reads both at once, or notices
/// the lease's end first. Its guard may have been stopped, too, or has died.
#[test]
fn a_run_that_ended_in_time_has_an_outcome_although_its_end_is_noticed_after_the_lease() {
    for case in 0..12 {
        let (left, is_noticed_first, end) = (case % 2 == 1, case / 2 % 2 == 1, case / 4);
        let (mut host, begun) = running(0, Facts::default());
        let ended_at = host.now;
        host.now = host.now + LEASE;
        if is_noticed_first {
            host.pass(Duration::ZERO);
            host.actions();
        }
        host.answers(Answer::Exited { status: JobStatus::Exited(0), ended_at, left, foreground: false });
        match end {
            0 => host.answers(Answer::Gone),
            1 => host.answers(Answer::Fenced { term: begun.term, end: None }),
            _ => {
                host.job(supervisor::Event::GuardDied);
                host.job(supervisor::Event::OrphansGone(SeenEnd { gone_at: host.now, lived_at: None }));
            }
        }
        let over = asked(&mut host);
        let Some(Record { body: Body::Release { once, .. }, .. }) = over.releases else { panic!("{over:?}") };
        assert_eq!(once.is_some(), !left, "{case}: what it had left was killed: {:?}", over.actions);
        assert_eq!(over.appended.map(|(_, fact)| fact.term), (!left).then_some(begun.term));
    }
}

/// The outcome of a run, which could not be recorded under its lead, replaces none of a later run.
#[test]
fn a_late_outcome_is_not_recorded_over_that_of_a_later_run() {
    for (status, found) in [(3, attempted(fact(Outcome::Failed, 9, Some(5), 1))), (0, done(9))] {
        let (mut host, _) = running(1, Facts::default());
        host.ends(JobStatus::Exited(status));
        host.actions();
        host.pass(LEASE);
        host.answers(Answer::Fenced { term: 0, end: None });
        let id = asked(&mut host).read.unwrap();
        host.reads_what_it_sent();
        read(&mut host, id, found);
        assert!(asked(&mut host).appended.is_none());
    }
}

/// `--stop-signal none`: the run ends by itself, and fails. That another candidate may try again does not keep this one.
#[test]
fn one_that_resigns_during_a_run_that_fails_leaves_as_on_loss_says() {
    for (on_loss, ends) in [(OnLoss::Exit, vec![Ending::Lost(Lost::Stopped)]), (OnLoss::Standby, vec![])] {
        let host = listening_with(policy(1), 0, |settings| {
            let stop = StopPolicy { signal: None, ..settings.job.stop };
            Settings { job: supervisor::Policy { on_loss, stop, ..settings.job }, ..settings }
        });
        let (mut host, fact) = begun(led(host), Facts::default());
        let what = What::Resign;
        host.reads(by("ann", Body::Request { what, term: Some(fact.term), by: None, reason: None, successor: None }));
        host.ends(JobStatus::Exited(1));
        let (id, _) = asked(&mut host).appended.unwrap();
        facts(&mut host, FactsEvent::Appended { id, offset: 1 });
        let release = asked(&mut host).releases.unwrap();
        assert!(matches!(release.body, Body::Release { exit: Some(1), once: Some(_), .. }), "{release:?}");
        host.reads_what_it_sent();
        assert_eq!(exits(&host.actions()), ends, "{on_loss:?}");
    }
}
