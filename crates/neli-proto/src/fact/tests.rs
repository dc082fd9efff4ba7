use super::*;

pub(super) fn fact(outcome: Outcome, term: Offset) -> Fact {
    Fact { member: Some(MemberId::from("m")), name: Some("db2".into()), ..Fact::new("v1.42", outcome, term) }
}

fn come_to(records: &[(Place, Option<&[u8]>)]) -> Facts {
    let mut facts = Facts::default();
    for (place, value) in records {
        facts.take(*place, *value);
    }
    facts
}

#[test]
fn a_fact_is_read_back_as_it_was_written() {
    for outcome in [Outcome::Done, Outcome::Failed, Outcome::Running, Outcome::Skipped, Outcome::Forgotten] {
        let fact = Fact { exit: Some(3), ran_ms: Some(3_200), at_ms: Some(1_769_860_801_123), ..fact(outcome, 57) };
        let fact = Fact { forgets: 2, remakes: 1, seq: 5, ..fact };
        assert_eq!(Fact::parse(&fact.to_bytes()), Some(fact.clone()));
        let of_window = Fact { window: Some(Span { from_ms: 5, until_ms: 10 }), ..fact };
        assert_eq!(Fact::parse(&of_window.to_bytes()), Some(of_window));
    }
    let never_forgotten = fact(Outcome::Done, 5).to_bytes();
    assert!(!never_forgotten.windows(7).any(|part| part == b"forgets"));
    let line = br#"{"v":1,"key":"k","outcome":"done","term":7,"attempt":2,"of a later version":[]}"#;
    let expected = Fact { key: "k".into(), member: None, name: None, attempt: 2, ..fact(Outcome::Done, 7) };
    assert_eq!(Fact::parse(line), Some(expected));
    for nonsense in [&b""[..], b"{}", br#"{"v":2,"key":"k","outcome":"done","term":7,"attempt":2}"#, b"\xff"] {
        assert_eq!(Fact::parse(nonsense), None);
    }
}

#[test]
fn a_late_record_replaces_no_newer_one() {
    let [begun, failed, late] =
        [(Outcome::Running, 9), (Outcome::Failed, 9), (Outcome::Running, 5)].map(|(how, term)| fact(how, term));
    let bytes = [&begun, &failed, &late].map(Fact::to_bytes);
    let facts = come_to(&bytes.each_ref().map(|bytes| (Place::Attempt, Some(&**bytes))));
    assert_eq!(facts, Facts { attempt: Some(failed), ..Facts::default() });
}

/// Terms begin again when the journal is created again, and windows do not: the later window is the newer one, whatever its term.
#[test]
fn a_record_of_an_earlier_term_is_late_unless_it_is_of_a_later_window() {
    let of =
        |term, from_ms| Fact { window: Some(Span { from_ms, until_ms: from_ms + 5 }), ..fact(Outcome::Running, term) };
    for (known, new, is_late) in
        [((9, 5), (5, 0), true), ((9, 5), (5, 5), true), ((9, 5), (5, 10), false), ((9, 5), (9, 5), false)]
    {
        let [known_fact, new_fact] = [known, new].map(|(term, from_ms)| of(term, from_ms));
        assert_eq!(new_fact.is_older_than(&known_fact), is_late, "{new:?} after {known:?}");
    }
}

#[test]
fn facts_before_a_key_was_forgotten_do_not_count_and_later_ones_do() {
    let forgotten = Fact { forgets: 1, ..fact(Outcome::Forgotten, 57) };
    let done = |term, forgets| Fact { forgets, ..fact(Outcome::Done, term) };
    assert!(done(57, 0).is_forgotten_by(&forgotten), "also where its record reaches the log late");
    assert!(!done(58, 0).is_forgotten_by(&forgotten), "a candidate that does not know of it has run the key later");
    assert!(!done(0, 1).is_forgotten_by(&forgotten), "the journal was made anew");
    let records = [done(57, 0), done(0, 1), done(57, 0)].map(|fact| fact.to_bytes());
    let facts = come_to(&records.each_ref().map(|bytes| (Place::Done, Some(&**bytes))));
    assert_eq!(facts.done, Some(done(0, 1)));
}

