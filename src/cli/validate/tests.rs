use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;

use anyhow::Result;
use neli_proto::candidate::{Durations, Elector, Timings};
use neli_proto::health::HealthPolicy;
use neli_proto::hooks::Hook;
use neli_proto::restart::{Limit, Restart, RestartPolicy};

use super::*;
use crate::cli;

const PATH: (&str, &str) = ("PATH", "/bin:/usr/bin");

fn validate(variables: &[(&str, &str)], arguments: &[&str]) -> Result<Config> {
    config(&parse(variables, arguments)?)
}

fn parse(variables: &[(&str, &str)], arguments: &[&str]) -> Result<ParsedArgs> {
    let variables = [PATH].iter().chain(variables).map(|(name, value)| (name.into(), value.into()));
    let arguments: Vec<OsString> = ["neli-run"].iter().chain(arguments).map(OsString::from).collect();
    cli::parse(&arguments, variables.collect()).map_err(|error| cli::refusal(&error, &arguments))
}

#[test]
fn defaults_are_as_the_manual_says() {
    let config = validate(&[], &["-g", "billing", "-b", "k:9092", "--", "true", "--lease"]).unwrap();
    assert_eq!(config.elections.election(0, 1).key(), "billing/0");
    assert_eq!(config.elections.topic, "billing.neli");
    assert!(config.create_topic);
    assert!(config.name.ends_with(&format!(":{}", std::process::id())));
    let timings = Timings::new(
        Durations {
            lease: Duration::from_secs(20),
            heartbeat_interval: Duration::from_secs(1),
            kill_margin: Duration::from_millis(400),
            fence_warning: Duration::from_millis(2_500),
            preempt_after: None,
            overlap: None,
        },
        Elector::Group(Some(Duration::from_millis(500))),
    )
    .unwrap();
    assert_eq!(config.timings, timings);
    assert_eq!(config.wait, None);
    assert_eq!((config.job.stop.signal, config.job.stop.timeout), (Some(15), Duration::from_secs(8)));
    let limit = Limit { restarts: 10, within: Duration::from_secs(300) };
    let restart = RestartPolicy { restart: Restart::No, delay: Duration::from_secs(1), limit: Some(limit) };
    assert_eq!((config.job.restart, config.job.on_loss), (restart, OnLoss::Standby));
    assert_eq!((config.health_command, config.job.health, config.hooks.len()), (None, None, 0));
    assert_eq!((config.log.is_json, config.log.verbosity, config.log.file), (false, 0, None));
    assert_eq!(config.command, ["true", "--lease"]);
    assert_eq!(config.warnings, [""; 0]);
}

#[test]
fn given_values_are_used() {
    let line = [
        "--group=b",
        "--embedded",
        "--topic",
        "t",
        "--no-create-topic",
        "--elect",
        "log",
        "--lease",
        "300ms",
        "--heartbeat-interval",
        "100ms",
        "--fence-warning",
        "0",
        "--wait",
        "2s",
        "--priority",
        "10",
        "--preempt",
        "5s",
        "--name",
        "me",
        "--settle",
        "5s",
        "--stop-signal",
        "sigint",
        "--stop-timeout",
        "0",
        "--restart",
        "on-failure",
        "--restart-delay",
        "200ms",
        "--restart-limit",
        "0/1h",
        "--on-loss",
        "exit",
        "--log-format",
        "json",
        "--log-file",
        "l",
        "-v",
        "--",
        "true",
    ];
    let config = validate(&[], &line).unwrap();
    assert_eq!((config.elections.group.as_str(), config.elections.topic.as_str()), ("b", "t"));
    assert_eq!(config.client.bootstrap, None);
    assert!(!config.create_topic);
    assert_eq!(config.name, "me");
    assert_eq!(config.timings.kill_margin, Duration::from_millis(20));
    assert_eq!(config.timings.elector(), Elector::Log);
    assert_eq!(config.wait, Some(Duration::from_secs(2)));
    assert_eq!((config.priority, config.timings.preempt_after), (10, Some(Duration::from_secs(5))));
    assert_eq!(config.job.settle, Duration::from_secs(5));
    assert_eq!((config.job.stop.signal, config.job.stop.timeout), (Some(2), Duration::ZERO));
    let limit = Limit { restarts: 0, within: Duration::from_secs(3600) };
    let delay = Duration::from_millis(200);
    assert_eq!(config.job.restart, RestartPolicy { restart: Restart::OnFailure, delay, limit: Some(limit) });
    assert_eq!(config.job.on_loss, OnLoss::Exit);
    assert_eq!((config.log.is_json, config.log.verbosity), (true, 1));
}

