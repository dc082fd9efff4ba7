//! Notes as events.

use neli_proto::candidate::{Durations, Waiting};
use neli_proto::hooks::Hook;
use neli_proto::mapping::Mapping;
use neli_proto::time::Span;
use nix::libc;

use super::*;

const MOMENT_MS: u64 = 1_769_860_792_123;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn timings() -> Timings {
    let durations = Durations {
        lease: ms(5_000),
        heartbeat_interval: ms(1_000),
        kill_margin: ms(100),
        fence_warning: ms(1_500),
        preempt_after: None,
        overlap: None,
    };
    Timings::new(durations, Elector::Log).unwrap()
}

/// The event for a note of a node whose lease ends, or that claims, in `left`.
fn noted_with(note: &Note, left: Duration) -> Event {
    event(note, moment(left, &timings()))
}

fn moment(left: Duration, timings: &Timings) -> Moment<'_> {
    Moment {
        topic: "billing.neli",
        command: OsStr::new("./job"),
        stop_signal: Some(15),
        timings,
        guard: 7,
        guard_end: None,
        was_guard_killed: false,
        now: Time::ZERO,
        wall_ms: MOMENT_MS,
        lease_end: Some(Time::ZERO + left),
        claims_at: Some(Time::ZERO + left),
        leadership: Leadership::NeverLed,
        is_leader_silent: false,
    }
}

/// A machine died, and this candidate was started after its lease.
#[test]
fn a_leader_that_has_been_silent_for_longer_than_its_lease_led_last() {
    let timings = timings();
    let silent = Moment { is_leader_silent: true, ..moment(ms(9_500), &timings) };
    let led = event(&standby(Some("db1"), Some(0), Waiting::Led), silent);
    let claim = "claiming at 12:00:01 (in 10s) unless another leader's record comes before";
    assert_eq!(led.sentence(), format!("standing by: db1 led last (term 0); {claim}"));
}

fn noted(note: &Note) -> Event {
    noted_with(note, ms(60_000))
}

fn standby(leader: Option<&str>, term: Option<Offset>, why: Waiting) -> Note {
    Note::Standby(StandbyReason { leader: leader.map(Into::into), term, why: Some(why) })
}

fn stopping(why: Why, timeout: Duration) -> Note {
    Note::Stopping { term: 42, why, timeout }
}

fn fact(key: &str, outcome: Outcome, term: Offset, exit: u8) -> Fact {
    Fact { name: Some("db2".into()), exit: Some(exit), ..Fact::new(key, outcome, term) }
}

#[test]
fn a_sentence_contains_the_event_then_the_reason_then_the_numbers() {
    let failure = Failure { count: 2, end: CommandEnd::Exited(1), last_line: "".into() };
    let warning = |unconfirmed| Note::FenceWarning { term: 42, left: ms(1_350), silent: ms(3_650), unconfirmed };
    let fenced = |left, late| Note::Fenced { term: 42, why: Why::Fenced, loss: Loss::LeaseOver, left, late };
    let sentences = [
        noted(&standby(Some("db2:77"), Some(42), Waiting::Led)),
        noted_with(&standby(None, None, Waiting::Undecided), ms(57_999)),
        noted(&Note::BrokerDown { error: "kafka:9092: connection refused".to_owned(), down: ms(30_000) }),
        noted(&Note::Claiming { after: -1 }),
        noted(&Note::Claiming { after: 41 }),
        noted(&stopping(Why::Stopped, ms(8_000))),
        noted_with(&stopping(Why::Fenced, ms(8_000)), ms(1_450)),
        noted_with(&stopping(Why::Stopped, ms(8_000)), ms(1_450)),
        noted(&Note::HealthFailed { term: 42, failure, most: 2 }),
        noted(&warning(None)),
        noted(&warning(Some(ms(5_000)))),
        noted(&fenced(ms(93), None)),
        noted(&fenced(Duration::ZERO, None)),
        noted(&fenced(Duration::ZERO, Some(ms(2_501)))),
    ];
    assert_eq!(
        sentences.map(|event| event.sentence().to_owned()),
        [
            "standing by: db2:77 leads (term 42)",
            "standing by: leader unknown; claiming at 12:00:50 (in 58s) unless another leader's record comes before",
            "Kafka has not answered for 30s: kafka:9092: connection refused; waiting",
            "claiming the lead: nobody has ever led",
            "claiming the lead: nobody has ever led; journal read up to offset 41",
            "stopping the job: a signal to neli-run; SIGTERM now, SIGKILL in 8s",
            "stopping the job: no heartbeat extends the lease; SIGTERM now, SIGKILL in 1.35s, at the lease's end",
            "stopping the job: a signal to neli-run; SIGTERM now, SIGKILL in 1.35s, at the lease's end, unless a heartbeat comes \
             back from Kafka",
            "job unhealthy: 2 checks in a row failed (last: the health command exited with status 1; term 42)",
            "no heartbeat has come back from Kafka for 3.65s: the lease ends in 1.35s unless one does (term 42)",
            "heartbeats came back from Kafka, but no broker had confirmed for 5s that the topic is still the same (-v logs why): the lease ends in \
             1.35s unless one does (term 42)",
            "fenced, no heartbeat extended the lease: nothing of the job is left, 93ms before the lease's end (term 42)",
            "fenced, no heartbeat extended the lease: nothing of the job is left (term 42)",
            "fenced too late, no heartbeat extended the lease: a process of the job may have been alive until 2.501s after the lease's end, and another \
             candidate's job may have run beside it (term 42); check what they wrote, and why this machine killed too late \
             (neli-run doctor)",
        ]
    );
}

