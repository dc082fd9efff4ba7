//! The pages quote the program's own texts. Messages are compared with the sources, and options with the parser.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use neli_run::cli::{self, validate};

/// The page that quotes messages.
const QUOTING: &str = "docs/troubleshooting.md";

/// Messages that say what they need, so the page has no row for them.
const SAY_WHAT_TO_DO: [&str; 89] = [
    "Kafka does not answer: …",
    "Kafka has not answered for …",
    "it is unknown who leads: …",
    "…Kafka does not append this candidate's records…",
    "topic …: the batch at offset … can't be decoded …",
    "topic …: the batch at offset … was read, or deleted: …",
    "the journal is read again, after …",
    "the journal's reader has delivered no record …",
    "the topic was deleted and made again: …",
    "…; that candidate may have left: …",
    "…; until the group takes …",
    "the lease of … ms is …",
    "too short for the unclean death of a broker: …",
    "…; until one can be, which is tried each 5s, …",
    "heartbeats came back from Kafka, but no broker had confirmed …",
    "…: the lease is over (term …)",
    "fenced too late, …",
    "superseded: … leads…, though term …",
    "the guard (pid …) died…: …",
    "… of the job can't be killed (pid …): …",
    "…: can't be started: …",
    "neli-run has a bug and ends: …",
    "killing all that is left of the job…",
    "the job's main process has ended and left …",
    "… the health command …",
    "COMMAND has not been executed for …",
    "without CAP_KILL, which root has …",
    "the topic of facts was missing …",
    "the outcomes of runs can't be read …",
    "NOTIFY_SOCKET=…: …; the service manager …",
    "bootstrap servers of two clusters: …",
    "answers of two clusters: …",
    "the topic has more partitions than this group uses, …",
    "topic … had … partitions and has … now: …",
    "min.compaction.lag.ms=…: a late record …",
    "min.insync.replicas=…: records that were read …",
    "min.insync.replicas=… with … replicas…: while one …",
    "message.timestamp.type=…: retention goes by …",
    "retention.bytes=…: a living leader's records …",
    "it has one replica…, though there are … brokers …",
    "its configuration can't be read (…): …",
    "retention.ms=…: a key is forgotten, …",
    "unclean.leader.election.enable=true: a fact may be lost, …",
    "…: all its candidates need the same …",
    "… stands in this group for other roles …",
    "--overlap is missing: … stands in this election with it; …",
    "--overlap: … stands in this election without it; …",
    "…: short for a guard without real-time scheduling: …",
    "a CPU quota (…) holds up the guard, …",
    "…: it kills the job … before the lease ends; …",
    "the guard (pid …) does not answer: …",
    "neli-run itself has used up its processor time …",
    "neli-run may not wait for its children …",
    "the job is stopped, because it used the terminal …",
    "the job's main process is stopped (…), and this candidate keeps the lead: …",
    "the job was started and then killed, …",
    "the newest window that is recorded, …",
    "--group is given more than once: …",
    "… is set, and no option has this variable: …",
    "…: every user of this machine can read it; …",
    "…: holds a secret, and every user …",
    "the job has ended after …, which process 1 of this container …",
    "topic …: Kafka does not make it now …",
    "released term …: …; Kafka has not confirmed it, …",
    "released term …: …; this process does not stand for this election again …",
    "… open files (ulimit -n, LimitNOFILE=) are enough to lead …",
    "… The elections there wait until there is one",
    "… no answer from the leader of …",
    "…the last token counts until it expires, …",
    "the topic's settings can't be asked for, for lack of a thread: …",
    "the broker does not show …: …",
    "the guard (pid …) can't be killed; …",
    "whether a process of the job is left is unknown …",
    "the job exited with status … after …",
    "the job was ended by … after …",
    "the hook --on-… …",
    "the job stopped itself (SIGTSTP), …",
    "nothing is run for the time from … to …: …",
    "…; no retries are left; neli-run forget --once …",
    "…; no retries are left; neli-run forget --newest-window …",
    "this machine's clock was set back …",
    "the skip of this window is not recorded yet …",
    "the outcome of the last run is not recorded yet …",
    "the run's outcome is not recorded yet …",
    "Kafka has not confirmed the outcome of the last run, …",
    "--embedded is for a trial …",
    "… lines of this log were lost here, …",
    "this machine's clock shows the window from …",
    "…: give all candidates the same, or the job may run more than once",
];

