//! `--once`: answers that come late or never, and which of two facts of a key counts.

use std::time::Duration;

use neli_proto::candidate::{Durations, Elector, Timings};
use neli_proto::fact::{Fact, Facts, Outcome, Place};
use neli_proto::guard::Answer;
use neli_proto::kafka::Request;
use neli_proto::node::{Action, Event, FactsEvent, Node};
use neli_proto::note::Note;
use neli_proto::random::Random;
use neli_proto::record::{Body, KeyedRun, Why};
use neli_proto::supervisor::{Ending, JobStatus};

use crate::host::{DURATIONS, Host, LEASE, TERM, by, exits, sends};
use crate::once::{asked, attempted, done, fact, facts, leading, listening, listening_to, policy, read, running};
use crate::records::hello;

/// The node wakes only when an action is due.
#[test]
fn facts_are_waited_for_half_a_lease() {
    let (mut host, _) = leading(0);
    let led = host.now;
    while asked(&mut host).releases.is_none() {
        host.reads_what_it_sent();
        host.pass_until_due();
    }
    assert_eq!(host.now.since(led), LEASE / 2);
}

#[test]
fn a_leader_that_has_not_read_all_facts_in_time_logs_its_progress() {
    let (mut host, _) = leading(0);
    facts(&mut host, FactsEvent::Reading { progress: "5 of 9".into() });
    assert_eq!(host.actions(), [], "it may be done in time");
    let notes = loop {
        let asked = asked(&mut host);
        if asked.releases.is_some() {
            break asked.actions;
        }
        host.reads_what_it_sent();
        host.pass_until_due();
    };
    assert!(notes.contains(&Action::Note(Note::FactsUnavailable { error: "5 of 9".into() })), "{notes:?}");
}

/// Candidates that can't read the facts would otherwise pass the lead on to each other without a pause.
#[test]
fn each_lead_without_the_facts_doubles_the_wait_before_the_next_also_if_another_led_meanwhile() {
    let (mut host, mut id) = leading(0);
    for back_off_ms in [500, 1_000, 2_000] {
        read(&mut host, id, Facts { unreadable: [Place::Attempt].into(), ..Facts::default() });
        let stands_by = asked(&mut host);
        assert!(stands_by.releases.is_some());
        host.reads_what_it_sent();
        assert!(
            host.node.candidate().claims_at().is_some(),
            "it says when it claims, if it can read the facts by then"
        );
        let term = host.end();
        host.reads(by("db1", Body::Claim { after: term - 1, lease_ms: 2_000, overlap: None }));
        let why = Some(Why::FactsUnavailable.as_str().into());
        let (exit, once, late_ms, group_member, successor) = (None, None, None, None, None);
        host.reads(by("db1", Body::Release { term, seen: term, why, exit, late_ms, group_member, once, successor }));
        let vacant = host.now;
        read(&mut host, stands_by.read.unwrap(), Facts::default());
        host.claims();
        let waited = host.now.since(vacant);
        assert!(waited >= Duration::from_millis(back_off_ms), "{waited:?}: before the end of its back-off");
        host.reads_what_it_sent();
        id = asked(&mut host).read.unwrap();
    }
}

/// A candidate that exits waits for its release only: a run that it announced then would never be.
#[test]
fn after_a_stop_no_run_is_announced_and_no_answer_is_missed() {
    let (is_reading, id) = leading(0);
    let mut is_announcing = is_reading.clone();
    read(&mut is_announcing, id, Facts::default());
    assert!(asked(&mut is_announcing).appended.is_some());
    for mut host in [is_reading, is_announcing] {
        host.happens(Event::Signal { signal: TERM, by_terminal: false });
        assert!(asked(&mut host).releases.is_some());
        host.pass(LEASE / 2);
        assert_eq!(host.actions(), [], "it is told that the facts can't be read");
        read(&mut host, id, Facts::default());
        assert_eq!(host.actions(), []);
    }
}

#[test]
fn a_standby_that_can_not_read_logs_each_reason_once() {
    let notes = |host: &mut Host, error: &str| {
        facts(host, FactsEvent::Unread { error: error.into() });
        host.actions()
    };
    let unavailable = |why: &str| Action::Note(Note::FactsUnavailable { error: why.into() });
    let mut host = listening(0);
    host.actions();
    assert_eq!(notes(&mut host, "no"), [unavailable("no")]);
    assert_eq!(notes(&mut host, "no"), []);
    assert_eq!(notes(&mut host, "never"), [unavailable("never")]);
    // A leader logs it when it stands down.
    let (mut host, _) = leading(0);
    assert_eq!(notes(&mut host, "no"), []);
    host.pass(LEASE / 2);
    assert!(host.actions().contains(&unavailable("no")));
}

