//! Invalid command lines. Each is refused before the candidate joins the group, with one line that names the option, the value and the
//! bound.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

mod process;
mod properties;
mod values;

/// The arguments that a run requires, so that only the tested argument is wrong.
const WHOLE: &[&str] = &["--group", "g", "--brokers", "localhost:9092", "--", "true"];

#[test]
fn each_missing_argument_is_named() {
    refused("", "nothing to run; try: neli-run --embedded --group NAME -- COMMAND, or neli-run --help");
    refused("-- true", "--group is required: the election's name, the same on every machine");
    refused(
        "-g g -- true",
        "--brokers or --embedded is required: Kafka's addresses (--brokers HOST:PORT,..), or a trial on this machine \
         alone (--embedded)",
    );
    let command = "COMMAND is required; it comes after --, as in: neli-run --group .. -- COMMAND";
    refused("-g g -b a:1", command);
    refused("-g g -b a:1 --", command);
    refused("--lease", "--lease: needs a value: DURATION");
    refused("--group --embedded -- true", "--group: needs a value: NAME");
    refused("completions", "SHELL is required: bash, fish or zsh");
    refused("watch --embedded", "--group is required: the election's name, the same on every machine");
    refused("status --embedded", "--group is required: the election's name, the same on every machine");
}

#[test]
fn a_misplaced_argument_gets_a_hint() {
    refused("-g g sleep 1", "sleep: COMMAND comes after --, as in: neli-run --group .. -- sleep");
    refused("-g g -b a:1 watch", "watch: a subcommand comes first, as in: neli-run watch --group ..");
    refused("watch -g g now", "now: no such argument; neli-run watch --help lists them");
    refused("wacth -g g", "wacth: no such subcommand; did you mean watch?");
    refused("help wacth", "wacth: no such subcommand; did you mean watch?");
    for short in ["run", "exec", "nan"] {
        let line = match short {
            "nan" => "nan: no such subcommand; did you mean man?".to_owned(),
            _ => format!("{short}: COMMAND comes after --, as in: neli-run --group .. -- {short}"),
        };
        refused(&format!("{short} -g g"), &line);
    }
    let quotes = "--schedule 30 2: an expression with spaces needs quotes, as in: --schedule '30 2 * * *'";
    for line in ["-g g --schedule 30 2 * * * -- true", "-g g --schedule=30 2 * * * -- true"] {
        refused(line, quotes);
    }
    refused("doctor -g g --schedule 30 2 * * * -- true", quotes);
    refused("-g g --schedule @daily sleep 1", "sleep: COMMAND comes after --, as in: neli-run --group .. -- sleep");
    refused("help billing", "billing: no such subcommand; neli-run --help lists them");
    refused("--gruop g -- true", "--gruop: no such option; did you mean --group?");
    refused("-g g --broker a:1 -- true", "--broker: no such option; did you mean --brokers?");
    refused("watch -g g --lease 5s", "--lease: no such option; neli-run watch --help lists them");
    refused("-g g -X a=b sleep 1", "sleep: COMMAND comes after --, as in: neli-run --group .. -- sleep");
    refused("status -g g -b a:1 --watch", "--watch: no such option; watch is a subcommand: neli-run watch --help");
    refused("-group=g -b a:1 -- true", "-group: a long option begins with two dashes: --group");
    refused("-g g -topics -- true", "-topics: a long option begins with two dashes: --topic");
    refused("-g g --bootstrap-server a:1 -- true", "--bootstrap-server: no such option; did you mean --brokers?");
    refused("-g g --timeout 5s -- true", "--timeout: no such option; neli-run --help lists them");
    refused("-g g --stop-time 5s -- true", "--stop-time: no such option; did you mean --stop-timeout?");
    refused("start -g g -- true", "start: no such subcommand; neli-run --help lists them");
    refused(
        "-g g -b a:1 --stop-timeout 5M -- true",
        "--stop-timeout 5M: must be a duration with its unit, such as 500ms, 5s or 2m",
    );
    refused("-g g -Z", "-Z: no such option; neli-run --help lists them");
    refused("-g g --embedded=1 -- true", "--embedded 1: takes no value");
    refused("status -g g now", "now: no such argument; neli-run status --help lists them");
    refused("status -g g -b a:1 --timeout 5", "--timeout 5: must be a duration with its unit, such as 500ms, 5s or 2m");
    refused("status -g g -b a:1 --timeout 0", "--timeout 0: must be more than 0, and at most 365d");
    refused("assert", "--epoch is required outside a job: NELI_EPOCH is not set");
    refused("assert --epoch -1", "--epoch -1: must not be negative");
    refused("status -g g --ttl 5s", "--ttl: no such option; neli-run status --help lists them");
    refused("-g g -b a:1 --list", "--list: no such option; list is a subcommand: neli-run list --help");
    refused("-g g -b a:1 --ttl 5s -- true", "--ttl: no such option; did you mean --lease?");
    refused("assert --epoch x", "--epoch x: must be a term (0 or more), as in NELI_EPOCH");
    refused("assert --epoch 0 --min-left 1", "--min-left 1: must be a duration with its unit, such as 500ms, 5s or 2m");
    refused("assert --epoch 0", "--group is required: the election's name, the same on every machine");
    refused(
        "resign -g g -b a:1 --reason=a\tb",
        "--reason 'a\\tb': must be at most 400 bytes, without control characters",
    );
    refused("resign -g g -b a:1 --yes", "--yes: no such option; neli-run resign --help lists them");
    refused(
        "history -g g -b a:1 --since yesterday",
        "--since yesterday: must be a duration with its unit, such as 500ms, 5s or 2m",
    );
    refused("list now", "now: no such argument; neli-run list --help lists them");
    refused(
        "doctor -g g",
        "--brokers or --embedded is required: Kafka's addresses (--brokers HOST:PORT,..), or a trial on this machine alone (--embedded)",
    );
    refused("doctor -b a:1 --print-topic", "--group is required with --print-topic: the topic is named after it");
    refused(
        "doctor -g g -b a:1 --print-topic --json",
        "--print-topic: can't be combined with --json: it prints commands for a shell",
    );
    refused("doctor -b a:1 --lease 1ms", "--lease 1ms: must be 300ms to 60s, in whole milliseconds");
    refused("completions ksh", "ksh: must be bash, fish or zsh");
    refused(
        "man nothing",
        "nothing: must be one of status, list, watch, history, observe, resign, end, forget, assert, doctor, broker, completions, man",
    );
    // An option that is not implemented yet is refused.
    refused("-g g --rolls 2 -- true", "--rolls: no such option; did you mean --roles?");
}