/// Calls that log a warning or an error, up to the message.
const WARNS: [&str; 5] =
    [".warn(", "warnings.push(", "Event::warning(", "Event::error(", "Event::error(if *is_theirs {"];
/// The sources of the program's texts.
const SOURCES: [&str; 4] = ["src", "crates/neli-election/src", "crates/neli-kafka/src", "crates/neli-proto/src"];
/// The file with the risks of a topic, which share one warning.
const RISKS: &str = "crates/neli-proto/src/topic.rs";
/// The log builds some sentences from parts, so no source contains them whole. This unit test contains them whole.
const BUILT_SENTENCES: &str = "src/report/notes/tests.rs";

#[test]
fn the_quoted_messages_exist_in_the_program() {
    let texts = literals_below(&SOURCES.iter().chain([&BUILT_SENTENCES]).map(|path| root(path)).collect::<Vec<_>>());
    let page = page_of(QUOTING);
    let quotes: Vec<_> = quoted(&page).collect();
    assert!(quotes.len() >= 15, "{QUOTING}: {} quotes", quotes.len());
    for quote in quotes.into_iter().chain(SAY_WHAT_TO_DO) {
        assert!(texts.iter().any(|text| is_quote_of(quote, text)), "no text of the program is {quote:?}");
    }
}

#[test]
fn a_quote_is_compared_from_its_first_letter_to_its_last() {
    let text = "released term …: …; the lease ends in …";
    for quote in [text, "released term …", "…; the lease ends in …", "released …: …; the lease …"] {
        assert!(is_quote_of(quote, text), "{quote}");
    }
    for quote in ["released term …: …; the lease ends", "term …", "released term …; the lease starts in …", "released"]
    {
        assert!(!is_quote_of(quote, text), "{quote}");
    }
    let source = r##"// "no text"
        let lifetime: &'static str = f('"', '\"', "the guard \
            (pid {pid}) of \"{name}\" died"); g(r#"a "raw" one"#, "")"##;
    assert_eq!(literals_of(source), ["the guard (pid …) of … died", "a \"raw\" one", ""]);
}

#[test]
fn every_warning_and_error_says_what_to_do_or_has_a_row_that_does() {
    let page = page_of(QUOTING);
    let longest = |quote| fragments(quote).into_iter().max_by_key(|part| part.len());
    let rows = quoted(&page).chain(SAY_WHAT_TO_DO);
    let rows: Vec<&str> = rows.filter_map(longest).collect();
    let has_row = |message: &str| {
        let has_one = rows.iter().any(|row| message.contains(row));
        assert!(has_one, "neither the list nor the page has: {message}");
    };
    let (texts, risks) = (texts(), text_of(&root(RISKS)));
    let warnings: Vec<&str> = WARNS.iter().flat_map(|call| messages(&texts, call)).collect();
    // A setting that is refused is no risk.
    let risks = messages(&risks, "let text =").filter(|text| !text.contains(": must be "));
    let risks: Vec<&str> = risks.collect();
    assert!(warnings.len() >= 20, "{} warnings were found in the sources", warnings.len());
    assert_eq!(risks.len(), 11, "each risk is found: {risks:?}");
    warnings.into_iter().chain(risks).for_each(has_row);
}

/// Options of other programs that the pages name.
const FOREIGN: [&str; 5] = ["--keys", "--only", "--path", "--resource-pattern-type", "--ttl"];

#[test]
fn every_option_named_in_the_docs_exists() {
    let mut program = cli::definition();
    program.build();
    let all = program.get_arguments().chain(program.get_subcommands().flat_map(clap::Command::get_arguments));
    let known: Vec<String> = all.filter_map(|option| Some(format!("--{}", option.get_long()?))).collect();
    for (page, text) in pages() {
        for span in text.split('`').skip(1).step_by(2).filter(|span| span.starts_with("--")) {
            let option = span.split([' ', '=', ':']).next().unwrap_or_default();
            let is_known = known.iter().any(|name| name == option) || FOREIGN.contains(&option);
            assert!(is_known, "{page}: {option} is no option");
        }
    }
}

