//! `doctor` reports every problem of a candidate at once, with the fixes: on a Kafka that requires a login, and beside candidates with
//! other settings. It writes nothing.

use std::process::Command;

use harness::accounts::{Account, PASSWORD, login};
use harness::candidate::Elector;
use harness::cluster::Cluster;
use harness::election::Answer;
use harness::install;
use harness::journal::{self, Pen, RepeatedRecord};
use harness::kafka::Kafka;
use harness::rights::Operation::{Create, Describe, DescribeConfigs, Read as Reads, Write as Writes};
use harness::rights::{Operation, Resource, Rights, Rule};
use harness::schema::Schema;
use harness::{not_tested, wait};
use nix::libc;
use nix::unistd::Uid;
use serde_json::Value;

use crate::guarded::Guarded;
use crate::{PROGRAM, election};

/// The exit status and the findings, which are checked against docs/json.md.
#[derive(Debug)]
pub(crate) struct Found {
    findings: Vec<Value>,
    status: i32,
}

impl Found {
    /// Runs `doctor` with these arguments, through a command that limits it.
    pub(crate) fn behind(prefix: &[&str], words: &[&str]) -> Self {
        let all: Vec<&str> =
            prefix.iter().copied().chain([PROGRAM, "doctor", "--json"]).chain(words.iter().copied()).collect();
        let mut command = Command::new(all[0]);
        command.args(&all[1..]);
        let Answer { text, errors, status } = Answer::of(command);
        assert_eq!(errors, "");
        let schema = Schema::read(include_str!("../../docs/json.md"), "doctor");
        let findings = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        let findings: Vec<Value> = findings.inspect(|line| schema.assert_holds(line)).collect();
        let fails = findings.iter().any(|finding| finding["outcome"] == "fail");
        assert_eq!(status, i32::from(fails), "{findings:?}");
        Self { findings, status }
    }

    pub(crate) fn of(words: &[&str]) -> Self {
        Self::behind(&[], words)
    }

    /// Message and fix of the findings of this check with this outcome.
    pub(crate) fn texts(&self, check: &str, outcome: &str) -> Vec<String> {
        let is_it = |finding: &&Value| finding["check"] == check && finding["outcome"] == outcome;
        let texts = |finding: &Value| {
            format!("{} | {}", finding["text"].as_str().unwrap_or("?"), finding["fix"].as_str().unwrap_or("-"))
        };
        self.findings.iter().filter(is_it).map(texts).collect()
    }

    /// Asserts that the one finding of this check with this outcome contains all these words.
    pub(crate) fn assert_finding(&self, check: &str, outcome: &str, words: &[&str]) {
        let texts = self.texts(check, outcome);
        assert!(
            texts.len() == 1 && words.iter().all(|word| texts[0].contains(word)),
            "{check}: no {words:?} in {self:?}"
        );
    }

    /// The checks that failed.
    fn failures(&self) -> Vec<&str> {
        let failures = self.findings.iter().filter(|finding| finding["outcome"] == "fail");
        failures.filter_map(|finding| finding["check"].as_str()).collect()
    }
}

/// An account with almost no rights, and the findings of `doctor` about it.
struct Tenancy {
    guarded: Guarded,
    topic: String,
}

impl Tenancy {
    fn new() -> Self {
        let guarded = Guarded::new(Elector::Group);
        Self { topic: guarded.election.topic(), guarded }
    }

    fn allow(&self, resource: Resource<'_>, operations: &[Operation]) {
        let allow = |operation: &Operation| Rule::allow(Account::Tenant.name(), resource, *operation);
        Rights::of(&self.guarded.plain).make(&operations.iter().map(allow).collect::<Vec<_>>());
    }

    fn ask(&self, user: &str, password: &str, words: &[&str]) -> Found {
        let properties: Vec<String> =
            login(user, password).into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        let mut all = vec!["--group", &self.guarded.election.group, "--brokers", &self.guarded.address];
        all.extend(properties.iter().flat_map(|property| ["-X", property]));
        all.extend(words);
        Found::of(&all)
    }

