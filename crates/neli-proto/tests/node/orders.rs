//! Orders that wait because the guard's socket is full.

use neli_proto::guard::{Order, Orders, Target};
use neli_proto::time::Time;

const SIGNAL: Order = Order::Signal { signal: 10, to: Target::Main };

#[test]
fn stop_and_kill_never_wait_behind_signals() {
    let stop = Order::Stop { signal: Some(15), kill_at: Time::from_nanos(1) };
    let mut orders = Orders::<()>::default();
    let given = std::iter::repeat_n(SIGNAL, 1_000).chain([stop, SIGNAL, Order::Kill]);
    given.for_each(|order| orders.put(&order, None));
    let taken: Vec<Order> = std::iter::from_fn(|| {
        let (first, _) = orders.first()?;
        orders.drop_first();
        Some(first)
    })
    .collect();
    assert_eq!(taken, [stop, Order::Kill, SIGNAL], "a stop waits behind signals");
}
