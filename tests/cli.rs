//! Bad input: each is refused before anything is joined, with one line that names the option, the value and the bound.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What a run needs, so that the case alone is wrong.
const WHOLE: &[&str] = &["--group", "g", "--brokers", "localhost:9092", "--", "true"];

#[test]
fn what_is_missing_is_named() {
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
    refused("completions", "SHELL is required");
    refused("watch --embedded", "--group is required: the election's name, the same on every machine");
}

#[test]
fn what_stands_in_the_wrong_place_is_put_right() {
    refused("-g g sleep 1", "sleep: COMMAND comes after --, as in: neli-run --group .. -- sleep");
    refused("-g g -b a:1 watch", "watch: a subcommand comes first, as in: neli-run watch --group ..");
    refused("watch -g g now", "now: watch takes no such argument; neli-run watch --help lists them");
    refused("wacth -g g", "wacth: no such subcommand; did you mean watch?");
    refused("--gruop g -- true", "--gruop: no such option; did you mean --group?");
    refused("watch -g g --lease 5s", "--lease: watch has no such option; neli-run watch --help lists them");
    refused("-g g -X a=b sleep 1", "sleep: COMMAND comes after --, as in: neli-run --group .. -- sleep");
    refused("-g g -Z", "-Z: no such option; neli-run --help lists them");
    refused("-g g --embedded=1 -- true", "--embedded 1: takes no value");
    refused("completions ksh", "ksh: must be bash, fish or zsh");
    // Later options are not accepted before they do something.
    refused("-g g --roles 2 -- true", "--roles: no such option; did you mean --brokers?");
}

#[test]
fn a_name_has_bounds() {
    refused_value("group", "", "must not be blank");
    refused_value("group", " ", "must not be blank");
    refused_value("group", "a\nb", "must have no control characters");
    let long = "g".repeat(250);
    refused_value("group", &long, "must be at most 249 bytes, and has 250");
    let topic = "1 to 249 of a-z A-Z 0-9 . _ -, and neither . nor ..";
    refused_value("group", "a b", &format!("the topic 'a b.neli' would not be {topic}; give another by --topic"));
    for wrong in ["", ".", "..", "a b", "ä", "a/b", &"t".repeat(250)] {
        refused_value("topic", wrong, &format!("must be {topic}"));
    }
    refused_value("name", "", "must not be blank");
    refused_value("name", "\u{1b}[2J", "must have no control characters");
    refused_value("name", &"n".repeat(256), "must be at most 255 bytes, and has 256");
}

#[test]
fn a_duration_has_a_unit_and_bounds() {
    let duration = "must be a duration with its unit, such as 500ms, 5s or 2m";
    for option in [
        "lease",
        "heartbeat-interval",
        "fence-warning",
        "patience",
        "claim-delay",
        "wait",
        "stop-timeout",
        "restart-delay",
        "health-interval",
        "health-timeout",
        "health-start",
    ] {
        for wrong in ["5", "soon", "", "-5s", "5 parsecs", "99999999999999999999s", "1.5.s"] {
            refused_value(option, wrong, duration);
        }
    }
    refused("-g g -b a:1 --wait -5s -- true", "--wait -5s: must not be negative");
    for wrong in ["0", "200ms", "299999us", "60001ms", "2m"] {
        refused_value("lease", wrong, "must be 300ms to 60s");
    }
    refused_value("lease", "300001us", "must be whole milliseconds");
    for option in
        ["patience", "claim-delay", "wait", "stop-timeout", "restart-delay", "health-interval", "health-start"]
    {
        refused_value(option, "366days", "must be 0 to 365d");
    }
}

#[test]
fn a_health_command_is_given_time_and_a_chance() {
    refused_value("health-interval", "0", "must be more than 0");
    refused_value("health-timeout", "0s", "must be more than 0");
    for wrong in ["0", "-1", "1.5", "many", "", "4294967296"] {
        refused_value("health-failures", wrong, "must be a whole number, 1 or more");
    }
    for (option, value) in
        [("health-interval", "1s"), ("health-timeout", "1s"), ("health-failures", "1"), ("health-start", "0")]
    {
        refused_value(option, value, "has no meaning without --health-cmd");
    }
    for option in ["health-cmd", "on-lead", "on-standby", "on-fence"] {
        refused_value(option, "", "must not be blank");
        refused_value(option, " ", "must not be blank");
    }
}

