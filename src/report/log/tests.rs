use std::io::Read;

use super::*;

const AT: u64 = 1_769_860_800_123;
const JSON: bool = true;
const TEXT: bool = false;

/// The line of an event in JSON.
pub(super) fn line_of(event: &Event) -> String {
    event::line(&form(JSON), AT, event)
}

fn form(is_json: bool) -> Form {
    let (name, group) = ("db1".to_owned(), "billing".to_owned());
    Form { is_json, has_priorities: false, least: Level::Info, name, pid: 77, group, role: None }
}

fn pipe() -> (io::PipeReader, OwnedFd) {
    let (reader, writer) = io::pipe().unwrap();
    (reader, writer.into())
}

fn leading(term: i64) -> Event {
    Event::info("leading", format!("leading, term {term}")).with(json!({ "term": term }))
}

#[test]
fn a_line_has_the_documented_form() {
    let event = leading(42);
    assert_eq!(
        event::line(&form(JSON), AT, &event),
        "{\"ts\":\"2026-01-31T12:00:00.123Z\",\"level\":\"info\",\"event\":\"leading\",\"group\":\"billing\",\"role\":0,\
         \"name\":\"db1\",\"term\":42}\n"
    );
    assert_eq!(
        event::line(&form(TEXT), AT, &event),
        "2026-01-31T12:00:00.123Z neli-run[77] billing: info: leading, term 42\n"
    );
}

#[test]
fn the_journal_gets_each_line_s_priority() {
    let form = Form { has_priorities: true, ..form(TEXT) };
    let events = [leading(42), Event::warning("three"), Event::error("seven")];
    let lines = events.map(|event| form.line(&event));
    assert_eq!(lines.each_ref().map(|line| &line[..5]), ["<6>20", "<4>20", "<3>20"]);
    assert!(lines[1].contains(" billing: warning: three"), "{}", lines[1]);
}

#[test]
fn control_characters_of_another_candidates_name_are_escaped() {
    let event = Event::info("standby", "standing by: evil\n\u{1b}[2J leads");
    let line = event::line(&form(TEXT), AT, &event);
    assert!(line.ends_with("standing by: evil\\n\\u{1b}[2J leads\n"), "{line:?}");
}

#[test]
fn a_line_enters_a_pipe_in_one_piece() {
    let event = Event::warning("ä".repeat(10_000));
    for format in [JSON, TEXT] {
        let line = event::line(&form(format), AT, &event);
        assert!(line.len() <= 4_096 && line.ends_with('\n'), "{}", line.len());
    }
}

/// A record of another candidate may contain any text.
#[test]
fn text_from_other_candidates_makes_no_line_too_long() {
    let long = "\u{1}".repeat(5_000);
    let quotes = "\"".repeat(3_000);
    let events = [
        Event::info("resigned", long.clone()).with(json!({ "term": 1, "by": long, "reason": long })),
        Event::info("standby", long.clone()).with(json!({ "leader": quotes, "why": long })),
    ];
    for event in events {
        let line = event::line(&form(JSON), AT, &event);
        assert!(line.len() <= 4_096 && line.ends_with("}\n"), "{}", line.len());
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((line["event"].as_str(), line["group"].as_str()), (Some(event.name), Some("billing")));
        assert!(event::line(&form(TEXT), AT, &event).len() <= 4_096);
    }
}

fn log_to(file: &Path) -> Logger {
    let (file_shown, file) = (file.display().to_string(), Some(file.to_owned()));
    Logger::start(&Log { is_json: TEXT, verbosity: 0, file, file_shown }, "b", "db1").unwrap()
}

fn say(logger: &Logger, message: &str) {
    logger.event(&Event::warning(message));
    while !logger.queue.is_written() {
        std::thread::yield_now();
    }
}

/// The lines of a file.
fn said(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect()
}

/// Both ways of `logrotate`: the file is renamed, or copied and truncated.
#[test]
fn a_renamed_file_is_replaced_by_a_new_one_and_a_truncated_one_is_continued() {
    let directory = tempfile::tempdir().unwrap();
    let (file, old) = (directory.path().join("log"), directory.path().join("log.1"));
    let logger = log_to(&file);
    say(&logger, "first");
    fs::rename(&file, &old).unwrap();
    say(&logger, "second");
    say(&logger, "third");
    assert_eq!((said(&old), said(&file)), (vec!["first".to_owned()], vec!["second".to_owned(), "third".to_owned()]));
    File::options().write(true).open(&file).unwrap().set_len(0).unwrap();
    say(&logger, "fourth");
    assert_eq!(said(&file), ["fourth"]);
    fs::remove_dir_all(directory.path()).unwrap();
    say(&logger, "into-the-void");
}

#[test]
fn an_error_names_a_pipe_without_a_reader() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let log = Log { is_json: TEXT, verbosity: 0, file: Some(path), file_shown: "--log-file pipe".to_owned() };
    let refusal = Sink::open(&log).unwrap_err();
    let line = "--log-file pipe: can't be opened: it is a named pipe that nobody reads, or a socket";
    assert_eq!((crate::exit::line_of(&refusal), crate::exit::status_of(&refusal).code()), (line.to_owned(), 125));
    let full = not_opened(&log, io::Error::from(Errno::ENOSPC));
    let line = "--log-file pipe: can't be opened: no space left on device";
    assert_eq!((crate::exit::line_of(&full), crate::exit::status_of(&full).code()), (line.to_owned(), 86));
}

