//! `--window`: the newest window of an election is recorded, with clocks that differ.

use neli_proto::candidate;
use neli_proto::fact::{Fact, Facts, Outcome, Place};
use neli_proto::guard::Answer;
use neli_proto::node::{Action, Event, FactsEvent};
use neli_proto::note::Note;
use neli_proto::once::Policy;
use neli_proto::record::{Body, KeyedRun, MemberId, Offset, Record};
use neli_proto::supervisor::{Ending, JobStatus};
use neli_proto::time::{Span, Window};

use crate::host::{Host, LEASE, by, exits};
use crate::once::{Asked, asked, facts, listening_for, read};

/// The window with this number; each lasts a second.
pub(crate) fn span(number: u64) -> Span {
    Span { from_ms: number * 1_000, until_ms: (number + 1) * 1_000 }
}

pub(crate) fn window(number: u64) -> Window {
    Window { key: format!("window {number}").into(), span: span(number) }
}

/// Another candidate's fact about a window.
fn fact(number: u64, outcome: Outcome, term: Offset, attempt: u32) -> Fact {
    let exit = match outcome {
        Outcome::Done | Outcome::Skipped => Some(0),
        Outcome::Failed => Some(3),
        Outcome::Forgotten | Outcome::Running => None,
    };
    Fact {
        window: Some(span(number)),
        member: Some(MemberId::from("db2")),
        name: Some("db2-name".into()),
        exit,
        attempt,
        at_ms: Some(1_000),
        ..Fact::new(window(number).key, outcome, term)
    }
}

pub(crate) fn done(number: u64) -> Facts {
    Facts { done: Some(fact(number, Outcome::Done, 0, 1)), ..Facts::default() }
}

pub(crate) fn attempted(number: u64, outcome: Outcome, attempt: u32) -> Facts {
    Facts { attempt: Some(fact(number, outcome, 0, attempt)), ..Facts::default() }
}

/// The actions of a candidate that was started in window 5, and leads with these facts while its clock is in window `shown`.
fn leads(shown: u64, found: Facts) -> (Host, Asked) {
    let Window { key, span } = window(5);
    let policy = Policy { key, window: Some(span), schedule: None, retries: 1, done_status: 7 };
    let mut host = listening_for(policy);
    let first = asked(&mut host).read.unwrap();
    read(&mut host, first, Facts::default());
    host.claims();
    host.reads_what_it_sent();
    let id = asked(&mut host).read.unwrap();
    host.happens(Event::Window(window(shown)));
    read(&mut host, id, found);
    let asked = asked(&mut host);
    (host, asked)
}

/// The status of its exit without a run.
fn skips_with((mut host, asked): (Host, Asked)) -> Ending {
    assert!(asked.appended.is_none(), "a run is begun: {asked:?}");
    assert!(asked.releases.is_some(), "{asked:?}");
    host.reads_what_it_sent();
    let ended = exits(&host.actions());
    assert_eq!(ended.len(), 1);
    ended[0]
}

fn runs_as((_, asked): &(Host, Asked)) -> u32 {
    let (_, fact) = asked.appended.as_ref().unwrap_or_else(|| panic!("{asked:?}"));
    assert_eq!((fact.outcome, &*fact.key, fact.window), (Outcome::Running, "window 5", Some(span(5))));
    fact.attempt
}

/// The clock that this machine is told to be wrong by, if it is: that of Kafka when it took the claim.
fn clock_differs(claimed_ms: u64) -> Option<u64> {
    let Window { key, span } = window(500);
    let mut host = listening_for(Policy { key, window: Some(span), schedule: None, retries: 1, done_status: 7 });
    let first = asked(&mut host).read.unwrap();
    read(&mut host, first, Facts::default());
    host.claims();
    for written in std::mem::take(&mut host.sent) {
        let mut event = written.clone().read_at(host.end());
        host.log.push(written);
        if let candidate::Event::Read { written_ms, .. } = &mut event {
            *written_ms = Some(claimed_ms);
        }
        host.elects(event);
    }
    let id = asked(&mut host).read.unwrap();
    host.happens(Event::Window(window(500)));
    read(&mut host, id, Facts::default());
    let claimed =
        |action| if let Action::Note(Note::ClockDiffers { claimed_ms, .. }) = action { Some(claimed_ms) } else { None };
    asked(&mut host).actions.into_iter().find_map(claimed)
}

