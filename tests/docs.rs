//! Generated documentation must match the program: the manual, the completions, the lists of the options.
//!
//! `UPDATE=1 cargo test --test docs` writes it again.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use neli_run::cli::options::{Opt, SECTIONS, options};
use neli_run::command::completions::{self, Shell};
use neli_run::command::man;
use neli_run::exit::TABLE;

#[path = "docs/log_events.rs"]
mod log_events;
#[path = "docs/picture.rs"]
mod picture;
#[path = "docs/proof.rs"]
mod proof;

const MEND: &str = "UPDATE=1 cargo test --test docs";

#[test]
fn the_manual_matches_the_program() {
    let page = man::page().unwrap();
    for subcommand in man::pages() {
        let name = subcommand.get_name();
        assert!(page.contains(&format!("\n.BR neli-run-{name} (1)")), "SEE ALSO lacks {name}");
    }
    keep("man/neli-run.1", &page);
}

#[test]
fn each_subcommand_has_a_page() {
    for subcommand in man::pages() {
        keep(&format!("man/neli-run-{}.1", subcommand.get_name()), &man::page_of(&subcommand).unwrap());
    }
    let kept =
        files_below(&root("man")).into_iter().filter(|file| file.extension().is_some_and(|end| end == "1")).count();
    assert_eq!(kept, man::pages().count() + 1, "a page of a subcommand that there is not");
}

#[test]
fn each_entry_of_a_page_has_a_text() {
    let of_subcommands = man::pages().map(|subcommand| man::page_of(&subcommand).unwrap());
    for page in of_subcommands.chain([man::page().unwrap()]) {
        for entry in page.split("\n.TP\n").skip(1) {
            let text = entry.lines().nth(1).unwrap_or_default();
            assert!(!text.is_empty() && !text.starts_with(".S"), "{entry}");
        }
    }
}

/// In a narrow column `man` warns of each line that it can't adjust to both edges.
#[test]
fn no_cell_of_a_table_in_the_manual_is_adjusted() {
    for cell in man::page().unwrap().split("T{\n").skip(1) {
        assert!(cell.starts_with(".na\n"), "{cell}");
    }
}

#[test]
fn the_completions_match_the_program() {
    for (shell, path) in [
        (Shell::Bash, "completions/neli-run.bash"),
        (Shell::Fish, "completions/neli-run.fish"),
        (Shell::Zsh, "completions/_neli-run"),
    ] {
        keep(path, &completions::script(shell));
    }
}

#[test]
fn the_lists_of_the_options_match_the_program() {
    let page = fs::read_to_string(root("docs/options.md")).unwrap();
    let page = with_block(&page, "options", &option_lists());
    let page = with_block(&page, "exit-status", &exit_statuses());
    let page = with_block(&page, "environment", &environment());
    keep("docs/options.md", &page);
}

/// What the manual says of the environment of job, hooks and health command, from its source.
fn environment() -> String {
    let manual = fs::read_to_string(root("man/neli-run.1.in")).unwrap();
    let (_, section) = manual.split_once("\n.SH ENVIRONMENT\n").unwrap();
    let (section, _) = section.split_once("\n.SH ").unwrap();
    // The options' own variables are told of at the beginning of the page.
    let (_, section) = section.split_once("\n.PP\n").unwrap();
    let mut page = String::new();
    for part in section.split("\n.TP\n") {
        let (entry, rest) = part.split_once("\n.PP\n").unwrap_or((part, ""));
        let lines: Vec<String> = entry.lines().map(markdown).collect();
        let text = match lines.as_slice() {
            [names, text @ ..] if entry.starts_with(".B") => format!("- {names}: {}\n", text.join(" ")),
            text => format!("{}\n\n", text.join(" ")),
        };
        page += &text;
        if !rest.is_empty() {
            let lines: Vec<String> = rest.lines().map(markdown).collect();
            writeln!(page, "\n{}", lines.join(" ")).unwrap();
        }
    }
    page
}

/// A line of the manual's source as Markdown: names of variables and options are code.
fn markdown(line: &str) -> String {
    let line = if let Some(names) = line.strip_prefix(".BR ") {
        let names: Vec<&str> =
            names.split(' ').map(|word| word.trim_matches('"')).filter(|word| !word.is_empty()).collect();
        let shown = names.iter().map(|word| match *word {
            "," => ", ".to_owned(),
            "or" => " or ".to_owned(),
            name => format!("\\fB{name}\\fR"),
        });
        shown.collect()
    } else {
        line.strip_prefix(".B ").map_or_else(|| line.to_owned(), |name| format!("\\fB{name}\\fR"))
    };
    let line = line.replace("\\-", "-").replace("\\fR*", "*\\fR");
    line.replace("\\fB", "`").replace("\\fI", "`").replace("\\fR", "`")
}

