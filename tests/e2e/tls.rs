//! Kafka behind TLS, with and without a login. Of a build with it: `cargo test --features ssl --test e2e tls::`

use std::fs;

use harness::accounts::{Account, PASSWORD, secure_login};
use harness::candidate::{Candidate, Elector};
use harness::kafka::Broker;
use harness::stage::Stage;
use harness::tls::Authority;
use nix::sys::signal::Signal;

use crate::{PROGRAM, bare, with_both_electors};

/// A candidate that trusts `authority`, at one of the broker's listeners; its properties come from a file.
fn candidate(stage: &Stage, address: &str, authority: &Authority, login: &[(String, String)]) -> Candidate {
    let trust = [("ssl.ca.location".to_owned(), authority.certificate().display().to_string())];
    let over_tls = [("security.protocol".to_owned(), "SSL".to_owned())];
    let properties = over_tls.iter().chain(login).chain(&trust);
    let lines: Vec<String> = properties.map(|(key, value)| format!("{key}={value}")).collect();
    let text = lines.join("\n");
    let file = stage.directory().join(format!("properties-{}", text.len()));
    fs::write(&file, text).expect("the directory is ours");
    let candidate = bare().option("--group", &stage.group).option("--brokers", address);
    candidate.option("--elect", stage.elector().name()).option("--properties", file).job(stage.witness().command())
}

with_both_electors! {
    /// All of it goes over TLS: claim, group, the guard's release for the dead.
    fn a_lead_and_a_death(elector) {
        let broker = Broker::with_tls();
        let stage = Stage::new(PROGRAM, &broker.kafka(), elector);
        let login = secure_login(Account::Operator.name(), PASSWORD);
        for (address, login) in std::iter::zip(broker.secure_addresses(), [&[][..], &login]) {
            let candidate = candidate(&stage, &address, broker.authority(), login);
            let mut first = candidate.start();
            let term = first.await_lead();
            stage.await_witness(term);
            let mut second = candidate.start();
            second.await_event("standby");
            first.signal(Signal::SIGKILL);
            let term = second.await_lead();
            stage.await_witness(term);
            let verdicts = stage.verdicts();
            let released = verdicts.iter().rfind(|verdict| verdict["record"]["kind"] == "release");
            assert_eq!(released.expect("a release")["record"]["why"], "supervisor-died");
            stage.close([second]);
        }
    }
}

/// An authority that is not trusted may be one that is yet to be: waited for, with a line that names the trouble.
#[test]
fn an_authority_that_nobody_knows() {
    let broker = Broker::with_tls();
    let stage = Stage::new(PROGRAM, &broker.kafka(), Elector::Group);
    let stranger = Authority::new("stranger");
    let mut run = candidate(&stage, &broker.secure_addresses()[0], &stranger, &[]).start();
    let error = run.await_event("broker_down").text("error").to_owned();
    assert!(error.contains("certificate verify failed"), "{error}");
    run.signal(Signal::SIGTERM);
    assert_eq!(run.status(), 143);
    run.await_silence();
    assert!(run.events("leading").is_empty() && run.events("broker_down").len() == 1, "{run:?}");
    assert!(run.events("error").is_empty(), "{run:?}");
}

/// A password that is wrong is refused for good, over TLS too.
#[test]
fn a_wrong_password() {
    let broker = Broker::with_tls();
    let stage = Stage::new(PROGRAM, &broker.kafka(), Elector::Group);
    let login = secure_login(Account::Operator.name(), "wrong horse");
    let mut run = candidate(&stage, &broker.secure_addresses()[1], broker.authority(), &login).start();
    assert_eq!(run.status(), 125);
    run.await_silence();
    let errors = run.events("error");
    assert!(errors.len() == 1 && errors[0].text("message").to_lowercase().contains("authentication"), "{run:?}");
}