#[test]
fn the_program_accepts_every_command_in_the_pages() {
    let mut count = 0;
    for (page, text) in pages() {
        for command in commands(&text) {
            let mut words = words(&command);
            // The COMMAND of a page is not installed on this machine.
            if let Some(end) = words.iter().position(|word| word == "--") {
                words.splice(end + 1.., ["true".to_owned()]);
            }
            let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
            let refusal = match cli::parse(&words, vec![("PATH".into(), "/bin:/usr/bin".into())]) {
                Ok(args) => match args.subcommand() {
                    None => validate::config(&args).err(),
                    Some("doctor") => validate::doctor(&args).err(),
                    Some(_) => None,
                },
                Err(error) => error.use_stderr().then(|| cli::refusal(&error, &words)),
            };
            if let Some(error) = refusal {
                panic!("{page}: {command}: {error:#}");
            }
            count += 1;
        }
    }
    assert!(count >= 30, "{count} commands");
}

/// cron mails each line that a command writes: without `-q` every machine would mail its log at every run.
#[test]
fn a_line_of_a_crontab_logs_only_warnings_and_errors() {
    let is_cron = |line: &&str| {
        line.trim_start().starts_with(|first: char| first.is_ascii_digit()) && line.contains("/neli-run ")
    };
    let lines: Vec<String> = pages()
        .chain([("examples/crontab".to_owned(), page_of("examples/crontab"))])
        .flat_map(|(_, page)| page.lines().filter(is_cron).map(str::to_owned).collect::<Vec<_>>())
        .collect();
    assert_eq!(lines.len(), 5, "{lines:#?}");
    let loud: Vec<&String> = lines.iter().filter(|line| !line.contains("/neli-run -q ")).collect();
    assert!(loud.is_empty(), "without -q: {loud:#?}");
}

#[test]
fn a_command_is_found_behind_a_prompt_or_a_path_and_ends_at_a_pipe() {
    let page = "neli-run no\n```sh\n30 2 * * * root /bin/neli-run -g \\\n  'a b' -- x # why\ndb1$ neli-run status | less\n12:00 \
                neli-run[7] g: so\n```\n";
    let found = commands(page);
    assert_eq!(found, ["neli-run -g    'a b' -- x", "neli-run status"]);
    assert_eq!(words(&found[0]), ["neli-run", "-g", "a b", "--", "x"]);
}

/// README, the pages in docs, and the manual, by name.
fn pages() -> impl Iterator<Item = (String, String)> {
    let docs = std::fs::read_dir(root("docs")).unwrap().map(|entry| entry.unwrap().path());
    let docs = docs.filter(|page| page.extension().is_some_and(|extension| extension == "md"));
    let docs = docs.map(|page| format!("docs/{}", page.file_name().unwrap().to_str().unwrap()));
    let pages = docs.chain(["README.md".to_owned()]).map(|page| (page.clone(), page_of(&page)));
    let manual = page_of("man/neli-run.1.in").replace("\\-", "-").replace("\\(aq", "'");
    // The manual's examples stand between these two lines, as a page's between fences.
    let manual = manual.replace("\n.nf\n", "\n```sh\n").replace("\n.fi\n", "\n```\n");
    pages.chain([("man/neli-run.1.in".to_owned(), manual)])
}

/// The lines of `neli-run` in the blocks of a page, without prompts and comments.
fn commands(page: &str) -> Vec<String> {
    let blocks = page.split("\n```").skip(1).step_by(2).map(|block| block.replace("\\\n", " "));
    let lines = blocks.flat_map(|block| block.lines().skip(1).map(str::to_owned).collect::<Vec<_>>());
    lines
        .filter_map(|line| {
            let mut found = line.match_indices("neli-run ").map(|(at, _)| at);
            let at = found.find(|at| *at == 0 || line[..*at].ends_with(['/', ' ']))?;
            let end = [" # ", " | "].iter().filter_map(|end| line.find(end)).min().unwrap_or(line.len());
            Some(line.get(at..end)?.trim_end().to_owned())
        })
        .collect()
}

/// The words of a command, as a shell splits them.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in command.split('\'').enumerate() {
        if at % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// All texts of the program in the sources, with `…` for inserted values.
fn texts() -> String {
    let files = SOURCES.iter().flat_map(|folder| sources(&root(folder)));
    files.chain([root(BUILT_SENTENCES)]).map(|file| text_of(&file)).collect()
}