#[test]
fn a_clock_that_differs_from_kafkas_by_more_than_a_window_is_told_of() {
    assert_eq!([440_000, 500_000, 560_999].map(clock_differs), [None; 3], "a claim takes a moment");
    assert_eq!([439_999, 561_000].map(clock_differs), [Some(439_999), Some(561_000)]);
}

fn is_warned((_, asked): &(Host, Asked)) -> bool {
    asked.actions.iter().any(|action| matches!(action, Action::Note(Note::NotBelieved(_))))
}

#[test]
fn a_window_that_is_done_and_those_before_it_need_no_run() {
    assert_eq!(skips_with(leads(5, done(5))), Ending::Skipped { status: 7, is_done: true });
    assert_eq!(skips_with(leads(5, done(6))), Ending::Skipped { status: 7, is_done: true });
    assert_eq!(runs_as(&leads(5, done(4))), 1);
}

/// A candidate with `--schedule` leaves out the window in which it first leads. Nobody has run it.
#[test]
fn a_window_that_a_schedule_has_left_out_is_run_and_those_before_it_are_over() {
    let left_out = |number| Facts { done: Some(fact(number, Outcome::Skipped, 0, 1)), ..Facts::default() };
    assert_eq!(runs_as(&leads(5, left_out(5))), 1);
    assert_eq!(skips_with(leads(5, left_out(6))), Ending::Skipped { status: 7, is_done: true });
}

#[test]
fn a_window_far_ahead_of_the_clock_is_not_believed() {
    let far = leads(5, done(7));
    assert_eq!((runs_as(&far), is_warned(&far)), (1, true));
    let far = leads(5, attempted(7, Outcome::Failed, 9));
    assert_eq!((runs_as(&far), is_warned(&far)), (1, true));
    // A candidate that has stood by for long uses its present clock.
    assert_eq!(skips_with(leads(8, done(8))), Ending::Skipped { status: 7, is_done: true });
    assert!(!is_warned(&leads(8, done(8))));
}

#[test]
fn failures_are_counted_in_their_window() {
    assert_eq!(runs_as(&leads(5, attempted(5, Outcome::Failed, 1))), 2);
    assert_eq!(skips_with(leads(5, attempted(5, Outcome::Failed, 2))), Ending::Skipped { status: 3, is_done: false });
    assert_eq!(runs_as(&leads(5, attempted(4, Outcome::Failed, 2))), 1);
    // The newer window has an outcome.
    assert_eq!(skips_with(leads(5, attempted(6, Outcome::Failed, 2))), Ending::Skipped { status: 3, is_done: false });
    assert_eq!(runs_as(&leads(5, attempted(6, Outcome::Running, 1))), 1);
}

#[test]
fn the_outcome_is_that_of_the_window_and_the_release_names_it() {
    let (mut host, begun) = leads(6, done(4));
    let (id, _) = begun.appended.unwrap();
    facts(&mut host, FactsEvent::Appended { id, offset: 0 });
    assert!(asked(&mut host).spawns);
    host.started();
    host.actions();
    host.ends(JobStatus::Exited(0));
    let (id, fact) = asked(&mut host).appended.unwrap();
    assert_eq!((fact.outcome, fact.window), (Outcome::Done, Some(span(5))));
    facts(&mut host, FactsEvent::Appended { id, offset: 0 });
    let Some(Record { body: Body::Release { once, .. }, .. }) = asked(&mut host).releases else { panic!("no release") };
    assert_eq!(once, Some(KeyedRun { key: "window 5".into(), is_window: Some(true) }));
}

/// A key may read like the start of a window, and another line of the same group may have it.
#[test]
fn a_key_that_reads_like_a_window_is_no_run_of_it_and_the_reverse() {
    // After a release that names its run a candidate reads the facts before it claims (K1).
    let counts = |policy: Policy, is_window| {
        let mut host = listening_for(policy.clone());
        let id = asked(&mut host).read.unwrap();
        read(&mut host, id, Facts::default());
        host.reads(by("db1", Body::Claim { after: -1, lease_ms: 2_000, overlap: None }));
        let once = Some(KeyedRun { key: policy.key, is_window });
        let (why, exit, late_ms, group_member, successor) = (Some("exited".into()), Some(0), None, None, None);
        host.reads(by("db1", Body::Release { term: 0, seen: 0, why, exit, late_ms, group_member, once, successor }));
        asked(&mut host).read.is_some()
    };
    let window = Policy { key: "window 5".into(), window: Some(span(5)), schedule: None, retries: 0, done_status: 0 };
    let key = Policy { window: None, ..window.clone() };
    for (policy, own, other) in [(window, true, false), (key, false, true)] {
        assert!(counts(policy.clone(), Some(own)));
        assert!(counts(policy.clone(), None), "an earlier version does not say which it is");
        assert!(!counts(policy, Some(other)));
    }
}