#[test]
fn durations_hold_together() {
    for wrong in ["0", "9ms", "6667ms"] {
        refused_value("heartbeat-interval", wrong, "must be 10ms to 6666ms, a third of --lease 20s (the default)");
    }
    refused_value("fence-warning", "10001ms", "must be 0 to 10s, half of --lease 20s (the default)");
    refused(
        "-g g -b a:1 --lease 300ms --heartbeat-interval 101ms -- true",
        "--heartbeat-interval 101ms: must be 10ms to 100ms, a third of --lease 300ms",
    );
    refused("-g g -b a:1 --wait 1s --claim-delay 1s -- true", "--wait 1s: must be more than --claim-delay 1s");
    refused("-g g -b a:1 --wait 0 --claim-delay 1s -- true", "--wait 0: must be more than --claim-delay 1s");
    refused("-g g -b a:1 --elect log --patience 1s -- true", "--patience 1s: has no meaning with --elect log");
    refused("-g g -b a:1 --elect log --patience never -- true", "--patience never: has no meaning with --elect log");
    refused(
        "-g g -b a:1 --patience never --claim-delay 1s -- true",
        "--patience never: can't be combined with --claim-delay 1s: none but the group's choice claims",
    );
}

#[test]
fn a_restart_limit_is_a_number_and_a_span() {
    let why = "must be none, or restarts/duration such as 10/5m: 0 to 10000 in more than 0 and at most 365d";
    for wrong in ["", "10", "/", "10/", "/5m", "-1/5m", "+1/5m", "1.5/5m", "10001/5m", "10/0", "10/5", "10/366d", "no"]
    {
        refused_value("restart-limit", wrong, why);
    }
    for option in ["--restart-delay 1s", "--restart-limit none"] {
        let line = format!("-g g -b a:1 --restart no {option} -- true");
        refused(&line, &format!("{option}: has no meaning with --restart no"));
        let line = format!("-g g -b a:1 {option} -- true");
        refused(&line, &format!("{option}: has no meaning with --restart no (the default)"));
    }
}

#[test]
fn a_word_is_one_of_its_words() {
    refused_value("elect", "raft", "must be group or log");
    refused_value("log-format", "xml", "must be text or json");
    refused_value("restart", "never", "must be no, on-failure or always");
    refused_value("on-loss", "stay", "must be standby or exit");
    refused("-g g -b a:1 -q -v -- true", "--quiet: can't be combined with --verbose");
    refused("-g g -b a:1 --embedded -- true", "--brokers a:1: can't be combined with --embedded");
    for wrong in ["begin", "-1", "1.5", "99999999999999999999"] {
        let refusal = format!("--from {wrong}: must be start, end or an offset (0 or more)");
        refused(&format!("watch -g g -b a:1 --from={wrong}"), &refusal);
    }
}

#[test]
fn a_signal_to_stop_by_asks_for_an_end() {
    for wrong in ["FOO", "0", "32", "65", "RTMIN+99", ""] {
        let refusal = "must be a signal's name or number, such as TERM, SIGINT, 15 or RTMIN+1 (numbers 1 to 64)";
        refused_value("stop-signal", wrong, refusal);
    }
    for wrong in ["KILL", "9", "SIGKILL"] {
        refused_value("stop-signal", wrong, "asks nothing; for SIGKILL at once say --stop-timeout 0");
    }
    refused_value("stop-signal", "STOP", "stops a process for a while, and doesn't end it");
    refused_value("stop-signal", "CONT", "follows every stop signal, so that it can't be one");
    refused_value("stop-signal", "CHLD", "comes in the ordinary course, and neli-run would take it for a stop");
    refused_value("stop-signal", "SEGV", "is what a fault sends, and neli-run would take it for a stop");
}