#[test]
fn an_answer_to_an_earlier_query_is_ignored() {
    let (mut host, earlier) = leading(0);
    host.happens(Event::StandDown { why: Why::Unhealthy, leaving: false });
    let stands_by = asked(&mut host);
    assert!(stands_by.releases.is_some() && stands_by.read.is_some_and(|read| read != earlier), "{stands_by:?}");
    host.reads_what_it_sent();
    read(&mut host, earlier, done(3));
    assert_eq!(exits(&host.actions()), []);
    host.pass(Duration::from_secs(100));
    assert!(!host.actions().iter().any(|action| sends(action, "claim")));

    let (mut host, id) = leading(0);
    read(&mut host, id, Facts::default());
    let (begun, _) = asked(&mut host).appended.unwrap();
    facts(&mut host, FactsEvent::Appended { id: begun - 1, offset: 0 });
    facts(&mut host, FactsEvent::NotAppended { id: begun - 1, error: "no".into() });
    assert_eq!(host.actions(), [], "it neither runs nor gives up");
    facts(&mut host, FactsEvent::Appended { id: begun, offset: 0 });
    assert!(asked(&mut host).spawns);
    host.started();
    host.actions();
    host.ends(JobStatus::Exited(0));
    host.actions();
    facts(&mut host, FactsEvent::NotAppended { id: begun, error: "no".into() });
    assert_eq!(host.actions(), [], "the outcome is on its way still");
}

/// Acknowledges the `running` of this leader, who reads no facts, two offsets beyond the end to which it has read them. Returns the fact, and
/// the next reading.
fn unconfirmed(host: &mut Host, id: u32) -> (Fact, u32) {
    read(host, id, Facts::default());
    let (id, begun) = asked(host).appended.unwrap();
    facts(host, FactsEvent::Appended { id, offset: 2 });
    let asked = asked(host);
    assert!(!asked.spawns);
    (begun, asked.read.unwrap())
}

/// The broker that answered leads the topic's partition no longer, or others have recorded facts meanwhile.
#[test]
fn facts_that_may_not_be_all_are_read_again_before_the_run() {
    let reads = |host: &mut Host, id: u32, end: i64, found: Facts| {
        facts(host, FactsEvent::Read { id, end, facts: Box::new(found) });
        asked(host)
    };
    for is_done in [false, true] {
        let (mut host, id) = leading(1);
        let (_, id) = unconfirmed(&mut host, id);
        let old = reads(&mut host, id, 2, Facts::default());
        assert!(!old.spawns && old.read.is_none(), "{old:?}");
        host.pass(Duration::from_secs(1));
        let id = asked(&mut host).read.unwrap();
        let found = if is_done { done(3) } else { Facts::default() };
        let last = reads(&mut host, id, 3, found);
        assert_eq!((last.spawns, last.releases.is_some()), (!is_done, is_done), "{last:?}");
    }
    // Without an answer it lets another lead.
    let (mut host, id) = leading(1);
    let (_, id) = unconfirmed(&mut host, id);
    reads(&mut host, id, 2, Facts::default());
    host.pass(LEASE);
    let error = "the broker that answers does not have the last facts".into();
    assert!(host.actions().contains(&Action::Note(Note::FactsUnavailable { error })));
}

/// Meanwhile another run was recorded as failed, and the own `running` after it. It counts as any failure, for the others too.
#[test]
fn a_failure_that_is_read_before_the_run_counts() {
    for retries in [0, 1] {
        let (mut host, id) = leading(retries);
        let (begun, id) = unconfirmed(&mut host, id);
        let mut found = Facts::default();
        // The client may send a record twice.
        for fact in [&fact(Outcome::Failed, -1, Some(3), 1), &begun, &begun] {
            found.take(Place::Attempt, Some(&fact.to_bytes()));
        }
        facts(&mut host, FactsEvent::Read { id, end: 3, facts: Box::new(found.clone()) });
        let last = asked(&mut host);
        assert_eq!((last.spawns, last.releases.is_some()), (false, retries == 0), "{last:?}");
        let (id, again) = last.appended.unwrap();
        if retries == 0 {
            let mut compacted = Facts::default();
            compacted.take(Place::Attempt, Some(&again.to_bytes()));
            found.take(Place::Attempt, Some(&again.to_bytes()));
            for all in [found, compacted] {
                let mut other = listening(retries);
                let first = asked(&mut other).read.unwrap();
                read(&mut other, first, all);
                assert_eq!(
                    exits(&other.actions()),
                    [Ending::Skipped { status: 3, is_done: false }],
                    "it claims nothing"
                );
            }
        } else {
            let begun = again;
            assert_eq!((begun.outcome, begun.attempt), (Outcome::Running, 2));
            facts(&mut host, FactsEvent::Appended { id, offset: 3 });
            assert!(asked(&mut host).spawns);
            host.started();
            host.actions();
            host.ends(JobStatus::Exited(3));
            let (_, failed) = asked(&mut host).appended.unwrap();
            assert_eq!((failed.outcome, failed.attempt), (Outcome::Failed, 2));
        }
    }
}

