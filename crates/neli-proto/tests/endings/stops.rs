//! A stop at every instant of a candidate's life, for each reason for which a process ends. No job starts after it, no process is left, every
//! claim is awaited and its term released if Kafka is reachable, and it takes no longer than the manual allows (man/neli-run.1.in, SIGNALS).

use std::time::Duration;

use neli_proto::restart::Restart;
use neli_proto::supervisor::OnLoss;

use crate::cases::{Cause, Kafka, Manner, OBEYING, Outcome, Spans};
use crate::fixture::{Fixture, LEASE, RESTART_DELAY, STOP_TIMEOUT};

type Step = (&'static str, fn(&mut Fixture));

/// A life from the start through two terms. Records are read late, so that each of them is a step.
const LIFE: &[Step] = &[
    ("the topic is judged", Fixture::judge),
    ("the log is empty", Fixture::answer),
    ("the group knows it", Fixture::name),
    ("the group has chosen", Fixture::assign),
    ("the hello is read", Fixture::read),
    ("the claim is read", Fixture::read),
    ("the job runs", Fixture::say_started),
    ("the first beat is read", Fixture::read),
    ("a second passes", |fixture| fixture.pass(LEASE / 5)),
    ("the second beat is read", Fixture::read),
    ("the main process ends, and leaves a daemon", |fixture| fixture.main_ends(5, true)),
    ("it takes its time", |fixture| fixture.pass(LEASE / 50)),
    ("a beat says so", Fixture::read),
    ("nothing is left", Fixture::gone),
    ("state beats are a tenth of a second apart", |fixture| fixture.pass(LEASE / 50)),
    ("a beat says so, too", Fixture::read),
    ("the next run", |fixture| {
        fixture.kafka = Kafka::Answers;
        fixture.pass(RESTART_DELAY);
        fixture.kafka = Kafka::Lags;
    }),
    ("it ends", |fixture| fixture.main_ends(0, false)),
    ("a beat says so, as ever", Fixture::read),
    ("the partition goes to another between two runs", |fixture| fixture.happens(Cause::Revoked)),
    ("the release is read", Fixture::read),
    ("it claims again, since nobody else does", |fixture| fixture.pass(LEASE / 5)),
    ("that claim is read", Fixture::read),
    ("the third run goes on", |fixture| fixture.pass(LEASE / 50)),
];

/// The same life, but the topic is judged last.
const JUDGED_LATE: &[Step] = &[
    ("the log is empty", Fixture::answer),
    ("the group knows it", Fixture::name),
    ("the group has chosen", Fixture::assign),
    ("a moment passes", |fixture| fixture.pass(LEASE / 50)),
    ("the topic is judged", Fixture::judge),
    ("the hello is read", Fixture::read),
    ("the claim is read", Fixture::read),
    ("the job runs", Fixture::say_started),
];

/// How long a job waits for its start with `--settle`.
const SETTLE: Duration = Duration::from_secs(3);

/// Two terms in which the jobs wait for their start.
const SETTLING: &[Step] = &[
    ("the topic is judged", Fixture::judge),
    ("the log is empty", Fixture::answer),
    ("the group knows it", Fixture::name),
    ("the group has chosen", Fixture::assign),
    ("the hello is read", Fixture::read),
    ("the claim is read", Fixture::read),
    ("a second passes", |fixture| fixture.pass(LEASE / 5)),
    ("the first beat is read", Fixture::read),
    ("the partition goes to another before the first run", |fixture| fixture.happens(Cause::Revoked)),
    ("the release is read", Fixture::read),
    ("it claims again, since nobody else does", |fixture| fixture.pass(LEASE / 5)),
    ("that claim is read", Fixture::read),
    ("its job is due", |fixture| {
        fixture.kafka = Kafka::Answers;
        fixture.pass(SETTLE);
        fixture.kafka = Kafka::Lags;
    }),
    ("the job runs", Fixture::say_started),
];

/// A life with a term that another candidate overlaps while the job continues.
const OVERLAPPING: &[Step] = &[
    ("the topic is judged", Fixture::judge),
    ("the log is empty", Fixture::answer),
    ("the group knows it", Fixture::name),
    ("the group has chosen", Fixture::assign),
    ("the hello is read", Fixture::read),
    ("another stands by", Fixture::read_standby),
    ("the claim is read", Fixture::read),
    ("the job runs", Fixture::say_started),
    ("the first beat is read", Fixture::read),
    ("it is asked to resign", |fixture| fixture.happens(Cause::Resigned)),
    ("the request is read", Fixture::read),
    ("its beat says that it yields", Fixture::read),
    ("another claims over its term", Fixture::overlap),
    ("that claim is read", Fixture::read),
    ("the job is asked to stop", |fixture| fixture.pass(LEASE / 8)),
];

#[test]
fn at_every_instant() {
    stop_at_every_instant_of(&Life { steps: LIFE, runs: 3, spans: Spans::default() });
}

#[test]
fn at_every_instant_of_a_hand_over() {
    let overlap = Some(Duration::from_secs(1));
    stop_at_every_instant_of(&Life { steps: OVERLAPPING, runs: 1, spans: Spans { overlap, ..Spans::default() } });
}

#[test]
fn at_every_instant_before_the_first_run() {
    stop_at_every_instant_of(&Life { steps: SETTLING, runs: 1, spans: Spans { settle: SETTLE, ..Spans::default() } });
}

#[test]
fn at_every_instant_before_a_late_judgement() {
    stop_at_every_instant_of(&Life { steps: JUDGED_LATE, runs: 1, spans: Spans::default() });
}

/// The steps of a life, and the number of runs in the whole life.
struct Life {
    steps: &'static [Step],
    runs: usize,
    spans: Spans,
}

fn stop_at_every_instant_of(life: &Life) {
    for kafka in [Kafka::Answers, Kafka::IsGone] {
        for manner in [Manner::Obeys, Manner::Stubborn] {
            for cause in [Cause::Term, Cause::SecondTerm, Cause::Refused] {
                for steps in 0..=life.steps.len() {
                    let at = steps.checked_sub(1).map_or("the start", |last| life.steps[last].0);
                    let label = format!("{cause:?} after {at}, {kafka:?}, {manner:?}");
                    stop_after(life, steps, (kafka, manner, cause), &label);
                }
            }
        }
    }
}

fn stop_after(life: &Life, steps: usize, (kafka, manner, cause): (Kafka, Manner, Cause), label: &str) {
    let mut fixture = Fixture::with(life.spans, OnLoss::Standby, Restart::Always, None);
    fixture.kafka = Kafka::Lags;
    for (_, step) in &life.steps[..steps] {
        step(&mut fixture);
    }
    assert!(steps < life.steps.len() || fixture.spawns == life.runs, "a whole life has {} runs", life.runs);
    let (spawns, begun) = (fixture.spawns, fixture.now());
    fixture.kafka = kafka;
    if kafka == Kafka::IsGone {
        fixture.lose_unread();
    }
    fixture.happens(cause);
    let outcome = fixture.finish(manner);
    let Outcome::Exit(status) = outcome else { panic!("{label}: it stands by") };
    if cause == Cause::Refused {
        assert_eq!(status, 125, "{label}");
    } else {
        assert!([0, 5, OBEYING, 137, 143].contains(&status), "{label}: {status}");
    }
    assert_eq!(fixture.spawns, spawns, "{label}: nothing is started any more");
    assert!(!fixture.has_job(), "{label}: nothing is left");
    let took = fixture.exited_at().since(begun);
    // A stop takes the barrier, and at most a lease each for a claim and for the delivery of the release.
    let barrier = if manner == Manner::Stubborn { STOP_TIMEOUT } else { Duration::ZERO };
    let allowed = barrier + LEASE * 2;
    assert!(took <= allowed, "{label}: it took {took:?}");
    if kafka == Kafka::Answers {
        let (won, released) = fixture.terms;
        assert_eq!(won, released, "{label}: each term has its release");
    }
}