#[test]
fn the_newer_window_counts_if_terms_began_again_and_the_later_term_if_a_clock_was_wrong() {
    let done = |term, from_ms| {
        let window = Some(Span { from_ms, until_ms: from_ms + 10 });
        Fact { window, ..fact(Outcome::Done, term) }
    };
    for (records, expected) in [
        ([done(5, 10), done(9, 20)], done(9, 20)),
        // The record of the older run reached the log late.
        ([done(9, 20), done(5, 10)], done(9, 20)),
        // The journal was created again.
        ([done(57, 10), done(0, 20)], done(0, 20)),
        // The clock of the first candidate was ahead.
        ([done(5, 9_000), done(9, 20)], done(9, 20)),
    ] {
        let bytes = records.each_ref().map(Fact::to_bytes);
        let facts = come_to(&bytes.each_ref().map(|bytes| (Place::Done, Some(&**bytes))));
        assert_eq!(facts.done, Some(expected));
    }
}

/// The clock of a machine is far behind, and it runs an older window. Then another one, whose clock is far ahead, runs a window of its own.
#[test]
fn an_older_window_replaces_a_newer_one_and_does_not_hide_it() {
    let of =
        |outcome, term, from_ms| Fact { window: Some(Span { from_ms, until_ms: from_ms + 10 }), ..fact(outcome, term) };
    let records = [
        of(Outcome::Done, 5, 50),
        of(Outcome::Done, 7, 20),
        of(Outcome::Done, 9, 9_000),
        of(Outcome::Failed, 11, 50),
        of(Outcome::Done, 12, 50),
        of(Outcome::Running, 13, 30),
        of(Outcome::Done, 13, 30),
    ];
    let read = |end: usize| {
        let bytes: Vec<(Place, Vec<u8>)> = records[..end].iter().map(|fact| (fact.place(), fact.to_bytes())).collect();
        come_to(&bytes.iter().map(|(place, bytes)| (*place, Some(&**bytes))).collect::<Vec<_>>())
    };
    for (end, done, hidden) in
        [(1, 0, &[][..]), (2, 1, &[0]), (3, 2, &[0, 1]), (4, 2, &[0, 1]), (5, 4, &[1, 2]), (7, 6, &[2, 3, 4])]
    {
        let facts = read(end);
        assert_eq!(facts.done.as_ref(), Some(&records[done]), "{end}");
        let expected: Vec<Fact> = hidden.iter().map(|at: &usize| records[*at].clone()).collect();
        assert_eq!(facts.hidden, expected, "{end}");
    }
    // A record without a value removes all of its place.
    let mut facts = read(2);
    facts.take(Place::Done, None);
    assert_eq!(facts, Facts::default());
}

/// Kafka may get a record twice, if the connection broke before its acknowledgement, and the second time only after later records of the same
/// lead. In a lead, windows need not follow each other: the clock may be set back.
#[test]
fn a_record_that_arrives_again_after_a_later_one_of_the_same_lead_does_not_count() {
    let of = |outcome, from_ms, seq| Fact {
        window: Some(Span { from_ms, until_ms: from_ms + 10 }),
        seq,
        ..fact(outcome, 42)
    };
    for (first, later) in [
        (of(Outcome::Skipped, 10, 1), of(Outcome::Done, 20, 3)),
        (of(Outcome::Done, 9_000, 2), of(Outcome::Done, 20, 4)),
        (of(Outcome::Running, 20, 2), of(Outcome::Failed, 20, 3)),
    ] {
        let bytes = [&first, &later, &first].map(Fact::to_bytes);
        let facts = come_to(&bytes.each_ref().map(|bytes| (first.place(), Some(&**bytes))));
        assert_eq!(facts.at(first.place()), Some(&later));
    }
}

/// Each window lasts 10 ms. A run of window 1 is interrupted, and its record reaches the log after window 2 has succeeded.
#[test]
fn with_a_compaction_lag_of_a_window_a_late_record_replaces_no_success_of_the_present_window() {
    let done =
        |term, from_ms| Fact { window: Some(Span { from_ms, until_ms: from_ms + 10 }), ..fact(Outcome::Done, term) };
    let log = [(1, done(1, 0)), (12, done(9, 10)), (13, done(5, 0))];
    for (lag, is_kept) in [(10, true), (2, false)] {
        for now in 13..20 {
            // Compaction removes a record if a later one has its key and the record is older than the lag.
            let kept = log.iter().enumerate().filter(|(at, (written, _))| *at + 1 == log.len() || written + lag > now);
            let records: Vec<Vec<u8>> = kept.map(|(_, (_, fact))| fact.to_bytes()).collect();
            let facts = come_to(&records.iter().map(|bytes| (Place::Done, Some(&**bytes))).collect::<Vec<_>>());
            let counts = facts.done.is_some_and(|fact| fact.term == 9);
            assert!(counts || !is_kept, "{now}");
            assert!(now < 15 || counts == is_kept, "{now}: the lag is needed");
        }
    }
}