#[test]
fn the_page_about_json_lists_every_event_of_the_log() {
    log_events::compare();
}

/// A page names the tests that show a claim: a file, and then, in the same paragraph or row, tests in that file.
#[test]
fn every_test_named_as_evidence_exists() {
    for (page, least) in
        [("docs/architecture.md", 2), ("docs/guarantees.md", 40), ("docs/scale.md", 1), ("docs/security.md", 20)]
    {
        let text = fs::read_to_string(root(page)).unwrap();
        let mut file = String::new();
        let mut shown = 0;
        for line in text.lines() {
            if line.is_empty() || line.starts_with('|') {
                file.clear();
            }
            for word in line.split('`').skip(1).step_by(2) {
                if ["benches/", "crates/", "src/", "tests/"].iter().any(|folder| word.starts_with(folder)) {
                    assert!(root(word).exists(), "{page} names {word}, which is not there");
                    if word.contains("tests/") && root(word).extension().is_some_and(|extension| extension == "rs") {
                        file = fs::read_to_string(root(word)).unwrap();
                    }
                } else if is_name(word) && !file.is_empty() {
                    assert!(file.contains(&format!("fn {word}(")), "{page}: no test is called {word}: {line}");
                    shown += 1;
                }
            }
        }
        assert!(shown >= least, "{page}: {shown} tests");
    }
}

/// The code and the pages cite the protocol's rules by number; each must be defined in docs/protocol.md.
#[test]
fn every_cited_rule_is_defined() {
    let protocol = fs::read_to_string(root("docs/protocol.md")).unwrap();
    let mut cited = BTreeMap::new();
    for folder in ["src", "crates", "tests", "benches", "docs", "README.md", "man/neli-run.1.in"] {
        for file in files_below(&root(folder)) {
            let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
            for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
                if is_rule(word) {
                    cited.entry(word.to_owned()).or_insert_with(|| file.clone());
                }
            }
        }
    }
    assert!(cited.len() >= 13, "the law has four articles and the candidate nine rules: {:?}", cited.keys());
    for (rule, file) in cited {
        let definition = [format!("- **{rule}** "), format!("- **{rule} ")];
        let is_defined = definition.iter().any(|definition| protocol.contains(definition));
        assert!(is_defined, "{} cites {rule}, which docs/protocol.md does not define", file.display());
    }
}

/// Comments of the sources cite files of the repository by name, and pages by headings: each must exist.
#[test]
fn every_citation_in_a_comment_has_a_target() {
    let folders = ["benches", "crates", "docs", "examples", "fuzz", "man", "packaging", "src", "tests"];
    let mut files: Vec<PathBuf> = folders.iter().flat_map(|folder| files_below(&root(folder))).collect();
    files.extend(["CHANGELOG.md", "CONTRIBUTING.md", "Cargo.toml", "README.md"].map(root));
    let mut cited = 0;
    for source in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs")) {
        let comments = comments_of(&fs::read_to_string(source).unwrap());
        for (name, heading) in citations(&comments) {
            let target = Some(root(name)).filter(|file| file.exists());
            let target = target.or_else(|| files.iter().find(|file| file.ends_with(name)).cloned());
            let target = target.unwrap_or_else(|| panic!("{} cites {name}, which is not there", source.display()));
            if let Some(heading) = heading {
                let text = fs::read_to_string(target).unwrap();
                let mut titles = text.lines().filter_map(title);
                assert!(titles.any(|title| title == heading), "{}: {name} has no {heading:?}", source.display());
            }
            cited += 1;
        }
    }
    assert!(cited >= 30, "{cited} citations");
}

#[test]
fn a_citation_is_found_where_a_line_is_broken() {
    let comments =
        comments_of("/// As it is (docs/a.md,\nfn f() {}\n// Two words), `b.rs` and http://c.md/d.rs. See e.md: so.\n");
    let found: Vec<_> = citations(&comments).collect();
    assert_eq!(found, [("docs/a.md", Some("Two words")), ("b.rs", None), ("e.md", None)]);
}

/// The comment lines of a source file, joined to one line.
fn comments_of(source: &str) -> String {
    let comments = source.lines().filter_map(|line| line.trim_start().strip_prefix("//"));
    comments.map(|line| line.trim_start_matches(['/', '!']).trim()).collect::<Vec<_>>().join(" ")
}

