//! The examples are valid: the program has their options, and the durations in their comments are right.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use neli_run::cli::{self, validate};
use neli_run::config::Config;

const UNIT: &str = include_str!("../examples/neli-run.service");
const HARDENING: &str = include_str!("../examples/hardening.conf");
const TEMPLATE: &str = include_str!("../packaging/neli-run@.service");
const DEPLOYMENT: &str = include_str!("../examples/kubernetes.yaml");
const COMPOSE: &str = include_str!("../examples/compose.yaml");
const CRONTAB: &str = include_str!("../examples/crontab");
const ALERTS: [&str; 2] =
    [include_str!("../examples/monitoring/alerts.yaml"), include_str!("../examples/monitoring/observe.alerts.yaml")];

/// Parses and validates a command line. The example's COMMAND is not installed on this machine, so `true` replaces it.
fn prove(words: &[String], variables: &[(&str, &str)]) -> Config {
    let (options, command) = words.split_at(words.iter().position(|word| word == "--").unwrap());
    assert_eq!(command.len(), 2, "{words:?}");
    let line = options.iter().map(String::as_str).chain(["--", "true"]);
    let arguments: Vec<OsString> = ["neli-run"].into_iter().chain(line).map(OsString::from).collect();
    let variables = [("PATH", "/bin:/usr/bin")].iter().chain(variables);
    let environment = variables.map(|(name, value)| (name.into(), value.into())).collect();
    let args = cli::parse(&arguments, environment).unwrap();
    assert_eq!(args.subcommand(), None, "{words:?} is no run");
    let config = validate::config(&args).unwrap();
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    config
}

/// A run that was stopped has not succeeded, also if its job ends with 0 when it is asked to stop.
#[test]
fn the_ping_of_the_page_on_cron_says_success_only_of_a_run_that_ended_by_itself() {
    const PAGE: &str = include_str!("../docs/cron.md");
    let line = PAGE.lines().find_map(|line| line.trim().strip_prefix("--on-exit '")?.split_once("' --")).unwrap().0;
    let programs = tempfile::tempdir().unwrap();
    let curl = programs.path().join("curl");
    fs::write(&curl, "#!/bin/sh\nfor word; do :; done\necho \"$word\"\n").unwrap();
    fs::set_permissions(&curl, Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.path().display(), std::env::var("PATH").unwrap());
    for (why, status, pinged) in
        [("exited", Some("0"), 0), ("exited", Some("3"), 3), ("exited", None, 255), ("stopped", Some("0"), 255)]
    {
        let mut hook = Command::new("sh");
        hook.args(["-c", line]).env("PATH", &path).env("CHECK_ID", "id").env("NELI_WHY", why).env_remove("NELI_EXIT");
        let output = hook.envs(status.map(|status| ("NELI_EXIT", status))).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("https://hc-ping.com/id/{pinged}\n"), "{output:?}");
    }
}

/// A migration must not run again after the default's 90 days.
#[test]
fn the_page_on_cron_keeps_the_key_of_a_migration() {
    const PAGE: &str = include_str!("../docs/cron.md");
    let (_, section) = PAGE.split_once("\n## Once for a key\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let words: Vec<String> = setting(section, "neli-run ").split(' ').map(str::to_owned).collect();
    assert!(prove(&words, &[]).once.unwrap().retention >= Duration::from_secs(3_650 * 24 * 60 * 60), "{words:?}");
    let (_, text) = section.rsplit_once("```").unwrap();
    assert!(text.contains("`--once-retention`"), "{text}");
}

/// The longest time of a stop whose processes all end by SIGKILL at once: the barrier, and the delivery of the release. A service manager
/// must wait this long without being asked.
fn longest_stop(config: &Config) -> Duration {
    config.job.stop.timeout + config.timings.lease
}

fn seconds(text: &str) -> Duration {
    Duration::from_secs(text.trim_end_matches('s').parse().unwrap())
}

/// The rest of the only line that begins with `name`.
fn setting<'a>(text: &'a str, name: &str) -> &'a str {
    let mut lines = text.lines().filter_map(|line| line.trim_start().strip_prefix(name));
    let value = lines.next().unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(lines.next(), None, "{name} twice");
    value.trim()
}

