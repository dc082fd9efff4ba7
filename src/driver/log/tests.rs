use std::io::Read;

use super::*;

const AT: u64 = 1_769_860_800_123;

fn form(format: LogFormat) -> Form {
    Form { format, least: Level::Info, group: "billing".to_owned(), role: 0 }
}

fn pipe() -> (std::io::PipeReader, OwnedFd) {
    let (reader, writer) = std::io::pipe().unwrap();
    (reader, writer.into())
}

fn warning(message: &str) -> Event {
    Event::Warning { message: message.to_owned(), dropped: None }
}

#[test]
fn a_line_is_what_the_interface_says() {
    let event = Event::Leading { term: 42 };
    assert_eq!(
        event::line(LogFormat::Json, AT, "billing", 0, &event),
        "{\"ts\":\"2026-01-31T12:00:00.123Z\",\"level\":\"info\",\"event\":\"leading\",\"group\":\"billing\",\"role\":0,\
         \"term\":42}\n"
    );
    assert_eq!(
        event::line(LogFormat::Text, AT, "billing", 0, &event),
        "2026-01-31T12:00:00.123Z neli-run billing: info: leading, term 42\n"
    );
}

#[test]
fn the_fields_have_the_names_that_scripts_read() {
    let event = Event::JobExited { term: 42, status: 137, signal: Some(9), ran: Duration::from_millis(1_250) };
    let line: serde_json::Value = serde_json::from_str(&event::line(LogFormat::Json, AT, "b", 0, &event)).unwrap();
    assert_eq!(line["event"], "job_exited");
    assert_eq!(line["status"], 137);
    assert_eq!(line["signal"], 9);
    assert_eq!(line["ran_ms"], 1_250);
    let event = Event::Exiting { status: 3, from: From::NeliRun };
    let line: serde_json::Value = serde_json::from_str(&event::line(LogFormat::Json, AT, "b", 0, &event)).unwrap();
    assert_eq!(line["from"], "neli-run");
}

#[test]
fn a_stranger_s_name_is_one_line_and_moves_no_cursor() {
    let event = Event::Standby { leader: Some("evil\n\u{1b}[2J".to_owned()), term: None, why: None };
    let line = event::line(LogFormat::Text, AT, "b", 0, &event);
    assert!(line.ends_with("standing by: evil\\n\\u{1b}[2J leads\n"), "{line:?}");
}

#[test]
fn a_line_enters_a_pipe_in_one_piece() {
    let event = warning(&"ä".repeat(10_000));
    for format in [LogFormat::Json, LogFormat::Text] {
        let line = event::line(format, AT, "billing", 0, &event);
        assert!(line.len() <= 4_096 && line.ends_with('\n'), "{}", line.len());
    }
}

#[test]
fn lines_come_out_in_their_order() {
    let (mut reader, writer) = pipe();
    let logger = Logger::start_on(writer, form(LogFormat::Text)).unwrap();
    (0..100).for_each(|term| logger.event(&Event::Leading { term }));
    logger.finish();
    drop(logger);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    let terms: Vec<&str> = text.lines().filter_map(|line| line.rsplit(' ').next()).collect();
    assert_eq!(terms, (0..100).map(|term| term.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_full_pipe_stalls_nobody_and_what_it_costs_is_said_where_it_is_missing() {
    let (mut reader, writer) = pipe();
    let logger = Logger::start_on(writer, form(LogFormat::Json)).unwrap();
    // More than a pipe (64 KiB) and the queue hold.
    let padding = "x".repeat(900);
    (0..2_000).for_each(|_| logger.event(&warning(&padding)));
    let mut bytes = vec![0; 64 * 1_024];
    let mut text = Vec::new();
    // Once there is room, the next line says what was lost, and follows it.
    while logger.queue.state().lines.len() >= KEPT - 2 {
        let length = reader.read(&mut bytes).unwrap();
        text.extend_from_slice(&bytes[..length]);
    }
    logger.event(&warning("after"));
    let drain = std::thread::spawn(move || {
        reader.read_to_end(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    });
    while !logger.queue.state().lines.is_empty() {
        std::thread::yield_now();
    }
    logger.finish();
    drop(logger);
    let text = drain.join().unwrap();
    let messages: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [.., missing, last] = messages.as_slice() else { panic!("{text}") };
    assert_eq!(last["message"], "after");
    assert_eq!(missing["dropped"].as_u64().unwrap() + messages.len() as u64, 2_002);
}

#[test]
fn a_pipe_that_nobody_empties_holds_up_the_end_for_a_tenth_of_a_second() {
    let (reader, writer) = pipe();
    let logger = Logger::start_on(writer, form(LogFormat::Json)).unwrap();
    (0..1_500).for_each(|_| logger.event(&warning(&"x".repeat(900))));
    let start = clock::now();
    logger.finish();
    let took = clock::now().since(start);
    assert!(took >= DRAIN && took < DRAIN * 10, "{took:?}");
    drop(reader);
}

#[test]
fn a_closed_pipe_is_no_reason_to_die() {
    let (reader, writer) = pipe();
    drop(reader);
    let logger = Logger::start_on(writer, form(LogFormat::Text)).unwrap();
    (0..1_500).for_each(|term| logger.event(&Event::Leading { term }));
    assert!(logger.queue.state().dropped > 0);
    logger.finish();
}

#[test]
fn quiet_means_warnings_and_errors() {
    let (mut reader, writer) = pipe();
    let logger = Logger::start_on(writer, Form { least: Level::Warning, ..form(LogFormat::Text) }).unwrap();
    logger.event(&Event::Leading { term: 1 });
    logger.event(&warning("heard"));
    logger.finish();
    drop(logger);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(text.lines().count() == 1 && text.ends_with("warning: heard\n"), "{text}");
}
