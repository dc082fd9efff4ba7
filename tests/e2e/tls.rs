//! Kafka with TLS: without a login, with a login by challenge, and with client certificates.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use harness::accounts::{Account, PASSWORD, SCRAM, change_password, secure_login};
use harness::candidate::{Candidate, Elector};
use harness::election::{Answer, TestElection};
use harness::kafka::Broker;
use harness::network::{Flow, LinkConditions, Network};
use harness::rights::Operation::{Read as Reads, Write as Writes};
use harness::rights::{Resource, Rights, Rule};
use harness::tls::{Authority, Identity};
use harness::wait;
use nix::sys::signal::Signal;

use crate::doctor::Found;
use crate::guarded::assert_refused;
use crate::{PROGRAM, bare};

/// librdkafka's properties.
type Properties = Vec<(String, String)>;

fn broker() -> &'static Broker {
    Broker::shared_with_tls()
}

fn election(elector: Elector) -> TestElection {
    TestElection::new(PROGRAM, &broker().kafka(), elector)
}

/// Gives the tenant the least rights that a candidate needs on this election's group and topic, which it creates.
fn allow_tenant(election: &TestElection) {
    let (topic, tenant) = (election.topic(), Account::Tenant.name());
    broker().kafka().create_topic(&topic, &[("message.timestamp.type", "LogAppendTime")]);
    let topic = Resource::Topic(&topic);
    Rights::of(&broker().kafka()).make(&[
        Rule::allow(tenant, topic, Reads),
        Rule::allow(tenant, topic, Writes),
        Rule::allow(tenant, Resource::Group(&election.group), Reads),
    ]);
}

/// The tenant's login by each mechanism: the listener and the properties.
fn logins() -> Vec<(String, Properties)> {
    let addresses = broker().secure_addresses();
    let challenge = |mechanism| (addresses.accounts.clone(), secure_login(mechanism, Account::Tenant.name(), PASSWORD));
    let certificate = broker().authority().identity(Account::Tenant.name());
    let mutual = (addresses.mutual.clone(), over_tls(certificate.properties()));
    SCRAM.into_iter().map(challenge).chain([mutual]).collect()
}

fn over_tls(properties: Properties) -> Properties {
    let protocol = ("security.protocol".to_owned(), "SSL".to_owned());
    [protocol].into_iter().chain(properties).collect()
}

/// A candidate that trusts `authority`, at one of the broker's listeners; its properties come from a file. One of them is a relative path.
fn candidate(election: &TestElection, address: &str, authority: &Authority, properties: &Properties) -> Candidate {
    let certificate = authority.certificate();
    let (directory, name) = (certificate.parent().expect("a directory"), certificate.file_name().expect("a name"));
    let trust = format!("ssl.ca.location={}\n", name.display());
    let lines = properties.iter().map(|(key, value)| format!("{key}={value}\n"));
    let text: String = lines.chain([trust]).collect();
    let file = election.directory().join(format!("properties-{}", text.len()));
    fs::write(&file, text).expect("the directory is ours");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("the file's mode can be set");
    election.candidate().directory(directory).option("--brokers", address).option("--properties", file)
}

/// All connections use TLS, with the least rights: claim, group, and the guard's release after the supervisor's death.
#[test]
fn a_candidate_leads_and_its_guard_releases_over_tls_alone() {
    let anybody = (broker().secure_addresses().plain, over_tls(Vec::new()));
    for (address, login) in logins().into_iter().chain([anybody]) {
        let election = election(Elector::Group);
        allow_tenant(&election);
        let candidate = candidate(&election, &address, broker().authority(), &login);
        let mut first = candidate.start();
        let term = first.await_lead();
        election.await_witness(term);
        let mut second = candidate.start();
        second.await_event("standby");
        first.signal(Signal::SIGKILL);
        let term = second.await_lead();
        election.await_witness(term);
        let verdicts = election.verdicts();
        let released = verdicts.iter().rfind(|verdict| verdict["record"]["kind"] == "release");
        assert_eq!(released.expect("a release")["record"]["why"], "supervisor-died");
        election.close([second]);
    }
}

/// With each mechanism, an account without rights gets the message about the missing right.
#[test]
fn an_account_without_rights_learns_which_right_is_missing() {
    for (address, login) in logins() {
        let election = election(Elector::Group);
        let run = candidate(&election, &address, broker().authority(), &login).start();
        // librdkafka chooses whether it asks for the topic or for the group first.
        assert_refused(run, &[&election.group, "no right to DESCRIBE"]);
    }
}

