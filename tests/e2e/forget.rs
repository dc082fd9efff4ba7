//! `forget`: a key that is done or has failed can run again, but not a key that is running.

use harness::candidate::Elector;
use harness::election::TestElection;
use harness::journal::Pen;
use harness::kafka::Kafka;
use harness::schema::Schema;
use harness::terminal::{Shell, Terminal};
use harness::wait;
use serde_json::Value;

use crate::once::{KEY, await_run, once, runs};
use crate::window::{WallClock, key, start};
use crate::{PROGRAM, election};

/// The exit status and the JSON that `forget` prints, which is checked against docs/json.md.
fn forget(election: &TestElection, arguments: &[&str]) -> (Value, i32) {
    let answer = election.ask("forget", &[&["--json"], arguments].concat());
    let object = answer.json();
    Schema::read(include_str!("../../docs/json.md"), "forget").assert_holds(&object);
    (object, answer.status)
}

/// Creates both topics with the claim of a leader `m`, whose term is 0, and returns what writes facts.
fn facts_with_a_leader(election: &TestElection) -> Pen {
    let facts = format!("{}.once", election.topic());
    for topic in [&election.topic(), &facts] {
        Kafka::shared().create_topic(topic, &[("message.timestamp.type", "LogAppendTime")]);
    }
    let claim = br#"{"v":1,"kind":"claim","member":"m","name":"web","seq":1,"after":-1,"lease_ms":60000}"#;
    Pen::new(Kafka::shared(), &election.topic(), &[]).write(&election.key(), &[claim]);
    Pen::new(Kafka::shared(), &facts, &[])
}

#[test]
fn a_key_that_is_done_or_has_failed_runs_again() {
    for status in [0, 3] {
        let election = election(Elector::Log);
        let job = format!("exit {status}");
        assert_eq!(once(&election, &job).start().status(), status);
        assert_eq!(once(&election, &job).start().status(), status);
        assert_eq!(runs(&election), 1, "it is done, or has failed for good");
        let recorded = || {
            let mut runs = election.ask("status", &["--json"]).json()["runs"].take();
            [runs["count"].take(), runs["failures"].take(), runs["last_success"].take()]
        };
        let before = recorded();
        assert_eq!(before[0], 1);
        let answer = election.ask("forget", &["--once", KEY]);
        let expected = format!(
            "{}: {KEY} is forgotten: a candidate with it that stands by, or starts next, runs the job again",
            election.group
        );
        assert_eq!((answer.text.trim(), answer.errors.as_str(), answer.status), (expected.as_str(), "", 0));
        assert_eq!(recorded(), before, "what is told of all runs stays");
        assert_eq!(once(&election, &job).start().status(), status);
        assert_eq!(once(&election, &job).start().status(), status);
        assert_eq!(runs(&election), 2, "it runs once more, and no more than once");
        let (object, answered) = forget(&election, &["--once", KEY]);
        assert_eq!((object["outcome"].as_str(), object["key"].as_str(), answered), (Some("forgotten"), Some(KEY), 0));
        assert_eq!(once(&election, "true").start().status(), 0);
        assert_eq!(runs(&election), 3);
    }
}

#[test]
fn a_key_that_runs_now_is_forgotten_only_with_force() {
    let election = election(Elector::Log);
    let job = election.until_go_file();
    let mut runner = once(&election, &job).option("--name", "a").start();
    await_run(&election, 1);
    let (object, status) = forget(&election, &["--once", KEY]);
    assert_eq!((object["outcome"].as_str(), status), (Some("running"), 2), "{object}");
    assert_eq!(forget(&election, &["--once", KEY, "--force"]).1, 0);
    let mut second = once(&election, &job).option("--name", "b").start();
    second.await_event("standby");
    election.create_go_file();
    assert_eq!((runner.status(), second.status()), (0, 0));
    assert_eq!(runs(&election), 2);
}