/// The record of a run from before the key was forgotten reaches the log after the success of a later run.
#[test]
fn a_late_record_of_a_forgotten_run_replaces_no_success_before_compaction_and_the_request_is_kept() {
    let of = |outcome, term, forgets| Fact { forgets, ..fact(outcome, term) };
    let log = [
        of(Outcome::Done, 5, 0),
        of(Outcome::Forgotten, 9, 1),
        of(Outcome::Running, 12, 1),
        of(Outcome::Done, 12, 1),
        of(Outcome::Done, 5, 0),
    ];
    let read = |log: &[Fact]| {
        let records: Vec<(Place, Vec<u8>)> = log.iter().map(|fact| (fact.place(), fact.to_bytes())).collect();
        come_to(&records.iter().map(|(place, bytes)| (*place, Some(&**bytes))).collect::<Vec<_>>())
    };
    for end in 1..=log.len() {
        // Compaction keeps the last record of each place, and may have processed any number of records.
        for cleaned in 0..end {
            let is_last = |at: usize| !log[at + 1..end].iter().any(|later| later.place() == log[at].place());
            let kept: Vec<Fact> =
                (0..end).filter(|at| *at >= cleaned || is_last(*at)).map(|at| log[at].clone()).collect();
            let facts = read(&kept);
            assert_eq!(facts.forgotten, (end > 1).then(|| log[1].clone()), "{end} {cleaned}");
            let is_done = facts.done.is_some_and(|done| !done.is_forgotten_by(&log[1]));
            // In the remaining case compaction has removed the success before the late record.
            let was_removed = end == log.len() && cleaned > 3;
            assert_eq!(is_done, end >= 4 && !was_removed, "{end} {cleaned}");
        }
    }
}

#[test]
fn a_record_without_a_value_removes_the_fact_and_an_unreadable_one_is_noticed() {
    let done = fact(Outcome::Done, 5).to_bytes();
    assert_eq!(come_to(&[(Place::Done, Some(&done)), (Place::Done, None)]), Facts::default());
    let nonsense = (Place::Done, Some(&b"nonsense"[..]));
    assert!(!come_to(&[nonsense]).unreadable.is_empty());
    assert_eq!(come_to(&[nonsense, (Place::Done, None)]), Facts::default());
}

#[test]
fn each_place_has_its_own_record() {
    let places = [Place::Attempt, Place::Done, Place::Forgotten];
    let known = fact(Outcome::Done, 5);
    for place in places {
        let read = come_to(&[(place, Some(&known.to_bytes())), (place, Some(b"nonsense"))]);
        for other in places {
            assert_eq!(read.unreadable.contains(&other), other == place);
            assert_eq!(read.at(other), Some(&known).filter(|_| other == place));
        }
    }
}

#[test]
fn no_two_elections_share_a_place_if_their_groups_may_have_facts() {
    assert_eq!(record_key("a/0/0", None, Place::Done), record_key("a/0", Some("0"), Place::Done));
    assert!(may_have_facts("a") && may_have_facts("a%2F0 b") && !may_have_facts("a/0"));
    let of = |election, key| record_key(election, Some(key), Place::Done);
    assert_eq!(of("billing/0", "v1.42"), "billing/0/v1.42");
    assert_ne!(of("g/0", "a/0/b"), of("g/0/a/0", "b"));
    assert_ne!(of("g/0", "a%2F"), of("g/0", "a/"));
    assert_ne!(of("g/0", "a%attempt"), record_key("g/0", Some("a"), Place::Attempt));
    assert_eq!(record_key("billing/0", None, Place::Done), "billing/0");
    assert_ne!(of("g/0", "a"), record_key("g/0", None, Place::Attempt));
    assert_ne!(of("g/0", "a%forgotten"), record_key("g/0", Some("a"), Place::Forgotten));
}

