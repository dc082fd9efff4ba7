//! The callback of [`neli_election::Builder::on_warning`].

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use neli_election::{Builder, Election, EmbeddedBroker, Lease};
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

/// The variable by which a test starts itself as a program without a callback.
const IS_PROGRAM: &str = "NELI_TEST_WITHOUT_CALLBACK";

/// The program that this test is, with its stderr.
fn program(test: &str) -> Command {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", &format!("warnings::{test}"), "--nocapture"]).env(IS_PROGRAM, "1");
    program.stdout(Stdio::null()).stderr(Stdio::piped());
    program
}

/// The first line with these words that a program of this test says, which is killed then.
fn said_by(test: &str, words: &str) -> Option<String> {
    let mut program = program(test).spawn().unwrap();
    let mut lines = BufReader::new(program.stderr.take().unwrap()).lines().map_while(Result::ok);
    let said = lines.find(|line| line.contains(words));
    program.kill().unwrap();
    program.wait().unwrap();
    said
}

/// A program that gives no callback would otherwise wait for ever, and nobody would know why.
#[tokio::test(flavor = "current_thread")]
async fn without_a_callback_warnings_go_to_stderr() {
    if std::env::var_os(IS_PROGRAM).is_some() {
        drop(Election::builder("billing").brokers("127.0.0.1:1").join().await);
        return;
    }
    let warning = said_by("without_a_callback_warnings_go_to_stderr", "neli-election: ").unwrap();
    assert!(
        warning.starts_with("neli-election: billing: Kafka does not answer: ") && warning.contains("127.0.0.1:1"),
        "{warning}"
    );
}

/// Whether this process has a thread of this name.
fn has_thread(name: &str) -> bool {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    tasks
        .into_iter()
        .any(|task| std::fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name))
}

/// A task that blocks the program's only thread must not keep it from being told what to do about that.
#[tokio::test(flavor = "current_thread")]
async fn a_task_that_blocks_the_runtime_is_reported() {
    if std::env::var_os(IS_PROGRAM).is_some() {
        let broker = EmbeddedBroker::start().unwrap();
        let builder = Election::builder("billing").embedded(&broker).lease(Duration::from_millis(600));
        let election = builder.stop_timeout(Duration::ZERO).join().await.unwrap();
        let mut lead = election.lead().await.unwrap();
        let blocks = async |lease: Lease| {
            lease.resign();
            loop {
                std::thread::park();
            }
        };
        let _ = lead.run(blocks).await;
        return;
    }
    let warning = said_by("a_task_that_blocks_the_runtime_is_reported", "let it check Lease::is_valid");
    assert!(warning.is_some());
}

/// Most programs print the error that a call returns: then each would be there twice.
#[tokio::test(flavor = "current_thread")]
async fn without_a_callback_a_refusal_is_only_returned() {
    if std::env::var_os(IS_PROGRAM).is_some() {
        let broker = EmbeddedBroker::start().unwrap();
        let refused = Election::builder("billing").embedded(&broker).create_topic(false).join().await.unwrap_err();
        // A warning would have been sent by now, and is passed on before the thread ends.
        while has_thread("neli-warnings") {
            tokio::task::yield_now().await;
        }
        eprintln!("returned: {refused}");
        return;
    }
    let output = program("without_a_callback_a_refusal_is_only_returned").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(text.matches("topic \"billing.neli\"").count(), 1, "{text}");
    assert!(text.contains("returned: topic ") && !text.contains("neli-election: "), "{text}");
}

#[tokio::test(flavor = "current_thread")]
async fn a_warning_about_all_roles_is_passed_once() {
    let (builder, mut warnings) = candidate();
    let joining = tokio::spawn(builder.roles(3).join_roles());
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

/// Each role learns by itself that Kafka refuses it.
#[tokio::test(flavor = "current_thread")]
async fn an_end_of_all_roles_is_passed_once() {
    let broker = EmbeddedBroker::start().unwrap();
    let (warn, mut warnings) = unbounded_channel();
    let builder = Election::builder("billing").embedded(&broker).create_topic(false);
    let builder = builder.on_warning(move |message| warn.send(message.to_owned()).unwrap());
    let refused = soon("the refusal", builder.roles(3).join_roles()).await.unwrap_err();
    assert_eq!(soon("a warning", warnings.recv()).await, Some(refused.to_string()));
    assert_eq!(soon("the end of the warnings", warnings.recv()).await, None);
}

/// A program with many roles must learn which of them a warning is about. With one role there is nothing to name.
#[tokio::test(flavor = "current_thread")]
async fn a_warning_about_one_role_of_many_names_it() {
    let broker = EmbeddedBroker::start().unwrap();
    for (names, begin) in [(&["ingest", "bill"][..], "role "), (&[], "nobody took the lead")] {
        let (warn, mut warnings) = unbounded_channel();
        let builder = Election::builder("billing").embedded(&broker).lease(Duration::from_secs(2));
        let builder = builder.on_warning(move |message| warn.send(message.to_owned()).unwrap());
        // Nobody takes their leads.
        let (_roles, _election);
        if names.is_empty() {
            _election = soon("the join", builder.topic("one.neli").join()).await.unwrap();
        } else {
            _roles = soon("the join", builder.named_roles(names.iter().copied()).join_roles()).await.unwrap();
        }
        let warning = soon("a warning", warnings.recv()).await.unwrap();
        assert!(warning.starts_with(begin) && warning.contains("nobody took the lead within a lease"), "{warning}");
    }
}

/// The callback is the program's, and an error in it must not silence the candidate.
#[tokio::test(flavor = "current_thread")]
async fn a_callback_that_panics_gets_the_next_warning_as_well() {
    let broker = EmbeddedBroker::start().unwrap();
    let (warn, mut warnings) = unbounded_channel();
    let builder = Election::builder("billing").embedded(&broker).lease(Duration::from_millis(300));
    let builder = builder.on_warning(move |message| {
        warn.send(message.to_owned()).unwrap();
        panic!("a user's fault");
    });
    // Nobody takes its leads.
    let _election = soon("the join", builder.join()).await.unwrap();
    for _ in 0..2 {
        let warning = soon("a warning", warnings.recv()).await.unwrap();
        assert!(warning.contains("nobody took the lead within a lease"), "{warning}");
    }
}
