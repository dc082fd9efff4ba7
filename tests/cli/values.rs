//! Values of options and their bounds.

use crate::{command, one_line, output_of, refused, refused_value, run, whole};

#[test]
fn a_name_has_bounds() {
    refused_value("group", "", "must not be blank");
    refused_value("group", " ", "must not be blank");
    refused_value("group", "a\nb", "must have no control characters");
    refused_value("group", "a\u{200b}", "must have no invisible characters, such as its \\u{200b}");
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
    // A name that nobody can have is no name that was not found.
    for command in ["list -b a:1", "observe -b a:1 --listen :0"] {
        refused(&format!("{command} --group="), "--group '': must not be blank");
    }
    refused("list -b a:1 --topic=*.neli", &format!("--topic *.neli: must be {topic}"));
    refused("resign -b a:1 -g g --to=", "--to '': must not be blank");
}

#[test]
fn a_listen_address_has_a_port() {
    for wrong in ["", "9464", "localhost", "::1:80", "a:65536", "http://a:80"] {
        refused_value(
            "listen",
            wrong,
            "must be HOST:PORT, as in 127.0.0.1:9464 or [::1]:9464, or :PORT for all addresses of this machine",
        );
    }
}

#[test]
fn a_duration_has_a_unit_and_bounds() {
    let duration = "must be a duration with its unit, such as 500ms, 5s or 2m";
    for option in [
        "lease",
        "heartbeat-interval",
        "fence-warning",
        "preempt",
        "wait",
        "settle",
        "overlap",
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
    for wrong in ["0", "200ms", "299999us", "300001us", "60001ms", "2m"] {
        refused_value("lease", wrong, "must be 300ms to 60s, in whole milliseconds");
    }
    for option in ["wait", "settle", "stop-timeout", "restart-delay", "health-start"] {
        refused_value(option, "366days", "must be 0 to 365d");
    }
    for wrong in ["366days", "soon", ""] {
        refused_value("patience", wrong, "must be never, or a duration from 0 to 365d");
    }
    for (option, wrong) in [("health-interval", "366days"), ("health-interval", "0"), ("health-timeout", "0s")] {
        refused_value(option, wrong, "must be more than 0, and at most 365d");
    }
}

#[test]
fn a_key_has_bounds_and_its_options_require_it() {
    refused_value("once", "", "must not be blank");
    refused_value("once", "a\nb", "must have no control characters");
    refused_value("once", "v1.42\u{200b}", "must have no invisible characters, such as its \\u{200b}");
    let bytes = "must be at most 200 bytes, where \" and \\ count twice, and has";
    refused_value("once", &"k".repeat(201), &format!("{bytes} 201"));
    refused_value("once", &"\\".repeat(101), &format!("{bytes} 202"));
    for wrong in ["+1", "-1", "10001", "many", ""] {
        refused_value("retries", wrong, "must be a number from 0 to 10000");
    }
    for wrong in ["-1", "256", "ok", ""] {
        refused_value("done-status", wrong, "must be a number from 0 to 255");
    }
    refused_value("once-retention", "59m", "must be 1h to 3650d");
    refused_value("once-retention", "3651d", "must be 1h to 3650d");
    for (option, value) in [("retries", "1"), ("done-status", "3")] {
        refused_value(option, value, "has no meaning without --once or --window");
    }
    refused_value("once-retention", "1day", "has no meaning without --once or --window or --schedule");
    refused(
        "-g g -b a:1 --once k --restart always -- true",
        "--restart always: can't be combined with --once k: --retries is meant",
    );
    let topic = "t".repeat(245);
    refused(
        &format!("-g g -b a:1 -t {topic} --once k -- true"),
        "--once k: the topic's name (--topic) must be at most 244 bytes, for .once is added, and has 245",
    );
    let separates = "which separates group, role and KEY in the topic of facts";
    for option in ["--once k", "--window 1d", "--schedule @daily"] {
        refused(
            &format!("-g a/0 -b a:1 -t t {option} -- true"),
            &format!("--group a/0: must not contain /, {separates}, with {option}"),
        );
    }
    for option in ["--once k", "--newest-window"] {
        refused(
            &format!("forget -g a/0 -b a:1 -t t {option}"),
            &format!("--group a/0: must not contain /, {separates}"),
        );
    }
    // A pod's variable for its candidates names no key to forget.
    let output = output_of(command(&["forget", "-g", "g", "-b", "a:1"]).env("NELI_RUN_ONCE", "k"));
    assert_eq!(one_line(&output), "neli-run: --once KEY or --newest-window is required");
}

#[test]
fn a_window_has_a_length_and_excludes_a_key() {
    let length = "must be LENGTH or LENGTH/OFFSET, such as 15m, 1d, or 1d/2h for windows from 02:00 on; LENGTH is whole seconds from \
                  1s to 365d, and whole days if it is longer than a day; OFFSET is less than LENGTH";
    for wrong in ["", "0", "daily", "1d/", "/2h", "1d/1d", "500ms", "1500ms", "25h", "1month", "366d", "1h/-1m"] {
        refused_value("window", wrong, length);
    }
    refused("-g g -b a:1 --timezone UTC -- true", "--timezone UTC: has no meaning without --window or --schedule");
    refused(
        "-g g -b a:1 --window 1d --timezone Nowhere -- true",
        "--timezone Nowhere: is not in this machine's time zone database (tzdata); must be a name such as UTC or Europe/Berlin",
    );
    refused(
        "-g g -b a:1 --window 6h --timezone Europe/Berlin -- true",
        "--timezone Europe/Berlin: has no meaning with --window 6h: windows of less than a day are counted in UTC",
    );
    refused("-g g -b a:1 --window 1d --once k -- true", "--once k: can't be combined with --window 1d");
    for (windows, longest) in [("--window 90d", "90d"), ("--window 365d", "365d"), ("--schedule @yearly", "366d")] {
        refused(
            &format!("-g g -b a:1 {windows} --once-retention 90d -- true"),
            &format!("--once-retention 90d: must be more than {longest}, the longest window of {windows}"),
        );
    }
    refused(
        "-g g -b a:1 --window 1d --restart always -- true",
        "--restart always: can't be combined with --window 1d: --retries is meant",
    );
}

#[test]
fn a_schedule_is_a_cron_expression_or_a_length_and_excludes_other_modes() {
    for wrong in ["daily", ""] {
        let output = run(&whole(&["--schedule", wrong]));
        let line = one_line(&output);
        let why = ": must be a cron expression such as '30 2 * * *', or every DURATION: ";
        assert!(line.starts_with("neli-run: --schedule ") && line.contains(why), "{line}");
        assert_eq!(output.status.code(), Some(125));
    }
    let refused = |options: &[&str], line: &str| {
        let output = run(&whole(options));
        assert_eq!(one_line(&output), format!("neli-run: {line}"));
        assert_eq!(output.status.code(), Some(125));
    };
    for (expression, why) in [
        ("61 * * * *", "the minute is '61'; it takes 0 to 59, *, a-b, */n, a-b/n and lists of these"),
        (
            "0 0 MON * *",
            "the day of the month is 'MON'; it takes 1 to 31, L, LW, 15W, *, a-b, */n, a-b/n and lists of these",
        ),
        (
            "0 0 * * 8",
            "the day of the week is '8'; it takes 0 to 7, SUN to SAT, FRI#2, 5L, *, a-b, */n, a-b/n and lists of these",
        ),
        ("0 24 * * *", "the hour is '24'; it takes 0 to 23, *, a-b, */n, a-b/n and lists of these"),
        ("* * *", "it needs five fields (six with seconds first, seven with years last), and has 3"),
        ("@reboot", "@reboot is none of @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly"),
    ] {
        let refusal = format!("must be a cron expression such as '30 2 * * *', or every DURATION: {why}");
        let shown = if expression == "@reboot" { expression.to_owned() } else { format!("'{expression}'") };
        refused(&["--schedule", expression], &format!("--schedule {shown}: {refusal}"));
    }
    refused(
        &["--schedule", "0 0 30 2 *"],
        "--schedule '0 0 30 2 *': must be a cron expression such as '30 2 * * *', or every DURATION: it never comes",
    );
    refused(
        &["--schedule", "0 30 2 1 1 * 2020"],
        "--schedule '0 30 2 1 1 * 2020': has no time that is still to come, by this machine's clock",
    );
    refused(
        &["--schedule", "every 25h"],
        "--schedule 'every 25h': after every: must be LENGTH or LENGTH/OFFSET, such as 15m, 1d, or 1d/2h for windows from 02:00 on; LENGTH \
         is whole seconds from 1s to 365d, and whole days if it is longer than a day; OFFSET is less than LENGTH",
    );
    // Before its first time there is no window, which would be longer than any retention.
    refused(
        &["--schedule", "0 0 0 1 1 * 2099", "--restart", "always"],
        "--restart always: can't be combined with --schedule '0 0 0 1 1 * 2099'",
    );
    let daily = ["--schedule", "@daily"];
    for (option, value) in [("--retries", "1"), ("--done-status", "3")] {
        let line = format!("{option} {value}: has no meaning without --once or --window");
        refused(&[&daily[..], &[option, value]].concat(), &line);
    }
    refused(&[&daily[..], &["--catch-up", "all"]].concat(), "--catch-up all: must be last or none");
    refused(
        &[&daily[..], &["--restart", "always"]].concat(),
        "--restart always: can't be combined with --schedule @daily",
    );
    refused(&[&daily[..], &["--window", "1d"]].concat(), "--window 1d: can't be combined with --schedule @daily");
    refused(&[&daily[..], &["--once", "k"]].concat(), "--once k: can't be combined with --schedule @daily");
    refused(&["--catch-up", "last"], "--catch-up last: has no meaning without --schedule");
    refused(&["--window", "1d", "--catch-up", "none"], "--catch-up none: has no meaning without --schedule");
}

#[test]
fn a_health_command_has_a_timeout_and_a_number_of_failures() {
    for wrong in ["+1", "0", "-1", "1.5", "many", "", "4294967296"] {
        refused_value("health-failures", wrong, "must be a whole number, 1 or more");
    }
    for (option, value) in
        [("health-interval", "1s"), ("health-timeout", "1s"), ("health-failures", "1"), ("health-start", "0")]
    {
        refused_value(option, value, "has no meaning without --health-cmd");
    }
    for option in ["health-cmd", "on-lead", "on-exit", "on-standby", "on-fence"] {
        refused_value(option, "", "must not be blank");
        refused_value(option, " ", "must not be blank");
    }
}

#[test]
fn durations_fit_together() {
    for wrong in ["0", "9ms", "6667ms"] {
        let why = "must be 10ms to a third of the lease, with --lease 20s (the default)";
        refused_value("heartbeat-interval", wrong, why);
    }
    let why = "must be 0 to half of the lease, with --lease 20s (the default)";
    refused_value("fence-warning", "10001ms", why);
    refused(
        "-g g -b a:1 --lease 300ms --heartbeat-interval 101ms -- true",
        "--heartbeat-interval 101ms: must be 10ms to a third of the lease, with --lease 300ms",
    );
    for patience in ["--patience 1s", "--patience never"] {
        let line = format!("{patience}: can't be combined with --elect log: any candidate claims");
        refused(&format!("-g g -b a:1 --elect log {patience} -- true"), &line);
    }
}

#[test]
fn a_restart_limit_is_a_number_and_a_duration() {
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
fn a_priority_is_a_number_and_preempts_only_lower_ones() {
    for wrong in ["-1", "1001", "1.5", "high", "", "+5"] {
        refused_value("priority", wrong, "must be a whole number, 0 to 1000");
    }
    for wrong in ["0", "999ms", "366days"] {
        refused_value("preempt", wrong, "must be 1s to 365d");
    }
    refused(
        "-g g -b a:1 --preempt -- true",
        "--preempt 1m: can't be combined with --priority 0 (the default): no leader's is lower",
    );
    refused(
        "-g g -b a:1 --priority 5 --patience never -- true",
        "--priority 5: can't be combined with --patience never: none but the group's choice claims",
    );
}

#[test]
fn an_overlap_fits_into_the_lease_and_is_for_jobs_that_start_at_once() {
    let bounds = "must be 10ms to half of the lease, in whole milliseconds, with";
    for wrong in ["0", "9ms", "10001ms", "10500us"] {
        refused_value("overlap", wrong, &format!("{bounds} --lease 20s (the default)"));
    }
    refused("-g g -b a:1 --lease 1s --overlap 600ms -- true", &format!("--overlap 600ms: {bounds} --lease 1s"));
    refused(
        "-g g -b a:1 --overlap 1s --once k -- true",
        "--overlap 1s: can't be combined with --once k: its job never runs twice at a time",
    );
    refused(
        "-g g -b a:1 --overlap 1s --window 1d -- true",
        "--overlap 1s: can't be combined with --window 1d: its job never runs twice at a time",
    );
    refused(
        "-g g -b a:1 --overlap 1s --settle 1s -- true",
        "--overlap 1s: can't be combined with --settle 1s: the next job is to start at once",
    );
}

#[test]
fn roles_are_a_number_or_names() {
    let count = "must be a whole number from 1 to 10000, in digits alone, without a 0 before it";
    for wrong in ["0", "03", "10001", "0010001", "99999999999", "-1", "1.5", "1e3", "0x4", "1_0"] {
        refused_value("roles", wrong, count);
    }
    refused_value("roles", "", "must be a number, 1 to 10000, or the names of the roles: NAME,..");
    let long = "r".repeat(65);
    for (wrong, name) in [
        ("a,,b", ""),
        ("a,b c", "b c"),
        ("a,1", "1"),
        ("a,-1", "-1"),
        ("0x4,a", "0x4"),
        ("a/b", "a/b"),
        ("hello,a", "hello"),
        (long.as_str(), long.as_str()),
    ] {
        let rule = "must be 1 to 64 of a-z A-Z 0-9 . _ -, and neither a number nor hello";
        let why = format!("'{name}' is no name for a role: {rule}");
        refused_value("roles", wrong, &why);
    }
    refused_value("roles", "a,b,a", "'a' is named twice");
    let names: Vec<String> = (0..50).map(|number| format!("role{number:04}")).collect();
    let why = "must be at most 400 bytes, and has 449; a number is shorter";
    refused_value("roles", &names.join(","), why);
    for wrong in ["0", "many", "-1", "10001"] {
        let line = format!("-g g -b a:1 --roles 3 --max-roles={wrong} -- true");
        refused(&line, &format!("--max-roles {wrong}: {count}"));
    }
    refused_value("spread", "maybe", "must be yes or no");
    for option in ["--spread no", "--max-roles 2"] {
        refused(&format!("-g g -b a:1 {option} -- true"), &format!("{option}: has no meaning without --roles"));
    }
    for (rival, why) in [
        ("--once k", "the key would be done for each role"),
        ("--wait 5s", "a role may be led by another for as long as it likes"),
        ("--priority 5", "each candidate is to have a share; --spread no goes with it"),
    ] {
        let line = format!("-g g -b a:1 --roles 3 {rival} -- true");
        refused(&line, &format!("--roles 3: can't be combined with {rival}: {why}"));
    }
    refused(
        "-g g -b a:1 --roles 3 --spread no --priority 5 --preempt --max-roles 2 -- true",
        "--max-roles 2: can't be combined with --preempt 1m: it would ask the leaders of more roles than it may lead",
    );
}

#[test]
fn a_keyword_is_one_of_a_list() {
    refused_value("elect", "raft", "must be group or log");
    refused_value("log-format", "xml", "must be text or json");
    refused_value("restart", "never", "must be no, on-failure or always");
    refused_value("on-loss", "stay", "must be standby or exit");
    refused("-g g -b a:1 -q -v -- true", "--quiet: can't be combined with --verbose");
    refused("-g g -b a:1 --embedded -- true", "--brokers a:1: can't be combined with --embedded");
    for wrong in ["begin", "-1", "1.5", "99999999999999999999", "5000d"] {
        let expected = "must be start, end, an offset (0 or more), or how long ago (at most 365d), such as 30m or 1h";
        let refusal = format!("--from {wrong}: {expected}");
        refused(&format!("watch -g g -b a:1 --from={wrong}"), &refusal);
    }
}

#[test]
fn the_role_of_an_operator_command_is_a_name_or_a_number() {
    for wrong in ["", "a/b", "a,b", "01", "10000", "99999999999"] {
        let shown = if wrong.is_empty() { "''" } else { wrong };
        let refusal = "must be a role's name (1 to 64 of a-z A-Z 0-9 . _ -) or its number (0 to 9999)";
        refused(&format!("status -g g -b a:1 --role={wrong}"), &format!("--role {shown}: {refusal}"));
    }
}

#[test]
fn a_stop_signal_ends_a_process() {
    for wrong in ["FOO", "0", "32", "65", "RTMIN+99", ""] {
        let refusal =
            "must be a signal's name or number, such as TERM, SIGINT, 15 or RTMIN+1 (numbers 1 to 64), or none";
        refused_value("stop-signal", wrong, refusal);
    }
    for wrong in ["KILL", "9", "SIGKILL"] {
        refused_value("stop-signal", wrong, "asks nothing; for SIGKILL at once use --stop-timeout 0");
    }
    refused_value("stop-signal", "STOP", "stops a process for a while, and doesn't end it");
    refused_value("stop-signal", "CONT", "follows every stop signal, so it can't be one");
    refused_value("stop-signal", "CHLD", "comes in normal operation, and neli-run would take it for a stop");
    refused_value(
        "stop-signal",
        "SEGV",
        "is what the kernel sends for a fault, and neli-run would take it for a \
        stop",
    );
}

#[test]
fn a_broker_list_has_hosts_and_ports() {
    for (wrong, why) in [
        ("", "must be HOST:PORT,.. and has an empty entry"),
        ("a:1,", "must be HOST:PORT,.. and has an empty entry"),
        ("a", "must be HOST:PORT,.. and 'a' has no port"),
        ("a:0", "must be HOST:PORT,.. with a port of 1 to 65535, not '0'"),
        ("a:65536", "must be HOST:PORT,.. with a port of 1 to 65535, not '65536'"),
        ("a:kafka", "must be HOST:PORT,.. with a port of 1 to 65535, not 'kafka'"),
        (":9092", "must be HOST:PORT,.. and '' is no host"),
        ("[::1]", "must be HOST:PORT,.. and '[::1]' has no port"),
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