/// An operator has forgotten the key before `running` reached the log, and so did not see it; but the claim stands before the forgetting.
#[test]
fn a_key_that_is_forgotten_before_the_run_is_done_after_it() {
    let (mut host, id) = leading(0);
    let (begun, id) = unconfirmed(&mut host, id);
    let forgotten = Some(Fact { forgets: 1, ..fact(Outcome::Forgotten, begun.term, None, 1) });
    let found = Facts { forgotten, ..attempted(begun) };
    facts(&mut host, FactsEvent::Read { id, end: 3, facts: Box::new(found) });
    assert!(asked(&mut host).spawns);
    host.started();
    host.actions();
    host.ends(JobStatus::Exited(0));
    let (id, ended) = asked(&mut host).appended.unwrap();
    assert_eq!((ended.outcome, ended.forgets), (Outcome::Done, 1));
    facts(&mut host, FactsEvent::Appended { id, offset: 3 });
    host.actions();
    host.reads_what_it_sent();
    assert_eq!(exits(&host.actions()), [Ending::Job(JobStatus::Exited(0))]);
}

/// The broker that answered first had lost the facts of an earlier journal, in which terms were higher.
#[test]
fn a_journal_that_was_made_anew_is_noticed_before_the_run() {
    let (mut host, id) = leading(0);
    let (begun, id) = unconfirmed(&mut host, id);
    let found = attempted(fact(Outcome::Running, begun.term + 100, None, 1));
    facts(&mut host, FactsEvent::Read { id, end: 3, facts: Box::new(found) });
    assert!(asked(&mut host).spawns);
    host.started();
    host.actions();
    host.ends(JobStatus::Exited(3));
    let (_, failed) = asked(&mut host).appended.unwrap();
    assert_eq!((failed.outcome, failed.remakes), (Outcome::Failed, 1));
}

/// The second reading opens a connection as the first did, so on a slow link it takes as long: for longer than half a lease, after a lead in
/// which that was too short.
#[test]
fn a_second_reading_is_waited_for_as_long_as_the_first() {
    let (mut host, _) = leading(1);
    host.pass(LEASE / 2);
    let stands_by = asked(&mut host);
    assert!(stands_by.releases.is_some());
    host.reads_what_it_sent();
    read(&mut host, stands_by.read.unwrap(), Facts::default());
    host.claims();
    host.reads_what_it_sent();
    let id = asked(&mut host).read.unwrap();
    unconfirmed(&mut host, id);
    let waits = host.now;
    while asked(&mut host).releases.is_none() {
        host.reads_what_it_sent();
        host.pass_until_due();
    }
    assert!(host.now.since(waits) > LEASE * 3 / 4, "{:?}", host.now.since(waits));
}

/// The fence came before the acknowledgement, and the topic still contains the run as begun.
#[test]
fn the_known_outcome_of_an_own_run_precedes_its_recorded_beginning() {
    let (mut host, begun) = running(0, Facts::default());
    host.ends(JobStatus::Exited(3));
    host.actions();
    host.pass(LEASE);
    host.answers(Answer::Fenced { term: 0, end: None });
    let id = asked(&mut host).read.unwrap();
    host.reads_what_it_sent();
    read(&mut host, id, attempted(Fact { at_ms: Some(1_000), ..begun }));
    let (id, failed) = asked(&mut host).appended.expect("the outcome is sent again");
    facts(&mut host, FactsEvent::Appended { id, offset: 0 });
    let id = asked(&mut host).read.unwrap();
    read(&mut host, id, attempted(failed));
    assert_eq!(exits(&host.actions()), [Ending::Skipped { status: 3, is_done: false }]);
}