#[test]
fn a_long_lease_neither_slows_the_heartbeats_nor_warns_earlier() {
    let timings = |lease: &str| {
        let timings = validate(&[], &["-g", "b", "--embedded", "--lease", lease, "--", "true"]).unwrap().timings;
        (timings.heartbeat_interval.as_millis(), timings.fence_warning.as_millis())
    };
    assert_eq!(timings("300ms"), (60, 75));
    assert_eq!(timings("5s"), (1_000, 1_250));
    assert_eq!(timings("10s"), (1_000, 2_500));
    assert_eq!(timings("60s"), (1_000, 2_500));
}

#[test]
fn bounds_belong_to_what_they_bound() {
    for lease in ["300ms", "60s", "1m"] {
        validate(&[], &["-g", "b", "--embedded", "--lease", lease, "--", "true"]).unwrap();
    }
    let wait = validate(&[], &["-g", "b", "--embedded", "--wait", "0", "--", "true"]).unwrap().wait;
    assert_eq!(wait, Some(Duration::ZERO));
    let never = validate(&[], &["-g", "b", "--embedded", "--patience", "never", "--", "true"]).unwrap();
    assert_eq!(never.timings.elector(), Elector::Group(None));
    let run = ["-g", "b", "--embedded", "--restart", "always", "--restart-limit", "none", "--", "true"];
    assert_eq!(validate(&[], &run).unwrap().job.restart.limit, None);
    let group = "a b/ä";
    validate(&[], &["-g", group, "-t", "t", "--embedded", "--", "true"]).unwrap();
}

#[test]
fn a_command_beside_the_job_runs_in_the_shell() {
    let plain = validate(&[], &["-g", "b", "--embedded", "--health-cmd", "curl -f x", "--", "true"]).unwrap();
    let policy = HealthPolicy {
        interval: Duration::from_secs(10),
        timeout: Duration::from_secs(5),
        failures: 3,
        start: Duration::ZERO,
    };
    assert_eq!((plain.health_command, plain.job.health), (Some("curl -f x".into()), Some(policy)));
    assert_eq!(plain.hooks.len(), 0);

    let variables = [("NELI_RUN_HEALTH_INTERVAL", "1s"), ("NELI_RUN_ON_FENCE", "fence"), ("NELI_RUN_ON_LEAD", "lead")];
    let line = "-g b --embedded --health-cmd well --health-timeout 2s --health-failures 1 --health-start 3s --on-standby by \
                --on-exit ended -- true";
    let all = validate(&variables, &line.split(' ').collect::<Vec<_>>()).unwrap();
    let [interval, timeout, start] = [1, 2, 3].map(Duration::from_secs);
    let policy = HealthPolicy { interval, timeout, failures: 1, start };
    assert_eq!((all.health_command, all.job.health), (Some("well".into()), Some(policy)));
    let hooks = [(Hook::Exit, "ended"), (Hook::Fence, "fence"), (Hook::Lead, "lead"), (Hook::Standby, "by")];
    assert_eq!(all.hooks, hooks.map(|(hook, line)| (hook, line.into())).into());
}

#[test]
fn the_last_of_one_option_counts() {
    let config = validate(&[], &["-g", "a", "-g", "b", "--embedded", "--", "true"]).unwrap();
    assert_eq!(config.elections.group, "b");
}