/// A machine whose clock is two windows behind has run window 3 since, and replaced the record.
#[test]
fn an_older_window_that_was_run_since_hides_no_newer_one() {
    let after = |facts: Facts, outcome| {
        let mut found = Facts::default();
        for (place, fact) in [(Place::Done, facts.done), (Place::Attempt, facts.attempt)] {
            found.take(place, fact.map(|fact| fact.to_bytes()).as_deref());
        }
        let late = fact(3, outcome, 1, 1);
        found.take(late.place(), Some(&late.to_bytes()));
        found
    };
    assert_eq!(skips_with(leads(5, after(done(5), Outcome::Done))), Ending::Skipped { status: 7, is_done: true });
    assert_eq!(
        skips_with(leads(5, after(attempted(5, Outcome::Failed, 2), Outcome::Running))),
        Ending::Skipped { status: 3, is_done: false }
    );
    assert_eq!(
        runs_as(&leads(5, after(attempted(5, Outcome::Failed, 1), Outcome::Running))),
        2,
        "failures are counted"
    );
    let far = leads(5, after(done(7), Outcome::Done));
    assert_eq!(runs_as(&far), 1, "the first clock may have been wrong");
}

/// A machine whose clock is three windows ahead has run window 8 since, and replaced the record.
#[test]
fn a_window_of_a_wrong_clock_hides_not_that_the_present_one_is_done() {
    let mut found = Facts::default();
    for done in [done(5).done, done(8).done] {
        found.take(Place::Done, done.map(|fact| fact.to_bytes()).as_deref());
    }
    assert_eq!(skips_with(leads(5, found)), Ending::Skipped { status: 7, is_done: true });
}

/// An operator forgot window 5. It runs again, and earlier ones do not.
#[test]
fn a_window_that_is_forgotten_runs_again_and_those_before_it_do_not() {
    let forgotten = |number, mut found: Facts| {
        found.forgotten = Some(Fact { forgets: 1, ..fact(number, Outcome::Forgotten, 0, 1) });
        found
    };
    assert_eq!(runs_as(&leads(5, forgotten(5, done(5)))), 1);
    assert_eq!(runs_as(&leads(5, forgotten(5, attempted(5, Outcome::Failed, 2)))), 1);
    assert_eq!(
        skips_with(leads(6, forgotten(6, done(6)))),
        Ending::Skipped { status: 7, is_done: true },
        "window 5 is over"
    );
    assert_eq!(
        skips_with(leads(6, forgotten(5, done(6)))),
        Ending::Skipped { status: 7, is_done: true },
        "a newer one is done"
    );
}

/// The record is stored at the place of an election's windows, but is not about a window.
#[test]
fn a_fact_of_no_window_is_no_reason_to_run() {
    let mut found = done(5);
    found.done = found.done.map(|fact| Fact { window: None, ..fact });
    let (_, asked) = leads(5, found);
    assert!(asked.appended.is_none(), "a run is begun: {asked:?}");
    assert!(asked.releases.is_some(), "{asked:?}");
}

/// The lease ends before the outcome of window 5 is acknowledged. A record that is there already is of a machine whose clock is far ahead, or was
/// behind.
#[test]
fn the_outcome_of_a_lost_lead_is_recorded_unless_a_later_run_is_found() {
    let of = |number, term| Facts { done: Some(fact(number, Outcome::Done, term, 1)), ..Facts::default() };
    for (number, term, is_recorded) in [(40, -1, true), (4, 9, true), (5, 9, false), (6, 9, false)] {
        let (mut host, begun) = leads(5, of(3, -1));
        let (id, _) = begun.appended.unwrap();
        facts(&mut host, FactsEvent::Appended { id, offset: 0 });
        asked(&mut host);
        host.started();
        host.ends(JobStatus::Exited(0));
        host.actions();
        host.pass(LEASE);
        host.answers(Answer::Fenced { term: host.node.supervisor().term().unwrap(), end: None });
        let id = asked(&mut host).read.unwrap();
        host.reads_what_it_sent();
        read(&mut host, id, of(number, term));
        assert_eq!(asked(&mut host).appended.is_some(), is_recorded, "window {number}, term {term}");
    }
}