#[test]
fn a_file_is_checked_as_a_candidate_opens_it_and_is_not_created() {
    let directory = tempfile::tempdir().unwrap();
    let check = |name: &str| {
        let file = Some(directory.path().join(name));
        let log = Log { is_json: TEXT, verbosity: 0, file, file_shown: format!("--log-file {name}") };
        let checked = check_file(&log).map_err(|error| crate::exit::line_of(&error));
        assert_eq!(fs::exists(log.file.as_ref().unwrap()).unwrap(), name == "." || name == "there");
        assert_eq!(Sink::open(&log).map(drop).map_err(|error| crate::exit::line_of(&error)), checked, "{name}");
        checked
    };
    fs::write(directory.path().join("there"), "a line\n").unwrap();
    assert_eq!(check("there"), Ok(()));
    assert_eq!(check("new"), Ok(()));
    assert_eq!(check("."), Err("--log-file .: can't be opened: is a directory".to_owned()));
    assert_eq!(
        check("missing/new"),
        Err("--log-file missing/new: can't be opened: no such file or directory".to_owned())
    );
    assert_eq!(fs::read_to_string(directory.path().join("there")).unwrap(), "a line\n");
}

#[test]
fn lines_are_written_in_order() {
    let (mut reader, writer) = pipe();
    let logger = Logger::start_on(writer.into(), form(TEXT)).unwrap();
    (0..100).for_each(|term| logger.event(&leading(term)));
    logger.finish();
    drop(logger);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    let terms: Vec<&str> = text.lines().filter_map(|line| line.rsplit(' ').next()).collect();
    assert_eq!(terms, (0..100).map(|term| term.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_full_pipe_stalls_nothing_and_the_lost_lines_are_counted() {
    let (mut reader, writer) = pipe();
    let logger = Logger::start_on(writer.into(), form(JSON)).unwrap();
    // More lines than a pipe (64 KiB) and the queue can contain.
    let padding = "x".repeat(900);
    (0..2_000).for_each(|_| logger.event(&Event::warning(padding.as_str())));
    let mut bytes = vec![0; 64 * 1_024];
    let mut text = Vec::new();
    // Once there is room, the next line reports the number of lost lines, and comes after that report.
    while locked(&logger.queue.state).lines.len() >= QUEUE_LINES - 2 {
        let length = reader.read(&mut bytes).unwrap();
        text.extend_from_slice(&bytes[..length]);
    }
    logger.event(&Event::warning("after"));
    let drain = std::thread::spawn(move || {
        reader.read_to_end(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    });
    while !locked(&logger.queue.state).lines.is_empty() {
        std::thread::yield_now();
    }
    logger.finish();
    drop(logger);
    let text = drain.join().unwrap();
    let messages: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [.., missing, last] = messages.as_slice() else { panic!("{text}") };
    assert_eq!(last["message"], "after");
    assert_eq!(missing["dropped"].as_u64().unwrap() + messages.len() as u64, 2_002);
}

#[test]
fn an_unread_pipe_delays_the_exit_by_a_tenth_of_a_second() {
    let (reader, writer) = pipe();
    let logger = Logger::start_on(writer.into(), form(JSON)).unwrap();
    (0..1_500).for_each(|_| logger.event(&Event::warning("x".repeat(900))));
    let start = clock::now();
    logger.finish();
    let took = clock::now().since(start);
    assert!(took >= DRAIN && took < STARVATION, "{took:?}");
    drop(reader);
}

/// This happens with the lines of librdkafka's threads at `-v` while the process ends.
#[test]
fn a_line_after_the_end_does_not_delay_the_exit() {
    let (_reader, writer) = pipe();
    let logger = Logger::start_on(writer.into(), form(TEXT)).unwrap();
    logger.event(&Event::warning("the last one"));
    logger.finish();
    while Arc::strong_count(&logger.queue) > 1 {
        std::thread::yield_now();
    }
    logger.event(&Event::warning("after"));
    assert!(logger.queue.is_written(), "nobody will write it");
}

#[test]
fn a_closed_pipe_does_not_end_the_process() {
    let (reader, writer) = pipe();
    drop(reader);
    let logger = Logger::start_on(writer.into(), form(TEXT)).unwrap();
    // Each line that is taken makes room for the count of those that were dropped so far.
    let is_dropped = (0..100_000).any(|term| {
        logger.event(&leading(term));
        locked(&logger.queue.state).dropped > 0
    });
    assert!(is_dropped, "nothing is dropped");
    logger.finish();
}

#[test]
fn quiet_means_warnings_and_errors() {
    let (mut reader, writer) = pipe();
    let logger = Logger::start_on(writer.into(), Form { least: Level::Warning, ..form(TEXT) }).unwrap();
    logger.event(&leading(1));
    logger.event(&Event::warning("heard"));
    logger.finish();
    drop(logger);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(text.lines().count() == 1 && text.ends_with("warning: heard\n"), "{text}");
}
