//! Brokers that stop, restart, freeze, or never existed.

use std::time::Duration;

use harness::candidate::Elector;
use harness::cluster::Cluster;
use harness::election::TestElection;
use harness::kafka::{Broker, SilentBroker, Wired};
use harness::network::LinkConditions;
use harness::wait;
use nix::sys::signal::Signal;

use crate::{PROGRAM, bare};

/// Without a broker the lease ends, and the job has ended before. When the broker runs again, a candidate leads again.
#[test]
fn without_a_broker_the_lead_ends_and_with_it_a_candidate_leads_again() {
    let mut broker = Broker::own();
    let election = TestElection::new(PROGRAM, &broker.kafka(), Elector::Group);
    let mut candidates = [election.candidate().lease("3s").start(), election.candidate().lease("3s").start()];
    let (leader, term) = crate::await_leader(&mut candidates);
    election.await_witness(term);

    broker.end();
    candidates[leader].await_event("broker_down");
    // The witness stops at the warning, before the guard would kill it.
    candidates[leader].await_event("fence_warning");
    let released = candidates[leader].await_release();
    assert_eq!((released.text("why"), released.fields["delivered"].as_bool()), ("fenced", Some(false)));
    election.assert_gone(term);
    broker.begin();
    election.await_witness_after(term);
    candidates[leader].await_event("broker_up");
    election.close(candidates);
}

/// The broker stores records and does not answer: the job gets the stop signal, and is killed at the end of the lease.
#[test]
fn while_the_broker_is_frozen_the_job_is_killed_at_the_end_of_the_lease() {
    let wired = Wired::take();
    let election = TestElection::new(PROGRAM, wired.kafka(), Elector::Log);
    let job = election.witness().with("--ignore-stop");
    let mut candidate = election.candidate().lease("3s").job(job.command()).start();
    let term = candidate.await_lead();
    election.await_witness(term);

    wired.freeze();
    let warning = candidate.await_event("fence_warning");
    assert!((1..=810).contains(&warning.number("left_ms")));
    candidate.await_event("fenced");
    election.await_gone(term);
    let testimony = election.testimony();
    let is_signaled = testimony.signals().any(|line| line.event == harness::witness::Event::Signal(15));
    assert!(is_signaled, "the stop signal is the warning");
    let last = testimony.of(term).next_back().expect("the job has written a line").clone();
    assert!(last.deadline == 0 || last.at < last.deadline + 20_000_000, "killed at the deadline: {last:?}");

    wired.thaw();
    let next = election.await_witness_after(term);
    candidate.signal(Signal::SIGKILL);
    election.await_gone(next);
    election.assert_never_two();
}

/// A pause of the broker that is shorter than the lease affects no candidate.
#[test]
fn a_broker_frozen_for_less_than_a_lease_affects_no_candidate() {
    let wired = Wired::take();
    let election = TestElection::new(PROGRAM, wired.kafka(), Elector::Log);
    let mut candidate = election.candidate().lease("30s").option("--heartbeat-interval", "100ms").start();
    let term = candidate.await_lead();
    election.await_witness(term);
    let deadline = || election.testimony().of(term).next_back().map_or(0, |line| line.deadline);
    wired.freeze();
    wait::pause(Duration::from_secs(3));
    let before = deadline();
    wired.thaw();
    wait::until_true("a lease that is renewed", || deadline() > before + 2_000_000_000);
    assert!(candidate.events("fenced").is_empty());
    assert_eq!(election.testimony().signals().count(), 0);
    election.close([candidate]);
}

/// The candidate waits for a broker that can't be reached. It logs that at once, and it is no error.
#[test]
fn brokers_that_never_existed_are_waited_for() {
    let silent = SilentBroker::start();
    for address in [silent.address(), closed_port()] {
        let mut candidate = bare().option("--group", "g").option("--brokers", &address).job(["true"]).start();
        candidate.await_event("broker_down");
        candidate.signal(Signal::SIGTERM);
        assert_eq!(candidate.status(), 143, "{address}");
        assert!(candidate.events("error").is_empty());
    }
}