#[test]
fn a_broker_list_is_hosts_and_ports() {
    for (wrong, why) in [
        ("", "must be HOST:PORT,.. and has an empty entry"),
        ("a:1,", "must be HOST:PORT,.. and has an empty entry"),
        ("a", "must be HOST:PORT,.. and 'a' has no port"),
        ("a:0", "must be HOST:PORT,.. with a port of 1 to 65535, not '0'"),
        ("a:65536", "must be HOST:PORT,.. with a port of 1 to 65535, not '65536'"),
        ("a:kafka", "must be HOST:PORT,.. with a port of 1 to 65535, not 'kafka'"),
        (":9092", "must be HOST:PORT,.. and '' is no host"),
        ("::1:9092", "must be HOST:PORT,.. and '::1' is no host (an IPv6 address stands in brackets: [::1]:9092)"),
        ("ssl://a:1", "'ssl://a:1' needs the property security.protocol=ssl, which is plaintext"),
        (
            "http://a:1",
            "must be HOST:PORT,.. and 'http://a:1' begins with none of plaintext, ssl, sasl_plaintext, sasl_ssl",
        ),
    ] {
        refused_value("brokers", wrong, why);
    }
}

#[test]
fn what_the_protocol_rests_on_is_refused_by_every_name() {
    for (key, hint) in [
        ("acks", "the journal needs every replica's word"),
        ("request.required.acks", "the journal needs every replica's word"),
        ("topic.acks", "the journal needs every replica's word"),
        ("bootstrap.servers", "say --brokers"),
        ("metadata.broker.list", "say --brokers"),
        ("group.id", "say --group"),
        ("message.timeout.ms", "it follows from --lease"),
        ("delivery.timeout.ms", "it follows from --lease"),
        ("topic.delivery.timeout.ms", "it follows from --lease"),
    ] {
        refused_property(&format!("{key}=1"), &format!("{key}: is not yours to set: {hint}"));
    }
    for key in [
        "allow.auto.create.topics",
        "auto.commit.enable",
        "auto.offset.reset",
        "client.rack",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.gapless.guarantee",
        "enable.idempotence",
        "enable.partition.eof",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "isolation.level",
        "max.poll.interval.ms",
        "partition.assignment.strategy",
        "plugin.library.paths",
        "test.mock.broker.rtt",
        "test.mock.num.brokers",
        "transactional.id",
    ] {
        let output = run(&whole(&["-X", &format!("{key}=hunter2")]));
        let line = one_line(&output);
        assert!(line.starts_with(&format!("neli-run: --property {key}: is not yours to set: ")), "{line}");
        assert!(!line.contains("hunter2"), "{line}");
    }
}

#[test]
fn a_property_is_one_that_librdkafka_takes() {
    refused_property("nonsense=1", "nonsense: librdkafka has no such property");
    refused_property("socket.timeout.ms=1", "socket.timeout.ms: must be 10 to 300000");
    refused_property("socket.keepalive.enable=hunter2", "socket.keepalive.enable: must be true or false");
    refused_property("security.protocol=hunter2", "security.protocol: librdkafka refuses its value");
    let java = "sasl.jaas.config: is for Java clients; librdkafka has sasl.username and sasl.password, or its like";
    refused_property("sasl.jaas.config=hunter2", java);
    let session = "property session.timeout.ms 200: must be at least 300, three times heartbeat.interval.ms";
    refused("-g g -b a:1 -X session.timeout.ms=200 -- true", session);
    refused(
        "-g g -b a:1 -X heartbeat.interval.ms=2001 -- true",
        "property heartbeat.interval.ms 2001: must be at most 2000, a third of session.timeout.ms",
    );
}