    fn tenant(&self, words: &[&str]) -> Found {
        self.ask(Account::Tenant.name(), PASSWORD, words)
    }
}

#[test]
fn every_missing_right_is_reported_with_the_command_that_grants_it() {
    let tenancy = Tenancy::new();
    let (topic, group) = (tenancy.topic.as_str(), tenancy.guarded.election.group.as_str());
    tenancy.guarded.create_topic();
    let found = tenancy.tenant(&["--no-create-topic"]);
    let acl = |operations: &str, on: &str| format!("--add --allow-principal User:tenant {operations} {on}");
    found.assert_finding("topic", "fail", &["no right", &acl("--operation Read --operation Write --topic", topic)]);
    let found = tenancy.tenant(&[]);
    found.assert_finding("login", "ok", &["PLAIN as tenant"]);
    found.assert_finding("candidates", "skipped", &["unknown: topic", "no right to DESCRIBE it"]);
    found.assert_finding(
        "topic",
        "fail",
        &["no right to DESCRIBE", &acl("--operation Read --operation Write --operation Create --topic", topic)],
    );
    found.assert_finding(
        "group",
        "warn",
        &["no right to DESCRIBE", "has no precedence", &acl("--operation Read --group", group)],
    );
    assert_eq!(found.failures(), ["topic"]);

    tenancy.allow(Resource::Topic(topic), &[Reads]);
    tenancy.allow(Resource::Group(group), &[Describe]);
    let found = tenancy.tenant(&[]);
    found.assert_finding("rights", "fail", &["no right to WRITE", &acl("--operation Write --topic", topic)]);
    found.assert_finding("group", "warn", &["no right to READ", &acl("--operation Read --group", group)]);
    assert_eq!(found.failures(), ["rights"]);
    assert_eq!(tenancy.tenant(&["--patience", "never"]).failures(), ["rights", "group"], "it would never claim");
    assert_eq!(tenancy.tenant(&["--elect", "log"]).texts("group", "warn"), [""; 0], "no group is joined");

    tenancy.allow(Resource::Topic(topic), &[Writes]);
    tenancy.allow(Resource::Group(group), &[Reads]);
    let found = tenancy.tenant(&["--", "true"]);
    assert_eq!(found.failures(), [""; 0], "{found:?}");
    found.assert_finding("settings", "warn", &["can't be read", &acl("--operation DescribeConfigs --topic", topic)]);
    found.assert_finding("broker-session", "warn", &["DESCRIBE_CONFIGS", "broker.session.timeout.ms", " | -"]);
    found.assert_finding("command", "ok", &[]);

    tenancy.allow(Resource::Topic(topic), &[DescribeConfigs]);
    tenancy.allow(Resource::Cluster, &[DescribeConfigs]);
    let found = tenancy.tenant(&["--", "no-such-command"]);
    for check in ["settings", "broker-session", "group-session", "rights", "topic-id", "group", "other-topics"] {
        found.assert_finding(check, "ok", &[]);
    }
    found.assert_finding("replicas", "warn", &["1 replica: if the only broker loses its disk"]);
    found.assert_finding("command", "fail", &["no-such-command: not found in PATH"]);
    assert_eq!(journal::end(&tenancy.guarded.plain, topic), 0, "nothing was written");

    // This is like a mistyped --topic on one machine.
    let elsewhere = format!("{group}-2.neli");
    tenancy.guarded.plain.create_topic(&elsewhere, &[("message.timestamp.type", "LogAppendTime")]);
    let hello = br#"{"v":1,"kind":"hello","member":"h","name":"other","seq":1}"#;
    Pen::new(&tenancy.guarded.plain, &elsewhere, &[]).write(&format!("{group}/0/hello"), &[hello]);
    tenancy.allow(Resource::Topic(&elsewhere), &[Describe]);
    // Other tests may let this user see their topics.
    tenancy.tenant(&[]).assert_finding(
        "other-topics",
        "ok",
        &[" *.neli (", " could not be read); topics with other names were not looked at"],
    );
    tenancy.allow(Resource::Topic(&elsewhere), &[Reads]);
    tenancy.tenant(&[]).assert_finding("other-topics", "fail", &["other of group", &elsewhere, "two jobs run"]);
}