#[test]
fn variables_fill_the_gaps() {
    let variables = [
        ("NELI_RUN_GROUP", "b"),
        ("NELI_RUN_BROKERS", "k:1, l:2"),
        ("NELI_RUN_STOP_TIMEOUT", "2m"),
        ("NELI_RUN_NO_CREATE_TOPIC", "true"),
        ("NELI_RUN_QUIET", "0"),
        ("NELI_RUN_PID", "4711"),
        ("NELI_RUN_SECONDS", "7"),
        // Kubernetes sets these for services that are called neli-run and neli-run-status.
        ("NELI_RUN_SERVICE_HOST", "10.0.0.1"),
        ("NELI_RUN_SERVICE_PORT", "80"),
        ("NELI_RUN_SERVICE_PORT_HTTP", "80"),
        ("NELI_RUN_PORT", "tcp://10.0.0.1:80"),
        ("NELI_RUN_PORT_80_TCP", "tcp://10.0.0.1:80"),
        ("NELI_RUN_PORT_80_TCP_PROTO", "tcp"),
        ("NELI_RUN_PORT_80_TCP_PORT", "80"),
        ("NELI_RUN_PORT_80_TCP_ADDR", "10.0.0.1"),
        ("NELI_RUN_STATUS_SERVICE_HOST", "10.0.0.2"),
        ("NELI_RUN_STATUS_PORT", "udp://10.0.0.2:53"),
        ("NELI_RUN_STATUS_PORT_53_UDP_ADDR", "10.0.0.2"),
        ("NELI_RUN_RESTRT", "always"),
    ];
    let config = validate(&variables, &["--", "true"]).unwrap();
    assert_eq!(config.client.bootstrap.as_deref(), Some("k:1,l:2"));
    assert_eq!(config.job.stop.timeout, Duration::from_secs(120));
    assert!(!config.create_topic);
    assert_eq!(config.log.verbosity, 0);
    let unknown =
        "NELI_RUN_RESTRT is set, and no option has this variable: it has no effect; did you mean NELI_RUN_RESTART?";
    assert_eq!(config.warnings, [unknown]);
    let config = validate(&variables, &["--embedded", "--", "true"]).unwrap();
    assert_eq!(config.client.bootstrap, None);
    let config = validate(&[("NELI_RUN_WHATEVER", "1")], &["-g", "g", "-b", "a:1", "--", "true"]).unwrap();
    let unknown = "NELI_RUN_WHATEVER is set, and no option has this variable: it has no effect";
    assert_eq!(config.warnings, [unknown]);
}

#[test]
fn a_group_that_is_ignored_is_warned_of() {
    let config = |groups: &[&str]| {
        let groups = groups.iter().flat_map(|group| ["--group", group]);
        let arguments: Vec<&str> = groups.chain(["--brokers", "a:1", "--", "true"]).collect();
        validate(&[("NELI_RUN_GROUP", "c")], &arguments).unwrap()
    };
    let two = config(&["a", "b"]);
    assert_eq!(two.elections.group, "b");
    assert_eq!(two.warnings, ["--group is given more than once: it is b, and not a"]);
    for once in [&["b"][..], &["b", "b"], &[]] {
        assert_eq!(config(once).warnings, Vec::<String>::new());
    }
}

#[test]
fn of_one_property_the_last_counts_under_one_name() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("p");
    std::fs::write(&file, "\u{feff}sasl.mechanism = PLAIN\r\n\n# a comment\nlinger.ms=1\nsasl.password= a=b \n")
        .unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let file = file.to_str().unwrap();
    let properties = |variables: &[(&str, &str)], arguments: &[&str]| {
        let line: Vec<&str> = arguments.iter().chain(&["-g", "b", "-b", "k:1", "--", "true"]).copied().collect();
        let config = validate(variables, &line).unwrap();
        (config.client.properties.0, config.warnings)
    };
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let (of_file, warnings) = properties(&[], &["--properties", file]);
    let login = [pair("sasl.mechanisms", "PLAIN"), pair("queue.buffering.max.ms", "1"), pair("sasl.password", "a=b")];
    assert_eq!((of_file, warnings), (login.to_vec(), vec![]));
    // -X over the file; the command line's file over the environment's property.
    let environment = [("NELI_RUN_PROPERTY", "queue.buffering.max.ms=2\ntopic.request.timeout.ms=5\n")];
    let (all, _) = properties(&environment, &["--properties", file, "-X", "topic.request.timeout.ms=7"]);
    let all: Vec<_> = all.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let expected = [
        ("sasl.mechanisms", "PLAIN"),
        ("queue.buffering.max.ms", "1"),
        ("sasl.password", "a=b"),
        ("request.timeout.ms", "7"),
    ];
    assert_eq!(all, expected);
}

