//! A program that returns from `main` after its candidate has ended, over TLS. At an exit OpenSSL freed what threads of librdkafka still used.

use std::env;
use std::process::{Command, ExitStatus, Stdio};

use harness::accounts::{Account, PASSWORD, SCRAM, secure_login};
use harness::candidate::Elector;
use harness::election::TestElection;
use harness::kafka::Broker;
use neli_election::Election;

use crate::PROGRAM;

const BROKERS: &str = "NELI_TEST_EXITS_BROKERS";
const CERTIFICATE: &str = "NELI_TEST_EXITS_CERTIFICATE";
const GROUP: &str = "NELI_TEST_EXITS_GROUP";
const ACCOUNT: &str = "NELI_TEST_EXITS_ACCOUNT";

/// So many programs are run one after the other, by each of two accounts, and so many at a time: one in fifty was ended by SIGSEGV.
const RUNS: usize = 10;
const TOGETHER: usize = 4;

/// The program, if an environment variable asks for it: it leaves, or it is refused.
#[test]
fn joins_leaves_and_returns() {
    let Ok(group) = env::var(GROUP) else { return };
    let setting = |name| env::var(name).expect("set together with the group");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let builder = Election::builder(group).brokers(setting(BROKERS)).on_warning(|_| ());
        let login = secure_login(SCRAM[0], &setting(ACCOUNT), PASSWORD).into_iter();
        let properties = login.chain([("ssl.ca.location".to_owned(), setting(CERTIFICATE))]);
        let builder = properties.fold(builder, |builder, (key, value)| builder.property(key, value));
        if let Ok(election) = builder.join().await {
            election.leave().await;
        }
    });
}

#[test]
fn a_program_that_returns_is_not_ended_by_a_signal() {
    let broker = Broker::shared_with_tls();
    let election = TestElection::new(PROGRAM, &broker.kafka(), Elector::Group);
    let start = |account: Account| {
        let mut command = Command::new(env::current_exe().expect("a program"));
        command.args(["--exact", "library::exits::joins_leaves_and_returns"]);
        command.env(BROKERS, &broker.secure_addresses().accounts).env(GROUP, &election.group);
        command.env(CERTIFICATE, broker.authority().certificate()).env(ACCOUNT, account.name());
        command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it runs")
    };
    for _ in 0..RUNS {
        // One has all rights, and the other one has none.
        for account in [Account::Operator, Account::Tenant] {
            let started = [(); TOGETHER].map(|()| start(account));
            let ended = started.map(|mut program| program.wait().expect("a child can be waited for"));
            assert!(ended.iter().all(ExitStatus::success), "{}: {ended:?}", account.name());
        }
    }
}
