//! `--schedule`: a leader runs the job in each window, and keeps the lead between the runs.

use std::time::Duration;

use neli_proto::candidate::Position;
use neli_proto::fact::{Fact, Facts, Outcome};
use neli_proto::guard::{Answer, Order};
use neli_proto::node::{Action, Event, FactsEvent};
use neli_proto::note::Note;
use neli_proto::once::Policy;
use neli_proto::record::{Body, JobState, KeyedRun, Record};
use neli_proto::schedule::CatchUp;
use neli_proto::supervisor::{Ending, JobStatus};

use crate::host::{Host, LEASE, TERM, exits, sends};
use crate::once::{Asked, asked, can_not_start, facts, listening_for, read};
use crate::windows::{attempted, done, span, window};

/// A leader that reads these facts while its clock is in this window.
fn leads(shown: u64, found: Facts) -> (Host, Asked) {
    leads_with(CatchUp::Last, shown, found)
}

fn leads_with(catch_up: CatchUp, shown: u64, found: Facts) -> (Host, Asked) {
    let schedule = Some(catch_up);
    let policy = Policy { key: "".into(), window: None, schedule, retries: 0, done_status: 0 };
    let mut host = listening_for(policy);
    host.claims();
    host.reads_what_it_sent();
    let id = asked(&mut host).read.unwrap();
    host.happens(Event::Window(window(shown)));
    read(&mut host, id, found);
    let asked = asked(&mut host);
    (host, asked)
}

/// An operator forgot this window: a leader runs it again while its clock is in it, also with `--catch-up none`.
#[test]
fn a_window_that_is_forgotten_is_run_at_the_next_lead() {
    for catch_up in [CatchUp::Last, CatchUp::None] {
        let found = |number| {
            let mut found = done(number);
            let forgotten = |fact: &Fact| Fact { outcome: Outcome::Forgotten, forgets: 2, ..fact.clone() };
            found.forgotten = found.done.as_ref().map(forgotten);
            found
        };
        let (mut host, first) = leads_with(catch_up, 5, found(5));
        starts(&mut host, first, 5);
        let (_, later) = leads_with(catch_up, 6, found(5));
        let (_, fact) = later.appended.unwrap();
        let expected = if catch_up == CatchUp::Last { Outcome::Running } else { Outcome::Skipped };
        assert_eq!((fact.outcome, fact.window, fact.forgets), (expected, Some(span(6)), 2));
    }
}

fn shows(host: &mut Host, number: u64) -> Asked {
    host.happens(Event::Window(window(number)));
    asked(host)
}

/// Starts the job for this window, after the record of its begin was acknowledged.
fn starts(host: &mut Host, asked: Asked, number: u64) {
    let (id, fact) = asked.appended.unwrap();
    assert_eq!((fact.outcome, fact.window), (Outcome::Running, Some(span(number))));
    assert!(!asked.spawns);
    facts(host, FactsEvent::Appended { id, offset: 0 });
    let is_for_window = |action: &Action| matches!(action, Action::Order(Order::Spawn { window: Some(window), .. }) if *window == span(number));
    assert!(host.actions().iter().any(is_for_window));
    host.started();
    host.actions();
}

/// Ends the job, and acknowledges the record of its end. Returns the next actions.
fn ends(host: &mut Host, status: u8) -> Asked {
    host.ends(JobStatus::Exited(status));
    let (id, fact) = asked(host).appended.unwrap();
    assert_eq!((fact.outcome, fact.exit), (if status == 0 { Outcome::Done } else { Outcome::Failed }, Some(status)));
    facts(host, FactsEvent::Appended { id, offset: 0 });
    let asked = asked(host);
    assert!(asked.releases.is_none() && exits(&asked.actions).is_empty(), "the lead is kept: {asked:?}");
    asked
}

fn awaits_window(host: &Host) -> bool {
    host.status().next_window_ms.is_some()
}

/// The note that it waits for the window with this number.
fn waiting(number: u64) -> Action {
    Action::Note(Note::WindowAwaited { next_ms: span(number).from_ms })
}