/// What librdkafka was built without is asked for by the name of the feature.
#[test]
fn a_property_that_needs_another_build_says_which() {
    let features = [neli_run::features::GSSAPI, neli_run::features::OIDC, neli_run::features::SSL];
    let built = |name: &str| features.iter().any(|feature| feature.name == name && feature.is_built);
    let advice = |feature: &str| {
        format!("this neli-run was built without the feature {feature} (cargo build --features {feature})")
    };
    for (property, feature) in [
        ("sasl.kerberos.service.name=kafka", "gssapi"),
        ("sasl.oauthbearer.method=oidc", "oidc"),
        ("security.protocol=ssl", "ssl"),
        ("ssl.ca.location=/no/such/file", "ssl"),
    ] {
        let key = property.split('=').next().unwrap();
        if !built(feature) {
            refused_property(property, &format!("{key}: {}", advice(feature)));
        }
    }
    for (mechanism, feature) in [("GSSAPI", "gssapi"), ("SCRAM-SHA-512", "ssl"), ("OAUTHBEARER", "ssl")] {
        if !built(feature) {
            let line = one_line(&run(&whole(&["-X", &format!("sasl.mechanism={mechanism}")])));
            assert_eq!(line, format!("neli-run: property sasl.mechanisms {mechanism}: {}", advice(feature)));
        }
    }
    if built("ssl") {
        let bearer = ["-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=OAUTHBEARER"];
        let line = one_line(&run(&whole(&bearer)));
        assert!(line.contains("needs a property sasl.oauthbearer.method=oidc"), "{line}");
        assert_eq!(line.ends_with(&advice("oidc")), !built("oidc"), "{line}");
    }
    if !built("gssapi") {
        let line = one_line(&run(&whole(&["-X", "security.protocol=SASL_PLAINTEXT"])));
        assert!(line.contains("needs a property sasl.mechanisms") && line.ends_with(&advice("gssapi")), "{line}");
    }
}