/// The file names in comments, each with the heading that follows it, as in `(docs/protocol.md, Timing)`.
fn citations(comments: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let is_of_a_path = |sign: char| sign.is_ascii_alphanumeric() || "._-/".contains(sign);
    let starts = comments.char_indices().map(|(at, _)| at);
    let starts = starts.filter(|&at| at == 0 || comments[..at].ends_with([' ', '(', '`']));
    starts.filter_map(move |at| {
        let word = comments[at..].split([' ', '(', ')', '`', ',', ';']).next()?;
        let name = word.trim_end_matches(['.', ':', '?']);
        let (_, extension) = name.rsplit_once('.')?;
        if !["in", "md", "rs"].contains(&extension) || name.starts_with(['.', '/']) || !name.chars().all(is_of_a_path) {
            return None;
        }
        let heading =
            comments[at + name.len()..].strip_prefix(", ").and_then(|rest| rest.split([')', ';', ':', ',']).next());
        Some((name, heading.filter(|_| extension != "rs")))
    })
}

/// The title in a heading of a page or of the manual.
fn title(line: &str) -> Option<&str> {
    let title = line.strip_prefix('#').map(|title| title.trim_start_matches('#'));
    title.or_else(|| line.strip_prefix(".SH")).map(str::trim)
}

/// Whether a word looks like the citation of a rule: `L1`, `R6` or `O3`.
fn is_rule(word: &str) -> bool {
    matches!(word.as_bytes(), [b'K' | b'L' | b'O' | b'R' | b'S', digit] if digit.is_ascii_digit())
}

/// The files below a folder, or the path itself if it is a file.
fn files_below(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|entry| files_below(&entry)).collect()
}

fn is_name(word: &str) -> bool {
    word.contains('_') && word.chars().all(|c| c == '_' || c.is_ascii_lowercase())
}

#[test]
fn every_option_has_a_help_text_of_one_line() {
    for option in options() {
        assert!(option.help.len() <= 60, "--{}: {} is too long for -h", option.long, option.help);
        assert!(!option.help.ends_with('.'), "--{}: the program adds the full stop", option.long);
        assert!(option.more.is_empty() || option.more.ends_with('.'), "--{}: a sentence ends", option.long);
    }
}

/// Asserts that the file has this content, or writes it with `UPDATE=1`.
fn keep(path: &str, text: &str) {
    let file = root(path);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&file, text).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    if let Some((line, kept, made)) = first_difference(&kept, text) {
        panic!("{path} line {line} is\n  {kept}\nbut the program makes\n  {made}\n\nIf the program is right: {MEND}\n");
    }
}

fn first_difference<'a>(kept: &'a str, made: &'a str) -> Option<(usize, &'a str, &'a str)> {
    if kept == made {
        return None;
    }
    let lines =
        kept.lines().chain(std::iter::repeat("(nothing)")).zip(made.lines().chain(std::iter::repeat("(nothing)")));
    let length = kept.lines().count().max(made.lines().count());
    let mut lines = lines.take(length).enumerate();
    let other = lines.find(|(_, (kept, made))| kept != made);
    Some(other.map_or((length, "(another end of line)", "(an end of line)"), |(at, (kept, made))| (at + 1, kept, made)))
}

/// The page with the text between the block's two markers replaced.
fn with_block(page: &str, name: &str, block: &str) -> String {
    let (open, close) = (format!("<!-- {name}: {MEND} -->\n"), format!("<!-- /{name} -->"));
    let (before, rest) = page.split_once(&open).unwrap_or_else(|| panic!("the page has no line {open}"));
    let (_, after) = rest.split_once(&close).unwrap_or_else(|| panic!("the page has no {close}"));
    format!("{before}{open}{block}{close}{after}")
}

fn option_lists() -> String {
    let list = |(section, options): (&str, &[Opt])| {
        format!("### {section}\n\n{}", options.iter().map(option_line).collect::<String>())
    };
    SECTIONS.map(list).join("\n")
}

fn option_line(option: &Opt) -> String {
    let short = option.short.map_or_else(String::new, |short| format!("-{short}, "));
    let value = match (option.value_name(), option.value_if_missing()) {
        (None, _) => String::new(),
        (Some(name), None) => format!(" <{name}>"),
        (Some(name), Some(_)) => format!(" [<{name}>]"),
    };
    let default = match (option.default, option.computed) {
        (None, Some(text)) if !text.contains('<') => format!(" ({text})"),
        (Some(text), _) | (None, Some(text)) => format!(" (`{text}`)"),
        (None, None) => String::new(),
    };
    format!("- `{short}--{}{value}`{default}: {}\n", option.long, prose(&option.meaning()))
}

fn exit_statuses() -> String {
    let mut list = String::new();
    for (status, meaning) in TABLE {
        writeln!(list, "- {status}: {}", prose(meaning)).unwrap();
    }
    list
}

/// A text in which `<topic>` is no tag of HTML.
fn prose(text: &str) -> String {
    text.replace('<', "\\<")
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