#[test]
fn the_version_describes_the_build() {
    let text = String::from_utf8(run(&["--version"]).stdout).unwrap();
    let (_, librdkafka) = rdkafka::util::get_rdkafka_version();
    assert!(text.starts_with(concat!("neli-run ", env!("CARGO_PKG_VERSION"), " (features: ")), "{text}");
    assert!(text.ends_with(&format!("; librdkafka {librdkafka})\n")), "{text}");
    for (feature, built) in
        [("ssl", cfg!(feature = "ssl")), ("gssapi", cfg!(feature = "gssapi")), ("oidc", cfg!(feature = "oidc"))]
    {
        assert_eq!(text.split([' ', ';']).any(|word| word == feature), built, "{text}");
    }
}

/// It may be why an option is missing.
#[test]
fn a_misspelled_variable_is_told_before_a_refusal() {
    let output = output_of(command(&["-g", "g", "--", "true"]).env("NELI_RUN_BROKER", "a:1"));
    let said = String::from_utf8(output.stderr).unwrap();
    let [warning, refusal] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert!(warning.ends_with("it has no effect; did you mean NELI_RUN_BROKERS?"), "{warning}");
    assert!(refusal.starts_with("neli-run: --brokers or --embedded is required: "), "{refusal}");
}

#[test]
fn a_variable_is_named_when_it_is_wrong_and_loses_against_its_option() {
    let refused = |variables: &[(&str, &str)], arguments: &[&str], line: &str| {
        let output = output_of(command(arguments).envs(variables.iter().copied()));
        assert_eq!(one_line(&output), format!("neli-run: {line}"));
        assert_eq!(output.status.code(), Some(125));
    };
    refused(&[("NELI_RUN_LEASE", "200ms")], WHOLE, "NELI_RUN_LEASE=200ms: must be 300ms to 60s, in whole milliseconds");
    refused(&[("NELI_RUN_NO_CREATE_TOPIC", "yes")], WHOLE, "NELI_RUN_NO_CREATE_TOPIC=yes: must be 1, true, 0 or false");
    refused(
        &[("NELI_RUN_LEASE", "1s"), ("NELI_RUN_HEARTBEAT_INTERVAL", "500ms")],
        WHOLE,
        "NELI_RUN_HEARTBEAT_INTERVAL=500ms: must be 10ms to a third of the lease, with NELI_RUN_LEASE=1s",
    );
    refused(
        &[("NELI_RUN_GROUP", "g"), ("NELI_RUN_EMBEDDED", "1"), ("NELI_RUN_BROKERS", "a:1")],
        &["--", "true"],
        "NELI_RUN_BROKERS=a:1: can't be combined with NELI_RUN_EMBEDDED",
    );
    let log = "NELI_RUN_LOG_FILE=/no/such/log: can't be opened: no such file or directory";
    refused(&[("NELI_RUN_LOG_FILE", "/no/such/log")], WHOLE, log);
    // An empty variable counts as unset. The command line has precedence over an option's own variable, and over that of a conflicting
    // option.
    refused(&[("NELI_RUN_LEASE", "")], &whole(&["--wait", "x"]), WAIT);
    refused(&[("NELI_RUN_LEASE", "1ms")], &whole(&["--lease", "5s", "--wait", "x"]), WAIT);
    refused(&[("NELI_RUN_EMBEDDED", "1")], &whole(&["--wait", "x"]), WAIT);
    refused(&[("NELI_RUN_QUIET", "1")], &whole(&["-v", "--wait", "x"]), WAIT);
}