/// A certificate from an untrusted authority or one that has expired is refused at once.
#[test]
fn a_broker_that_is_not_trusted_is_refused_at_once() {
    let addresses = broker().secure_addresses();
    let stranger = Authority::new("stranger");
    for (address, authority) in [(addresses.plain, &stranger), (addresses.expired, broker().authority())] {
        let election = election(Elector::Log);
        let run = candidate(&election, &address, authority, &over_tls(Vec::new())).start();
        assert_refused(run, &[&address, "the broker's certificate is not accepted", "expired", "ssl.ca.location"]);
    }
}

/// No broker listens at first. A connection failure is retried, but a wrong certificate is final.
#[test]
fn a_broker_that_is_not_trusted_when_it_comes_up_is_refused() {
    let network = Network::start();
    let wire = network.wire(broker().secure_addresses().expired.parse().expect("an address"));
    wire.set(LinkConditions { refuses: true, ..LinkConditions::default() });
    let election = election(Elector::Log);
    let address = format!("127.0.0.1:{}", wire.port);
    let mut run = candidate(&election, &address, broker().authority(), &over_tls(Vec::new())).start();
    assert!(run.await_event("broker_down").text("error").contains("Connection refused"), "{run:?}");
    wire.set(LinkConditions::default());
    assert_refused(run, &[&address, "the broker's certificate is not accepted", "expired", "ssl.ca.location"]);
}

/// The broker requires a client certificate. No certificate, an expired one, and one from another authority are refused.
#[test]
fn a_certificate_that_the_broker_does_not_accept_is_reported() {
    let mutual = broker().secure_addresses().mutual;
    let nobody = over_tls(Vec::new());
    let tenant = Account::Tenant.name();
    let stranger = Authority::new("stranger");
    let expired = broker().authority().expired_identity(tenant);
    let shown = |identity: &Identity| over_tls(identity.properties());
    for properties in [nobody, shown(&expired), shown(&stranger.identity(tenant))] {
        let election = election(Elector::Log);
        let run = candidate(&election, &mutual, broker().authority(), &properties).start();
        assert_refused(run, &[&mutual, "does not accept our certificate", "ssl.certificate.location"]);
    }
}

#[test]
fn a_wrong_password_is_reported() {
    for mechanism in SCRAM {
        for (name, password) in [(Account::Tenant.name(), "wrong horse"), ("nobody", PASSWORD)] {
            let election = election(Elector::Log);
            let login = secure_login(mechanism, name, password);
            let address = broker().secure_addresses().accounts;
            let run = candidate(&election, &address, broker().authority(), &login).start();
            assert_refused(run, &["authentication", "sasl.username"]);
        }
    }
}

/// A connection without TLS to a port that expects TLS: the broker closes it without an answer. Also tests the findings of `doctor` about
/// TLS.
#[test]
fn a_port_that_expects_tls_is_reported() {
    let addresses = broker().secure_addresses();
    let election = election(Elector::Log);
    let words = ["closes connections without an answer", "expects TLS", "security.protocol", "max.connections"];
    let mut run = bare().option("--group", &election.group).option("--brokers", &addresses.plain).job(["true"]).start();
    // The first line comes before the cause is known, if the first question takes longer than its answer is waited for.
    let is_explained = |text: &str| words.iter().all(|word| text.contains(word));
    while !is_explained(run.await_event("broker_down").text("error")) {}
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 143);
    let status = Answer::of({
        let mut command = Command::new(PROGRAM);
        command.args(["status", "--group", &election.group, "--brokers", &addresses.plain, "--timeout", "2s"]);
        command
    });
    assert!(words.iter().all(|word| status.errors.contains(word)) && status.status == 4, "{status:?}");

    let doctor = |address: &str, words: &[&str]| {
        Found::of(&[&["--group", &election.group, "--brokers", address], words].concat())
    };
    // The finding says what to do, so it has no fix of its own.
    doctor(&addresses.plain, &[]).assert_finding("brokers", "fail", &[&words[..], &[" | -"]].concat());
    let trust = format!("ssl.ca.location={}", broker().authority().certificate().display());
    let stranger = Authority::new("stranger");
    let distrust = format!("ssl.ca.location={}", stranger.certificate().display());
    let over_tls = ["-X", "security.protocol=SSL", "-X"];
    let distrusted = doctor(&addresses.plain, &[&over_tls[..], &[&distrust]].concat());
    distrusted.assert_finding("tls", "fail", &["the broker's certificate is not accepted"]);
    distrusted.assert_finding("brokers", "ok", &[]);
    let unnamed = doctor(&addresses.mutual, &[&over_tls[..], &[&trust]].concat());
    unnamed.assert_finding("tls", "fail", &["does not accept our certificate"]);
    doctor(&addresses.plain, &[&over_tls[..], &[&trust]].concat()).assert_finding("tls", "ok", &["is accepted"]);
}