#[test]
fn sentences_about_the_outcome_of_a_run() {
    let (ran_ms, at_ms) = (Some(3_200), Some(1_769_824_804_000));
    let done = Fact { ran_ms, at_ms, ..fact("v1.42", Outcome::Done, 57, 0) };
    let window = Some(Span { from_ms: 1, until_ms: 2 });
    let failed = Fact { window, ..fact("2026-02-01T00:00:00Z", Outcome::Failed, 58, 3) };
    let left_out = Fact { exit: None, ..fact("2026-02-01T00:00:00Z", Outcome::Skipped, 59, 0) };
    let sentences = [
        noted(&Note::JobExited { term: 42, status: JobStatus::Signaled(9), ran: ms(3_725_000), by_itself: true }),
        noted(&Note::JobExited { term: 42, status: JobStatus::Signaled(9), ran: ms(2_152), by_itself: false }),
        noted(&Note::Released { term: 42, why: Why::Exited, delivered: true }),
        noted(&Note::Released { term: 42, why: Why::Stopped, delivered: false }),
        noted(&Note::Released { term: 42, why: Why::RestartLimit, delivered: true }),
        noted(&Note::OnceSkipped { key: "v1.42".into(), fact: done.into() }),
        noted(&Note::OnceSkipped { key: "2026-01-31T00:00:00Z".into(), fact: failed.into() }),
        noted(&Note::OnceSkipped { key: "2026-01-31T00:00:00Z".into(), fact: left_out.into() }),
    ];
    assert_eq!(
        sentences.map(|event| event.sentence().to_owned()),
        [
            "the job was ended by SIGKILL after 1h 2m 5s (status 137); perhaps for lack of memory: then the kernel's log names it",
            "the job was ended by SIGKILL after 2.152s (status 137)",
            "released term 42: the job has ended",
            "released term 42: a signal to neli-run; Kafka has not confirmed it, so the others may have to wait out the lease",
            "released term 42: the job failed too often; this process does not stand for this election again until it is restarted",
            "v1.42 was done by db2 at 2026-01-31T02:00:04.000Z (term 57, exit 0 after 3.2s)",
            "2026-01-31T00:00:00Z is not run any more, since the newer window 2026-02-01T00:00:00Z failed, run by db2 (term 58, exit 3); no retries are left; \
             neli-run forget --newest-window makes it run again",
            "2026-01-31T00:00:00Z is not run any more, since the newer window 2026-02-01T00:00:00Z was left out by the schedule of db2 (term 59)",
        ]
    );
}

