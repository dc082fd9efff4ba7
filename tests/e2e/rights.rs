//! The rights that a candidate needs, its message if one is missing, and the effect on a job if one is revoked.
//!
//! The tenant has only the rights that a test grants on the test's own topic and group. (READ and WRITE imply DESCRIBE in Kafka's
//! authorizer, so only a rule that denies DESCRIBE removes it.)

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use harness::accounts::{Account, PASSWORD, login};
use harness::candidate::{Candidate, Elector};
use harness::election::Answer;
use harness::journal;
use harness::network::{LinkConditions, Network};
use harness::rights::Operation::{Create, Describe, Read as Reads, Write as Writes};
use harness::rights::{Operation, Resource, Rights, Rule};
use harness::wait;
use harness::witness::Event;
use nix::sys::signal::Signal;

use crate::guarded::{Guarded, assert_refused};
use crate::{PROGRAM, with_both_electors};

mod forget;
mod once;

/// A Kafka that requires a login, and an account with almost no rights there.
struct Tenancy {
    guarded: Guarded,
    rights: Rights,
    account: Account,
    topic: String,
}

/// The resource of a right, which is the test's own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Of {
    Group,
    Topic,
}

/// A right that a candidate needs.
type Need = (Of, Operation);

/// The rights that a candidate needs if the topic exists.
fn needs(elector: Elector) -> &'static [Need] {
    match elector {
        Elector::Group => &[(Of::Topic, Reads), (Of::Topic, Writes), (Of::Group, Reads)],
        Elector::Log => &[(Of::Topic, Reads), (Of::Topic, Writes)],
    }
}

impl Tenancy {
    fn new(elector: Elector) -> Self {
        Self::of(Account::Tenant, elector)
    }

    fn of(account: Account, elector: Elector) -> Self {
        Self::on(Guarded::new(elector), account)
    }

    fn on(guarded: Guarded, account: Account) -> Self {
        let (rights, topic) = (Rights::of(&guarded.plain), guarded.election.topic());
        Self { guarded, rights, account, topic }
    }

    fn resource(&self, of: Of) -> Resource<'_> {
        match of {
            Of::Group => Resource::Group(&self.guarded.election.group),
            Of::Topic => Resource::Topic(&self.topic),
        }
    }

    fn rules<'a>(&'a self, needs: &[Need]) -> Vec<Rule<'a>> {
        needs.iter().map(|(of, operation)| Rule::allow(self.account.name(), self.resource(*of), *operation)).collect()
    }

    fn allow(&self, needs: &[Need]) {
        self.rights.make(&self.rules(needs));
    }

    fn take(&self, need: Need) {
        self.rights.unmake(&self.rules(&[need]));
    }

    fn deny(&self, (of, operation): Need) {
        self.rights.make(&[Rule::deny(self.account.name(), self.resource(of), operation)]);
    }

    fn candidate(&self) -> Candidate {
        let candidate = self.guarded.candidate(self.guarded.election.elector(), &[]);
        candidate.option("--properties", self.properties())
    }

    /// A file with its login, which only the user may read.
    fn properties(&self) -> PathBuf {
        let file = self.guarded.election.directory().join("tenant");
        let lines = login(self.account.name(), PASSWORD).into_iter().map(|(key, value)| format!("{key}={value}\n"));
        fs::write(&file, lines.collect::<String>()).expect("the file can be written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("the file's mode can be set");
        file
    }

    /// Runs a subcommand with the tenant's login.
    fn look(&self, words: &[&str]) -> Answer {
        let mut command = Command::new(PROGRAM);
        command.args(words).args(["--group", &self.guarded.election.group, "--brokers", &self.guarded.address]);
        command.arg("--properties").arg(self.properties());
        Answer::of(command)
    }

    /// Words that the message about this missing right must contain, besides the names.
    fn words(&self, (of, operation): Need) -> [String; 2] {
        let right = match operation {
            Create => "CREATE",
            Describe => "DESCRIBE",
            Reads => "READ",
            Writes => "WRITE",
            Operation::DescribeConfigs => "DESCRIBE_CONFIGS",
        };
        match of {
            Of::Group => [format!("group \"{}\"", self.guarded.election.group), format!("allow {right}")],
            Of::Topic => [format!("topic \"{}\"", self.topic), format!("no right to {right}")],
        }
    }

    /// Asserts that the tenant gets a message with the missing right, with and without a leader, and that the leader is not affected.
    fn assert_refused(&self, missing: Need) {
        let words = self.words(missing);
        let refuse = || {
            // A right that is missing is waited for, for a lease.
            let run = self.candidate().lease("3s").start();
            assert_refused(run, &words.each_ref().map(String::as_str));
        };
        refuse();
        assert!(self.guarded.election.testimony().lines.is_empty(), "no job was started");

        let mut leader = self.guarded.election.candidate().start();
        let term = leader.await_lead();
        self.guarded.election.await_witness(term);
        refuse();
        for event in ["fence_warning", "fenced", "revoked", "superseded", "stopping"] {
            assert!(leader.events(event).is_empty(), "{leader:?}");
        }
        let testimony = self.guarded.election.testimony();
        assert_eq!(testimony.signals().count(), 0);
        assert!(testimony.lines.iter().all(|line| line.epoch == Some(term)), "only one job ran");
        self.guarded.election.close([leader]);
    }
}