/// Its run succeeds, and the next candidate runs the key nevertheless: that is what is shown.
#[test]
fn a_run_whose_key_was_forgotten_meanwhile_is_not_shown_as_done() {
    let election = election(Elector::Log);
    let job = election.until_go_file();
    let mut runner = once(&election, &job).start();
    await_run(&election, 1);
    assert_eq!(forget(&election, &["--once", KEY, "--force"]).1, 0);
    let object = election.ask("status", &["--once", KEY, "--json"]).json();
    assert_eq!((object["state"].as_str(), object["run"]["outcome"].as_str()), (Some("running"), Some("running")));
    let why = object["why"].as_str().unwrap_or_default();
    assert!(why.starts_with("forgotten by ") && why.ends_with(", so that it runs again"), "{object}");
    for options in [&["--once", KEY][..], &[]] {
        let text = election.ask("status", options).text;
        let (begun, again) = (format!("{KEY}: begun by "), "; forgotten by ");
        let is_whole =
            |line: &str| line.contains(&begun) && line.contains(again) && line.ends_with(", so that it runs again");
        assert!(text.lines().any(is_whole), "{text}");
    }
    assert_eq!(forget(&election, &["--once", KEY]).0["outcome"], "running");
    election.create_go_file();
    assert_eq!(runner.status(), 0);
    let object = election.ask("status", &["--json"]).json();
    assert_eq!(
        (&object["last_run"]["outcome"], &object["runs"]["count"]),
        (&"forgotten".into(), &1.into()),
        "{object}"
    );
    let answer = election.ask("status", &[]);
    assert!(answer.text.contains("forgotten by") && !answer.text.contains(&format!("{KEY} is done")), "{answer:?}");
    assert_eq!(election.ask("status", &["--once", KEY]).status, 3);
    assert_eq!(once(&election, "true").start().status(), 0);
    assert_eq!(runs(&election), 2);
    assert_eq!(election.ask("status", &["--once", KEY]).status, 0);
}

/// The topic of facts was deleted: a release in the journal is as good for candidates, and so for those who look and for `forget`.
#[test]
fn a_key_that_only_a_release_shows_to_be_done() {
    let election = election(Elector::Log);
    let kafka = Kafka::shared();
    assert_eq!(once(&election, "true").option("--name", "a").start().status(), 0);
    let facts = format!("{}.once", election.topic());
    kafka.delete_topic(&facts);
    let answer = election.ask("status", &["--once", KEY]);
    assert!(answer.text.contains(&format!("{KEY}: done by a (term ")), "{answer:?}");
    assert_eq!((answer.status, election.ask("status", &["--once", "v1.41"]).status), (0, 3));
    let answer = election.ask("forget", &["--once", KEY, "--timeout", "3s"]);
    let why = format!(
        "; if topic {facts:?} does not exist, start a candidate first, which makes it; run the command again to make sure\n"
    );
    assert!(answer.errors.ends_with(&why) && answer.status == 1, "{answer:?}");
    // This makes the topic again.
    assert_eq!(once(&election, "true").start().status(), 0);
    assert_eq!(runs(&election), 1, "it is skipped");
    let (object, status) = forget(&election, &["--once", KEY]);
    assert_eq!((object["outcome"].as_str(), status), (Some("forgotten"), 0), "{object}");
    assert_eq!(election.ask("status", &["--once", KEY]).status, 3);
    assert_eq!(once(&election, "true").start().status(), 0);
    assert_eq!(runs(&election), 2);
}