#[test]
fn the_unit_has_the_settings_that_the_program_needs() {
    let words: Vec<String> = setting(UNIT, "ExecStart=").split(' ').map(str::to_owned).collect();
    let config = prove(&words[1..], &[]);
    assert!(seconds(setting(UNIT, "TimeoutStopSec=")) > longest_stop(&config));
    for (name, value) in [
        ("Type=", "notify"),
        ("NotifyAccess=", "main"),
        ("KillMode=", "mixed"),
        ("SuccessExitStatus=", "143"),
        ("Delegate=", "yes"),
        ("Restart=", "always"),
        ("RestartSec=", "10s"),
        ("StartLimitIntervalSec=", "0"),
        // The guard needs these limits to kill in time as a user that is not root.
        ("LimitRTPRIO=", "2"),
        ("LimitMEMLOCK=", "infinity"),
    ] {
        assert_eq!(setting(UNIT, name), value, "{name}");
    }
    // A right that is taken and given back ends all candidates with 125: without another start nobody would run the job.
    assert!(!UNIT.contains("RestartPreventExitStatus"), "{UNIT}");
}

/// The package's template unit has the same settings as the example, except those that depend on the instance name.
#[test]
fn the_template_differs_from_the_example_only_in_the_command_line() {
    let settings = |unit: &'static str| -> Vec<&str> {
        let of_file = ["#", "Description=", "EnvironmentFile=", "ExecStart="];
        unit.lines().filter(|line| !line.is_empty() && !of_file.iter().any(|begin| line.starts_with(begin))).collect()
    };
    assert_eq!(settings(TEMPLATE), settings(UNIT));
    let line = setting(TEMPLATE, "ExecStart=").replace("%i", "billing");
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    assert_eq!((words[0].as_str(), words.last().unwrap().as_str()), ("/usr/bin/neli-run", "$COMMAND"));
    let config = prove(&words[1..], &[("NELI_RUN_BROKERS", "kafka:9092")]);
    assert!(seconds(setting(TEMPLATE, "TimeoutStopSec=")) > longest_stop(&config));
}

#[test]
fn each_line_of_the_crontab_is_for_the_next_window() {
    let lines: Vec<&str> = CRONTAB.lines().filter(|line| line.contains("/neli-run ")).collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        let (start, options) = line.split_once("/neli-run ").unwrap();
        // Otherwise cron mails a warning at each run: the user is not root, and cron delegates no control group.
        assert!(start.contains(" nightly setpriv --no-new-privs /"), "{line}");
        let words: Vec<String> = options.split(' ').map(str::to_owned).collect();
        assert!(words.iter().any(|word| word == "--window"), "{line}");
        prove(&words, &[("NELI_RUN_BROKERS", setting(CRONTAB, "NELI_RUN_BROKERS="))]);
    }
}

/// Whoever is called by an alert can do what it asks for: its commands are complete, and it names no event, which the default log never shows.
#[test]
fn the_action_of_an_alert_can_be_done() {
    let actions =
        ALERTS.iter().flat_map(|rules| rules.lines()).filter_map(|line| line.trim_start().strip_prefix("action: "));
    let mut commands = 0;
    for action in actions {
        let action = action.replace("{{ $labels.group }}", "billing").replace("{{ $labels.topic }}", "billing.neli");
        assert!(!action.contains('_'), "{action}");
        let Some((_, command)) = action.split_once("\"neli-run ") else { continue };
        let words = command.split(' ').take_while(|word| !["says", "shows", "verifies"].contains(word));
        let arguments: Vec<OsString> = ["neli-run"].into_iter().chain(words).map(OsString::from).collect();
        let args = cli::parse(&arguments, Vec::new()).unwrap();
        assert!(
            args.subcommand().is_some() && args.value("group").is_some() && args.value("brokers").is_some(),
            "{action}"
        );
        commands += 1;
    }
    assert_eq!(commands, 10);
}

/// The alert would never fire if it waited for longer than a lease may last.
#[test]
fn an_alert_about_a_lease_does_not_wait() {
    let (_, rule) = ALERTS[0].split_once("alert: NeliLeaseRunsOut\n").unwrap();
    let (rule, _) = rule.split_once("- alert: ").unwrap();
    assert!(!rule.contains("for: "), "{rule}");
}

#[test]
fn the_compose_file_has_the_settings_that_the_program_needs() {
    let words: Vec<String> = serde_json::from_str(setting(COMPOSE, "command: ")).unwrap();
    let config = prove(&words, &[("NELI_RUN_BROKERS", setting(COMPOSE, "NELI_RUN_BROKERS: "))]);
    let grace = COMPOSE.lines().filter_map(|line| line.trim_start().strip_prefix("stop_grace_period: "));
    assert!(grace.map(seconds).all(|grace| grace > longest_stop(&config)));
}