#[test]
fn the_end_of_the_guard_is_named_and_who_may_have_killed_it() {
    let (timings, in_memory) = (timings(), "; perhaps for lack of memory: then the kernel's log names it");
    for (is_killed, end, how, hint) in [
        (false, None, "", in_memory),
        (false, Some(9), " (SIGKILL)", in_memory),
        (true, Some(9), " (neli-run killed it)", ""),
        (false, Some(11), " (SIGSEGV)", ""),
        (false, Some(libc::EMFILE << 8), " (too many open files)", ""),
        (false, Some(libc::EAGAIN << 8), " (try again (ulimit -u, pids.max))", ""),
        (false, Some(127 << 8), " (exit status 127)", ""),
        (false, Some(255 << 8), " (exit status 255)", ""),
    ] {
        let moment = Moment { guard_end: end.map(ExitStatus::from_raw), ..moment(ms(60_000), &timings) };
        assert_eq!(
            event(&Note::GuardLost { is_killed }, moment).sentence(),
            format!("the guard (pid 7) died{how}: no job runs without one, and another is started{hint}")
        );
    }
    let killed = ExitStatus::from_raw(9);
    let moment = Moment { guard_end: Some(killed), was_guard_killed: true, ..moment(ms(60_000), &timings) };
    assert_eq!(
        event(&Note::GuardLost { is_killed: false }, moment).sentence(),
        "the guard (pid 7) died (it had closed its socket, and neli-run killed it): no job runs without one, and another is started"
    );
}

/// The object of a line, without what is the same in each.
fn object(note: &Note) -> String {
    let line = noted(note).json_line();
    line.trim_end().to_owned()
}

/// Once its window is over, that it was not finished is said of it.
#[test]
fn a_run_that_could_not_be_started_is_said_to_be_recorded_as_begun() {
    let sentence = noted(&Note::NotStarted { errno: 2, counts: false }).sentence().to_owned();
    assert_eq!(
        sentence,
        "./job: can't be started: no such file or directory; the run is recorded as begun, without an outcome, and this candidate releases: \
         another may run the job, or this one later"
    );
}

