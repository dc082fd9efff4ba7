//! A consumer group that does not take a candidate: the candidate goes on without precedence, its job runs, and everybody can see why.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use harness::candidate::{Elector, Running};
use harness::election::TestElection;
use harness::kafka::{Broker, Kafka};
use harness::wait;
use nix::sys::signal::Signal;
use rdkafka::consumer::{BaseConsumer, Consumer};

use crate::doctor::Found;
use crate::listen::{listening, metric, status};
use crate::roles::{candidate, close, led, numbers};
use crate::{PROGRAM, election};

/// Another program that consumes with `group.id` of the election, and balances by ranges.
struct Foreigner {
    is_over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Foreigner {
    /// Returns when the group has assigned a partition to it. `protocol`: the setting that chooses the group's protocol.
    fn in_group_of(election: &TestElection, kafka: &Kafka, protocol: (&str, &str)) -> Self {
        let mut config = kafka.client();
        config.set("group.id", &election.group).set(protocol.0, protocol.1);
        let consumer: BaseConsumer = config.create().expect("a client");
        consumer.subscribe(&[&election.topic()]).expect("a name of a topic");
        wait::until_true("an assignment", || {
            consumer.poll(Duration::from_millis(50));
            consumer.assignment().is_ok_and(|partitions| partitions.count() > 0)
        });
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                consumer.poll(Duration::from_millis(50));
            }
            consumer.unsubscribe();
            consumer.poll(Duration::from_millis(50));
        });
        Self { is_over, thread: Some(thread) }
    }
}

impl Drop for Foreigner {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(thread::JoinHandle::join);
        assert!(ended.is_none_or(|ended| ended.is_ok()) || thread::panicking());
    }
}

/// Waits for the one warning about the group.
fn await_refusal(run: &Running, words: &str) {
    wait::until_true("a warning about the group", || !run.warnings_with("until the group takes it").is_empty());
    let warnings = run.warnings_with("until the group takes it");
    assert!(warnings.iter().all(|warning| warning.contains(words)), "{words:?} is not in {warnings:?}");
}

/// Asserts that nothing has stopped the job.
fn assert_undisturbed(run: &Running) {
    for event in ["error", "exiting", "fence_warning", "fenced", "released", "stopping"] {
        assert!(run.events(event).is_empty(), "{run:?}");
    }
}

#[test]
fn a_group_of_another_program_stops_no_job() {
    let (election, kafka) = (election(Elector::Group), Kafka::shared());
    kafka.create_topic(&election.topic(), &[("message.timestamp.type", "LogAppendTime")]);
    let foreigner = Foreigner::in_group_of(&election, kafka, ("partition.assignment.strategy", "range"));
    let found = Found::of(&["--group", &election.group, "--brokers", kafka.address()]);
    found.assert_finding("group", "warn", &["1 member with the assignor range", "has no precedence"]);

    let (mut leader, address) = listening(&election.candidate().option("--name", "first"));
    let term = leader.await_lead();
    election.await_witness(term);
    await_refusal(&leader, "it has members that are no candidates; choose another --group");
    wait::until_true("the refusal on the page", || metric(&address, "neli_group_refused group=") > 0.5);
    let (page, _) = status(&address);
    assert!(page["broker"]["trouble"].as_str().is_some_and(|why| why.contains("no candidates")), "{page}");
    let asked = wait::until("a hello with the refusal", || {
        let asked = election.ask("status", &["--json"]).json();
        asked["leader"]["hello"]["group_refuses"].is_string().then_some(asked)
    });
    assert_eq!(asked["leader"]["hello"]["group_refuses"], "Inconsistent group protocol");
    let text = election.ask("status", &[]).text;
    assert!(text.contains("without precedence: the group refuses it (Inconsistent group protocol)"), "{text}");

    // A standby that is refused as well takes over.
    let mut second = election.candidate().start();
    second.await_event("standby");
    await_refusal(&second, "no candidates");
    assert_undisturbed(&leader);
    leader.signal(Signal::SIGKILL);
    let next = second.await_lead();
    election.await_witness(next);

    // The group takes a candidate when the other program has gone.
    drop(foreigner);
    second.await_event("assigned");
    wait::until_true("a hello without the refusal", || {
        election.ask("status", &["--json"]).json()["leader"]["hello"]["group_refuses"].is_null()
    });
    assert_undisturbed(&second);
    election.close([second]);
}