/// A source's text in the form for comparisons.
fn text_of(file: &Path) -> String {
    with_ellipses(&joined(&std::fs::read_to_string(file).unwrap()))
}

/// The messages at the beginning of these calls.
fn messages<'a>(texts: &'a str, call: &'a str) -> impl Iterator<Item = &'a str> {
    texts.match_indices(call).filter_map(move |(at, _)| literal(&texts[at + call.len()..]))
}

fn sources(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|entry| !entry.ends_with("tests.rs")).flat_map(|entry| sources(&entry)).collect()
}

/// A text that continues over several lines, as one line.
fn joined(source: &str) -> String {
    let mut lines = source.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |text, line| text + line.trim_start())
}

/// `{x}`, `{x:?}` and `\"{x}\"` as `…`.
fn with_ellipses(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        shown.push_str(before);
        match after.split_once('}') {
            Some((inside, tail)) if !inside.contains(['\n', '{', '"', ';']) => {
                shown.push('…');
                rest = tail;
            }
            _ => {
                shown.push('{');
                rest = after;
            }
        }
    }
    (shown + rest).replace("\\\"…\\\"", "…").replace("\\\"", "'")
}

/// The quotes in the first column of the tables, except for names.
fn quoted(page: &str) -> impl Iterator<Item = &str> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let spans = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    spans.filter(|span| span.split(' ').count() >= 4)
}

/// The parts of a quote without inserted values, in order.
fn fragments(quote: &str) -> Vec<&str> {
    quote.split('…').map(str::trim).filter(|part| part.len() >= 3).collect()
}

/// The texts in double quotes in these files and folders, with `…` for inserted values.
fn literals_below(paths: &[PathBuf]) -> Vec<String> {
    let files = paths.iter().flat_map(|path| sources(path));
    files.flat_map(|file| literals_of(&std::fs::read_to_string(file).unwrap())).collect()
}

/// The texts in double quotes in a source, with `…` for inserted values.
fn literals_of(source: &str) -> Vec<String> {
    let mut literals = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '\'', '/']) {
        let (before, found) = rest.split_at(at);
        let length = if found.starts_with("//") {
            found.find('\n').unwrap_or(found.len())
        } else if let Some(quote) = ["'\"'", "'\\\"'"].iter().find(|quote| found.starts_with(**quote)) {
            quote.len()
        } else if found.starts_with('"') {
            let name = before.trim_end_matches('#');
            let end = format!("\"{}", &before[name.len()..]);
            let is_raw = name.ends_with('r');
            let is_end = |at: usize| is_raw || !is_escaped(&found[..at]);
            let close = found.match_indices(&end).map(|(at, _)| at).find(|at| *at > 0 && is_end(*at)).unwrap();
            literals.push(with_ellipses(&joined(&found[1..close])));
            close + end.len()
        } else {
            1
        };
        rest = &found[length..];
    }
    literals
}

/// Whether a backslash at the end of this text escapes what follows.
fn is_escaped(text: &str) -> bool {
    (text.len() - text.trim_end_matches('\\').len()) % 2 == 1
}

/// Whether the quote is this text: `…` in the quote stands for an inserted value, or for words that are left out.
fn is_quote_of(quote: &str, text: &str) -> bool {
    let Some((first, others)) = quote.split_once('…') else { return quote == text };
    let Some(rest) = text.strip_prefix(first) else { return false };
    let (middle, last) = others.rsplit_once('…').unwrap_or(("", others));
    let rest = middle.split('…').try_fold(rest, |rest, part| rest.split_once(part).map(|(_, after)| after));
    rest.is_some_and(|rest| rest.ends_with(last))
}

/// The text at the beginning of a call. Before it there may only be functions that build the text.
fn literal(call: &str) -> Option<&str> {
    let (before, rest) = call.split_once('"')?;
    let is_first =
        before.chars().all(|letter| letter.is_whitespace() || "!&():_".contains(letter) || letter.is_lowercase());
    let (text, _) = rest.split_once('"')?;
    // A message that consists only of an inserted value has its text in another place.
    (is_first && fragments(text).iter().any(|part| part.len() >= 10 && part.contains(' '))).then_some(text)
}

fn page_of(page: &str) -> String {
    std::fs::read_to_string(root(page)).unwrap()
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