#[test]
fn a_refusal_beside_another_candidate_names_the_option() {
    let overlap = |is_theirs| Refusal::Overlap { name: "web2".into(), is_theirs };
    let differs = Mapping::new("4", 4).refusal(&Mapping::new("4", 3), "web2").expect("role 3 has two places");
    for (refusal, message) in [
        (
            overlap(true),
            "--overlap is missing: web2 stands in this election with it; all its candidates need it, or none",
        ),
        (overlap(false), "--overlap: web2 stands in this election without it; all its candidates need it, or none"),
        (
            Refusal::Roles(Box::new(differs)),
            "--roles 4 on 4 partitions: role 3 would be in partition 3, and web2 has it in partition 0 (--roles 4 on 3 partitions): both \
             would lead it; stop all candidates before they start with another mapping",
        ),
    ] {
        let object = object(&Note::Refused(refusal));
        assert!(object.contains(&format!(r#""message":"{message}""#)), "{object}");
    }
}

#[test]
fn the_fields_have_the_names_and_the_order_that_scripts_read() {
    let loss = Loss::HistoryCut;
    let failure = Failure { count: 2, end: CommandEnd::TimedOut, last_line: "503".into() };
    let span = Span { from_ms: 1_769_824_800_000, until_ms: 1_769_828_400_000 };
    let by = Some("db2".into());
    for (note, level, name, fields) in [
        (
            Note::JobExited { term: 42, status: JobStatus::Signaled(9), ran: ms(1_250), by_itself: true },
            "warning",
            "job_exited",
            r#""term":42,"status":137,"signal":9,"ran_ms":1250"#,
        ),
        (
            Note::JobExited { term: 42, status: JobStatus::Exited(0), ran: ms(1_250), by_itself: true },
            "info",
            "job_exited",
            r#""term":42,"status":0,"signal":null,"ran_ms":1250"#,
        ),
        (
            Note::JobExited { term: 42, status: JobStatus::Exited(143), ran: ms(1), by_itself: false },
            "info",
            "job_exited",
            r#""term":42,"status":143,"signal":null,"ran_ms":1"#,
        ),
        (
            Note::Fenced {
                term: 42,
                why: Why::Fenced,
                loss,
                left: Duration::ZERO,
                late: Some(Duration::from_nanos(1)),
            },
            "error",
            "fenced",
            r#""term":42,"why":"history-cut","left_ms":0,"late_ms":1"#,
        ),
        (Note::GuardLost { is_killed: false }, "error", "guard_lost", r#""pid":7"#),
        (
            Note::HookFailed { hook: Hook::Lead, end: CommandEnd::Exited(1) },
            "warning",
            "hook_failed",
            r#""hook":"lead","reason":"exited with status 1""#,
        ),
        (
            Note::HealthFailed { term: 42, failure, most: 2 },
            "warning",
            "unhealthy",
            r#""term":42,"failures":2,"reason":"took too long and was killed","line":"503""#,
        ),
        (Note::Ended { by: None, reason: None }, "info", "ended", r#""by":"somebody","reason":"""#),
        (
            Note::Superseded { term: 42, by_term: Some(43), by },
            "error",
            "superseded",
            r#""term":42,"by_term":43,"leader":"db2""#,
        ),
        (standby(Some("db2"), Some(42), Waiting::Led), "info", "standby", r#""leader":"db2","term":42"#),
        (
            standby(None, None, Waiting::Undecided),
            "info",
            "standby",
            r#""why":"leader unknown","claim_at":"2026-01-31T12:00:52.123Z""#,
        ),
        (
            stopping(Why::Stopped, ms(8_000)),
            "info",
            "stopping",
            r#""term":42,"why":"stopped","signal":15,"timeout_ms":8000"#,
        ),
        (
            Note::WindowsSkipped { span, why: "no-run" },
            "warning",
            "window_skipped",
            r#""from":"2026-01-31T02:00:00Z","until":"2026-01-31T03:00:00Z","why":"no-run""#,
        ),
        (
            Note::NotStarted { errno: 2, counts: true },
            "error",
            "error",
            r#""message":"./job: can't be started: no such file or directory; this counts as a failed run""#,
        ),
        (Note::Refused(Refusal::Said("no".into())), "error", "error", r#""message":"no""#),
    ] {
        let event = format!(
            r#"{{"ts":"2026-01-31T12:00:00.123Z","level":"{level}","event":"{name}","group":"billing","role":0,"name":"db1",{fields}}}"#
        );
        assert_eq!(object(&note), event);
    }
}

#[test]
fn the_lease_s_end_is_the_reason_for_sigkill_only_if_a_heartbeat_is_overdue() {
    let timings = timings();
    let shown = |why, timeout, left| sigkill_in(why, ms(timeout), Some(ms(left)), &timings);
    for why in [Why::Stopped, Why::Resigned, Why::Unhealthy] {
        assert_eq!(shown(why, 8_000, 1_450), (ms(1_350), true), "{why}");
        assert_eq!(shown(why, 8_000, 2_999), (ms(2_899), true), "{why}");
        assert_eq!(shown(why, 8_000, 3_000), (ms(8_000), false), "{why}: heartbeats come back");
        assert_eq!(shown(why, 1_350, 1_450), (ms(1_350), false), "{why}: the stop timeout is over first");
        assert_eq!(shown(why, 8_000, 50), (ms(0), true), "{why}");
    }
    assert_eq!(shown(Why::Fenced, 8_000, 4_000), (ms(3_900), true));
    assert_eq!(sigkill_in(Why::Fenced, ms(8_000), None, &timings), (ms(8_000), false));
}

#[test]
fn a_guard_that_does_not_end_is_no_process_of_the_job() {
    let alone = stuck_guard(5, &[], true);
    assert!(alone.starts_with("the guard (pid 5) can't be killed; no process of the job is seen any more"), "{alone}");
    assert!(
        stuck_guard(5, &[7], true).contains("; something is left of the job too (pid 7): the term is not released")
    );
    assert!(stuck_guard(5, &[], false).contains("; whether a process of the job is left is unknown "));
}

#[test]
fn remaining_processes_are_named_if_visible() {
    assert!(stuck(&[7]).contains("a frozen control group"));
    assert!(stuck(&[7, 8]).starts_with("what is left of the job can't be killed (pid 7, 8): the term is not released"));
    let unseen = stuck(&[]);
    assert!(unseen.contains("/proc can't be read") && unseen.contains("ulimit -n"), "{unseen}");
}