// ---- the account of all runs ------------------------------------------------------------------------------------------

fn at(outcome: Outcome, number: u64, seq: u32) -> Fact {
    let window = Some(Span { from_ms: number * 10, until_ms: (number + 1) * 10 });
    let exit = if outcome == Outcome::Failed { Some(3) } else { None };
    Fact { window, exit, seq, ..fact(outcome, 42) }
}

/// Two processes write one after the other. The second one reads what the first one wrote, as it is kept: one fact at each place.
#[test]
fn runs_are_counted_across_processes_and_the_last_success_is_kept() {
    let (mut log, mut first) = (Facts::default(), Account::default());
    let mut write = |runs: &mut Account, now_ms: u64, fact: Fact| {
        let fact = runs.written(now_ms, fact);
        log.take(fact.place(), Some(&fact.to_bytes()));
        log.clone()
    };
    for (outcome, number, seq) in
        [(Outcome::Running, 1, 1), (Outcome::Done, 1, 2), (Outcome::Running, 2, 3), (Outcome::Failed, 2, 4)]
    {
        write(&mut first, number * 10 + 5, at(outcome, number, seq));
    }
    // Its acknowledgement was lost.
    let kept = write(&mut first, 25, at(Outcome::Failed, 2, 4));
    let mut second = Account::default();
    second.read(&kept);
    assert_eq!((second.runs, second.failures), (2, 1));
    assert_eq!(second.last.as_ref().and_then(|last| last.exit), Some(3));
    let success = second.success.clone().unwrap();
    assert_eq!((success.window, success.at_ms), (at(Outcome::Done, 1, 2).window, Some(15)));
    // It is recorded again by the next leader.
    let kept = write(&mut second, 99, Fact { term: 57, seq: 9, ..kept.attempt.clone().unwrap() });
    let again = kept.attempt.as_ref().unwrap();
    assert_eq!((again.account.runs, again.account.failures, again.at_ms), (2, 1, Some(25)));
    // A window that is skipped stands at the place of the success.
    let skipped = Fact { term: 57, ..at(Outcome::Skipped, 3, 1) };
    let kept = write(&mut second, 99, skipped);
    let last = kept.done.as_ref().map(Account::of).unwrap();
    assert_eq!((last.runs, last.failures, last.success), (2, 1, Some(success)));
}

/// So that nobody takes it for the beginning of the waiting for a success, each time that another process leads.
#[test]
fn the_first_window_that_a_candidate_saw_is_passed_on() {
    let (mut log, mut first) = (Facts::default(), Account::default());
    let window = |number| at(Outcome::Running, number, 1).window;
    first.first = window(1);
    let fact = first.written(25, at(Outcome::Running, 2, 1));
    log.take(fact.place(), Some(&fact.to_bytes()));
    let mut second = Account { first: window(7), ..Account::default() };
    second.read(&log);
    assert_eq!(second.first, window(1));
    second.read(&Facts::default());
    assert_eq!(second.first, window(1));
}

/// The next run of the key is recorded in the place of the failure.
#[test]
fn the_end_of_the_last_run_is_known_to_the_next_process_while_a_run_goes_on() {
    let (mut log, mut first) = (Facts::default(), Account::default());
    for (outcome, seq) in [(Outcome::Running, 1), (Outcome::Failed, 2), (Outcome::Running, 3)] {
        let fact = first.written(15, at(outcome, 1, seq));
        log.take(fact.place(), Some(&fact.to_bytes()));
    }
    let mut second = Account::default();
    second.read(&log);
    assert_eq!((second.last.as_ref().and_then(|last| last.exit), second.last.clone()), (Some(3), first.last));
    let forgotten = Fact { forgets: 1, ..at(Outcome::Forgotten, 1, 0) };
    log.take(Place::Forgotten, Some(&forgotten.to_bytes()));
    second.read(&log);
    assert_eq!(second.last, None, "its window is to run again");
}

#[test]
fn facts_of_a_version_without_it_count_as_they_are() {
    let mut runs = Account::default();
    runs.read(&Facts { done: Some(Fact { at_ms: Some(45), ..at(Outcome::Done, 4, 0) }), ..Facts::default() });
    assert_eq!((runs.runs, runs.success.and_then(|success| success.at_ms)), (0, Some(45)));
}