#[test]
fn attempts_begin_at_one_also_before_the_first_run() {
    let (host, asked) = leads(5, done(5));
    assert!(asked.appended.is_none() && awaits_window(&host));
    let Position::Leading { job, .. } = host.status().position else { panic!("{:?}", host.status()) };
    assert_eq!((job.state, job.attempt), (JobState::Restarting, 1));
}

#[test]
fn each_window_has_its_run_under_one_lead_and_a_failure_ends_nothing() {
    let (mut host, first) = leads(5, done(4));
    starts(&mut host, first, 5);
    assert!(shows(&mut host, 5).appended.is_none());
    assert!(ends(&mut host, 0).appended.is_none());
    assert!(awaits_window(&host));
    for number in 6..9 {
        let due = shows(&mut host, number);
        starts(&mut host, due, number);
        host.reads_what_it_sent();
        ends(&mut host, 3);
        assert!(awaits_window(&host));
    }
    host.pass(LEASE / 5);
    assert!(host.node.leads().is_some());
}

/// The lead goes to a candidate that may be able to run it: nothing is recorded but that the run was to begin.
#[test]
fn a_window_whose_run_could_not_be_started_is_left_to_the_next_lead() {
    let (mut host, first) = leads(5, done(4));
    let (id, begun) = first.appended.unwrap();
    facts(&mut host, FactsEvent::Appended { id, offset: 0 });
    assert!(asked(&mut host).spawns);
    let ended = can_not_start(&mut host);
    assert!(ended.appended.is_none(), "no outcome: {ended:?}");
    let Some(Record { body: Body::Release { once, why, .. }, .. }) = ended.releases else { panic!("{ended:?}") };
    assert_eq!((once, why.as_deref()), (None, Some("failed")));
    host.reads_what_it_sent();
    assert_eq!(exits(&host.actions()), []);
    let found = Facts { attempt: Some(begun), ..done(4) };
    let (mut next, first) = leads(5, found);
    starts(&mut next, first, 5);
}

#[test]
fn at_a_first_start_the_window_is_recorded_as_over() {
    let (mut host, first) = leads(5, Facts::default());
    let (id, fact) = first.appended.unwrap();
    assert_eq!((fact.outcome, fact.window, fact.exit), (Outcome::Skipped, Some(span(5)), None));
    assert!(awaits_window(&host));
    // A refused fact is sent again. The node wakes for that, here between two beats.
    host.pass(Duration::from_millis(300));
    facts(&mut host, FactsEvent::NotAppended { id, error: "no".into() });
    let again_at = host.now + Duration::from_secs(1);
    host.pass(Duration::from_millis(700));
    assert!(asked(&mut host).appended.is_none());
    host.reads_what_it_sent();
    host.pass_until_due();
    assert_eq!(host.now, again_at);
    let recorded = asked(&mut host);
    assert!(!recorded.actions.contains(&waiting(6)), "what it waits for is told when that is recorded");
    let (again, same) = recorded.appended.unwrap();
    assert_eq!(same, fact);
    facts(&mut host, FactsEvent::Appended { id, offset: 0 });
    assert_eq!(host.actions(), [], "that was refused");
    facts(&mut host, FactsEvent::Appended { id: again, offset: 0 });
    assert_eq!(host.actions(), [waiting(6)]);
    let due = shows(&mut host, 6);
    starts(&mut host, due, 6);
}

#[test]
fn a_skip_that_is_not_recorded_is_logged_at_once_and_every_30_s() {
    let (mut host, first) = leads(5, Facts::default());
    let (mut id, _) = first.appended.unwrap();
    let mut notes = 0;
    for _ in 0..31 {
        facts(&mut host, FactsEvent::NotAppended { id, error: "no".into() });
        loop {
            let asked = asked(&mut host);
            let is_noted =
                |action: &&Action| matches!(action, Action::Note(Note::NotRecorded { outcome: Outcome::Skipped, .. }));
            notes += asked.actions.iter().filter(is_noted).count();
            if let Some((next, _)) = asked.appended {
                id = next;
                break;
            }
            host.reads_what_it_sent();
            host.answers(Answer::Extended { until: host.now + LEASE });
            host.pass_until_due();
        }
    }
    assert_eq!(notes, 2);
}