#[test]
fn a_later_run_goes_before_one_that_has_failed() {
    let mut host = listening(2);
    let id = asked(&mut host).read.unwrap();
    read(&mut host, id, attempted(fact(Outcome::Failed, 0, Some(3), 1)));
    host.claims();
    host.reads_what_it_sent();
    let id = asked(&mut host).read.unwrap();
    // The runner has died. It had counted a failure that this node has not read.
    read(&mut host, id, attempted(fact(Outcome::Running, 4, None, 3)));
    let (_, begun) = asked(&mut host).appended.unwrap();
    assert_eq!(begun.attempt, 3);
}

/// In a journal that was created again the terms begin at 0.
#[test]
fn of_two_failures_under_the_same_term_the_one_that_was_read_later_counts() {
    let mut host = listening(1);
    let id = asked(&mut host).read.unwrap();
    read(&mut host, id, attempted(fact(Outcome::Failed, 0, Some(3), 1)));
    host.claims();
    host.reads_what_it_sent();
    let id = asked(&mut host).read.unwrap();
    read(&mut host, id, attempted(fact(Outcome::Failed, 0, Some(4), 2)));
    host.actions();
    host.reads_what_it_sent();
    assert_eq!(exits(&host.actions()), [Ending::Skipped { status: 4, is_done: false }]);
}

#[test]
fn a_refused_node_neither_asks_for_facts_nor_takes_them() {
    let refused = || Event::Refused("no".into());
    let (mut host, _) = running(0, Facts::default());
    host.happens(refused());
    host.ends(JobStatus::Exited(0));
    let stopped = asked(&mut host);
    assert!(stopped.releases.is_some() && stopped.read.is_none(), "{stopped:?}");

    let mut host = listening(0);
    let id = asked(&mut host).read.unwrap();
    host.happens(refused());
    assert_eq!(exits(&host.actions()), [Ending::Refused]);
    read(&mut host, id, done(3));
    assert_eq!(host.actions(), []);
}

/// The topic of facts was created again, but the journal contains a run. This is reported in whichever order the two are read.
#[test]
fn lost_facts_are_reported() {
    let release = |once: Option<&str>| Body::Release {
        term: 0,
        seen: 0,
        why: Some("exited".into()),
        exit: Some(0),
        late_ms: None,
        group_member: None,
        once: once.map(|key| KeyedRun { key: key.into(), is_window: Some(false) }),
        successor: None,
    };
    let lost = |history: u8, key: Option<&str>, is_made_first: bool| {
        let mut host = listening_to(policy(0), history.into());
        if is_made_first {
            facts(&mut host, FactsEvent::Created);
        }
        host.reads(by("db1", Body::Claim { after: -1, lease_ms: 2_000, overlap: None }));
        host.reads(by("db1", release(key)));
        if !is_made_first {
            facts(&mut host, FactsEvent::Created);
        }
        host.actions().iter().filter(|action| is_lost(action)).count()
    };
    for is_made_first in [true, false] {
        assert_eq!(lost(2, Some("v1.41"), is_made_first), 1);
        assert_eq!(lost(2, None, is_made_first), 0, "no run was recorded");
        for end in [0, 1] {
            assert_eq!(lost(end, Some("v1.41"), is_made_first), 0, "it has run since");
        }
    }
}

/// The topic was deleted while the job ran.
#[test]
fn facts_that_are_lost_under_a_leader_are_reported() {
    let (mut host, _) = running(0, Facts::default());
    facts(&mut host, FactsEvent::Created);
    let lost = |host: &mut Host| host.actions().iter().filter(|action| is_lost(action)).count();
    assert_eq!(lost(&mut host), 0, "nothing but that it runs was recorded");
    host.ends(JobStatus::Exited(0));
    facts(&mut host, FactsEvent::Created);
    assert_eq!(lost(&mut host), 1);
}

fn is_lost(action: &Action) -> bool {
    matches!(action, Action::Note(Note::FactsLost { .. }))
}

/// It could not claim, so the leader's job would be stopped, and nobody would lead until the leader has cooled off.
#[test]
fn before_the_facts_were_read_no_leader_of_lower_priority_is_asked_to_resign() {
    let mut host = Host::new(&[], true);
    let mut settings = Host::settings(host.now, &[], true);
    let preempt_after = Duration::from_secs(1);
    let durations = Durations { preempt_after: Some(preempt_after), ..DURATIONS };
    settings.timings = Timings::new(durations, Elector::Log).unwrap();
    settings.hello = hello("me", 10);
    settings.once = Some(policy(0));
    host.node = Node::new(host.now, settings, Random::from_seed(1));
    let mut host = host.listened();
    host.answered_with(2);
    host.reads(by("db1", Body::Claim { after: -1, lease_ms: 60_000, overlap: None }));
    host.reads(hello("db1", 5));
    let question = asked(&mut host).read.unwrap();
    host.pass(preempt_after * 2);
    assert!(!host.actions().iter().any(|action| sends(action, "request")));
    read(&mut host, question, Facts::default());
    host.pass(preempt_after);
    assert!(host.actions().iter().any(|action| sends(action, "request")));
}