#[test]
fn a_secret_where_others_can_read_it_is_warned_of() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("p");
    let warnings_at = |mode: u32, content: &str, arguments: &[&str]| {
        std::fs::write(&file, content).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let file = file.to_str().unwrap();
        let line = [&["-g", "b", "-b", "k:1", "--properties", file][..], arguments, &["--", "true"]].concat();
        validate(&[], &line).unwrap().warnings
    };
    assert_eq!(warnings_at(0o644, "client.id=a", &[]), [""; 0]);
    for mode in [0o600, 0o400, 0o640, 0o700] {
        assert_eq!(warnings_at(mode, "sasl.password=hunter2", &[]), [""; 0]);
    }
    for mode in [0o644, 0o604] {
        let [warning] = warnings_at(mode, "sasl.password=hunter2", &[]).try_into().unwrap();
        assert!(warning.contains("holds a secret, and every user of this machine may read it"), "{warning}");
        assert!(warning.contains(&format!("its mode is {mode:04o}")) && warning.ends_with("(chmod o-r)"), "{warning}");
        assert!(warning.contains(file.to_str().unwrap()) && !warning.contains("hunter2"), "{warning}");
    }
    let [warning] = warnings_at(0o600, "", &["-X", "sasl.password=hunter2"]).try_into().unwrap();
    assert!(warning.starts_with("--property sasl.password: ") && !warning.contains("hunter2"), "{warning}");
}

/// Files for other programs have quotes there; librdkafka takes them as part of the value, and the login fails.
#[test]
fn quotes_around_the_value_of_a_property_are_warned_of() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("p");
    let lines = "sasl.username='me'\nsasl.password=\"hunter2\"\nclient.id=\"a\nssl.key.password=\"\n";
    std::fs::write(&file, lines).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let file = file.to_str().unwrap();
    let config = validate(&[], &["-g", "b", "-b", "k:1", "--properties", file, "--", "true"]).unwrap();
    let why = "the quotes around the value are part of it; leave them out if they are not meant";
    let expected = ["line 1: sasl.username", "line 2: sasl.password"].map(|at| format!("{file} {at}: {why}"));
    assert_eq!(config.warnings, expected);
    let config = validate(&[("NELI_RUN_PROPERTY", "client.id='a'")], &["-g", "b", "-b", "k:1", "--", "true"]).unwrap();
    assert_eq!(config.warnings, [format!("NELI_RUN_PROPERTY client.id: {why}")]);
}

