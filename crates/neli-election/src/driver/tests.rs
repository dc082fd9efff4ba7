use neli_proto::topic::Risk;

use super::*;
use crate::handle::Election;

/// The warnings of a candidate after these events of its session.
fn warnings_after(events: Vec<SessionEvent>) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _entered = runtime.enter();
    let settings = Election::builder("billing").brokers("localhost:9").on_warning(|_| ()).settings().unwrap();
    let (mut driver, mut shared) = Driver::new(settings).unwrap();
    for event in events {
        driver.handle_session_event(event);
        driver.handle_timeouts();
        driver.perform();
    }
    let told = std::iter::from_fn(|| shared[0].events.try_recv().ok());
    told.filter_map(|event| if let Event::Warning { message } = event { Some(message) } else { None }).collect()
}

fn outage(error: &str) -> SessionEvent {
    SessionEvent::Outage { error: Some(error.to_owned()) }
}

fn given_up() -> SessionEvent {
    SessionEvent::AppendRefused { error: "no acknowledgement within 20000 ms".to_owned() }
}

/// Otherwise the program is told every 30 s that Kafka does not append, which is no news while it does not answer.
#[test]
fn while_no_broker_answers_a_record_that_is_given_up_is_no_second_trouble() {
    assert_eq!(warnings_after(vec![outage("refused"), given_up()]), ["Kafka does not answer: refused"]);
    let up = SessionEvent::Outage { error: None };
    let warnings = warnings_after(vec![outage("refused"), up, given_up()]);
    assert!(warnings.len() == 2 && warnings[1].starts_with("Kafka does not append"), "{warnings:?}");
}

/// The last failure is of another broker each time.
#[test]
fn an_outage_is_told_once_although_its_reason_changes() {
    let warnings =
        warnings_after(vec![outage("a:9092: refused"), outage("b:9092: refused"), outage("a:9092: refused")]);
    assert_eq!(warnings, ["Kafka does not answer: a:9092: refused"]);
}

/// R0: each candidate warns of what may lose records, once. A program with the library need not have `neli-run doctor`.
#[test]
fn risks_of_the_topic_are_a_warning_once() {
    let risks = || SessionEvent::Risks { role: 0, risks: vec![Risk::UncleanLeaderElection] };
    let warnings = warnings_after(vec![risks(), risks()]);
    let expected = "topic \"billing.neli\": unclean.leader.election.enable=true: ";
    assert!(warnings.len() == 1 && warnings[0].starts_with(expected), "{warnings:?}");
}