const WAIT: &str = "--wait x: must be a duration with its unit, such as 500ms, 5s or 2m";

#[test]
fn help_is_an_option_and_a_subcommand() {
    for (subcommand, option) in [(&["help"][..], &["--help"][..]), (&["help", "status"], &["status", "--help"])] {
        let [subcommand, option] = [subcommand, option].map(run);
        assert_eq!((subcommand.status.code(), subcommand.stdout), (Some(0), option.stdout));
    }
}

#[test]
fn a_quiet_doctor_shows_only_problems_and_counts_them() {
    let doctor = |quiet: &[&str]| {
        let output = run(&[&["doctor", "-b", "127.0.0.1:9", "--timeout", "1s"], quiet].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        let (findings, summary) = text.trim_end().rsplit_once('\n').unwrap();
        let lines: Vec<String> = findings.lines().filter(|line| !line.starts_with(' ')).map(str::to_owned).collect();
        (lines, summary.to_owned())
    };
    let ((all, summary), (problems, quiet_summary)) = (doctor(&[]), doctor(&["-q"]));
    let count = |outcome: &str| all.iter().filter(|line| line.starts_with(outcome)).count();
    let (fail, warn, skipped) = (count("FAIL"), count("WARN"), count("--"));
    assert!(fail > 0 && fail + warn < all.len(), "{all:?}");
    assert_eq!(summary, format!("{fail} FAIL, {warn} WARN, {skipped} not checked, {} checks", all.len()));
    assert_eq!(quiet_summary, summary);
    assert_eq!(problems.len(), fail + warn, "{problems:?}");
    assert!(problems.iter().all(|line| line.starts_with("FAIL") || line.starts_with("WARN")), "{problems:?}");
}

/// Who types `-h` in a script's editor looks for the statuses.
#[test]
fn the_short_help_has_the_exit_statuses() {
    for subcommand in ["status", "list", "history", "resign", "end", "forget", "assert", "doctor", "watch"] {
        for flag in ["-h", "--help"] {
            let text = String::from_utf8(run(&[subcommand, flag]).stdout).unwrap();
            assert_eq!(text.matches("Exit status: 0").count(), 1, "{subcommand} {flag}: {text}");
        }
    }
}

/// The modes in which `neli-run` starts itself read a sealed file in memory, which a user can't provide.
#[test]
fn a_hidden_mode_cannot_be_typed() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("place");
    let place = place.to_str().unwrap();
    for (arguments, line) in [
        (&["broker", place, "100"][..], format!("{place}: no such argument; neli-run broker --help lists them")),
        (&["broker", "0"], "0: no such argument; neli-run broker --help lists them".to_owned()),
        (&["release", "0"], "release: COMMAND comes after --, as in: neli-run --group .. -- release".to_owned()),
        (&["guard", "0"], "guard: COMMAND comes after --, as in: neli-run --group .. -- guard".to_owned()),
    ] {
        let output = run(arguments);
        assert_eq!(one_line(&output), format!("neli-run: {line}"), "{arguments:?}");
        assert_eq!(output.status.code(), Some(125), "{arguments:?}");
    }
    assert!(!Path::new(place).exists());
}

/// As with coreutils, a write error is an error, but a closed pipe is not.
#[test]
fn a_full_stdout_is_an_error() {
    for arguments in [
        &["--help"][..],
        &["-h"],
        &["status", "--help"],
        &["watch", "--help"],
        &["--version"],
        &["man"],
        &["completions", "bash"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = output_of(command(arguments).stdout(full));
        assert_eq!(one_line(&output), "neli-run: stdout: no space left on device", "{arguments:?}");
        assert_eq!(output.status.code(), Some(125), "{arguments:?}");

        let (read, write) = std::io::pipe().unwrap();
        drop(read);
        let output = output_of(command(arguments).stdout(write));
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()), "{arguments:?}");
    }
}

