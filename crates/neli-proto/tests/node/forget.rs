//! `neli-run forget`: a key that is done or has failed runs again.

use neli_proto::fact::{Fact, Facts, Outcome, Place};
use neli_proto::record::Offset;
use neli_proto::supervisor::Ending;

use crate::host::exits;
use crate::once::{KEY, asked, attempted, done, fact, is_released, leading, listening, read};

/// Facts in which an operator forgot the key when the journal had reached this term.
fn forgotten(facts: Facts, term: Offset) -> Facts {
    Facts { forgotten: Some(Fact { forgets: 1, ..fact(Outcome::Forgotten, term, None, 1) }), ..facts }
}

#[test]
fn a_key_that_is_forgotten_runs_again_whatever_the_journal_contains() {
    for (exit, found) in [(0, done(0)), (3, attempted(fact(Outcome::Failed, 0, Some(3), 1)))] {
        let mut host = listening(0);
        let id = asked(&mut host).read.unwrap();
        is_released(&mut host, KEY, exit);
        read(&mut host, id, forgotten(found.clone(), 1));
        host.claims();
        host.reads_what_it_sent();
        let id = asked(&mut host).read.unwrap();
        read(&mut host, id, forgotten(found, 1));
        let (_, begun) = asked(&mut host).appended.unwrap();
        assert_eq!((begun.outcome, begun.attempt, begun.forgets), (Outcome::Running, 1, 1));
    }
}

#[test]
fn facts_after_a_key_was_forgotten_count() {
    let succeeded = |term, forgets| {
        let found = Facts { done: Some(Fact { forgets, ..fact(Outcome::Done, term, Some(0), 1) }), ..Facts::default() };
        let mut host = listening(0);
        let id = asked(&mut host).read.unwrap();
        read(&mut host, id, forgotten(found, 57));
        exits(&host.actions())
    };
    assert_eq!(succeeded(57, 0), []);
    assert_eq!(
        succeeded(58, 0),
        [Ending::Skipped { status: 7, is_done: true }],
        "the run of a candidate that does not know of it"
    );
    assert_eq!(succeeded(3, 1), [Ending::Skipped { status: 7, is_done: true }], "the journal was made anew");
}

/// For candidates that stand by, the run during which the key was forgotten does not count.
#[test]
fn a_release_of_the_run_that_went_on_is_a_vacancy() {
    let mut host = listening(0);
    let id = asked(&mut host).read.unwrap();
    read(&mut host, id, Facts::default());
    host.actions();
    is_released(&mut host, KEY, 0);
    let id = asked(&mut host).read.unwrap();
    read(&mut host, id, forgotten(done(0), 0));
    host.claims();
}

#[test]
fn an_undecodable_record_of_the_forgetting_does_not_cause_a_run() {
    let (mut host, id) = leading(0);
    read(&mut host, id, Facts { unreadable: [Place::Forgotten].into(), ..Facts::default() });
    let asked = asked(&mut host);
    assert!(!asked.spawns && asked.appended.is_none() && asked.releases.is_some(), "{asked:?}");
}