with_both_electors! {
    /// With exactly the rights that the manual lists, a candidate leads, hands over, and is released by its guard. It gets warnings about
    /// the settings that it may not read.
    fn the_rights_that_the_manual_lists_are_enough(elector) {
        let tenancy = Tenancy::new(elector);
        let election = &tenancy.guarded.election;
        tenancy.guarded.create_topic();
        tenancy.allow(needs(elector));
        let mut first = tenancy.candidate().flag("--no-create-topic").start();
        let term = first.await_lead();
        election.await_witness(term);
        let warned = || first.events("warning").iter().any(|event| {
            let message = event.text("message");
            message.contains(&tenancy.topic) && message.contains("allow DESCRIBE_CONFIGS")
        });
        wait::until_true("a warning that the rights can't be determined", warned);
        let mut second = tenancy.candidate().start();
        second.await_event("standby");
        first.signal(Signal::SIGKILL);
        let term = second.await_lead();
        election.await_witness(term);
        let verdicts = election.verdicts();
        let released = verdicts.iter().rfind(|verdict| verdict["record"]["kind"] == "release").expect("a release");
        assert_eq!(released["record"]["why"], "supervisor-died");
        election.close([second]);
    }

    /// This is like a new account without any rights.
    fn an_account_without_any_right_is_refused_and_writes_nothing(elector) {
        let tenancy = Tenancy::new(elector);
        tenancy.guarded.create_topic();
        let run = tenancy.candidate().start();
        // librdkafka chooses whether it asks for the topic or for the group first.
        assert_refused(run, &[&tenancy.guarded.election.group, "no right to DESCRIBE"]);
        assert_eq!(journal::end(&tenancy.guarded.plain, &tenancy.topic), 0);
    }
}

#[test]
fn each_of_these_rights_is_named_where_it_is_missing() {
    for missing in needs(Elector::Log) {
        let tenancy = Tenancy::new(Elector::Group);
        tenancy.guarded.create_topic();
        let others: Vec<Need> = needs(Elector::Group).iter().copied().filter(|need| need != missing).collect();
        tenancy.allow(&others);
        tenancy.assert_refused(*missing);
    }
}

#[test]
fn a_denied_right_to_describe_the_topic_is_named() {
    let tenancy = Tenancy::new(Elector::Log);
    tenancy.guarded.create_topic();
    tenancy.allow(needs(Elector::Log));
    tenancy.deny((Of::Topic, Describe));
    tenancy.assert_refused((Of::Topic, Describe));
}