#[test]
fn the_version_tells_of_the_build() {
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

#[test]
fn a_secret_is_never_shown() {
    for arguments in [
        &["-X", "hunter2"][..],
        &["-X", "sasl.password", "hunter2"],
        &["-X", "a=b", "sasl.password=hunter2"],
        &["-X", "sasl.password=", "hunter2"],
        &["-Xsasl.password", "hunter2"],
        &["--property=sasl.password", "hunter2"],
        &["-X", "sasl.passwrod=hunter2"],
        &["--property=acks=hunter2"],
        &["--propperty=sasl.password=hunter2"],
        &["-X", "=hunter2"],
    ] {
        let line = one_line(&run(&whole(arguments)));
        assert!(!line.contains("hunter2"), "{arguments:?}: {line}");
    }
    let directory = tempfile::tempdir().unwrap();
    for content in ["hunter2", "sasl.passwrod=hunter2", "acks=hunter2", "socket.timeout.ms=hunter2", "=hunter2"] {
        let file = directory.path().join("properties");
        std::fs::write(&file, format!("# a comment\n\n{content}\n")).unwrap();
        let line = one_line(&run(&whole(&["--properties", file.to_str().unwrap()])));
        assert!(line.contains("properties line 3: ") && !line.contains("hunter2"), "{line}");
    }
    let mut run = command(WHOLE);
    run.env("NELI_RUN_PROPERTY", "sasl.username=a\nhunter2");
    assert_eq!(one_line(&run.output().unwrap()), "neli-run: NELI_RUN_PROPERTY: must be KEY=VALUE, and number 2 is not");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    refused_value("properties", "/no/such/file", "can't be read: no such file or directory");
    refused_value("properties", "/", "can't be read: is a directory");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("properties");
    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    refused_value("properties", file.to_str().unwrap(), "must be UTF-8");
}

#[test]
fn a_variable_is_named_when_it_is_wrong_and_loses_against_its_option() {
    let refused = |variables: &[(&str, &str)], arguments: &[&str], line: &str| {
        let output = command(arguments).envs(variables.iter().copied()).output().unwrap();
        assert_eq!(one_line(&output), format!("neli-run: {line}"));
        assert_eq!(output.status.code(), Some(125));
    };
    refused(&[("NELI_RUN_LEASE", "200ms")], WHOLE, "NELI_RUN_LEASE=200ms: must be 300ms to 60s");
    refused(&[("NELI_RUN_NO_CREATE_TOPIC", "yes")], WHOLE, "NELI_RUN_NO_CREATE_TOPIC=yes: must be 1, true, 0 or false");
    refused(
        &[("NELI_RUN_LEASE", "1s"), ("NELI_RUN_HEARTBEAT_INTERVAL", "500ms")],
        WHOLE,
        "NELI_RUN_HEARTBEAT_INTERVAL=500ms: must be 10ms to 333ms, a third of NELI_RUN_LEASE=1s",
    );
    refused(
        &[("NELI_RUN_GROUP", "g"), ("NELI_RUN_EMBEDDED", "1"), ("NELI_RUN_BROKERS", "a:1")],
        &["--", "true"],
        "NELI_RUN_BROKERS=a:1: can't be combined with NELI_RUN_EMBEDDED",
    );
    let log = "NELI_RUN_LOG_FILE=/no/such/log: can't be opened: no such file or directory";
    refused(&[("NELI_RUN_LOG_FILE", "/no/such/log")], WHOLE, log);
    // An empty one is not set, and the command line wins: over its own variable, and over its rival's.
    refused(&[("NELI_RUN_LEASE", "")], &whole(&["--wait", "x"]), WAIT);
    refused(&[("NELI_RUN_LEASE", "1ms")], &whole(&["--lease", "5s", "--wait", "x"]), WAIT);
    refused(&[("NELI_RUN_EMBEDDED", "1")], &whole(&["--wait", "x"]), WAIT);
    refused(&[("NELI_RUN_QUIET", "1")], &whole(&["-v", "--wait", "x"]), WAIT);
}

const WAIT: &str = "--wait x: must be a duration with its unit, such as 500ms, 5s or 2m";

#[test]
fn a_command_that_cannot_be_run_is_said_before_anything_is_joined() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("job");
    std::fs::write(&file, "#!/no/such/shell\n").unwrap();
    let job = file.to_str().unwrap();
    let refused = |command: &str, status: i32, why: &str| {
        let output = run(&["-g", "g", "-b", "a:1", "--", command]);
        assert_eq!(one_line(&output), format!("neli-run: {why}"));
        assert_eq!(output.status.code(), Some(status));
    };
    refused("no-such-command", 127, "no-such-command: not found in PATH");
    refused("./no-such-command", 127, "./no-such-command: not found");
    refused("", 127, "'': not found");
    refused("/etc", 126, "/etc: can't be run: it is a directory");
    refused(job, 126, &format!("{job}: can't be run: permission denied"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    refused(job, 127, &format!("{job}: its interpreter, /no/such/shell, is not found"));
}

/// The modes in which `neli-run` starts itself take a sealed file in memory, which nobody can type.
#[test]
fn a_hidden_mode_cannot_be_typed() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("place");
    let place = place.to_str().unwrap();
    for (arguments, line) in [
        (
            &["broker", place, "100"][..],
            format!("{place}: broker takes no such argument; neli-run broker --help lists them"),
        ),
        (&["broker", "0"], "0: broker takes no such argument; neli-run broker --help lists them".to_owned()),
        (&["release", "0"], "release: COMMAND comes after --, as in: neli-run --group .. -- release".to_owned()),
        (
            &["guard", "1", "0", "0", "0"],
            "guard: COMMAND comes after --, as in: neli-run --group .. -- guard".to_owned(),
        ),
    ] {
        let output = run(arguments);
        assert_eq!(one_line(&output), format!("neli-run: {line}"), "{arguments:?}");
        assert_eq!(output.status.code(), Some(125), "{arguments:?}");
    }
    assert!(!Path::new(place).exists());
}

/// As coreutils do: what can't be written is an error; a reader that has gone is none.
#[test]
fn a_full_stdout_is_an_error() {
    for arguments in
        [&["--help"][..], &["-h"], &["watch", "--help"], &["--version"], &["man"], &["completions", "bash"]]
    {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = command(arguments).stdout(full).output().unwrap();
        assert_eq!(one_line(&output), "neli-run: stdout: no space left on device", "{arguments:?}");
        assert_eq!(output.status.code(), Some(125), "{arguments:?}");

        let (read, write) = std::io::pipe().unwrap();
        drop(read);
        let output = command(arguments).stdout(write).output().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()), "{arguments:?}");
    }
}

#[test]
fn help_and_version_are_printed_to_be_read() {
    for (arguments, begin) in [
        (&["--help"][..], "Runs COMMAND on at most one machine"),
        (&["-h"], "Run a command on exactly one machine"),
        (&["--version"], "neli-run "),
        (&["watch", "--help"], "Print one line per change"),
        (&["man"], ".TH NELI-RUN 1"),
        (&["completions", "fish"], "# Print an optspec"),
    ] {
        let output = run(arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with(begin) && output.stderr.is_empty(), "{arguments:?}: {text}");
        assert_eq!(output.status.code(), Some(0));
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or_default();
        assert!(!arguments.contains(&"--help") || widest <= 100, "{arguments:?}: {widest} columns");
    }
}