#[test]
fn doctor_does_not_create_a_missing_topic() {
    let tenancy = Tenancy::new();
    let (topic, group) = (tenancy.topic.as_str(), tenancy.guarded.election.group.as_str());
    tenancy.allow(Resource::Topic(topic), &[Reads, Writes]);
    tenancy.allow(Resource::Group(group), &[Reads]);
    // Which settings follow depends on whether the broker shows its defaults: another test may give this user that right for the cluster.
    let create = format!("--create --topic {topic} --partitions 1 --replication-factor 1 --config ");
    tenancy.tenant(&[]).assert_finding("topic", "fail", &["no right to CREATE", &create, "--command-config"]);
    tenancy.allow(Resource::Topic(topic), &[Create]);
    let creates = tenancy.tenant(&[]);
    creates.assert_finding("topic", "ok", &["a candidate creates it"]);
    creates.assert_finding("replicas", "warn", &["it would have 1 replica: if the only broker loses", "two jobs may"]);
    tenancy.tenant(&["--no-create-topic"]).assert_finding("topic", "fail", &["drop --no-create-topic", &create]);
    let once = tenancy.tenant(&["--once", "k"]);
    let texts = once.texts("topic", "fail");
    assert!(texts.len() == 1 && texts[0].contains(&format!("{topic}.once")), "{once:?}");
    tenancy.allow(Resource::Topic(&format!("{topic}.once")), &[Create, Reads, Writes]);
    let once = tenancy.tenant(&["--once", "k"]).texts("replicas", "warn");
    assert!(once.len() == 2 && once[1].contains("what is done may run again"), "{once:?}");
    assert!(!tenancy.guarded.plain.has_topic(topic));
}

#[test]
fn an_unreachable_kafka_is_reported_with_the_failing_step() {
    let tenancy = Tenancy::new();
    let found = tenancy.ask("tenant", "wrong horse", &[]);
    found.assert_finding("login", "fail", &["authentication", "sasl.password"]);
    found.assert_finding("brokers", "ok", &[]);
    found.assert_finding("topic", "skipped", &[]);
    let plain = Found::of(&["--group", "g", "--brokers", &tenancy.guarded.address]);
    plain.assert_finding("login", "fail", &["closes each connection at once", "expects a login", "security.protocol"]);
    let away = Found::of(&["--group", "g", "--brokers", "127.0.0.1:1", "--timeout", "2s"]);
    away.assert_finding("brokers", "fail", &["127.0.0.1:1"]);
    assert_eq!(away.status, 1);
}

#[test]
fn every_setting_of_a_topic_is_judged_at_once() {
    let election = election(Elector::Log);
    let settings = [("cleanup.policy", "compact"), ("retention.ms", "1000"), ("max.message.bytes", "100")];
    Kafka::shared().create_topic(&election.topic(), &settings);
    let found = Found::of(&["--group", &election.group, "--brokers", Kafka::shared().address()]);
    assert_eq!(found.failures(), ["settings"; 3], "{found:?}");
    let fixes = found.texts("settings", "fail").join("\n");
    for fix in ["cleanup.policy=delete", "retention.ms=86400000", "max.message.bytes=4096"] {
        let command = format!("--alter --topic {} --add-config {fix}", election.topic());
        assert!(fixes.contains(&command), "{command} is not in {fixes}");
    }
    found.assert_finding("settings", "warn", &["CreateTime", "--add-config message.timestamp.type=LogAppendTime"]);
}