/// Only `--wait` limits that time.
#[test]
fn brokers_that_never_existed_are_waited_for_no_longer_than_the_limit() {
    let silent = SilentBroker::start();
    for elector in [Elector::Log, Elector::Group] {
        for address in [silent.address(), closed_port()] {
            let candidate =
                bare().option("--group", "g").option("--brokers", &address).option("--elect", elector.name());
            let mut candidate = candidate.option("--wait", "1s").job(["true"]).start();
            assert_eq!(candidate.status(), 75, "{address}");
            let exiting = candidate.await_event("exiting");
            let why = exiting.text("why");
            let unknown = ["Kafka has not delivered the whole journal yet", "Kafka does not answer"];
            let unknown = unknown.map(|why| format!("not elected within --wait 1s; can't tell who leads: {why}"));
            assert!(unknown.iter().any(|unknown| why == unknown), "{exiting:?}");
        }
    }
}

/// The address of a port on which nothing listens.
fn closed_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("bound").to_string()
}

/// A topic that was created while only one broker was known keeps one replica. If there are more brokers, a warning says so and gives the
/// fix. If too few replicas are in sync to append anything, the log says that too, although librdkafka keeps trying.
#[test]
fn too_few_replicas_are_reported_with_the_fix() {
    let mut cluster = Cluster::in_turn();
    let single = TestElection::new(PROGRAM, &cluster.kafka(), Elector::Log);
    let settings = [("message.timestamp.type", "LogAppendTime")];
    cluster.kafka().create_topic(&single.topic(), &settings);
    let mut candidate = single.candidate().job(["true"]).start();
    assert_eq!(candidate.status(), 0);
    let about = candidate.warnings_with(&single.topic());
    assert_eq!(about.len(), 1, "{candidate:?}");
    let has = cluster.leader_of(&single.topic(), 0).expect("it is up") + 1;
    let others: Vec<_> = (1..=3).filter(|id| *id != has).map(|id| id.to_string()).collect();
    let replicas = format!("\"partition\":0,\"replicas\":[{has},{}]", others.join(","));
    let tools = ["one replica", "3 brokers", "kafka-reassign-partitions.sh", "--add-config min.insync.replicas=2"];
    assert!(tools.into_iter().chain([replicas.as_str()]).all(|words| about[0].contains(words)), "{about:?}");

    let strict = single.another();
    cluster.kafka().create_replicated_topic(&strict.topic(), 3, &[("min.insync.replicas", "3"), settings[0]]);
    let leader = wait::until("a leader of the partition", || cluster.leader_of(&strict.topic(), 0));
    // The first broker that the candidate asks for the topic's configuration is still listed, but does not answer.
    cluster.broker(usize::from(leader == 0)).end();
    let words = "Not enough in-sync replicas";
    let reads_configuration = || {
        let mut candidate = strict.candidate().start();
        wait::until_true("a line that says why", || !candidate.warnings_with(words).is_empty());
        candidate.signal(Signal::SIGTERM);
        assert_eq!(candidate.status(), 143);
        let lines = candidate.warnings_with(words);
        assert!(lines.len() == 1 && lines[0].contains("start the brokers that are down"), "{lines:?}");
        assert!(candidate.events("leading").is_empty());
        candidate.warnings_with("can't be read").is_empty()
    };
    // On a busy machine the brokers that are left may take longer to answer than a candidate waits.
    assert!((0..3).any(|_| reads_configuration()), "the claim is in nobody's way");
}

/// A `DescribeConfigs` without an answer delays nothing. It is asked again, and the topic is judged by the first answer.
#[test]
fn a_broker_that_does_not_answer_how_the_topic_is_set_delays_nothing() {
    const DESCRIBE_CONFIGS: i16 = 32;
    let wired = Wired::take();
    wired.wire().set(LinkConditions { swallows: Some(DESCRIBE_CONFIGS), ..LinkConditions::default() });
    let election = TestElection::new(PROGRAM, wired.kafka(), Elector::Log);
    let settings = [("cleanup.policy", "compact"), ("message.timestamp.type", "LogAppendTime")];
    wired.direct().create_topic(&election.topic(), &settings);
    let mut candidate = election.candidate().option("--wait", "30s").start();
    let term = candidate.await_lead();
    election.await_witness(term);
    let warnings = candidate.warnings_with("its configuration can't be read (no answer within");
    assert_eq!(warnings.len(), 1, "{candidate:?}");
    wired.wire().set(LinkConditions::default());
    wired.wire().reset();
    assert_eq!(candidate.status(), 125);
    let errors = candidate.events("error");
    assert!(errors[0].text("message").contains("cleanup.policy=compact: must be delete"), "{candidate:?}");
}
