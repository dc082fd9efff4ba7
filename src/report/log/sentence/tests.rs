//! Events as sentences.

use super::*;

#[test]
fn a_duration_is_readable() {
    let said = [0, 40, 999, 1_000, 1_250, 8_000, 59_999, 125_400].map(|ms| spoken(Duration::from_millis(ms)));
    assert_eq!(said, ["0ms", "40ms", "999ms", "1s", "1.25s", "8s", "59.999s", "2m 5s"]);
}

#[test]
fn each_reason_of_the_protocol_has_words() {
    for why in Why::ALL {
        let said = because(why.as_str());
        assert!(said != why.as_str() && !said.contains("supervisor"), "{said}");
    }
}

fn stopping(why: &str, timeout: Duration, at_lease_end: bool) -> Event {
    Event::Stopping { term: 42, why: why.to_owned(), signal: Some(15), timeout, at_lease_end }
}

#[test]
fn a_sentence_contains_the_event_then_the_reason_then_the_numbers() {
    let seconds = Duration::from_secs;
    let sentences = [
        Event::Standby { leader: Some("db2:77".to_owned()), term: Some(42), why: None, claim: None },
        Event::Standby {
            leader: None,
            term: None,
            why: Some("leader unknown".to_owned()),
            claim: Some(Due { wall_ms: 1_769_860_850_123, left: seconds(58) }),
        },
        Event::Assigned { partition: 0, leads: false },
        Event::Claiming { after: -1 },
        Event::Claiming { after: 41 },
        stopping("stopped", seconds(8), false),
        stopping("fenced", Duration::from_millis(1_350), true),
        stopping("stopped", Duration::from_millis(1_350), true),
        Event::Unhealthy { term: 42, failures: 2, reason: "exited with status 1".to_owned(), line: String::new() },
        Event::Exiting { status: 3, from: From::Job, why: None },
        Event::Exiting {
            status: 75,
            from: From::NeliRun,
            why: Some("not elected within --wait 3s; db2 leads".to_owned()),
        },
        Event::FenceWarning {
            term: 42,
            left: Duration::from_millis(1_350),
            silent: Duration::from_millis(3_650),
            unconfirmed: None,
        },
        Event::FenceWarning {
            term: 42,
            left: Duration::from_millis(1_350),
            silent: Duration::from_millis(3_650),
            unconfirmed: Some(seconds(5)),
        },
        Event::Fenced { term: 42, why: "fenced".to_owned(), left: Duration::from_millis(93), late: None },
        Event::Fenced {
            term: 42,
            why: "fenced".to_owned(),
            left: Duration::ZERO,
            late: Some(Duration::from_millis(2_501)),
        },
    ];
    assert_eq!(
        sentences.map(|event| event.sentence()),
        [
            "standing by: db2:77 leads (term 42)",
            "standing by: leader unknown; claiming at 12:00:50 (in 58s) unless another leader's record comes before",
            "preferred successor (partition 0 assigned)",
            "claiming the lead (journal empty)",
            "claiming the lead (journal read up to offset 41)",
            "stopping the job: a signal to neli-run; SIGTERM now, SIGKILL in 8s",
            "stopping the job: no heartbeat extends the lease; SIGTERM now, SIGKILL in 1.35s, at the lease's end",
            "stopping the job: a signal to neli-run; SIGTERM now, SIGKILL in 1.35s, at the lease's end, unless a heartbeat comes \
             back from Kafka",
            "job unhealthy: 2 checks in a row failed (last: the health command exited with status 1; term 42)",
            "exiting 3: the job's status",
            "exiting 75: not elected within --wait 3s; db2 leads",
            "no heartbeat has come back from Kafka for 3.65s: the lease ends in 1.35s unless one does (term 42)",
            "heartbeats come back from Kafka, but no broker has confirmed for 5s that the topic is still the same: the lease ends in \
             1.35s unless one does (term 42)",
            "fenced, the lease ran out: nothing of the job is left, 93ms before the lease's end (term 42)",
            "fenced too late, the lease ran out: a process of the job may have been alive until 2.501s after the lease's end, and another \
             candidate's job may have run beside it (term 42); check what they wrote, and find out why this machine killed too late",
        ]
    );
}

#[test]
fn sentences_about_the_outcome_of_a_run_and_about_kafka() {
    let seconds = Duration::from_secs;
    let sentences = [
        Event::JobExited { term: 42, status: 137, signal: Some(9), ran: seconds(3_725), by_itself: true },
        Event::Released { term: 42, why: "exited".to_owned(), delivered: true },
        Event::OnceSkipped {
            key: "v1.42".to_owned(),
            newer: None,
            by: "db2".to_owned(),
            term: 57,
            at: Some("2026-01-31T02:00:04Z".to_owned()),
            exit: 0,
            ran: Some(Duration::from_millis(3_200)),
            done: true,
            is_window: false,
        },
        Event::OnceSkipped {
            key: "2026-01-31T00:00:00Z".to_owned(),
            newer: Some("2026-02-01T00:00:00Z".to_owned()),
            by: "db2".to_owned(),
            term: 58,
            at: None,
            exit: 3,
            ran: None,
            done: false,
            is_window: true,
        },
        Event::BrokerDown { error: "kafka:9092: connection refused".to_owned(), down: seconds(30) },
        Event::TopicCreated { topic: "g.neli".to_owned(), replicas: 1, brokers: 1 },
        Event::TopicCreated { topic: "g.neli".to_owned(), replicas: 3, brokers: 4 },
    ];
    assert_eq!(
        sentences.map(|event| event.sentence()),
        [
            "the job was ended by SIGKILL after 1h 2m 5s (status 137)",
            "released term 42: the job has ended",
            "v1.42 was done by db2 at 2026-01-31T02:00:04Z (term 57, exit 0 after 3.2s)",
            "2026-01-31T00:00:00Z is over: 2026-02-01T00:00:00Z failed, run by db2 (term 58, exit 3); no retries are left; \
             neli-run forget --newest-window makes it run again",
            "Kafka has not answered for 30s: kafka:9092: connection refused; waiting",
            "created the topic \"g.neli\" with 1 replica (1 broker up); brokers that are added later get no replica, and a warning \
             at the next start then says how to add one",
            "created the topic \"g.neli\" with 3 replicas (4 brokers up)",
        ]
    );
}
