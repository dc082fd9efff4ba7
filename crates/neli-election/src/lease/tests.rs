use std::future;
use std::task::{Context, Waker};

use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::*;

fn tenure(left: Duration) -> (Arc<Tenure>, UnboundedReceiver<(usize, Command)>) {
    let (commands, received) = mpsc::unbounded_channel();
    (Arc::new(Tenure::new(7, clock::now() + left, None, Commands::new(3, commands))), received)
}

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn a_lease_is_valid_until_its_deadline_and_never_again() {
    let (tenure, _commands) = tenure(LONG);
    let lease = Lease::new(Arc::clone(&tenure));
    assert!(lease.is_valid() && lease.remaining() > LONG / 2 && lease.deadline().is_some());
    assert_eq!(lease.token(), 7);
    tenure.extend(clock::now());
    assert!(!lease.is_valid() && lease.deadline().is_none(), "nobody has said that it is over");
    tenure.extend(clock::now() + LONG);
    assert!(lease.is_valid());
    tenure.end(Reason::Expired);
    tenure.extend(clock::now() + LONG);
    assert!(!lease.is_valid(), "an order that was under way extends it no more");
    assert_eq!(lease.remaining(), Duration::ZERO);
}

#[test]
fn nothing_begins_once_the_end_has_begun() {
    let (tenure, mut commands) = tenure(LONG);
    let task = tenure.begin().unwrap();
    assert!(tenure.no_task().is_none());
    tenure.stop(Reason::Revoked);
    assert_eq!(tenure.begin().unwrap_err(), tenure.lost(Reason::Revoked));
    assert!(tenure.is_valid(), "what runs may end in order");
    assert!(tenure.no_task().is_none());
    drop(task);
    assert_eq!(commands.try_recv(), Ok((3, Command::Idle { term: 7 })));
    assert!(tenure.no_task().is_some());
    let last = tenure.begin_last().unwrap();
    assert!(tenure.no_task().is_none());
    tenure.end(Reason::Expired);
    assert!(tenure.begin_last().is_err());
    assert_eq!(tenure.ends(), Some(Reason::Revoked), "what the barrier was for");
    drop(last);
    assert!(tenure.no_task().is_some());
}

/// In a topic that was made anew a later lead may have the same number, and an old handle must not give that up.
#[test]
fn a_lead_that_ends_is_not_given_up() {
    for stop in [true, false] {
        let (tenure, mut commands) = tenure(LONG);
        tenure.resign();
        assert_eq!(commands.try_recv(), Ok((3, Command::Resign { term: 7 })));
        if stop {
            tenure.stop(Reason::Revoked);
        } else {
            tenure.end(Reason::Expired);
        }
        tenure.resign();
        assert!(commands.try_recv().is_err());
    }
}

#[test]
fn nothing_begins_at_the_deadline() {
    let (tenure, mut commands) = tenure(Duration::ZERO);
    assert_eq!(tenure.begin().unwrap_err(), tenure.lost(Reason::Expired));
    assert!(commands.try_recv().is_err());
}

#[test]
fn a_lead_is_taken_once() {
    let (tenure, _commands) = tenure(LONG);
    assert!(!tenure.is_taken() && tenure.take() && tenure.is_taken() && !tenure.take());
}

/// The reason does not depend on whether the task or the election's thread sees the end of the lease first.
#[test]
fn a_task_that_sees_the_end_of_its_lease_first_gets_the_reason_of_the_barrier() {
    for (stops, expected) in [(None, Reason::Expired), (Some(Reason::Revoked), Reason::Revoked)] {
        let (tenure, _commands) = tenure(LONG);
        let lease = Lease::new(Arc::clone(&tenure));
        let mut run = pin!(lease.run(|_| future::pending::<()>()));
        let mut poll = || run.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll().is_pending());
        if let Some(reason) = stops {
            tenure.stop(reason);
        }
        tenure.extend(clock::now());
        assert_eq!(poll(), Poll::Ready(Err(tenure.lost(expected))));
    }
}