/// Each direction takes one second. The login alone takes six round trips, so the first answers come later than any fixed time limit.
#[test]
fn a_login_over_a_slow_link_succeeds() {
    let behind = Broker::with_tls_behind_a_wire();
    let (broker, wire, address) = &*behind;
    let half = Flow::Late(Duration::from_millis(500));
    let [known, new] = [(); 2].map(|()| TestElection::new(PROGRAM, &broker.kafka(), Elector::Log));
    broker.kafka().create_topic(&known.topic(), &[("message.timestamp.type", "LogAppendTime")]);
    wire.set(LinkConditions { there: half, back: half, ..LinkConditions::default() });
    let login = secure_login(SCRAM[0], Account::Operator.name(), PASSWORD);
    let runs = [&known, &new].map(|election| {
        let candidate = candidate(election, address, broker.authority(), &login);
        candidate.flag("-v").property("debug", "broker,security").start()
    });
    let begun = wait::now();
    let runs = runs.map(|mut run| {
        run.await_lead();
        let took = Duration::from_nanos(wait::now() - begun);
        let retries = run.events("debug").iter().filter(|event| event.text("message").contains("asking again")).count();
        assert!(retries > 0, "each is logged: {run:?}");
        println!("led after {took:?}, retries: {retries}");
        (run, took)
    });
    assert!(runs[0].1 < Duration::from_secs(30), "where the topic is there: {runs:?}");
    wire.set(LinkConditions::default());
    for (election, (run, _)) in [known, new].into_iter().zip(runs) {
        election.close([run]);
    }
}

/// A leader whose login is refused long after the first one succeeded keeps trying, and only the lease ends its lead. Another broker may
/// still accept the login, and the account may be restored.
#[test]
fn a_login_that_is_refused_later_ends_no_lead_before_the_lease() {
    let behind = Broker::with_tls_behind_a_wire();
    let (broker, wire, address) = &*behind;
    let election = TestElection::new(PROGRAM, &broker.kafka(), Elector::Log);
    let login = secure_login(SCRAM[0], Account::Operator.name(), PASSWORD);
    let mut run = candidate(&election, address, broker.authority(), &login).lease("60s").flag("-v").start();
    let term = run.await_lead();
    election.await_witness(term);
    change_password(&broker.kafka(), Account::Operator, false);
    wire.reset();
    wait::until_true("a refused login", || {
        // Only librdkafka's debug lines show the reason at once, because the log repeats its message every 30 s.
        run.history().iter().any(|event| format!("{event:?}").contains("Authentication failed"))
    });
    change_password(&broker.kafka(), Account::Operator, true);
    run.await_event("broker_up");
    assert_eq!((run.events("released").len(), run.events("fenced").len()), (0, 0), "{run:?}");
    assert_eq!(election.testimony().signals().count(), 0);
    election.close([run]);
}

/// A key's password is treated like any other secret.
#[test]
fn the_wrong_password_of_a_key_is_not_shown() {
    let election = election(Elector::Log);
    let mut properties =
        over_tls(broker().authority().locked_identity(Account::Tenant.name(), "another-horse").properties());
    properties.push(("ssl.key.password".to_owned(), PASSWORD.to_owned()));
    let mutual = broker().secure_addresses().mutual;
    let mut run = candidate(&election, &mutual, broker().authority(), &properties).start();
    assert_eq!(run.status(), 125);
    let message = format!("{run:?}");
    assert!(message.contains("ssl.key.password is not its password") && !message.contains(PASSWORD), "{message}");
    assert_eq!((run.count("error"), run.count("exiting")), (1, 1), "the log says it as well: {message}");

    allow_tenant(&election);
    properties.push(("ssl.key.password".to_owned(), "another-horse".to_owned()));
    let mut run = candidate(&election, &mutual, broker().authority(), &properties).flag("-v").start();
    run.await_lead();
    assert!(!format!("{run:?}").contains("another-horse"));
    election.close([run]);
}