/// A leader died during the run of window 5, and another leads in window 7.
#[test]
fn an_unfinished_run_is_reported_with_its_runner() {
    let mut found = done(4);
    found.attempt = attempted(5, Outcome::Running, 1).attempt;
    let (mut host, first) = leads(7, found);
    let notes: Vec<String> = first
        .actions
        .iter()
        .filter_map(|action| {
            if let Action::Note(Note::Unfinished(fact)) = action {
                return Some(format!("{} by {:?}", fact.key, fact.name));
            }
            let Action::Note(note @ Note::WindowsSkipped { .. }) = action else { return None };
            Some(format!("{note:?}"))
        })
        .collect();
    let nobody_led = Note::WindowsSkipped { span: span(6), why: "no-run" };
    assert_eq!(notes, ["window 5 by Some(\"db2-name\")".to_owned(), format!("{nobody_led:?}")]);
    starts(&mut host, first, 7);
}

/// A leader died during the run of window 5, and another leads in the next one.
#[test]
fn a_run_that_is_unfinished_when_the_next_window_begins_is_reported() {
    let mut found = done(4);
    found.attempt = attempted(5, Outcome::Running, 1).attempt;
    let (mut host, first) = leads(6, found);
    let is_unfinished = |action: &&Action| matches!(action, Action::Note(Note::Unfinished(_)));
    assert_eq!(first.actions.iter().filter(is_unfinished).count(), 1);
    starts(&mut host, first, 6);
}

/// An operator forgot what is before the first time of a schedule, or nothing but a begun run is recorded.
#[test]
fn nothing_is_run_before_the_first_time() {
    let mut forgotten = done(0);
    forgotten.done = forgotten.done.map(|fact| Fact { outcome: Outcome::Skipped, ..fact });
    forgotten.forgotten = forgotten.done.clone().map(|fact| Fact { outcome: Outcome::Forgotten, forgets: 1, ..fact });
    for found in [forgotten, attempted(0, Outcome::Running, 1)] {
        let (mut host, first) = leads(0, found);
        assert!(first.appended.is_none() && awaits_window(&host), "{first:?}");
        let due = shows(&mut host, 1);
        starts(&mut host, due, 1);
    }
}

/// It is told to stop while Kafka is away.
#[test]
fn an_outcome_that_is_not_confirmed_when_the_leader_goes_is_reported() {
    for is_confirmed in [false, true] {
        let (mut host, first) = leads(5, done(4));
        starts(&mut host, first, 5);
        host.ends(JobStatus::Exited(0));
        let (id, _) = asked(&mut host).appended.unwrap();
        if is_confirmed {
            facts(&mut host, FactsEvent::Appended { id, offset: 0 });
        }
        host.happens(Event::Signal { signal: TERM, by_terminal: false });
        let mut all = host.actions();
        if !is_confirmed {
            host.pass(LEASE);
            host.answers(Answer::Fenced { term: host.node.supervisor().term().unwrap(), end: None });
            all.extend(host.actions());
        }
        host.reads_what_it_sent();
        all.extend(host.actions());
        assert_eq!(exits(&all).len(), 1, "{all:?}");
        assert_eq!(all.contains(&Action::Note(Note::OutcomeLost)), !is_confirmed, "{all:?}");
    }
}

/// Window 5 was done, forgotten, and run again by a leader that died. Another leads in window 7.
#[test]
fn an_unfinished_run_of_a_forgotten_window_is_reported() {
    let mut found = done(5);
    found.forgotten = found.done.clone().map(|fact| Fact { outcome: Outcome::Forgotten, forgets: 1, ..fact });
    let again = attempted(5, Outcome::Running, 1).attempt;
    found.attempt = again.map(|fact| Fact { forgets: 1, ..fact });
    let (_, first) = leads(7, found);
    let is_unfinished = |action: &&Action| matches!(action, Action::Note(Note::Unfinished(_)));
    assert_eq!(first.actions.iter().filter(is_unfinished).count(), 1, "{first:?}");
}