/// CREATE on the future topic, or on the cluster.
#[test]
fn the_right_to_make_the_topic_is_needed_where_it_is_missing() {
    let tenancy = Tenancy::new(Elector::Log);
    tenancy.allow(needs(Elector::Log));
    assert_refused(tenancy.candidate().start(), &tenancy.words((Of::Topic, Create)).each_ref().map(String::as_str));
    assert!(!tenancy.guarded.plain.has_topic(&tenancy.topic));
    tenancy.allow(&[(Of::Topic, Create)]);
    let mut run = tenancy.candidate().start();
    run.await_lead();
    tenancy.guarded.election.close([run]);

    let tenancy = Tenancy::of(Account::Founder, Elector::Log);
    tenancy.allow(needs(Elector::Log));
    let mut run = tenancy.candidate().start();
    run.await_lead();
    tenancy.guarded.election.close([run]);
}

/// The job is stopped before its lease ends, and another candidate leads.
#[test]
fn a_right_that_is_revoked_from_a_leader_ends_its_lead_before_its_lease() {
    for taken in needs(Elector::Log) {
        let tenancy = Tenancy::new(Elector::Group);
        let election = &tenancy.guarded.election;
        tenancy.guarded.create_topic();
        tenancy.allow(needs(Elector::Group));
        // Without WRITE nothing can be released, and the lease must run out.
        let mut leader = tenancy.candidate().lease("5s").start();
        let term = leader.await_lead();
        election.await_witness(term);
        let mut successor = election.candidate().lease("5s").start();
        successor.await_event("standby");

        tenancy.take(*taken);
        let released = leader.await_release();
        election.assert_gone(term);
        assert_eq!(released.text("why"), "refused", "{leader:?}");
        assert_eq!(released.fields["delivered"].as_bool(), Some(*taken != (Of::Topic, Writes)), "{leader:?}");
        assert_refused_late(&mut leader, &tenancy.words(*taken));
        let testimony = election.testimony();
        assert!(testimony.of(term).any(|line| line.event == Event::Signal(15)), "the job received SIGTERM");
        let last = testimony.of(term).next_back().expect("the job wrote a heartbeat");
        assert!(last.deadline == 0 || last.at < last.deadline, "the job ended before its lease expired: {last:?}");
        let next = successor.await_lead();
        election.await_witness(next);
        election.close([successor]);
    }
}

#[test]
fn an_unknown_account_is_refused() {
    let guarded = Guarded::new(Elector::Group);
    guarded.create_topic();
    let run = guarded.candidate(Elector::Group, &login("nobody", PASSWORD)).start();
    assert_refused(run, &["authentication", "sasl.username"]);
}

/// Asserts status 125 and one line, although the candidate has led.
fn assert_refused_late(run: &mut harness::candidate::Running, words: &[String]) {
    assert_eq!(run.status(), 125, "{run:?}");
    let errors = run.events("error");
    assert_eq!(errors.len(), 1, "{run:?}");
    let shown = errors[0].text("message");
    assert!(words.iter().all(|word| shown.contains(word)), "{words:?} are not in {shown}");
}

/// A coordinator that does not answer delays nothing.
#[test]
fn a_group_whose_coordinator_is_not_found_delays_nothing() {
    const FIND_COORDINATOR: i16 = 10;
    let network = Network::start();
    let (guarded, wire) = Guarded::behind_a_wire(Elector::Group, &network);
    let tenancy = Tenancy::on(guarded, Account::Tenant);
    tenancy.guarded.create_topic();
    tenancy.allow(needs(Elector::Group));
    wire.set(LinkConditions { swallows: Some(FIND_COORDINATOR), ..LinkConditions::default() });
    let mut run = tenancy.candidate().start();
    let term = run.await_lead();
    tenancy.guarded.election.await_witness(term);
    tenancy.guarded.election.close([run]);
}