/// The line, split at spaces, is refused with that line and 125.
fn refused(arguments: &str, line: &str) {
    let arguments: Vec<&str> = arguments.split(' ').filter(|argument| !argument.is_empty()).collect();
    let output = run(&arguments);
    assert_eq!(one_line(&output), format!("neli-run: {line}"), "{arguments:?}");
    assert_eq!(output.status.code(), Some(125), "{arguments:?}");
}

/// The option's value is refused, and nothing else is wrong.
fn refused_value(option: &str, value: &str, why: &str) {
    let output = run(&whole(&[&format!("--{option}={value}")]));
    let line = one_line(&output);
    assert!(line.starts_with(&format!("neli-run: --{option} ")) && line.ends_with(&format!(": {why}")), "{line}");
    assert_eq!(output.status.code(), Some(125));
}

fn refused_property(property: &str, why: &str) {
    let output = run(&whole(&["-X", property]));
    assert_eq!(one_line(&output), format!("neli-run: --property {why}"));
    assert_eq!(output.status.code(), Some(125));
}

/// The line that lacks nothing, with these arguments before it; one that is given twice counts as it stands last, so that
/// `--group` and `--brokers` of the case take the place of those.
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
    command(arguments).output().unwrap()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_neli-run"));
    command.args(arguments).stdin(Stdio::null()).current_dir(Path::new("/"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("NELI_RUN_")) {
        command.env_remove(name);
    }
    command
}

/// What was said, which is one line on stderr, and nothing on stdout.
fn one_line(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(output.stdout.is_empty(), "{text}");
    let line = text.strip_suffix('\n').unwrap_or_else(|| panic!("no line: {text:?}, {:?}", output.status));
    assert!(!line.contains('\n'), "{text}");
    line.to_owned()
}

/// Runs a whole command line behind a shell's `limit`.
fn limited(limit: &str) -> Output {
    let script = format!(r#"{limit}; exec "$@""#);
    let mut limited = Command::new("sh");
    limited.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_neli-run")]).args(WHOLE);
    limited.stdin(Stdio::null()).output().unwrap()
}

fn assert_limited(limit: &str, expected: &str) {
    let output = limited(limit);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(125), "{limit}: {told}");
    assert!(told.starts_with("neli-run: ") && told.contains(expected) && told.lines().count() == 1, "{limit}: {told}");
}

#[test]
fn a_limit_of_the_process_that_is_too_low_is_named() {
    for number in [8, 10, 14, 32, 63] {
        let line = format!("{number} open files are too few (ulimit -n): neli-run needs at least 64");
        assert_limited(&format!("ulimit -n {number}"), &line);
    }
    for kib in [100_000, 450_000, 2_000_000] {
        let line = format!("{} bytes of address space are too few (ulimit -v counts KiB)", kib * 1024_u64);
        assert_limited(&format!("ulimit -v {kib}"), &line);
    }
}

/// Processes are counted a user, and root's not at all: so it takes a user who has no others.
#[test]
fn a_limit_of_the_user_that_is_too_low_is_named() {
    let stranger = if nix::unistd::geteuid().is_root() {
        "setpriv --reuid=65534 --regid=65534 --clear-groups"
    } else {
        // In a user namespace the count begins anew, from Linux 5.14 on.
        "unshare --user --map-current-user"
    };
    let is_possible = Command::new("sh").args(["-c", &format!("exec {stranger} true")]).output();
    if !is_possible.is_ok_and(|tried| tried.status.success()) {
        return harness::not_tested("ulimit -u: this machine gives no user namespace; root needs none");
    }
    for processes in [1, 4, 20] {
        let limit = format!(r#"exec {stranger} prlimit --nproc={processes} -- "$@""#);
        assert_limited(&limit, "24 threads can't be made (ulimit -u, or pids.max of the control group)");
    }
}