/// The journal was made anew, and its leader has the number of the runner's term: the run is not its.
#[test]
fn a_run_in_the_same_term_of_an_earlier_journal_is_over() {
    let election = election(Elector::Log);
    let pen = facts_with_a_leader(&election);
    for (member, state, forgotten) in [("m", "running", 2), ("earlier", "interrupted", 0)] {
        let fact = format!(r#"{{"v":1,"key":"{KEY}","outcome":"running","term":0,"member":"{member}","attempt":1}}"#);
        pen.write(&format!("{}/{KEY}%attempt", election.key()), &[fact.as_bytes()]);
        assert_eq!(election.ask("status", &["--once", KEY, "--json"]).json()["state"], state);
        assert_eq!(forget(&election, &["--once", KEY]).1, forgotten);
    }
}

#[test]
fn nothing_is_written_if_nothing_is_recorded() {
    let election = election(Elector::Log);
    assert_eq!(once(&election, "true").start().status(), 0);
    for what in [&["--once", "v1.24"][..], &["--newest-window"]] {
        let (object, status) = forget(&election, what);
        assert_eq!((object["outcome"].as_str(), status), (Some("nothing-recorded"), 3), "{object}");
    }
}

#[test]
fn the_newest_window_runs_again_and_not_those_before_it() {
    let election = election(Elector::Log);
    let clock = WallClock::new(&election, "a", 24 * 60 * 60 + 5);
    let run = |job: &str| start(&election, ("a", &clock), job).status();
    assert_eq!(run("exit 3"), 3);
    let (object, status) = forget(&election, &["--newest-window"]);
    assert_eq!((object["key"].as_str(), status), (Some(key(1).as_str()), 0), "{object}");
    assert_eq!((run("true"), run("exit 3")), (0, 0));
    assert_eq!(forget(&election, &["--newest-window"]).1, 0);
    clock.set(5);
    let mut late = start(&election, ("a", &clock), "exit 3");
    assert_eq!(late.status(), 0, "the window before is over: {late:?}");
}

/// The leader of a schedule runs no window twice in one lead.
#[test]
fn of_a_window_that_runs_now_it_is_said_who_would_run_it_again() {
    let election = election(Elector::Log);
    let pen = facts_with_a_leader(&election);
    let from_ms = wait::wall_ms() - 1_000;
    let fact = format!(
        r#"{{"v":1,"key":"w","window_from_ms":{from_ms},"window_until_ms":{},"outcome":"running","term":0,"member":"m","attempt":1,"account":{{"schedule":"0 0 * * *","timezone":"UTC"}}}}"#,
        from_ms + 86_400_000
    );
    pen.write(&format!("{}%attempt", election.key()), &[fact.as_bytes()]);
    let (object, status) = forget(&election, &["--newest-window"]);
    let why = object["why"].as_str().unwrap_or_default();
    assert_eq!(
        (object["outcome"].as_str(), object["key"].as_str(), status),
        (Some("running"), Some("w"), 2),
        "{object}"
    );
    assert!(why.contains("with --schedule the next leader does, while the window lasts (neli-run resign "), "{why}");
    assert!(!why.contains("once more"), "{why}");
}

/// A schedule has left out the newest window, which is over, after a run in the window before it.
#[test]
fn a_window_before_a_forgotten_one_stays_over_and_the_schedule_is_still_shown() {
    let election = election(Elector::Log);
    for topic in [election.topic(), format!("{}.once", election.topic())] {
        Kafka::shared().create_topic(&topic, &[]);
    }
    let pen = Pen::new(Kafka::shared(), &format!("{}.once", election.topic()), &[]);
    let fact = |day: u64, outcome: &str| {
        let from_ms = 1_769_817_600_000 + day * 86_400_000;
        format!(
            r#"{{"v":1,"key":"day-{day}","window_from_ms":{from_ms},"window_until_ms":{},"outcome":"{outcome}","term":{day},"attempt":1,"account":{{"schedule":"0 0 * * *","timezone":"UTC"}}}}"#,
            from_ms + 86_400_000
        )
    };
    pen.write(&format!("{}%attempt", election.key()), &[fact(0, "failed").as_bytes()]);
    pen.write(&election.key(), &[fact(1, "skipped").as_bytes()]);
    let next_windows = || election.ask("status", &["--json"]).json()["next_windows"].as_array().map(Vec::len);
    assert_eq!(next_windows(), Some(5));
    for force in [&[][..], &["--force"]] {
        let (object, status) = forget(&election, &[&["--once", "day-1"], force].concat());
        assert_eq!((object["outcome"].as_str(), status), (Some("nothing-recorded"), 3), "{object}");
        assert!(object["why"].as_str().is_some_and(|why| why.contains("--newest-window")), "{object}");
    }
    let answer = election.ask("status", &["--once", "day-1"]);
    assert!(answer.status == 3 && answer.text.contains(" runs by windows: "), "{answer:?}");
    let answer = election.ask("forget", &["--newest-window"]);
    assert!(
        answer.text.contains(": day-1 is forgotten: no candidate runs it any more, since this window is over"),
        "{answer:?}"
    );
    assert_eq!((next_windows(), answer.status), (Some(5), 0));
    let (object, status) = forget(&election, &["--newest-window"]);
    assert_eq!((object["outcome"].as_str(), status), (Some("nothing-recorded"), 3), "{object}");
}

/// A record that this version can't decode, because another program or a newer version wrote it.
#[test]
fn a_record_that_can_not_be_read_is_deleted_with_force() {
    for place in ["", "%attempt", "%forgotten"] {
        let election = election(Elector::Log);
        // This creates the topic of facts.
        assert_eq!(election.candidate().option("--once", "another").job(["true"]).start().status(), 0);
        let pen = Pen::new(Kafka::shared(), &format!("{}.once", election.topic()), &[]);
        pen.write(&format!("{}/{KEY}{place}", election.key()), &[b"nonsense"]);
        let mut candidate = once(&election, "true").start();
        let warning = candidate.await_event("warning");
        assert!(warning.text("message").contains("neli-run forget --force"), "{warning:?}");
        election.close([candidate]);
        let (object, status) = forget(&election, &["--once", KEY]);
        assert_eq!((object["outcome"].as_str(), status), (Some("unknown"), 4), "{object}");
        assert!(object["why"].as_str().is_some_and(|why| why.contains("--force")), "{object}");
        assert_eq!(runs(&election), 0);
        let (object, status) = forget(&election, &["--once", KEY, "--force"]);
        assert_eq!((object["outcome"].as_str(), status), (Some("forgotten"), 0), "{object}");
        assert_eq!(once(&election, "true").start().status(), 0);
        assert_eq!(once(&election, "true").start().status(), 0);
        assert_eq!(runs(&election), 1);
    }
}

/// Otherwise no window would ever run again.
#[test]
fn a_record_of_windows_that_can_not_be_read_is_deleted_with_force() {
    let election = election(Elector::Log);
    let clock = WallClock::new(&election, "a", 24 * 60 * 60 + 5);
    assert_eq!(start(&election, ("a", &clock), "true").status(), 0);
    let pen = Pen::new(Kafka::shared(), &format!("{}.once", election.topic()), &[]);
    // It can be decoded, but is not about a window.
    let of_a_key = br#"{"v":1,"key":"k","outcome":"done","term":0,"attempt":1}"#;
    for written in [&b"nonsense"[..], of_a_key] {
        pen.write(&election.key(), &[written]);
        assert_eq!(forget(&election, &["--newest-window"]).1, 4);
        assert_eq!(forget(&election, &["--newest-window", "--force"]).1, 0);
        assert_eq!(start(&election, ("a", &clock), "exit 3").status(), 3);
        assert_eq!(start(&election, ("a", &clock), "exit 4").status(), 3, "it has failed for good");
    }
}

/// On a terminal `forget` asks for confirmation, and writes nothing before the user confirms.
#[test]
fn at_a_terminal_it_is_confirmed() {
    let election = election(Elector::Log);
    assert_eq!(once(&election, "true").start().status(), 0);
    let mut terminal = Terminal::new(Shell::Dash, election.directory());
    let brokers = Kafka::shared().address();
    let line = format!("{PROGRAM} forget --once {KEY} --group {} --brokers {brokers}; echo status $?", election.group);
    for (answer, status) in [("", 1), ("n", 1), ("y", 0), ("y", 3)] {
        terminal.type_line(&line);
        if status < 3 {
            let question = terminal.await_text("Forget it? [y/N] ");
            assert!(question.contains("done by"), "{question}");
            terminal.type_line(answer);
        }
        terminal.await_text(&format!("status {status}"));
        terminal.await_prompt();
    }
    assert_eq!(once(&election, "true").start().status(), 0);
    assert_eq!(runs(&election), 2);
    let asked = terminal.run(&line.replace(" forget ", " forget --yes "));
    assert!(asked.contains(" is forgotten: ") && !asked.contains("[y/N]"), "{asked}");
    let line = line.replace(" forget ", " forget --yes --force ").replace("; echo", " >/dev/full; echo");
    let unprinted = terminal.run(&line);
    assert!(unprinted.contains(" is forgotten: ") && unprinted.contains("status 125"), "{unprinted}");
}
