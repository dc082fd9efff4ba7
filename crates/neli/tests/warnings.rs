//! The callback of [`neli::Builder::on_warning`].

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod limit;

use neli::{Builder, Election};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::limit::soon;

/// A candidate of a cluster that does not exist, and what it warns of.
fn candidate() -> (Builder, UnboundedReceiver<String>) {
    let (warn, warnings) = unbounded_channel();
    let builder = Election::builder("billing").brokers("127.0.0.1:1");
    (builder.on_warning(move |message| warn.send(message.to_owned()).unwrap()), warnings)
}

/// There is no handle yet whose events the program could read.
#[tokio::test(flavor = "current_thread")]
async fn a_join_that_waits_for_kafka_says_why() {
    let (builder, mut warnings) = candidate();
    let joining = tokio::spawn(builder.join());
    let warning = soon("a warning", warnings.recv()).await.unwrap();
    assert!(warning.starts_with("Kafka does not answer: ") && warning.contains("127.0.0.1:1"), "{warning}");
    joining.abort();
    soon("the end of the warnings", async { while warnings.recv().await.is_some() {} }).await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_warning_about_all_roles_is_passed_once() {
    let (builder, mut warnings) = candidate();
    let joining = tokio::spawn(builder.roles(3).join());
    let mut all = vec![soon("a warning", warnings.recv()).await.unwrap()];
    joining.abort();
    soon("the end of the warnings", async {
        while let Some(warning) = warnings.recv().await {
            all.push(warning);
        }
    })
    .await;
    assert!(all.windows(2).all(|two| two[0] != two[1]), "{all:?}");
}