/// The settings below `environment:` of a service in the compose file.
fn environment_of(service: &str) -> HashMap<&'static str, &'static str> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let service = format!("  {service}:");
    let lines = COMPOSE.lines().skip_while(|line| **line != service).skip(1).take_while(|line| indent(line) > 2);
    let lines = lines.skip_while(|line| *line != "    environment:").skip(1).take_while(|line| indent(line) > 4);
    lines.filter_map(|line| line.trim().split_once(": ").filter(|_| !line.trim().starts_with('#'))).collect()
}

/// A broker advertises a name that the other containers can resolve. The image's default is localhost, and the image ignores all its
/// defaults as soon as one variable is set.
#[test]
fn the_compose_files_kafka_advertises_its_service_name() {
    let (kafka, billing) = (environment_of("kafka"), environment_of("billing"));
    assert_eq!(kafka["KAFKA_ADVERTISED_LISTENERS"], format!("PLAINTEXT://{}", billing["NELI_RUN_BROKERS"]));
    assert_eq!(billing["NELI_RUN_BROKERS"], "kafka:9092");
    // A broker in KRaft mode requires these settings; the values are those for a single broker.
    assert_eq!(kafka["KAFKA_CONTROLLER_QUORUM_VOTERS"], format!("{}@kafka:9093", kafka["KAFKA_NODE_ID"]));
    let listeners = format!("PLAINTEXT://:9092,{}://:9093", kafka["KAFKA_CONTROLLER_LISTENER_NAMES"]);
    assert_eq!(kafka["KAFKA_LISTENERS"], listeners);
    assert_eq!(kafka["KAFKA_PROCESS_ROLES"], "broker,controller");
    for name in ["PLAINTEXT", "CONTROLLER"] {
        assert!(
            kafka["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(',').any(|pair| pair == format!("{name}:PLAINTEXT"))
        );
    }
    assert_eq!(kafka["KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR"], "1");
}

/// Checks the units with `systemd-analyze`. Without systemd it writes a line directly to stderr, which libtest does not capture.
#[test]
fn systemd_accepts_the_unit() {
    let directory = tempfile::tempdir().unwrap();
    let unit = directory.path().join("billing.service");
    // systemd checks that the program exists.
    let text = UNIT.replace("/usr/local/bin/neli-run", env!("CARGO_BIN_EXE_neli-run"));
    fs::write(&unit, &text).unwrap();
    let verify = |unit: &Path| Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(unit).output();
    let answer = match verify(&unit) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let line = "examples: systemd-analyze is not installed, so examples/neli-run.service was not checked";
            let _ = writeln!(std::io::stderr(), "{line}");
            return;
        }
        answer => answer.unwrap(),
    };
    let output = format!("{}{}", String::from_utf8_lossy(&answer.stdout), String::from_utf8_lossy(&answer.stderr));
    // It also reports on the machine's own units.
    let ours =
        |output: &str| output.lines().filter(|line| line.contains("billing")).map(str::to_owned).collect::<Vec<_>>();
    assert!(answer.status.success() && ours(&output).is_empty(), "{output}");

    fs::write(&unit, format!("{text}\n{HARDENING}")).unwrap();
    let answer = verify(&unit).unwrap();
    let output = String::from_utf8(answer.stderr).unwrap();
    assert!(answer.status.success() && ours(&output).is_empty(), "{output}");

    fs::write(&unit, text.replace("KillMode=", "KillMood=")).unwrap();
    let output = String::from_utf8(verify(&unit).unwrap().stderr).unwrap();
    assert!(
        ours(&output).iter().any(|line| line.contains("KillMood")),
        "systemd-analyze notices a wrong setting: {output}"
    );
}

#[test]
fn the_deployment_has_the_settings_that_the_program_needs() {
    let words: Vec<String> = serde_json::from_str(setting(DEPLOYMENT, "args: ")).unwrap();
    let value = |name: &str| {
        let rest = setting(DEPLOYMENT, &format!("- {{name: {name}, value: \""));
        rest.strip_suffix("\"}").unwrap().to_owned()
    };
    let (brokers, group) = (value("NELI_RUN_BROKERS"), value("NELI_RUN_GROUP"));
    let config = prove(&words, &[("NELI_RUN_BROKERS", &brokers), ("NELI_RUN_GROUP", &group)]);
    assert_eq!(config.elections.group, "billing");
    let port = format!("- {{name: http, containerPort: {}}}", config.listen.as_ref().unwrap().port);
    assert_eq!(setting(DEPLOYMENT, &port), "");
    for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
        assert!(setting(DEPLOYMENT, &format!("{probe}: ")).contains(&format!("path: {path}, port: http}}")), "{probe}");
    }
    assert!(seconds(setting(DEPLOYMENT, "terminationGracePeriodSeconds: ")) > longest_stop(&config));
}