/// If the topic was created again on another broker, a producer that wrote to the old one may never write to the new one.
#[test]
fn a_producer_whose_facts_are_not_acknowledged_for_two_leases_is_replaced() {
    let is_new_producer = |action: &Action| *action == Action::Kafka(Request::RenewProducer);
    // While the outcome is tried to record, the lead is kept.
    let (mut host, _) = running(0, Facts::default());
    host.ends(JobStatus::Exited(0));
    let mut refused_at = None;
    for replaced in 1..=2 {
        loop {
            let asked = asked(&mut host);
            assert!(asked.releases.is_none(), "{asked:?}");
            if asked.actions.iter().any(is_new_producer) {
                let reading = asked.read.expect("a reading, which creates a topic that is missing");
                read(&mut host, reading, done(3));
                assert_eq!(host.actions(), [], "no answer is awaited");
                assert!(host.now.since(refused_at.unwrap()) >= LEASE * 2 * replaced);
                break;
            }
            assert!(
                refused_at.is_none_or(|at| host.now.since(at) < LEASE * 2 * (replaced + 1)),
                "it is never replaced"
            );
            if let Some((id, _)) = asked.appended {
                facts(&mut host, FactsEvent::NotAppended { id, error: "no".into() });
                refused_at.get_or_insert(host.now);
                continue;
            }
            host.reads_what_it_sent();
            host.answers(Answer::Extended { until: host.now + LEASE });
            host.pass_until_due();
        }
    }
    // A run that can't be announced ends its lead. The release is written by the new producer.
    let (mut host, id) = leading(0);
    read(&mut host, id, Facts::default());
    let mut leads = 0;
    let replaced = loop {
        let asked = asked(&mut host);
        let new = asked.actions.iter().position(is_new_producer);
        if let Some(new) = new {
            break asked.actions.iter().position(|action| sends(action, "release")).is_some_and(|at| at > new);
        }
        assert!(leads < 5, "it is never replaced");
        if let Some(id) = asked.read {
            leads += 1;
            read(&mut host, id, Facts::default());
            continue;
        }
        host.reads_what_it_sent();
        host.answers(Answer::Extended { until: host.now + LEASE });
        host.pass_until_due();
    };
    assert!(replaced);
}

/// The topic has the facts of a run in an earlier journal, in which terms were higher.
#[test]
fn failures_are_counted_in_a_journal_that_was_created_again() {
    for (earlier, retries, expected) in [
        (fact(Outcome::Running, 1_000, None, 1), 0, 1),
        (fact(Outcome::Running, 1_000, None, 1), 2, 3),
        (fact(Outcome::Failed, 1_000, Some(3), 1), 2, 2),
    ] {
        let mut topic = attempted(earlier);
        let mut host = listening(retries);
        let mut runs = 0;
        let ending = loop {
            let mut asked = asked(&mut host);
            if let Some(ending) = exits(&asked.actions).first() {
                break *ending;
            }
            if let Some((id, fact)) = asked.appended.take() {
                topic.take(fact.place(), Some(&fact.to_bytes()));
                facts(&mut host, FactsEvent::Appended { id, offset: 0 });
            } else if let Some(id) = asked.read.take() {
                read(&mut host, id, topic.clone());
            } else if asked.spawns {
                runs += 1;
                assert!(runs <= expected, "{retries} retries");
                host.started();
                host.actions();
                host.ends(JobStatus::Exited(3));
            } else {
                host.reads_what_it_sent();
                host.answers(Answer::Extended { until: host.now + LEASE });
                // A node that has ended has no timeout.
                if host.node.poll_timeout().is_some() {
                    host.pass_until_due();
                }
            }
        };
        assert_eq!((runs, ending), (expected, Ending::Job(JobStatus::Exited(3))));
    }
}

/// The process was stopped until its lease was over, and the answer was waiting. Another leader may have recorded facts meanwhile.
#[test]
fn after_the_leases_end_no_run_is_announced() {
    let (mut host, id) = leading(0);
    host.now = host.now + LEASE;
    read(&mut host, id, Facts::default());
    assert!(asked(&mut host).appended.is_none());
}
