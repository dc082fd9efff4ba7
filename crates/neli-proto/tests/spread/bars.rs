//! Processes that get no role for a while, because they did not take one or could not run it; and when this is forgotten.

use std::time::Duration;

use neli_proto::precedence::{HELLO_HOLDS, HELLO_INTERVAL};
use neli_proto::record::MemberId;
use neli_proto::spread::{Action, Holding, PATIENCE, Spread};
use neli_proto::time::Time;

use crate::rules::{START, actions, handed_over, held_by, next_action, with_roles};

/// Lets the process lead all roles.
fn leads(spread: &mut Spread, now: Time, roles: usize) {
    (0..roles).for_each(|role| spread.observe(now, role, Holding::Leading));
}

/// Notes that the other process can't run a role.
fn fails(spread: &mut Spread, now: Time) {
    spread.released(now, 0, &"m2".into(), "unhealthy");
}

/// The next handover while other processes keep saying hello: the number of seconds until then, the role, and the new process.
fn next_handed_over(spread: &mut Spread, from: Time, others: &[&str]) -> (u64, usize, MemberId) {
    let (mut now, mut hello_due) = (from, from);
    while now <= from + Duration::from_secs(3_600) {
        if now >= hello_due {
            for other in others {
                spread.hello_received(now, &MemberId::from(*other), None);
            }
            hello_due = now + HELLO_INTERVAL;
        }
        spread.handle_timeout(now);
        while let Some(action) = next_action(spread) {
            if let Action::HandOver { role, to } = action {
                return (now.since(from).as_secs(), role, to);
            }
        }
        now = spread.poll_timeout().map_or(hello_due, |due| due.min(hello_due));
    }
    panic!("nothing is handed over")
}

#[test]
fn each_failure_in_a_row_doubles_the_exclusion() {
    let mut spread = with_roles(6);
    leads(&mut spread, START, 6);
    fails(&mut spread, START);
    let to = || MemberId::from("m2");
    assert_eq!(next_handed_over(&mut spread, START, &["m2"]), (60, 5, to()));
    let now = START + Duration::from_secs(60);
    // No process takes it.
    spread.observe(now, 5, Holding::Ending);
    spread.observe(now, 5, Holding::Leading);
    assert_eq!(next_handed_over(&mut spread, now, &["m2"]), (120, 5, to()));
    let now = START + Duration::from_secs(180);
    spread.observe(now, 5, Holding::Ending);
    spread.observe(now, 5, held_by("m2"));
    assert_eq!(next_handed_over(&mut spread, now, &["m2"]), (0, 4, to()), "it took the last one");
    spread.observe(now, 4, Holding::Ending);
    spread.observe(now, 4, Holding::Leading);
    assert_eq!(
        next_handed_over(&mut spread, now, &["m2"]),
        (120, 4, to()),
        "its job has failed in the last ten minutes"
    );
}

/// A process whose job fails takes each role that it is given. That it took one shows nothing about the job.
#[test]
fn each_unhealthy_job_in_a_row_doubles_the_exclusion() {
    let mut spread = with_roles(6);
    leads(&mut spread, START, 6);
    let mut now = START;
    for seconds in [60, 120, 240] {
        fails(&mut spread, now);
        let (after, role, to) = next_handed_over(&mut spread, now, &["m2"]);
        assert_eq!((after, to), (seconds, "m2".into()));
        now = now + Duration::from_secs(seconds);
        spread.observe(now, role, Holding::Ending);
        spread.observe(now, role, held_by("m2"));
        now = now + Duration::from_secs(90);
        spread.observe(now, role, Holding::Leading);
    }
    now = now + Duration::from_secs(600);
    spread.hello_received(now, &"m2".into(), None);
    fails(&mut spread, now);
    assert_eq!(next_handed_over(&mut spread, now, &["m2"]).0, 60, "the first time in a row");
}