/// The same with the protocol by which the broker assigns the partitions (KIP-848, Kafka 4.0): there the group takes the candidates, and the
/// broker may assign the partition to the other program.
#[test]
fn a_group_with_the_consumer_protocol_stops_no_job() {
    let (election, kafka) = (election(Elector::Group), Kafka::shared());
    kafka.create_topic(&election.topic(), &[("message.timestamp.type", "LogAppendTime")]);
    let foreigner = Foreigner::in_group_of(&election, kafka, ("group.protocol", "consumer"));
    let mut leader = election.candidate().start();
    let term = leader.await_lead();
    election.await_witness(term);
    let mut second = election.candidate().start();
    second.await_event("standby");
    let doctor = || Found::of(&["--group", &election.group, "--brokers", kafka.address()]);
    let are_members = |text: &String| text.contains("3 members with the assignor uniform, which is another program's");
    wait::until_true("a group of three", || doctor().texts("group", "warn").iter().any(are_members));
    assert_undisturbed(&leader);
    leader.signal(Signal::SIGKILL);
    let next = second.await_lead();
    election.await_witness(next);
    drop(foreigner);
    second.await_event("assigned");
    assert_undisturbed(&second);
    election.close([second]);
}

/// They share them by number, as all do. Each says in its hello why the group does not take it.
#[test]
fn processes_that_the_group_does_not_take_share_their_roles() {
    let election = election(Elector::Group);
    let start = || candidate(&election, "4").property("session.timeout.ms", "1000").start();
    let mut candidates = vec![start()];
    wait::until_true("all roles", || led(&candidates[0]).len() == 4);
    await_refusal(&candidates[0], "the broker does not take this session.timeout.ms");
    candidates.push(start());
    wait::until_true("fair shares", || candidates.iter().all(|candidate| led(candidate).len() == 2));
    for role in numbers(4) {
        wait::until_true("a hello with the refusal", || {
            let asked = election.ask("status", &["--role", &role, "--json"]).json();
            asked["leader"]["hello"]["group_refuses"].is_string()
        });
    }
    close(&election, candidates, &numbers(4));
}

/// With `--patience never` such a candidate claims nothing, and says so.
#[test]
fn a_session_that_the_broker_does_not_take_stops_no_job() {
    let election = election(Elector::Group);
    let short = election.candidate().property("session.timeout.ms", "1000");
    let mut leader = short.start();
    let term = leader.await_lead();
    election.await_witness(term);
    await_refusal(&leader, "the broker does not take this session.timeout.ms");
    let never = short.option("--patience", "never").start();
    await_refusal(&never, "this candidate claims nothing (--patience never)");
    assert_undisturbed(&leader);
    election.close([leader, never]);
}

#[test]
fn a_full_group_is_reported_once_with_its_name() {
    let broker = Broker::own_with("group.max.size=1\n");
    let kafka = broker.kafka();
    let election = TestElection::new(PROGRAM, &kafka, Elector::Group);
    let mut leader = election.candidate().start();
    let term = leader.await_lead();
    election.await_witness(term);
    leader.await_event("assigned");
    let mut second = election.candidate().start();
    second.await_event("standby");
    await_refusal(&second, &format!("group \"{}\": it is full; raise the broker's group.max.size", election.group));
    let found = Found::of(&["--group", &election.group, "--brokers", kafka.address()]);
    found.assert_finding("group", "warn", &["1 member, which is all that group.max.size", "has no precedence"]);

    leader.signal(Signal::SIGTERM);
    assert_eq!(leader.status(), 0, "the witness's own");
    let next = second.await_lead();
    election.await_witness(next);
    second.await_event("assigned");
    assert_undisturbed(&second);
    let other_lines = second.warnings_with("").into_iter().filter(|line| line.to_lowercase().contains("group"));
    let other_lines: Vec<String> = other_lines.filter(|line| !line.contains("until the group takes it")).collect();
    assert!(other_lines.is_empty(), "librdkafka's own line comes with each try: {other_lines:?}");
    election.close([second]);
}
