//! The pages quote the program's own texts. Messages are compared with the sources, and options with the parser.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use neli_run::cli;

/// The pages that quote messages.
const QUOTING: [&str; 2] = ["docs/operating.md", "docs/troubleshooting.md"];

/// Calls that log a warning, up to the message.
const WARNS: [&str; 3] = [".warn(", "warnings.push(", "Event::warning("];
/// The file with the risks of a topic, which share one warning.
const RISKS: &str = "crates/neli-proto/src/topic/risk.rs";
/// The log builds some sentences from parts, so no source contains them whole. This unit test contains them whole.
const BUILT_SENTENCES: &str = "src/report/notes/tests.rs";

#[test]
fn the_quoted_messages_exist_in_the_program() {
    let texts = texts();
    for page in QUOTING {
        let text = page_of(page);
        let mut count = 0;
        for quote in quoted(&text) {
            assert!(occurs(&texts, &fragments(quote)), "{page}: no text of the program matches: {quote}");
            count += 1;
        }
        assert!(count >= 20, "{page}: {count} quotes");
    }
    assert!(!occurs(&texts, &fragments("the job … is a teapot")));
}

#[test]
fn every_warning_has_a_row_that_says_what_to_do() {
    let page = page_of("docs/operating.md");
    let longest = |quote| fragments(quote).into_iter().max_by_key(|part| part.len());
    let rows: Vec<&str> = quoted(&page).filter_map(longest).collect();
    let has_row = |message: &str| {
        let has_one = rows.iter().any(|row| message.contains(row));
        assert!(has_one, "docs/operating.md has no row for the warning: {message}");
    };
    let (texts, risks) = (texts(), text_of(&root(RISKS)));
    let warnings: Vec<&str> = WARNS.iter().flat_map(|call| messages(&texts, call)).collect();
    let risks: Vec<&str> = ["f,", "f.write_str("].iter().flat_map(|call| messages(&risks, call)).collect();
    assert!(warnings.len() >= 20, "{} warnings were found in the sources", warnings.len());
    assert_eq!(risks.len(), 9, "each risk is found: {risks:?}");
    warnings.into_iter().chain(risks).for_each(has_row);
}

#[test]
fn every_option_named_in_the_docs_exists() {
    let program = cli::definition();
    let all = program.get_arguments().chain(program.get_subcommands().flat_map(clap::Command::get_arguments));
    let known: Vec<String> = all.filter_map(|option| Some(format!("--{}", option.get_long()?))).collect();
    for page in ["docs/concepts.md", "docs/cron.md", "docs/operating.md", "docs/troubleshooting.md"] {
        let text = page_of(page);
        for span in text.split('`').skip(1).step_by(2).filter(|span| span.starts_with("--")) {
            let option = span.split([' ', '=']).next().unwrap_or_default();
            assert!(known.iter().any(|name| name == option), "{page}: {option} is no option");
        }
    }
}

/// All texts of the program in the sources, with `…` for inserted values.
fn texts() -> String {
    let folders = ["src", "crates/neli-election/src", "crates/neli-kafka/src", "crates/neli-proto/src"];
    let files = folders.iter().flat_map(|folder| sources(&root(folder)));
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

/// Whether these fragments occur one after the other in the sources.
fn occurs(texts: &str, fragments: &[&str]) -> bool {
    let Some((first, others)) = fragments.split_first() else { return false };
    texts.match_indices(first).any(|(at, _)| {
        let mut rest = &texts[at + first.len()..];
        others.iter().all(|part| {
            let found = rest.find(part).filter(|distance| *distance < 1_000);
            rest = found.map_or(rest, |distance| &rest[distance + part.len()..]);
            found.is_some()
        })
    })
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
