//! A Kafka that requires a login, and a candidate that it refuses.

#![allow(dead_code, reason = "each test program uses some of it")]

use harness::candidate::{Candidate, Elector, Running};
use harness::election::TestElection;
use harness::kafka::{Broker, Kafka};
use harness::network::{Network, Wire};

use crate::{PROGRAM, bare};

/// A Kafka with a listener that requires a login. It is the shared one, or, if the shared one is not started by the tests, a broker for
/// this test.
pub(crate) struct Guarded {
    /// An election on it.
    pub(crate) election: TestElection,
    /// The listener where every client has all rights.
    pub(crate) plain: Kafka,
    /// The listener that requires a login.
    pub(crate) address: String,
    _broker: Option<Broker>,
}

impl Guarded {
    pub(crate) fn new(elector: Elector) -> Self {
        let shared = Kafka::shared();
        if let Some(address) = shared.accounts_address() {
            let (address, election) = (address.to_owned(), TestElection::new(PROGRAM, shared, elector));
            let plain = Kafka::at(shared.address());
            return Self { election, plain, address, _broker: None };
        }
        let broker = Broker::own();
        let plain = broker.kafka();
        let address = plain.accounts_address().expect("the broker has a listener with accounts").to_owned();
        Self { election: TestElection::new(PROGRAM, &plain, elector), plain, address, _broker: Some(broker) }
    }

    /// This broker.
    pub(crate) fn of(broker: Broker, election: TestElection, plain: Kafka, address: String) -> Self {
        Self { election, plain, address, _broker: Some(broker) }
    }

    /// A broker for this test, which candidates reach through a wire.
    pub(crate) fn behind_a_wire(elector: Elector, network: &Network) -> (Self, Wire) {
        let (broker, wire, address) = Broker::behind_a_wire(network);
        let plain = broker.kafka();
        let guarded =
            Self { election: TestElection::new(PROGRAM, &plain, elector), plain, address, _broker: Some(broker) };
        (guarded, wire)
    }

    /// A candidate that logs in. (If `--brokers` is given twice, the last one counts.)
    pub(crate) fn candidate(&self, elector: Elector, properties: &[(String, String)]) -> Candidate {
        let candidate = bare().option("--group", &self.election.group).option("--brokers", &self.address);
        let candidate = candidate.option("--elect", elector.name()).job(self.election.witness().command());
        properties.iter().fold(candidate, |candidate, (key, value)| candidate.property(key, value))
    }

    pub(crate) fn create_topic(&self) {
        self.plain.create_topic(&self.election.topic(), &[("message.timestamp.type", "LogAppendTime")]);
    }
}

/// Asserts that the candidate was refused: status 125, and one line that contains these words.
pub(crate) fn assert_refused(mut run: Running, words: &[&str]) {
    assert_eq!(run.status(), 125, "{run:?}");
    let errors = run.events("error");
    assert_eq!(errors.len(), 1, "{run:?}");
    let message = errors[0].text("message").to_lowercase();
    assert!(words.iter().all(|word| message.contains(&word.to_lowercase())), "{words:?} are not in {message}");
    assert!(!message.contains("correct horse"), "no secret is shown");
    assert!(run.events("job_started").is_empty());
    assert!(run.warnings_with("it tries again").is_empty(), "{run:?}");
}