/// The same window is still shown, but `--catch-up none` leaves it.
#[test]
fn a_run_that_is_unfinished_and_not_caught_up_is_reported() {
    let mut found = done(4);
    found.attempt = attempted(5, Outcome::Running, 1).attempt;
    let (_, first) = leads_with(CatchUp::None, 5, found);
    let notes = |of: fn(&Note) -> bool| {
        first.actions.iter().filter(|action| matches!(action, Action::Note(note) if of(note))).count()
    };
    assert_eq!(notes(|note| matches!(note, Note::Unfinished(_))), 1);
    assert_eq!(notes(|note| matches!(note, Note::WindowsSkipped { .. })), 0, "somebody led");
    let (_, fact) = first.appended.expect("it is recorded as over");
    assert_eq!((fact.outcome, fact.window), (Outcome::Skipped, Some(span(5))));
}

#[test]
fn a_run_that_ended_is_not_reported_as_unfinished() {
    let mut failed = done(4);
    failed.attempt = attempted(5, Outcome::Failed, 1).attempt;
    let mut succeeded = done(5);
    succeeded.attempt = attempted(5, Outcome::Running, 1).attempt;
    for found in [failed, succeeded] {
        let (_, first) = leads(7, found);
        let is_unfinished = |action: &&Action| matches!(action, Action::Note(Note::Unfinished(_)));
        assert_eq!(first.actions.iter().find(is_unfinished), None);
    }
}

/// The success is at another place than the run's beginning, which stays.
#[test]
fn at_a_handover_after_a_success_nothing_is_reported_as_unfinished() {
    for catch_up in [CatchUp::Last, CatchUp::None] {
        let mut found = done(5);
        found.attempt = attempted(5, Outcome::Running, 1).attempt;
        let (host, first) = leads_with(catch_up, 5, found);
        assert!(awaits_window(&host) && first.appended.is_none());
        let notes: Vec<_> = first.actions.into_iter().filter(|action| matches!(action, Action::Note(_))).collect();
        assert_eq!(notes, [waiting(6)]);
    }
}

#[test]
fn windows_during_a_run_are_skipped_and_recorded_as_over() {
    let (mut host, first) = leads(5, done(4));
    starts(&mut host, first, 5);
    for number in 6..8 {
        assert!(shows(&mut host, number).appended.is_none());
    }
    let skipped = ends(&mut host, 0);
    let (_, fact) = skipped.appended.unwrap();
    assert_eq!((fact.outcome, fact.window), (Outcome::Skipped, Some(span(7))));
    let is_noted = |action: &Action| matches!(action, Action::Note(Note::WindowsSkipped { .. }));
    assert_eq!(skipped.actions.iter().filter(|action| is_noted(action)).count(), 1);
}

#[test]
fn a_new_leader_runs_what_has_no_outcome() {
    let mut interrupted = done(4);
    interrupted.attempt = attempted(5, Outcome::Running, 1).attempt;
    let skipped =
        Facts { done: done(5).done.map(|fact| Fact { outcome: Outcome::Skipped, ..fact }), ..Facts::default() };
    // A machine whose clock was two windows behind ran window 3 since.
    let behind = |newer: u64| Facts { hidden: done(newer).done.into_iter().collect(), ..done(3) };
    for (found, runs) in [
        (behind(5), false),
        (behind(7), true),
        (interrupted, true),
        (done(4), true),
        (attempted(5, Outcome::Running, 1), true),
        (attempted(5, Outcome::Failed, 1), false),
        (done(5), false),
        (skipped, false),
    ] {
        let (host, first) = leads(5, found);
        assert_eq!(first.appended.is_some(), runs, "{first:?}");
        assert_eq!(awaits_window(&host), !runs);
    }
}

/// The run of this window, as a release names it.
fn run(number: u64) -> KeyedRun {
    KeyedRun { key: window(number).key, is_window: Some(true) }
}

