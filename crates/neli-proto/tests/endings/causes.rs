//! If several causes end a run, the first one that applies determines the exit status. Every two causes are tested, at every moment of
//! a run, and compared with the documented order (docs/options.md, Exit statuses).

use neli_proto::restart::Restart;
use neli_proto::supervisor::OnLoss;

use crate::cases::{Cause, Kafka, Manner, OBEYING, Outcome};
use crate::fixture::Fixture;

const CAUSES: [Cause; 11] = [
    Cause::End,
    Cause::FenceWarning,
    Cause::GuardDied,
    Cause::LeaseOver,
    Cause::Resigned,
    Cause::Revoked,
    Cause::SecondTerm,
    Cause::Stuck,
    Cause::Superseded,
    Cause::Term,
    Cause::Unhealthy,
];

/// The moment at which the first cause comes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Moment {
    /// The guard was ordered to start the job, and has not answered yet.
    Ordered,
    /// The main process has ended with 5, and a daemon that it left is being stopped.
    Leftover,
    /// The last run ended with 5, and the next one is not due yet.
    Pause,
    Running,
}

const MOMENTS: [Moment; 4] = [Moment::Ordered, Moment::Leftover, Moment::Pause, Moment::Running];

const BY_ITSELF: u8 = 5;

fn go_to(fixture: &mut Fixture, moment: Moment) {
    if moment == Moment::Ordered {
        return;
    }
    fixture.say_started();
    match moment {
        Moment::Ordered | Moment::Running => {}
        Moment::Leftover => fixture.main_ends(BY_ITSELF, true),
        Moment::Pause => fixture.main_ends(BY_ITSELF, false),
    }
}

/// The outcome according to the page.
fn expected(causes: &[Cause], moment: Moment, manner: Manner, on_loss: OnLoss) -> Outcome {
    let any = |those: &[Cause]| causes.iter().any(|cause| those.contains(cause));
    if let (Moment::Pause, [first, second]) = (moment, causes)
        && *first != Cause::GuardDied
    {
        // No job was alive, so the term was over before the second cause, and at most the release is not delivered yet.
        let alone = expected(&[*first], moment, manner, on_loss);
        let waits = *first == Cause::FenceWarning;
        return match second {
            _ if alone != Outcome::StandsBy && !waits => alone,
            Cause::Term | Cause::SecondTerm => Outcome::Exit(143),
            Cause::End | Cause::Stuck => expected(&[*second], moment, manner, on_loss),
            Cause::FenceWarning
            | Cause::GuardDied
            | Cause::LeaseOver
            | Cause::Refused
            | Cause::Resigned
            | Cause::Revoked
            | Cause::Superseded
            | Cause::Unhealthy => alone,
        };
    }
    let alive = moment != Moment::Pause;
    let fenced = any(&[Cause::GuardDied, Cause::LeaseOver, Cause::Superseded]);
    let killed_in_barrier = manner == Manner::Stubborn || any(&[Cause::SecondTerm]);
    if any(&[Cause::Stuck]) {
        return Outcome::Exit(85);
    }
    if any(&[Cause::End]) {
        return Outcome::Exit(0);
    }
    if any(&[Cause::Term, Cause::SecondTerm]) {
        return Outcome::Exit(match moment {
            Moment::Leftover | Moment::Pause => BY_ITSELF,
            Moment::Ordered | Moment::Running if fenced || killed_in_barrier => 137,
            Moment::Ordered | Moment::Running => OBEYING,
        });
    }
    match on_loss {
        OnLoss::Standby => Outcome::StandsBy,
        OnLoss::Exit if !alive => Outcome::Exit(80),
        OnLoss::Exit if fenced => Outcome::Exit(82),
        OnLoss::Exit if killed_in_barrier => Outcome::Exit(81),
        OnLoss::Exit => Outcome::Exit(80),
    }
}

#[test]
fn the_first_that_applies() {
    let mut looked_at = 0;
    for on_loss in [OnLoss::Standby, OnLoss::Exit] {
        for restart in [Restart::No, Restart::OnFailure, Restart::Always] {
            for moment in MOMENTS {
                if moment == Moment::Pause && restart == Restart::No {
                    continue;
                }
                for manner in [Manner::Obeys, Manner::Stubborn] {
                    for causes in tuples() {
                        let mut fixture = Fixture::leading(on_loss, restart, None);
                        go_to(&mut fixture, moment);
                        for cause in &causes {
                            fixture.happens(*cause);
                        }
                        let outcome = fixture.finish(manner);
                        let wanted = expected(&causes, moment, manner, on_loss);
                        assert_eq!(outcome, wanted, "{causes:?} {moment:?} {manner:?} {restart:?} {on_loss:?}");
                        looked_at += 1;
                    }
                }
            }
        }
    }
    assert_eq!(looked_at, 2 * (3 * 4 - 1) * 2 * tuples().len());
}

/// Each cause alone, and each pair in both orders.
fn tuples() -> Vec<Vec<Cause>> {
    let alone = CAUSES.map(|cause| vec![cause]);
    let pairs = CAUSES.iter().flat_map(|one| CAUSES.iter().map(|other| vec![*one, *other]));
    alone.into_iter().chain(pairs.filter(|pair| pair[0] != pair[1])).collect()
}

/// Tests the job's own end and the restart limit without another cause, and causes that come when only the release is left.
#[test]
fn the_end_of_its_own_comes_last() {
    for on_loss in [OnLoss::Standby, OnLoss::Exit] {
        for (restart, limit, wanted) in
            [(Restart::No, None, BY_ITSELF), (Restart::OnFailure, Some(0), 84), (Restart::Always, Some(0), 84)]
        {
            for moment in [Moment::Running, Moment::Leftover] {
                for manner in [Manner::Obeys, Manner::Stubborn] {
                    let mut fixture = Fixture::leading(on_loss, restart, limit);
                    go_to(&mut fixture, moment);
                    if moment == Moment::Running {
                        fixture.main_ends(BY_ITSELF, false);
                    }
                    assert_eq!(fixture.finish(manner), Outcome::Exit(wanted), "{restart:?} {moment:?} {manner:?}");
                }
            }
            // While the release is being delivered, no job runs.
            for (cause, wanted) in [(Cause::Term, 143), (Cause::SecondTerm, 143), (Cause::LeaseOver, wanted)] {
                let mut fixture = Fixture::leading(on_loss, restart, limit);
                go_to(&mut fixture, Moment::Running);
                fixture.kafka = Kafka::IsGone;
                fixture.main_ends(BY_ITSELF, false);
                fixture.happens(cause);
                assert_eq!(fixture.finish(Manner::Obeys), Outcome::Exit(wanted), "{cause:?} {restart:?}");
            }
        }
    }
}

/// After a loss the candidate stands by, so the status of a stop is its own and not that of the job.
#[test]
fn after_a_loss_a_stop_has_its_own_status() {
    for cause in [Cause::Revoked, Cause::Resigned, Cause::Unhealthy, Cause::FenceWarning, Cause::LeaseOver] {
        let mut fixture = Fixture::leading(OnLoss::Standby, Restart::No, None);
        go_to(&mut fixture, Moment::Running);
        fixture.happens(cause);
        assert_eq!(fixture.finish(Manner::Obeys), Outcome::StandsBy, "{cause:?}");
        fixture.happens(Cause::Term);
        assert_eq!(fixture.finish(Manner::Obeys), Outcome::Exit(143), "{cause:?}");
    }
}
