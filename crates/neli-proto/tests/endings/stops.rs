//! A stop at every instant of a life: nothing is started after it, nothing is left, no term stays without its release where
//! there is a Kafka, and it takes no longer than the manual allows (man/neli-run.1.in, SIGNALS).

use std::time::Duration;

use neli_proto::restart::Restart;
use neli_proto::supervisor::OnLoss;

use crate::cases::{Cause, Kafka, Manner, OBEYING, Outcome, Spans};
use crate::scene::{LEASE, RESTART_DELAY, STOP_TIMEOUT, Scene};

type Step = (&'static str, fn(&mut Scene));

/// A life, from the start through two terms; Kafka lags, so that each record that comes back is a step.
const LIFE: &[Step] = &[
    ("the topic is judged", Scene::judge),
    ("the log is empty", Scene::answer),
    ("the group knows it", Scene::name),
    ("the group has chosen", Scene::assign),
    ("the hello is read", Scene::read),
    ("the claim is read", Scene::read),
    ("the job runs", Scene::say_started),
    ("the first beat is read", Scene::read),
    ("a second passes", |scene| scene.pass(LEASE / 5)),
    ("the second beat is read", Scene::read),
    ("the main process ends, and leaves a daemon", |scene| scene.main_ends(5, true)),
    ("it takes its time", |scene| scene.pass(LEASE / 50)),
    ("a beat says so", Scene::read),
    ("nothing is left", Scene::gone),
    ("state beats are a tenth of a second apart", |scene| scene.pass(LEASE / 50)),
    ("a beat says so, too", Scene::read),
    ("the next run", |scene| {
        scene.kafka = Kafka::Answers;
        scene.pass(RESTART_DELAY);
        scene.kafka = Kafka::Lags;
    }),
    ("it ends", |scene| scene.main_ends(0, false)),
    ("a beat says so, as ever", Scene::read),
    ("the partition goes to another between two runs", |scene| scene.happens(Cause::Revoked)),
    ("the release is read", Scene::read),
    ("it claims again, since nobody else does", |scene| scene.pass(LEASE / 5)),
    ("that claim is read", Scene::read),
    ("the third run goes on", |scene| scene.pass(LEASE / 50)),
];

/// The same, where the topic is judged last.
const JUDGED_LATE: &[Step] = &[
    ("the log is empty", Scene::answer),
    ("the group knows it", Scene::name),
    ("the group has chosen", Scene::assign),
    ("the claim is read", Scene::read),
    ("a moment passes", |scene| scene.pass(LEASE / 50)),
    ("the topic is judged", Scene::judge),
    ("the job runs", Scene::say_started),
    ("the hello is read", Scene::read),
];

/// How long the job of a settling life waits for its start.
const SETTLE: Duration = Duration::from_secs(3);

/// Two terms whose jobs wait for their start.
const SETTLING: &[Step] = &[
    ("the topic is judged", Scene::judge),
    ("the log is empty", Scene::answer),
    ("the group knows it", Scene::name),
    ("the group has chosen", Scene::assign),
    ("the hello is read", Scene::read),
    ("the claim is read", Scene::read),
    ("a second passes", |scene| scene.pass(LEASE / 5)),
    ("the first beat is read", Scene::read),
    ("the partition goes to another before the first run", |scene| scene.happens(Cause::Revoked)),
    ("the release is read", Scene::read),
    ("it claims again, since nobody else does", |scene| scene.pass(LEASE / 5)),
    ("that claim is read", Scene::read),
    ("its job is due", |scene| {
        scene.kafka = Kafka::Answers;
        scene.pass(SETTLE);
        scene.kafka = Kafka::Lags;
    }),
    ("the job runs", Scene::say_started),
];

/// A lead that another takes over while the job runs on.
const OVERLAPPING: &[Step] = &[
    ("the topic is judged", Scene::judge),
    ("the log is empty", Scene::answer),
    ("the group knows it", Scene::name),
    ("the group has chosen", Scene::assign),
    ("the hello is read", Scene::read),
    ("another stands by", Scene::hear_standby),
    ("the claim is read", Scene::read),
    ("the job runs", Scene::say_started),
    ("the first beat is read", Scene::read),
    ("it is asked to resign", |scene| scene.happens(Cause::Resigned)),
    ("the request is read", Scene::read),
    ("its beat says that it yields", Scene::read),
    ("another claims over its term", Scene::overlap),
    ("that claim is read", Scene::read),
    ("the job is asked to stop", |scene| scene.pass(LEASE / 8)),
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

/// A life, and how many runs the whole of it has.
struct Life {
    steps: &'static [Step],
    runs: usize,
    spans: Spans,
}

fn stop_at_every_instant_of(life: &Life) {
    for kafka in [Kafka::Answers, Kafka::IsGone] {
        for manner in [Manner::Obeys, Manner::Stubborn] {
            for cause in [Cause::Term, Cause::SecondTerm] {
                for steps in 0..=life.steps.len() {
                    let at = steps.checked_sub(1).map_or("the start", |last| life.steps[last].0);
                    let told = format!("{cause:?} after {at}, {kafka:?}, {manner:?}");
                    stop_after(life, steps, (kafka, manner, cause), &told);
                }
            }
        }
    }
}

fn stop_after(life: &Life, steps: usize, (kafka, manner, cause): (Kafka, Manner, Cause), told: &str) {
    let mut scene = Scene::with(life.spans, OnLoss::Standby, Restart::Always, None);
    scene.kafka = Kafka::Lags;
    for (_, step) in &life.steps[..steps] {
        step(&mut scene);
    }
    assert!(steps < life.steps.len() || scene.spawns == life.runs, "a whole life has {} runs", life.runs);
    let (spawns, begun) = (scene.spawns, scene.now());
    scene.kafka = kafka;
    if kafka == Kafka::IsGone {
        scene.lose_unread();
    }
    scene.happens(cause);
    let outcome = scene.finish(manner);
    let Outcome::Exit(status) = outcome else { panic!("{told}: it stands by") };
    assert!([0, 5, OBEYING, 137, 143].contains(&status), "{told}: {status}");
    assert_eq!(scene.spawns, spawns, "{told}: nothing is started any more");
    assert!(!scene.has_job(), "{told}: nothing is left");
    let took = scene.exited_at().since(begun);
    // The barrier, and a lease at most for a claim and for the release's delivery.
    let barrier = if manner == Manner::Stubborn { STOP_TIMEOUT } else { Duration::ZERO };
    let allowed = barrier + LEASE * 2;
    assert!(took <= allowed, "{told}: it took {took:?}");
    if kafka == Kafka::Answers {
        let (won, released) = scene.terms;
        assert_eq!(won, released, "{told}: each term has its release");
    }
}
