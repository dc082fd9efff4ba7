use neli_proto::candidate;

use super::*;
use crate::handle::Election;
use crate::leadership::Leadership;

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

/// As `neli-run` says it.
#[test]
fn a_lease_that_does_not_outlive_a_broker_is_a_warning() {
    let warnings = warnings_after(vec![SessionEvent::BrokerSession(Duration::from_secs(60))]);
    assert!(warnings.len() == 1 && warnings[0].starts_with("the lease of 20000 ms is too short for"), "{warnings:?}");
    assert_eq!(warnings_after(vec![SessionEvent::BrokerSession(Duration::from_secs(9))]), [""; 0]);
}

/// No task may go on, and the program must not take what was known last for what is.
#[test]
fn a_panic_of_the_thread_ends_the_election_for_the_program() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _entered = runtime.enter();
    let settings = Election::builder("billing").brokers("localhost:9").on_warning(|_| ()).settings().unwrap();
    let (mut driver, mut shared) = Driver::new(settings).unwrap();
    driver.begin(0, 7, clock::now() + Duration::from_secs(60));
    driver.nodes.roles[0].publish(true, None);
    let tenure = shared[0].state.borrow().tenure.clone().unwrap();
    let panics = move || {
        let _driver = driver;
        std::panic::resume_unwind(Box::new(()))
    };
    let panicked: Result<(), _> = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
    assert!(panicked.is_err() && !tenure.is_valid());
    let told: Vec<Event> = std::iter::from_fn(|| shared[0].events.try_recv().ok()).collect();
    let why = "the election's thread has panicked".to_owned();
    assert_eq!(told, [Event::Acquired { term: 7 }, Event::warning(&why)], "whether the lead was released is unknown");
    assert!(shared[0].state.borrow().tenure.is_none());
    assert_eq!(shared[0].state.borrow().ended, Some(Error::System(why)));
}

/// A candidate that can't read on does not lead. Its program must learn why, as users of `neli-run` do.
#[test]
fn a_batch_that_can_not_be_decoded_is_a_warning_and_a_trouble() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _entered = runtime.enter();
    let settings = Election::builder("billing").brokers("localhost:9").on_warning(|_| ()).settings().unwrap();
    let (mut driver, mut shared) = Driver::new(settings).unwrap();
    let mut shared = shared.remove(0);
    let mut trouble_after = |event| {
        driver.handle_session_event(SessionEvent::Election { role: 0, event });
        driver.perform();
        driver.handle_timeouts();
        shared.state.borrow().trouble.clone()
    };
    let undecodable = candidate::Event::Undecodable { offset: 7, error: Some("a bad checksum".into()) };
    let damaged = candidate::Event::Undecodable { offset: 7, error: None };
    assert_eq!(trouble_after(damaged), None, "the next answer may be whole");
    let told = trouble_after(undecodable.clone());
    assert!(told.as_ref().is_some_and(|told| told.contains("offset 7 can't be decoded (a bad checksum)")), "{told:?}");
    for (event, lasts) in [
        (candidate::Event::Answered { asked: clock::now(), start: 0, end: 8 }, true),
        (candidate::Event::ReachedEnd { next: 8 }, false),
        (undecodable.clone(), true),
        (candidate::Event::HelloAsked { offset: 7 }, false),
        (undecodable, true),
    ] {
        assert_eq!(trouble_after(event.clone()).is_some(), lasts, "{event:?}");
    }
    let warning = Event::Warning { message: told.unwrap_or_default() };
    assert!(std::iter::from_fn(|| shared.events.try_recv().ok()).any(|event| event == warning));
    assert!(matches!(Election::joining(shared).leadership(), Leadership::Unknown { trouble: Some(_) }));
}