/// Its machine may have no room for another process: then each role that it was given would come back. What its jobs need may have been gone for
/// a moment: then all of them fail together, and that is one failure.
#[test]
fn a_process_that_could_not_run_several_roles_at_once_gets_nothing_for_a_minute() {
    for why in ["guard-died", "restart-limit", "unhealthy"] {
        for failed in [1, 5] {
            let mut spread = with_roles(6);
            leads(&mut spread, START, 6);
            (0..failed).for_each(|role| spread.released(START, role, &"m2".into(), why));
            assert_eq!(next_handed_over(&mut spread, START, &["m2"]), (60, 5, "m2".into()), "{failed} {why}");
        }
    }
}

#[test]
fn a_role_that_is_not_taken_for_ten_seconds_is_not_waited_for() {
    let mut spread = with_roles(6);
    leads(&mut spread, START, 6);
    assert_eq!(next_handed_over(&mut spread, START, &["m2", "m3"]), (1, 5, "m2".into()));
    let now = START + Duration::from_secs(1);
    spread.observe(now, 5, Holding::Ending);
    spread.observe(now, 5, Holding::Vacant { successor: Some("m2".into()) });
    let next = next_handed_over(&mut spread, now, &["m2", "m3"]);
    assert_eq!(next, (10, 4, "m3".into()), "the other did not take what it was given");
}

#[test]
fn an_exclusion_lasts_at_most_an_hour() {
    let mut spread = with_roles(4);
    leads(&mut spread, START, 4);
    let mut now = START;
    for seconds in [60, 120, 240, 480, 960, 1_920] {
        fails(&mut spread, now);
        now = now + Duration::from_secs(seconds);
    }
    fails(&mut spread, now);
    assert_eq!(next_handed_over(&mut spread, now, &["m2"]).0, 3_600);
}

#[test]
fn a_candidate_that_has_left_is_forgotten_with_its_failures() {
    let mut spread = with_roles(4);
    spread.hello_received(START, &"m2".into(), None);
    fails(&mut spread, START);
    assert_eq!(handed_over(&mut spread, START, Duration::from_secs(100)), []);
    let later = START + Duration::from_secs(200);
    leads(&mut spread, later, 4);
    fails(&mut spread, later);
    assert_eq!(next_handed_over(&mut spread, later, &["m2"]).0, 60, "the first time in a row");
}

/// Some of its hellos may have been lost.
#[test]
fn a_returning_candidate_keeps_its_exclusion() {
    let mut spread = with_roles(4);
    spread.hello_received(START, &"m2".into(), None);
    fails(&mut spread, START);
    let again = START + Duration::from_secs(60);
    fails(&mut spread, again);
    assert_eq!(handed_over(&mut spread, again, Duration::from_secs(80)), []);
    let later = again + Duration::from_secs(80);
    leads(&mut spread, later, 4);
    assert_eq!(next_handed_over(&mut spread, later, &["m2"]).0, 40, "two minutes after it failed for the second time");
}

/// The candidate holds no role, so every process that holds more than the minimum waits longer.
#[test]
fn a_candidate_without_recent_hellos_is_not_waited_for() {
    let mut spread = with_roles(6);
    fails(&mut spread, START - Duration::from_secs(60));
    for other in ["m2", "m3", "m4"] {
        spread.hello_received(START, &other.into(), None);
    }
    fails(&mut spread, START);
    leads(&mut spread, START, 2);
    for (role, other) in [(2, "m3"), (3, "m3"), (4, "m4"), (5, "m4")] {
        spread.observe(START, role, held_by(other));
    }
    let waits = |spread: &mut Spread| {
        let extra = |action| if let Action::Delay { extra, .. } = action { extra } else { None };
        actions(spread).into_iter().filter_map(extra).max()
    };
    assert_eq!(waits(&mut spread), Some(PATIENCE + Duration::from_millis(100)), "two more than that one");
    spread.handle_timeout(START + HELLO_HOLDS - Duration::from_millis(1));
    assert_eq!(waits(&mut spread), None);
    spread.handle_timeout(START + HELLO_HOLDS);
    assert_eq!(waits(&mut spread), Some(PATIENCE), "all others hold two");
}
