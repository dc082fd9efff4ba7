//! Asks several brokers at the same time, so that a broker that does not answer delays no other broker's answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;
use std::thread;

use rdkafka::error::RDKafkaErrorCode;

/// The partitions that each broker is asked about; of one topic by their numbers.
pub(super) type ByBroker<P = i32> = BTreeMap<i32, BTreeSet<P>>;

/// Calls `ask` for each broker and its partitions, all at the same time. Each result goes to `handle` as soon as it is there.
pub(super) fn ask_all<P: Sync, T: Send>(
    questions: &ByBroker<P>,
    ask: impl Fn(i32, &BTreeSet<P>) -> Result<T, RDKafkaErrorCode> + Sync,
    mut handle: impl FnMut(i32, &BTreeSet<P>, Result<T, RDKafkaErrorCode>),
) {
    // Usually there is one broker, and then no other thread is needed.
    if let (1, Some((broker, partitions))) = (questions.len(), questions.first_key_value()) {
        return handle(*broker, partitions, ask(*broker, partitions));
    }
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        for (broker, partitions) in questions {
            let (ask, sender) = (&ask, sender.clone());
            let thread = thread::Builder::new().name("neli-asks-one".to_owned());
            // An error in sending means that the receiver has panicked.
            let started = thread.spawn_scoped(scope, move || drop(sender.send((*broker, ask(*broker, partitions)))));
            if started.is_err() {
                handle(*broker, partitions, Err(RDKafkaErrorCode::Fail));
            }
        }
        drop(sender);
        for (broker, result) in results {
            if let Some(partitions) = questions.get(&broker) {
                handle(broker, partitions, result);
            }
        }
    });
}