/// What a leader does whose clock is in window 5, after a release that names the run of that window.
fn leads_after_release(found: Facts) -> (Host, Asked) {
    let schedule = Some(CatchUp::Last);
    let policy = Policy { key: "".into(), window: None, schedule, retries: 0, done_status: 0 };
    let mut host = listening_for(policy);
    // The node's own claim comes second.
    host.actions();
    host.reads(crate::host::by("db2", Body::Claim { after: -1, lease_ms: 2_000, overlap: None }));
    let (why, exit, once) = (Some("fenced".into()), Some(0), Some(run(5)));
    let (late_ms, group_member, successor) = (None, None, None);
    host.reads(crate::host::by(
        "db2",
        Body::Release { term: 0, seen: 0, why, exit, late_ms, group_member, once, successor },
    ));
    host.reads_what_it_sent();
    host.claims();
    host.reads_what_it_sent();
    let id = asked(&mut host).read.unwrap();
    host.happens(Event::Window(window(5)));
    read(&mut host, id, found);
    let asked = asked(&mut host);
    (host, asked)
}

/// Only its release contains the outcome.
#[test]
fn a_run_that_a_release_names_is_not_repeated() {
    let mut found = done(4);
    found.attempt = attempted(5, Outcome::Running, 1).attempt;
    let (host, asked) = leads_after_release(found);
    assert!(asked.appended.is_none());
    assert!(awaits_window(&host));
}

/// The window was forgotten after the run that the release names, and the leader that ran it again has died.
#[test]
fn a_release_does_not_name_a_later_run_of_a_window_that_was_forgotten() {
    let mut found = done(5);
    found.forgotten =
        found.done.as_ref().map(|fact| Fact { outcome: Outcome::Forgotten, term: 1, forgets: 1, ..fact.clone() });
    let again = attempted(5, Outcome::Running, 1).attempt;
    found.attempt = again.map(|fact| Fact { term: 2, forgets: 1, ..fact });
    let (mut host, asked) = leads_after_release(found);
    starts(&mut host, asked, 5);
}

#[test]
fn a_stop_between_two_runs_releases_at_once() {
    let (mut host, _) = leads(5, done(5));
    host.happens(Event::Signal { signal: TERM, by_terminal: false });
    let stopped = asked(&mut host);
    let Some(Record { body: Body::Release { once, why, .. }, .. }) = stopped.releases else { panic!("{stopped:?}") };
    assert_eq!((once, why.as_deref()), (None, Some("stopped")));
    assert!(shows(&mut host, 6).appended.is_none());
    host.reads_what_it_sent();
    assert_eq!(exits(&host.actions()), [Ending::StoppedBy(TERM)]);
}

#[test]
fn a_stop_waits_until_the_outcome_is_recorded_and_the_release_contains_it() {
    let (mut host, first) = leads(5, done(4));
    starts(&mut host, first, 5);
    host.ends(JobStatus::Exited(0));
    let (id, _) = asked(&mut host).appended.unwrap();
    host.happens(Event::Signal { signal: TERM, by_terminal: false });
    assert!(asked(&mut host).releases.is_none());
    facts(&mut host, FactsEvent::Appended { id, offset: 0 });
    let stopped = asked(&mut host);
    let Some(Record { body: Body::Release { once, exit, .. }, .. }) = stopped.releases else { panic!("{stopped:?}") };
    assert_eq!((once, exit), (Some(run(5)), Some(0)));
}

/// The main process has ended with 0, and the processes that it left are being ended.
#[test]
fn a_stop_among_leftovers_of_a_run_ends_the_lead_when_the_outcome_is_recorded() {
    for is_refused in [false, true] {
        let (mut host, first) = leads(5, done(4));
        starts(&mut host, first, 5);
        host.answers(Answer::Exited {
            status: JobStatus::Exited(0),
            ended_at: host.now,
            left: true,
            foreground: false,
        });
        host.happens(Event::Signal { signal: TERM, by_terminal: false });
        host.answers(Answer::Gone);
        let (id, _) = asked(&mut host).appended.unwrap();
        let ended_at = host.now;
        if is_refused {
            facts(&mut host, FactsEvent::NotAppended { id, error: "no".into() });
        } else {
            facts(&mut host, FactsEvent::Appended { id, offset: 0 });
        }
        let released = loop {
            if let Some(release) = asked(&mut host).releases {
                break release;
            }
            assert!(is_refused && host.now.since(ended_at) < LEASE, "the outcome is tried to record for a lease");
            host.answers(Answer::Extended { until: host.now + LEASE });
            host.reads_what_it_sent();
            host.pass_until_due();
        };
        let Body::Release { once, exit, why, .. } = released.body else { panic!("{released:?}") };
        assert_eq!((once, exit, why.as_deref()), (Some(run(5)), Some(0), Some("stopped")));
        host.reads_what_it_sent();
        assert_eq!(exits(&host.actions()), [Ending::Job(JobStatus::Exited(0))]);
    }
}