#[test]
fn help_and_version_are_printed_to_be_read() {
    for (arguments, begin) in [
        (&["--help"][..], "Runs COMMAND on at most one machine"),
        (&["-h"], "Run a command on at most one machine at a time"),
        (&["--version"], "neli-run "),
        (&["status", "--help"], "Show who leads an election"),
        (&["watch", "--help"], "Show an election live"),
        (&["man"], "'\\\" t\n.TH NELI-RUN 1"),
        (&["man", "watch"], ".TH NELI-RUN-WATCH 1"),
        (&["completions", "fish"], "# Print an optspec"),
    ] {
        let output = run(arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with(begin) && output.stderr.is_empty(), "{arguments:?}: {text}");
        assert_eq!(output.status.code(), Some(0));
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or_default();
        assert!(!arguments.contains(&"--help") || widest <= 80, "{arguments:?}: {widest} columns");
    }
}

/// Who asks for help first gets the options that most lines use, and where the others are.
#[test]
fn the_short_help_fits_on_a_screen() {
    let text = String::from_utf8(run(&["-h"]).stdout).unwrap();
    assert!(text.lines().count() <= 50, "{text}");
    let all = String::from_utf8(run(&["--help"]).stdout).unwrap();
    for (option, is_common) in [("--group", true), ("--listen", true), ("--patience", false), ("--overlap", false)] {
        assert_eq!(text.contains(option), is_common, "{option}: {text}");
        assert!(all.contains(option), "{option}: {all}");
    }
    assert!(text.contains("All options: neli-run --help"), "{text}");
}

/// A subcommand's help has exactly the options that the subcommand uses.
#[test]
fn the_short_help_of_each_subcommand_is_its_own() {
    let help = |words: &[&str]| String::from_utf8(run(&[words, &["-h"]].concat()).stdout).unwrap();
    for subcommand in
        ["", "status", "list", "watch", "history", "resign", "end", "forget", "assert", "doctor", "broker"]
    {
        let words: &[&str] = if subcommand.is_empty() { &[] } else { &[subcommand] };
        let text = help(words);
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or_default();
        assert!(widest <= 80, "{subcommand}: {widest} columns");
        assert_eq!(text.contains("made if missing"), subcommand == "doctor", "{subcommand}: {text}");
        let needs_group = ["status", "watch", "history", "resign", "end"].contains(&subcommand);
        assert!(!needs_group || text.contains(&format!("Usage: neli-run {subcommand} --group <NAME> ")), "{text}");
    }
    assert!(!help(&["list"]).contains("(required)") && !help(&["doctor"]).contains("(required)"));
}

/// Asserts that the arguments (split at spaces) are refused with this line and status 125.
fn refused(arguments: &str, line: &str) {
    let arguments: Vec<&str> = arguments.split(' ').filter(|argument| !argument.is_empty()).collect();
    let output = run(&arguments);
    assert_eq!(one_line(&output), format!("neli-run: {line}"), "{arguments:?}");
    assert_eq!(output.status.code(), Some(125), "{arguments:?}");
}

/// Asserts that the option's value is refused when all other arguments are right.
fn refused_value(option: &str, value: &str, why: &str) {
    let output = run(&whole(&[&format!("--{option}={value}")]));
    let line = one_line(&output);
    assert!(line.starts_with(&format!("neli-run: --{option} ")) && line.ends_with(&format!(": {why}")), "{line}");
    assert_eq!(output.status.code(), Some(125));
}

/// A complete command line with these arguments first. If an option is given twice, the last one counts, so `--group` and `--brokers`
/// of the tested arguments have precedence.
fn whole<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let given = |option: &str| arguments.iter().any(|argument| argument.starts_with(option));
    let mut whole = arguments.to_vec();
    if !given("--group") {
        whole.extend(["--group", "g"]);
    }
    if !given("--brokers") {
        whole.extend(["--brokers", "localhost:9092"]);
    }
    whole.extend(["--", "true"]);
    whole
}

fn run(arguments: &[&str]) -> Output {
    output_of(&mut command(arguments))
}

/// The output of a command. A command line that should be refused and is not would run until it is killed, so the wait has a limit.
fn output_of(command: &mut Command) -> Output {
    harness::process::output_of(command.spawn().unwrap())
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_neli-run"));
    command.args(arguments).current_dir(Path::new("/"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("NELI_RUN_")) {
        command.env_remove(name);
    }
    command
}

/// The line on stderr. The output must be only this line.
fn one_line(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(output.stdout.is_empty(), "{text}");
    let line = text.strip_suffix('\n').unwrap_or_else(|| panic!("no line: {text:?}, {:?}", output.status));
    assert!(!line.contains('\n'), "{text}");
    line.to_owned()
}