#[test]
fn a_secret_is_not_in_what_a_developer_prints() {
    let config = validate(&[], &["-g", "b", "-b", "k:1", "-X", "sasl.password=hunter2", "--", "true"]).unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn roles_restart_their_jobs_by_default() {
    let config = |line: &str| {
        let arguments: Vec<&str> =
            "-g b -b k:1".split(' ').chain(line.split_whitespace()).chain(["--", "true"]).collect();
        validate(&[], &arguments).unwrap()
    };
    let three = config("--roles 3");
    assert_eq!((three.job.restart.restart, three.elections.roles), (Restart::Always, 0..3));
    assert_eq!(three.roles.map(|roles| (roles.are_spread, roles.most)), Some((true, None)));
    assert_eq!(config("--roles 3 --restart no").job.restart.restart, Restart::No);
    let named = config("--roles ingest,bill --spread no --max-roles 1 --priority 1");
    assert_eq!(named.elections.names.to_vec(), ["ingest", "bill"]);
    assert_eq!(named.roles.map(|roles| (roles.are_spread, roles.most)), Some((false, Some(1))));
}

/// Every schedule and window that is taken is taken without `--once-retention`.
#[test]
fn unless_given_the_retention_is_long_enough_for_the_longest_window() {
    let retention = |windows: &[&str]| {
        let line: Vec<&str> =
            ["-g", "b", "-b", "k:9092"].iter().chain(windows).copied().chain(["--", "true"]).collect();
        validate(&[], &line).map(|config| config.once.unwrap().retention.as_secs() / (24 * 60 * 60))
    };
    for (windows, days) in [
        (&["--once", "k"][..], 90),
        (&["--window", "45d"], 90),
        (&["--window", "46d"], 92),
        (&["--window", "365d"], 730),
        (&["--schedule", "30 2 * * *"], 90),
        (&["--schedule", "0 0 1 */3 *"], 2 * 92),
        (&["--schedule", "@yearly"], 2 * 366),
        (&["--window", "46d", "--once-retention", "47d"], 47),
    ] {
        assert_eq!(retention(windows).unwrap(), days, "{windows:?}");
    }
    let refused = retention(&["--schedule", "0 0 0 1 1 * */11"]).unwrap_err().to_string();
    let why = "no --once-retention, which is at most 3650d, is more than its longest window, 401";
    assert!(refused.starts_with(&format!("--schedule '0 0 0 1 1 * */11': {why}")), "{refused}");
}

#[test]
fn without_real_time_scheduling_the_guard_kills_earlier() {
    let widened = |line: &[&str], quota: Option<u64>| {
        let line: Vec<&str> = ["-g", "b", "-b", "k:9092"].iter().chain(line).copied().chain(["--", "true"]).collect();
        let config = validate(&[], &line).unwrap();
        let quota = quota.map(|period| ("/sys/fs/cgroup/cpu.max".into(), Duration::from_millis(period)));
        let widened = config.with_wider_kill_margin(quota.as_ref()).map_err(|refused| refused.to_string());
        widened.map(|(timings, warning)| (timings.kill_margin.as_millis(), usize::from(warning.is_some())))
    };
    // Without a known delay of the guard, a short lease gets as wide a margin as it can, with a warning.
    for (lease, margin, warnings) in [("20s", 400, 0), ("5s", 300, 0), ("667ms", 300, 0), ("400ms", 180, 1)] {
        assert_eq!(widened(&["--lease", lease], None), Ok((margin, warnings)), "{lease}");
    }
    let hurried = ["--lease", "900ms", "--heartbeat-interval", "300ms", "--fence-warning", "450ms"];
    assert_eq!(widened(&hurried, None), Ok((60, 1)));
    // Three periods of a quota, which is a known delay.
    for (lease, period, margin) in [("20s", 100, 400), ("5s", 100, 300), ("5s", 10, 300), ("20s", 1_000, 3_000)] {
        assert_eq!(widened(&["--lease", lease], Some(period)), Ok((margin, 1)), "{lease}");
    }
    for (line, period) in [(&["--lease", "600ms"] as &[&str], 100), (&["--lease", "5s"], 1_000), (&hurried, 100)] {
        let refused = widened(line, Some(period)).unwrap_err();
        assert!(refused.contains(&line[..2].join(" ")) && refused.contains("/sys/fs/cgroup/cpu.max"), "{refused}");
    }
}

#[test]
fn a_host_and_a_port() {
    let parsed = |text| host_and_port(text).map(|(host, port)| format!("{host} {port}"));
    for (text, expected) in [
        ("127.0.0.1:9464", "127.0.0.1 9464"),
        ("[::1]:80", "::1 80"),
        (":0", " 0"),
        ("db1.example:65535", "db1.example 65535"),
    ] {
        assert_eq!(parsed(text).as_deref(), Some(expected), "{text}");
    }
    for text in
        ["", "9464", ":", "localhost", "::1:80", "[::1]", "[x]:80", "a b:80", "a:65536", "a:-1", "a:+1", "http://a:80"]
    {
        assert_eq!(parsed(text), None, "{text}");
    }
}

/// The time after `--preempt` may be left out.
#[test]
fn preempt_takes_a_time_or_none() {
    let preempts = |variables: &[(&str, &str)], options: &[&str]| {
        let line = [&["-g", "g", "-b", "k:9092", "--priority", "1"], options, &["--", "true"]].concat();
        validate(variables, &line).unwrap().timings.preempt_after.map(|after| after.as_secs())
    };
    assert_eq!(preempts(&[], &["--preempt"]), Some(60));
    assert_eq!(preempts(&[], &["--preempt", "5s"]), Some(5));
    assert_eq!(preempts(&[], &["--preempt=2m"]), Some(120));
    assert_eq!(preempts(&[("NELI_RUN_PREEMPT", "5s")], &[]), Some(5));
    assert_eq!(preempts(&[("NELI_RUN_PREEMPT", "true")], &[]), Some(60));
    assert_eq!(preempts(&[("NELI_RUN_PREEMPT", "0")], &[]), None);
}

/// The job gets the variables of some options. It would find another election by one that has no effect.
#[test]
fn a_variable_that_an_option_overrides_is_not_handed_on() {
    let options = [("GROUP", "-g"), ("TOPIC", "-t"), ("BROKERS", "-b"), ("PROPERTIES", "--properties")];
    let names = options.map(|(name, _)| format!("NELI_RUN_{name}"));
    let values = ["a", "b", "k:1", "/dev/null"];
    let line: Vec<&str> = options.iter().zip(values).flat_map(|((_, option), value)| [*option, value]).collect();
    for (set, expected) in [(values, &names[..]), (["c", "d", "k:2", "/dev/zero"], &[])] {
        let variables: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(set).collect();
        let mut handed_on = validate(&variables, &[&line[..], &["--", "true"]].concat()).unwrap().handed_on;
        handed_on.sort();
        let mut expected: Vec<OsString> = expected.iter().map(OsString::from).collect();
        expected.sort();
        assert_eq!(handed_on, expected);
    }
}