/// K3: the lease ends before the outcome is acknowledged.
#[test]
fn nothing_is_claimed_before_the_outcome_of_a_lost_lead_is_recorded() {
    let (mut host, first) = leads(5, done(4));
    starts(&mut host, first, 5);
    host.ends(JobStatus::Exited(0));
    host.actions();
    host.pass(LEASE);
    host.answers(Answer::Fenced { term: host.node.supervisor().term().unwrap(), end: None });
    let id = asked(&mut host).read.expect("a later run may have been recorded");
    host.reads_what_it_sent();
    read(&mut host, id, done(4));
    let (id, fact) = asked(&mut host).appended.expect("the outcome is sent again");
    assert_eq!((fact.outcome, fact.window), (Outcome::Done, Some(span(5))));
    host.answered_with(host.end());
    (0..host.end()).for_each(|offset| host.reads_at(offset));
    host.pass(LEASE * 3);
    let waits = asked(&mut host).actions;
    assert!(!waits.iter().any(|action| sends(action, "claim")), "{waits:?}");
    facts(&mut host, FactsEvent::Appended { id, offset: 0 });
    let id = asked(&mut host).read.unwrap();
    read(&mut host, id, done(5));
    host.claims();
}

#[test]
fn a_run_that_can_not_be_recorded_is_left_to_another() {
    let (mut host, _) = leads(5, done(5));
    let due = shows(&mut host, 6);
    let (id, _) = due.appended.unwrap();
    facts(&mut host, FactsEvent::NotAppended { id, error: "no".into() });
    let refused = asked(&mut host);
    assert!(!refused.spawns && refused.releases.is_some(), "{refused:?}");
}

#[test]
fn the_record_of_a_runs_begin_is_awaited_for_half_a_lease() {
    let (mut host, _) = leads(5, done(5));
    assert!(shows(&mut host, 6).appended.is_some());
    let asked_at = host.now;
    while asked(&mut host).releases.is_none() {
        host.reads_what_it_sent();
        host.pass_until_due();
    }
    assert_eq!(host.now.since(asked_at), LEASE / 2);
}

/// The topic of facts was deleted since the lead began: a reading creates it again while the record is still awaited.
#[test]
fn while_the_record_of_a_runs_begin_is_awaited_the_topic_is_looked_for_once() {
    let (mut host, _) = leads(5, done(5));
    let due = shows(&mut host, 6);
    host.pass_until_due();
    let id = loop {
        let asked = asked(&mut host);
        assert!(asked.releases.is_none(), "{asked:?}");
        if let Some(id) = asked.read {
            break id;
        }
        host.reads_what_it_sent();
        host.pass_until_due();
    };
    facts(&mut host, FactsEvent::Created);
    let notes = host.actions();
    assert!(notes.iter().any(|action| matches!(action, Action::Note(Note::FactsLost { .. }))), "{notes:?}");
    read(&mut host, id, Facts::default());
    assert_eq!(host.actions(), [], "once is enough");
    starts(&mut host, due, 6);
}

/// Another machine, whose clock is ahead, has run the next window already.
#[test]
fn the_next_window_is_one_that_may_run() {
    let (mut host, _) = leads(5, done(6));
    assert_eq!(host.status().next_window_ms, Some(span(7).from_ms));
    shows(&mut host, 6);
    assert_eq!(host.status().next_window_ms, Some(span(7).from_ms));
    let due = shows(&mut host, 7);
    assert_eq!(host.status().next_window_ms, None);
    starts(&mut host, due, 7);
    ends(&mut host, 0);
    assert_eq!(host.status().next_window_ms, Some(span(8).from_ms));
}