#[test]
fn candidates_that_differ_are_reported() {
    let election = election(Elector::Log);
    Kafka::shared().create_topic(&election.topic(), &[("message.timestamp.type", "LogAppendTime")]);
    let pen = Pen::new(Kafka::shared(), &election.topic(), &[]);
    let ask = |words: &[&str]| {
        Found::of(&[&["--group", &election.group, "--brokers", Kafka::shared().address()], words].concat())
    };
    ask(&[]).assert_finding("candidates", "ok", &["none was found"]);
    let hello = br#"{"v":1,"kind":"hello","member":"h","name":"db2","seq":1,"elector":"log","version":"9.9.9","overlap_ms":100}"#;
    pen.write(&format!("{}/hello", election.key()), &[hello]);
    let version = env!("CARGO_PKG_VERSION");
    let of_library =
        format!(r#"{{"v":1,"kind":"hello","member":"l","name":"lib","version":"neli-election {version}"}}"#);
    pen.write(&format!("{}/hello", election.key()), &[of_library.as_bytes()]);
    let claim = br#"{"v":1,"kind":"claim","member":"m","name":"db1","seq":1,"after":-1,"lease_ms":60000}"#;
    pen.write(&election.key(), &[claim]);
    let found = ask(&[]);
    found.assert_finding("candidates", "fail", &["db2 stands with --overlap"]);
    let texts = found.texts("candidates", "warn").join("\n");
    assert!(!texts.contains("lib has version"), "{texts}");
    for words in [
        "db2 stands with --elect log",
        "db2 has version 9.9.9",
        "db1 leads with --lease 1m, and here it is 20s | the same on every machine",
    ] {
        assert!(texts.contains(words), "{words} is not in {texts}");
    }
    found.assert_finding("clock", "skipped", &["none was read"]);
    let hello =
        br#"{"v":1,"kind":"hello","member":"r","name":"db3","elector":"log","roles":"b,a","partitions":2,"joined":1}"#;
    pen.write(&format!("{}/b/hello", election.group), &[hello]);
    let found = ask(&["--roles", "a,b"]).texts("candidates", "fail").join("\n");
    assert!(found.contains("role a would be in partition 0, and db3 has it in partition 1"), "{found}");
}

/// They work together, but some roles have fewer standbys, and the old job runs for another time beside the new one.
#[test]
fn candidates_of_more_or_fewer_roles_and_of_another_overlap_are_reported() {
    let election = election(Elector::Log);
    Kafka::shared().create_topic(&election.topic(), &[("message.timestamp.type", "LogAppendTime")]);
    let pen = Pen::new(Kafka::shared(), &election.topic(), &[]);
    let ask = |words: &[&str]| {
        let given = ["--group", &election.group, "--brokers", Kafka::shared().address(), "--elect", "log"];
        Found::of(&[&given, words].concat())
    };
    let stand = |role: &str, fields: &str| {
        let hello = format!(r#"{{"v":1,"kind":"hello","member":"h","name":"db1","seq":1,"elector":"log",{fields}}}"#);
        pen.write(&format!("{}/{role}/hello", election.group), &[hello.as_bytes()]);
    };
    stand("a", r#""roles":"a,b","partitions":1,"joined":1"#);
    for (own, shown) in [("a,b,c", "a, b, c"), ("a", "a")] {
        let words = ["db1 stands with --roles for a, b, and here it is for ", shown, "the same roles"];
        ask(&["--roles", own]).assert_finding("candidates", "warn", &words);
    }
    ask(&["--roles", "b,a"]).assert_finding("candidates", "ok", &["1 found, none of which differs"]);
    stand("0", r#""roles":"3","partitions":1,"joined":1"#);
    ask(&["--roles", "2"]).assert_finding("candidates", "warn", &["for 0 to 2, and here it is for 0 to 1"]);
    stand("0", r#""overlap_ms":2000"#);
    let found = ask(&["--overlap", "1s"]);
    found.assert_finding("candidates", "warn", &["db1 stands with --overlap 2s, and here it is 1s"]);
    ask(&["--overlap", "2s"]).assert_finding("candidates", "ok", &["1 found, none of which differs"]);
}

#[test]
fn beside_a_leader_nothing_fails_and_its_heartbeat_shows_the_brokers_clock() {
    let election = election(Elector::Group);
    let mut leader = election.candidate().start();
    let term = leader.await_lead();
    election.await_witness(term);
    // A lone candidate leads before the group has assigned a partition to it.
    leader.await_event("assigned");
    let words = ["--group", &election.group, "--brokers", Kafka::shared().address()];
    let found = Found::of(&words);
    assert_eq!(found.failures(), [""; 0], "{found:?}");
    found.assert_finding("candidates", "ok", &["1 found, none of which differs"]);
    found.assert_finding("group", "ok", &["1 member"]);
    // On a machine that is ten times slower no heartbeat may be read in time.
    assert!(found.findings.iter().any(|finding| finding["check"] == "clock"), "{found:?}");

    let answer = election.ask("doctor", &[]);
    let outcomes = ["ok    ", "WARN  ", "--    ", "      "];
    let (findings, summary) = answer.text.trim_end().rsplit_once('\n').expect("several lines");
    let is_finding = |line: &str| outcomes.iter().any(|outcome| line.starts_with(outcome));
    assert!(findings.lines().all(is_finding) && summary.starts_with("0 FAIL, "), "{}", answer.text);
    assert_eq!((answer.errors.as_str(), answer.status), ("", 0));
    election.close([leader]);
}

/// It listens for two of the leader's own heartbeats.
#[test]
fn a_leader_with_rare_heartbeats_shows_the_brokers_clock() {
    let election = election(Elector::Log);
    let mut leader = election.candidate().lease("20s").option("--heartbeat-interval", "4s").start();
    let after_claim = i64::try_from(leader.await_lead()).expect("an offset") + 1;
    // The first two may be closer together, because the job has started.
    wait::until_true("three heartbeats", || journal::end(Kafka::shared(), &election.topic()) >= after_claim + 3);
    let words = ["--group", &election.group, "--brokers", Kafka::shared().address(), "--timeout", "30s"];
    Found::of(&words).assert_finding("clock", "ok", &["this machine's clock is"]);
    election.close([leader]);
}

/// The hello of a candidate that was killed counts for 75 s.
#[test]
fn an_old_hello_that_conflicts_is_said_to_be_old() {
    let election = election(Elector::Log);
    Kafka::shared().create_topic(&election.topic(), &[("message.timestamp.type", "CreateTime")]);
    let pen = Pen::new(Kafka::shared(), &election.topic(), &[]);
    let ask = || {
        let found = Found::of(&["--group", &election.group, "--brokers", Kafka::shared().address()]);
        found.texts("candidates", "fail").join("\n")
    };
    let hello = br#"{"v":1,"kind":"hello","member":"h","name":"db2","seq":1,"overlap_ms":100}"#;
    for (ahead, is_old) in [(-50, true), (-20, false)] {
        pen.write_ahead(&format!("{}/hello", election.key()), &[hello], ahead);
        let text = ask();
        assert!(text.starts_with("db2 stands with --overlap"), "{text}");
        assert_eq!(
            text.contains("; its last hello was 5") && text.contains(": if it has died, ask again in 2"),
            is_old,
            "{text}"
        );
    }
}

/// A candidate warns of the same at its start.
#[test]
fn partitions_without_a_role_are_reported() {
    let election = election(Elector::Group);
    Kafka::shared().create_partitioned_topic(&election.topic(), 2);
    let ask = |words: &[&str]| {
        Found::of(&[&["--group", &election.group, "--brokers", Kafka::shared().address()], words].concat())
    };
    ask(&[]).assert_finding("group", "warn", &["the topic has more partitions than this group uses"]);
    for words in [&["--roles", "2"][..], &["--roles", "3"], &["--elect", "log"]] {
        assert_eq!(ask(words).texts("group", "warn"), [""; 0], "{words:?}");
    }
}

/// On such a topic the timestamps are the candidates' own. A leader is seen even if its
/// lease is shorter than the wait for a timestamp of the broker.
#[test]
fn a_topic_whose_candidates_give_the_timestamps_does_not_show_the_brokers_clock() {
    let election = election(Elector::Log);
    Kafka::shared().create_topic(&election.topic(), &[("message.timestamp.type", "CreateTime")]);
    let pen = Pen::new(Kafka::shared(), &election.topic(), &[]);
    let claim = br#"{"v":1,"kind":"claim","member":"m","name":"web","seq":1,"after":-1,"lease_ms":2000}"#;
    pen.write(&election.key(), &[claim]);
    let beat = r#"{"v":1,"kind":"beat","member":"m","name":"web","seq":2,"term":0,"seen":0,"lease_ms":2000}"#;
    let _heartbeats = RepeatedRecord::start(pen, election.key(), beat.to_owned());
    let found = wait::until("a leader that is seen", || {
        let found = Found::of(&["--group", &election.group, "--brokers", Kafka::shared().address()]);
        found.texts("candidates", "ok").is_empty().then_some(found)
    });
    found.assert_finding("candidates", "warn", &["web leads with --lease 2s, and here it is 20s"]);
    found.assert_finding("clock", "skipped", &["LogAppendTime"]);
}

#[test]
fn the_printed_command_creates_the_topics() {
    let election = election(Elector::Log);
    let answer = election.ask("doctor", &["--print-topic", "--roles", "3"]);
    let (kafka, topic) = (Kafka::shared().address(), election.topic());
    let expected = format!(
        "kafka-topics.sh --bootstrap-server {kafka} --create --topic {topic} --partitions 3 --replication-factor 1 --config \
         message.timestamp.type=LogAppendTime --config retention.ms=86400000 --config segment.ms=3600000\n"
    );
    assert_eq!((answer.text, answer.errors.as_str(), answer.status), (expected, "", 0));
    let answer = election.ask("doctor", &["--print-topic", "--once", "k"]);
    let once = format!("--create --topic {topic}.once --partitions 1 ");
    assert!(answer.text.lines().count() == 2 && answer.text.contains(&once), "{answer:?}");
    assert!(!Kafka::shared().has_topic(&topic));
}

/// Leases need clock rates within 1 % of each other. A preloaded library changes the rate; the machine's own clock is not changed.
#[test]
fn a_clock_that_runs_too_fast_or_too_slowly_is_reported() {
    let library = format!("LD_PRELOAD={}", install::stepped_clock().display());
    let ask = |ppm: &str| {
        let clock = format!("FAST_CLOCK={ppm}");
        Found::behind(&["env", &library, &clock], &["--brokers", Kafka::shared().address()])
    };
    let found = ask("83333");
    found.assert_finding("clock-rate", "fail", &["% faster", "two jobs may run", "maxslewrate"]);
    assert_eq!(found.failures(), ["clock-rate"], "{found:?}");
    ask("-7000").assert_finding("clock-rate", "warn", &["% slower", "maxslewrate"]);
    ask("0").assert_finding("clock-rate", "ok", &[" its hardware counts"]);
}

/// A child shows whether the job can have a control group. The kernel discards the status of children if the parent of `doctor` ignored
/// SIGCHLD.
#[test]
fn the_control_group_is_found_if_the_status_of_children_is_discarded() {
    let groups = |prefix: &[&str]| {
        let found = Found::behind(prefix, &["--brokers", Kafka::shared().address()]);
        ["ok", "warn"].map(|outcome| found.texts("control-group", outcome))
    };
    assert_eq!(groups(&["bash", "-c", r#"trap "" CHLD; exec "$@""#, "bash"]), groups(&[]));
}

/// Root in a container may lack the right to kill what has dropped root, and may be unable to make a control group. A setuid program is not needed
/// for that: a job with `CAP_SETUID` takes another id.
#[test]
fn a_job_that_root_could_not_kill_is_a_warning() {
    const READ_ONLY: &str = r#"
        for mount in $(awk '$3 ~ "^cgroup" { print $2 }' /proc/mounts); do mount -o remount,bind,ro "$mount" || exit; done
        exec setpriv "$@"
    "#;
    if !Uid::effective().is_root() {
        return not_tested("root without a right is tried as root alone");
    }
    let found = |rights: &[&str]| {
        let unshare = ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", READ_ONLY, "sh"];
        let prefix = [&unshare[..], rights, &["--"]].concat();
        Found::behind(&prefix, &["--brokers", Kafka::shared().address()])
    };
    found(&[]).assert_finding("control-group", "ok", &["none for the job; with CAP_KILL"]);
    for takes_an_id in [&["--bounding-set", "-kill"][..], &["--no-new-privs", "--bounding-set", "-kill"]] {
        found(takes_an_id).assert_finding("control-group", "warn", &["without CAP_KILL", "Delegate=yes"]);
    }
    let keeps_its_id = ["--no-new-privs", "--bounding-set", "-kill,-setuid"];
    found(&keeps_its_id).assert_finding("control-group", "ok", &["none for the job; with no_new_privs"]);
}

/// A sandbox that lists the allowed system calls may lack one that a candidate needs at its start. `doctor` names it, and is right.
#[test]
fn a_system_call_that_a_sandbox_refuses_is_named() {
    let deny = install::deny().to_str().expect("UTF-8");
    let brokers = ["--brokers", Kafka::shared().address()];
    let calls = [
        ("memfd_create", libc::SYS_memfd_create),
        ("signalfd4", libc::SYS_signalfd4),
        ("timerfd_create", libc::SYS_timerfd_create),
        ("clone3", libc::SYS_clone3),
    ];
    for (call, number) in calls {
        let number = number.to_string();
        let prefix = [deny, number.as_str()];
        let mut candidate = Command::new(deny);
        candidate
            .args([number.as_str(), PROGRAM])
            .args(brokers)
            .args(["--group", "denied", "--wait", "10s", "--", "true"]);
        let status = Answer::of(candidate).status;
        let found = Found::behind(&prefix, &brokers);
        // Without clone3 some C libraries start threads by clone.
        if status == 125 || call != "clone3" {
            assert_eq!(status, 125, "{call}");
            found.assert_finding("system-calls", "fail", &[call, "fails (", "seccomp"]);
            assert_eq!(found.failures(), ["system-calls"], "{found:?}");
        }
    }
    let found = Found::of(&brokers);
    found.assert_finding("system-calls", "ok", &[]);
    found.assert_finding("guard", "ok", &[]);
}

/// It checks the machine and the brokers.
#[test]
fn without_a_group() {
    let found = Found::of(&["--brokers", Kafka::shared().address()]);
    assert_eq!(found.failures(), [""; 0], "{found:?}");
    found.assert_finding("brokers", "ok", &["1 up"]);
    found.assert_finding("topic", "skipped", &["--group is not given"]);
    assert!(found.findings.iter().all(|finding| finding["group"].is_null()));
}

/// Two of three brokers are killed, so no controller is left: the metadata of the third goes on counting on them, and nothing can be appended. Then
/// one of them is back, and the other alone stored a topic.
#[test]
fn brokers_that_died_are_reported() {
    let mut cluster = Cluster::in_turn();
    let kafka = cluster.kafka();
    let ask =
        |group: &str| Found::of(&["--group", group, "--brokers", kafka.address(), "--elect", "log", "--timeout", "3s"]);
    let stamped = ("message.timestamp.type", "LogAppendTime");
    let strict = [stamped, ("min.insync.replicas", "2")];
    kafka.create_topic_on("three.neli", &[1, 2, 3], &strict);
    kafka.create_topic_on("both.neli", &[1, 3], &strict);
    kafka.create_topic_on("alone.neli", &[3], &[stamped]);
    kafka.create_topic_on("runs.neli", &[1], &[stamped]);
    kafka.create_topic_on("runs.neli.once", &[3], &[]);
    // If no consumer group was ever there, this question makes Kafka create the topic of its coordinators, which may take longer than an
    // answer is awaited.
    wait::until_true("coordinators of groups", || {
        let found = Found::of(&["--group", "first", "--brokers", kafka.address()]);
        found.texts("group", "ok").iter().any(|text| text.contains("no members"))
    });
    for topic in ["three.neli", "__consumer_offsets"] {
        wait::until_true("replicas in sync", || cluster.is_in_sync(topic));
    }
    ask("three").assert_finding("brokers", "ok", &["3 up"]);
    let found = ask("both");
    found.assert_finding("topic-id", "ok", &["it has an id"]);
    found.assert_finding("replicas", "ok", &["2 replicas, all in sync"]);

    let silent = [1, 2].map(|broker| format!("{} ({})", broker + 1, cluster.addresses()[broker])).join(", ");
    cluster.broker(1).end();
    cluster.broker(2).end();
    let nothing = "min.insync.replicas=2: Kafka appends nothing";
    let found = ask("three");
    found.assert_finding("brokers", "warn", &[&format!("1 of 3 up: no answer within 3s from broker {silent} | ")]);
    found.assert_finding("replicas", "fail", &["1 of 3 replicas in sync", nothing]);
    assert_eq!(found.failures(), ["replicas"], "{found:?}");

    cluster.broker(1).begin();
    wait::until_true("a topic without a leader", || cluster.leader_of("alone.neli", 0).is_none());
    let found = ask("alone");
    found.assert_finding("topic", "fail", &["partition 0 has no leader that answers: start the brokers that hold it"]);
    assert_eq!(found.failures(), ["topic", "replicas"], "{found:?}");
    found.assert_finding("topic-id", "ok", &["it has an id"]);
    let found =
        wait::until("a topic without a replica", || Some(ask("both")).filter(|found| !found.failures().is_empty()));
    found.assert_finding("replicas", "fail", &["1 of 2 replicas in sync", nothing]);
    found.assert_finding("topic", "ok", &["1 partition"]);
    leads_without_a_last_run(&kafka);
}

/// Until `status` gives up the facts that the dead broker stored, it reads no heartbeat: the leader is not silent.
fn leads_without_a_last_run(kafka: &Kafka) {
    let pen = Pen::new(kafka, "runs.neli", &[]);
    pen.write("runs/0/hello", &[br#"{"v":1,"kind":"hello","member":"m","name":"web","seq":1,"once":"--once k"}"#]);
    pen.write("runs/0", &[br#"{"v":1,"kind":"claim","member":"m","name":"web","seq":2,"after":0,"lease_ms":1000}"#]);
    let beat = r#"{"v":1,"kind":"beat","member":"m","name":"web","seq":3,"term":1,"seen":1,"lease_ms":1000}"#;
    let _heartbeats = RepeatedRecord::start(pen, "runs/0".to_owned(), beat.to_owned());
    wait::until_true("a leader without a last run", || {
        let mut status = Command::new(PROGRAM);
        status.args(["status", "--group", "runs", "--brokers", kafka.address()]);
        let answer = Answer::of(status);
        answer.status == 0 && answer.errors.starts_with("neli-run: warning: the last run is not shown: ")
    });
}
