//! Orders that wait because the guard's socket is full, and the order that ends what the guard owes.

use neli_proto::guard::{Order, Queue, Target};
use neli_proto::node::{Action, Event};
use neli_proto::note::Note;
use neli_proto::record::{Body, Why};
use neli_proto::time::Time;

use crate::host::{Host, LEASE, by};

const SIGNAL: Order = Order::Signal { signal: 10, to: Target::Main };

#[test]
fn stop_and_kill_never_wait_behind_signals() {
    let stop = Order::Stop { signal: Some(15), kill_at: Time::from_nanos(1) };
    let mut orders = Queue::<Order, ()>::default();
    let given = std::iter::repeat_n(SIGNAL, 1_000).chain([stop, SIGNAL, Order::Kill]);
    given.for_each(|order| orders.put(&order, None));
    let taken: Vec<Order> = std::iter::from_fn(|| orders.take_first()).collect();
    assert_eq!(taken, [stop, Order::Kill, SIGNAL], "a stop waits behind signals");
}

/// Otherwise a process with many roles would keep the guard of each role that it lost in this way.
#[test]
fn a_guard_owes_no_release_once_another_claims_after_one_that_was_not_confirmed() {
    let mut host = Host::leading(&[]);
    let term = host.node.supervisor().term().unwrap();
    host.happens(Event::StandDown { why: Why::Resigned, leaving: false });
    host.ends(neli_proto::supervisor::JobStatus::Exited(0));
    host.actions();
    host.sent.clear();
    host.pass(LEASE);
    let actions = host.actions();
    let unconfirmed = Note::Released { term, why: Why::Resigned, delivered: false };
    assert!(actions.contains(&Action::Note(unconfirmed)), "{actions:?}");
    let released = Action::Order(Order::Released { term });
    assert!(!actions.contains(&released), "it may not have arrived");
    host.reads(by("db1", Body::Claim { after: host.end() - 1, lease_ms: 2_000, overlap: None }));
    assert_eq!(host.actions().iter().filter(|action| **action == released).count(), 1);
    host.pass(LEASE);
    assert!(!host.actions().contains(&released));
}