/// Without the right to the group, and when it is revoked, a candidate leads without precedence. (A revoked READ shows only when the session has
/// expired, since heartbeats are not answered any more.)
#[test]
fn the_right_to_the_group_is_not_needed_to_lead() {
    let tenancy = Tenancy::new(Elector::Group);
    tenancy.guarded.create_topic();
    tenancy.allow(needs(Elector::Log));
    let mut run = tenancy.candidate().start();
    let term = run.await_lead();
    tenancy.guarded.election.await_witness(term);
    let missing =
        |right: &str| format!("group \"{}\": this user has no right to {right} it", tenancy.guarded.election.group);
    wait::until_true("a warning", || !run.warnings_with(&missing("DESCRIBE")).is_empty());

    tenancy.allow(&[(Of::Group, Reads)]);
    run.await_event("assigned");
    let told = run.warnings_with("goes on without precedence").len();
    tenancy.take((Of::Group, Reads));
    wait::until_true("another warning", || run.warnings_with("goes on without precedence").len() > told);
    assert!(run.events("stopping").is_empty() && run.events("error").is_empty(), "{run:?}");
    tenancy.guarded.election.close([run]);
}

/// DESCRIBE is needed again later, at the latest when the reader asks for the log's end.
#[test]
fn the_right_to_describe_that_is_revoked_from_a_leader_ends_its_lead() {
    let tenancy = Tenancy::new(Elector::Log);
    tenancy.guarded.create_topic();
    tenancy.allow(needs(Elector::Log));
    let mut leader = tenancy.candidate().start();
    let term = leader.await_lead();
    tenancy.guarded.election.await_witness(term);
    tenancy.deny((Of::Topic, Describe));
    assert_refused_late(&mut leader, &tenancy.words((Of::Topic, Describe)));
    tenancy.guarded.election.assert_gone(term);
}

/// Subcommands that only read need READ on the topic and no other right. Without it, one line explains that.
#[test]
fn the_right_to_read_the_topic_is_enough_to_read_an_election() {
    let tenancy = Tenancy::new(Elector::Log);
    tenancy.guarded.create_topic();
    let mut run = tenancy.guarded.election.candidate().job(["true"]).start();
    assert_eq!(run.status(), 0);

    let list = &["list", "--topic", &tenancy.topic][..];
    let refused = |right: &str| {
        for words in LOOKS.iter().map(|(words, _, _)| *words).chain([list]) {
            let answer = tenancy.look(words);
            assert_eq!((answer.text.as_str(), answer.status), ("", 125), "{words:?}: {answer:?}");
            assert!(answer.errors.contains(right) && answer.errors.lines().count() == 1, "{words:?}: {answer:?}");
        }
    };
    refused("no right to DESCRIBE");
    tenancy.allow(&[(Of::Topic, Describe)]);
    refused("no right to READ");
    tenancy.allow(&[(Of::Topic, Reads)]);
    for (words, status, said) in LOOKS {
        let answer = tenancy.look(words);
        assert_eq!((answer.errors.as_str(), answer.status), ("", *status), "{words:?}: {answer:?}");
        assert!(answer.text.contains(said), "{words:?}: {answer:?}");
    }
    // Subcommands that write a request need WRITE.
    let answer = tenancy.look(&["end", "--force"]);
    assert_eq!((answer.text.as_str(), answer.status), ("", 125), "{answer:?}");
    assert!(answer.errors.contains("no right to WRITE") && answer.errors.lines().count() == 1, "{answer:?}");
}

/// Subcommands that read an election whose only term was released: arguments, exit status, and a text of the output.
const LOOKS: &[(&[&str], i32, &str)] = &[
    (&["watch", "--json", "--from", "start", "--until-end"], 0, "\"release\""),
    (&["status"], 3, "released term "),
    (&["history"], 0, "the job has ended"),
    (&["assert", "--json", "--epoch", "0"], 83, "\"leads\":false"),
];
